"""Matthews correlation coefficient (R_K) of every slice of a prediction log, in Polars.

`import polars_mcc` registers the namespace `mcc` on DataFrame, LazyFrame, Expr and Series.
`PredictionLog` is the same as a class. Type checkers and editors know only the class.
"""

import importlib
from typing import TYPE_CHECKING, Any

import polars as pl

from polars_mcc._version import __version__ as __version__

if TYPE_CHECKING:
    from polars_mcc import metric as metric
    from polars_mcc import plot as plot
    from polars_mcc._public_names import *  # noqa: F403 - that module is the list


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a public name
    """Load the public names when one is used: `import polars_mcc` takes no time."""
    if name in {"metric", "plot"}:  # modules; `plot` needs Altair
        return importlib.import_module(f"polars_mcc.{name}")
    if name == "__all__" or not name.startswith("_"):
        public = vars(importlib.import_module("polars_mcc._public_names"))
        if name == "__all__":
            return sorted(
                ["__version__", *(known for known in public if not known.startswith("_"))]
            )
        if name in public:
            return public[name]
    raise AttributeError(f"module 'polars_mcc' has no attribute '{name}'")


def __dir__() -> list[str]:
    """List the public names. Two are modules, which `import *` leaves out: `plot` needs Altair."""
    return sorted([*__getattr__("__all__"), "metric", "plot"])


def _log(frame: Any) -> Any:  # noqa: ANN401 - any frame
    return importlib.import_module("polars_mcc.prediction_log").PredictionLog.by_default(frame)


def _expr(pred: Any) -> Any:  # noqa: ANN401 - an expression
    return importlib.import_module("polars_mcc.expr_namespace").ExprMcc(pred)


def _series(pred: Any) -> Any:  # noqa: ANN401 - a Series
    return importlib.import_module("polars_mcc.expr_namespace").SeriesMcc(pred)


pl.api.register_dataframe_namespace("mcc")(_log)  # type: ignore[arg-type]
pl.api.register_lazyframe_namespace("mcc")(_log)  # type: ignore[arg-type]
pl.api.register_expr_namespace("mcc")(_expr)  # type: ignore[arg-type]
pl.api.register_series_namespace("mcc")(_series)  # type: ignore[arg-type]
