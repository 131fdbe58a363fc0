"""The scores of slices as Vega transforms, which the browser computes from counts.

A row is a pair of labels in a cell of all keys. Each label of a cell has a row for its hits, even
if there are no hits. The row of the hits holds all sums of its label, so the scores of all slices
need no join. Intervals are expensive; they are computed only for the slices that are shown.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any, NamedTuple, TypeAlias

from polars_mcc._inference.variance import NOTHING
from polars_mcc._show.chart import alt

Expression: TypeAlias = Any  # altair's, of the columns of a row; altair has no type with operators
Chart: TypeAlias = Any  # an altair chart, while transforms are added
expr = alt.expr

LINES = 25  # slices on a page of the list
ALL = -1  # the code that means all values of a key


def param(name: str) -> Expression:
    """A parameter of the chart in an expression: a choice of the reader, or a list of texts."""
    from altair.expr.core import ConstExpression  # noqa: PLC0415 - chart.py has imported altair

    return ConstExpression(name)


PAIR = alt.datum


class _Score(NamedTuple):
    """A metric as expressions of the columns of a pair.

    For a pair of labels, `t` rows have its gold label and `p` rows have its predicted label. In
    the row of the hits of a label, both numbers are of that label. A slice has `s` rows and `c`
    hits.
    """

    influence: Expression
    """How far one row moves the score: the derivative of the score by the count of the pair."""
    u: Expression = 0
    v: Expression = 0
    w: Expression = 0
    """The terms of a label; their sums over the labels of a slice are U, V and W."""
    above: Expression = PAIR.U
    below: Expression = PAIR.V
    least: float = 0.0


_HIT = expr.if_(PAIR.is_hit, 1, 0)
_S2 = PAIR.s * PAIR.s
_MET = PAIR.p_of_gold + PAIR.t_of_pred
_JOINT = PAIR.c * PAIR.s - PAIR.U
_AGREE = _HIT * PAIR.s + PAIR.c - _MET
_SPREAD = expr.sqrt((_S2 - PAIR.V) * (_S2 - PAIR.W))
_IS_GOLD, _IS_PRED = (side == param("positive") for side in (PAIR.gold, PAIR.pred))
_SCORES: Mapping[str, _Score] = {
    "mcc": _Score(
        u=PAIR.t * PAIR.p,
        v=PAIR.p * PAIR.p,
        w=PAIR.t * PAIR.t,
        above=_JOINT,
        below=_SPREAD,
        influence=_AGREE / _SPREAD
        - PAIR.score * ((PAIR.s - PAIR.p) / (_S2 - PAIR.V) + (PAIR.s - PAIR.t) / (_S2 - PAIR.W)),
        least=-1.0,
    ),
    "accuracy": _Score(above=PAIR.c, below=PAIR.s, influence=(_HIT - PAIR.score) / PAIR.s),
    "balanced_accuracy": _Score(
        u=expr.if_(PAIR.t > 0, PAIR.hits / PAIR.t, 0),
        v=expr.if_(PAIR.t > 0, 1, 0),
        influence=(_HIT - PAIR.hits_of_gold / PAIR.t) / (PAIR.t * PAIR.V),
    ),
    "f1_macro": _Score(
        u=2 * PAIR.hits / (PAIR.t + PAIR.p),
        v=1,
        influence=2
        * (
            _HIT / (PAIR.t + PAIR.p_of_gold)
            - PAIR.hits_of_gold / expr.pow(PAIR.t + PAIR.p_of_gold, 2)
            - PAIR.hits_of_pred / expr.pow(PAIR.t_of_pred + PAIR.p, 2)
        )
        / PAIR.V,
    ),
    "kappa": _Score(
        u=PAIR.t * PAIR.p,
        above=_JOINT,
        below=_S2 - PAIR.U,
        influence=(_AGREE - PAIR.score * (2 * PAIR.s - _MET)) / (_S2 - PAIR.U),
        least=-1.0,
    ),
    "precision": _Score(
        u=expr.if_(_IS_GOLD, PAIR.hits, 0),
        v=expr.if_(_IS_GOLD, PAIR.p, 0),
        influence=expr.if_(_IS_PRED, (_HIT - PAIR.score) / PAIR.V, 0),
    ),
    "recall": _Score(
        u=expr.if_(_IS_GOLD, PAIR.hits, 0),
        v=expr.if_(_IS_GOLD, PAIR.t, 0),
        influence=expr.if_(_IS_GOLD, (_HIT - PAIR.score) / PAIR.V, 0),
    ),
    "f1": _Score(
        u=expr.if_(_IS_GOLD, 2 * PAIR.hits, 0),
        v=expr.if_(_IS_GOLD, PAIR.t + PAIR.p, 0),
        influence=(expr.if_(_IS_GOLD, 2 * _HIT - PAIR.score, 0) - expr.if_(_IS_PRED, PAIR.score, 0))
        / PAIR.V,
    ),
}
OF_POSITIVE = ("precision", "recall", "f1")
METRICS = tuple(name for name in _SCORES if name not in OF_POSITIVE)


IS_SHOWN = PAIR.line == expr.min(
    expr.if_(param("isArray(shown.line)"), param("shown.line")[0], 1), PAIR.lines
)
"""Whether the matrix of this slice is shown: its line is the chosen line, or the last line."""


def _of_metric(of: Callable[[_Score], Any]) -> Any:  # noqa: ANN401 - an expression
    """An expression of the chosen metric, such as its influence."""
    *others, last = _SCORES
    chosen = of(_SCORES[last])
    for name in reversed(others):
        chosen = expr.if_(param("metric") == name, of(_SCORES[name]), chosen)
    return chosen


def of_slices(counts: Chart, columns: Sequence[str], keys: Sequence[str]) -> Chart:
    """The pairs of the slices that the reader has chosen, of the chosen rows."""
    places = range(len(keys))
    is_chosen = PAIR.model == param("model") if "model" in columns else param("true")
    for at in places:
        only = param(f"only_{at}")
        is_chosen &= (only < 0) | (PAIR[f"key_{at}"] == only)
    of = {name: expr.if_(param(f"by_{at}"), PAIR[f"key_{at}"], ALL) for at, name in enumerate(keys)}
    return (
        counts.transform_flatten([*columns])
        .transform_filter(is_chosen)
        .transform_calculate(**of)
        .transform_aggregate(n="sum(n)", groupby=[*keys, "gold", "pred"])
    )


def ranked(pairs: Chart, keys: Sequence[str]) -> Chart:
    """The pairs of the slices on this page of the list, with `score` and `line` of the slice."""
    pages = expr.max(expr.ceil(PAIR.slices / LINES), 1)
    first = (expr.clamp(expr.toNumber(param("page")), 1, pages) - 1) * LINES
    sums = {
        name: expr.if_(PAIR.is_hit, _of_metric(operator.attrgetter(name)), 0)
        for name in ("u", "v", "w")
    }
    last = expr.min(first + LINES, PAIR.slices)
    is_of_positive = reduce(operator.or_, (param("metric") == name for name in OF_POSITIVE))
    above, below = (_of_metric(operator.attrgetter(name)) for name in ("above", "below"))
    return (
        pairs.transform_calculate(is_hit=PAIR.gold == PAIR.pred)
        .transform_calculate(hits=expr.if_(PAIR.is_hit, PAIR.n, 0))
        .transform_joinaggregate(t="sum(n)", hits_of_gold="sum(hits)", groupby=[*keys, "gold"])
        .transform_joinaggregate(p="sum(n)", hits_of_pred="sum(hits)", groupby=[*keys, "pred"])
        .transform_calculate(**sums)
        .transform_joinaggregate(
            s="sum(n)", c="sum(hits)", U="sum(u)", V="sum(v)", W="sum(w)", groupby=[*keys]
        )
        .transform_filter(PAIR.s >= expr.toNumber(param("least")))
        .transform_calculate(below=below)
        .transform_filter((PAIR.below > 0) | ~is_of_positive)  # hide 0/0
        .transform_calculate(score=expr.if_(PAIR.below > 0, above / PAIR.below, 0))
        .transform_window(
            place="dense_rank()", sort=[alt.SortField(name) for name in ("score", *keys)]
        )
        .transform_joinaggregate(slices="max(place)")
        .transform_filter((PAIR.place > first) & (PAIR.place <= first + LINES))
        .transform_calculate(
            line=PAIR.place - first,
            lines=expr.min(LINES, PAIR.slices - first),
            shown_of="Slices " + (first + 1) + " to " + last + " of " + PAIR.slices,
        )
    )


def named(pairs: Chart, keys: Sequence[str]) -> Chart:
    """The pairs with the texts of their slice and of their labels."""
    text = param("''")
    for at, name in enumerate(keys):
        value = param(f"texts_key_{at}")[PAIR[name]]
        text = text + expr.if_(param(f"by_{at}"), ", " + value, "")
    after_comma = expr.substring(PAIR.named, 2, expr.length(PAIR.named))
    return pairs.transform_calculate(
        named=text,
        gold_text=param("texts_gold")[PAIR.gold],
        pred_text=param("texts_gold")[PAIR.pred],
    ).transform_calculate(slice=expr.if_(expr.length(PAIR.named) > 0, after_comma, "all rows"))


def with_interval(scored: Chart, z: float) -> Chart:
    """Add `low` and `high`: Wilson's interval for a proportion with the variance of the score."""
    pair = PAIR
    least = _of_metric(lambda metric: metric.least)
    return (
        scored.transform_calculate(
            t_if_hit=expr.if_(pair.is_hit, pair.t, 0), p_if_hit=expr.if_(pair.is_hit, pair.p, 0)
        )
        .transform_joinaggregate(p_of_gold="max(p_if_hit)", groupby=["line", "gold"])
        .transform_joinaggregate(t_of_pred="max(t_if_hit)", groupby=["line", "pred"])
        .transform_calculate(
            influence=expr.if_(
                (pair.below > 0) & (pair.n > 0), _of_metric(lambda metric: metric.influence), 0
            )
        )
        .transform_calculate(square=pair.n * pair.influence * pair.influence)
        .transform_joinaggregate(variance="sum(square)", groupby=["line"])
        .transform_calculate(least=least, span=1 - least)
        .transform_calculate(share=(pair.score - pair.least) / pair.span)
        .transform_calculate(
            z2=z**2
            * expr.if_(
                (pair.variance * pair.s > NOTHING) & (pair.share * (1 - pair.share) > 0),
                pair.variance / (pair.share * (1 - pair.share) * pair.span * pair.span),
                1 / pair.s,
            )
        )
        .transform_calculate(
            middle=(pair.share + pair.z2 / 2) / (1 + pair.z2),
            reach=expr.sqrt(pair.z2 * pair.share * (1 - pair.share) + pair.z2 * pair.z2 / 4)
            / (1 + pair.z2),
        )
        .transform_calculate(
            low=expr.if_(pair.below > 0, pair.least + pair.span * (pair.middle - pair.reach), None),
            high=expr.if_(
                pair.below > 0, pair.least + pair.span * (pair.middle + pair.reach), None
            ),
        )
    )
