"""The scores of slices as Vega transforms, which the browser computes from counts.

They are Vega's and not JavaScript, because a chart must be drawn by every program that draws a
specification: notebooks, apps, converters to SVG. The scores are exact. Intervals need more than
counts of a slice, so they are left to `by` and to the report.

A row is a pair of labels in a cell of all keys. Each label of a cell has a row for its hits, even
if there are no hits. The row of the hits holds all counts of its label, so the scores of all slices
need no join.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import or_
from typing import Any, TypeAlias

from altair.expr.core import ConstExpression

from polars_mcc._display.chart_style import alt

Expression: TypeAlias = Any  # altair's, of the columns of a row; altair has no type with operators
AnyChart: TypeAlias = Any  # an altair chart, while transforms are added
expr, PAIR, param = alt.expr, alt.datum, ConstExpression
"""`param` is a parameter of the chart: a choice of the reader, or a list of texts."""

LINES_OF_PAGE = 25  # slices on a page of the list
ALL = -1  # the code that means all values of a key
SCORED, ONE_PRED, ONE_GOLD = range(3)
"""The column `state` of a slice: it has a score, or why its score is 0/0."""

_t, _p, _hits = PAIR.t, PAIR.p, PAIR.hits
"""A label is gold in `t` rows and predicted in `p` rows; both are true of its `hits`."""
_is_positive = PAIR.gold == param("positive")
_LABEL_TERMS: Mapping[str, Expression] = {
    "tt": _t * _t,
    "tp": _t * _p,
    "pp": _p * _p,
    "labels": 1,
    "f1s": 2 * _hits / (_t + _p),
    "gold_labels": expr.if_(_t > 0, 1, 0),
    "recalls": expr.if_(_t > 0, _hits / _t, 0),
    "t_positive": expr.if_(_is_positive, _t, 0),
    "p_positive": expr.if_(_is_positive, _p, 0),
    "hits_positive": expr.if_(_is_positive, _hits, 0),
}
"""A number of each label. The score of a slice needs their sums over its labels."""

_s, _c = PAIR.s, PAIR.c
"""A slice has `s` rows and `c` hits."""
_FRACTIONS: Mapping[str, tuple[Expression, Expression]] = {
    "mcc": (
        _c * _s - PAIR.tp,
        expr.sqrt((_s * _s - PAIR.pp) * (_s * _s - PAIR.tt)),
    ),
    "accuracy": (_c, _s),
    "balanced_accuracy": (PAIR.recalls, PAIR.gold_labels),
    "f1_macro": (PAIR.f1s, PAIR.labels),
    "kappa": (_c * _s - PAIR.tp, _s * _s - PAIR.tp),
    "precision": (PAIR.hits_positive, PAIR.p_positive),
    "recall": (PAIR.hits_positive, PAIR.t_positive),
    "f1": (2 * PAIR.hits_positive, PAIR.t_positive + PAIR.p_positive),
}
"""Each metric as a numerator and a denominator."""
POSITIVE_METRICS = ("precision", "recall", "f1")
LABEL_METRICS = tuple(name for name in _FRACTIONS if name not in POSITIVE_METRICS)

IS_SHOWN = PAIR.line == expr.min(
    expr.if_(param("isArray(shown.line)"), param("shown.line")[0], 1), PAIR.lines
)
"""Whether the matrix of this slice is shown: its line is the chosen line, or the last line."""


def scored_slices(columns: Sequence[str], n_keys: int) -> AnyChart:
    """The pairs of the slices that are shown, with scores and texts."""
    keys = [f"of_{at}" for at in range(n_keys)]
    pairs = _pairs_of_slices(alt.Chart(), columns, keys)
    return _with_texts(_on_page(_with_scores(pairs, keys), keys), keys)


def _pairs_of_slices(counts: AnyChart, columns: Sequence[str], keys: Sequence[str]) -> AnyChart:
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


def _with_scores(pairs: AnyChart, keys: Sequence[str]) -> AnyChart:
    """The pairs with `s`, `score` and `state` of their slice, without slices of few rows."""
    above = below = None
    for name, (numerator, denominator) in _FRACTIONS.items():
        is_asked = param("metric") == name
        above = expr.if_(is_asked, numerator, above)
        below = expr.if_(is_asked, denominator, below)
    is_of_positive = reduce(or_, (param("metric") == name for name in POSITIVE_METRICS))
    state = expr.if_(PAIR.most_gold < _s, ONE_PRED, ONE_GOLD)
    return (
        pairs.transform_calculate(
            is_hit=PAIR.gold == PAIR.pred, hits=expr.if_(PAIR.is_hit, PAIR.n, 0)
        )
        .transform_joinaggregate(t="sum(n)", groupby=[*keys, "gold"])
        .transform_joinaggregate(p="sum(n)", groupby=[*keys, "pred"])
        .transform_calculate(
            **{
                f"label_{name}": expr.if_(PAIR.is_hit, term, 0)
                for name, term in _LABEL_TERMS.items()
            }
        )
        .transform_joinaggregate(
            s="sum(n)",
            c="sum(hits)",
            most_gold="max(t)",
            **{name: f"sum(label_{name})" for name in _LABEL_TERMS},
            groupby=[*keys],
        )
        .transform_filter(_s >= expr.toNumber(param("least")))
        .transform_calculate(below=below)
        .transform_filter((PAIR.below > 0) | ~is_of_positive)  # hide 0/0
        .transform_calculate(
            score=expr.if_(PAIR.below > 0, above / PAIR.below, 0),
            state=expr.if_(PAIR.below > 0, SCORED, state),
        )
    )


def _on_page(pairs: AnyChart, keys: Sequence[str]) -> AnyChart:
    """The pairs of the slices on this page of the list, with the `line` of their slice."""
    pages = expr.max(expr.ceil(PAIR.slices / LINES_OF_PAGE), 1)
    first = (expr.clamp(expr.toNumber(param("page")), 1, pages) - 1) * LINES_OF_PAGE
    last = expr.min(first + LINES_OF_PAGE, PAIR.slices)
    return (
        pairs.transform_window(
            rank="dense_rank()", sort=[alt.SortField(name) for name in ("score", *keys)]
        )
        .transform_joinaggregate(slices="max(rank)")
        .transform_filter((PAIR.rank > first) & (PAIR.rank <= first + LINES_OF_PAGE))
        .transform_calculate(
            line=PAIR.rank - first,
            lines=expr.min(LINES_OF_PAGE, PAIR.slices - first),
            shown_of="Slices " + (first + 1) + " to " + last + " of " + PAIR.slices,
        )
    )


def _with_texts(pairs: AnyChart, keys: Sequence[str]) -> AnyChart:
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
