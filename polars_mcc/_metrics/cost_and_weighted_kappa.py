"""Metrics of numbers by gold label and prediction: what errors cost, and weighted kappa."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import reduce
from itertools import chain
from operator import add
from typing import Literal, TypeAlias

import polars as pl

from polars_mcc._base.allowed_values import check_choice, check_number
from polars_mcc._base.errors_and_warnings import Failure, reason, unless
from polars_mcc._frame.labels import as_label, as_labels, from_text, is_text
from polars_mcc._metrics.derivatives import ArrayColumns
from polars_mcc._metrics.mcc_and_one_vs_rest import Col
from polars_mcc._metrics.metric_type import SIGNED, Metric, Range, Sum, Terms, Value, has_two_gold

_ELKAN = "Elkan 2001, The foundations of cost-sensitive learning, IJCAI"
_GROWS = "it grows with the rows, so only the mean, cost without total, is compared"
_COHEN = "Cohen 1968, Psychological Bulletin 70"

ByPair: TypeAlias = Mapping[tuple[object, object], float]
"""A number by gold label and prediction."""
IntoByPair: TypeAlias = ByPair | pl.DataFrame | str
"""The same; or columns `gold`, `pred` and a number; or the path of a CSV file with these."""
Distance: TypeAlias = Literal["linear", "quadratic"]
"""How the weight of an error grows with the distance of its labels."""


def cost(
    costs: IntoByPair | None = None,
    *,
    fn: float = 0,
    fp: float = 0,
    tp: float = 0,
    tn: float = 0,
    total: bool = False,
) -> Metric:
    """What errors cost: the mean cost of a row. Less is better; a benefit is a negative cost.

    Args:
        costs: The cost of a row by its gold label and its prediction, such as
            `{("fraud", "ok"): 10, ("ok", "fraud"): 1}`; a DataFrame with the columns `gold`, `pred`
            and `cost`; or the path of a CSV file with these. Other pairs cost 0. Limits are between
            the least and the largest of these costs.
        fn: Instead of `costs`: the cost of a positive row that is predicted as another class.
        fp: The cost of another row that is predicted as positive.
        tp: The cost of a positive row that is predicted as positive.
        tn: The cost of a row that is neither.
        total: Whether to add up the costs of all scored rows. The sum grows with the rows, so it
            has no interval and is not compared.

    Returns:
        A metric with the name "cost", or "cost_total", that all verbs take; `best_threshold` and
        `curve` only that of `fn`, `fp`, `tp` and `tn`. Text is taken too: "cost(fn=10, fp=1)",
        "cost('costs.csv', total=True)".

    Raises:
        ValueError: No cost is given, or both `costs` and one of the others; all are 0; a cost is
            not finite.
        polars.exceptions.SchemaError: In a verb: a label does not have the dtype of the labels.

    Warns:
        PredictionLogWarning: In a verb, as in `by`: no row has a label of `costs`, which is text or
            an integer.

    Examples:
        >>> import polars as pl
        >>> import polars_mcc
        >>> log = pl.DataFrame({"gold": [True, True, False, False], "pred": [True, False] * 2})
        >>> log.mcc.score(metrics="cost(fn=10, fp=1)").row(0)
        (4, 2.75, 0)
        >>> dear = polars_mcc.metric.cost({(True, False): 100}).alias("missed")
        >>> log.mcc.score(metrics=dear).row(0)
        (4, 25.0, 0)
        >>> log.mcc.score(metrics="cost(fn=10, fp=1, total=True)").row(0)
        (4, 11.0, 0)

    References:
        C. Elkan, The foundations of cost-sensitive learning, IJCAI (2001) 973-978.
    """
    cells = {"fn": fn, "fp": fp, "tp": tp, "tn": tn}
    cells = {name: checked(name, number) for name, number in cells.items()}
    of_pairs = {} if costs is None else by_pair(costs, "cost")
    numbers = [*cells.values(), *of_pairs.values()]
    if not any(numbers) or (costs is not None and any(cells.values())):
        raise ValueError(
            "cost needs what errors cost: fn and fp, as in cost(fn=10, fp=1), or costs by gold "
            "label and prediction, as in cost({('fraud', 'ok'): 10}); not both, and not only 0"
        )
    labels = {label for pair in of_pairs for label in pair}
    others = [0.0] if len(of_pairs) < len(labels) ** 2 else []  # the cost of pairs without one
    each = [*(cells.values() if costs is None else of_pairs.values()), *others]
    low, high = min(each), max(each)
    sums = " + ".join(f"{number:g}·{name}" for name, number in cells.items() if number)
    formula = "Σ cost · n" if costs is not None else f"({sums})"
    metric = Metric(
        "cost",
        lambda terms: terms["cost"],
        f"{formula} / s",
        _ELKAN,
        Range(low, high),
        less_is_better=True,
        is_mean=True,
    )
    if total:
        ends = Range(lambda terms: low * terms.n, lambda terms: high * terms.n, "[low·s, high·s]")
        metric = replace(metric.alias("cost_total"), formula=formula, range=ends, is_mean=False)
        metric = replace(metric, no_interval=_GROWS)
    if costs is None:
        return replace(metric, value=_of_cells(cells, total=total), is_of_positive=True)

    def of_labels(dtype: pl.DataType) -> Metric:
        numbers = typed(of_pairs, dtype)
        cost = mean_of_pairs(numbers, of="n" if total else "share")
        return replace(metric, pairs={"cost": cost}, named=named(numbers, dtype))

    return replace(metric, of_labels=of_labels)


def _of_cells(cells: Mapping[str, float], *, total: bool) -> Value:
    def value(terms: Terms) -> pl.Expr:
        costs = [getattr(terms.positive, name) * number for name, number in cells.items() if number]
        mean = terms.ratio(reduce(add, costs), terms.s)
        # In integers, n / s is exactly 1: a total of costs is not rounded twice.
        return reduce(add, costs) * (terms.n / terms.s.cast(pl.Float64)) if total else mean

    return value


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


def by_pair(given: IntoByPair, name: str) -> ByPair:
    """The numbers that a user gives, or an error. Labels of a file are text."""
    if isinstance(given, str):
        try:
            return by_pair(pl.read_csv(given, infer_schema=False, raise_if_empty=False), name)
        except (pl.exceptions.PolarsError, OSError, ValueError) as error:
            raise type(error)(f"'{given}': {reason(error)}") from None
    if isinstance(given, pl.DataFrame):
        if {*given.columns} != {"gold", "pred", name}:
            utf16 = "bytes of 0, as UTF-16 has: write it as UTF-8"
            got = utf16 if "\0" in "".join(given.columns) else given.columns
            raise ValueError(f"{name} needs the columns gold, pred and {name}, got {got}")
        rows = given.select("gold", "pred", pl.col(name).cast(pl.Float64)).rows()
        given = {(gold, pred): number for gold, pred, number in rows}
        if len(given) < len(rows):
            raise ValueError(f"{name} has a pair of gold and pred twice: keep one number for each")
    if not isinstance(given, Mapping):
        raise TypeError(f"{name} by gold label and prediction must be a mapping, got {given!r}")
    if not given:
        raise ValueError(f"{name} by gold label and prediction names no pair")
    numbers = {}
    for pair, number in given.items():
        if not (isinstance(pair, tuple) and len(pair) == 2):
            example = "{('fraud', 'ok'): 10}"
            msg = f"{name} is by gold label and prediction, as in {example}, got {pair!r}"
            raise ValueError(msg)
        numbers[pair] = checked(f"{name} of {pair!r}", number)
    return numbers


def checked(name: str, number: float) -> float:
    """A finite number, or an error."""
    number = float(number) if isinstance(number, Decimal) else number
    check_number(name, number)
    if number is None or not math.isfinite(number):
        raise ValueError(f"{name} must be a finite number, got {number}")
    return float(number)


def typed(numbers: ByPair, dtype: pl.DataType) -> ByPair:
    """The same numbers by labels of this dtype. Text is read as such a label."""
    return {
        (typed_label(gold, dtype), typed_label(pred, dtype)): n
        for (gold, pred), n in numbers.items()
    }


def named(numbers: ByPair, dtype: pl.DataType) -> list[object]:
    """The labels that numbers are given for; none for an Enum, whose labels are known to exist."""
    is_enum = isinstance(dtype, pl.Enum)
    return [] if is_enum else [*dict.fromkeys(chain(*numbers))]


def typed_label(label: object, dtype: pl.DataType) -> object:
    """A label of this dtype, or a SchemaError. Text is read as one."""
    if label is None:
        return None
    if isinstance(label, str) and not is_text(dtype):
        known = from_text(label, dtype)
        label = label if known is None else known
    return as_label(label, dtype, f"label {label!r} of a metric")


def mean_of(number: Callable[..., pl.Expr], *sides: str, of: str = "share") -> Sum:
    """The mean number of a row, from its labels of these sides: "gold", "pred" or both.

    With `of="n"` it is the sum over all rows.
    """
    side, *others = sides
    return lambda col: (col(of) * col(side).pipe(number, *map(col, others))).sum()


def mean_of_pairs(numbers: ByPair, *, of: str = "share") -> Sum:
    """The mean number of a row; 0 for a pair that is not named. `of` is as in `mean_of`."""

    def number_of(gold: pl.Expr, pred: pl.Expr) -> pl.Expr:
        each = (
            (gold.eq_missing(pl.lit(label)) & pred.eq_missing(pl.lit(other))).cast(pl.Float64)
            * number
            for (label, other), number in numbers.items()
        )
        return reduce(add, each)

    return mean_of(number_of, "gold", "pred", of=of)
