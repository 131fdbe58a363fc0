"""The verdict of each slice of `check`, and the sentences about slices that do not pass."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import polars as pl

from polars_mcc._base.allowed_values import Correction
from polars_mcc._comparisons.required_scores import Rule

FAILED, VERDICT, ADJUSTED = "failed", "verdict", "p_adjusted"
NOT_SURE = "not significant"
VERDICTS = pl.Enum(["fails", NOT_SURE, "passes", "not judged"])
_SHOWN = 20  # slices that a message shows, at most


@dataclass(frozen=True)
class Judging:
    """What a slice must fulfil. With a level `ci`, a failure must be significant."""

    rules: Sequence[Rule]
    ci: float | None
    correction: Correction | None
    is_small: pl.Expr
    """Whether a slice has too few rows."""

    def marked(self, slices: pl.DataFrame, *, is_frequency: bool) -> pl.DataFrame:
        """Add the verdict of each slice, and a mark per rule: whether the slice fails it.

        The mark is null if the rule does not judge the slice. `is_frequency`: a weight
        counts rows.
        """
        if self.ci is not None:
            slices = self._with_p_values(slices, self.ci, is_frequency=is_frequency)
        fails = (
            rule.fails if self.ci is None else rule.surely_fails(self.ci) for rule in self.rules
        )
        marks = [rule.mark for rule in self.rules]
        failed = [pl.when(rule.mark).then(pl.lit(rule.metric.name)) for rule in self.rules]
        verdict = (
            pl.when(pl.all_horizontal(pl.col(marks).is_null()))
            .then(pl.lit("not judged"))
            .when(pl.any_horizontal(marks))
            .then(pl.lit("fails"))
            .when(pl.any_horizontal(self._is_not_sure(rule) for rule in self.rules))
            .then(pl.lit(NOT_SURE))
            .otherwise(pl.lit("passes"))
        )
        return slices.with_columns(
            pl.when(~self.is_small).then(fails_it).alias(rule.mark)
            for rule, fails_it in zip(self.rules, fails, strict=True)
        ).with_columns(
            pl.concat_str(failed, separator=", ", ignore_nulls=True).alias(FAILED),
            verdict.cast(VERDICTS).alias(VERDICT),
        )

    def _is_not_sure(self, rule: Rule) -> pl.Expr:
        """Whether a slice misses a threshold, but does not fail."""
        return ~pl.col(rule.mark) & rule.misses()

    def _with_p_values(
        self, slices: pl.DataFrame, ci: float, *, is_frequency: bool
    ) -> pl.DataFrame:
        """Add the p-value of each rule, and `p_adjusted`, the least of a slice.

        They are corrected for all slices and rules that are judged.
        """
        import numpy as np  # noqa: PLC0415 - only for intervals

        from polars_mcc._comparisons.corrected_p_values import adjusted  # noqa: PLC0415 - likewise
        from polars_mcc._comparisons.one_sided_p_values import of_threshold  # noqa: PLC0415 - likewise
        from polars_mcc._intervals.count_arrays import floats, of_arrays  # noqa: PLC0415 - likewise

        p_values = []
        for rule in self.rules:
            if rule.is_diff:
                p = floats(slices[rule.p_value])
            else:
                asked = (rule.metric, rule.bound, rule.threshold, ci)
                p = of_threshold(slices, *asked, is_frequency=is_frequency)
            able = slices.select((~self.is_small & rule.can_judge).alias("able"))["able"]
            p_values.append(np.where(able.to_numpy(), p, np.nan))
        every = np.concatenate(p_values)
        if self.correction is not None:
            every = adjusted(every, self.correction)
        names = [rule.p_value for rule in self.rules]
        columns = dict(zip(names, np.split(every, len(names)), strict=True))
        return slices.with_columns(of_arrays(**columns)).with_columns(
            pl.min_horizontal(names).alias(ADJUSTED)
        )

    def failing(self, marked: pl.DataFrame) -> Iterator[str]:
        """How many slices fail, by rule; and how many miss one by chance: a sentence each."""
        times = {}
        for rule in self.rules:
            slices = marked.filter(rule.mark)
            if slices.height:
                is_0 = self.ci is None and slices.select(rule.is_0.any()).item()
                times[rule.words(is_0=is_0)] = slices.height
        if times:
            what = (
                words if len(self.rules) == 1 else f"{words} ({n})" for words, n in times.items()
            )
            sure = "" if self.ci is None else f", significantly (ci={self.ci})"
            n = marked.filter(pl.col(VERDICT) == "fails").height
            judged = marked.filter(pl.col(VERDICT) != "not judged").height
            yield f"{n} of {judged} slices {'fails' if n == 1 else 'fail'}: {', '.join(what)}{sure}"
        not_sure = marked.filter(pl.col(VERDICT) == NOT_SURE)
        if not_sure.height:
            words = [
                rule.words(is_0=False)
                for rule in self.rules
                if not_sure.select(self._is_not_sure(rule).any()).item()
            ]
            has = "has" if not_sure.height == 1 else "have"
            yield f"{not_sure.height} more {has} {' or '.join(words)}, but not significantly"

    def unjudged(self, marked: pl.DataFrame, models: Sequence[str]) -> list[str]:
        """The metrics that are judged in no slice, each with the model if there are several."""
        of_models = marked.group_by(models, maintain_order=True) if models else [((), marked)]
        unjudged = {
            f"{rule.metric.name}{''.join(f' of {name}' for name in model)}": None
            for model, slices in of_models
            for rule in self.rules
            if slices[rule.mark].is_null().all()
        }
        return [*unjudged]

    def left_out(self, marked: pl.DataFrame, sizes: Sequence[str], few: str) -> str:
        """How many slices are not judged, and why."""
        left = marked.filter(pl.col(VERDICT) == "not judged")
        number = left.height
        if not number:
            return ""
        bounds = sorted({rule.bound for rule in self.rules if isinstance(rule.given, pl.DataFrame)})
        has_own = bool(bounds) and all(isinstance(rule.given, pl.DataFrame) for rule in self.rules)
        has_gold = pl.any_horizontal(rule.has_gold for rule in self.rules)
        why = {
            "not in the log": pl.all_horizontal(pl.col(sizes).is_null()),
            f"no {' and no '.join(bounds)}": pl.all_horizontal(pl.col(bounds).is_null(), has_own),
            few: self.is_small,
            "no interval": pl.all_horizontal(has_gold, self.ci is not None),
            "no score, or not the gold labels that it needs": pl.lit(value=True),
        }
        reasons = {}
        for words, is_so in why.items():
            rest = left.filter(~is_so)
            if rest.height < left.height:
                reasons[words] = left.height - rest.height
            left = rest
        each = (
            f"{words} ({times})" if len(reasons) > 1 else words for words, times in reasons.items()
        )
        return f" ({number} not judged: {', '.join(each)})"


def table(frame: pl.DataFrame) -> str:
    """The frame as text: all columns, and the first rows. "" if there is no row."""
    if frame.is_empty():
        return ""
    more = f"\n… and {frame.height - _SHOWN} more" if frame.height > _SHOWN else ""
    with pl.Config(tbl_rows=-1, tbl_cols=-1, tbl_width_chars=-1, tbl_hide_dataframe_shape=True):
        return f"\n{frame.head(_SHOWN)}{more}"
