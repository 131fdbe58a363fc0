"""The app of the command line, and what makes a function one of its commands."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from functools import wraps
from typing import Any

import polars as pl
from cyclopts import App, Parameter

from polars_mcc._base.visible_text import say
from polars_mcc._cli.answers_and_exit_codes import errors_as_lines
from polars_mcc._inputs.standard_input import STDIN
from polars_mcc._version import __version__

app = App(
    name="polars-mcc",
    help="Score every slice of a prediction log with the Matthews correlation coefficient (MCC).",
    help_format="markdown",
    version=lambda: f"polars-mcc {__version__} on polars {pl.__version__}",
    default_parameter=Parameter(negative=(), negative_iterable=()),
    suppress_keyboard_interrupt=False,  # `__main__` says it.
)
app.register_install_completion_command()


def command(run: Callable[..., None]) -> Callable[..., None]:
    """Make a function a command of the app. It prints an expected error as one line."""
    name = run.__name__.replace("_", "-")

    @wraps(run)
    def refusing_errors(*logs: str, **options: Any) -> None:  # noqa: ANN401 - of any command
        for log in logs:
            if log.startswith("-") and log != STDIN:
                known = [
                    flag
                    for argument in app[name].assemble_argument_collection()
                    for flag in argument.names
                ]
                near = difflib.get_close_matches(log, known, n=1)
                hint = f"; did you mean {near[0]}?" if near else "."
                say(f"there is no option {log}{hint} --help lists the options.")
                raise SystemExit(2)
        out = options.get("out") or getattr(options.get("output"), "out", None)
        with errors_as_lines(logs, out):
            run(*logs, **options)

    app.command(refusing_errors, name=name)
    return run
