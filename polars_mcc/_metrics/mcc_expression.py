"""The score as one expression, for `select`, `agg`, `over`, `rolling`.

An expression cannot group by label. If the labels are known, it takes a few sums per label, and
sums stream. Otherwise it gathers the rows of a group. Both ways make a list, and `list.eval`
scores the list: inside `list.eval` a group is a frame of its own, where all expressions work.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import chain
from operator import add
from typing import NamedTuple

import polars as pl

from polars_mcc._base.allowed_values import Nulls
from polars_mcc._base.errors_on_collect import Failure, unless
from polars_mcc._counts import label_hashes
from polars_mcc._counts.exact_sums import Numbers, count_where, numbers, weight_failures
from polars_mcc._frame.columns import check_weight
from polars_mcc._frame.labels import LabelsDiffer, are_scored, as_compared, as_labels, common_dtype
from polars_mcc._metrics.mcc import Sums, correlation


class _Rows(NamedTuple):
    """The columns of a group: labels of one dtype, and optional weights in their wide dtype."""

    gold: pl.Expr
    pred: pl.Expr
    weight: pl.Expr | None
    scored: pl.Expr


class _Group(NamedTuple):
    """A group as a list of one struct: n, the least weight, rows with unlisted labels, the sums."""

    summed: pl.Expr
    sums: Sums
    failures: tuple[Failure, ...] = ()


@dataclass(frozen=True)
class Score:
    """The score of (pred, gold[, weight]), made at plan time, when Polars knows their dtypes.

    It is a class, not a closure: a serialised plan refers to it by name.
    """

    labels: Sequence[object] | None
    nulls: Nulls
    zero_division: float | None

    def __call__(self, inputs: list[tuple[pl.Expr, pl.DataType]]) -> pl.Expr:
        """Return the score as an expression that is named like pred."""
        (pred, pred_dtype), (gold, gold_dtype), *weights = inputs
        name = pred.meta.output_name()
        try:
            dtype = common_dtype([(gold.meta.output_name(), gold_dtype), (name, pred_dtype)])
        except LabelsDiffer as error:  # Polars makes an error again from its text alone.
            raise pl.exceptions.SchemaError(str(error)) from None
        gold = as_compared(gold, gold.meta.output_name(), gold_dtype, dtype).cast(dtype)
        pred = as_compared(pred, name, pred_dtype, dtype).cast(dtype)
        scored = are_scored(gold, pred, self.nulls)
        weight = weight_name = None
        arithmetic = Numbers()
        if weights:
            [(given, weight_dtype)] = weights
            weight_name = given.meta.output_name()
            check_weight(weight_name, weight_dtype)
            arithmetic = numbers(weight_dtype)
            scored = scored & given.is_not_null()
            weight = arithmetic.widen(given)
        rows = _Rows(gold, pred, weight, scored)

        is_boolean = dtype == pl.Boolean
        listed = [False, True] if is_boolean and self.labels is None else self.labels
        if listed is not None and dtype != pl.Null:  # null has no dtype to list labels of
            known = as_labels(listed, dtype, null=self.nulls == "label")
            group = _of_labels(rows, known, arithmetic)
        else:
            group = (
                _of_pairs(rows, dtype) if weight is None else _of_sides(rows, weight, arithmetic)
            )
        n = _field("n")
        failures = [*group.failures]
        if weight_name is not None:
            failures += weight_failures(_field("least"), n, weight_name)
        failures += arithmetic.failures(n)
        sums = group.sums.from_columns(_field)
        cov, var_gold, var_pred = (moment.to_float() for moment in sums.moments(arithmetic))
        score = correlation(cov, var_gold, var_pred, self.zero_division)
        scores = group.summed.list.eval(unless(pl.when(n > 0).then(score), *failures))
        return scores.list.first().alias(name)


def _field(name: str) -> pl.Expr:
    return pl.element().struct.field(name)


def _struct(fields: Mapping[str, pl.Expr]) -> pl.Expr:
    return pl.struct(field.alias(name) for name, field in fields.items())


def _of_labels(rows: _Rows, labels: pl.Series, numbers: Numbers) -> _Group:
    """Sum the weights of each gold label, of each predicted label and of hits, and add checks."""
    gold, pred, weight, scored = rows
    is_label = [[side.eq_missing(label) for label in labels] for side in (gold, pred)]
    wheres = [*chain(*is_label), gold.eq_missing(pred)]
    if weight is None:
        parts = [[count_where(scored & where) for where in wheres]]
        least = pl.lit(1, pl.Int64)
    else:
        weights = (pl.when(scored & where).then(weight).otherwise(0) for where in wheres)
        parts = [list(part) for part in zip(*map(numbers.parts, weights), strict=True)]
        least = pl.when(scored).then(weight).min()
    listed = pl.all_horizontal(map(pl.any_horizontal, is_label))
    group = pl.concat_list(least, count_where(scored & ~listed), *chain(*parts))

    element, k = pl.element(), len(labels)
    starts = range(2, 2 + len(wheres) * len(parts), len(wheres))
    n = reduce(add, (element.slice(start, k).sum() for start in starts))
    unit = numbers.unit(n)

    def in_units(position: int, length: int) -> pl.Expr:
        sums = (element.slice(start + position, length) for start in starts)
        return reduce(add, (numbers.in_units(part, unit) for part in sums))

    columns = {
        "n": n,
        "least": element.get(0),
        "unlisted": element.get(1),
        "t": in_units(0, k),
        "p": in_units(k, k),
        "c": in_units(2 * k, 1).sum(),
    }
    if len(parts) > 1:  # Else every product would repeat these long expressions.
        group = group.list.eval(_struct(columns))
        columns = {name: _field(name) for name in columns}
        columns |= {name: _field(name).first() for name in ("n", "least", "unlisted", "c")}
    t, p, c = (columns.pop(name) for name in ("t", "p", "c"))
    sums = Sums.over_classes(t, p, c, numbers)
    unlisted = _field("unlisted").cast(pl.Int64)
    message = (
        f"labels={labels.to_list()} leave out the gold or pred of ",
        unlisted,
        " rows; list every label that occurs",
    )
    summed = group.list.eval(_struct({**columns, **sums.columns()}))
    return _Group(summed, sums, (Failure(unlisted > 0, message),))


def _of_pairs(rows: _Rows, dtype: pl.DataType) -> _Group:
    """Count each pair of a group, from one integer per row, and add up the classes."""
    pair = label_hashes.of_pair(rows.gold, rows.pred, dtype)
    element = pl.element()
    counts = {"pair": element.unique(maintain_order=True), "n": element.unique_counts()}
    pairs = pair.number.filter(rows.scored).implode().list.eval(_struct(counts))
    gold, pred = pair.labels(_field("pair"))
    n = _field("n").cast(pl.Int128)
    none = n * 0
    hit = pl.when(gold == pred).then(n).otherwise(0)
    columns = {"label": gold.append(pred), "t": n.append(none), "p": none.append(n)}
    sides = pairs.list.eval(_struct({**columns, "c": hit.append(none)}))
    return _of_classes(sides, Numbers())


def _of_sides(rows: _Rows, weight: pl.Expr, numbers: Numbers) -> _Group:
    """List each row twice, for gold and for pred: the label, and the row's part of t, p and c."""
    gold, pred, _, scored = rows
    none = pl.lit(0, numbers.wide)
    hit = pl.when(gold.eq_missing(pred)).then(weight).otherwise(0)
    as_gold = pl.struct(label=gold, t=weight, p=none, c=hit)
    as_pred = pl.struct(label=pred, t=none, p=weight, c=none)
    return _of_classes(as_gold.filter(scored).append(as_pred.filter(scored)).implode(), numbers)


def _of_classes(sides: pl.Expr, numbers: Numbers) -> _Group:
    """Add up the sides of each label to a class, and the classes to sums.

    A side is a struct: a label, and how much the side adds to t, p and c of the label's class.
    """
    # Three steps: the unit needs the whole group, and a product needs the whole class.
    weight, label = _field("t"), _field("label")
    columns = {"n": weight.sum(), "least": weight.min(), "label": label}
    unit = numbers.unit(weight.sum())
    columns |= {name: numbers.in_units(_field(name), unit) for name in ("t", "p", "c")}
    sides = sides.list.eval(_struct(columns))
    first = label.is_first_distinct()
    columns = {name: _field(name).filter(first) for name in ("n", "least")}
    columns |= {name: _field(name).sum().over(label).filter(first) for name in ("t", "p", "c")}
    classes = sides.list.eval(_struct(columns))
    checks = {name: _field(name).first() for name in ("n", "least")}
    sums = Sums.over_classes(_field("t"), _field("p"), _field("c").sum(), numbers)
    return _Group(classes.list.eval(_struct({**checks, **sums.columns()})), sums)
