"""The version of the package, and the versions of the packages that it may use."""

from __future__ import annotations

import sys

import polars as pl

__version__ = "1.0.0"

PACKAGES = (
    *("polars", "numpy", "pyarrow", "cyclopts", "rich", "altair", "jinja2", "vl-convert-python"),
    *("ipywidgets", "deltalake", "obstore", "pyiceberg", "narwhals", "great-tables"),
    *("dask", "duckdb", "ibis-framework", "pandas", "pyspark"),
)
"""What the package needs, what its extras install, and the engines whose frames it takes."""


def show_versions() -> None:
    """Print the versions of polars_mcc, Polars, Python, the platform and other packages.

    The report of a fault begins with them. No package is imported for it.

    Examples:
        >>> import polars_mcc
        >>> polars_mcc.show_versions()  # doctest: +ELLIPSIS
        polars_mcc:         ...
        Python:             3...
        Platform:           ...
        Polars index:       UInt...
        polars:             2...
        ...
        great-tables:       ...
    """
    import platform  # noqa: PLC0415 - few need them, and both take time
    from importlib import metadata  # noqa: PLC0415

    found = {
        "polars_mcc": __version__,
        "Python": sys.version.replace("\n", " "),
        "Platform": platform.platform(),
        "Polars index": str(pl.get_index_type()),
    }
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = "not installed"
    width = max(map(len, found)) + 2
    sys.stdout.write("".join(f"{name + ':':{width}} {found[name]}\n" for name in found))
