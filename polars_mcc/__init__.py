"""Matthews correlation coefficient (R_K) of every slice of a prediction log, in Polars.

`import polars_mcc` registers the namespace `mcc` on DataFrame, LazyFrame, Expr and
Series. The same verbs are here as typed functions, which type checkers and editors see.
"""

import importlib
from types import ModuleType
from typing import TYPE_CHECKING

from polars_mcc._check import CheckError
from polars_mcc._confusion import to_numpy
from polars_mcc._functions import (
    by,
    classes,
    compare,
    confusion,
    counts,
    engine_counts,
    score,
)
from polars_mcc._namespaces import ExprMcc, FrameMcc, SeriesMcc
from polars_mcc._progress import progress
from polars_mcc._questions import best_threshold, check, curve, drift, worst
from polars_mcc._registry import metrics, register_metric
from polars_mcc._report import report
from polars_mcc._store import keep_counts
from polars_mcc._table import table

if TYPE_CHECKING:
    from polars_mcc import plot

__all__ = [
    "CheckError",
    "ExprMcc",
    "FrameMcc",
    "SeriesMcc",
    "best_threshold",
    "by",
    "check",
    "classes",
    "compare",
    "confusion",
    "counts",
    "curve",
    "drift",
    "engine_counts",
    "keep_counts",
    "metrics",
    "plot",
    "progress",
    "register_metric",
    "report",
    "score",
    "table",
    "to_numpy",
    "worst",
]
__version__ = "0.1.0"


def __getattr__(name: str) -> ModuleType:
    """Load `plot` when it is asked for, and altair with it."""
    if name == "plot":
        return importlib.import_module("polars_mcc.plot")
    msg = f"module 'polars_mcc' has no attribute '{name}'"
    raise AttributeError(msg)
