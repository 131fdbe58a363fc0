"""Pairs by period → since when each slice is worse, with the scores of both sides."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import polars as pl

from polars_mcc._comparisons.change_point import RowsInTime, Steps
from polars_mcc._comparisons.changes_in_common import Again, counted_by_slice, with_surer
from polars_mcc._comparisons.columns_of_answers import CHANGED, SEEN, VERDICT
from polars_mcc._comparisons.evidence_and_p_values import with_adjusted
from polars_mcc._comparisons.slice_and_reference import expected_scores
from polars_mcc._counts.class_counts import is_scored, unscored_sums
from polars_mcc._counts.count_rows import merged
from polars_mcc._counts.sliced_log import SlicedLog
from polars_mcc._intervals.count_arrays import floats, of_arrays
from polars_mcc._intervals.interval_options import PERIODS, IntervalOptions
from polars_mcc._intervals.scores_of_arrays import estimate
from polars_mcc._metrics.slice_sums import Floats, Ints

SINCE = "since"
VERDICTS = pl.Enum([*CHANGED, "part of", "labels moved", "no change", "not judged"])
_SLICE, _PART, _SIDE = "of:slice", "of:part", "of:side"  # no metric has these names
_FIRST, _SPLIT, _LAST = "of:first", "of:split", "of:last"


@dataclass(frozen=True)
class Wanted:
    """What is looked for."""

    asked: IntervalOptions
    falls: bool
    rises: bool
    given_labels: bool
    max_changes: int
    block: str
    """The length of a block of periods. Scores that wander are less alike in blocks."""

    @property
    def turn(self) -> int:
        """1 if more of the metric is better, else -1."""
        return -1 if self.asked.metrics[0].less_is_better else 1

    @property
    def is_sure(self) -> pl.Expr:
        """Whether a change is significant, after correction."""
        return pl.col("p_adjusted") < self.level

    @property
    def level(self) -> float:
        """The probability of a false alarm."""
        return 1 - self.asked.ci


def changes(
    log: SlicedLog, looked_at: pl.DataFrame, every: pl.DataFrame, again: Again, wanted: Wanted
) -> pl.DataFrame:
    """The changes of each slice. Pairs are split by the period, which is in the column `since`.

    `every` has the pairs of all slices, also of those without pairs to look at. `again` counts rows
    of the log once more. The newest known change of a slice is in the column `SEEN` of its pairs.
    """
    slices = _with_facts(log, looked_at, every)
    is_used = pl.col(SINCE).is_not_null() & is_scored(log) & (pl.col("n") > 0)
    periods = looked_at.filter(is_used)[SINCE].unique().sort()

    def used(rows: pl.DataFrame) -> pl.DataFrame:
        """The pairs that are used, by the number of their period."""
        rows = rows.filter(is_used, pl.col(SINCE).is_in(periods.implode()))
        return rows.with_columns(pl.Series(SINCE, periods.search_sorted(rows[SINCE]), pl.Int64))

    # By calendar, so that no other slice and no earlier day moves the blocks of a slice.
    blocks = periods.dt.truncate(wanted.block).rank("dense").cast(pl.Int64).to_numpy()
    counts = used(looked_at)
    parts = _searched(log, counts, blocks, wanted)
    seen = counts.drop_nulls(SEEN).select(*log.slice, SEEN).unique()
    seen = seen.with_columns(pl.Series(SEEN, periods.search_sorted(seen[SEEN]), pl.Int64))
    # What is left of a slice is tested at the level of all slices (Bonferroni).
    n_tests = parts.filter(pl.col("p_value").is_not_null())[_SLICE].n_unique()
    strict = replace(wanted, asked=replace(wanted.asked, ci=1 - wanted.level / max(n_tests, 1)))
    alone = replace(log.whole, has_models=False)

    def counted(slices: pl.DataFrame) -> pl.DataFrame:
        return used(counted_by_slice(log, every, again, slices))

    def verdicts(rest: pl.DataFrame) -> pl.Series:
        return _searched(alone, rest, blocks, strict)[VERDICT]

    parts = with_surer(log, parts, seen, counted, verdicts)
    scored = _with_scores(log, counts, parts, wanted)
    in_time = scored.with_columns(periods.gather(scored[_SPLIT]).alias(SINCE))
    both = log.beside(slices, in_time.lazy())
    verdict = pl.col(VERDICT).fill_null(pl.lit("not judged", VERDICTS))
    metric = pl.lit(wanted.asked.metrics[0].name)
    return both.with_columns(verdict, metric=metric).collect()


def _searched(log: SlicedLog, counts: pl.DataFrame, blocks: Ints, wanted: Wanted) -> pl.DataFrame:
    """The changes of each slice, by the numbers of periods, and their verdicts."""
    [metric] = wanted.asked.metrics
    alone = replace(log, pair_splits=())
    pairs = merged(alone, counts.lazy().drop(SINCE)).collect()
    whole = estimate(alone, pairs, wanted.asked)
    cells = whole.cells
    rows = _rows(alone, counts, pairs[cells.row], cells.pairs.slices.astype(np.int64))
    gold, phi = cells.pairs.gold, wanted.turn * whole.measured[metric.name].phi
    any_label = np.zeros(len(gold), np.int64)
    search = partial(_search, whole.scores.height, rows, blocks, phi)
    found = search(gold if wanted.given_labels else any_label, wanted)
    if wanted.given_labels:
        of_plain = search(any_label, replace(wanted, max_changes=1))
        found = _with_moved_labels(found, of_plain, wanted)
    named = whole.scores.select(pl.int_range(pl.len()).alias(_SLICE), *log.slice)
    parts = found.join(named, on=_SLICE, maintain_order="left").with_row_index(_PART)
    return parts.with_columns(_verdict(wanted).alias(VERDICT))


def _with_facts(log: SlicedLog, counts: pl.DataFrame, every: pl.DataFrame) -> pl.LazyFrame:
    """All slices, each with how many of its rows have no time, and are not scored."""
    untimed = pl.when(pl.col(SINCE).is_null() & is_scored(log)).then("n").otherwise(0)
    not_used = {"n_untimed": log.numbers.total(untimed), **unscored_sums(log)}
    facts = {name: log.numbers.as_count(number) for name, number in not_used.items()}
    slices = log.per_slice(every.lazy()) if log.slice else pl.LazyFrame({_SIDE: [None]})
    slices = log.beside(slices, log.per_slice(counts.lazy(), **facts))
    return slices.select(*log.slice, pl.col(*facts).fill_null(0))


def _with_moved_labels(found: pl.DataFrame, plain: pl.DataFrame, wanted: Wanted) -> pl.DataFrame:
    """Mark the slices whose plain score changed, where at most half is left given the labels.

    Half of the standard errors. The split is then that of the plain score.
    """
    errors = pl.col("errors") * pl.col("dispersion").sqrt()
    of_plain = plain.select(_SLICE, split=_SPLIT, more=errors, moved=wanted.is_sure)
    both = found.join(of_plain, on=_SLICE, maintain_order="left")
    is_little = ~wanted.is_sure & (2 * errors < pl.col("more"))
    both = both.with_columns(moved=pl.col("moved") & is_little)
    split = pl.when("moved").then("split").otherwise(_SPLIT)
    return both.with_columns(split.alias(_SPLIT)).drop("split", "more")


def _verdict(wanted: Wanted) -> pl.Expr:
    """What the tests say of a part of a slice."""
    moved = pl.col("moved") if wanted.given_labels else pl.lit(value=False)
    return (
        pl.when(pl.col("p_value").is_null())
        .then(pl.lit("not judged"))
        .when(wanted.is_sure)
        .then(pl.when("is_rise").then(pl.lit("better")).otherwise(pl.lit("worse")))
        .when(moved)
        .then(pl.lit("labels moved"))
        .otherwise(pl.lit("no change"))
        .cast(VERDICTS)
    )


def _search(  # noqa: PLR0917 - all are of one question
    number: int, rows: RowsInTime, blocks: Ints, phi: Floats, gold: Ints, wanted: Wanted
) -> pl.DataFrame:
    """The largest change of each slice; and of the parts before and after it, as they are sure.

    The p-value of a part is corrected for the parts of its slice that were looked at, and then for
    the number of slices (Bonferroni).
    """
    ends = {_FIRST: 0, _LAST: int(rows.periods.max(initial=-1))}
    whole = pl.DataFrame({_SLICE: range(number)}, {_SLICE: pl.Int64})
    whole = whole.with_columns(pl.lit(end, pl.Int64).alias(name) for name, end in ends.items())
    steps = Steps.of(number, rows, gold, phi)
    dispersion = steps.dispersion(wanted.max_changes, blocks)
    newest = with_adjusted(_largest(steps, whole, wanted, dispersion), wanted.asked.correction)
    n_tests, found, open_parts = newest["p_value"].count(), [newest], newest.clear()
    for looked in range(3, 2 * wanted.max_changes + 1, 2):
        halves = _halves(newest.filter(wanted.is_sure))
        if halves.is_empty():
            break
        steps = Steps.of(halves.height, _of_parts(rows, halves), gold, phi)
        new = _largest(steps, halves, wanted, dispersion).with_columns(p_adjusted="p_value")
        open_parts = pl.concat([open_parts, new]).sort(_SLICE, "p_value", nulls_last=True)
        p_value = (pl.col("p_value") * looked).clip(upper_bound=1)
        is_next = pl.col(_SLICE).is_first_distinct() & (p_value * n_tests < wanted.level)
        newest = open_parts.filter(is_next).with_columns(
            p_value=p_value, p_adjusted=(p_value * n_tests).clip(upper_bound=1)
        )
        open_parts = open_parts.filter(~is_next.fill_null(value=False))
        found.append(newest)
    return pl.concat(found)


def _halves(split: pl.DataFrame) -> pl.DataFrame:
    """The parts before and after splits, in the order of slices and time."""
    before = split.select(_SLICE, _FIRST, (pl.col(_SPLIT) - 1).alias(_LAST))
    after = split.select(_SLICE, pl.col(_SPLIT).alias(_FIRST), _LAST)
    return pl.concat([before, after]).sort(_SLICE, _FIRST)


def _of_parts(rows: RowsInTime, parts: pl.DataFrame) -> RowsInTime:
    """The rows of parts of slices, in their order: each part as a slice."""
    span = int(rows.periods.max(initial=0)) + 1
    of_time = ((pl.col(_SLICE) * span + pl.col(end)).alias(end) for end in (_FIRST, _LAST))
    starts, ends = (column.to_numpy() for column in parts.select(of_time))
    at = rows.slices * span + rows.periods
    place = np.searchsorted(starts, at, side="right") - 1
    is_in = at <= np.append(ends, -1)[place]
    return rows.where(is_in)._replace(slices=place[is_in])


def _largest(steps: Steps, parts: pl.DataFrame, wanted: Wanted, dispersion: Floats) -> pl.DataFrame:
    """The largest change of parts of slices, each from its first to its last period."""
    own = dispersion[parts[_SLICE].to_numpy()]
    split = steps.split(
        wanted.asked.min_n, wanted.level, own, falls=wanted.falls, rises=wanted.rises
    )
    return parts.with_columns(
        pl.Series(_SPLIT, split.since, pl.Int64).replace(-1, None),
        pl.Series("is_rise", split.is_rise),
        *of_arrays(
            errors=split.errors,
            critical=split.critical,
            dispersion=np.where(np.isnan(split.p_value), np.nan, own),
            p_value=split.p_value,
        ),
    )


def _rows(log: SlicedLog, counts: pl.DataFrame, pairs: pl.DataFrame, slices: Ints) -> RowsInTime:
    """The rows of each period as arrays; the place of a pair is that in `pairs`."""
    own = [*log.slice, "gold", "pred"]
    of_pairs = pairs.select(*own, pl.Series(_SLICE, slices), pl.int_range(pl.len()).alias(_PART))
    rows = counts.lazy().join(of_pairs.lazy(), on=own, nulls_equal=True)
    arrays = rows.select(_SLICE, SINCE, _PART, pl.col("n").cast(pl.Float64)).collect()
    return RowsInTime(*(column.to_numpy() for column in arrays))


def _with_scores(
    log: SlicedLog, counts: pl.DataFrame, parts: pl.DataFrame, wanted: Wanted
) -> pl.DataFrame:
    """Add both sides of each part: rows, score, and score given the labels; and `diff`."""
    asked = wanted.asked
    [metric] = asked.metrics
    split = parts.lazy().select(*log.slice, _PART, _FIRST, _SPLIT, _LAST)
    is_after = pl.col(SINCE) >= pl.col(_SPLIT)
    side = pl.when(is_after).then(pl.lit("after")).otherwise(pl.lit("before"))
    in_part = pl.col(_SPLIT).is_not_null() & pl.col(SINCE).is_between(_FIRST, _LAST)
    sided = log.beside(counts.lazy(), split).filter(in_part)
    sided = sided.with_columns(side.cast(PERIODS).alias(_SIDE))
    apart = replace(log, pair_splits=()).split_by(_PART, _SIDE)
    pairs_of_sides = merged(apart, sided.drop(SINCE)).collect()
    estimated = estimate(apart, pairs_of_sides, asked, within=[_PART])
    assert estimated.pools is not None  # noqa: S101 - for the type checker
    pairs, pools = estimated.cells.pairs, estimated.pools
    given = estimated.scorer.given_labels(pairs, pools)
    own_se = floats(estimated.scores[f"{metric.name}_se"])
    both = estimated.scores.select(
        _PART,
        _SIDE,
        "n",
        expected_scores(estimated.scorer, given, pairs, pools).alias("expected"),
        *of_arrays(se=given.se if wanted.given_labels else own_se),
        score=metric.name,
    )
    before = {"n": "n_before", "score": "reference", "expected": "reference_expected"}
    for side_, names in (("before", before), ("after", {"n": "n_after", "se": "se_after"})):
        here = both.filter(pl.col(_SIDE) == side_).drop(_SIDE).rename(names)
        parts = parts.join(here, on=_PART, how="left", maintain_order="left")
    diff, se = pl.col("score") - pl.col("reference"), pl.col("se", "se_after")
    if wanted.given_labels:  # Both sides are all rows, so one errs as the other does not.
        diff -= pl.col("expected") - pl.col("reference_expected")
        se = pl.sum_horizontal(se, ignore_nulls=False)
    else:
        se = pl.sum_horizontal(se.pow(2), ignore_nulls=False).sqrt()
    parts = parts.with_columns(diff=diff, se=se * pl.col("dispersion").sqrt())
    return _with_limits(parts, wanted.turn)


def _with_limits(parts: pl.DataFrame, turn: int) -> pl.DataFrame:
    """Add the limits of `diff`. The one towards 0 is where the change is just significant."""
    diff, errors = pl.col("diff"), pl.col("errors")
    way = turn * pl.when("is_rise").then(1).otherwise(-1)
    inwards = pl.when((way * diff > 0) & (errors > 0)).then(diff.abs() / errors).otherwise("se")
    down, up = (pl.when(diff * sign > 0).then(inwards).otherwise("se") for sign in (1, -1))
    critical = pl.col("critical")
    return parts.with_columns(diff_low=diff - critical * down, diff_high=diff + critical * up)
