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
from typing import TYPE_CHECKING, Any

import polars as pl

from polars_mcc._version import __version__

if TYPE_CHECKING:
    from polars_mcc import plot as plot
    from polars_mcc._counts.remarks import PredictionLogWarning
    from polars_mcc._inference.options import Bootstrap
    from polars_mcc._log.bins import bins
    from polars_mcc._log.key_sets import cube, each, rollup, sets
    from polars_mcc._log.trailing import trailing
    from polars_mcc._scores.registry import metrics, register_metric
    from polars_mcc._shell.keep import keep_counts
    from polars_mcc._show.progress import progress
    from polars_mcc._show.table import table, to_numpy
    from polars_mcc._verbs.check import CheckError
    from polars_mcc.namespaces import ExprMcc, SeriesMcc
    from polars_mcc.prediction_log import PredictionLog

__all__ = [
    "Bootstrap",
    "CheckError",
    "ExprMcc",
    "PredictionLog",
    "PredictionLogWarning",
    "SeriesMcc",
    "__version__",
    "bins",
    "cube",
    "each",
    "keep_counts",
    "metrics",
    "progress",
    "register_metric",
    "rollup",
    "sets",
    "table",
    "to_numpy",
    "trailing",
]


_MODULES = {
    "Bootstrap": "_inference.options",
    "CheckError": "_verbs.check",
    "ExprMcc": "namespaces",
    "PredictionLog": "prediction_log",
    "PredictionLogWarning": "_counts.remarks",
    "SeriesMcc": "namespaces",
    "bins": "_log.bins",
    **dict.fromkeys(("cube", "each", "rollup", "sets"), "_log.key_sets"),
    "keep_counts": "_shell.keep",
    "metrics": "_scores.registry",
    "progress": "_show.progress",
    "register_metric": "_scores.registry",
    "table": "_show.table",
    "to_numpy": "_show.table",
    "trailing": "_log.trailing",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a public name
    """Load a module when one of its names is used: `import polars_mcc` takes no time."""
    if name == "plot":
        return importlib.import_module("polars_mcc.plot")
    if name not in _MODULES:
        msg = f"module 'polars_mcc' has no attribute '{name}'"
        raise AttributeError(msg)
    return getattr(importlib.import_module(f"polars_mcc.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    """List the public names. `plot` is one, but `import *` does not need Altair."""
    return sorted([*__all__, "plot"])


def _log(frame: Any) -> Any:  # noqa: ANN401 - any frame
    return __getattr__("PredictionLog").by_default(frame)


def _expr(pred: Any) -> Any:  # noqa: ANN401 - an expression
    return __getattr__("ExprMcc")(pred)


def _series(pred: Any) -> Any:  # noqa: ANN401 - a Series
    return __getattr__("SeriesMcc")(pred)


pl.api.register_dataframe_namespace("mcc")(_log)  # type: ignore[arg-type]
pl.api.register_lazyframe_namespace("mcc")(_log)  # type: ignore[arg-type]
pl.api.register_expr_namespace("mcc")(_expr)  # type: ignore[arg-type]
pl.api.register_series_namespace("mcc")(_series)  # type: ignore[arg-type]
