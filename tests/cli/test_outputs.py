"""Where an answer goes: pipes, devices, closed readers, and not among the logs."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest
from runner import invoke
from support import in_turn, on_linux

from polars_mcc._cli import outputs

ROWS = pl.DataFrame({"key": ["a", "b"], "gold": [1, 0], "pred": [1, 1]})
BY_KEY = "key,n,mcc,n_null\na,1,0.0,0\nb,1,0.0,0\n"


@pytest.fixture(autouse=True)
def _in_a_new_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("logs/day=1").mkdir(parents=True)
    ROWS.write_parquet("logs/day=1/0.parquet")


@on_linux
def test_a_pipe_stays_a_pipe_and_a_device_a_device():
    os.mkfifo("p.csv")
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(Path("p.csv").read_text("utf-8")))
    reader.start()
    done = invoke("by", "logs", "--by", "key", "--out", "p.csv")
    reader.join()
    assert (done.exit_code, read) == (0, [BY_KEY]), done.stderr
    assert Path("p.csv").is_fifo()
    for form in ("csv", "parquet"):
        assert invoke("by", "logs", "--out", "/dev/null", "--format", form).exit_code == 0
    assert not Path("/dev/null").is_file()
    refused = invoke("by", "logs", "--out", "/dev/full", "--format", "csv")
    assert refused.exit_code == 2
    assert "No space left" in refused.stderr


INSIDE = [("logs", "logs/x.parquet"), ("logs", "logs/day=1/x.csv"), ("log*", "logs/x.md")]
INSIDE += [("logs/*/*.parquet", "logs/day=1/x.parquet"), (".", "x.json"), ("link", "logs/x.csv")]
OUTSIDE = [("logs", "x.parquet"), ("logs/*/*.parquet", "logs/x.parquet"), ("logs", "logs2.csv")]
OUTSIDE += [("logs/day=1/0.parquet", "logs/day=1/x.parquet"), ("logs/day=1", "logs/x.parquet")]


@in_turn(**{"log, out": INSIDE + OUTSIDE}, command=["by", "counts"])
def test_an_answer_does_not_become_a_log(log, out, command):
    """What is refused would be read by the next run, or stop it."""
    Path("link").symlink_to("logs")
    before = invoke("by", log, "--format", "csv")
    done = invoke(command, log, "--out", out)
    if (log, out) in INSIDE:
        assert done.exit_code == 2
        assert f"cannot write '{out}': it would be one of the logs of '{log}'" in done.stderr
        assert not Path(out).exists()
    else:
        assert done.exit_code == 0, done.stderr
    assert invoke("by", log, "--format", "csv") == before


GONE = {"metrics": 0, "by logs --format csv": 0}
GONE |= {"check logs --min 0.9": 1, "check logs --min 0.1": 0}


@pytest.mark.parametrize("command", GONE)
def test_a_reader_that_has_gone_does_not_change_the_verdict(command):
    read, write = os.pipe()
    os.close(read)
    typed = [sys.executable, "-m", "polars_mcc", *command.split()]
    if "check" in command:
        typed += ["--metric", "accuracy", "--min-n", "1"]
    done = subprocess.run(typed, stdout=write, stderr=-1, text=True, check=False)
    os.close(write)
    assert done.returncode == GONE[command]
    assert "Broken pipe" not in done.stderr


@pytest.mark.parametrize("ending", ["arrow", "parquet"])
def test_folders_are_keys(ending, monkeypatch):
    for day, n in {"2026-01-01": 1, "2026-01-02": 2}.items():
        Path(f"days/day={day}").mkdir(parents=True)
        rows = pl.concat([ROWS] * n)
        write = rows.write_ipc if ending == "arrow" else rows.write_parquet
        write(f"days/day={day}/0.{ending}")
    want = "day,n\n2026-01-01,2\n2026-01-02,4\n"
    assert invoke("counts", "days", "--by", "day", "--out", "store").exit_code == 0
    for log in ("days", "days/*", "store"):
        done = invoke("by", log, "--by", "day", "--format", "csv")
        assert done.exit_code == 0, done.stderr
        assert pl.read_csv(done.stdout_bytes)["day", "n"].write_csv() == want
    monkeypatch.chdir("days/day=2026-01-02")
    assert "2026-01-02,4," in invoke("by", f"0.{ending}", "--by", "day", "--format", "csv").stdout
    ROWS.with_columns(day=7).write_ipc("own.arrow")
    assert "7,2," in invoke("by", "own.arrow", "--by", "day", "--format", "csv").stdout


def test_a_pipe_of_windows_has_tables_and_help():
    """Python then writes in the code page of the system, which lacks lines, ≤ and −."""
    environment = {**os.environ, "PYTHONIOENCODING": "cp1252", "PYTHONUTF8": "0"}
    ROWS.with_columns(key=pl.Series(["é ≤ 1", "b"])).write_parquet("logs/day=1/0.parquet")
    check = "check logs --by key --metric accuracy --min-n 1 --min 1"
    for words, code, part in [
        ("by logs --by key", 0, "\n| é ? 1 | 1   | 0.0 | 0      |\n"),
        (check, 1, "\n| b   | 1   | 0.0      | 0      |\n"),
        ("compare --help", 0, "minus"),
    ]:
        typed = [sys.executable, "-m", "polars_mcc", *words.split()]
        done = subprocess.run(
            typed, capture_output=True, encoding="cp1252", env=environment, check=False
        )
        assert done.returncode == code, done.stderr
        assert part in done.stdout, done.stdout


@pytest.mark.parametrize(
    ("number", "is_gone"), [(errno.EPIPE, True), (errno.EINVAL, True), (errno.ENOSPC, False)]
)
def test_windows_says_otherwise_that_a_reader_has_gone(number, is_gone, monkeypatch):
    def fail() -> None:
        raise OSError(number, "no more")

    with Path("out").open("wb") as file:
        monkeypatch.setattr(sys, "stdout", SimpleNamespace(flush=fail, fileno=file.fileno))
        with nullcontext() if is_gone else pytest.raises(OSError, match="no more"):
            outputs.write(b"answer")
