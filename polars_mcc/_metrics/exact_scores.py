"""Classes, and pairs if a metric needs them → metrics of each slice, in one query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import polars as pl
import polars.selectors as cs

from polars_mcc._counts.class_counts import is_scored, with_margins
from polars_mcc._counts.exact_sums import Numbers, Product
from polars_mcc._counts.label_hashes import with_hashes, with_wide_labels
from polars_mcc._counts.multilabel_counts import SCALE, of_sets
from polars_mcc._counts.sliced_log import SlicedLog
from polars_mcc._metrics.groups_as_lists import field, struct
from polars_mcc._metrics.mcc import Sums, count_of, summed
from polars_mcc._metrics.metric_type import Metric, Terms, sum_name
from polars_mcc._metrics.one_vs_rest import CLASS_DTYPES, Col, TwoByTwo, class_scores
from polars_mcc._metrics.score_levels_and_bins import levels_of, over_levels
from polars_mcc._metrics.sets_of_labels import LABELS_OF_LOG, OfLists

_OCCURS = "seen"
_ROWS = "of:rows"


def measure(
    log: SlicedLog,
    classes: pl.LazyFrame,
    metrics: Sequence[Metric],
    *,
    pairs: pl.LazyFrame | None = None,
    positive: pl.Expr | None = None,
) -> pl.LazyFrame:
    """Compute the metrics of each slice, with its `n`, and the rows not scored.

    Metrics of pairs or of scores need `pairs`, and the classes must then come from these pairs.
    `positive` is true for the positive class.
    """
    has_classes, has_pairs = (
        any(metric.classes for metric in metrics),
        any(metric.pairs for metric in metrics),
    )
    terms = OfLists() if log.is_multilabel else Terms()
    values = {metric.name: metric.value(terms.of(metric, log.zero_division)) for metric in metrics}
    needs_labels = any(LABELS_OF_LOG in value.meta.root_names() for value in values.values())
    if has_classes or has_pairs or needs_labels:
        classes = classes.cache()
    slices, sums = summed(log, classes, positive)
    for is_filled in {metric.is_filled for metric in metrics if metric.classes}:
        apart = log if is_filled else replace(log, zero_division=None)
        scores = class_scores(apart, classes).with_columns(pl.col(*CLASS_DTYPES).cast(pl.Float64))
        alike = [metric for metric in metrics if metric.is_filled == is_filled]
        slices = log.beside(slices, _aggregated(log, scores, ["label"], alike, "classes"))
    if has_pairs and pairs is not None:
        slices = log.beside(slices, _over_pairs(log, classes, pairs, metrics))
    if log.is_of_scores and pairs is not None:
        slices = log.beside(slices, _over_scores(log, pairs, metrics))
    if needs_labels:
        occurs = pl.max_horizontal("gold_n", "pred_n") > 0
        labels = classes.filter(occurs).select(pl.col("label").n_unique().alias(LABELS_OF_LOG))
        slices = slices.join(labels, how="cross")
    n = count_of(log, Terms.s)
    if log.is_multilabel:  # Label totals are multiplied too: they must fit a count.
        n = pl.when(count_of(log, pl.max_horizontal(Terms.t, Terms.p)) >= 0).then(n)
    columns = terms_of(log.numbers, sums)
    if log.is_multilabel:
        of_rows = of_sets(log.numbers)
        columns |= {name: total.to_units() / float(SCALE) for name, total in of_rows.items()}
    return slices.with_columns(**columns).select(
        *log.slice,
        n=n,
        **{
            metric.name: (
                count_of(log, values[metric.name])
                if metric.is_count
                else pl.when(n > 0).then(values[metric.name])
            )
            for metric in metrics
        },
        **log.unscored_as(*(log.numbers.as_count(pl.col(name)) for name in ("null", "waiting"))),
    )


def with_labels_for(log: SlicedLog, metrics: Sequence[Metric]) -> SlicedLog:
    """The log with labels as metrics need them: hashes, wide integers, or as they are."""
    needed = {metric.labels_needed for metric in metrics}
    if "values" in needed:
        return with_wide_labels(log)
    return log if "names" in needed else with_hashes(log)


def _by_column(
    metrics: Sequence[Metric],
    over: Literal["classes", "pairs", "levels", "bins"],
    column: Col = pl.col,
) -> dict[str, pl.Expr]:
    """The sums of all metrics over classes, pairs, levels or bins, by column name."""
    return {
        sum_name(metric.name, name): sum_(column)
        for metric in metrics
        for name, sum_ in getattr(metric, over).items()
    }


def _aggregated(
    log: SlicedLog,
    frame: pl.LazyFrame,
    order: Sequence[str],
    metrics: Sequence[Metric],
    over: Literal["classes", "pairs"],
    **in_any_order: pl.Expr,
) -> pl.LazyFrame:
    """The sums of metrics over the classes or pairs of each slice, in an order of these rows.

    The rows of a slice become a sorted list: so engines of Polars add up floats in one way, with
    and without keys. An expression of a user has columns of its own, so it aggregates them in any
    order.
    """
    sums, plain = _by_column(metrics, over, field), _by_column(metrics, over)
    own = {name: plain[name] for name, sum_ in sums.items() if sum_.meta.eq(plain[name])}
    in_order = {name: sum_ for name, sum_ in sums.items() if name not in own}
    named = {column for name in in_order for column in plain[name].meta.root_names()}
    rows = pl.struct(*order, *sorted(named - {*order})).implode()
    slices = log.per_slice(frame, **own, **in_any_order, **({_ROWS: rows} if in_order else {}))
    if in_order:
        in_lists = pl.col(_ROWS).list.eval(pl.element().sort_by(*map(field, order)))
        of_lists = in_lists.list.eval(struct(in_order)).list.first().struct.unnest()
        slices = slices.with_columns(of_lists).drop(_ROWS)
    # Labels are Int128 here, to compute with. A result that Int64 cannot hold is an error.
    results = cs.by_name(*sums) & cs.by_dtype(pl.Int128)
    return slices.with_columns(results.cast(pl.Int64)) if sums else slices


def _over_scores(log: SlicedLog, pairs: pl.LazyFrame, metrics: Sequence[Metric]) -> pl.LazyFrame:
    """The sums over levels and bins of scores that metrics define, and `concordant`."""
    binnings = dict.fromkeys(metric.binning for metric in metrics if metric.bins)
    by_binning = {
        binning: _by_column([one for one in metrics if one.binning == binning], "bins")
        for binning in binnings
    }
    levels = levels_of(log, pairs, binnings).cache()
    of_levels = _by_column(metrics, "levels")
    are_probabilities = any(metric.are_probabilities for metric in metrics)
    return over_levels(log, levels, of_levels, by_binning, are_probabilities=are_probabilities)


def terms_of(numbers: Numbers, sums: Sums, column: Col = pl.col) -> dict[str, pl.Expr]:
    """Compute the columns of `Terms` from the sums of a slice, each rounded once."""
    s, product = sums.s, numbers.product
    products = {
        **dict(zip(("cov", "var_gold", "var_pred"), sums.moments(numbers), strict=True)),
        "ss": product(s, s),
        "cs": product(sums.c, s),
        "t_p": product(sums.t, sums.p),
        "apart": product(s, s) - sums.gold_pred,
        "most": product(column("overlap"), s) - sums.gold_pred,
    }
    t, p, c = (column(f"positive:{name}") for name in ("gold", "pred", "tp"))
    products["positive:most"] = product(pl.min_horizontal(t, p), s) - product(t, p)
    of_positive = TwoByTwo.exact(numbers, t, p, c, s)
    # They may be 0, where a difference of floats is not.
    of_all, one = numbers.times(column("k"), s), pl.lit(1)
    rests = {"rest": sums.t, "tn": sums.t + sums.p - sums.c}
    return {
        **{f"positive:{name}": number for name, number in of_positive._asdict().items()},
        "total": numbers.from_units(s, column("unit")).cast(pl.Float64),
        **{name: product.to_float() for name, product in products.items()},
        **{name: (of_all - numbers.times(one, n)).to_units() for name, n in rests.items()},
    }


def _over_pairs(
    log: SlicedLog, classes: pl.LazyFrame, pairs: pl.LazyFrame, metrics: Sequence[Metric]
) -> pl.LazyFrame:
    """Aggregate the pairs of each slice by the sums of metrics: see `OfPairs`."""
    scored = pairs.filter(is_scored(log) & (pl.col("n") > 0))
    cells = with_margins(log, scored, classes)
    cells = cells.with_columns(s=log.within_slice(pl.col("units").sum()))
    of_pairs = OfPairs(log.numbers)
    rows = cells.select(*log.slice, "gold", "pred", **of_pairs.columns())
    of_slice = of_pairs.sums()
    slices = _aggregated(log, rows, ["gold", "pred"], metrics, "pairs", **of_slice)
    return slices.with_columns(unseen=of_pairs.unseen()).drop(of_slice)


@dataclass(frozen=True)
class OfPairs:
    """What metrics of pairs aggregate, from `n`, `units`, `gold_t`, `pred_p` and `s` of each pair.

    Their expressions may use `gold`, `pred`, and floats, exact and rounded once: `n`,
    `share` = n/s, `expected` = t·p/s², the share by chance, and `excess` = share - expected.
    A slice also has `unseen`, the expected share of all pairs that do not occur.
    """

    numbers: Numbers
    column: Col = pl.col

    def columns(self) -> dict[str, pl.Expr]:
        """The columns of each pair, besides its labels."""
        n, s = self.column("units"), self.column("s")
        guessed = self.numbers.product(self.column("gold_t"), self.column("pred_p"))
        return {
            "s": s,
            **guessed.columns(_OCCURS),
            "n": self.column("n").cast(pl.Float64),
            "share": _divided(n.cast(pl.Float64), s.cast(pl.Float64)),
            "expected": self._of_square(guessed),
            "excess": self._of_square(self.numbers.product(n, s) - guessed),
        }

    def sums(self) -> dict[str, pl.Expr]:
        """The sums of a slice that `unseen` needs, from these columns."""
        return {"s": self.column("s").max(), **self._seen.sum().columns(_OCCURS)}

    def unseen(self) -> pl.Expr:
        """The expected share of all pairs that do not occur, from these sums."""
        s = self.column("s")
        return self._of_square(self.numbers.product(s, s) - self._seen)

    @property
    def _seen(self) -> Product:
        any_product = self.numbers.product(pl.lit(0), pl.lit(0))
        return any_product.from_columns(_OCCURS, self.column)

    def _of_square(self, part: Product) -> pl.Expr:
        s = self.column("s")
        return _divided(part.to_float(), self.numbers.product(s, s).to_float())


def _divided(part: pl.Expr, whole: pl.Expr) -> pl.Expr:
    """Divide, rounded once also where `whole` is one number for all rows.

    Polars then multiplies by 1 / whole, which rounds twice: one slice would differ from several.
    """
    return part / (whole + 0 * part)
