"""The score as one expression, for `select`, `agg`, `over`, `rolling`.

An expression cannot group by label. With known labels it takes a few sums for each, which
stream; without, it gathers the rows of a group. Either way it makes a list, and scores the
list with `list.eval`: there a group is a frame of its own, and all expressions work.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import polars as pl

from polars_mcc._classes import Nulls, is_scored
from polars_mcc._labels import as_labels, common_dtype
from polars_mcc._log import count_dtype, wide
from polars_mcc._pairs import count_failures, weight_failures
from polars_mcc._plan_errors import Failure, unless
from polars_mcc._scores import Sums, r_k


class _Rows(NamedTuple):
    """The columns of a group: labels of one dtype, and weights in the dtype for products."""

    gold: pl.Expr
    pred: pl.Expr
    weight: pl.Expr
    scored: pl.Expr


class _Group(NamedTuple):
    """A group as a list, and what can be said of the elements of that list."""

    elements: pl.Expr
    sums: Sums
    least_weight: pl.Expr
    failures: tuple[Failure, ...] = ()


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
        scored = is_scored(gold, pred, self.nulls)
        weight, weight_name = pl.lit(1), None
        count: pl.DataType = pl.Int64()
        if weights:
            [(weight, weight_dtype)] = weights
            weight_name = weight.meta.output_name()
            count = count_dtype(weight_name, weight_dtype)
            scored = scored & weight.is_not_null()
        rows = _Rows(gold, pred, weight.cast(wide(count)), scored)

        if self.labels is not None or dtype == pl.Boolean:
            listed = [False, True] if self.labels is None else self.labels
            group = _sums_by_label(rows, as_labels(listed, dtype, null=self.nulls == "label"))
        else:
            group = _pairs(rows) if weight_name is None else _sides(rows)
        n = group.sums.t
        failures = [*group.failures, *count_failures(n, count)]
        if weight_name is not None:
            failures += weight_failures(group.least_weight, n, weight_name, count)
        score = pl.when(n > 0).then(r_k(group.sums, self.zero_division))
        return group.elements.list.eval(unless(score, *failures)).list.first().alias(name)


def _sums_by_label(rows: _Rows, labels: pl.Series) -> _Group:
    gold, pred, weight, scored = rows

    def total(where: pl.Expr) -> pl.Expr:
        return pl.when(scored & where).then(weight).otherwise(0).sum()

    listed = pl.all_horizontal(
        side.is_in(labels.implode(), nulls_equal=True) for side in (gold, pred)
    )
    elements = pl.concat_list(
        *(total(gold.eq_missing(label)) for label in labels),
        *(total(pred.eq_missing(label)) for label in labels),
        total(gold.eq_missing(pred)),
        pl.when(scored).then(weight).min(),
        (scored & ~listed).sum().cast(pl.Int64),
    )
    k, element = len(labels), pl.element()
    t, p = element.slice(0, k), element.slice(k, k)
    hits, least, unlisted = (element.get(2 * k + i) for i in range(3))
    message = pl.format(
        "labels={} leave out the gold or pred of {} rows; list every label that occurs",
        pl.lit(str(labels.to_list())),
        unlisted,
    )
    sums = Sums.over_classes(t, p, hits)
    return _Group(elements, sums, least, (Failure(unlisted > 0, message),))


def _pairs(rows: _Rows) -> _Group:
    elements = pl.struct(gold=rows.gold, pred=rows.pred).filter(rows.scored).implode()
    gold, pred = (pl.element().struct.field(side) for side in ("gold", "pred"))

    def squares(labels: pl.Expr) -> pl.Expr:
        return labels.unique_counts().cast(pl.Int128).pow(2).sum()

    n, tt, pp = pl.element().len().cast(pl.Int128), squares(gold), squares(pred)
    sums = Sums(
        t=n,
        p=n,
        c=gold.eq_missing(pred).cast(pl.Int64).sum().cast(pl.Int128),
        # Σ (t + p)² = Σ t² + 2 Σ t·p + Σ p²
        tp=(squares(gold.append(pred)) - tt - pp) // 2,
        tt=tt,
        pp=pp,
    )
    return _Group(elements, sums, least_weight=pl.lit(1))


def _sides(rows: _Rows) -> _Group:
    """Each row twice: its label and what it adds to t, p and c, as gold and as predicted."""
    gold, pred, weight, scored = rows
    none = weight * 0
    hit = pl.when(gold.eq_missing(pred)).then(weight).otherwise(0)
    as_gold = pl.struct(label=gold, t=weight, p=none, c=hit)
    as_pred = pl.struct(label=pred, t=none, p=weight, c=none)
    elements = as_gold.filter(scored).append(as_pred.filter(scored)).implode()

    label, t, p, c = (pl.element().struct.field(name) for name in ("label", "t", "p", "c"))
    # Σ t·p over classes is Σ over rows of the row's t times the p of its class.
    class_t, class_p = t.sum().over(label), p.sum().over(label)
    sums = Sums(
        t=t.sum(),
        p=p.sum(),
        c=c.sum(),
        tp=(t * class_p).sum(),
        tt=(t * class_t).sum(),
        pp=(p * class_p).sum(),
    )
    return _Group(elements, sums, least_weight=t.min())
