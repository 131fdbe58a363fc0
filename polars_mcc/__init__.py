"""Matthews correlation coefficient (R_K) of every slice of a prediction log, in Polars.

`import polars_mcc` registers the namespace `mcc` on DataFrame, LazyFrame, Expr and Series.
`PredictionLog` is the same as a class. Type checkers and editors know only the class.
"""

import os
import sys

# In the command, Ctrl-C is no traceback, from here on: the imports below take a while.
if sys.argv and (
    os.path.basename(sys.argv[0]) in {"polars-mcc", "polars-mcc.exe"}  # noqa: PTH119 - it is fast
    or (sys.argv[0] == "-m" and sys.orig_argv[-len(sys.argv)] in {"polars_mcc", "-mpolars_mcc"})
):
    from polars_mcc._shell import interrupt as _interrupt

    _interrupt.expect()

import importlib
from typing import TYPE_CHECKING

from polars_mcc._counts.remarks import PredictionLogWarning
from polars_mcc._inference.methods import Bootstrap
from polars_mcc._log.keys import cube, each, rollup, sets, trailing
from polars_mcc._scores.registry import metrics, register_metric
from polars_mcc._show.matrix import to_numpy
from polars_mcc._show.progress import progress
from polars_mcc._show.table import table
from polars_mcc._verbs.check import CheckError
from polars_mcc._version import __version__
from polars_mcc.namespaces import ExprMcc, SeriesMcc
from polars_mcc.prediction_log import PredictionLog

if TYPE_CHECKING:
    from polars_mcc import plot
    from polars_mcc._shell.keep import keep_counts

__all__ = [
    "Bootstrap",
    "CheckError",
    "ExprMcc",
    "PredictionLog",
    "PredictionLogWarning",
    "SeriesMcc",
    "__version__",
    "cube",
    "each",
    "keep_counts",
    "metrics",
    "plot",
    "progress",
    "register_metric",
    "rollup",
    "sets",
    "table",
    "to_numpy",
    "trailing",
]


def __getattr__(name: str) -> object:
    """Load `plot` (and with it altair) and `keep_counts` at first use: few users need them."""
    if name == "plot":
        return importlib.import_module("polars_mcc.plot")
    if name == "keep_counts":
        return importlib.import_module("polars_mcc._shell.keep").keep_counts
    msg = f"module 'polars_mcc' has no attribute '{name}'"
    raise AttributeError(msg)
