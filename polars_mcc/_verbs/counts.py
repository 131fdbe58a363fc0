"""`counts`: the log as a table of counts, with the same scores."""

from __future__ import annotations

from polars_mcc._counts.count_rows import countable
from polars_mcc._counts.cut_into_slices import cut
from polars_mcc._counts.gold_and_pred import sides_of
from polars_mcc._counts.pair_counts import pairs
from polars_mcc._frame.frames import FrameT
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

    Command line:
        polars-mcc counts logs/ --by country --by day --out counts.parquet
        polars-mcc counts logs/ --by country --by day --out store/
        polars-mcc by store/ --by country
    """
    reason = "a counts table has no sums of squared weights"
    log.roles.check_without("counts", reason, "sample_weight")
    sliced = cut(sides_of(log, several=True), keys, taken=["gold", "pred", "n"])
    return log.in_kind(sliced.answer(countable(sliced, pairs(sliced)), "gold", "pred"))
