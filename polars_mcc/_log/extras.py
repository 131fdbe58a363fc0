"""What is installed only where it is asked for: the extras of pip."""

from __future__ import annotations


def missing(*, subject: str, package: str, extra: str) -> ModuleNotFoundError:
    """The error that says which extra has a package that is not installed."""
    msg = f"{subject} needs {package}, which is not installed: pip install 'polars-mcc[{extra}]'"
    return ModuleNotFoundError(msg, name=package)
