"""Listed slices → their scores and intervals, and the confusion that costs each the most.

Scores and intervals compare two logs: the rows of the slice, and all other rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import polars as pl

from polars_mcc._counts.classes import of_pairs
from polars_mcc._inference.arrays import Counted, floats, of_arrays
from polars_mcc._inference.differences import Difference, Side, difference
from polars_mcc._inference.options import IntervalOptions
from polars_mcc._inference.pool import Pools
from polars_mcc._inference.quantiles import normal_critical
from polars_mcc._scores.measure import measure
from polars_mcc._scores.segments import Floats, Ints
from polars_mcc._search.overlaps import Overlaps
from polars_mcc._search.slices import Looked, Sought
from polars_mcc._search.words import collapsed, confused

CONFUSION = ["confused_gold", "confused_pred", "confused", "confused_rest"]
"""The confusion `gold → pred` that costs a slice the most, and its share of the rows of that gold
label: in the slice, and in the rest."""
_SIDE = "side of a slice"


def described(sought: Sought, looked: Looked, slices: Ints) -> pl.DataFrame:
    """The scores, the score given the labels, and the confusion of each slice.

    `score_b` is of the slice, `score_a` of the rest of the log. `confusion` says the confusion in
    words, or that the slice has one predicted label.
    """
    found = Overlaps.of(sought, looked, slices)
    sides = np.stack([found.is_in, ~found.is_in], axis=1).reshape(-1, found.is_in.shape[1])
    pairs, every = found.pairs(sides), np.arange(len(slices))
    scores = _exact(sought, pairs)
    both = pl.DataFrame({"score_b": scores[::2], "score_a": scores[1::2]})
    pools = Pools(np.zeros_like(every), found.whole)
    given = sought.scorer.given_labels(found.pairs(sides[::2]), pools)
    change = _difference(sought, found, sides, pairs, floats(scores))
    if sought.to == "expected":
        reach = normal_critical(sought.ci) * given.se
        with np.errstate(invalid="ignore"):  # A metric of a user may be infinite.
            diff = floats(both["score_b"]) - given.expected
        change = Difference(diff, diff - reach, diff + reach, given.se, change.p_value)
    limits = of_arrays(diff_low=change.low, diff_high=change.high, expected=given.expected)
    to = "score_a" if sought.to == "rest" else "expected"
    with_limits = both.with_columns(limits).with_columns(diff=pl.col("score_b") - pl.col(to))
    return pl.concat([with_limits, _confusions(sought, found, sides)], how="horizontal")


def _exact(sought: Sought, pairs: Counted) -> pl.Series:
    """The exact scores of slices, as `by` has them."""
    log, metric, labels = sought.coded.log, sought.metric, sought.scorer.labels
    gold, pred = (labels.gather(one) for one in (pairs.gold, pairs.pred))
    gold = gold == 1 if log.is_of_scores else gold
    n = pl.Series(pairs.n).cast(log.numbers.count)
    cells = {_SIDE: pairs.slices, "gold": gold, "pred": pred, "n": n, "squares": pairs.squares}
    counted = pl.LazyFrame(cells).with_columns(n_null=pl.lit(0, log.numbers.count))
    alone = replace(
        log.whole.with_pairs_of().split_by(_SIDE),
        models=(sought.model,),
        has_models=False,
        label_dtype=gold.dtype,
        pred_dtype=pred.dtype,
    )
    classes = of_pairs(alone, counted).collect().lazy()
    scores = measure(alone, classes, [metric], pairs=counted, positive=sought.positive)
    every = pl.LazyFrame({_SIDE: np.arange(pairs.number)})
    found = every.join(scores, on=_SIDE, how="left", maintain_order="left").collect()
    return found[metric.name].cast(pl.Float64)


def _difference(
    sought: Sought,
    found: Overlaps,
    sides: Ints,
    pairs: Counted,
    scores: Floats,
) -> Difference:
    """The difference of each slice from its rest."""
    scorer = replace(sought.scorer, zero_division=sought.coded.log.zero_division)
    draws = None if found.cluster is None else found.draws(sides, pairs)
    pools = Pools(np.zeros(pairs.number, np.int64), found.whole)
    asked = IntervalOptions(sought.ci, is_compared=True)
    [measured] = scorer.measured(pairs, asked, pools, draws, {sought.metric.name: scores}).values()
    limits = measured.interval
    rest, own = (
        Side(*(one[start::2] for one in (scores, limits.low, limits.high, limits.se)))
        for start in (1, 0)
    )
    if draws is None:
        return difference(rest, own, sought.ci)
    covariance = found.covariances(sides, found.of_pairs(pairs, measured.phi))
    clusters = draws[0].n_clusters
    assert clusters is not None  # noqa: S101 - for the type checker
    with np.errstate(all="ignore"):
        correlation = np.clip(covariance / (rest.se * own.se), -1, 1)
        squared = np.clip(rest.se**2 + own.se**2 - 2 * covariance, 0, None)
        return difference(
            rest,
            own,
            sought.ci,
            se=np.sqrt(squared),
            correlation=np.nan_to_num(correlation, nan=0.0),
            df=np.minimum(clusters[::2], clusters[1::2]) - 1,
        )


def _confusions(sought: Sought, found: Overlaps, sides: Ints) -> pl.DataFrame:
    """The confusion of each slice, as values and in words."""
    labels, count = sought.coded.labels, sought.coded.log.numbers.count
    dtypes = [labels.dtype, labels.dtype, pl.Float64(), pl.Float64()]
    schema = pl.Schema([*zip(CONFUSION, dtypes, strict=True), ("confusion", pl.String())])
    rows: list[tuple[object, ...]] = []
    for costliest, missed in _places(found, sides):
        one: tuple[object, ...] = (None,) * 5
        if not sought.metric.is_of_scores:  # A score confuses no label with another.
            if costliest is not None:
                place, share, rest = costliest
                both = labels[int(found.gold[place])], labels[int(found.pred[place])]
                one = *both, share, rest, confused(*both, share, rest)
            if missed is not None:
                place, n = missed
                both = labels[int(found.pred[place])], labels[int(found.gold[place])]
                one = *one[:4], collapsed(*both, n if count.is_float() else int(n))
        rows.append(one)
    return pl.DataFrame(rows, schema, orient="row")


def _places(
    found: Overlaps, sides: Ints
) -> Iterator[tuple[tuple[int, float, float | None] | None, tuple[int, float] | None]]:
    """For each slice: the costliest confusion, with its shares; and the most frequent missed label.

    The first has the most excess misses over the rate in the rest. The second is of a slice with
    one predicted label and several gold labels.
    """
    gold, pred = found.gold, found.pred
    is_wrong = gold != pred
    _, of_gold = np.unique(gold, return_inverse=True)
    counts, _ = found.sums(sides)
    for here, there in zip(counts[::2], counts[1::2], strict=True):
        rows, rows_there = (np.bincount(of_gold, one)[of_gold] for one in (here, there))
        with np.errstate(all="ignore"):
            share, rest = here / rows, there / rows_there
            excess = np.where(is_wrong & (rows > 0), rows * (share - np.nan_to_num(rest)), 0.0)
        best = int(np.argmax(excess)) if len(excess) else -1
        costliest = missed = None
        if best >= 0 and excess[best] > 0:
            known = None if np.isnan(rest[best]) else float(rest[best])
            costliest = best, float(share[best]), known
        is_here = here > 0
        if len(np.unique(pred[is_here])) == 1 and len(np.unique(gold[is_here])) > 1:
            most = int(np.argmax(np.where(is_here & is_wrong, here, -1.0)))
            missed = most, float(here[most])
        yield costliest, missed
