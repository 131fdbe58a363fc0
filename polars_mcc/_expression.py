"""The score as one expression, for `select`, `agg`, `over`, `rolling`.

An expression cannot group by label. With known labels it takes a few sums for each,
which stream. Without, it counts the values of gold, of pred and of both, or sorts them
if there are weights; that holds the rows of a group in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add

import polars as pl

from polars_mcc._classes import Nulls
from polars_mcc._labels import as_labels, common_dtype
from polars_mcc._log import check_weight, wide
from polars_mcc._pairs import count_failures, weight_failures
from polars_mcc._plan_errors import Failure, unless
from polars_mcc._scores import Sums, r_k


@dataclass(frozen=True)
class Score:
    """The score of (pred, gold[, weight]), once Polars knows their dtypes, at plan time.

    A class and not a closure, so that a serialised plan refers to it by name.
    """

    labels: Sequence[object] | None
    nulls: Nulls
    zero_division: float | None

    def __call__(self, inputs: list[tuple[pl.Expr, pl.DataType]]) -> pl.Expr:
        """The expression that takes the place of the inputs, named like pred."""
        (pred, pred_dtype), (gold, gold_dtype), *weights = inputs
        name = pred.meta.output_name()
        dtype = common_dtype({gold.meta.output_name(): gold_dtype, name: pred_dtype})
        gold, pred = gold.cast(dtype), pred.cast(dtype)
        scored = pl.lit(value=True)
        if self.nulls == "drop":
            scored = gold.is_not_null() & pred.is_not_null()

        count: pl.DataType = pl.Int64()
        weight = pl.lit(1, count)
        failures = []
        for given, weight_dtype in weights:
            weight_name = given.meta.output_name()
            check_weight(pl.Schema({weight_name: weight_dtype}))
            count = pl.Float64() if weight_dtype.is_float() else count
            weight = given
            failures += weight_failures(given, weight_name, count)
            scored = scored & given.is_not_null()
        weight = weight.cast(wide(count))

        if self.labels is not None or dtype == pl.Boolean:
            listed = [False, True] if self.labels is None else self.labels
            labels = as_labels(listed, dtype, null=self.nulls == "label")
            sums = _of_known(gold, pred, scored, weight, labels)
            failures.append(_unlisted(gold, pred, scored, labels))
        elif weights:
            sums = _of_sorted(*(column.filter(scored) for column in (gold, pred, weight)))
        else:
            sums = _of_counted(gold.filter(scored), pred.filter(scored))
        n = sums.t
        score = pl.when(n > 0).then(r_k(sums, self.zero_division))
        return unless(score, *failures, *count_failures(n, count)).alias(name)


def _of_known(
    gold: pl.Expr, pred: pl.Expr, scored: pl.Expr, weight: pl.Expr, labels: pl.Series
) -> Sums:
    def rows(where: pl.Expr) -> pl.Expr:
        return pl.when(scored & where).then(weight).otherwise(0).sum()

    t, p = ([rows(side.eq_missing(label)) for label in labels] for side in (gold, pred))
    return Sums(
        t=reduce(add, t),
        p=reduce(add, p),
        c=rows(gold.eq_missing(pred)),
        tp=reduce(add, (a * b for a, b in zip(t, p, strict=True))),
        tt=reduce(add, (a * a for a in t)),
        pp=reduce(add, (b * b for b in p)),
    )


def _unlisted(gold: pl.Expr, pred: pl.Expr, scored: pl.Expr, labels: pl.Series) -> Failure:
    listed = pl.all_horizontal(
        side.is_in(labels.implode(), nulls_equal=True) for side in (gold, pred)
    )
    rows = (scored & ~listed).sum()
    message = pl.format(
        "labels={} leave out the gold or pred of {} rows; list every label that occurs",
        pl.lit(str(labels.to_list())),
        rows,
    )
    return Failure(rows > 0, message)


def _of_counted(gold: pl.Expr, pred: pl.Expr) -> Sums:
    def squares(labels: pl.Expr) -> pl.Expr:
        counts = labels.alias("label").value_counts(name="n").struct.field("n")
        return counts.cast(pl.Int128).pow(2).sum()

    tt, pp = squares(gold), squares(pred)
    s = gold.len().cast(pl.Int128)
    return Sums(
        t=s,
        p=s,
        c=gold.eq_missing(pred).cast(pl.Int64).sum().cast(pl.Int128),
        # Σ (t + p)² = Σ t² + 2 Σ t·p + Σ p²
        tp=(squares(_both(gold, pred)) - tt - pp) // 2,
        tt=tt,
        pp=pp,
    )


def _of_sorted(gold: pl.Expr, pred: pl.Expr, weight: pl.Expr) -> Sums:
    labels = _both(gold, pred)
    order = labels.arg_sort()
    run_ends = labels.gather(order).rle().struct.field("len").cast(pl.Int64).cum_sum() - 1

    def per_label(weights: pl.Expr) -> pl.Expr:
        at_ends = weights.gather(order).cum_sum().gather(run_ends)
        return at_ends - at_ends.shift(1, fill_value=0)

    t, p = per_label(_both(weight, weight * 0)), per_label(_both(weight * 0, weight))
    return Sums(
        t=t.sum(),
        p=p.sum(),
        c=pl.when(gold.eq_missing(pred)).then(weight).otherwise(0).sum(),
        tp=(t * p).sum(),
        tt=(t * t).sum(),
        pp=(p * p).sum(),
    )


def _both(first: pl.Expr, second: pl.Expr) -> pl.Expr:
    # Not append: in a select, the streaming engine of Polars 2.1 fails on its length.
    return first.implode().list.concat(second.implode()).explode()
