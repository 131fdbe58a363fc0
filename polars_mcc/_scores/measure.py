"""Classes, and pairs if a metric needs them → metrics of each slice, in one query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from polars_mcc._counts.classes import is_scored, with_margins
from polars_mcc._counts.exact import Numbers, Product
from polars_mcc._counts.sliced import SlicedLog
from polars_mcc._scores.class_scores import TwoByTwo, class_scores
from polars_mcc._scores.metric import Metric, Terms
from polars_mcc._scores.metrics import MCC
from polars_mcc._scores.r_k import Sums, count_of, summed

_SEEN = "seen"


def measure(
    log: SlicedLog,
    classes: pl.LazyFrame,
    metrics: Sequence[Metric] = (MCC,),
    *,
    pairs: pl.LazyFrame | None = None,
    positive: pl.Expr | None = None,
) -> pl.LazyFrame:
    """Compute the metrics of each slice, with its `n` and `n_null`.

    Metrics of pairs need `pairs`, and the classes must then come from these pairs. `positive` is
    true for the positive class.
    """
    class_sums = {name: sum_ for metric in metrics for name, sum_ in metric.class_sums.items()}
    pair_sums = {name: sum_ for metric in metrics for name, sum_ in metric.pair_sums.items()}
    if class_sums or pair_sums:
        classes = classes.cache()
    sums = summed(log, classes, positive)
    slices = sums.slices
    if class_sums:
        slices = slices.cache()
        beside = log.beside(classes, slices.select(*log.slice, "s", "null"))
        rows = class_scores(log, beside).with_columns(
            pl.col("support", "predicted", "hits", "n").cast(pl.Float64)
        )
        slices = log.beside(slices, log.per_slice(rows, **class_sums))
    if pair_sums and pairs is not None:
        slices = log.beside(slices, _over_pairs(log, classes, pairs, pair_sums))
    floats = terms_of(log, sums.sums, has_positive=positive is not None)
    n = count_of(log, Terms.s)
    if log.is_multilabel:  # Label totals are multiplied too: they must fit a count.
        n = pl.when(count_of(log, pl.max_horizontal(Terms.t, Terms.p)) >= 0).then(n)
    values = {one.name: one.value(Terms().of(one, log.zero_division)) for one in metrics}
    return slices.with_columns(**floats).select(
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
        n_null=log.numbers.as_count(pl.col("null")),
    )


def terms_of(log: SlicedLog, sums: Sums, *, has_positive: bool) -> dict[str, pl.Expr]:
    """Compute the columns of `Terms` from the sums of a slice, each rounded once."""
    numbers, s = log.numbers, sums.s
    var_gold, var_pred = sums.variances(numbers)
    products = {
        "cov": sums.covariance(numbers),
        "var_gold": var_gold,
        "var_pred": var_pred,
        "ss": numbers.product(s, s),
        "cs": numbers.product(sums.c, s),
        "t_p": numbers.product(sums.t, sums.p),
        "apart": numbers.product(s, s) - sums.tp,
        "most": numbers.product(pl.col("overlap"), s) - sums.tp,
    }
    of_positive = {}
    if has_positive:
        t, p, c = (pl.col(f"positive:{name}") for name in ("gold", "pred", "tp"))
        table = TwoByTwo.exact(numbers, t, p, c, s)
        of_positive = {f"positive:{name}": one for name, one in table._asdict().items()}
        most = numbers.product(pl.min_horizontal(t, p), s) - numbers.product(t, p)
        products["positive:most"] = most
    return {
        **({} if log.is_multilabel else {"t": sums.t, "p": sums.p}),
        **of_positive,
        "total": numbers.from_units(s, pl.col("unit")).cast(pl.Float64),
        **{name: product.to_float() for name, product in products.items()},
    }


def _over_pairs(
    log: SlicedLog, classes: pl.LazyFrame, pairs: pl.LazyFrame, sums: Mapping[str, pl.Expr]
) -> pl.LazyFrame:
    """Aggregate the pairs of each slice by `sums`.

    The expressions in `sums` may use `gold`, `pred`, and floats, exact and rounded once: `n`,
    `share` = n/s, `expected` = t·p/s², the share by chance, and `excess` = share - expected.
    The result also has `unseen`, the expected share of all pairs that do not occur.
    """
    numbers: Numbers = log.numbers
    n, t, p, s = (pl.col(name) for name in ("units", "gold_t", "pred_p", "s"))
    scored = pairs.filter(is_scored(log) & (pl.col("n") > 0))
    cells = with_margins(log, scored, classes)
    cells = cells.with_columns(s=log.within_slice(n.sum()))
    squared, guessed = numbers.product(s, s), numbers.product(t, p)
    excess = numbers.product(n, s) - guessed

    def of_square(product: Product) -> pl.Expr:
        return product.to_float() / squared.to_float()

    rows = cells.select(
        *log.slice,
        "gold",
        "pred",
        "s",
        **guessed.columns(_SEEN),
        n=pl.col("n").cast(pl.Float64),
        share=n.cast(pl.Float64) / s.cast(pl.Float64),
        expected=of_square(guessed),
        excess=of_square(excess),
    )
    seen = guessed.from_columns(_SEEN, pl.col).sum()
    slices = log.per_slice(rows, **sums, s=s.max(), **seen.columns(_SEEN))
    left = numbers.product(s, s) - seen.from_columns(_SEEN, pl.col)
    return slices.select(*log.slice, *sums, unseen=of_square(left))
