"""`counts`: the log as a table of counts, with the same scores; `engine_counts`, its query."""

from __future__ import annotations

from typing import Any

from polars_mcc._counts.count_rows import countable
from polars_mcc._counts.pair_counts import pairs
from polars_mcc._counts.sides_and_slices import cut, sides_of
from polars_mcc._frame.columns import Frame, FrameT, roots
from polars_mcc._frame.log_options import Described
from polars_mcc._keys.any_key import IntoKey


def counts(log: Described[FrameT], *keys: IntoKey) -> FrameT:
    """Compress the log to counts, one row per slice and (gold, pred); all scores stay the same.

    A counts table is a log in which each row stands for `n` rows. Describe it with `weight="n"`;
    you may concatenate several. Every verb gives the same answer as on the original rows. Null
    labels are counted too, so you can choose `nulls` later.

    Args:
        *keys: The keys to group by, as in `by`. With sets of keys, each row counts once per set;
            with windows, once per window. So filter to one set or window before you add up rows.
            Clusters are lost, unless the cluster column is a key.

    Returns:
        A DataFrame, or a LazyFrame if the log is lazy, sorted, with the keys, `model` if the log
        has several models (later a key like any other), `gold` and `pred` (in a dtype that holds
        both), and `n` (Int64; Float64 for float weights).

    Raises:
        ValueError: The log has a `sample_weight`: its intervals need the sum of squared weights,
            which a counts table does not have.
        polars.exceptions.InvalidOperationError: On `collect`: a weight is null, so it cannot be
            added up.

    The errors of `by` are raised too.

    Examples:
        >>> import polars as pl
        >>> import polars_mcc
        >>> log = pl.DataFrame({"gold": ["a", "a", "b", "a"], "pred": ["a", "b", "b", "a"]})
        >>> counts = log.mcc.counts()
        >>> counts.rows()
        [('a', 'a', 2), ('a', 'b', 1), ('b', 'b', 1)]
        >>> counts.mcc(weight="n").score().equals(log.mcc.score())
        True

    Command line::

        polars-mcc counts logs/ --by country --by day --out counts.parquet
        polars-mcc counts logs/ --by country --by day --out store/
        polars-mcc by store/ --by country
    """
    reason = "a counts table has no sums of squared weights"
    log.roles.check_without("counts", reason, "sample_weight")
    sliced = cut(sides_of(log, several=True), keys, taken=["gold", "pred", "n"])
    return log.in_kind(sliced.answer(countable(sliced, pairs(sliced)), "gold", "pred"))


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
