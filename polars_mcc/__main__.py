"""The command `polars-mcc`, also `python -m polars_mcc`."""

from __future__ import annotations

import os
import sys

from polars_mcc._log.extras import missing
from polars_mcc._shell import interrupt


def main() -> None:
    """Run the command line, or say which package is missing."""
    try:
        from polars_mcc._shell.command import main as run  # noqa: PLC0415 - cyclopts is optional
    except ModuleNotFoundError as error:
        if error.name not in {"cyclopts", "rich"}:
            raise
        told = missing(subject="the command line", package=error.name, extra="cli")
        sys.stderr.write(f"polars-mcc: {told}\n")
        raise SystemExit(2) from None
    try:
        interrupt.is_running = True
        run()
    except KeyboardInterrupt:
        interrupt.end()
    except SystemExit as end:
        if end.code == 130:  # Interrupted: a Polars thread that still reads would print a trace.
            sys.stdout.flush()
            os._exit(130)
        raise
    finally:
        interrupt.leave()


if __name__ == "__main__":
    main()
