"""`worst`: the slices that fall behind the rest of the log.

The rest of a slice is what is left of the log's pairs when those of the slice are taken away.
It has nearly all pairs, so it is made for few slices: where the interval of a slice reaches the
score of the rest, that of their difference reaches 0, however well the rest is known. And what
is not reported if the rest were known for sure is not reported when it is not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import polars as pl

from polars_mcc._counts.classes import of_pairs
from polars_mcc._counts.counted import count_columns, merged
from polars_mcc._counts.cut import cut
from polars_mcc._counts.identity import unnamed
from polars_mcc._counts.pairs import pairs
from polars_mcc._counts.sliced import KEY, SET, SlicedLog
from polars_mcc._inference.asked import Asked
from polars_mcc._inference.differences import SIDE_A, SIDE_B, adjusted, independent, side
from polars_mcc._inference.intervals import Estimate, estimate
from polars_mcc._inference.rest_of_log import (
    classes_of_rest,
    pairs_of_rest,
    scores_of_rest,
    taken_away,
)
from polars_mcc._log import defaults
from polars_mcc._log.choices import (
    Correction,
    Rank,
    check_at_least,
    check_choice,
    check_level,
)
from polars_mcc._log.columns import IntoColumn, resolved
from polars_mcc._log.described import Described
from polars_mcc._log.frames import FrameT
from polars_mcc._log.keys import KeySets, check_plain, name_of
from polars_mcc._scores import registry
from polars_mcc._scores.measure import measure
from polars_mcc._scores.metric import Metric
from polars_mcc._scores.metrics import MCC
from polars_mcc._scores.registry import IntoMetric


def _columns_for(metric: str) -> list[str]:
    return [
        *("n", metric, f"{metric}_rest", "diff", "diff_low", "diff_high", "p_value", "p_adjusted"),
        *("loss", "n_folded", "n_tested", "n_untested", "n_null"),
    ]


def worst(
    log: Described[FrameT],
    *keys: IntoColumn,
    metric: IntoMetric = defaults.METRIC,
    depth: int = defaults.DEPTH,
    min_n: int = defaults.MIN_N,
    top: int | None = None,
    rank: Rank = defaults.RANK,
    ci: float = defaults.LEVEL,
    correction: Correction = defaults.CORRECTION,
    long: bool = False,
) -> FrameT:
    """Find the slices that fall behind the rest of the log, without naming them beforehand.

    Every slice of up to `depth` keys is compared with the rest of the log: with all rows that
    are not of it, whose counts are those of the log less those of the slice. The two have no
    row in common, so their difference has an interval as in `compare`, with no correlation.
    Slices whose p-value, corrected for the number of slices looked at, is below 1 - ci are
    reported, but for those that another one tells:

    - a finer slice that is not behind the rest of a coarser one adds nothing to it (all of DE is
      bad, so DE on a phone is): it is folded into that;
    - a coarser slice of which nothing bad is left without a finer one (tablets in BR are bad, so
      tablets are, and BR): it is folded into that one.

    Rows are read once.

    Args:
        *keys: The columns to look at: names, expressions, selectors.
        metric: What slices fall behind in: a name of `metrics()` that is not of pairs, or an
            expression over `classes`, as in `by`. Where less is better, such as of "fnr", slices
            with more of it fall behind.
        depth: How many keys are crossed, at most. With k keys of v values there are about
            (k·v)² / 2 slices at a depth of 2, all of them counted.
        min_n: Slices of fewer rows are not tested.
        top: How many slices to report, at most. None: all.
        rank: Which slice comes first. "loss": the one without which the score of the log would be
            best. "gap": the one whose difference is surely largest (by `diff_high`, or
            `diff_low` where less is better).
        ci: The confidence level: of the intervals, and of what is reported.
        correction: How p-values are corrected for the number of slices. "bh" (Benjamini and
            Hochberg) keeps the expected share of slices that are reported, but not behind, below
            1 - ci where tests are independent or help each other; "by" (Benjamini and Yekutieli)
            whatever the overlap of slices; "holm", "bonferroni": the probability of a single one.
        long: Show a slice as two columns, `slice` (names of keys) and `value` (as text), in place
            of a column per key.

    Returns:
        A frame of the kind of the log, a row per slice that is reported, the worst first:

        - `keys` (String): the names of the keys of the slice;
        - the keys, with their dtypes; null if not of the slice, which `keys` tells from a null
          that is a value;
        - `model` (String), if `pred` is several: each is compared with itself elsewhere;
        - `n`, `mcc` (called by the metric): of the slice;
        - `mcc_rest` (Float64): of all other rows; `diff`, `diff_low`, `diff_high`: the
          slice less the rest, and its interval;
        - `p_value`, `p_adjusted` (Float64): of no difference, two-sided; corrected;
        - `loss` (Float64): how much better the log would score without the slice;
        - `n_folded` (Int64): the slices that are folded into this one;
        - `n_tested`, `n_untested` (Int64; the same in all rows): the slices looked at, and those
          that have too few rows or no interval;
        - `n_null`: rows of the slice not scored.

    How many planted slices it found: README, *Which slices fail*. Memory: where keys are crossed,
    their columns are kept, text as 4 bytes a row. And each bad slice has a rest, of as many pairs
    as the log.

    Raises:
        ValueError: There are no keys, or they are sets or windows; `depth` or `min_n` is below 1;
            an option has no such value; the log has clusters; the metric is of pairs, or has no
            derivative.

    Errors of `by` are raised too.

    References:
        Y. Benjamini and Y. Hochberg, Journal of the Royal Statistical Society B 57 (1995)
        289-300. Y. Benjamini and D. Yekutieli, Annals of Statistics 29 (2001) 1165-1188.
        The difference: G. Y. Zou, Psychological Methods 12 (2007) 399-413.

    Examples:
        >>> import polars as pl
        >>> import polars_mcc
        >>> log = pl.read_parquet("data/digits.parquet")
        >>> found = log.mcc.worst("confidence_band", "ink_band", long=True)
        >>> found.select("slice", "value", "n", "mcc", "mcc_rest", "diff_high")
        shape: (1, 6)
        ┌─────────────────┬───────┬─────┬──────────┬──────────┬───────────┐
        │ slice           ┆ value ┆ n   ┆ mcc      ┆ mcc_rest ┆ diff_high │
        │ ---             ┆ ---   ┆ --- ┆ ---      ┆ ---      ┆ ---       │
        │ str             ┆ str   ┆ i64 ┆ f64      ┆ f64      ┆ f64       │
        ╞═════════════════╪═══════╪═════╪══════════╪══════════╪═══════════╡
        │ confidence_band ┆ low   ┆ 256 ┆ 0.656935 ┆ 0.985566 ┆ -0.267249 │
        └─────────────────┴───────┴─────┴──────────┴──────────┴───────────┘

    Command line:
        polars-mcc worst logs/ --by country --by device --by browser --top 10
    """
    check_choice("rank", rank, Rank)
    check_choice("correction", correction, Correction)
    check_level(ci)
    check_at_least("depth", depth, 1)
    check_at_least("min_n", min_n, 1)
    if top is not None:
        check_at_least("top", top, 1)
    check_plain(keys, "worst", "it crosses the columns itself, up to depth; name the columns alone")
    log.meaning.check_without("worst", "it takes rows for independent", "cluster")
    if not resolved(log.meaning.schema, keys, "key"):
        msg = "worst looks for slices: name the keys to slice by, as in worst('country', 'device')"
        raise ValueError(msg)
    chosen = registry.one(metric)
    if chosen.pairs:
        msg = f"worst looks at metrics of classes, and '{chosen.name}' is of pairs"
        raise ValueError(msg)
    columns = _columns_for(chosen.name)
    up_to_depth = KeySets("cube", keys, total=False, depth=depth)
    sliced = cut(log, [up_to_depth], answers=columns, long=long)
    positive = registry.checked([chosen], log.meaning.positive, sliced.label_dtype)
    sliced = sliced if chosen.needs_labels else unnamed(sliced)
    asked = Asked(ci, metrics=[chosen], positive=positive)
    found = _Search(sliced, asked, chosen, correction, min_n).found()
    order = -pl.col("loss") if rank == "loss" else pl.col("diff_high")
    ranked = found.sort(order, *sliced.slice).select(*sliced.slice, *_answer(chosen, columns))
    answer = sliced.named(ranked)
    return log.in_kind(answer if top is None else answer.head(top))


@dataclass(frozen=True)
class _Search:
    """What is looked for in the slices of a log, and how sure of it one must be."""

    log: SlicedLog
    asked: Asked
    metric: Metric
    correction: Correction
    min_n: int

    @property
    def ci(self) -> float:
        """The level."""
        return self.asked.ci

    def _side(self, estimate: Estimate, name: str) -> pl.LazyFrame:
        """One side of a difference, turned so that more is better."""
        scores = side(estimate, self.metric.name, name)
        if not self.metric.less_is_better:
            return scores
        score, low, high = (f"{part}_{name}" for part in ("score", "low", "high"))
        turned = {score: -pl.col(score), low: -pl.col(high), high: -pl.col(low)}
        return scores.with_columns(**turned)

    def _side_a(self, estimate: Estimate) -> pl.LazyFrame:
        return self._side(estimate, "a").select(*estimate.log.slice, *SIDE_A)

    def _scores_of_rest(self, classes: pl.LazyFrame, of_total: pl.LazyFrame) -> pl.LazyFrame:
        """The `rest` of each slice, scored, more being better."""
        if self.metric is MCC:
            return scores_of_rest(self.log, self.log.whole, classes, of_total)
        rest = classes_of_rest(self.log, self.log.whole, classes, of_total)
        name, turn = self.metric.name, -1 if self.metric.less_is_better else 1
        scores = measure(self.log, rest, [self.metric], positive=self.asked.positive)
        return scores.select(*self.log.slice, rest=turn * pl.col(name).fill_nan(None))

    def _behind(self, slices: pl.LazyFrame, tests: pl.Expr | None = None) -> pl.LazyFrame:
        """Compare b with a, and tell if it `is_behind`, among so many tests."""
        # A slice that is better is no discovery, and must not make others likelier to be one.
        p_value = pl.when(pl.col("diff") < 0).then("p_value").when(pl.col("diff") >= 0).then(1.0)
        compared = independent(slices, self.ci).with_columns(p_value=p_value)
        is_behind = (pl.col("diff") < 0) & (pl.col("p_adjusted") < 1 - self.ci)
        return adjusted(compared, self.correction, tests).with_columns(
            is_behind=is_behind.fill_null(value=False)
        )

    def found(self) -> pl.LazyFrame:
        """The slices that score below the rest of the log, and are not told by another."""
        log, whole = self.log, self.log.whole
        cells = pairs(log).cache()
        total = merged(whole, log.once(cells)).cache()
        of_total = of_pairs(whole, total).cache()
        overall = measure(whole, of_total, [self.metric], positive=self.asked.positive)
        turn = -1 if self.metric.less_is_better else 1
        overall = overall.select(*whole.slice, all=turn * pl.col(self.metric.name))

        candidates = self._candidates(cells, of_total).cache()
        numbered = replace(whole, apart=("slice",))
        left = pairs_of_rest(log, numbered, cells, total, candidates)
        rest = estimate(numbered, left, self.asked)
        compared = whole.beside(numbered.beside(candidates, self._side_a(rest)), overall)
        behind = self._behind(compared, pl.col("n_tested").max().fill_null(0))
        behind = behind.filter("is_behind").drop("is_behind").cache()

        is_told = pl.col("role") == "one"
        marks = (
            self._folded(candidates, cells, behind)
            .unpivot(["one", "into"], variable_name="role", value_name="slice")
            .group_by("slice")
            .agg(is_told=is_told.any(), n_folded=(~is_told).sum().cast(pl.Int64))
        )
        return (
            behind.join(marks, on="slice", how="left")
            .filter(~pl.col("is_told").fill_null(value=False))
            .with_columns(
                pl.col("n_folded").fill_null(0),
                loss=pl.col("score_a") - pl.col("all"),
            )
        )

    def _candidates(self, cells: pl.LazyFrame, of_total: pl.LazyFrame) -> pl.LazyFrame:
        """The slices that may be behind, numbered; and how many were and were not looked at."""
        log = self.log
        found = estimate(log, cells, self.asked)
        rest = self._scores_of_rest(found.classes, of_total)
        is_tested = pl.all_horizontal(
            pl.col("n") >= self.min_n, pl.col("high_b", "rest").is_not_null()
        )
        tested = (
            log.beside(self._side(found, "b"), rest)
            .with_columns(
                n_tested=is_tested.sum().cast(pl.Int64),
                n_untested=(~is_tested).sum().cast(pl.Int64),
            )
            .filter(is_tested)
        )
        # As if the rest were known for sure; its score is rounded here, hence a little more.
        known = dict.fromkeys(("score_a", "low_a", "high_a"), pl.col("rest") + 1e-6)
        return (
            self._behind(tested.with_columns(se_a=0.0, **known))
            .filter("is_behind")
            .select(*log.slice, "n", "n_null", *SIDE_B, "n_tested", "n_untested")
            .with_row_index("slice")
        )

    def _folded(
        self, candidates: pl.LazyFrame, cells: pl.LazyFrame, found: pl.LazyFrame
    ) -> pl.LazyFrame:
        """The slices found that are told by another: `one`, and `into` which.

        A finer one that adds nothing to a coarser one: it is not behind the rest of that. And a
        coarser one without which a finer one that is kept leaves nothing: what is left of it is
        not behind the rest of the log.
        """
        log, whole = self.log, self.log.whole
        slices = candidates.select(*log.slice, coarser="slice")
        related = (
            _coarser(log, candidates.select(*log.slice, *SIDE_B, finer="slice"))
            .join(slices, on=log.slice, nulls_equal=True)
            .select("finer", "coarser", *whole.slice, *SIDE_B)
            .cache()
        )
        numbers = candidates.select(*log.slice, "slice")
        parts = cells.join(numbers, on=log.slice, nulls_equal=True)
        between = replace(whole, apart=("finer", "coarser"))
        signs = pl.LazyFrame({"role": ["coarser", "finer"], "sign": [1, -1]})
        is_coarser = pl.col("role") == "coarser"
        signed = (
            related.join(signs, how="cross")
            .with_columns(slice=pl.when(is_coarser).then("coarser").otherwise("finer"))
            .join(parts.select("slice", "gold", "pred", *count_columns(log)), on="slice")
        )
        rest = estimate(between, taken_away(between, signed), self.asked)
        compared = between.beside(related, self._side_a(rest))
        outside = found.select(
            pl.col("slice").alias("coarser"), pl.col(SIDE_A).name.suffix("_outside")
        )
        compared = compared.join(outside, on="coarser").join(
            found.select(finer="slice"), on="finer", how="semi"
        )
        # First, is the finer one behind what is left of the coarser; then, is that behind what is
        # outside of it?
        adds, is_told = pl.col("adds"), pl.col("diff_high") >= 0
        steps = self._behind(compared).with_columns(
            adds="is_behind",
            is_kept=pl.col("is_behind").all().over("finer"),
            **{b: pl.col(a) for a, b in zip(SIDE_A, SIDE_B, strict=True)},
            **{a: pl.col(f"{a}_outside") for a in SIDE_A},
        )
        by_finer = pl.col("is_kept") & is_told
        return (
            independent(steps, self.ci)
            .filter(~adds | by_finer)
            .select(
                one=pl.when(adds).then("coarser").otherwise("finer"),
                into=pl.when(adds).then("finer").otherwise("coarser"),
            )
        )


def _answer(metric: Metric, names: Sequence[str]) -> list[pl.Expr]:
    """The columns of the answer, turned back if less is better: a metric may have any name."""
    found = {metric.name: "score_b", f"{metric.name}_rest": "score_a"}
    turned = {**found, "diff": "diff", "diff_low": "diff_low", "diff_high": "diff_high"}
    if metric.less_is_better:
        turned |= {"diff_low": "diff_high", "diff_high": "diff_low"}
    sign = -1 if metric.less_is_better else 1
    return [
        (sign * pl.col(turned[name])).alias(name) if name in turned else pl.col(name)
        for name in names
    ]


def _coarser(log: SlicedLog, slices: pl.LazyFrame) -> pl.LazyFrame:
    """The slices that these are part of: those of each set of some of their keys."""
    dropped = [
        {
            SET: name_of(keys),
            "to": name_of(less),
            **{f"drop:{key}": key in keys and key not in less for key in log.keys},
        }
        for keys in log.sets or ()
        for less in log.sets or ()
        if {*less} < {*keys}
    ]
    schema: dict[str, pl.DataType] = {SET: log.set_names, "to": log.set_names}
    schema |= {f"drop:{key}": pl.Boolean() for key in log.keys}
    kept = [pl.when(~pl.col(f"drop:{key}")).then(KEY + key).alias(KEY + key) for key in log.keys]
    return (
        slices.join(pl.LazyFrame(dropped, schema=schema), on=SET)
        .with_columns(pl.col("to").alias(SET), *kept)
        .drop("to", *(f"drop:{key}" for key in log.keys))
    )
