"""Pairs of slices → the difference of each to a reference: the rest, the total, another slice."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from polars_mcc._counts.classes import is_scored
from polars_mcc._counts.sliced import SlicedLog
from polars_mcc._inference.arrays import beside, floats, of_arrays
from polars_mcc._inference.differences import (
    COVARIANCES,
    Difference,
    Side,
    covariances,
    difference,
    reaches,
    with_adjusted,
    with_limits,
)
from polars_mcc._inference.estimate import Estimate, estimate
from polars_mcc._inference.evidence import Scale
from polars_mcc._inference.given_labels import given_labels
from polars_mcc._inference.influence import NOTHING
from polars_mcc._inference.options import TO, IntervalOptions, columns_of
from polars_mcc._inference.pool import Pool
from polars_mcc._inference.quantiles import normal, normal_critical
from polars_mcc._inference.rest_of_log import pairs_of_rest
from polars_mcc._log.choices import Correction
from polars_mcc._scores.metric import Metric

_IS_REST = "of:rest"  # no metric has this name
_ROUNDING = 1e-12  # a smaller share of a variance is 0


@dataclass(frozen=True)
class Sides:
    """Both sides of a difference: b is a slice, a is its reference."""

    log: SlicedLog
    cells: pl.DataFrame
    pool: Pool  # the log sliced by `within` only
    asked: IntervalOptions

    @classmethod
    def of(
        cls, log: SlicedLog, whole: SlicedLog, cells: pl.DataFrame, asked: IntervalOptions
    ) -> Sides:
        """The slices of a log, which are compared within each slice of `whole`."""
        pool = Pool.of(whole, cells)
        return cls(log, cells, pool, replace(asked, pool=pool))

    @property
    def _metric(self) -> Metric:
        [metric] = self.asked.metrics
        return metric

    def compared(self, what: str | pl.Expr, *, ratio: bool, correction: Correction) -> pl.DataFrame:
        """Join each slice with its reference, and add their difference or ratio."""
        expected = given_labels(self.log, self.cells, self.pool, self.asked)
        if isinstance(what, str) and what == "expected":
            return with_adjusted(self._to_expected(expected), correction)
        if isinstance(what, str) and what in {"rest", "total"}:
            found = self._to_rest(is_total=what == "total", ratio=ratio)
        else:
            found = _compared(self._to_slices(what), self.asked.ci, ratio=ratio)
        return with_adjusted(beside(self.log, found, expected), correction)

    @property
    def _scores(self) -> pl.DataFrame:
        """The scores of the slices alone, without their rests."""
        return estimate(self.log, self.cells, self.asked).scores

    def _b(self, scores: pl.DataFrame) -> pl.DataFrame:
        return _with_letter(scores, self._metric.name, "b")

    def _a(self, scores: pl.DataFrame) -> pl.DataFrame:
        scores = _with_letter(scores, self._metric.name, "a").drop("n_null")
        return scores.rename({"n": f"n{TO}"})

    @property
    def _of(self) -> dict[str, str]:
        """The columns that say whose rest a row is of, with the key of each."""
        return {f"of {name}": name for name in self.log.slice if name not in self.pool.log.slice}

    def _to_rest(self, *, is_total: bool, ratio: bool) -> pl.DataFrame:
        """The difference to the rest, or to the total. Slices and rests are scored together."""
        whole = self.pool.log
        whose = {name: pl.col(key) for name, key in self._of.items()}
        apart = whole.split_by(*whose)
        own = self.cells.with_columns(**whose)
        left = pairs_of_rest(apart, own, self.pool.pairs)
        own = own.select(left.columns)
        both = pl.concat(
            [
                own.with_columns(pl.lit(value=False).alias(_IS_REST)),
                left.with_columns(pl.lit(value=True).alias(_IS_REST)),
            ]
        )
        found = estimate(apart.split_by(_IS_REST), both, self.asked)
        slices, rests = (
            part(found.scores.filter(pl.col(_IS_REST) == is_rest).drop(_IS_REST))
            for part, is_rest in ((self._b, False), (self._a, True))
        )
        rest = beside(apart, slices, rests).rename(self._of)
        if not is_total:
            return _compared(rest, self.asked.ci, ratio=ratio)
        return self._to_total(rest, found, ratio=ratio)

    def _to_expected(self, expected: pl.DataFrame) -> pl.DataFrame:
        """The difference to the score given the labels."""
        whole = self.pool.log
        n = pl.col("n").filter(is_scored(whole)).sum()
        of_all = whole.per_slice(self.pool.pairs.lazy(), **{f"n{TO}": n}).collect()
        both = beside(whole, beside(self.log, self._b(self._scores), expected), of_all)
        score, known, se, low = (
            floats(both[name]) for name in ("score_b", "expected", "expected_se", "low_b")
        )
        with np.errstate(all="ignore"):
            is_known = ~np.isnan(low) & (se > 0)
            se = np.where(is_known, se, math.nan)
            scale, step = Scale.of(self._metric), floats(both["expected_step"])
            turned = map(scale.turned, (score, known))
            apart = scale.apart(next(turned), floats(both["n"]), next(turned), se, step)
            p_value = np.where(is_known, normal(apart), math.nan)
            diff, reach = score - known, normal_critical(self.asked.ci) * se
        found = Difference(diff, diff - reach, diff + reach, se, p_value)
        return found.beside(both.with_columns(own_b="score_b", own_a="expected"), "own_b", "own_a")

    def _to_total(self, rest: pl.DataFrame, found: Estimate, *, ratio: bool) -> pl.DataFrame:
        """The difference to the total, from the tables of the slice and the rest.

        With a share w of the rows, it is (1 - w) times the difference to the rest, plus a remainder
        c = w·slice + (1 - w)·rest - total. A mean over rows has c = 0, so it has the p-value of the
        difference to the rest. For other metrics the reach of c is added to the reach of the rest.
        """
        log, whole, ci, metric = self.log, self.pool.log, self.asked.ci, self._metric.name
        total = estimate(whole, self.pool.pairs, replace(self.asked, pool=None))
        moved = covariances(found, whole, total, metric).rename(self._of)
        of_slices, of_rests = (
            moved.filter(pl.col(_IS_REST) == is_rest).drop(_IS_REST) for is_rest in (False, True)
        )
        known = self._a(total.scores).select(*whole.slice, total="score_a", n_total=f"n{TO}")
        both = beside(log, beside(whole, rest, known), of_slices)
        of_rests = of_rests.rename({name: f"{name}:rest" for name in COVARIANCES})
        both = beside(log, both, of_rests)
        n, n_total, score, of_total = (
            floats(both[name]) for name in ("n", "n_total", "score_b", "total")
        )
        own, own_total, total_total = (floats(both[name]) for name in COVARIANCES)
        rest_rest, rest_total, total_rest = (
            floats(both[f"{name}:rest"].fill_null(0.0)) for name in COVARIANCES
        )
        with np.errstate(all="ignore"):
            w = n / n_total
            remainder = w**2 * (own - 2 * own_total + total_total)
            remainder += (1 - w) ** 2 * (rest_rest - 2 * rest_total + total_rest)
            variance = own - 2 * w * own_total + w**2 * total_total + (1 - w) ** 2 * total_rest
            is_known = remainder > _ROUNDING * variance  # a mean over rows has no remainder
            more = np.where(is_known, normal_critical(ci) * np.sqrt(remainder), 0.0)
            # If the slice is all rows, the difference is 0 for certain.
            down, up = (
                np.where(n == n_total, 0.0, (1 - w) * one + more)
                for one in reaches(_side(both, "a"), _side(both, "b"))
            )
            se = np.where(np.isfinite(variance) & (variance > NOTHING), np.sqrt(variance), math.nan)
            change = with_limits(score - of_total, down, up, se, ci=ci)
        sized = both.with_columns(pl.col("n_total").alias(f"n{TO}"), own_b="score_b", own_a="total")
        compared = change.beside(sized, "own_b", "own_a")
        if not ratio:
            return compared
        positive = pl.when((pl.col("own_a") > 0) & (pl.col("own_b") > 0)).then("own_a")
        return compared.with_columns(
            **{
                f"ratio{end}": (1 + pl.col(f"diff{end}") / positive).clip(0)
                for end in ("", "_low", "_high")
            },
            p_value=pl.when(positive.is_not_null()).then("p_value"),
        )

    def _to_slices(self, what: str | pl.Expr) -> pl.DataFrame:
        log, whole = self.log, self.pool.log
        keys = [name for name in log.slice if name not in whole.slice]
        slices = self._scores
        others, scores = self._a(slices), self._b(slices)
        is_each = not isinstance(what, pl.Expr) and what == "each"
        if isinstance(what, pl.Expr):
            others = others.filter(what)
        elif not is_each:
            # A tiny slice of one class may score 1, and cannot be compared.
            score = pl.when(pl.col("low_a").is_not_null()).then("score_a").fill_nan(None)
            best = score.min() if self._metric.less_is_better else score.max()
            others = others.filter(score == whole.within_slice(best)).sort(log.slice)
            others = others.unique(whole.slice or "score_a", keep="first", maintain_order=True)
        else:
            scores = scores.sort(log.slice).with_row_index("place_b")
            others = others.sort(log.slice).with_row_index("place_a")
        both = beside(whole, scores, others.rename({key: f"{key}{TO}" for key in keys}))
        if is_each:
            return both.filter(pl.col("place_b") < pl.col("place_a"))
        # A slice is not compared with itself.
        is_other = (pl.col(key).ne_missing(pl.col(f"{key}{TO}")) for key in keys)
        return both.filter(pl.any_horizontal(is_other))


def _with_letter(scores: pl.DataFrame, metric: str, letter: str) -> pl.DataFrame:
    """The scores with their limits as `score_a`, `low_a`, `high_a`, `se_a`."""
    parts = dict(zip((metric, *columns_of([metric])), Side._fields, strict=True))
    return scores.rename({column: f"{part}_{letter}" for column, part in parts.items()})


def _side(both: pl.DataFrame, letter: str) -> Side:
    return Side(*(floats(both[f"{part}_{letter}"]) for part in Side._fields))


def _compared(both: pl.DataFrame, ci: float, *, ratio: bool) -> pl.DataFrame:
    """The difference of both sides, or their ratio, from the difference of the logarithms."""
    both = both.with_columns(own_a="score_a", own_b="score_b")
    a, b = _side(both, "a"), _side(both, "b")
    if not ratio:
        return difference(a, b, ci).beside(both)
    with np.errstate(all="ignore"):
        are_positive = (a.score > 0) & (b.score > 0)
        a, b = (
            Side(
                *(np.where(are_positive, np.log(np.clip(part, 0, None)), math.nan) for part in one)
            )
            for one in (a, b)
        )
        found = difference(a, b, ci)
        ends = {"ratio": found.diff, "ratio_low": found.low, "ratio_high": found.high}
        exps = {name: np.exp(end) for name, end in ends.items()}
        exps = {name: np.where(np.isinf(one), math.nan, one) for name, one in exps.items()}
    return found.beside(both).with_columns(of_arrays(**exps))
