"""The error for a package that an extra installs."""

from __future__ import annotations

import importlib.util


def missing(*, subject: str, package: str, extra: str) -> ModuleNotFoundError:
    """An error that names the extra of a package that is not installed."""
    msg = f"{subject} needs {package}, which is not installed: pip install 'polars-mcc[{extra}]'"
    return ModuleNotFoundError(msg, name=package)


def check_installed(package: str, *, subject: str, extra: str) -> None:
    """Raise an error that names the extra, unless its package is installed."""
    if importlib.util.find_spec(package) is None:
        raise missing(subject=subject, package=package, extra=extra)
