"""The error for a package that an extra installs."""

from __future__ import annotations


def missing(*, subject: str, package: str, extra: str) -> ModuleNotFoundError:
    """An error that names the extra of a package that is not installed."""
    msg = f"{subject} needs {package}, which is not installed: pip install 'polars-mcc[{extra}]'"
    return ModuleNotFoundError(msg, name=package)
