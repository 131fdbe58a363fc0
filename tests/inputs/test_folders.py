"""Folders, links and globs: a folder is read whole, each file once, or it is refused."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from runner import invoke
from support import first, in_turn

import polars_mcc
from polars_mcc import PredictionLog

ROWS = pl.DataFrame({"gold": ["u", "v"] * 5, "pred": ["u"] * 10})


def write(*files: str) -> None:
    """Write ten rows to each file."""
    for file in map(Path, files):
        file.parent.mkdir(parents=True, exist_ok=True)
        ROWS.write_parquet(file)
        os.utime(file, (10**9, 10**9))


def link(path: str, target: str) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).symlink_to(Path(target).absolute())


@pytest.fixture(autouse=True)
def _in_a_new_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def n_of(*logs: str) -> int:
    """The number of rows that `by` and `counts` read."""
    done = invoke("by", *logs, "--format", "csv")
    assert done.exit_code == 0, done.output
    n = pl.read_csv(done.stdout_bytes)["n"].item()
    assert counted(*logs)["rows"].sum() == n
    assert set(counted(*logs)["status"]) == {"unchanged"}
    assert PredictionLog.from_store("store").score().collect()["n"].item() == n
    return n


def counted(*logs: str, **options: object) -> pl.DataFrame:
    return polars_mcc.keep_counts(logs, "store", **options)


def refusals(*logs: str) -> str:
    """The message of `by`; `counts` must refuse the same logs."""
    by, counts = invoke("by", *logs), invoke("counts", *logs, "--out", "store")
    assert (by.exit_code, by.stdout) == (counts.exit_code, counts.stdout) == (2, "")
    assert by.stderr == counts.stderr
    assert by.stderr.count("\n") == 1
    return by.stderr


class TestLinks:
    def test_links_to_folders_are_followed(self):
        write("logs/a.parquet", "elsewhere/b.parquet", "elsewhere/deep/c.parquet")
        link("logs/far", "elsewhere")
        link("logs/d.parquet", "elsewhere/b.parquet")
        assert n_of("logs") == 30
        assert {n_of(glob) for glob in ("logs/**/*.parquet", "logs/**", "logs/*")} == {30}

    @pytest.mark.parametrize("logs", ["logs", "logs/**", "logs/*", "logs/*/*.parquet"])
    def test_a_folder_that_is_reached_twice_is_read_once(self, logs):
        write("logs/b/a.parquet", "elsewhere/b.parquet")
        for name in ("a", "c"):
            link(f"logs/{name}", "logs/b")
            link(f"logs/{name}{name}", "elsewhere")
        assert n_of(logs) == 20

    def test_links_between_siblings(self):
        for number in range(9):
            write(f"logs/{number}/a.parquet")
            link(f"logs/{number}/next", f"logs/{(number + 1) % 9}")
            link(f"logs/{number}/before", f"logs/{(number - 1) % 9}")
        assert n_of("logs") == 90

    @in_turn(
        target=["logs/day=1", "logs", "."], logs=["logs", "logs/**", "logs/*", "logs/**/*.parquet"]
    )
    def test_a_loop_is_named(self, logs, target):
        write("logs/day=1/a.parquet")
        link("logs/day=1/again", target)
        assert "'logs/day=1/again' is a link to a folder that it is in" in refusals(logs)

    def test_links_of_partitions_that_make_a_loop(self):
        """Each path has other partition folders, so it would be other rows."""
        write("logs/day=1/a.parquet", "logs/day=2/a.parquet")
        link("logs/day=1/k=1", "logs/day=2")
        link("logs/day=2/k=2", "logs/day=1")
        assert re.search(r"logs/day=(1/k=1/k=2|2/k=2/k=1)' is a link to a fold", refusals("logs"))

    def test_a_link_to_itself_is_named(self):
        write("logs/a.parquet")
        link("logs/again", "logs/again")
        assert "'logs/again' cannot be read (Too many levels of symbolic links)" in refusals("logs")

    def test_a_partition_may_be_a_link(self):
        write("elsewhere/a.parquet", "logs/day=1/a.parquet")
        link("logs/day=7", "elsewhere")
        link("logs/day=8", "elsewhere")
        answer = pl.read_csv(invoke("by", "logs", "--by", "day", "--format", "csv").stdout_bytes)
        assert answer["day", "n"].rows() == [(1, 10), (7, 10), (8, 10)]

    def test_links_in_one_partition_are_one_log(self):
        write("elsewhere/a.parquet")
        for folder in ("a", "b"):
            link(f"logs/{folder}/day=7/{folder}.parquet", "elsewhere/a.parquet")
            link(f"far/{folder}/day=7/k=1", "elsewhere")
        assert n_of("logs") == n_of("far") == 10

    def test_a_link_without_a_partition_of_its_own_hides_none(self):
        write("logs/day=1/a.parquet", "logs/day=2/a.parquet")
        link("logs/a-day", "logs/day=1")
        link("logs/the-newest", "logs/day=2")
        link("logs/day=2/link.parquet", "logs/day=2/a.parquet")
        answer = pl.read_csv(invoke("by", "logs", "--by", "day", "--format", "csv").stdout_bytes)
        assert answer["day", "n"].rows() == [(1, 10), (2, 10)]
        assert counted("logs", "logs/the-newest")["rows"].to_list() == [10, 10]

    @pytest.mark.parametrize("logs", ["logs", "logs/*.parquet", "logs/link.parquet"])
    def test_a_broken_link_to_a_log_is_named(self, logs):
        write("logs/a.parquet")
        link("logs/link.parquet", "none.parquet")
        told = f"'logs/link.parquet' is a broken link to '{Path.cwd()}/none.parquet'; restore the"
        for done in (invoke("by", logs), invoke("counts", logs, "--out", "store")):
            assert done.exit_code == 2
            assert told in done.stderr

    def test_a_broken_link_is_named_if_it_may_have_been_a_folder(self):
        write("logs/a.parquet")
        link("logs/.#lock", "nobody@nowhere:1234")
        assert n_of("logs") == 10
        link("logs/day=1", "mounted")
        assert f"'logs/day=1' is a broken link to '{Path.cwd()}/mounted'" in refusals("logs")
        assert invoke("by", "logs/*.parquet").exit_code == 0


POWERLESS = """
import ctypes, os, sys
for power in (1, 2):  # to read and to write where the mode forbids it
    ctypes.CDLL(None).prctl(24, power, 0, 0, 0)
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""
RUN = """
import json, os, sys
sys.path.insert(0, sys.argv[1])
from runner import invoke
done = [invoke(*command) for command in json.loads(sys.argv[2])]
is_powerful = any(os.access(path, os.R_OK | os.X_OK) for path in json.loads(sys.argv[3]))
print(json.dumps([is_powerful, [[one.exit_code, one.output] for one in done]]))
"""


def without_access(closed: dict[str, int], *commands: list[str]) -> list[tuple[int, str]]:
    """Run commands after some paths got these modes; root first gives up its power over modes."""
    if os.name != "posix":
        pytest.skip("needs modes of files, which Windows lacks")
    for path, mode in closed.items():
        Path(path).chmod(mode)
    told = json.dumps(commands), json.dumps([*closed])
    run = [sys.executable, "-c", RUN, str(Path(__file__).parents[1] / "cli"), *told]
    if os.geteuid() == 0:
        run[1:1] = ["-c", POWERLESS]
    try:
        environment = os.environ | {"POLARS_WARN_UNSTABLE": "0"}  # a user's, not conftest's
        done = subprocess.run(run, capture_output=True, text=True, check=True, env=environment)
    finally:
        for path in closed:
            Path(path).chmod(0o700)
    is_powerful, answers = json.loads(done.stdout)
    if is_powerful:
        pytest.skip("this user may read everything")
    return answers


@pytest.mark.slow
class TestNoAccess:
    @pytest.mark.parametrize("mode", [0o000, 0o100, 0o400])
    def test_a_folder_that_cannot_be_read_is_named(self, mode):
        write("logs/day=1/x/a.parquet", "logs/day=2/x/a.parquet")
        link("links/far", "logs/day=2")
        logs = ["logs", "logs/day=2", "logs/*", "logs/**/*.parquet", "logs/*/*/a.parquet", "links"]
        by = [["by", log] for log in logs]
        counts = [["counts", log, "--out", "store"] for log in logs]
        *done, other = without_access({"logs/day=2": mode}, *by, *counts, ["by", "logs/day=1"])
        for log, (code, told) in zip(logs * 2, done, strict=True):
            assert code == 2, log
            path = "links/far" if log == "links" else "logs/day=2"
            assert f"'{path}' cannot be read (Permission denied); make it readable, or" in told
        assert other[0] == 0
        assert not Path("store").exists()

    def test_a_folder_that_may_only_be_entered_is_read_by_name(self):
        write("logs/1/a.parquet", "logs/2/a.parquet")
        named, listed = ["by", "logs/*/a.parquet", "--format", "csv"], ["by", "logs/*/*.parquet"]
        done = without_access({"logs/2": 0o100}, named, listed)
        assert done[0] == [0, invoke(*named).stdout]
        assert done[1][0] == 2
        [(code, told)] = without_access({"logs/2": 0o400}, named)
        assert code == 2
        assert "'logs/2/a.parquet' cannot be read (Permission denied)" in told

    def test_a_file_that_cannot_be_read_is_named(self):
        write("logs/a.parquet", "logs/b.parquet", "logs/c.parquet")
        by, store = ["by", "logs"], ["counts", "logs", "--out", "store"]
        (code, told), of_counts = without_access({"logs/b.parquet": 0}, by, store)
        assert code == 2
        assert told.startswith("polars-mcc: 'logs/b.parquet' cannot be read (Permission denied); m")
        assert of_counts[0] == 2
        assert "'logs/b.parquet' cannot be read (Permission denied); make it" in of_counts[1]
        assert "the store 'store' has the counts of all other inputs" in of_counts[1]
        assert sorted(counted("logs")["status"]) == ["counted", "unchanged", "unchanged"]

    def test_a_link_to_what_cannot_be_read_is_named(self):
        write("logs/a.parquet", "closed/b.parquet", "closed/folder/c.parquet")
        link("logs/b.parquet", "closed/b.parquet")
        link("links/folder", "closed/folder")
        commands = [["by", "logs"], ["by", "links"], ["by", "links/folder"], ["by", "closed/b.p*"]]
        done = without_access({"closed": 0o000}, *commands)
        assert {code for code, _ in done} == {2}
        paths = ["logs/b.parquet", "links/folder", "links/folder", "closed"]
        for path, (_, told) in zip(paths, done, strict=True):
            assert f"'{path}' cannot be read (Permission denied); make it readable" in told


class TestStore:
    """A folder that a link leads to is one of the places that the user named."""

    @pytest.fixture(autouse=True)
    def _logs(self):
        write("logs/a.parquet", "elsewhere/b.parquet", "elsewhere/c.parquet")
        link("logs/far", "elsewhere")
        assert counted("logs")["rows"].sum() == 30

    @pytest.mark.parametrize("logs", ["logs", "logs/*/*.parquet"])
    def test_files_that_are_gone_can_be_forgotten(self, logs):
        Path("elsewhere/b.parquet").unlink()
        done = counted("logs")
        gone = done.filter(status="gone")["input"].to_list()
        assert gone == [f"{Path.cwd()}/logs/far/b.parquet"]
        assert done["rows"].sum() == 30
        Path("elsewhere/c.parquet").unlink()
        assert counted(logs, forget=True)["status"].to_list().count("forgotten") == 2
        assert set(counted("logs")["input"]) == {"logs/a.parquet"}

    def test_files_are_gone_with_the_link_that_led_to_them(self):
        Path("logs/far").unlink()
        assert counted("logs")["status"].to_list() == ["unchanged", "gone", "gone"]
        assert counted("logs", "elsewhere", forget=True)["status"].to_list() == [
            *("unchanged", "counted", "counted", "forgotten", "forgotten")
        ]
        assert counted("logs", "elsewhere")["rows"].to_list() == [10, 10, 10]

    def test_a_partition_that_is_a_link_may_be_renamed(self):
        link("days/day=7", "elsewhere")
        for day in (7, 8):
            done = polars_mcc.keep_counts("days", "days-store", "day", forget=True)
            assert done.filter(status="counted")["rows"].to_list() == [10, 10]
            kept = PredictionLog.from_store("days-store").by("day").collect()
            assert kept["day", "n"].rows() == [(day, 20)]
            Path(f"days/day={day}").rename(f"days/day={day + 1}")

    def test_a_broken_link_keeps_no_other_out(self):
        link("logs/link.parquet", "none.parquet")
        write("logs/new.parquet")
        with pytest.raises(FileNotFoundError, match="'logs/link.parquet' is a broken link to '/"):
            counted("logs")
        Path("logs/link.parquet").unlink()
        assert set(counted("logs")["status"]) == {"unchanged"}

    def test_a_store_is_not_inside_a_folder_that_a_link_leads_to(self):
        with pytest.raises(ValueError, match="the store 'elsewhere/store' is inside the log 'logs"):
            polars_mcc.keep_counts("logs", "elsewhere/store")


def test_a_text_that_is_like_a_name_is_no_column():
    write("logs/b.parquet")
    ROWS.with_columns(cat=1, dog=2).write_parquet("logs/a.parquet")
    for sql in ("gold <> 'cat'", "gold <> 'it''s cat' AND pred <> ' dog'"):
        assert invoke("by", "logs", "--filter", sql).exit_code == 0
    for sql in ("cat = 1", '"cat" = 1', "gold <> '\"' AND cat = 1 AND gold <> '\"'"):
        assert "column 'cat' is in " in invoke("by", "logs", "--filter", sql).stderr


@pytest.mark.parametrize("as_key", first(2, ["{}", '"{}"', "each({})", "{}::VARCHAR AS k"]))
def test_folders_that_are_one_number(as_key):
    write("logs/v=1.1/day=01/a.parquet", "logs/v=1.10/day=1/a.parquet", "logs/v=2/day=02/a.parquet")
    for name, one, other in (("v", "1.1", "1.10"), ("day", "01", "1")):
        told = f"the folders '{name}={one}', '{name}={other}' have one value, as a number; if these"
        by = ["by", "logs", "--by", as_key.format(name)]
        assert told in invoke(*by).stderr
        assert invoke("by", "logs/v=1.1", "logs/v=2", *by[2:]).stderr == ""
    assert invoke("by", "logs").stderr == ""
    told = invoke("counts", "logs", "--by", "v", "--out", "store").stderr
    assert "'v=1.1', 'v=1.10'" in told


@pytest.mark.parametrize("ending", ["parquet", "arrow", "ndjson"])
@pytest.mark.parametrize("is_last", [True, False])
def test_a_value_inside_may_be_unknown_or_wider_in_one_file(ending, is_last, tmp_path):
    unknown = [(pl.Series([{"a": None}]), pl.Series([{"a": 1}]), '{"a":1}')]
    unknown += [(pl.Series([[None]]), pl.Series([["x"]]), '["x"]')]
    if ending == "ndjson":
        unknown += [(pl.Series([[1]]), pl.Series([[1.5]]), "[1.5]")]
    for null, known, text in unknown:
        for place, key in enumerate((known, null) if is_last else (null, known)):
            rows = pl.DataFrame({"k": key, "gold": [["y"]], "pred": [["y"]]})
            if key is null and ending != "ndjson":
                rows = rows.with_columns(gold=pl.Series([[]], dtype=pl.List(pl.Null)))
            write = {"parquet": rows.write_parquet, "arrow": rows.write_ipc}
            write.get(ending, rows.write_ndjson)(tmp_path / f"{place}.{ending}")
        asked = ("--by", "k", "--metric", "f1_micro", "--format", "ndjson")
        done = invoke("by", str(tmp_path), *asked)
        assert done.exit_code == 0, done.stderr
        assert f'{{"k":{text},"n":1,"f1_micro":1.0,"n_null":0}}' in done.stdout.splitlines()
