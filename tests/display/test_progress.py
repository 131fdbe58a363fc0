"""The progress bar counts rows, changes no result, and goes away at the end."""

from __future__ import annotations

import io
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import closing

import nbformat
import polars as pl
import pytest
from nbclient import NotebookClient
from polars.testing import assert_frame_equal
from rich.console import Console
from support import first, log_of, named, on_linux, on_posix
from test_plan import VERBS, log

import polars_mcc
from polars_mcc._counts import parquet_codes, parquet_files
from polars_mcc._display import progress_bar as _progress
from polars_mcc._inputs import read_files as _inputs

__all__ = ["log"]  # the fixture


class Counter:
    """A bar that only counts."""

    def __init__(self):
        self.rows = 0

    def advance(self, rows: int) -> None:
        self.rows += rows


@pytest.mark.parametrize("verb", first(3, named(VERBS)))
def test_each_row_is_counted_once_and_the_answer_is_the_same(log, verb):
    bar = Counter()
    answer = _progress.collect(log, verb, bar)
    # Standard errors are sums of floats; their order varies.
    assert_frame_equal(answer, verb(log).collect(), rel_tol=1e-14, abs_tol=1e-15)
    assert bar.rows == 4


@pytest.mark.parametrize("fault", [None, "dictionaries are too large", "codes are given up"])
def test_rows_of_large_files_are_counted_by_codes_with_a_bar(tmp_path, monkeypatch, fault):
    monkeypatch.setattr(parquet_files, "_WORTH", 0)
    monkeypatch.setattr(parquet_files, "_WORTH_ONE", 0)
    monkeypatch.setattr(parquet_files, "_BYTES", 0 if fault == "dictionaries are too large" else 1)
    if fault == "codes are given up":
        monkeypatch.setattr(parquet_codes, "_ALL", 0)
    rows = pl.DataFrame({"key": ["x", "y"], "gold": ["a", "b"], "pred": ["a", "a"]})
    pl.concat([rows] * 300).write_parquet(tmp_path / "log.parquet")
    scan, bar = pl.scan_parquet(tmp_path), Counter()

    def query(log: pl.LazyFrame) -> pl.LazyFrame:
        asked.append("Parquet SCAN" in log.explain())
        return log.mcc.by("key", ci=0.9)

    asked: list[bool] = []
    found = _progress.collect_lazy(scan, query, bar)
    assert_frame_equal(found, query(scan).collect())
    assert bar.rows == (0 if fault == "codes are given up" else 600)
    assert asked == ([True, False, True] if fault == "dictionaries are too large" else [True, True])


def test_the_rows_that_are_counted_are_all_and_those_of_the_filter_of_the_user(log):
    bar = Counter()
    _progress.collect(log, lambda lf: lf.filter(pl.col("key") == "x").select("gold"), bar)
    assert bar.rows == 4, "what the query leaves out has been read"
    bar = Counter()
    kept = log.filter(pl.col("key") == "x")
    _progress.collect(kept, lambda lf: lf.mcc.by("key"), bar)
    assert bar.rows == 2
    bar = Counter()
    head = _progress.collect(log, lambda lf: lf.head(1).select("w"), bar)
    assert (head.shape, bar.rows) == ((1, 1), 0), "a look at the first rows is no pass"


def test_any_function_of_a_log_will_do():
    rows = log_of([("x", 0, 0), ("y", 1, 0)])
    answer = polars_mcc.progress(rows, lambda lf: lf.filter(pl.col("key") > "x"))
    assert answer.equals(rows.tail(1))
    empty = polars_mcc.progress(rows.clear(), lambda lf: lf.mcc.by("key"))
    assert empty.equals(rows.clear().mcc.by("key"))


def test_a_check_that_passes_and_one_that_fails(log):
    """`check` collects its result itself, while its rows are counted."""
    bar = Counter()
    passed = _progress.collect(log, lambda lf: lf.mcc.check("key", metric="accuracy", min=0), bar)
    assert_frame_equal(passed, log.mcc.check("key", metric="accuracy", min=0))
    assert bar.rows == 4
    with pytest.raises(polars_mcc.CheckError, match="slices fail"):
        polars_mcc.progress(log, lambda lf: lf.mcc.check("key", min=1))


QUERIES = {
    "number of rows": lambda lf: lf.select(pl.len()),
    "row index": lambda lf: lf.with_row_index().select(pl.col("index").sum()),
    "head of a filter": lambda lf: lf.filter(pl.col("n") % 7 == 1).head(2).select("m"),
    "filter of a head": lambda lf: lf.head(5).filter(pl.col("n") > 2).select("m"),
    "tail": lambda lf: lf.tail(2).select("m"),
    "slice": lambda lf: lf.slice(70_005, 3).select("m"),
    "order": lambda lf: lf.select(pl.col("n").is_sorted()),
    "constant": lambda lf: lf.select(x=pl.lit(1)),
    "a constant per row": lambda lf: lf.with_columns(x=1).select(pl.col("x").sum()),
}


@pytest.mark.parametrize("query", first(4, QUERIES.values()), ids=QUERIES)
def test_rows_come_in_their_order_and_number(query, tmp_path):
    """With several files, each of several batches."""
    numbers = pl.int_range(200_000, eager=True)
    for i in range(4):
        rows = pl.DataFrame({"n": numbers + i * 200_000}).with_columns(m=-pl.col("n"))
        rows.write_parquet(tmp_path / f"{i}.parquet", row_group_size=50_000)
    scan = pl.scan_parquet(tmp_path)
    assert polars_mcc.progress(scan, query).equals(query(scan).collect())


def test_errors_are_those_of_the_query(log):
    with pytest.raises(pl.exceptions.ColumnNotFoundError, match="no column 'kye' for key"):
        polars_mcc.progress(log, lambda lf: lf.mcc.by("kye"))
    negative = log.with_columns(w=-1)
    with pytest.raises(pl.exceptions.InvalidOperationError, match="negative"):
        polars_mcc.progress(negative, lambda lf: lf.mcc(weight="w").by())
    labels = pl.DataFrame({"key": ["x", "x"], "label": ["a", "b"]})
    late = {"outcomes": labels, "gold": "label", "on": "key"}
    with pytest.raises(pl.exceptions.InvalidOperationError, match="^key x has two labels"):
        polars_mcc.progress(log.select("key", "pred"), lambda lf: lf.mcc(**late).by())


@pytest.mark.parametrize("is_coded", [False, True])
def test_a_query_that_fails_is_asked_once(is_coded, tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_files, "_WORTH", 0)
    monkeypatch.setattr(parquet_files, "_WORTH_ONE", 0)
    monkeypatch.setattr(parquet_files, "_BYTES", 1)
    rows = pl.DataFrame({"key": ["x", "y"], "gold": ["a", "b"], "pred": ["a", "a"]})
    pl.concat([rows] * 300).write_parquet(tmp_path / "log.parquet")
    asked = []

    def query(log: pl.LazyFrame) -> pl.LazyFrame:
        answer = log.mcc(portable=not is_coded).by("key")

        def fail(_: pl.DataFrame) -> pl.DataFrame:
            asked.append("PYTHON SCAN" in answer.explain())
            msg = "it fails"
            raise ValueError(msg)

        return answer.map_batches(fail, schema=answer.collect_schema())

    with pytest.raises((pl.exceptions.ComputeError, ValueError), match="it fails"):
        _progress.collect_lazy(pl.scan_parquet(tmp_path), query, Counter())
    assert len(asked) == 1


def test_a_file_that_cannot_be_read_does_not_stop_a_bar(tmp_path):
    for name, data in {"a": b"PAR1", "b": b""}.items():
        (tmp_path / f"{name}.parquet").write_bytes(data)
    assert _inputs.rows_of_files(_inputs.find_logs([str(tmp_path)])) == [None, None]


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        (lambda log: log, 4),
        (lambda log: log.collect().lazy(), 4),
        (lambda log: log.filter(pl.col("w") > 0), None),
        (lambda log: log.with_columns(w=3), None),
    ],
    ids=["scan", "memory", "filter", "columns"],
)
def test_the_number_of_rows_is_known_where_no_row_need_be_read(log, query, rows):
    assert _progress._rows_at_once(query(log)) == rows


def test_rows_and_files_done(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    with closing(_progress.ProgressBar([3_000_000, 1_000_000, 4_000_000])) as bar:
        assert bar.read == "0.0 of 8.0 M rows, 0 of 3 files, 0.0 M/s"
        now[0] = 0.25
        bar.advance(2_000_000)
        assert bar.read == "2.0 of 8.0 M rows, 0 of 3 files, 8.0 M/s"
        bar.advance(1_000_000)
        assert bar.read == "3.0 of 8.0 M rows, 1 of 3 files, 12.0 M/s"
        bar.advance(5_000_000)
        assert bar.read == "8.0 of 8.0 M rows, 3 of 3 files, 32.0 M/s"
        bar.advance(4_000_000)
        assert bar.read == "pass 2, 4.0 of 8.0 M rows, 2 of 3 files, 48.0 M/s"
        bar.advance(12_000_000)
        assert bar.read == "pass 3, 8.0 of 8.0 M rows, 3 of 3 files, 96.0 M/s"
    with closing(_progress.ProgressBar([1, None])) as bar:
        bar.advance(100_000)
        assert bar.read.startswith("0.1 M rows, ")


def shown(patience: float, files: list[int | None], monkeypatch) -> str:
    monkeypatch.setattr(_progress, "_SECONDS_BEFORE_BAR", patience)
    console = Console(file=io.StringIO(), force_terminal=True, width=100)
    with closing(_progress.ProgressBar(files, title="logs", console=console)) as bar:
        bar.advance(1_000_000)
    return console.file.getvalue()


def test_a_bar_is_shown_of_what_takes_time_and_taken_away(monkeypatch):
    assert shown(60.0, [2_000_000], monkeypatch) == ""
    text = shown(-1.0, [2_000_000], monkeypatch)
    assert "logs" in text
    assert "1.0 of 2.0 M rows" in text
    assert "0:00:0" in text, "the time that it has taken"
    assert " left" not in text
    assert text.endswith("\x1b[2K"), "the line is cleared"


def test_rows_that_a_filter_leaves_are_known_of_partitions(tmp_path):
    for day, rows in {"1": 3, "2": 5}.items():
        (tmp_path / f"day={day}").mkdir()
        frame = pl.DataFrame({"gold": range(rows), "pred": 0})
        frame.write_parquet(tmp_path / f"day={day}/0.parquet")
        frame.write_csv(tmp_path / f"{day}.csv")
    logs = _inputs.find_logs([str(tmp_path / "day=*")])
    assert _inputs.rows_of_files(logs) == [3, 5]
    assert _inputs.rows_of_files(logs, "day > 1", ["day"]) == [0, 5]
    assert _inputs.rows_of_files(logs, "gold > 1", ["gold"]) == [None, None]
    assert _inputs.rows_of_files(_inputs.find_logs([str(tmp_path / "*.csv")])) == [None, None]
    assert _inputs.rows_of_files(_inputs.find_logs(["https://a.b/*.parquet"])) == [None]


class Watching(NotebookClient):
    """Keeps all that a cell has displayed, even if the cell removed it later."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.displayed = []

    def process_message(self, msg, cell, cell_index):
        if msg["msg_type"] == "display_data":
            self.displayed.append(str(msg["content"]["data"]))
        return super().process_message(msg, cell, cell_index)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # those of Jupyter
def test_in_a_notebook():
    code = """
import time

import polars as pl
import polars_mcc
from polars_mcc._display import progress_bar as _progress

_progress._SECONDS_BEFORE_BAR = -1.0
advance = _progress.ProgressBar.advance
_progress.ProgressBar.advance = lambda bar, rows: advance(bar, rows) or time.sleep(1)
rows = pl.DataFrame({"gold": [1, 2], "pred": [1, 2]}).sample(100_000, with_replacement=True)
polars_mcc.progress(rows, lambda log: log.mcc.score())["n"].item()
"""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    client = Watching(notebook, timeout=120)
    client.execute()
    assert "0.1 of 0.1 M rows" in "".join(client.displayed)
    last = notebook.cells[0].outputs[-1]
    assert last.data["text/plain"] == "100000"


def test_what_a_notebook_lacks_is_named(monkeypatch):
    monkeypatch.setattr(_progress, "find_spec", lambda _: None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'polars-mcc\[notebook\]'"):
        _progress.ProgressBar([1], console=Console(force_jupyter=True))


def in_a_terminal(command: list[str], *, interrupt: bool) -> tuple[int, str, str]:
    """The exit code, the standard output, and what the terminal showed."""
    import pty  # noqa: PLC0415 - Windows has none

    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "80"}
    with subprocess.Popen(command, stdout=-1, stderr=theirs, env=environment) as process:
        os.close(theirs)
        seen = b""
        while True:
            try:
                read = os.read(ours, 2**16)
            except OSError:  # on Linux, the other end is closed
                break
            if not read:
                break
            if interrupt and b" M/s" in read and b" M/s" not in seen:
                process.send_signal(signal.SIGINT)
            seen += read
        stdout, _ = process.communicate(timeout=60)
    os.close(ours)
    return process.returncode, stdout.decode(), seen.decode()


def linked(folder, files: int) -> None:
    """Write this many files of a million rows. All are hard links to one file, to save disk."""
    first = folder / "0.parquet"
    place = pl.int_range(1_000_000).shuffle(seed=1)
    texts = {"gold": place % 10, "pred": place % 11, "key": place % 1000}
    pl.select(**texts).cast(pl.String).write_parquet(first)
    for i in range(1, files):
        os.link(first, folder / f"{i}.parquet")


@pytest.mark.slow
@on_linux
def test_rows_are_not_kept(tmp_path):
    """40 M rows with three texts are 2 GB; with a sink, Polars kept 1.8 GB of them.

    Memory is read from /proc: getrusage gives at least the memory of the parent process, the tests.
    """
    linked(tmp_path, 40)
    code = f"""
import polars as pl
import polars_mcc

log = pl.scan_parquet("{tmp_path}/*.parquet").with_columns(slice="key")
def compare(log):
    return log.mcc(gold="key", pred=["pred", "gold"]).compare("slice")

print(polars_mcc.progress(log, compare)["n"].sum())
[line] = [line for line in open("/proc/self/status") if line.startswith("VmHWM")]
print(line.split()[1])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    n, kilobytes = map(int, done.stdout.split())
    assert n == 40_000_000
    assert kilobytes < 1_200_000


@pytest.mark.slow
@on_posix
@pytest.mark.parametrize("interrupt", [False, True], ids=["to the end", "stopped"])
def test_in_a_terminal(interrupt, tmp_path, monkeypatch):
    monkeypatch.setenv("POLARS_WARN_UNSTABLE", "0")  # a user's, not conftest's
    logs, out = tmp_path / "logs", tmp_path / "answer.csv"
    logs.mkdir()
    linked(logs, 100)
    command = [sys.executable, "-m", "polars_mcc", "by", str(logs), "--out", str(out)]
    code, stdout, seen = in_a_terminal(command, interrupt=interrupt)
    assert stdout == ""
    assert "\x1b[?25h" in seen, "the cursor is back"
    [*_, last] = re.split(r"\x1b\[2K", seen)
    read = r"[\d.]+ of 100\.0 M rows, \d+ of 100 files, [\d.]+ M/s \d:\d\d:\d\d"
    assert re.search(read, plain(seen))
    if interrupt:
        assert code == 130
        assert last.strip() == "polars-mcc: interrupted; nothing is written"
    else:
        assert code == 0
        assert last.strip() == f"polars-mcc: 1 row written to {out}"
    assert out.exists() is not interrupt
    assert not list(tmp_path.glob(".*"))


def plain(text: str) -> str:
    """Text without terminal escape codes."""
    return re.sub(r"\x1b\[[\d;?]*[a-zA-Z]", "", text)
