"""The command `polars-mcc`. Ctrl-C is one line and exit code 130, from the start to the end.

This module is installed beside the package, because importing the package imports Polars first.
"""

import sys


def main() -> None:
    """Run the command line, or say which package is missing."""
    try:
        from polars_mcc._cli.run_command import main as run  # noqa: PLC0415 - it takes a while

        run()
    except KeyboardInterrupt:
        sys.stderr.write("polars-mcc: interrupted; nothing is written\n")
        sys.exit(130)
    except ModuleNotFoundError as error:
        if error.name not in {"cyclopts", "rich"}:
            raise
        from polars_mcc._base.missing_package import missing  # noqa: PLC0415 - as above

        message = missing(subject="the command line", package=error.name, extra="cli")
        sys.stderr.write(f"polars-mcc: {message}\n")
        sys.exit(2)
