"""Weighted kappa: agreement of labels that have an order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from operator import add
from typing import Literal, TypeAlias

import polars as pl

from polars_mcc._base.allowed_values import check_choice
from polars_mcc._base.errors_and_warnings import Failure, unless
from polars_mcc._frame.labels import as_labels
from polars_mcc._metrics.derivatives import ArrayColumns
from polars_mcc._metrics.label_pairs import (
    ByPair,
    IntoByPair,
    by_pair,
    mean_of,
    mean_of_pairs,
    named,
    typed,
    typed_label,
)
from polars_mcc._metrics.mcc_and_one_vs_rest import Col
from polars_mcc._metrics.metric_type import SIGNED, Metric, Sum, Terms, Value, has_two_gold

Distance: TypeAlias = Literal["linear", "quadratic"]
"""How the weight of an error grows with the distance of its labels."""

_COHEN = "Cohen 1968, Psychological Bulletin 70"


def kappa(weights: Distance | IntoByPair, order: Sequence[object] | None = None) -> Metric:
    """Weighted kappa, for labels in an order: an error counts by how far it is off.

    It is 1 - O/E: O is the mean weight of the errors, and E is their mean weight if gold labels and
    predictions were independent.

    Args:
        weights: The weight of an error by the distance of both labels: "linear" or "quadratic". Or
            weights by gold label and prediction, as in `cost`.
        order: All labels, in order; neighbours have the distance 1. None: the order of an Enum;
            numbers are their own places.

    Returns:
        A metric with the name "kappa_linear", "kappa_quadratic" or "kappa_weighted", that all verbs
        take but `curve` and `best_threshold`. Text is taken too: "kappa(quadratic)",
        "kappa(linear, order=[low, mid, high])".

    Raises:
        ValueError: `weights` is unknown; in a verb, the labels have no order.
        polars.exceptions.InvalidOperationError: On `collect`: `order` lacks a label.

    Examples:
        >>> import polars as pl
        >>> log = pl.DataFrame({"gold": [1, 1, 2, 3, 3], "pred": [1, 2, 2, 3, 1]})
        >>> round(log.mcc.score(metrics="kappa(quadratic)")["kappa_quadratic"].item(), 12)
        0.285714285714

    References:
        J. Cohen, Weighted kappa, Psychological Bulletin 70 (1968) 213-220.
    """
    by_distance = weights if isinstance(weights, str) and not weights.endswith(".csv") else None
    numbers: ByPair = {}
    if by_distance is None:
        numbers = by_pair(weights, "weight")
    else:
        check_choice("weights", by_distance, Distance, "weights by pair of labels")

    def of_labels(dtype: pl.DataType) -> Metric:
        of_table: ByPair = typed(numbers, dtype)
        if by_distance is None:
            sums, chance = _by_table(of_table)
        else:
            place = _place(dtype, order, by_distance)
            sums, chance = (_quadratic if by_distance == "quadratic" else _linear)(place)
        value, in_table = _beyond_chance(chance), named(of_table, dtype)
        return replace(unbound, value=value, pairs=sums, named=in_table, of_labels=None)

    unbound = Metric(
        f"kappa_{by_distance or 'weighted'}",
        lambda terms: terms["observed"],
        "1 - O/E, the mean weight of an error, and its mean for independent labels",
        _COHEN,
        SIGNED if by_distance else None,
        "only one class occurs",
        has_gold=has_two_gold,
        classes_needed="two gold",
        of_labels=of_labels,
    )
    return unbound


_Chance: TypeAlias = Callable[[Terms], pl.Expr]
"""The mean weight of an error if gold labels and predictions are independent."""


def _beyond_chance(chance: _Chance) -> Value:
    """1 - O/E."""

    def value(terms: Terms) -> pl.Expr:
        expected = chance(terms)
        return terms.ratio(expected - terms["observed"], expected)

    return value


def _by_table(weights: ByPair) -> tuple[dict[str, Sum], _Chance]:
    """E is Σ w_ij T_i P_j, with the shares T_i of gold labels and P_j of predictions."""
    sums: dict[str, Sum] = {"observed": mean_of_pairs(weights)}
    golds, preds = ([*dict.fromkeys(labels)] for labels in zip(*weights, strict=True))
    for side, labels in (("gold", golds), ("pred", preds)):
        for place, label in enumerate(labels):
            sums[f"{side} {place}"] = mean_of(_is(label), side)

    def chance(terms: Terms) -> pl.Expr:
        each = [
            number * terms[f"gold {golds.index(gold)}"] * terms[f"pred {preds.index(pred)}"]
            for (gold, pred), number in weights.items()
        ]
        return reduce(add, each)

    return sums, chance


def _is(label: object) -> Callable[[pl.Expr], pl.Expr]:
    return lambda column: column.eq_missing(pl.lit(label)).cast(pl.Float64)


_Place: TypeAlias = Callable[[pl.Expr], pl.Expr]
"""The place of each label in the order: a float, or the number that the label is."""


def _quadratic(place: _Place) -> tuple[dict[str, Sum], _Chance]:
    """E is the mean square of a difference: both variances, and the square of the means' one."""
    above_least = _above_least(place)

    def squared(label: pl.Expr, gold: pl.Expr) -> pl.Expr:
        return above_least(label, gold) ** 2

    def apart(gold: pl.Expr, pred: pl.Expr) -> pl.Expr:
        return (place(gold) - place(pred)).cast(pl.Float64) ** 2

    sums = {"observed": mean_of(apart, "gold", "pred")}
    for side in ("gold", "pred"):
        sums[side] = mean_of(above_least, side, "gold")
        sums[f"{side}²"] = mean_of(squared, side, "gold")

    def chance(terms: Terms) -> pl.Expr:
        x, y = terms["gold"], terms["pred"]
        return (terms["gold²"] - x**2) + (terms["pred²"] - y**2) + (x - y) ** 2

    return sums, chance


def _linear(place: _Place) -> tuple[dict[str, Sum], _Chance]:
    """E is the mean distance of independent labels: see `_mean_distance`."""
    above_least = _above_least(place)

    def apart(gold: pl.Expr, pred: pl.Expr) -> pl.Expr:
        return (place(gold) - place(pred)).abs().cast(pl.Float64)

    def by_chance(col: Col) -> pl.Expr:
        x, y = (col(side).pipe(above_least, col("gold")) for side in ("gold", "pred"))
        of = col.mean_distance if isinstance(col, ArrayColumns) else _mean_distance
        return of(x, y, col("share"))

    sums = {"observed": mean_of(apart, "gold", "pred"), "by chance": by_chance}
    return sums, lambda terms: terms["by chance"]


def _mean_distance(x: pl.Expr, y: pl.Expr, share: pl.Expr) -> pl.Expr:
    """∫ F (1 - G) + G (1 - F), with the shares F of x and G of y that are not above a number."""
    ends, none = x.append(y), 0 * share
    f, g = (
        side.sort_by(ends, maintain_order=True).cum_sum()
        for side in (share.append(none), none.append(share))
    )
    return (ends.sort().diff().shift(-1) * (f * (1 - g) + g * (1 - f))).sum()


def _above_least(place: _Place) -> Callable[[pl.Expr, pl.Expr], pl.Expr]:
    """From the least gold label of a slice: large integers have small differences."""
    return lambda label, gold: (place(label) - place(gold).min()).cast(pl.Float64)


def _order(dtype: pl.DataType, order: Sequence[object] | None, weights: str) -> list[object]:
    """All labels in order, or an error if nobody says it."""
    if order is not None:
        return [*as_labels([typed_label(label, dtype) for label in order], dtype, null=False)]
    if isinstance(dtype, pl.Enum):
        return [*dtype.categories]
    if dtype == pl.Boolean:
        return [False, True]
    raise ValueError(
        f"kappa({weights}) needs the order of the labels, which are {dtype}: name it, as in "
        f"kappa({weights}, order=[low, mid, high]), or cast the labels to an Enum"
    )


def _place(dtype: pl.DataType, order: Sequence[object] | None, weights: str) -> _Place:
    if order is None and dtype.is_numeric():
        # A difference of integers may need more bits than they have.
        return lambda x: x.cast(pl.Int128) if dtype.is_integer() else x
    labels = _order(dtype, order, weights)
    if len(labels) < 2:
        raise ValueError(f"kappa({weights}) needs two labels or more in order, got {labels}")

    def place(label: pl.Expr) -> pl.Expr:
        if order is None and isinstance(dtype, pl.Enum):
            found = label.cast(dtype).to_physical().cast(pl.Float64)
        else:
            known = pl.Series(labels, dtype=dtype)
            places = pl.Series(range(len(labels)), dtype=pl.Float64)
            found = label.cast(dtype).replace_strict(known, places, default=None)
        text = label.cast(pl.String).fill_null("null")
        message: list[str | pl.Expr] = [
            "label '",
            text,
            f"' is not in the order of kappa({weights}): {labels}",
        ]
        return unless(found, Failure(found.is_null(), message))

    return place
