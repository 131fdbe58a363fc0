"""A log → the answers of a report: frames, each with the call of the verb that gives it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import polars as pl

from polars_mcc._counts.remarks import Sides, heard, key_is_gold, remarks
from polars_mcc._counts.sliced import SET
from polars_mcc._inference.options import columns_of
from polars_mcc._log import defaults
from polars_mcc._log.columns import Columns, as_code
from polars_mcc._log.described import Described
from polars_mcc._log.key_sets import each
from polars_mcc._log.keys import TOTAL, IntoKey
from polars_mcc._log.labels import as_compared
from polars_mcc._report.gaps import gaps
from polars_mcc._report.once import Collect, Once, counted_once
from polars_mcc._report.parts import Part, pairs_of
from polars_mcc._scores.metric import Metric
from polars_mcc._scores.registry import IntoMetric
from polars_mcc._search.words import rows_in_words, summed_up
from polars_mcc._verbs.by import by
from polars_mcc._verbs.classes import classes
from polars_mcc._verbs.compare import compare
from polars_mcc._verbs.confusion import confusion
from polars_mcc._verbs.worst import worst

_METRICS = ["mcc", "accuracy", "f1_macro"]
TOP = 20  # rows in the table of the worst slices, at most
_VALUES = 50  # values of a key, at most, to compare models in the slices of pairs of keys
_PAIRS = 20_000  # slices of all pairs of keys together, at most, to compare models there
_CONFUSIONS = 5  # confusions per model that the report lists


@dataclass(frozen=True)
class Asked:
    """The options of a report."""

    metric: Metric
    given: IntoMetric
    """The metric as the user gave it: a name, a function or an expression."""
    ci: float
    depth: int
    min_n: int

    @property
    def of_metric(self) -> dict[str, Any]:
        """The `metric=` option of a verb; empty if it is the default."""
        is_default = isinstance(self.given, str) and self.given == defaults.METRIC
        return {} if is_default else {"metric": self.given}


class AskedKey(NamedTuple):
    """One key in two forms: for the log and for its counts."""

    of_rows: IntoKey
    of_counts: IntoKey


class Answer(NamedTuple):
    """A frame, and the call of a verb that gives it, as a user would write it."""

    rows: pl.DataFrame
    query: str


class Worst(NamedTuple):
    """The listed slices, worst first, and a sentence that sums up the search."""

    listed: pl.DataFrame
    looked: str
    query: str
    odd_keys: Sequence[str]
    """Sentences about keys that make no useful slices."""


@dataclass(frozen=True)
class Answers:
    """All answers that a report is made of."""

    models: Sequence[str]
    has_models: bool
    """Whether the answers have a column `model`."""
    total: Answer
    bases: Sequence[str]
    """The rows that the metric of each model is a score of, in words."""
    remarks: Sequence[str]
    """What makes every score 0 or 0/0."""
    unscored: pl.DataFrame
    """A row per model and reason: `pred`, `reason`, `n_null`."""
    parts: Sequence[tuple[Part, Answer]]
    worst: Worst | None
    """None if the report has no keys."""
    gaps: Answer | None
    """The gaps in error rates; None unless there are two classes, keys, and independent rows."""
    cells: pl.DataFrame
    costliest: Answer
    compared: Answer | None
    """The other models compared with the first; None if there is one model."""
    compared_by: Sequence[tuple[Part, Answer]]
    once: Once
    keys: Sequence[str]
    """The names of all keys."""


@dataclass(frozen=True)
class _Asking:
    """A log that is counted once, and the options of the report."""

    once: Once
    asked: Asked

    def ask(
        self,
        about: str,
        verb: Callable[..., Any],
        keys: Sequence[AskedKey],
        needed: Sequence[str],
        *,
        needs_draws: bool = True,
        **options: Any,  # noqa: ANN401 - of any verb
    ) -> Answer:
        """Call a verb on the counts if they are enough, else on the rows of the log.

        `needed`: the names of the columns that the keys are made of. `needs_draws`: the answer
        has intervals or p-values, so rows must be independent.
        """
        once, of_rows = self.once, [key.of_rows for key in keys]
        query = called(once.log, verb, *of_rows, **options)
        if once.answers(needed, needs_draws=needs_draws):
            assert once.counts is not None  # noqa: S101 - for the type checker
            return Answer(verb(once.counts, *(key.of_counts for key in keys), **options), query)

        def asked(rows: pl.LazyFrame) -> pl.LazyFrame:
            answer: pl.LazyFrame = verb(once.log.with_frame(rows), *of_rows, **options)
            return answer

        return Answer(once.collect(about, asked), query)

    def scores(self, keys: Sequence[AskedKey], needed: Sequence[str]) -> Answer:
        """The scores of slices. Only the metric of the report has intervals."""
        name = self.asked.metric.name
        others = [other for other in _METRICS if other != name]
        metrics = [self.asked.given, *others]
        slices, query = self.ask("scores", by, keys, needed, metrics=metrics, ci=self.asked.ci)
        return Answer(without(slices, columns_of(others)), query)


def without(frame: pl.DataFrame, columns: Collection[str]) -> pl.DataFrame:
    """Drop columns by exact name: `drop` would read a name like `^m.*$` as a pattern."""
    return frame[[name for name in frame.columns if name not in columns]]


def called(log: Described[Any], verb: Callable[..., Any], *keys: IntoKey, **options: object) -> str:
    """The code of a call of a verb, as a user would write it."""
    described = f"({log.said})" if log.said else ""
    shown = [*map(as_code, keys), *(f"{name}={as_code(value)}" for name, value in options.items())]
    return f"log.mcc{described}.{verb.__name__}({', '.join(shown)})"


def answers(log: Described[Any], parts: Sequence[Part], collect: Collect, asked: Asked) -> Answers:
    """Count a log once, and ask it everything that a report shows."""
    needed = {name: column for part in parts for name, column in part.needed.items()}
    once = counted_once(log, needed, collect)
    asking = _Asking(once, asked)
    total, slices = _slices(asking, parts)
    preds = log.meaning.preds
    assert preds is not None  # noqa: S101 - a report needs predictions
    cells = _cells(asking, preds)
    worst_slices = _worst(asking, parts, has_models=preds.is_several)
    several = len(preds.names) > 1
    return Answers(
        models=[*preds.names],
        has_models=preds.is_several,
        total=total,
        bases=_bases(asking, total.rows, cells),
        remarks=[
            *remarks(Sides.of(once.counts or log)),
            *key_is_gold(log, [part.key for part in parts]),
            *(worst_slices.odd_keys if worst_slices else []),
        ],
        unscored=_unscored(asking, total.rows),
        parts=slices,
        worst=worst_slices,
        gaps=_gaps(asking, parts, cells),
        cells=cells,
        costliest=_costliest(asking, cells, preds),
        compared=_compared(asking, None) if several else None,
        compared_by=_compared_by(asking, parts) if several else [],
        once=once,
        keys=[*needed],
    )


def _slices(asking: _Asking, parts: Sequence[Part]) -> tuple[Answer, list[tuple[Part, Answer]]]:
    """The total, and the slices of each part. One query serves all parts that are columns."""
    columns = [part for part in parts if part.is_column]
    names = [part.name for part in columns]
    if columns:
        of_rows = each(*(part.key for part in columns), total=True)
        of_counts = each(*(part.by_name for part in columns), total=True)
        rows, query = asking.scores([AskedKey(of_rows, of_counts)], names)
    else:
        rows, query = asking.scores([], [])
        rows = rows.select(pl.lit(TOTAL).alias(SET), pl.all())
    total = Answer(without(rows.filter(pl.col(SET) == TOTAL), [SET, *names]), query)
    found = []
    for part in parts:
        if part.is_column:
            of_part = rows.filter(pl.col(SET) == part.name)
            others = {SET, *names} - {part.name}
            found.append((part, Answer(without(of_part, others), query)))
        else:
            found.append((part, asking.scores([_key(part)], [*part.needed])))
    return total, found


def _key(part: Part) -> AskedKey:
    return AskedKey(part.key, part.by_name)


def _unscored(asking: _Asking, total: pl.DataFrame) -> pl.DataFrame:
    """Count the rows that are not scored, per model and reason."""
    once = asking.once
    found = [pl.DataFrame(schema={"pred": pl.String, "reason": pl.String, "n_null": pl.Int64})]
    for place, left_out in enumerate(total["n_null"]):
        if left_out:
            question = partial(_reasons, once=once, place=place)
            reasons = once.asked_of("rows not scored", question)
            found.append(reasons.filter(pl.col("n_null") > 0).select("pred", "reason", "n_null"))
    return pl.concat(found, how="vertical_relaxed")


def _reasons(log: Described[Any], once: Once, place: int) -> Any:  # noqa: ANN401 - of its kind
    """Group the rows of one model by the reason why they are not scored."""
    assert log.meaning.preds is not None  # noqa: S101 - for the type checker
    name, column = log.meaning.preds.each[place]
    of_model = log(pred=column)
    reasons = by(of_model, _reason(of_model, once.log))
    return reasons.with_columns(pl.lit(name).alias("pred"))


def _reason(log: Described[Any], named: Described[Any]) -> pl.Expr:
    """Name the null columns of a row. `named` is the log that has the name of the weight."""
    meaning = log.meaning
    labels = [] if meaning.nulls == "label" else [meaning.gold, meaning.preds]
    parts = [
        pl.when(
            as_compared(column.expr, column.name, column.dtype, meaning.label_dtype).is_null()
        ).then(pl.lit(f"{column.name} is null"))
        for column in labels
        if column is not None
    ]
    weight = named.meaning.weight
    if weight is not None and meaning.weight is not None:
        is_missing = meaning.weight.expr.is_null()
        parts.append(pl.when(is_missing).then(pl.lit(f"{weight.name} is null")))
    return pl.concat_str(parts, separator=", ", ignore_nulls=True).alias("reason")


def _worst(asking: _Asking, parts: Sequence[Part], *, has_models: bool) -> Worst | None:
    """Search for the slices that are behind the rest of the log; None without keys."""
    crossed = {name: column for part in parts for name, column in part.crossed.items()}
    if not crossed:
        return None
    asked = asking.asked
    options: dict[str, Any] = {"depth": asked.depth, "min_n": asked.min_n}
    options |= {"ci": asked.ci, **asked.of_metric}
    keys = [AskedKey(as_key, name) for name, as_key in crossed.items()]
    options["long"] = True
    with heard() as odd_keys:
        found, _ = asking.ask("worst slices", worst, keys, [*crossed], verdicts=True, **options)
    looked = summed_up(found, asked.metric.name, "rest", has_models=has_models)
    listed = found.filter(pl.col("verdict") == "listed").drop("verdict")
    query = called(asking.once.log, worst, *crossed.values(), top=TOP, **options)
    return Worst(listed, looked, query, odd_keys)


def _bases(asking: _Asking, total: pl.DataFrame, cells: pl.DataFrame) -> list[str]:
    """Over which rows each model is scored: a rate has the rows of one side of one label."""
    metric, meaning = asking.asked.metric, asking.once.log.meaning
    rows = pl.col("n").sum()
    if metric.given is None:
        return [rows_in_words(n) for n in total["n"]]
    label = True if meaning.positive is None else pl.select(meaning.positive).item()
    is_positive = pl.col(metric.given) == pl.lit(label, meaning.label_dtype)
    of_rate = cells.filter(~is_positive if metric.of_rest else is_positive)
    models = total["model"] if "model" in total.columns else [None]
    of_models = [
        of_rate if model is None else of_rate.filter(pl.col("model") == model) for model in models
    ]
    others = sorted({*cells[metric.given]} - {label, None})
    name = f"not {label}" if metric.of_rest and len(others) > 1 else label
    name = others[0] if metric.of_rest and len(others) == 1 else name
    side = {"gold": "with gold", "pred": "predicted"}[metric.given]
    return [f"{rows_in_words(one.select(rows).item())} {side} {name}" for one in of_models]


def _gaps(asking: _Asking, parts: Sequence[Part], cells: pl.DataFrame) -> Answer | None:
    """The widest gaps in error rates between the slices of each key."""
    labels = pl.concat([cells["gold"], cells["pred"]]).unique()
    columns = [part for part in parts if part.is_column]
    are_two = len(labels) == 2 and not labels.has_nulls()
    if not are_two or not columns or not asking.once.rows_are_draws:
        return None
    names = [part.name for part in columns]
    of_rows, of_counts = (each(*keys) for keys in zip(*map(_key, columns), strict=True))
    found, query = asking.ask("error rates", classes, [AskedKey(of_rows, of_counts)], names)
    asked = asking.asked
    return Answer(gaps(found, names, asked.min_n, 1 - asked.ci), query)


def _cells(asking: _Asking, preds: Columns) -> pl.DataFrame:
    """The confusion matrix of each model in long form. Models keep the order of `pred`."""
    cells, _ = asking.ask("confusions", confusion, [], [], needs_draws=False, long=True)
    order = pl.Enum([*preds.names])
    return cells.with_columns(pl.col("model").cast(order)) if preds.is_several else cells


def _costliest(asking: _Asking, cells: pl.DataFrame, preds: Columns) -> Answer:
    """The confusions that cost each model most."""
    counted = Described(cells.filter(pl.col("n") > 0), weight="n", nulls="label")
    rows = confusion(counted, *(["model"] if preds.is_several else []), top=_CONFUSIONS)
    # Every cell is scored: `n_null` is 0 in all rows.
    return Answer(rows.drop("n_null"), called(asking.once.log, confusion, top=_CONFUSIONS))


def _compared_by(asking: _Asking, parts: Sequence[Part]) -> list[tuple[Part, Answer]]:
    """Compare models in the slices of each key, and of pairs of keys if these are few."""
    once, asked = asking.once, asking.asked
    found = [(part, _compared(asking, part)) for part in parts]
    if asked.depth < 2 or not once.answers([], needs_draws=True):
        return found
    few = [part for part in parts if part.is_column and once.size([part]) <= _VALUES]
    pairs = [*itertools.combinations(few, 2)]
    if pairs and sum(once.size(pair) for pair in pairs) <= _PAIRS:
        crossed = pairs_of(few, asked.min_n)
        rows, query = _compared(asking, crossed, correction="by")  # "by" holds if slices overlap.
        found.append((crossed, Answer(rows.filter(pl.col("n") >= asked.min_n), query)))
    return found


def _compared(
    asking: _Asking,
    part: Part | None,
    **options: Any,  # noqa: ANN401 - of `compare`
) -> Answer:
    """Compare the other models with the first: on all rows, or in the slices of a key."""
    asked = asking.asked
    keys, needed = ([], []) if part is None else ([_key(part)], [*part.needed])
    options |= {"ci": asked.ci, **asked.of_metric}
    return asking.ask("models", compare, keys, needed, **options)
