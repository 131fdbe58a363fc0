"""Every slice of up to `depth` keys: its score, its size, and its evidence against the rest."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import polars as pl

from polars_mcc._counts.classes import of_pairs
from polars_mcc._counts.counted import count_columns
from polars_mcc._counts.exact import count_where
from polars_mcc._counts.identity import wide_of
from polars_mcc._counts.sliced import SlicedLog
from polars_mcc._inference.arrays import beside
from polars_mcc._inference.estimate import Estimate, estimate, has_classes
from polars_mcc._inference.evidence import COLLAPSE, LEVEL, Scale, collapse
from polars_mcc._inference.given_labels import given_labels
from polars_mcc._inference.options import IntervalOptions, columns_of
from polars_mcc._inference.pool import Pool
from polars_mcc._inference.rest_of_log import classes_of_rest, scores_of_rest, taken_away
from polars_mcc._log.choices import Correction, Rank, Reference
from polars_mcc._scores.measure import measure
from polars_mcc._scores.metric import Metric
from polars_mcc._scores.metrics import MCC
from polars_mcc._search.codes import Coded
from polars_mcc._search.counting import SLICE, Batch, Counting

_SAME = 100  # most slices, on average, that have the same rows because keys determine each other

_PAIRS = 2**22  # the most pairs of a score and a gold label that are in memory at once
_ROUNDING = 2.0**-40  # the share of a sum of float weights that its order may change


@dataclass(frozen=True)
class Search:
    """The settings of a search: metric, number of keys, least rows, confidence level."""

    metric: Metric
    positive: pl.Expr | None
    depth: int
    min_n: int
    max_share: float
    bins: int | None
    top: int | None
    rank: Rank
    ci: float
    correction: Correction
    verdicts: bool
    long: bool
    to: Reference


@dataclass(frozen=True)
class Sought(Search):
    """A search in the coded log of one model."""

    coded: Coded

    @property
    def scale(self) -> Scale:
        """The metric as a proportion."""
        return Scale.of(self.metric)

    @property
    def whole(self) -> SlicedLog:
        """The log as one slice, without clusters. A score at 0/0 is 0, or null."""
        zero_division = 0.0 if self.coded.log.zero_division == 0 else None
        log = replace(self.coded.log.whole, extras=(), zero_division=zero_division)
        if not self.metric.needs_labels:
            return log
        dtype = self.labels.dtype
        return replace(
            log, label_dtype=pl.Boolean() if log.is_of_scores else dtype, pred_dtype=dtype
        )

    @property
    def labels(self) -> pl.Series:
        """The labels, in the order of their codes, in a dtype to compute with."""
        labels = self.coded.labels
        return labels.cast(wide_of(labels.dtype)) if self.metric.has_labels else labels

    @property
    def numbered(self) -> SlicedLog:
        """The log with a number per slice, in the column `slice`."""
        return replace(self.whole, apart=(SLICE,))

    @property
    def asked(self) -> IntervalOptions:
        """The query for the confidence limits that give the evidence."""
        return IntervalOptions(
            LEVEL, metrics=[self.metric], positive=self.positive, is_compared=True
        )

    def with_labels(self, counts: pl.LazyFrame, *columns: str) -> pl.LazyFrame:
        """Pairs, or other counts, with labels in place of codes, if the metric needs labels."""
        if not self.metric.needs_labels:
            return counts
        columns = columns or ("gold", "pred")
        found = with_labels(counts, self.labels, *columns)
        if not self.metric.is_of_scores:
            return found
        return found.with_columns(pl.col(name) == 1 for name in columns if name != "pred")

    def scored(
        self, log: SlicedLog, classes: pl.LazyFrame, pairs: pl.LazyFrame | None = None
    ) -> pl.LazyFrame:
        """The `n` and the `score` of each slice, its sign such that more is better."""
        scores = measure(log, classes, [self.metric], pairs=pairs, positive=self.positive)
        score = pl.col(self.metric.name).cast(pl.Float64)
        score = self.scale.turned(score.fill_nan(None))
        return scores.select(*log.slice, "n", score=score)

    def limits(self, found: Estimate) -> pl.DataFrame:
        """The `score` of each slice, its sign such that more is better, and its precision.

        `proportion` is the score as a proportion. `rows_up` and `rows_down` are the rows m of the
        proportion, from the upper and the lower limit. `spread` is the distance from the score to
        the upper limit.
        """
        n = pl.col("n").cast(pl.Float64)
        name, scale = self.metric.name, self.scale
        low, high, _ = columns_of([name])
        ends = [scale.turned(pl.col(end)) for end in (low, high)]
        low_end, high_end = ends if scale.turn > 0 else ends[::-1]
        score = scale.turned(pl.col(name))
        return found.scores.select(
            *found.log.slice,
            score=score,
            proportion=scale.proportion(score),
            rows_up=scale.worth(score, high_end, n),
            rows_down=scale.worth(score, low_end, n),
            spread=high_end - score,
        )

    def below_expected(self, log: SlicedLog, pairs: pl.DataFrame, pool: Pool) -> pl.DataFrame:
        """The score of each slice given its labels, as `reference`, and the `evidence` below it.

        `spread` is twice the standard error. `pairs` and `pool` have labels, if the metric does.
        """
        scale, here, n = self.scale, pl.col("score"), pl.col("n").cast(pl.Float64)
        counted = pairs.lazy()
        scores = self.scored(log, of_pairs(log, counted), counted).collect()
        expected = given_labels(log, pairs, pool, self.asked)
        there, se = scale.turned(pl.col("expected").fill_nan(None)), pl.col("expected_se")
        apart = pl.coalesce(COLLAPSE, scale.apart(here, n).fill_nan(None))
        evidence = pl.when(se > 0).then(pl.when(here < there).then(apart).otherwise(0.0))
        both = beside(log, scores, expected)
        return beside(log, both, self.collapse(log, pairs, pool)).select(
            *log.slice, reference=there, spread=2 * se, evidence=evidence
        )

    def collapse(self, log: SlicedLog, pairs: pl.DataFrame, pool: Pool) -> pl.DataFrame:
        """The evidence of slices whose predictions are one class, where the metric is 0/0 then."""
        can_be = self.metric.is_of_two and not self.metric.is_of_scores
        found = collapse(
            log, pairs if can_be and log.zero_division is not None else pairs[:0], pool
        )
        if found.is_empty():
            return found
        cells = pairs.join(found, on=log.slice, how="semi").lazy()
        here = self.scored(replace(log, zero_division=None), of_pairs(log, cells), cells)
        undefined = here.filter(pl.col("score").is_null()).collect()
        return found.join(undefined, on=log.slice, how="semi")

    def sure(self, log: SlicedLog, pairs: pl.DataFrame) -> pl.DataFrame:
        """The `limits` of the slices of these pairs."""
        return self.limits(estimate(log, pairs, self.asked))


def is_below(reference: pl.Expr) -> pl.Expr:
    """Whether the upper limit of a score is below a reference: see `Sought.limits`."""
    return pl.col("score") + pl.col("spread") < reference


def with_labels(pairs: pl.LazyFrame, labels: pl.Series, *columns: str) -> pl.LazyFrame:
    """The pairs with labels in place of their codes."""
    codes = pl.Series(range(len(labels)), dtype=pl.UInt32)
    return pairs.with_columns(
        pl.col(column).replace_strict(codes, labels, default=None, return_dtype=labels.dtype)
        for column in columns
    )


@dataclass(frozen=True)
class Looked:
    """All slices that were counted and are large enough."""

    slices: pl.DataFrame
    """A row per slice: for each key, the number of its value in `Key.values`, null if the key is
    not in the set of the slice; `n`, `n_null`; and what `compared` adds. More is better."""
    overall: float | None
    """The score of the log."""
    n: float
    """The scored rows of the log."""
    n_small: int


def looked_at(sought: Sought, needed: Callable[[int], float]) -> Looked:
    """Count every slice, and compare each large enough slice with the rest of the log.

    `needed` gives the least evidence of a listed slice, from the number of tests. A slice that
    cannot reach it, whatever its limits, gets evidence 0, and its limits are not computed.
    """
    coded = sought.coded
    counting = Counting(coded, sought.min_n)
    n_small = sum(key.n_small for key in coded.keys.values())
    all_rows = _AllRows.of(sought, sought.with_labels(counting.whole().lazy()).collect())
    found: list[pl.DataFrame] = []
    n_tested = 0
    for batch in counting.batches(sought.depth):
        n_small += batch.n_small
        n_tested += batch.slices.height
        # Some slices have the same rows, which lowers the number of tests and the needed evidence.
        beside = all_rows.compared(batch, needed(n_tested // _SAME))
        found.append(batch.slices.join(beside, on=SLICE, maintain_order="left").drop(SLICE))
    slices = pl.concat([_none(coded), *found], how="diagonal").with_row_index(SLICE)
    return Looked(_distinct(coded, slices), all_rows.overall, all_rows.n, n_small)


def _none(coded: Coded) -> pl.DataFrame:
    """An empty frame with the columns of slices."""
    columns: dict[str, pl.DataType] = {key.column: pl.UInt32() for key in coded.keys.values()}
    columns |= {"n": coded.log.numbers.count, "n_null": coded.log.numbers.count}
    scores = ("score", "rest", "reference", "spread", "evidence", "shown", "shown_rest")
    return pl.DataFrame(schema=columns | dict.fromkeys(scores, pl.Float64()))


@dataclass(frozen=True)
class _AllRows:
    """All rows of the log. The rest of a slice is all rows minus the slice."""

    sought: Sought
    pairs: pl.DataFrame
    classes: pl.LazyFrame
    n: float
    overall: float | None
    rows: float | None
    """The rows m of the score of the log as a proportion."""
    n_classes: tuple[int, int]
    """The number of gold and of predicted classes."""

    @classmethod
    def of(cls, sought: Sought, pairs: pl.DataFrame) -> _AllRows:
        """Score all rows, from their pairs."""
        log = sought.whole
        classes = of_pairs(log, pairs.lazy()).collect().lazy()
        score = sought.scored(log, classes, pairs.lazy())
        (n, overall), rows = score.collect().row(0), sought.sure(log, pairs)["rows_down"].item()
        rows = None if rows is None or math.isnan(rows) else rows
        n_classes = classes.select(count_where(pl.col("gold_n", "pred_n") > 0)).collect().row(0)
        return cls(sought, pairs, classes, n, overall, rows, n_classes)

    def compared(self, batch: Batch, needed: float) -> pl.DataFrame:
        """The `score` of each slice, of the `rest` of the log, and of the `reference`.

        0/0 is null there. The answer has `shown` and `shown_rest`, where 0/0 is as the log has it.
        The `evidence` is how many standard errors the slice is behind the reference; 0 if it is not
        behind, null if it cannot be compared. `spread` is the distance from the score to its upper
        limit.
        """
        classes = self.sought.with_labels(batch.classes, "label").collect().lazy()
        scored = self._scored(batch, classes)
        if self.sought.to == "expected":
            found = self._beside_expected(batch, scored)
        else:
            found = self._beside_rest(batch, scored, needed)
        score, rest = pl.col("score"), pl.col("rest")
        is_odd = ~pl.col("is_comparable") | score.is_null() | rest.is_null()
        is_odd &= not self.sought.metric.is_of_scores  # These are null as they are.
        odd = self._shown(classes, found.filter(is_odd).select(SLICE))
        shown = {"shown": score, "shown_rest": rest}
        return found.join(odd, on=SLICE, how="left").select(
            *(SLICE, "score", "rest", "reference", "spread"),
            evidence=pl.when("is_comparable").then("evidence"),
            **{
                name: pl.when(is_odd).then(name).otherwise(self.sought.scale.turned(one))
                for name, one in shown.items()
            },
        )

    def _scored(self, batch: Batch, classes: pl.LazyFrame) -> pl.DataFrame:
        """The score of each slice and of its rest, and whether they can be compared."""
        sought, log, pairs = self.sought, self.sought.numbered, None
        if sought.metric.is_of_scores:
            pairs = sought.with_labels(batch.pairs(batch.slices[SLICE]).lazy()).collect().lazy()
        here = sought.scored(log, classes, pairs)
        rest = self._rest(classes) if pairs is None else self._rests_of_scores(pairs)
        n_classes = {side: count_where(pl.col(f"{side}_n") > 0) for side in ("gold", "pred")}
        of_slices = log.per_slice(classes, **n_classes).with_columns(
            all_gold=pl.lit(self.n_classes[0]), all_pred=pl.lit(self.n_classes[1])
        )
        numbers = map(pl.col, ("gold", "pred", "all_gold", "all_pred"))
        is_comparable = has_classes(sought.metric.classes_needed, *numbers)
        known = of_slices.select(SLICE, is_comparable=is_comparable)
        return log.beside(log.beside(here, rest), known).collect()

    def _shown(self, classes: pl.LazyFrame, slices: pl.DataFrame) -> pl.DataFrame:
        """The scores of slices and of their rests as `by` has them."""
        sought, zero_division = self.sought, self.sought.coded.log.zero_division
        if slices.is_empty():
            empty = dict.fromkeys(("shown", "shown_rest"), pl.lit(None, pl.Float64))
            return slices.with_columns(**empty)
        log = replace(sought.numbered, zero_division=zero_division)
        here = classes.join(slices.lazy(), on=SLICE, how="semi")
        sides = {"shown": here, "shown_rest": classes_of_rest(log, here, self.classes)}
        scores = [
            measure(log, side, [sought.metric], positive=sought.positive).select(
                SLICE, pl.col(sought.metric.name).cast(pl.Float64).alias(name)
            )
            for name, side in sides.items()
        ]
        return log.beside(*scores).collect()

    def _beside_expected(self, batch: Batch, scored: pl.DataFrame) -> pl.DataFrame:
        """The evidence against the score given the labels."""
        sought, log = self.sought, self.sought.numbered
        pairs = sought.with_labels(batch.pairs(batch.slices[SLICE]).lazy()).collect()
        return beside(log, scored, sought.below_expected(log, pairs, self._pool))

    @cached_property
    def _pool(self) -> Pool:
        return Pool.of(self.sought.whole, self.pairs)

    def _beside_rest(self, batch: Batch, scored: pl.DataFrame, needed: float) -> pl.DataFrame:
        """The evidence against the rest of the log, of slices that may reach the needed evidence.

        The rest has as many rows of a proportion, for each of its rows, as the log.
        """
        sought, scale = self.sought, self.sought.scale
        of_rest = (1 - pl.col("n") / self.n) * (0.0 if self.rows is None else self.rows)
        rest = scale.proportion(pl.col("rest")), of_rest
        at_most = scale.at_most(pl.col("score"), pl.col("n").cast(pl.Float64), *rest)
        is_behind = (pl.col("score") < pl.col("rest")) & (at_most >= needed)
        marked = scored.with_columns(is_behind=is_behind, reference="rest")
        behind = marked.filter(pl.col("is_comparable") & pl.col("is_behind"))[SLICE]
        pairs = sought.with_labels(batch.pairs(behind).lazy()).collect()
        log = sought.numbered
        sure = sought.sure(log, pairs).drop("score")
        both = beside(log, beside(log, marked, sure), sought.collapse(log, pairs, self._pool))
        evidence = scale.evidence(pl.col("proportion"), pl.col("rows_up"), *rest).fill_nan(None)
        evidence = pl.coalesce(pl.when(is_below(pl.col("rest"))).then(COLLAPSE), evidence)
        return both.with_columns(
            evidence=pl.when("is_behind").then(evidence).when(~pl.col("is_behind")).then(0.0)
        )

    def _rest(self, classes: pl.LazyFrame) -> pl.LazyFrame:
        log = replace(self.sought.numbered, zero_division=None)
        if self.sought.metric is MCC:
            return scores_of_rest(log, classes, self.classes)
        rest = classes_of_rest(log, classes, self.classes)
        return self.sought.scored(log, rest).select(SLICE, rest="score")

    def _rests_of_scores(self, pairs: pl.LazyFrame) -> pl.LazyFrame:
        """The score of the rest of each slice, from the pairs of the log without its own.

        A few slices at a time, to bound the memory.
        """
        log = self.sought.numbered
        slices = pairs.select(SLICE).unique(maintain_order=True).collect()
        few = max(1, _PAIRS // max(1, self.pairs.height))
        found = []
        for part in slices.iter_slices(few):
            every = part.lazy().join(self.pairs.lazy(), how="cross")
            own = pairs.join(part.lazy(), on=SLICE, how="semi")
            own = own.with_columns(-pl.col(name) for name in count_columns(log))
            rest = taken_away(log, pl.concat([every, own], how="diagonal_relaxed"))
            scores = self.sought.scored(log, of_pairs(log, rest), rest)
            found.append(scores.select(SLICE, rest="score").collect())
        return pl.concat(found).lazy()


def _distinct(coded: Coded, slices: pl.DataFrame) -> pl.DataFrame:
    """Drop slices that have all rows of a slice with one key fewer: that key adds nothing."""
    columns = [key.column for key in coded.keys.values()]
    if len(columns) == 1:
        return slices
    is_float = coded.log.numbers.count.is_float()
    rounding = pl.col("n") * _ROUNDING if is_float else pl.lit(0)

    def adds_nothing(column: str) -> pl.Expr:
        others = [other for other in columns if other != column]
        n_without = pl.col("n").filter(pl.col(column).is_null()).first().over(others)
        is_crossed = pl.col(column).is_not_null() & pl.any_horizontal(pl.col(others).is_not_null())
        return is_crossed & (n_without - pl.col("n") <= rounding).fill_null(value=False)

    return slices.filter(~pl.any_horizontal(map(adds_nothing, columns)))
