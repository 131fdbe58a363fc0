"""The command `polars-mcc`, which is also `python -m polars_mcc`."""

import sys

from polars_mcc._base.errors_and_warnings import missing


def main() -> None:
    """Run the command line, or say which package is missing. Ctrl-C is one line and code 130."""
    try:
        from polars_mcc._cli.run_command import main as run  # noqa: PLC0415 - needs the extra `cli`

        run()
    except KeyboardInterrupt:
        sys.stderr.write("polars-mcc: interrupted; nothing is written\n")
        sys.exit(130)
    except ModuleNotFoundError as error:
        if error.name not in {"cyclopts", "rich"}:
            raise
        message = missing(subject="the command line", package=error.name, extra="cli")
        sys.stderr.write(f"polars-mcc: {message}\n")
        sys.exit(2)


if __name__ == "__main__":
    main()
