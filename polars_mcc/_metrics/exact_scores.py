"""Classes, or pairs → metrics of each slice, in one query; labelled rows may stand for others.

Facts are numbers about slices, computed like metrics, that gates judge by and no answer shows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from typing import Literal, cast

import polars as pl
import polars.selectors as cs

from polars_mcc._counts.class_counts import (
    SCALE,
    classes_of_pairs,
    is_scored,
    of_sets,
    with_margins,
)
from polars_mcc._counts.exact_sums import Numbers, Product
from polars_mcc._counts.label_hashes import with_hashes, with_wide_labels
from polars_mcc._counts.reweighted_pairs import reweighted
from polars_mcc._counts.sliced_log import CLASS, GOLD_CLASS, LABELLED, SlicedLog
from polars_mcc._metrics.averages_and_f_beta import LABELS_OF_LOG, OfLists
from polars_mcc._metrics.groups_as_lists import field, struct
from polars_mcc._metrics.mcc_and_one_vs_rest import (
    CLASS_DTYPES,
    Col,
    Sums,
    TwoByTwo,
    class_scores,
    count_of,
    summed,
)
from polars_mcc._metrics.metric_type import Metric, Sum, Terms, Value, sum_name
from polars_mcc._metrics.score_levels_and_bins import (
    BOTH,
    in_floats,
    levels_of,
    of_bins,
    probabilities,
)

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
    has_classes = any(metric.classes for metric in metrics)
    has_pairs = any(metric.pairs for metric in metrics)
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
    """The sums that metrics define over levels and bins of scores; the plan uses levels twice.

    The result has `concordant`, twice the number of pairs of a positive and a negative row whose
    positive row has the larger score; a tie counts as a half. It is exact, and rounded once.
    """
    binnings = dict.fromkeys(metric.binning for metric in metrics if metric.bins)
    levels = levels_of(log, pairs, binnings).cache()
    positive, negative = map(pl.col, BOTH)
    below = 2 * (pl.col("all_negative") - pl.col("fp")) + negative
    concordant = log.numbers.product(positive, below).carried().sum()
    exact = log.per_slice(levels, **concordant.columns("concordant"))
    number = concordant.from_columns("concordant", pl.col).to_float()
    floats = in_floats(log, levels)
    if any(metric.are_probabilities for metric in metrics):
        floats = probabilities(log, floats)
    slices = exact.select(*log.slice, concordant=number)
    sums = _by_column(metrics, "levels")
    slices = log.beside(slices, log.per_slice_in_order(floats, ["pred"], sums))
    for binning in binnings:
        sums = _by_column([metric for metric in metrics if metric.binning == binning], "bins")
        bins = log.per_slice_in_order(of_bins(log, floats, binning), ["bin"], sums)
        slices = log.beside(slices, bins)
    return slices


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
    # It may be 0, where a difference of floats is not.
    tn = numbers.times(column("k"), s) - numbers.times(pl.lit(1), sums.t + sums.p - sums.c)
    return {
        **{f"positive:{name}": number for name, number in of_positive._asdict().items()},
        "total": numbers.from_units(s, column("unit")).cast(pl.Float64),
        **{name: product.to_float() for name, product in products.items()},
        "tn": tn.to_units(),
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


def measure_pairs(
    log: SlicedLog,
    pairs: pl.LazyFrame,
    metrics: Sequence[Metric],
    classes: pl.LazyFrame | None = None,
    *,
    positive: pl.Expr | None = None,
) -> pl.LazyFrame:
    """Compute the metrics of each slice from its pairs, or `classes` of them: see `measure`.

    If labelled rows stand for others, `n` and `n_null` count the rows as they are, and all metrics
    are null where a prediction has no labelled row.
    """
    log, pairs = reweighted(log, pairs)
    of_all = [metric for metric in metrics if not (log.is_reweighted and metric.is_of_labelled)]
    classes = classes_of_pairs(log, pairs) if classes is None else classes
    scores = measure(log, classes, of_all, pairs=pairs, positive=positive)
    if not log.is_reweighted:
        return scores
    known = {metric.name: pl.when(pl.col("n") > 0).then(metric.name) for metric in of_all}
    of_labelled = [metric for metric in metrics if metric.is_of_labelled]
    sizes = _of_labelled(log, pairs, of_labelled, positive)
    return log.beside(sizes, scores.select(*log.slice, **known))


def with_sizes(log: SlicedLog, pairs: pl.LazyFrame, classes: pl.LazyFrame) -> pl.LazyFrame:
    """The scores of classes, with `n` and `n_null` of their slices, which count rows as they are.

    `pairs` and `log` are those that the scores come from.
    """
    if not log.is_reweighted:
        return classes
    scores = ("label", *(name for name in CLASS_DTYPES if name != "n"))
    return log.beside(classes.select(*log.slice, *scores), _of_labelled(log, pairs, [], None))


def _of_labelled(
    log: SlicedLog, pairs: pl.LazyFrame, metrics: Sequence[Metric], positive: pl.Expr | None
) -> pl.LazyFrame:
    """The sizes of slices and other facts, from the labelled rows as they are."""
    assert log.labelled_numbers is not None  # noqa: S101 - for the type checker
    own = replace(log, numbers=log.labelled_numbers, labelled_numbers=None)
    labelled = pairs.with_columns(n=LABELLED)
    return measure(own, classes_of_pairs(own, labelled), metrics, pairs=labelled, positive=positive)


FACT = "polars_mcc:"
"""Begins the names of facts, which no answer shows."""


def fact(name: str, value: Value) -> Metric:
    """A number about each slice, computed like a metric, that no answer shows."""
    return Metric(
        name,
        lambda terms: value(terms).cast(pl.Float64),
        "",
        "",
        None,
        no_interval="it is no score",
    )


def defined(metric: Metric) -> Metric:
    """The fact whether a metric is defined: 1, or 0 where it is 0/0.

    A mean or minimum over classes is 0/0 if the score of each of these classes is. The fact is null
    where the gold rows that the metric needs are missing: no model could change that. A metric of a
    user does not say which gold rows it needs: NaN counts as 0/0, and null is not judged.
    """

    def value(terms: Terms) -> pl.Expr:
        filled, raw = terms.of(metric, 0.0), terms.of(metric, None)
        raw.sums = {**raw.sums, **raw.sums_of(is_defined)}
        filled_value, raw_value = (metric.value(each).cast(pl.Float64) for each in (filled, raw))
        has_gold = metric.has_gold(terms) if metric.has_gold else ~filled_value.is_infinite()
        is_finite = raw_value.is_not_nan() if metric.is_log else raw_value.is_finite()
        return pl.when(has_gold).then(is_finite.fill_null(value=False).cast(pl.Float64))

    is_defined = replace(
        fact(f"{FACT}defined {metric.name}", value),
        classes=metric.classes,
        is_filled=False,
        is_of_scores=metric.is_of_scores,
        of_row=metric.of_row,
        mean_over=metric.mean_over,
    )
    return is_defined


def most_rows(metric: Metric) -> Metric | None:
    """The fact how many rows of a proportion a metric of two or more gold classes may count as.

    The mean of K equal rates of t_k rows varies as a rate of K² / Σ 1/t_k rows. Each t_k is less by
    half a row, but at least half a row. A rate `of_rest` is of s - t_k rows. For two classes of s
    rows, K² / Σ 1/t_k is 2 (s - Σ t_k² / s). MCC and its kin vary about so, with any number of
    classes: four rows less, so that one row of a rare class tells nothing. None: the metric counts
    rows, as recall does.
    """
    name = f"{FACT}most {metric.name}"
    if metric.needs_all_classes:

        def inverse(col: Col) -> pl.Expr:
            rows = col("n") - col("support") if metric.of_rest else col("support")
            return (1 / (rows - 0.5).clip(lower_bound=0.5)).sum()

        classes: Mapping[str, Sum] = {"k": lambda col: col("support").count(), "inverse": inverse}
        rows = fact(name, lambda terms: terms["k"] ** 2 / terms["inverse"])
        return replace(rows, classes=classes, is_of_labelled=True)
    if not metric.is_of_two or metric.is_of_scores:
        return None

    def value(terms: Terms) -> pl.Expr:
        varies = terms.positive.var_gold if metric.is_of_positive else terms.var_gold
        return (2 * varies / terms.rows_squared * terms.n - 4).clip(lower_bound=0)

    return replace(fact(name, value), is_of_labelled=True)


_OTHER = "polars_mcc:other"
"""The column with the class that a class is told from."""
_GOLD_ROWS = replace(fact(f"{FACT}gold rows", lambda terms: terms.positive.gold), is_of_scores=True)


def means_over_classes(
    sliced: SlicedLog, cells: pl.LazyFrame, asked: Sequence[Metric], positive: pl.Expr | None
) -> pl.LazyFrame:
    """Metrics of a score per class: each class is scored against the rest; null if one is null.

    A mean weighted by gold rows leaves out classes without any. A mean over the pairs of K classes
    counts a row K - 1 times as positive, by its own score, and K - 1 times as negative.
    """
    whole = replace(sliced, pair_splits=())
    one_class = cells.filter(pl.col(CLASS) == pl.col(CLASS).min())  # each class has all rows
    slices = measure(whole, classes_of_pairs(whole, one_class), [], positive=positive)
    of_duels = [metric for metric in asked if metric.mean_over == "pairs of classes"]
    of_classes = [metric for metric in asked if metric not in of_duels]
    kinds = [([CLASS], cells, of_classes)] if of_classes else []
    kinds += [([CLASS, _OTHER], _duels(cells), of_duels)] if of_duels else []
    for splits, counts, metrics in kinds:
        apart, classes = whole.split_by(*splits), classes_of_pairs(whole.split_by(*splits), counts)
        each = measure(apart, classes, [*metrics, _GOLD_ROWS], pairs=counts, positive=positive)
        means = {metric.name: _mean(metric) for metric in metrics}
        slices = whole.beside(slices, whole.per_slice_in_order(each, splits, means))
    return slices


def _duels(cells: pl.LazyFrame) -> pl.LazyFrame:
    """For each class and another, the rows of both, with the score of the class."""
    dtype = cells.collect_schema()[CLASS]
    names = cast("pl.Enum", dtype).categories
    sides = [(one, gold, other) for one, other in permutations(names, 2) for gold in (one, other)]
    schema = dict.fromkeys((CLASS, GOLD_CLASS, _OTHER), dtype)
    return cells.join(pl.LazyFrame(sides, schema, orient="row"), on=[CLASS, GOLD_CLASS])


def _mean(metric: Metric) -> pl.Expr:
    """The mean of a metric over classes, or their pairs; null if one of them is null."""
    value, rows = pl.col(metric.name), pl.col(_GOLD_ROWS.name)
    if metric.mean_over != "gold rows":
        return pl.when(value.null_count() == 0).then(value.mean())
    is_lost = (value.is_null() & (rows > 0)).any()
    return pl.when(~is_lost & (rows.sum() > 0)).then((value * rows).sum() / rows.sum())
