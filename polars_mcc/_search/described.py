"""Listed slices → their scores and intervals, and the confusion that costs each the most.

Scores and intervals compare two logs: the rows of the slice, and all other rows.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl

from polars_mcc._counts.counted import merged
from polars_mcc._inference.given_labels import given_labels
from polars_mcc._inference.options import PERIODS, IntervalOptions
from polars_mcc._inference.periods import changes
from polars_mcc._inference.pool import Pool
from polars_mcc._inference.quantiles import normal_critical
from polars_mcc._search.codes import Coded
from polars_mcc._search.counting import SLICE
from polars_mcc._search.overlaps import Overlaps
from polars_mcc._search.slices import Sought, with_labels
from polars_mcc._search.words import collapsed, confused

CONFUSION = ["confused_gold", "confused_pred", "confused", "confused_rest"]
"""The confusion `gold → pred` that costs a slice the most, and its share of the rows of that gold
label: in the slice, and in the rest."""
EXPECTED = ["expected", "expected_se"]
_IS_WRONG = pl.col("gold").ne_missing(pl.col("pred"))
SCORES = ["score_b", "score_a", "diff", "diff_low", "diff_high"]


def described(sought: Sought, slices: pl.DataFrame) -> pl.DataFrame:
    """The `SCORES`, the `EXPECTED` score and the `CONFUSION` of each slice, by its number.

    `confusion` says the confusion in words, or that the slice has one predicted label.
    Side b is the slice, side a the rest of the log.
    """
    if slices.is_empty():
        return pl.DataFrame(schema=_schema(sought))
    cells = _cells(sought, slices)
    given = sought.coded.log
    log = replace(
        sought.whole, extras=given.extras, zero_division=given.zero_division, apart=(SLICE,)
    )
    apart = replace(log, apart=(SLICE, "period"))
    asked = replace(sought.asked, ci=sought.ci)
    # With clusters, cells are many: compare one slice at a time, to save memory.
    parts = cells.partition_by(SLICE) if log.has_clusters else [cells]
    compared = [
        changes(log, apart, sought.with_labels(part.lazy()).collect(), asked).select(SLICE, *SCORES)
        for part in parts
    ]
    confusions = _confusions(sought.coded, cells)
    if sought.metric.is_of_scores:  # A score confuses no label with another.
        confusions = confusions.clear()
    found = pl.concat(compared).join(_expected(sought, cells, asked), on=SLICE, how="left")
    if sought.to == "expected":
        diff = pl.col("score_b") - pl.col("expected")
        reach = normal_critical(sought.ci) * pl.col("expected_se")
        found = found.with_columns(diff=diff, diff_low=diff - reach, diff_high=diff + reach)
    return found.join(confusions, on=SLICE, how="left").select(*_schema(sought))


def _schema(sought: Sought) -> dict[str, pl.DataType]:
    labels = dict.fromkeys(CONFUSION[:2], sought.coded.labels.dtype)
    numbers = dict.fromkeys([*SCORES, *EXPECTED, *CONFUSION[2:]], pl.Float64())
    return {SLICE: pl.UInt32(), **numbers, **labels, "confusion": pl.String()}


def _expected(sought: Sought, cells: pl.DataFrame, asked: IntervalOptions) -> pl.DataFrame:
    """The score of each slice given its labels."""
    log = replace(sought.whole, apart=(SLICE,))
    pairs = sought.with_labels(cells.lazy()).collect()
    here = merged(log, pairs.lazy().filter(pl.col("period") == "after")).collect()
    return given_labels(log, here, Pool.of(log, pairs), asked)


def _cells(sought: Sought, slices: pl.DataFrame) -> pl.DataFrame:
    """The pairs of each slice (`after`) and of its rest (`before`), by cluster if there are any."""
    overlaps = Overlaps.of(sought, slices)
    n_slices, n_kinds = overlaps.is_in.shape
    kinds = pl.DataFrame(
        {
            SLICE: slices[SLICE].to_numpy().repeat(n_kinds),
            "kind": np.tile(np.arange(n_kinds, dtype=np.uint32), n_slices),
            "is_in": overlaps.is_in.ravel(),
        }
    )
    period = pl.when("is_in").then(pl.lit("after")).otherwise(pl.lit("before")).cast(PERIODS)
    cells = kinds.with_columns(period=period).join(overlaps.cells, on="kind")
    return cells.drop("kind", "pair", "is_in")


def _confusions(coded: Coded, cells: pl.DataFrame) -> pl.DataFrame:
    """The confusion of each slice, as values and in words."""
    of_slice, of_rest = (
        pl.col("n").filter(pl.col("period") == period).sum().cast(pl.Float64)
        for period in ("after", "before")
    )
    pairs = cells.group_by(SLICE, "gold", "pred").agg(here=of_slice, there=of_rest).lazy()
    costliest, missed = (
        with_labels(found, coded.labels, "gold", "pred").collect()
        for found in (_costliest(pairs), _missed(pairs))
    )
    values = costliest.rename({"gold": "confused_gold", "pred": "confused_pred"})
    said = {one: confused(*known) for one, *known in values.rows()}
    counts = missed.select(SLICE, "pred", "gold", pl.col("here").cast(coded.log.numbers.count))
    said |= {one: collapsed(*known) for one, *known in counts.rows()}
    in_words = pl.DataFrame(
        {SLICE: [*said], "confusion": [*said.values()]}, {SLICE: pl.UInt32, "confusion": pl.String}
    )
    return in_words.join(values, on=SLICE, how="left")


def _costliest(pairs: pl.LazyFrame) -> pl.LazyFrame:
    """The confusion of each slice with the most excess misses over the rate in the rest."""
    here, there = pl.col("here"), pl.col("there")
    rows_here, rows_there = (rows.sum().over(SLICE, "gold") for rows in (here, there))
    shares = pairs.with_columns(
        confused=here / rows_here, confused_rest=there / rows_there, rows=rows_here
    )
    excess = pl.col("rows") * (pl.col("confused") - pl.col("confused_rest").fill_nan(0.0))
    return (
        shares.filter(_IS_WRONG)
        .with_columns(excess=excess)
        .filter(pl.col("rows") > 0, pl.col("excess") > 0)  # 0/0 is NaN, which passes > 0
        .sort("excess", "gold", "pred", descending=[True, False, False])
        .group_by(SLICE, maintain_order=True)
        .first()
        .select(SLICE, "gold", "pred", "confused", pl.col("confused_rest").fill_nan(None))
    )


def _missed(pairs: pl.LazyFrame) -> pl.LazyFrame:
    """The most frequent missed label of each slice with one predicted and several gold labels."""
    n_gold, n_pred = (pl.col(side).n_unique().over(SLICE) for side in ("gold", "pred"))
    return (
        pairs.filter(pl.col("here") > 0)
        .filter(n_pred == 1, n_gold > 1)
        .filter(_IS_WRONG)
        .sort("here", "gold", descending=[True, False])
        .group_by(SLICE, maintain_order=True)
        .first()
    )
