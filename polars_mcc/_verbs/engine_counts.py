"""`engine_counts`: the query by which another engine counts a log."""

from __future__ import annotations

from typing import Any

from polars_mcc._counts.cut import cut
from polars_mcc._log.columns import roots
from polars_mcc._log.described import Described
from polars_mcc._log.frames import Frame


def engine_counts(log: Described[Any], *keys: str) -> Any:  # noqa: ANN401 - another library's frame
    """Count a log where it is: the query that another engine is asked, as a frame of it.

    It is what the verbs ask of Spark, DuckDB, Dask, Ibis, pandas or PyArrow, given their frames.
    Look at its plan, `engine_counts(...).explain()`, or keep the counts where the log is,
    `engine_counts(...).write.parquet("s3://lake/counts")`.

    Args:
        *keys: The names of the columns that make slices.

    Returns:
        A frame of the engine, in any order, a row per combination of values that occurs in the
        keys, gold and pred, with these columns and `n`, how many rows there are of it: a log for
        any verb, with `weight="n"`.

    Raises:
        TypeError: The log is Polars', which has `counts`; or a key is no name of a column.
        ValueError: The log has weights.

    Errors of `by` are raised too.

    Examples:
        >>> import duckdb
        >>> from polars_mcc import PredictionLog
        >>> log = duckdb.sql("SELECT i % 2 AS gold, i % 3 % 2 AS pred FROM range(12) t(i)")
        >>> PredictionLog(log).engine_counts().order("gold, pred").fetchall()
        [(0, 0, 4), (0, 1, 2), (1, 0, 4), (1, 1, 2)]
    """
    meaning = log.meaning
    if isinstance(meaning.source, Frame):
        msg = "engine_counts is for logs of other engines: of a polars frame, take counts(...)"
        raise TypeError(msg)
    for key in keys:
        if not isinstance(key, str):
            msg = f"engine_counts takes names of columns, got {key!r}: make it one of the frame"
            raise TypeError(msg)
    reason = "the engine counts rows; take counts(...), which Polars adds up"
    meaning.check_without("engine_counts", reason, "weight", "sample_weight")
    cut(log, keys, answers=["n"], lists=True)
    preds = meaning.preds.given if meaning.preds else ()
    columns = roots(meaning.schema, [*keys, *meaning.gold.given, *preds])
    return meaning.source.count(columns, "n").to_native()
