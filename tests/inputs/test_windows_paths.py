"""Paths of Windows: a backslash splits them, and C: is a drive.

The package runs here with the `os.path` of Windows, on the files of this system. Polars, PyArrow
and deltalake take paths with slashes on each system, and give them back so.
"""

from __future__ import annotations

import shutil
from pathlib import Path, PureWindowsPath

import polars as pl
import pytest
from runner import invoke
from support import with_paths_of_windows

import polars_mcc
from polars_mcc._inputs.buckets_and_credentials import folder_of_glob
from polars_mcc._inputs.find_files import is_no_log, real_paths
from polars_mcc._inputs.paths_and_settings import is_url, partitions, slashed
from polars_mcc._inputs.read_files import find_logs
from polars_mcc._store.delta_table import open_store
from polars_mcc._store.new_and_changed import is_below


@pytest.fixture(autouse=True)
def _windows(tmp_path, monkeypatch):
    with_paths_of_windows(monkeypatch)
    monkeypatch.chdir(tmp_path)
    for day in (1, 2):
        write(f"logs/day={day}/a.parquet", day)
        Path(f"logs/day={day}/_README.md").touch()


def write(path: str, rows: int = 1) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    pl.DataFrame({"gold": [1] * rows, "pred": [1] * rows}).write_parquet(path)


def typed(*parts: str) -> str:
    """A path as it is typed in Windows."""
    return str(PureWindowsPath(*parts))


def test_a_path_is_told_from_a_url():
    logs = typed("C:/logs/day=2026-01-01/*.parquet")
    assert logs == r"C:\logs\day=2026-01-01\*.parquet"
    assert not is_url(logs)
    assert not is_url("C://logs")
    assert is_url("s3://logs")
    assert slashed(logs) == "C:/logs/day=2026-01-01/*.parquet"
    assert slashed(r"s3://logs/a\b") == r"s3://logs/a\b"
    assert slashed(r"\\server\share\logs") == "//server/share/logs"
    assert partitions(slashed(logs)) == ["day=2026-01-01"]
    for pattern, folder in {
        logs: "C:/logs/day=2026-01-01",
        r"C:\*.parquet": "C:/",
        "*.parquet": ".",
        r"\\server\share\logs\a?.csv": "//server/share/logs",
    }.items():
        assert folder_of_glob(slashed(pattern)) == folder
    assert is_no_log(slashed(r"C:\logs\README.md"))
    assert real_paths([r"C:\logs", "C:/logs/"]) == {r"C:\logs": "C:/logs", "C:/logs/": "C:/logs"}
    is_inside = is_below([r"C:\logs", "s3://lake/logs"])
    assert is_inside("C:/logs/a.parquet")
    assert is_inside("s3://lake/logs/a.parquet")
    assert not is_inside("C:/logs2/a.parquet")


@pytest.mark.parametrize("pattern", ["", "*", "day=*/*.parquet", "**/a.parquet", "../logs/day=?"])
def test_folders_are_partitions(pattern, tmp_path):
    for above in ("logs", tmp_path / "logs", f"file://{tmp_path}/logs"):
        logs = typed(above, pattern) if "file" not in str(above) else f"{above}/{pattern}"
        found = find_logs([logs])
        assert [file[-15:] for file in found.files] == ["day=1/a.parquet", "day=2/a.parquet"]
        assert found.partitions == {"day"}
        done = invoke("by", logs, "--by", "day", "--format", "csv")
        assert done.stdout == "day,n,mcc,n_null\n1,1,0.0,0\n2,2,0.0,0\n", done.output
    assert len(find_logs(["logs", typed("logs", pattern), str(tmp_path / "logs")]).files) == 2


def test_a_folder_in_a_hidden_folder_is_read():
    shutil.move("logs", ".cache")
    assert len(find_logs([typed(".cache", "day=1")]).files) == 1


def test_a_drive_of_a_file_url_is_its_own():
    with pytest.raises(FileNotFoundError, match="no file 'C:/no logs/a.parquet'"):
        find_logs(["file:///C:/no logs/a.parquet"])


def test_a_log_is_not_written_to():
    for log, out, what in [
        (r"logs\day=1\a.parquet", "logs/day=1/a.parquet", "is one of the logs;"),
        ("logs", r"logs\day=1\b.csv", "would be one of the logs of 'logs';"),
    ]:
        refused = invoke("by", log, "--out", out)
        assert f"': it {what} choose another" in refused.stderr


def test_an_error_names_a_file_once():
    Path("labels.parquet").write_bytes(b"no Parquet")
    for words in (r"logs --outcomes .\labels.parquet --on gold --gold y", r"logs\labels.parquet"):
        refused = invoke("by", *words.split())
        assert refused.stderr.count("labels.parquet") == 1, refused.stderr


def test_files_of_a_table_are_refused():
    Path("logs/_delta_log").mkdir()
    with pytest.raises(ValueError, match="logs' is a Delta table; pass this folder"):
        find_logs([typed("logs", "day=1", "a.parquet")])


def test_a_store_follows_files(tmp_path):
    store = str(tmp_path / "store")

    def keep(*logs: str, **options: bool) -> dict[str, int]:
        done = polars_mcc.keep_counts([*logs], store, "day", **options)
        return dict(done["status"].value_counts().iter_rows())

    assert keep(typed("logs")) == {"counted": 2}
    folder = f"{tmp_path}/logs"
    assert {*open_store(store).inputs} == {f"{folder}/day={day}/a.parquet" for day in (1, 2)}
    assert keep(typed("logs", "day=1", "*.parquet")) == {"unchanged": 1}
    Path("logs/day=1/a.parquet").unlink()
    write("logs/day=1/a.parquet/part.parquet", 3)
    assert keep(typed("logs", "day=2", "*.parquet"), typed("logs", "day=1")) == {
        "replaced": 1,
        "unchanged": 1,
    }
    shutil.rmtree("logs/day=2")
    assert keep(typed("logs", "*", "*.parquet")) == {"unchanged": 1, "gone": 1}
    assert keep(typed(folder, "day=2"), forget=True) == {"forgotten": 1}
    assert {*open_store(store).inputs} == {f"{folder}/day=1/a.parquet/part.parquet"}
    with pytest.raises(ValueError, match="the store '.*' is inside the log 'logs'; use"):
        polars_mcc.keep_counts("logs", typed("logs", "store"), "day")
