"""Two classes: the widest gaps in error rates between the slices of a key, tested.

The error rates are the share of the rows of each gold label that is predicted as the other: with a
positive label, the false positive rate and the false negative rate. Each pair of slices is tested
by the likelihood ratio of two proportions with Yates' correction. The p-values are corrected for
all pairs of all keys (Benjamini and Hochberg 1995).
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from polars_mcc._comparisons.corrected_p_values import with_adjusted
from polars_mcc._comparisons.evidence import Scale
from polars_mcc._counts.sliced_log import SET
from polars_mcc._display.table_and_to_numpy import slices_in_words
from polars_mcc._intervals.count_arrays import floats, of_arrays
from polars_mcc._intervals.interval_methods import normal

MAX_SLICES_OF_GAPS = 50  # slices of a key, at most: each pair of them is compared
_RATE = Scale(1, 0.0, 1.0)


def gaps(classes: pl.DataFrame, keys: Sequence[str], min_n: float, level: float) -> pl.DataFrame:
    """The widest significant gap of each key and gold label, the widest first.

    `classes` is an answer of the verb, of each key. Slices of fewer than `min_n` rows of the gold
    label are left out. Columns: `model` if there are several, `key`, `gold`, `pred`; `slice`,
    `n` and `rate` of both slices, with `_to` for the lower rate; `diff`, `p_adjusted`.
    """
    models = ["model"] if "model" in classes.columns else []
    labels = classes["label"].unique().sort()
    support, hits = pl.col("support"), pl.col("hits")
    rates = classes.filter(support >= min_n).select(
        *models,
        pl.col(SET).alias("key"),
        pl.col("label").alias("gold"),
        pl.col("label").replace_strict(labels, labels.reverse()).alias("pred"),
        slices_in_words(classes, [SET, *keys]).alias("slice"),
        n=support,
        rate=(support - hits) / support,
    )
    of_key = [*models, "key", "gold", "pred"]
    rates = rates.filter(pl.len().over(of_key) <= MAX_SLICES_OF_GAPS)
    above, below = pl.col("rate"), pl.col("rate_to")
    pairs = rates.join(rates, on=of_key, suffix="_to", nulls_equal=True).filter(above > below)
    sides = (floats(pairs[name]) for name in ("rate_to", "n_to", "rate", "n"))
    p_value = of_arrays(p_value=normal(_RATE.evidence(*sides)))
    tested = pairs.with_columns(p_value, diff=above - below)
    widest = (
        with_adjusted(tested, "bh")
        .filter(pl.col("p_adjusted") < level)
        .sort("diff", descending=True, maintain_order=True)
        .unique(of_key, keep="first", maintain_order=True)
    )
    both = [f"{name}{end}" for name in ("slice", "n", "rate") for end in ("", "_to")]
    return widest.select(*of_key, *both, "diff", "p_adjusted")
