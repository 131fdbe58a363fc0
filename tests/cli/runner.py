"""Run the command line in this process."""

from __future__ import annotations

import io
import sys
from typing import NamedTuple

from polars_mcc._cli import run_command


class Done(NamedTuple):
    exit_code: int
    stdout_bytes: bytes
    stderr: str

    @property
    def stdout(self) -> str:
        return self.stdout_bytes.decode()

    @property
    def output(self) -> str:
        return self.stdout + self.stderr


class Terminal(io.TextIOWrapper):
    def isatty(self) -> bool:
        return True


def invoke(*arguments: str, is_terminal: bool = False) -> Done:
    """Run a command; return its exit code and its output."""
    streams = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (io.TextIOWrapper(io.BytesIO(), "utf-8") for _ in streams)
    if is_terminal:
        sys.stdout = Terminal(io.BytesIO(), "utf-8")
    try:
        code: object = None
        try:
            run_command.main(list(arguments))
        except SystemExit as exited:
            code = exited.code
        written = []
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
            written.append(stream.buffer.getvalue())
    finally:
        sys.stdout, sys.stderr = streams
    assert code is None or isinstance(code, int)
    return Done(code or 0, written[0], written[1].decode())
