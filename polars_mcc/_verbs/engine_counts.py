"""`engine_counts`: the query that counts a log in another engine."""

from __future__ import annotations

from typing import Any

from polars_mcc._counts.cut_into_slices import cut
from polars_mcc._counts.gold_and_pred import sides_of
from polars_mcc._frame.columns import roots
from polars_mcc._frame.frames import Frame
from polars_mcc._frame.log_options import Described


def engine_counts(log: Described[Any], *keys: str) -> Any:  # noqa: ANN401 - another library's frame
    """Count the log inside its own engine (Spark, DuckDB, Dask …), and return a frame of it.

    The verbs run this query on a frame of Spark, DuckDB, Dask or Ibis. Use it to
    look at the plan, `engine_counts(...).explain()`, or to store the counts next to the log,
    `engine_counts(...).write.parquet("s3://lake/counts")`.

    Args:
        *keys: The names of the columns to group by.

    Returns:
        A frame of the engine, in any order. It has one row per combination of values in the keys,
        gold and pred, with these columns and the number of rows, `n`. It is a log for any verb,
        with `weight="n"`.

    Raises:
        TypeError: The log is a Polars frame (use `counts`); or a key is not the name of a column.
        ValueError: The log has weights, or its labels come from `outcomes`.

    The errors of `by` are raised too.

    Examples:
        >>> import duckdb
        >>> from polars_mcc import PredictionLog
        >>> log = duckdb.sql("SELECT i % 2 AS gold, i % 3 % 2 AS pred FROM range(12) t(i)")
        >>> PredictionLog(log).engine_counts().order("gold, pred").fetchall()
        [(0, 0, 4), (0, 1, 2), (1, 0, 4), (1, 1, 2)]
    """
    roles = log.roles
    if isinstance(roles.source, Frame):
        msg = "engine_counts is for logs of other engines: for a polars frame, use counts(...)"
        raise TypeError(msg)
    for key in keys:
        if not isinstance(key, str):
            msg = f"engine_counts takes names of columns, got {key!r}: add it to the frame first"
            raise TypeError(msg)
    reason = "the engine only counts rows; use counts(...), in which Polars adds up weights"
    roles.check_without("engine_counts", reason, "weight", "sample_weight")
    if roles.source.check_rows is not None:
        raise ValueError(
            "engine_counts does not support outcomes: no query of an engine fails where an id has "
            "two labels; use counts(...), or join the labels yourself"
        )
    cut(sides_of(log, several=True), keys, taken=["n"])
    preds = roles.preds.given if roles.preds else ()
    columns = roots(roles.schema, [*keys, *roles.gold.given, *preds])
    return roles.source.count(columns, "n").to_native()
