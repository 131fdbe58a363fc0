"""`counts`: a log of fewer rows, with the same scores."""

from __future__ import annotations

from polars_mcc._counts.counted import countable
from polars_mcc._counts.cut import cut
from polars_mcc._counts.pairs import pairs
from polars_mcc._log.described import Described
from polars_mcc._log.frames import FrameT
from polars_mcc._log.keys import IntoKey


def counts(log: Described[FrameT], *keys: IntoKey) -> FrameT:
    """Compress a log into counts, a log of fewer rows: a row per slice and (gold, pred).

    A counts table is a log whose rows stand for `n` rows each: describe it with `weight="n"`,
    concatenated with other counts if you like, and the answer of any verb is that of the rows it
    came from. Labels that are null are counted too, so that the policy for them can be chosen
    later.

    Args:
        *keys: What makes slices, as in `by`. Sets of keys count each row once for every set, and
            windows once for every window: filter one, before you add up rows. Of clusters nothing
            is kept, unless they are a key.

    Returns:
        A frame of the kind of the log, sorted, with the keys, `model` if `pred` is several (from
        then on a key), `gold` and `pred` (in a dtype that holds both), and `n` (Int64; Float64
        for float weights).

    Raises:
        ValueError: The log has a `sample_weight`, whose squares a counts table cannot hold.
        polars.exceptions.InvalidOperationError: On `collect`: a weight is null; rows of unknown
            weight cannot be added up.

    Errors of `by` are raised too.

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
    log.meaning.check_without("counts", "a counts table has no place for squares", "sample_weight")
    sliced = cut(log, keys, answers=["gold", "pred", "n"], lists=True)
    return log.in_kind(sliced.answer(countable(sliced, pairs(sliced)), "gold", "pred"))
