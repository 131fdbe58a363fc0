"""The command line: `main` runs a command of `commands_*`."""

from __future__ import annotations

import re
from collections.abc import Sequence

import cyclopts

from polars_mcc._base.visible_text import say
from polars_mcc._cli import (  # noqa: F401 - their commands are added to the app
    commands_to_score_and_compare,
    commands_worst_check_report_counts,
)
from polars_mcc._cli.app_and_answers import app
from polars_mcc._cli.outputs import open_streams


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line.

    Raises:
        SystemExit: Always. The code is 1 if a check fails, and 2 after an error.
    """
    open_streams()
    try:
        app(arguments, print_error=False, exit_on_error=False)
    except cyclopts.CycloptsError as error:
        message = str(error)
        if message.endswith("requires an argument.") and (flag := re.search(r"--[\w-]+", message)):
            message += f" If its value begins with -, write {flag[0]}=VALUE."
        say(message)
        raise SystemExit(2) from None
