"""The score as one expression, for `select`, `agg`, `over`, `rolling`.

An expression cannot group by label. With known labels it takes a few sums for each,
which stream. Without, it holds the rows of a group in memory, as a list, and counts the
labels in that.
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
            failures.append(_unlisted(gold, pred, scored, labels))
            score = self._score(_of_known(gold, pred, scored, weight, labels), count)
        else:
            if weights:
                group, sums = _by_side(gold, pred, weight, scored), _of_sides(pl.element())
            else:
                group, sums = pl.struct(g=gold, p=pred).filter(scored), _of_pairs(pl.element())
            # In list.eval a group is a frame of its own: all expressions work on it.
            score = group.implode().list.eval(self._score(sums, count)).list.first()
        return unless(score, *failures).alias(name)

    def _score(self, sums: Sums, count: pl.DataType) -> pl.Expr:
        n = sums.t
        score = pl.when(n > 0).then(r_k(sums, self.zero_division))
        return unless(score, *count_failures(n, count))


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


def _of_pairs(row: pl.Expr) -> Sums:
    gold, pred = row.struct.field("g"), row.struct.field("p")

    def squares(labels: pl.Expr) -> pl.Expr:
        return labels.unique_counts().cast(pl.Int128).pow(2).sum()

    n, tt, pp = row.len().cast(pl.Int128), squares(gold), squares(pred)
    return Sums(
        t=n,
        p=n,
        c=gold.eq_missing(pred).cast(pl.Int64).sum().cast(pl.Int128),
        # Σ (t + p)² = Σ t² + 2 Σ t·p + Σ p²
        tp=(squares(gold.append(pred)) - tt - pp) // 2,
        tt=tt,
        pp=pp,
    )


def _by_side(gold: pl.Expr, pred: pl.Expr, weight: pl.Expr, scored: pl.Expr) -> pl.Expr:
    """The scored rows twice, as structs of a label and what it adds to t, p and c."""
    none = weight * 0
    hit = pl.when(gold.eq_missing(pred)).then(weight).otherwise(0)
    as_gold = pl.struct(label=gold, t=weight, p=none, c=hit)
    as_pred = pl.struct(label=pred, t=none, p=weight, c=none)
    return as_gold.filter(scored).append(as_pred.filter(scored))


def _of_sides(side: pl.Expr) -> Sums:
    label, t, p, c = (side.struct.field(name) for name in ("label", "t", "p", "c"))
    # Σ t·p over classes is Σ over rows of the row's t times the p of its class.
    class_t, class_p = t.sum().over(label), p.sum().over(label)
    return Sums(
        t=t.sum(),
        p=p.sum(),
        c=c.sum(),
        tp=(t * class_p).sum(),
        tt=(t * class_t).sum(),
        pp=(p * class_p).sum(),
    )
