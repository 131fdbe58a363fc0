"""Listed slices → their exact scores and intervals, and their costliest confusion.

Scores and intervals compare two logs: the rows of the slice, and all other rows.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl

from polars_mcc._comparisons.columns_of_answers import CONFUSION
from polars_mcc._comparisons.difference_interval import (
    Difference,
    Side,
    difference,
    difference_by_cluster,
)
from polars_mcc._counts.class_counts import classes_of_pairs
from polars_mcc._counts.exact_sums import numbers
from polars_mcc._intervals.count_arrays import Counted, floats, of_arrays
from polars_mcc._intervals.interval_methods import normal_critical
from polars_mcc._intervals.interval_options import IntervalOptions
from polars_mcc._intervals.smoothed_tables import Pools
from polars_mcc._metrics.exact_scores import measure
from polars_mcc._metrics.slice_sums import Floats, Ints
from polars_mcc._worst.failures_in_words import collapse_in_words, confusion_in_words
from polars_mcc._worst.rows_of_slices import LogRows, Sides
from polars_mcc._worst.slice_scores import ModelSearch

_SIDE = "side of a slice"


def described(log: LogRows, slices: Ints) -> list[pl.Series]:
    """The scores, the score given the labels, and the confusion of each slice.

    `score` is of the slice, `reference` of the rest of the log. `confusion` says the confusion in
    words, or that the slice has one predicted label.
    """
    if not len(slices):
        return []
    search, settings, whole = log.search, log.search.settings, log.compared.whole
    sides = Sides.of(log, [side for at in slices.tolist() for side in log.both(at)])
    sums = sides.by_pair
    pairs, inside = sides.pairs(*sums), sides.pairs(*(side[::2] for side in sums))
    scores = _exact_scores(search, pairs)
    own, rest = scores[::2].alias("score"), scores[1::2].alias("reference")
    given = search.scorer.given_labels(inside, Pools(np.zeros(len(slices), np.int64), whole))
    change = _difference(sides, pairs, scores=floats(scores))
    if settings.to == "expected":
        reach = normal_critical(settings.ci) * given.se
        with np.errstate(invalid="ignore"):  # A metric of a user may be infinite.
            diff = floats(own) - given.expected
        change = Difference(diff, diff - reach, diff + reach, change.p_value)
    low, high, expected = of_arrays(
        diff_low=change.low, diff_high=change.high, expected=given.expected
    )
    return [
        *(own, rest, low, high, expected),
        (own - (rest if settings.to == "rest" else expected)).alias("diff"),
        *_confusions(sides, pairs).get_columns(),
    ]


def _exact_scores(search: ModelSearch, pairs: Counted) -> pl.Series:
    """The exact scores of slices, as `by` has them."""
    log, metric, labels = search.log.sliced, search.settings.metric, search.scorer.labels
    gold, pred = (labels.gather(side) for side in (pairs.gold, pairs.pred))
    gold = gold == 1 if log.is_of_scores else gold
    sizes = numbers(pl.Float64()) if search.counter.is_reweighted else log.numbers
    n = pl.Series(pairs.n).cast(sizes.count)
    cells = {_SIDE: pairs.slices, "gold": gold, "pred": pred, "n": n, "squares": pairs.squares}
    counted = pl.LazyFrame(cells).with_columns(n_null=pl.lit(0, sizes.count))
    alone = replace(
        log.whole,
        slice_splits=(_SIDE,),
        pair_splits=(),
        models=(search.model,),
        has_models=False,
        label_dtype=gold.dtype,
        pred_dtype=pred.dtype,
        numbers=sizes,
    )
    classes = classes_of_pairs(alone, counted).collect().lazy()
    scores = measure(alone, classes, [metric], pairs=counted, positive=search.settings.positive)
    every = pl.LazyFrame({_SIDE: np.arange(pairs.number)})
    of_slices = every.join(scores, on=_SIDE, how="left", maintain_order="left").collect()
    return of_slices[metric.name].cast(pl.Float64)


def _difference(sides: Sides, pairs: Counted, *, scores: Floats) -> Difference:
    """The difference of each slice from its rest."""
    search = sides.log.search
    ci, has_clusters = search.settings.ci, search.log.clusters is not None
    scorer = replace(search.scorer, zero_division=search.log.sliced.zero_division)
    draws = sides.draws(pairs) if has_clusters else None
    pools = Pools(np.zeros(pairs.number, np.int64), sides.log.compared.whole)
    asked = IntervalOptions(ci, is_compared=True)
    exact = {search.settings.metric.name: scores}
    [measured] = scorer.measured(pairs, asked, pools, draws, exact).values()
    limits = measured.interval
    arrays = scores, limits.low, limits.high, limits.se
    rest, own = (Side(*(array[start::2] for array in arrays)) for start in (1, 0))
    if draws is None:
        return difference(rest, own, ci)
    covariance = sides.covariances(sides.of_pairs(pairs, measured.phi))
    clusters = draws[0].n_clusters
    assert clusters is not None  # noqa: S101 - for the type checker
    return difference_by_cluster(
        rest, own, ci, covariance, np.minimum(clusters[::2], clusters[1::2])
    )


def _confusions(sides: Sides, pairs: Counted) -> pl.DataFrame:
    """The confusion of each slice, as values and in words.

    It has the most excess misses over the rate in the rest. A slice with one predicted label and
    several gold labels also has a most frequent missed label, which the words tell. `pairs` are
    the scored ones.
    """
    search, counts = sides.log.search, sides.by_pair[0]
    labels, count = search.log.labels, search.log.sliced.numbers.count
    dtypes = [labels.dtype, labels.dtype, pl.Float64(), pl.Float64()]
    schema = pl.Schema([*zip(CONFUSION, dtypes, strict=True), ("confusion", pl.String())])
    if search.settings.metric.is_of_scores:  # A score confuses no label with another.
        return pl.DataFrame([(None,) * 5] * (len(counts) // 2), schema, orient="row")
    golds, preds = sides.log.gold, sides.log.pred
    is_wrong = golds != preds
    _, of_gold = np.unique(golds, return_inverse=True)
    rows: list[tuple[object, ...]] = []
    scored = np.nan_to_num(sides.of_pairs(pairs, pairs.n))
    for found, here, there in zip(counts[::2], scored[::2], scored[1::2], strict=True):
        n_gold, n_gold_there = (np.bincount(of_gold, side)[of_gold] for side in (here, there))
        with np.errstate(all="ignore"):
            shares, rests = here / n_gold, there / n_gold_there
            excess = n_gold * (shares - np.nan_to_num(rests))
        excess = np.where(is_wrong & (n_gold > 0), excess, 0.0)
        best = int(np.argmax(excess)) if len(excess) else -1
        row: tuple[object, ...] = (None,) * 5
        if best >= 0 and excess[best] > 0:
            gold, pred = labels[int(golds[best])], labels[int(preds[best])]
            share = float(shares[best])
            rest = None if np.isnan(rests[best]) else float(rests[best])
            row = gold, pred, share, rest, confusion_in_words(gold, pred, share, rest)
        is_here = (found > 0) & (golds < len(labels))
        if len(np.unique(preds[is_here])) == 1 and len(np.unique(golds[is_here])) > 1:
            missed = int(np.argmax(np.where(is_here & is_wrong, found, -1.0)))
            n = float(found[missed]) if count.is_float() else int(found[missed])
            pred, gold = labels[int(preds[missed])], labels[int(golds[missed])]
            row = *row[:4], collapse_in_words(pred, gold, n)
        rows.append(row)
    return pl.DataFrame(rows, schema, orient="row")
