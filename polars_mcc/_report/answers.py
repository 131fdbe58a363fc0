"""A log → the answers of a report: frames, each with the call of the verb that gives it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import polars as pl

from polars_mcc._counts.remarks import Sides, heard, key_is_gold, remarks
from polars_mcc._counts.sliced import SET
from polars_mcc._inference.options import columns_of
from polars_mcc._log import defaults
from polars_mcc._log.choices import ReportFormat, check_at_least, check_choice, check_level
from polars_mcc._log.columns import Columns, as_expr
from polars_mcc._log.described import Described
from polars_mcc._log.key_sets import each, sets
from polars_mcc._log.keys import TOTAL, IntoKey
from polars_mcc._log.labels import as_compared
from polars_mcc._log.messages import as_code
from polars_mcc._report.gaps import gaps
from polars_mcc._report.once import Collect, Once, counted_once
from polars_mcc._report.parts import Part, crossed, joined
from polars_mcc._scores import registry
from polars_mcc._scores.metric import Metric
from polars_mcc._scores.registry import IntoMetric
from polars_mcc._search.words import rows_in_words, summed_up
from polars_mcc._verbs.by import by
from polars_mcc._verbs.calibration import calibration
from polars_mcc._verbs.classes import classes
from polars_mcc._verbs.compare import compare
from polars_mcc._verbs.confusion import confusion
from polars_mcc._verbs.worst import worst

_METRICS = ["mcc", "accuracy", "f1_macro"]
OF_SCORES = ["roc_auc", "brier", "calibration_error"]
TOP = 20  # rows in the table of the worst slices, at most
_VALUES = 50  # values of a key, at most, to compare models in the slices of pairs of keys
_PAIRS = 20_000  # slices of all pairs of keys together, at most, to compare models there
_CONFUSIONS = 5  # confusions per model that the report lists


@dataclass(frozen=True)
class Options:
    """The options of a report, as the user gave them; see `report`."""

    metric: IntoMetric
    ci: float
    depth: int
    min_n: int
    title: str
    format: ReportFormat
    explored: int

    def __post_init__(self) -> None:
        """Raise an error if a value is not allowed."""
        check_level(self.ci)
        check_choice("format", self.format, ReportFormat)
        check_at_least("explored", self.explored, 0)
        if self.scored.is_of_scores:
            msg = (
                f"report takes a metric of labels, but '{self.scored.name}' is of scores; leave it "
                "out: a log with predicted labels and scores has sections of both"
            )
            raise ValueError(msg)

    @cached_property
    def scored(self) -> Metric:
        """The metric that is drawn and compared."""
        return registry.one(self.metric)

    @property
    def of_verb(self) -> dict[str, Any]:
        """The options of a verb that compares; `metric` only if it is not the default."""
        is_default = isinstance(self.metric, str) and self.metric == defaults.METRIC
        return {"ci": self.ci, **({} if is_default else {"metric": self.metric})}


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

    options: Options
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
    of_scores: Answer | None
    """The metrics of the scores of all rows, and by each column; None unless the log has scores."""
    calibrated: Answer | None
    """The reliability table of all rows; None unless the scores are probabilities."""
    once: Once
    keys: Sequence[str]
    """The names of all keys."""

    @property
    def metric(self) -> str:
        """The name of the metric."""
        return self.options.scored.name

    @property
    def less_is_better(self) -> bool:
        return self.options.scored.less_is_better

    def of_model(self, row: Mapping[str, Any]) -> str:
        """The model of a row in words, in brackets; "" if there is only one."""
        return f" ({row['model']})" if self.has_models else ""


def without(frame: pl.DataFrame, columns: Collection[str]) -> pl.DataFrame:
    """Drop columns by exact name: `drop` would read a name like `^m.*$` as a pattern."""
    return frame[[name for name in frame.columns if name not in columns]]


def called(log: Described[Any], verb: Callable[..., Any], *keys: IntoKey, **options: object) -> str:
    """The code of a call of a verb, as a user would write it."""
    described = f"({log.said})" if log.said else ""
    shown = [*map(as_code, keys), *(f"{name}={as_code(value)}" for name, value in options.items())]
    return f"log.mcc{described}.{verb.__name__}({', '.join(shown)})"


def answers(
    log: Described[Any], parts: Sequence[Part], collect: Collect, options: Options
) -> Answers:
    """Count a log once, and ask it everything that a report shows."""
    needed = {name: column for part in parts for name, column in part.needed.items()}
    once = counted_once(log, needed, collect)
    total, slices = _slices(once, parts, options)
    preds = log.meaning.preds
    assert preds is not None  # noqa: S101 - a report needs predictions
    cells = _cells(once, preds)
    worst_slices = _worst(once, parts, options, has_models=preds.is_several)
    several = len(preds.names) > 1
    of_scores, calibrated = _of_scores(once, parts, options)
    return Answers(
        options=options,
        models=[*preds.names],
        has_models=preds.is_several,
        total=total,
        bases=_bases(once.log, options.scored, total.rows, cells),
        remarks=[
            *remarks(Sides.of(once.counts or log)),
            *key_is_gold(log, [part.key for part in parts]),
            *(worst_slices.odd_keys if worst_slices else []),
        ],
        unscored=_unscored(once, preds, total.rows),
        parts=slices,
        worst=worst_slices,
        gaps=_gaps(once, parts, cells, options),
        cells=cells,
        costliest=_costliest(once.log, cells, preds),
        compared=_compared(once, [], options) if several else None,
        compared_by=_compared_by(once, parts, options) if several else [],
        of_scores=of_scores,
        calibrated=calibrated,
        once=once,
        keys=[*needed],
    )


def _ask(
    once: Once,
    about: str,
    verb: Callable[..., Any],
    parts: Sequence[Part],
    *,
    needs_draws: bool = True,
    **options: Any,  # noqa: ANN401 - of any verb
) -> Answer:
    """Call a verb, see `Once.ask`."""
    rows = once.ask(about, partial(verb, **options), parts, needs_draws=needs_draws)
    return Answer(rows, called(once.log, verb, *(part.key for part in parts), **options))


def _slices(
    once: Once, parts: Sequence[Part], options: Options
) -> tuple[Answer, list[tuple[Part, Answer]]]:
    """The total, and the slices of each part. One query serves all parts that are columns."""

    def scores(asked: Sequence[Part]) -> Answer:
        """Only the metric of the report has intervals."""
        others = [other for other in _METRICS if other != options.scored.name]
        metrics = [options.metric, *others]
        rows, query = _ask(once, "scores", by, asked, metrics=metrics, ci=options.ci)
        return Answer(without(rows, columns_of(others)), query)

    columns = [part for part in parts if part.is_column]
    names = [part.name for part in columns]
    if columns:
        rows, query = scores([joined(columns, "each", lambda keys: each(*keys, total=True))])
    else:
        rows, query = scores([])
        rows = rows.select(pl.lit(TOTAL).alias(SET), pl.all())

    def of_set(name: str) -> Answer:
        of_name = rows.filter(pl.col(SET) == name)
        return Answer(without(of_name, {SET, *names} - {name}), query)

    slices = [(part, of_set(part.name) if part.is_column else scores([part])) for part in parts]
    return of_set(TOTAL), slices


def _of_scores(
    once: Once, parts: Sequence[Part], options: Options
) -> tuple[Answer | None, Answer | None]:
    """How good the scores are, and whether they are calibrated. The counts do not have them."""
    meaning = once.log.meaning
    has_positive = meaning.positive is not None or meaning.label_dtype == pl.Boolean
    has_answer = has_positive and not meaning.score_labels and meaning.nulls != "label"
    if meaning.scores is None or not has_answer:
        return None, None
    given, scores = [*map(as_expr, meaning.scores.given)], pl.all().cast(pl.Float64).fill_nan(None)
    are_probabilities = once.collect(
        "scores",
        lambda rows: rows.select(given).select(pl.all_horizontal(scores.is_between(0, 1).all())),
    ).item()
    metrics = OF_SCORES if are_probabilities else OF_SCORES[:1]
    columns = [part for part in parts if part.is_column]
    of_each = [joined(columns, "each", lambda keys: each(*keys, total=True))] if columns else []
    rows, long = replace(once, counts=None), dict.fromkeys(["long"] if columns else [], True)
    found = _ask(rows, "scores", by, of_each, metrics=metrics, ci=options.ci, **long)
    if not are_probabilities:
        return found, None
    return found, _ask(rows, "calibration", calibration, [], ci=options.ci)


def _unscored(once: Once, preds: Columns, total: pl.DataFrame) -> pl.DataFrame:
    """Count the rows that are not scored, per model and reason."""
    found = [pl.DataFrame(schema={"pred": pl.String, "reason": pl.String, "n_null": pl.Int64})]
    for at, (name, left_out) in enumerate(zip(preds.names, total["n_null"], strict=True)):

        def of_model(log: Described[Any], at: int = at) -> Any:  # noqa: ANN401 - a frame
            assert log.meaning.preds is not None  # noqa: S101 - for the type checker
            _, column = log.meaning.preds.each[at]
            return by(log(pred=column), _reason(log(pred=column), once.log.meaning.weight))

        if left_out:
            reasons = once.ask("rows not scored", of_model, needs_draws=False)
            reasons = reasons.filter(pl.col("n_null") > 0)
            found.append(reasons.select(pl.lit(name).alias("pred"), "reason", "n_null"))
    return pl.concat(found, how="vertical_relaxed")


def _reason(log: Described[Any], weight: Columns | None) -> pl.Expr:
    """Name the null columns of a row. The counts have another name for the `weight` of the log."""
    meaning = log.meaning
    labels = [] if meaning.nulls == "label" else [meaning.gold, meaning.preds]
    parts = [
        pl.when(
            as_compared(column.expr, column.name, column.dtype, meaning.label_dtype).is_null()
        ).then(pl.lit(f"{column.name} is null"))
        for column in labels
        if column is not None
    ]
    if weight is not None and meaning.weight is not None:
        is_missing = meaning.weight.expr.is_null()
        parts.append(pl.when(is_missing).then(pl.lit(f"{weight.name} is null")))
    return pl.concat_str(parts, separator=", ", ignore_nulls=True).alias("reason")


def _worst(
    once: Once, parts: Sequence[Part], options: Options, *, has_models: bool
) -> Worst | None:
    """Search for the slices that are behind the rest of the log; None without keys."""
    keys = crossed(parts)
    if not keys:
        return None
    of_verb = {"depth": options.depth, "min_n": options.min_n, **options.of_verb, "long": True}
    with heard() as odd_keys:
        found, _ = _ask(once, "worst slices", worst, keys, verdicts=True, **of_verb)
    looked = summed_up(found, options.scored.name, "rest", has_models=has_models)
    listed = found.filter(pl.col("verdict") == "listed").drop("verdict")
    query = called(once.log, worst, *(part.key for part in keys), top=TOP, **of_verb)
    return Worst(listed, looked, query, odd_keys)


def _bases(
    log: Described[Any], metric: Metric, total: pl.DataFrame, cells: pl.DataFrame
) -> list[str]:
    """Over which rows each model is scored: a rate has the rows of one side of one label."""
    meaning = log.meaning
    if metric.given is None:
        return [rows_in_words(n) for n in total["n"]]
    label = True if meaning.positive is None else pl.select(meaning.positive).item()
    is_positive = pl.col(metric.given) == pl.lit(label, meaning.label_dtype)
    of_rate = cells.filter(~is_positive if metric.of_rest else is_positive)
    models = total["model"] if "model" in total.columns else [None]
    numbers: list[float] = [
        of_rate.filter(model is None or pl.col("model") == model).select(pl.col("n").sum()).item()
        for model in models
    ]
    others = sorted({*cells[metric.given]} - {label, None})
    name = f"not {label}" if metric.of_rest and len(others) > 1 else label
    name = others[0] if metric.of_rest and len(others) == 1 else name
    what = {"gold": "with gold", "pred": "predicted"}[metric.given]
    return [f"{rows_in_words(n)} {what} {name}" for n in numbers]


def _gaps(
    once: Once, parts: Sequence[Part], cells: pl.DataFrame, options: Options
) -> Answer | None:
    """The widest gaps in error rates between the slices of each key."""
    labels = pl.concat([cells["gold"], cells["pred"]]).unique()
    columns = [part for part in parts if part.is_column]
    are_two = len(labels) == 2 and not labels.has_nulls()
    if not are_two or not columns or not once.rows_are_draws:
        return None
    of_each = joined(columns, "each", lambda keys: each(*keys))
    found, query = _ask(once, "error rates", classes, [of_each])
    names = [part.name for part in columns]
    return Answer(gaps(found, names, options.min_n, 1 - options.ci), query)


def _cells(once: Once, preds: Columns) -> pl.DataFrame:
    """The confusion matrix of each model in long form. Models keep the order of `pred`."""
    cells, _ = _ask(once, "confusions", confusion, [], needs_draws=False, long=True)
    order = pl.Enum([*preds.names])
    return cells.with_columns(pl.col("model").cast(order)) if preds.is_several else cells


def _costliest(log: Described[Any], cells: pl.DataFrame, preds: Columns) -> Answer:
    """The confusions that cost each model most."""
    counted = Described(cells.filter(pl.col("n") > 0), weight="n", nulls="label")
    rows = confusion(counted, *(["model"] if preds.is_several else []), top=_CONFUSIONS)
    # Every cell is scored: `n_null` is 0 in all rows.
    return Answer(rows.drop("n_null"), called(log, confusion, top=_CONFUSIONS))


def _compared_by(once: Once, parts: Sequence[Part], options: Options) -> list[tuple[Part, Answer]]:
    """Compare models in the slices of each key, and of pairs of keys if these are few."""
    found = [(part, _compared(once, [part], options)) for part in parts]
    if options.depth < 2 or not once.counts_answer([], needs_draws=True):
        return found
    few = [part for part in parts if part.is_column and once.size([part]) <= _VALUES]
    pairs = [*itertools.combinations(few, 2)]
    if pairs and sum(once.size(pair) for pair in pairs) <= _PAIRS:
        min_n = options.min_n
        of_pairs = joined(
            few, "pairs of keys", lambda keys: sets(*itertools.combinations(keys, 2)), min_n
        )
        # "by" holds if slices overlap.
        rows, query = _compared(once, [of_pairs], options, correction="by")
        found.append((of_pairs, Answer(rows.filter(pl.col("n") >= min_n), query)))
    return found


def _compared(
    once: Once,
    parts: Sequence[Part],
    options: Options,
    **more: Any,  # noqa: ANN401 - of `compare`
) -> Answer:
    """Compare the other models with the first: on all rows, or in the slices of a key."""
    return _ask(once, "models", compare, parts, **more, **options.of_verb)
