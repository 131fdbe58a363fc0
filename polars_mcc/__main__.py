"""The command `polars-mcc`, also `python -m polars_mcc`."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line, or say what to install for it."""
    try:
        from polars_mcc._command import app  # noqa: PLC0415 - typer is optional
    except ModuleNotFoundError as error:
        if error.name != "typer":
            raise
        sys.stderr.write(
            "polars-mcc: the command line needs typer, which is not installed; "
            "pip install 'polars-mcc[cli]'\n"
        )
        raise SystemExit(2) from None
    app(prog_name="polars-mcc")


if __name__ == "__main__":
    main()
