"""pairs of many slices → the worst: those that fall behind the rest of the log.

The rest of a slice is what is left of the log's pairs when those of the slice are taken away.
It has nearly all pairs, so it is made for few slices: where the interval of a slice reaches the
score of the rest, that of their difference reaches 0, however well the rest is known. And what
is not reported if the rest were known for sure is not reported when it is not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import polars as pl

from polars_mcc._classes import Nulls, of_pairs
from polars_mcc._differences import (
    SIDE_A,
    SIDE_B,
    Correction,
    adjusted,
    independent,
    side,
    side_a,
)
from polars_mcc._intervals import Estimate, estimate
from polars_mcc._log import SET, Log, key_column
from polars_mcc._pairs import count_columns
from polars_mcc._scores import scores
from polars_mcc._slices import KeySet, merged_pairs, name_of, of_sets

Rank: TypeAlias = Literal["loss", "gap"]

COLUMNS = (
    "n",
    "mcc",
    "mcc_rest",
    "diff",
    "diff_low",
    "diff_high",
    "p_value",
    "p_adjusted",
    "loss",
    "n_folded",
    "n_tested",
    "n_untested",
    "n_null",
)

_NEARLY_NOTHING = 2.0**-40
"""What rounding may leave of a sum of floats when all of it is taken away."""


@dataclass(frozen=True)
class Search:
    """What is looked for, and how sure of it one must be."""

    nulls: Nulls
    zero_division: float | None
    ci: float
    correction: Correction
    min_n: int
    rank: Rank

    def estimate(self, log: Log, cells: pl.LazyFrame) -> Estimate:
        """The scores of the slices of a log, and how sure they are."""
        return estimate(
            log,
            cells,
            nulls=self.nulls,
            zero_division=self.zero_division,
            ci=self.ci,
            method="score",
        )

    def behind(self, slices: pl.LazyFrame, tests: pl.Expr | None = None) -> pl.LazyFrame:
        """Compare b with a, and tell if it `is_behind`, among so many tests."""
        # A slice that is better is no discovery, and must not make others likelier to be one.
        p_value = pl.when(pl.col("diff") < 0).then("p_value").when(pl.col("diff") >= 0).then(1.0)
        compared = independent(slices, self.ci).with_columns(p_value=p_value)
        is_behind = (pl.col("diff") < 0) & (pl.col("p_adjusted") < 1 - self.ci)
        return adjusted(compared, self.correction, tests).with_columns(
            is_behind=is_behind.fill_null(value=False)
        )

    def worst(self, log: Log, sets: Sequence[KeySet]) -> tuple[Log, pl.LazyFrame]:
        """The slices that score below the rest of the log, ranked, and the log they are of.

        The sets are all of up to so many keys.
        """
        log, cells = of_sets(log, sets)
        cells = cells.cache()
        whole = replace(log, keys=(), sets=())
        total = merged_pairs(whole, cells.filter(pl.col(SET) == name_of(sets[0]))).cache()
        of_total = of_pairs(whole, total, self.nulls).cache()
        overall = scores(whole, of_total, self.zero_division).select(*whole.slice, all="mcc")

        candidates = self._candidates(log, whole, cells, of_total).cache()
        numbered = replace(whole, apart=("slice",))
        parts = cells.join(
            candidates.select(*log.slice, "slice"), on=log.slice, nulls_equal=True
        ).select("slice", *whole.slice, "gold", "pred", *count_columns(log))
        parts = parts.cache()
        totals = whole.beside(candidates.select("slice", *whole.slice), total)
        signed = [totals.with_columns(sign=1), parts.with_columns(sign=-1)]
        rest = self.estimate(numbered, _left(numbered, pl.concat(signed, how="diagonal")))
        compared = numbered.beside(candidates, side_a(numbered, rest))
        found = self.behind(whole.beside(compared, overall), pl.col("n_tested").max().fill_null(0))
        found = found.filter("is_behind").drop("is_behind").cache()

        is_told = pl.col("role") == "one"
        marks = (
            self._folded(log, sets, candidates, parts, found)
            .unpivot(["one", "into"], variable_name="role", value_name="slice")
            .group_by("slice")
            .agg(is_told=is_told.any(), n_folded=(~is_told).sum().cast(pl.Int64))
        )
        kept = (
            found.join(marks, on="slice", how="left")
            .filter(~pl.col("is_told").fill_null(value=False))
            .with_columns(
                pl.col("n_folded").fill_null(0),
                mcc="mcc_b",
                mcc_rest="mcc_a",
                loss=pl.col("mcc_a") - pl.col("all"),
            )
        )
        order = -pl.col("loss") if self.rank == "loss" else pl.col("diff_high")
        return log, kept.sort(order, *log.slice).select(*log.slice, *COLUMNS)

    def _candidates(
        self, log: Log, whole: Log, cells: pl.LazyFrame, of_total: pl.LazyFrame
    ) -> pl.LazyFrame:
        """The slices that may be behind, numbered; and how many were and were not looked at."""
        estimate = self.estimate(log, cells)
        rest = _rest_scores(log, whole, estimate.classes, of_total)
        is_tested = pl.all_horizontal(
            pl.col("n") >= self.min_n, pl.col("high_b", "rest").is_not_null()
        )
        tested = (
            log.beside(side(log, estimate, "b"), rest)
            .with_columns(
                n_tested=is_tested.sum().cast(pl.Int64),
                n_untested=(~is_tested).sum().cast(pl.Int64),
            )
            .filter(is_tested)
        )
        # As if the rest were known for sure; its score is rounded here, hence a little more.
        known = dict.fromkeys(("mcc_a", "low_a", "high_a"), pl.col("rest") + 1e-6)
        return (
            self.behind(tested.with_columns(se_a=0.0, **known))
            .filter("is_behind")
            .select(*log.slice, "n", "n_null", *SIDE_B, "n_tested", "n_untested")
            .with_row_index("slice")
        )

    def _folded(
        self,
        log: Log,
        sets: Sequence[KeySet],
        candidates: pl.LazyFrame,
        parts: pl.LazyFrame,
        found: pl.LazyFrame,
    ) -> pl.LazyFrame:
        """The slices found that are told by another: `one`, and `into` which.

        A finer one that adds nothing to a coarser one: it is not behind the rest of that. And a
        coarser one without which a finer one that is kept leaves nothing: what is left of it is
        not behind the rest of the log.
        """
        whole = replace(log, keys=(), sets=())
        slices = candidates.select(*log.slice, coarser="slice")
        related = (
            _coarser(log, sets, candidates.select(*log.slice, *SIDE_B, finer="slice"))
            .join(slices, on=log.slice, nulls_equal=True)
            .select("finer", "coarser", *whole.slice, *SIDE_B)
            .cache()
        )
        between = replace(whole, apart=("finer", "coarser"))
        signs = pl.LazyFrame({"role": ["coarser", "finer"], "sign": [1, -1]})
        is_coarser = pl.col("role") == "coarser"
        signed = (
            related.join(signs, how="cross")
            .with_columns(slice=pl.when(is_coarser).then("coarser").otherwise("finer"))
            .join(parts.select("slice", "gold", "pred", *count_columns(log)), on="slice")
        )
        rest = self.estimate(between, _left(between, signed))
        compared = between.beside(related, side_a(between, rest))
        outside = found.select(
            pl.col("slice").alias("coarser"), pl.col(SIDE_A).name.suffix("_outside")
        )
        compared = compared.join(outside, on="coarser").join(
            found.select(finer="slice"), on="finer", how="semi"
        )
        # First, is the finer one behind what is left of the coarser; then, is that behind what is
        # outside of it?
        adds, is_told = pl.col("adds"), pl.col("diff_high") >= 0
        steps = self.behind(compared).with_columns(
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


def _rest_scores(
    log: Log, whole: Log, classes: pl.LazyFrame, of_total: pl.LazyFrame
) -> pl.LazyFrame:
    """The score of the `rest` of each slice, from the classes of the slice and of the log.

    Sums over all classes of products of what is left, such as Σ (T - t)(P - p), are
    Σ TP - Σ (T·p + t·(P - p)): only the last is of the classes of the slice.
    """
    sides = ("gold_n", "pred_n", "hit_n")

    def weighed(classes: pl.LazyFrame) -> pl.LazyFrame:
        units = log.numbers.from_units(pl.col(sides), pl.col("unit"))
        return classes.with_columns(units.cast(log.numbers.wide))

    t, p, hits = map(pl.col, sides)
    total_t, total_p = pl.col("total_t"), pl.col("total_p")
    of_all = weighed(of_total)
    of_labels = of_all.select(*whole.slice, "label", total_t=t, total_p=p)
    sums = whole.per_slice(
        of_all, s=t.sum(), c=hits.sum(), tp=(t * p).sum(), tt=(t * t).sum(), pp=(p * p).sum()
    )
    taken = log.per_slice(
        weighed(classes).join(of_labels, on=[*whole.slice, "label"], how="left", nulls_equal=True),
        s_taken=t.sum(),
        c_taken=hits.sum(),
        tp_taken=(total_t * p + t * (total_p - p)).sum(),
        tt_taken=(t * (2 * total_t - t)).sum(),
        pp_taken=(p * (2 * total_p - p)).sum(),
    )
    s, c, tp, tt, pp = (
        pl.col(name) - pl.col(f"{name}_taken") for name in ("s", "c", "tp", "tt", "pp")
    )
    cov, var_gold, var_pred = (
        part.cast(pl.Float64) for part in (c * s - tp, s * s - tt, s * s - pp)
    )
    score = pl.when((var_gold > 0) & (var_pred > 0)).then(cov / (var_gold * var_pred).sqrt())
    return whole.beside(taken, sums).select(*log.slice, rest=score)


def _left(log: Log, signed: pl.LazyFrame) -> pl.LazyFrame:
    """The pairs of slices that are left when some, of `sign` -1, are taken away from others.

    All that is made of pairs is a sum over them, so those of the two need not meet before. But
    floats leave something when all is taken away; they are added up to see if it is nothing.
    """
    pair = [*log.slice, "gold", "pred"]
    counts = [pl.col(column) * pl.col("sign") for column in count_columns(log)]
    if not log.numbers.count.is_float():
        return signed.select(*pair, *counts)
    n, most = pl.col("n"), pl.col("n").max()
    return (
        signed.group_by(pair)
        .agg(*(count.sum() for count in counts), least=most * _NEARLY_NOTHING)
        .filter((n > pl.col("least")) | (pl.col("n_null") > 0))
        .with_columns(n.clip(0))
        .drop("least")
    )


def _coarser(log: Log, sets: Sequence[KeySet], slices: pl.LazyFrame) -> pl.LazyFrame:
    """The slices that these are part of: those of each set of some of their keys."""
    dropped = [
        {
            SET: name_of(keys),
            "to": name_of(less),
            **{f"drop:{key}": key in keys and key not in less for key in log.keys},
        }
        for keys in sets
        for less in sets
        if {*less} < {*keys}
    ]
    schema: dict[str, pl.DataType] = {SET: log.set_names, "to": log.set_names}
    schema |= {f"drop:{key}": pl.Boolean() for key in log.keys}
    kept = [
        pl.when(~pl.col(f"drop:{key}")).then(key_column(key)).alias(key_column(key))
        for key in log.keys
    ]
    return (
        slices.join(pl.LazyFrame(dropped, schema=schema), on=SET)
        .with_columns(pl.col("to").alias(SET), *kept)
        .drop("to", *(f"drop:{key}" for key in log.keys))
    )
