"""Hostile labels, damaged files, full disks, Ctrl-C: a run scores or refuses, and loses nothing."""

from __future__ import annotations

import datetime as dt
import json
import os
import random
import signal
import subprocess
import sys
import time
from html.parser import HTMLParser
from pathlib import Path

import polars as pl
import pytest
from markdown_it import MarkdownIt
from polars.testing import assert_frame_equal
from runner import Done, invoke
from support import first, in_turn, on_linux, on_posix

import polars_mcc
from polars_mcc._cli import outputs

LABELS = [
    '=HYPERLINK("http://example.com")',
    "@SUM(A1)",
    "<script>alert(1)</script>",
    "\x1b[31mred\x1b[0m\x07",
    "two\nlines\r\tand a tab",
    "\u202eevil\u202c",
    "' OR 1=1 --",
    "{}",
    "%s",
    "NaN",
    "null",
    "",
    " ",
    "e\u0301",
    "\u00e9",
    "日本",
    "🦜",
    "x" * 100_000,
]
COMMAND = [sys.executable, "-m", "polars_mcc", "by"]


def run_by(*arguments: object) -> Done:
    return invoke("by", *map(str, arguments))


def process_of_by(*arguments: object, **options: object) -> Done:
    command = [*COMMAND, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, check=False, **options)
    return Done(done.returncode, done.stdout, done.stderr.decode())


def is_refused(done: Done) -> str:
    """Assert one error line of polars-mcc, and return it; threads that panic may add others."""
    assert done.exit_code == 2, done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    [told] = [line for line in done.stderr.splitlines() if line.startswith("polars-mcc: ")]
    return told


@pytest.fixture
def hostile(tmp_path):
    """A log with hostile labels and keys; each label is a hit once and a miss once."""
    file = tmp_path / "hostile.parquet"
    shifted = [*LABELS[1:], LABELS[0]]
    log = pl.DataFrame({"key": LABELS * 2, "gold": LABELS * 2, "pred": LABELS + shifted})
    log.write_parquet(file)
    return file


def test_hostile_labels_are_labels(hostile, run):
    log = pl.read_parquet(hostile)
    codes = pl.col("gold", "pred").replace_strict(LABELS, range(len(LABELS)), return_dtype=pl.Int8)
    expected = log.with_columns(codes).mcc.score()
    assert run(log, lambda f: f.mcc.score()).equals(expected)
    slices = run(log, lambda frame: frame.mcc.by("key"))
    assert slices["key"].to_list() == sorted(LABELS, key=str.encode)
    matrix = run(log, lambda frame: frame.mcc.confusion(labels=LABELS))
    assert matrix.columns == ["gold", *LABELS, "n_null"]
    classes = run(log, lambda f: f.mcc.classes())
    assert set(classes["label"]) == set(LABELS)
    labels = [label for label in LABELS if label != LABELS[3]]
    for query in (
        lambda frame: frame.mcc.confusion(labels=labels),
        lambda f: f.select(polars_mcc.ExprMcc(pl.col("pred")).score("gold", labels=labels)),
    ):
        with pytest.raises(pl.exceptions.InvalidOperationError):
            run(log, query)


@pytest.mark.slow
def test_a_terminal_does_not_obey_labels(hostile):
    done = process_of_by(hostile, "--by", "key")
    assert done.exit_code == 0
    escaped = (r"\x1b[31mred\x1b[0m\x07", r"\u202eevil\u202c", r"two\nlines\r\tand a tab")
    for seen in (*escaped, "<script>", "日本", "🦜"):
        assert seen in done.stdout
    assert not set(done.stdout) & set("\x1b\x07\u202e\u202c\r\t")
    rows = [line for line in done.stdout.splitlines() if line.startswith("│")]
    assert len(rows) == 3 + len(LABELS)
    missing = run_by(hostile, "--by", "\x1b[2Jkey\n")
    assert r"--by '\x1b[2Jkey\n' is neither a column" in is_refused(missing)
    assert "\x1b" not in missing.stderr


@pytest.mark.parametrize("suffix", [".csv", ".json", ".parquet"])
def test_files_hold_the_labels_as_they_are(hostile, tmp_path, suffix):
    out = tmp_path / f"answer{suffix}"
    done = run_by(hostile, "--by", "key", "--out", out)
    assert done.exit_code == 0
    read = {".csv": pl.read_csv, ".json": pl.read_json, ".parquet": pl.read_parquet}[suffix]
    assert_frame_equal(read(out), pl.read_parquet(hostile).mcc.by("key"))
    warned = (
        "a spreadsheet would run '=HYPERLINK(\"http://example.com\")' and 1 more" in done.stderr
    )
    assert warned == (suffix == ".csv")


@pytest.mark.parametrize("form", ["csv", "markdown", "json", "ndjson", "parquet", "table"])
def test_durations(form, tmp_path):
    log = pl.DataFrame({"took": [dt.timedelta(hours=30), None], "gold": [1, 1], "pred": [1, 1]})
    log.write_parquet(tmp_path / "log.parquet")
    done = run_by(tmp_path / "log.parquet", "--by", "took", "--format", form)
    assert done.exit_code == 0, done.stderr
    if form == "csv":
        assert "\n1d 6h,1," in done.stdout


MARKS = [
    "![x](http://example.com/x.png)",
    "[a](http://example.com)",
    "<http://example.com>",
    '<img src="x">',
    "a\\|b",
    "a|b\\",
    "one\rtwo\r\nthree\n\n# four",
    "`code` *b* _i_ __b__ ~~s~~ n_null a_ _b",
    "&lt;b> &amp;",
    "@ann #1",
]


class Cells(HTMLParser):
    """The text of each cell of a page, and the tags and comments in the page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.cells: list[str] = []
        self.tags: set[str] = set()
        self.feed(page)

    def handle_starttag(self, tag, _attributes):
        self.tags.add(tag)
        if tag in {"td", "th"}:
            self.cells.append("")
        elif tag == "br":
            self.cells[-1] += "\n"

    def handle_data(self, data):
        if self.cells and data != "\n":
            self.cells[-1] += data


@pytest.mark.parametrize("kind", first(2, ["text", "enum", "list", "struct", "name"]))
def test_labels_are_no_mark_up_in_markdown(kind, tmp_path):
    """A renderer of Markdown finds the texts that went in, and a table, but no other mark-up."""
    keys = pl.Series("key", MARKS)
    log = {
        "text": keys.to_frame(),
        "enum": keys.cast(pl.Enum(MARKS)).to_frame(),
        "list": keys.reshape((-1, 1)).cast(pl.List(pl.String)).to_frame(),
        "struct": keys.alias("f|").to_frame().to_struct("key").to_frame(),
        "name": pl.DataFrame({mark: ["x"] for mark in MARKS}),
    }[kind].with_columns(gold=1, pred=1)
    log.write_parquet(tmp_path / "log.parquet")
    names = log.columns[:-2]
    by = [f"--by={name}" for name in names]
    done = run_by(tmp_path / "log.parquet", *by, "--format", "markdown")
    assert done.exit_code == 0, done.stderr
    report = log.mcc.report(*names, format="md")
    form = {"struct": '{{"f|": {}}}', "list": "[{}]"}.get(kind)
    lines = [mark.replace("\r\n", "\n").replace("\r", "\n") for mark in MARKS]
    in_json = [json.dumps(mark, ensure_ascii=False) for mark in MARKS]
    wanted = {*map(form.format, in_json)} if form else {*lines}
    of_table = {"table", "thead", "tbody", "tr", "th", "td", "br"}
    of_report = of_table | {"h2", "ul", "li", "p", "details", "summary", "sub"}
    for page, tags in ((done.stdout, of_table), (report, of_report)):
        html = MarkdownIt().enable(["table", "strikethrough"]).render(page)
        found = Cells(html)
        assert found.tags <= tags, html
        assert "@ann" not in html
        if page == done.stdout or kind in {"text", "enum", "name"}:
            assert wanted <= {*found.cells}, html


@in_turn(
    place=["text", "category", "name"],
    signs=["-2+3+cmd|' /C calc'!A0", '-2*HYPERLINK("http://e.com")'],
)
def test_texts_that_a_spreadsheet_runs(signs, place):
    runs = [begin + signs for begin in ("", "+", "=", "@", "\t", "\r", "\n", "\uff1d")]
    if place == "name":
        answer = pl.DataFrame({name: [0.5] for name in runs})
    else:
        dtype = pl.Enum(runs) if place == "category" else pl.String
        answer = pl.DataFrame({"key": pl.Series([*runs, None], dtype=dtype)})
    assert outputs.run_as_formulas(answer) == runs


def test_numbers_and_bins_are_not_run():
    texts = ["-2", "+1.5e-3", "-1,5", "-2.5%", "-", "-.5", "a", "2+3", "a=b", "", None]
    numbers = [-9.5, -7.0, -5.5, -4.0, -2.5, -1.0, 0.5, 2.0, 3.5, 5.0, 6.5]
    log = pl.DataFrame({"key": texts, "x": numbers, "gold": 1, "pred": 1})
    log = log.with_columns(i=pl.col("x").cast(pl.Int64))
    for key in ("key", "x", polars_mcc.bins("x", 4), polars_mcc.bins("i", 4)):
        answer = log.mcc.by(key)
        assert answer.to_series().cast(pl.String).str.starts_with("-").any(), "what it is about"
        assert outputs.run_as_formulas(answer) == []


SQL = {
    "by": ["--by", "--gold", "--pred", "--score", "--weight", "--sample-weight", "--cluster"],
    "compare": ["--baseline"],
    "contrast": ["--within"],
    "gaps": ["--within"],
    "drift": ["--before", "--after"],
    "counts": ["--filter"],
    "worst": ["--by", "--filter"],
    "report": ["--pred", "--filter"],
}
"""The options that take SQL, by command."""
SUBQUERIES = [
    "(SELECT 1)",
    "SELECT 1",
    "x > (SELECT max(x) FROM self)",
    "x IN (SELECT x FROM read_csv('none.csv'))",
    "x IN (\u00a0fRom read_csv('none.csv'))",
    "x IN ((\u017felect x from read_parquet('s3://none/none')))",
    "x IN (VALUES (1))",
    "x IN (VALUE (1))",
    "x IN (values ROW (1))",
    "x IN (FROM in (FROM read_csv('none.csv')))",
    "x IN (FROM\nself)",
    "EXISTS (WITH t AS (SELECT 1) SELECT * FROM t)",
    "date_trunc('week', ts) > (SELECT max(x) FROM read_ndjson('none'))",
    "sum(x) OVER (PARTITION BY (SELECT 1 FROM read_ipc('none')))",
    "x IN (/* */FROM read_csv('none.csv'))",
    "x -- '\n IN (SELECT 1 FROM read_csv('none.csv')) -- '",
    "$$'$$ = (SELECT 1 FROM read_csv('none.csv')) OR 'a' = $$'$$",
    "x) FROM self UNION SELECT (1",
    "x > 1 UNION ALL SELECT 1",
    "1; DROP TABLE self",
    "x = 1) OR (x = 2",
    "x > 1 -- ",
]


OPTIONS = [(command, option) for command, options in SQL.items() for option in options]


@in_turn(sql=SUBQUERIES, **{"command, option": OPTIONS})
def test_sql_is_one_expression_of_the_log(sql, command, option, tmp_path, monkeypatch):
    """A file that is opened would be named: there is no `none.csv`."""
    monkeypatch.chdir(tmp_path)
    log = pl.DataFrame({"x": [1, 2], "ts": [None, None], "gold": [0, 1], "pred": [0, 1]})
    log.cast({"ts": pl.Datetime()}).write_parquet("log.parquet")
    needed = {"--before": ["--after", "x"], "--after": ["--before", "x"]}
    needed["report"] = ["--out", "report.md"]
    others = [*needed.get(command, []), *needed.get(option, [])]
    told = is_refused(invoke(command, "log.parquet", *others, option, sql))
    assert "one expression, without a subquery, a comment or ';'" in told


WORDS = ["select", "with", "from", "table", "values", "value", "order", "limit", "selected"]
UNQUOTED = [word for word in (*WORDS, "price$") if word not in {"select", "with"}]
OPERATORS = ["= 7", "IN (7, 8)", "NOT IN (1)", "BETWEEN 7 AND 8", "IS NOT NULL", "IS NULL = false"]
OPERATORS += ["> 1 AND (x = 7)", "::VARCHAR LIKE '7'"]


@pytest.mark.parametrize(
    ("sql", "kept"),
    first(
        14,
        [
            ("key = '(select 1)'", 0),
            ("key <> 'a -- b'", 1),
            ("key <> '/* $5; */'", 1),
            ("trim('(' FROM key) = 'a'", 1),
            ("extract(year FROM ts) = 2026", 1),
            ("ts >= '2026-01-01'", 1),
            *((f'"{word}" = 7 AND ("{word}" > 1)', 1) for word in WORDS),
            *(
                (" AND ".join(f"{word} {operator}" for operator in OPERATORS), 1)
                for word in UNQUOTED
            ),
            *(
                (" AND ".join(f"({word} {operator})" for operator in OPERATORS), 1)
                for word in UNQUOTED
            ),
            *(
                (f"{word} {operator}", 1)
                for word, operator in zip(UNQUOTED, OPERATORS, strict=True)
            ),
        ],
        of_several=True,
    ),
)
def test_words_of_queries_in_texts_and_names_are_no_query(sql, kept, tmp_path):
    file = tmp_path / "log.parquet"
    named = [pl.lit(7).alias(word) for word in (*WORDS, *UNQUOTED[-1:], "x")]
    log = pl.DataFrame({"key": ["a"], "ts": [dt.datetime(2026, 1, 1)], "gold": [1], "pred": [1]})
    log.with_columns(named).write_parquet(file)
    done = run_by(file, "--filter", sql, "--format", "ndjson")
    assert done.exit_code == 0, done.stderr
    assert f'"n":{kept},' in done.stdout


class TestFiles:
    @pytest.fixture
    def logs(self, tmp_path):
        folder = tmp_path / "logs"
        folder.mkdir()
        rng = random.Random(0)
        for day in range(3):
            rows = [(f"day {day}", rng.choice("abc"), rng.choice("abc")) for _ in range(20_000)]
            log = pl.DataFrame(rows, schema=["day", "gold", "pred"], orient="row")
            log.write_parquet(folder / f"{day}.parquet")
        return folder

    @pytest.mark.parametrize("kept", [0.1, 0.5, 0.99])
    def test_a_truncated_file_is_named(self, logs, kept):
        file = logs / "1.parquet"
        content = file.read_bytes()
        file.write_bytes(content[: int(len(content) * kept)])
        assert f"'{file}' cannot be read as Parquet" in is_refused(run_by(logs))

    def test_a_corrupt_row_group_is_named(self, logs):
        file = logs / "1.parquet"
        content = bytearray(file.read_bytes())
        content[1000:6000] = bytes(5000)
        file.write_bytes(content)
        assert f"'{file}' cannot be read as Parquet" in is_refused(run_by(logs))

    def test_statistics_that_lie_lose_no_row(self, logs):
        """A filter skips row groups by their statistics, which may be wrong in a file."""
        file = logs / "1.parquet"
        content = file.read_bytes()
        footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
        lies = content[footer:].replace(b"day 1", b"day 9")
        assert lies != content[footer:]
        file.write_bytes(content[:footer] + lies)
        told = pl.scan_parquet(file).filter(pl.col("day") == "day 1").collect()
        assert told.height == 0, "what it is about"
        out = logs.with_suffix(".parquet")
        done = run_by(logs, "--by", "day", "--filter", "day = 'day 1'", "--out", out)
        assert done.exit_code == 0
        assert pl.read_parquet(out).select("day", "n").rows() == [("day 1", 20_000)]

    def test_files_without_rows_are_nothing(self, logs):
        expected = pl.read_parquet(logs).mcc.by("day")
        pl.read_parquet(logs / "0.parquet").clear().write_parquet(logs / "empty.parquet")
        out = logs.with_suffix(".parquet")
        assert run_by(logs, "--by", "day", "--out", out).exit_code == 0
        assert pl.read_parquet(out).equals(expected)
        assert run_by(logs / "empty.parquet", "--out", out).exit_code == 0
        assert pl.read_parquet(out).rows() == [(0, None, 0)]

    def test_a_stray_file_is_named(self, logs):
        (logs / "notes\x1b.txt").write_text("gold,pred\na,b\n")
        assert f"'{logs}/notes\\x1b.txt' in folder '{logs}' is not " in is_refused(run_by(logs))


@in_turn(rows=[1, 3000], number=["NaN", "Infinity", "-Infinity", "-NaN", "None"])
def test_json_lines_with_numbers_that_json_lacks(number, rows, tmp_path):
    """The JSON of Python writes them."""
    file = tmp_path / "log.ndjson"
    row = '{"gold": 1, "pred": 1, "p": 0.5}\n'
    file.write_text(row * rows + row.replace("0.5", number))
    told = is_refused(run_by(file))
    assert f"'{file}' cannot be read as NDJSON (JSON has no NaN, Infinity or None: write" in told
    file.write_text(row * rows + row.replace("0.5", "null"))
    assert run_by(file).exit_code == 0


class TestOut:
    @pytest.fixture
    def log(self, tmp_path):
        file = tmp_path / "log.parquet"
        pl.DataFrame({"key": range(1000), "gold": 1, "pred": 1}).write_parquet(file)
        return file

    @pytest.mark.slow
    @on_posix
    @in_turn(suffix=[".csv", ".json", ".parquet"], room=[0, 500])
    def test_a_full_disk_leaves_what_was_there(self, log, tmp_path, suffix, room):
        """A limit on the file size stands in for a full disk."""
        (tmp_path / "out").mkdir()
        out = tmp_path / "out" / f"answer{suffix}"
        out.write_text("as it was")

        def limit():
            import resource  # noqa: PLC0415 - Windows has none

            resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))

        # The limit would truncate compiled modules too, and break later tests.
        env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
        done = process_of_by(log, "--by", "key", "--out", out, preexec_fn=limit, env=env)
        told = is_refused(done)
        assert f"cannot write '{out}', which is unchanged: " in told
        assert "File too large" in told
        assert out.read_text("utf-8") == "as it was"
        assert list((tmp_path / "out").iterdir()) == [out]

    def test_a_folder_is_no_file(self, log, tmp_path):
        (tmp_path / "answer.csv").mkdir()
        assert "it is a folder" in is_refused(run_by(log, "--out", tmp_path / "answer.csv"))

    def test_a_log_is_not_replaced(self, log, tmp_path):
        before = log.read_bytes()
        (tmp_path / "link.parquet").symlink_to(log)
        for out in (log, tmp_path / "link.parquet", f"{tmp_path}/./log.parquet"):
            assert "it is one of the logs; choose another name" in is_refused(
                run_by(log, "--out", out)
            )
        assert log.read_bytes() == before

    @on_posix
    def test_a_read_only_folder_is_refused_before_the_scan(self, tmp_path):
        """Root can write to any folder, except on a read-only file system."""
        folder = tmp_path / "folder"
        folder.mkdir(mode=0o500)
        folder = Path("/sys") if os.access(folder, os.W_OK) else folder
        if os.access(folder, os.W_OK):
            pytest.skip("everything can be written here")
        (tmp_path / "corrupt.parquet").touch()
        done = run_by(tmp_path / "corrupt.parquet", "--out", folder / "answer.csv")
        assert (
            f"cannot write '{folder}/answer.csv': you may not write to the folder '{folder}'"
            in is_refused(done)
        )

    @on_linux
    def test_a_folder_that_refuses_a_file(self, log):
        assert "cannot write '/proc/answer.csv'" in is_refused(
            run_by(log, "--out", "/proc/answer.csv")
        )


COMMANDS = {
    "check, passed": (0, ["check", "log.parquet", "--min", "0.5"]),
    "check, failed": (1, ["check", "log.parquet", "--max", "0.5"]),
    "by": (0, ["by", "log.parquet", "--format", "csv"]),
    "counts": (0, ["counts", "log.parquet", "--out", "store"]),
    "refused": (2, ["by", "none.parquet"]),
}


@pytest.mark.slow
@on_posix
@pytest.mark.parametrize(
    ("asked", "closed"),
    [
        *((asked, "<&- >&- 2>&-") for asked in COMMANDS),
        *(("check, failed", ">&-"), ("by", ">&-"), ("check, passed", "2>&-"), ("refused", "2>&-")),
    ],
)
def test_closed_streams_do_not_change_the_verdict(closed, asked, tmp_path, monkeypatch):
    monkeypatch.setenv("POLARS_WARN_UNSTABLE", "0")  # a user's, not conftest's
    log = tmp_path / "log.parquet"
    pl.DataFrame({"gold": ["u", "v"] * 50, "pred": ["u", "v"] * 50}).write_parquet(log)
    python_m = [sys.executable, "-X", "dev", "-m", "polars_mcc"]
    code, command = COMMANDS[asked]
    run = ["sh", "-c", f'"$@" {closed}', "sh", *python_m, *command]
    done = subprocess.run(run, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == code
    assert "Traceback" not in done.stderr
    assert "Warning" not in done.stderr
    assert done.stdout == "" or closed == "2>&-"


@pytest.mark.slow
def test_a_closed_standard_input_is_an_empty_log():
    done = process_of_by("-", stdin=subprocess.DEVNULL)
    assert "'-' has no columns: it is empty" in is_refused(done)


@pytest.mark.slow
@on_posix
def test_ctrl_c_ends_a_long_scan(tmp_path):
    n = 8_000_000
    rows = pl.DataFrame({"gold": pl.int_range(n, eager=True) % 1000}).with_columns(pred="gold")
    (tmp_path / "logs").mkdir()
    first = tmp_path / "logs/0.parquet"
    rows.write_parquet(first)
    for i in range(1, 3000):
        os.link(first, tmp_path / f"logs/{i}.parquet")
    out = tmp_path / "answer.csv"
    out.write_text("as it was")
    command = [*COMMAND, str(tmp_path / "logs"), "--out", str(out)]
    with subprocess.Popen(command, stdout=-1, stderr=-1, text=True) as process:
        time.sleep(3)
        assert process.poll() is None, "the scan was not long enough"
        process.send_signal(signal.SIGINT)
        start = time.monotonic()
        stdout, stderr = process.communicate(timeout=60)
        seconds = time.monotonic() - start
    assert (process.returncode, stdout) == (130, "")
    assert stderr == "polars-mcc: interrupted; nothing is written\n"
    assert seconds < 5
    assert out.read_text("utf-8") == "as it was"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["answer.csv", "logs"]


IMPORTS = [sys.executable, "-X", "importtime"]  # tells on the standard error what was imported


@pytest.fixture
def by_stdin(tmp_path):
    """A command that waits for its standard input."""
    script = tmp_path / "polars-mcc"
    script.write_text("import sys\nfrom polars_mcc.__main__ import main\nsys.exit(main())\n")
    return [*IMPORTS, str(script), "by", "-"]


def ends_after(process: subprocess.Popen, imported: str) -> str:
    """Send Ctrl-C after an import and the next one. Return what the process says then."""
    for line in process.stderr:
        if line.split("|")[-1].strip() == imported:
            break
    process.stderr.readline()
    process.send_signal(signal.SIGINT)
    told = [line for line in process.stderr if not line.startswith("import time:")]
    return "".join(told)


@pytest.mark.slow
@on_posix
@pytest.mark.parametrize("imported", ["cyclopts", "polars_mcc._store.new_and_changed"])
def test_ctrl_c_while_packages_are_imported(by_stdin, imported):
    with subprocess.Popen(by_stdin, stdin=-1, stdout=-1, stderr=-1, text=True) as process:
        told = ends_after(process, imported)
        assert told == "polars-mcc: interrupted; nothing is written\n"
        assert (process.wait(), process.stdout.read()) == (130, "")


@pytest.mark.slow
@on_posix
def test_ctrl_c_that_is_ignored_stays_ignored(by_stdin):
    run = ["sh", "-c", 'trap "" INT; exec "$@"', "sh", *by_stdin]
    with subprocess.Popen(run, stdin=-1, stdout=-1, stderr=-1, text=True) as process:
        process.stdin.close()
        assert "'-' has no columns: it is empty" in ends_after(process, "polars")
        assert process.wait() == 2


@pytest.mark.slow
def test_the_library_leaves_ctrl_c_as_it_is():
    code = (
        "import signal; before = signal.getsignal(2); import polars_mcc; "
        "assert signal.getsignal(2) is before"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_counts_name_an_unreadable_file_as_by_does(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    line = '{"gold":"a","pred":"a","k":1}\n'
    files = {
        "bom.ndjson": (b"\xef\xbb\xbf" + line.encode(), "byte order mark"),
        "late.ndjson": ((line * 10_001 + line.replace("1}", "1.5}")).encode(), "infer_schema"),
        "cut.arrow": (b"ARROW1\0\0" + b"x" * 99, "leave it out"),
        "none.arrow": (b"", "make it readable"),
    }
    for name, (data, way_out) in files.items():
        Path(name).write_bytes(data)
        why = is_refused(run_by(name, "--by", "k")).strip()
        assert f"polars-mcc: '{name}' cannot be read" in why
        assert way_out in why
        counted = invoke("counts", name, "--by", "k", "--out", f"store_{name[:3]}_{name[-3:]}")
        assert counted.exit_code == 2
        assert counted.stderr.startswith(why)
