"""The scores of slices as Vega transforms, which the browser computes from counts.

They are Vega's and not JavaScript, because a chart must be drawn by every program that draws a
specification: notebooks, apps, converters to SVG. A metric is written once; its interval follows
from its formula, see `_derivative`.

A row is a pair of labels in a cell of all keys. Each label of a cell has a row for its hits, even
if there are no hits. The row of the hits holds all sums of its label, so the scores of all slices
need no join. Intervals are expensive; they are computed only for the slices that are shown.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any, NamedTuple, TypeAlias

from altair.expr.core import (
    BinaryExpression,
    ConstExpression,
    FunctionExpression,
    GetAttrExpression,
)

from polars_mcc._inference.influence import NOTHING
from polars_mcc._inference.quantiles import normal_critical
from polars_mcc._show.chart import alt

Expression: TypeAlias = Any  # altair's, of the columns of a row; altair has no type with operators
Chart: TypeAlias = Any  # an altair chart, while transforms are added
expr, PAIR, param = alt.expr, alt.datum, ConstExpression
"""`param` is a parameter of the chart: a choice of the reader, or a list of texts."""

LINES = 25  # slices on a page of the list
ALL = -1  # the code that means all values of a key
SEVERAL, ONE_PRED, ONE_GOLD = range(3)
"""The column `classes` of a slice: why a score is 0/0, if it is."""


class _Score(NamedTuple):
    """A metric as expressions of sums over a slice, and of sums over a label of the slice."""

    above: Expression
    below: Expression
    """The score is above / below."""
    u: Expression = 0
    v: Expression = 0
    w: Expression = 0
    """The terms of a label; their sums over the labels of a slice are U, V and W."""
    least: float = 0.0


s, c, U, V, W = PAIR.s, PAIR.c, PAIR.U, PAIR.V, PAIR.W
"""A slice has `s` rows and `c` hits."""
t, p, hits = PAIR.t, PAIR.p, PAIR.hits
"""A label is gold in `t` rows and predicted in `p` rows; both are true of its `hits`."""


def _of_positive(above: Expression, below: Expression) -> _Score:
    """A ratio of sums over the positive label."""
    is_positive = PAIR.gold == param("positive")
    return _Score(U, V, expr.if_(is_positive, above, 0), expr.if_(is_positive, below, 0))


_SCORES: Mapping[str, _Score] = {
    "mcc": _Score(c * s - U, expr.sqrt((s * s - V) * (s * s - W)), t * p, p * p, t * t, least=-1.0),
    "accuracy": _Score(c, s),
    "balanced_accuracy": _Score(U, V, expr.if_(t > 0, hits / t, 0), expr.if_(t > 0, 1, 0)),
    "f1_macro": _Score(U, V, 2 * hits / (t + p), 1),
    "kappa": _Score(c * s - U, s * s - U, t * p, least=-1.0),
    "precision": _of_positive(hits, p),
    "recall": _of_positive(hits, t),
    "f1": _of_positive(2 * hits, t + p),
}
OF_POSITIVE = ("precision", "recall", "f1")
METRICS = tuple(name for name in _SCORES if name not in OF_POSITIVE)

IS_SHOWN = PAIR.line == expr.min(
    expr.if_(param("isArray(shown.line)"), param("shown.line")[0], 1), PAIR.lines
)
"""Whether the matrix of this slice is shown: its line is the chosen line, or the last line."""


def _moved(metric: _Score, sums: Mapping[str, int]) -> Expression:
    """How far the score moves, per row, if a row adds 1 to each of these sums."""
    terms = {"U": metric.u, "V": metric.v, "W": metric.w}
    moved = {total: _derivative(term, sums) for total, term in terms.items()}
    return _derivative(metric.above / metric.below, {**sums, **moved})


def _derivative(of: Expression, moved: Mapping[str, Expression]) -> Expression:
    """The derivative of an expression, from the derivatives of its columns; 0 if not named."""
    if isinstance(of, GetAttrExpression):
        return moved.get(of.name, 0)
    if isinstance(of, FunctionExpression) and of.name == "if":
        condition, *ways = of.args
        return expr.if_(condition, *(_derivative(way, moved) for way in ways))
    if isinstance(of, FunctionExpression) and of.name == "sqrt":
        return _product(_derivative(of.args[0], moved), 0.5 / of)
    if not isinstance(of, BinaryExpression):
        return 0  # of a number
    left, right = _derivative(of.lhs, moved), _derivative(of.rhs, moved)
    of_left, of_right = {
        "+": (1, 1),
        "-": (1, -1),
        "*": (of.rhs, of.lhs),
        "/": (1 / of.rhs, -1 * of / of.rhs),
    }[of.op]
    return _product(left, of_left) + _product(right, of_right)


def _product(one: Expression, other: Expression) -> Expression:
    """A product; of 0 it is 0, which keeps the expressions short."""
    return 0 if isinstance(one, int) and one == 0 else one * other


def _of_metric(of: Callable[[_Score], Expression]) -> Expression:
    """An expression of the chosen metric."""
    chosen: Expression = None
    for name, score in _SCORES.items():
        chosen = expr.if_(param("metric") == name, of(score), chosen)
    return chosen


def scored(columns: Sequence[str], keys: int, ci: float | None) -> Chart:
    """The pairs of the slices that are shown, with scores, texts and intervals."""
    of_keys = [f"of_{at}" for at in range(keys)]
    pairs = _of_slices(alt.Chart(), columns, of_keys)
    pairs = _with_texts(_ranked(pairs, of_keys), of_keys)
    return pairs if ci is None else _with_interval(pairs, normal_critical(ci))


def _of_slices(counts: Chart, columns: Sequence[str], keys: Sequence[str]) -> Chart:
    """The pairs of the slices that the reader has chosen, of the chosen rows."""
    is_chosen = PAIR.model == param("model") if "model" in columns else param("true")
    by = {}
    for at, name in enumerate(keys):
        code, only = PAIR[f"key_{at}"], param(f"only_{at}")
        is_chosen &= (only < 0) | (code == only)
        by[name] = expr.if_(param(f"by_{at}"), code, ALL)
    return (
        counts.transform_flatten([*columns])
        .transform_filter(is_chosen)
        .transform_calculate(**by)
        .transform_aggregate(n="sum(n)", groupby=[*keys, "gold", "pred"])
    )


def _ranked(pairs: Chart, keys: Sequence[str]) -> Chart:
    """The pairs of the slices on this page of the list, with `score` and `line` of the slice."""
    pages = expr.max(expr.ceil(PAIR.slices / LINES), 1)
    first = (expr.clamp(expr.toNumber(param("page")), 1, pages) - 1) * LINES
    last = expr.min(first + LINES, PAIR.slices)
    terms = {
        name: expr.if_(PAIR.is_hit, _of_metric(operator.attrgetter(name)), 0)
        for name in ("u", "v", "w")
    }
    above, below = (_of_metric(operator.attrgetter(name)) for name in ("above", "below"))
    is_of_positive = reduce(operator.or_, (param("metric") == name for name in OF_POSITIVE))
    return (
        pairs.transform_calculate(
            is_hit=PAIR.gold == PAIR.pred, hits=expr.if_(PAIR.is_hit, PAIR.n, 0)
        )
        .transform_joinaggregate(t="sum(n)", groupby=[*keys, "gold"])
        .transform_joinaggregate(p="sum(n)", groupby=[*keys, "pred"])
        .transform_calculate(**terms)
        .transform_joinaggregate(
            s="sum(n)",
            c="sum(hits)",
            U="sum(u)",
            V="sum(v)",
            W="sum(w)",
            most="max(t)",
            groupby=[*keys],
        )
        .transform_filter(PAIR.s >= expr.toNumber(param("least")))
        .transform_calculate(below=below)
        .transform_filter((PAIR.below > 0) | ~is_of_positive)  # hide 0/0
        .transform_calculate(
            score=expr.if_(PAIR.below > 0, above / PAIR.below, 0),
            classes=expr.if_(PAIR.below > 0, SEVERAL, expr.if_(PAIR.most < s, ONE_PRED, ONE_GOLD)),
        )
        .transform_window(
            rank="dense_rank()", sort=[alt.SortField(name) for name in ("score", *keys)]
        )
        .transform_joinaggregate(slices="max(rank)")
        .transform_filter((PAIR.rank > first) & (PAIR.rank <= first + LINES))
        .transform_calculate(
            line=PAIR.rank - first,
            lines=expr.min(LINES, PAIR.slices - first),
            shown_of="Slices " + (first + 1) + " to " + last + " of " + PAIR.slices,
        )
    )


def _with_texts(pairs: Chart, keys: Sequence[str]) -> Chart:
    """The pairs with the texts of their slice and of their labels."""
    texts = param("''")
    for at, name in enumerate(keys):
        value = param(f"texts_key_{at}")[PAIR[name]]
        texts = texts + expr.if_(param(f"by_{at}"), ", " + value, "")
    after_comma = expr.substring(PAIR.texts, 2, expr.length(PAIR.texts))
    return pairs.transform_calculate(
        texts=texts,
        slice=expr.if_(expr.length(PAIR.texts) > 0, after_comma, "all rows"),
        gold_text=param("texts_gold")[PAIR.gold],
        pred_text=param("texts_gold")[PAIR.pred],
    )


def _with_interval(pairs: Chart, z: float) -> Chart:
    """Add `low` and `high`: Wilson's interval for a proportion with the variance of the score.

    One row of a pair moves the score by `influence`. It adds 1 to s, to t of its gold label and to
    p of its predicted label; a hit also adds 1 to c and to the hits of its label.
    """

    def moved(*sums: str) -> Expression:
        by_row = _of_metric(lambda metric: _moved(metric, dict.fromkeys(sums, 1)))
        return expr.if_(PAIR.below > 0, by_row, 0)

    least = _of_metric(operator.attrgetter("least"))
    spread = PAIR.share * (1 - PAIR.share)
    is_known = (PAIR.variance * PAIR.s > NOTHING) & (spread > 0)
    z2 = z**2 * expr.if_(is_known, PAIR.variance / (spread * PAIR.span * PAIR.span), 1 / PAIR.s)
    middle = PAIR.share + PAIR.z2 / 2
    reach = expr.sqrt(PAIR.z2 * spread + PAIR.z2 * PAIR.z2 / 4)
    low, high = (
        expr.if_(PAIR.below > 0, PAIR.least + PAIR.span * end / (1 + PAIR.z2), None)
        for end in (middle - reach, middle + reach)
    )
    return (
        pairs.transform_calculate(
            of_t=expr.if_(PAIR.is_hit, moved("t"), 0),
            of_p=expr.if_(PAIR.is_hit, moved("p"), 0),
            of_hit=expr.if_(PAIR.is_hit, moved("c", "hits"), 0),
        )
        .transform_joinaggregate(of_gold="sum(of_t)", groupby=["line", "gold"])
        .transform_joinaggregate(of_pred="sum(of_p)", groupby=["line", "pred"])
        .transform_calculate(
            influence=moved("s") + PAIR.of_gold + PAIR.of_pred + PAIR.of_hit,
            square=PAIR.n * PAIR.influence * PAIR.influence,
        )
        .transform_joinaggregate(variance="sum(square)", groupby=["line"])
        .transform_calculate(least=least, span=1 - PAIR.least)
        .transform_calculate(share=(PAIR.score - PAIR.least) / PAIR.span, z2=z2, low=low, high=high)
    )
