"""`report`: a page of HTML on a log, to be mailed, and opened without a network."""

from __future__ import annotations

import datetime as dt
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import Any, NamedTuple, TypeAlias

import polars as pl

from polars_mcc._counts.sliced import SET
from polars_mcc._log import defaults
from polars_mcc._log import keys as keys_of_question
from polars_mcc._log.choices import check_level
from polars_mcc._log.columns import IntoColumn, as_code, as_expr
from polars_mcc._log.described import Described
from polars_mcc._log.frames import Frame, polars_frame
from polars_mcc._log.keys import TOTAL, IntoKey, KeySets, Trailing, each
from polars_mcc._scores import registry
from polars_mcc._scores.metric import Metric
from polars_mcc._scores.registry import IntoMetric
from polars_mcc._show.page import Section, drawn, page, section
from polars_mcc._show.table import is_time
from polars_mcc._verbs.by import by
from polars_mcc._verbs.compare import compare
from polars_mcc._verbs.confusion import confusion
from polars_mcc._verbs.score import score
from polars_mcc._verbs.worst import worst
from polars_mcc._version import __version__

Query: TypeAlias = Callable[[pl.LazyFrame], pl.LazyFrame]
Collect: TypeAlias = Callable[[str, Query], pl.DataFrame]
"""What collects the answer of a query about the log; it is told what that is about."""

_METRICS = ["mcc", "accuracy", "f1_macro"]
_LINES = 60  # slices of a chart, at most
_TIMES = 1000  # times of a chart, at most: the last
_LABELS = 60  # labels of a matrix that is drawn, at most
_TOP = 20  # slices and confusions that are called the worst, at most


def report(
    log: Described[Any],
    *keys: IntoKey,
    metric: IntoMetric = defaults.METRIC,
    ci: float = defaults.LEVEL,
    depth: int = defaults.DEPTH,
    min_n: int = defaults.MIN_N,
    title: str = defaults.TITLE,
) -> str:
    """Write a report on a log as one page of HTML, which needs no network.

    It holds the total, how many rows are not scored and why, the slices that fall behind the
    rest, a chart and a table per key, the confusions, and if there are several models a
    comparison of the others with the first; each with the query that made it. Tables can be
    sorted and searched in the page, and the page can be printed.

    Args:
        *keys: What makes slices; each makes slices of its own. Times are drawn as time.
        metric: What is drawn, and what slices and models are compared by: a name of `metrics()`
            that is not of pairs, or an expression, as in `by`. MCC, accuracy and macro F1 are
            told beside it.
        ci: The confidence level of the intervals.
        depth: How many keys are crossed in the search for the worst slices, at most.
        min_n: Slices of fewer rows are not tested in that search.
        title: What stands above the page.

    Returns:
        The page. What comes from the log is escaped, and no script runs in it but its own. A
        table holds 1000 rows at most, and a chart 60 slices, those of the lowest score; the page
        says so where it left some out. The search for the worst slices takes rows for independent
        also if the log has clusters, and the page says so.

        The log is read three times; if rows are not scored, once more; if there are several
        models, once more, and once per key; once per key that is a set of columns or a window.

    Raises:
        ModuleNotFoundError: altair is not installed; the extra `plot` has it.
        TypeError: The log is of another engine.

    Errors of `by`, `worst`, `confusion` and `compare` are raised as they are; lists of labels are
    refused, as `worst` and `confusion` do.

    Examples:
        >>> import polars as pl
        >>> import polars_mcc
        >>> log = pl.scan_parquet("data/digits.parquet")
        >>> page = log.mcc(pred=["logistic", "knn"]).report("ink_band", "fold")
        >>> page.splitlines()[0]
        '<!doctype html>'

    Command line:
        polars-mcc report logs/ --by country --by device --by day --out report.html
    """
    source = log.meaning.source
    of_polars = source if isinstance(source, Frame) else log.frame
    rows = polars_frame(of_polars, "a report is of").lazy()

    def collect(_: str, query: Query) -> pl.DataFrame:
        return query(rows).collect()

    options = {"metric": metric, "ci": ci, "depth": depth, "min_n": min_n, "title": title}
    return written(log, keys, collect, **options)  # type: ignore[arg-type]


def written(
    log: Described[Any],
    keys: Sequence[IntoKey],
    collect: Collect,
    *,
    metric: IntoMetric,
    ci: float,
    depth: int,
    min_n: int,
    title: str,
    made_by: Mapping[str, str] | None = None,
) -> str:
    """The page of `report`; `made_by` adds lines to its last part, by what they are."""
    from importlib.metadata import version  # noqa: PLC0415 - it takes as long as all else here

    from polars_mcc import plot  # noqa: PLC0415 - altair is optional

    check_level(ci)
    chosen = registry.one(metric)
    asking = _Asking(log, collect, chosen, metric)
    parts = _parts(log, keys)
    scores, query = _scores(asking, [part.key for part in parts if part.is_column], ci)
    names = {part.name for part in parts if part.is_column}
    total = scores.filter(pl.col(SET) == TOTAL).drop(names)
    sections = [
        section("All rows", query, total.drop(SET)),
        _not_scored(asking, total),
        *_worst(asking, parts, plot, ci=ci, depth=depth, min_n=min_n),
    ]
    for part in parts:
        slices, asked = scores.drop(names - {part.name}), query
        if part.is_column:
            slices = slices.filter(pl.col(SET) == part.name)
        else:
            slices, asked = asking.scores(by, part.key, ci=ci)
        sections.append(_of_part(part, slices, total, _Drawing(chosen, asked, plot)))
    sections += [*_confusions(asking, plot), *_comparisons(asking, parts, plot, ci)]
    versions = {
        "polars_mcc": __version__,
        "Polars": pl.__version__,
        "altair": version("altair"),
        "Python": platform.python_version(),
    }
    made = {
        **(made_by or {}),
        "made": f"{dt.datetime.now(dt.timezone.utc):%Y-%m-%d %H:%M} UTC",
        "versions": ", ".join(f"{name} {number}" for name, number in versions.items()),
    }
    return page(title, sections, made)


@dataclass(frozen=True)
class _Asking:
    """The log that is reported on, and how its answers are collected."""

    log: Described[Any]
    collect: Collect
    metric: Metric
    asked: IntoMetric
    """The metric as it was asked for."""

    @property
    def of_metric(self) -> dict[str, IntoMetric]:
        """The option of verbs, where it is not what they take anyway."""
        return {} if self.metric.name == defaults.METRIC else {"metric": self.asked}

    def ask(
        self,
        about: str,
        verb: Callable[..., Any],
        *keys: IntoKey,
        log: Described[Any] | None = None,
        **options: object,
    ) -> tuple[pl.DataFrame, str]:
        """The answer of a verb, and the call as a user would write it."""
        asked = log or self.log

        def query(rows: pl.LazyFrame) -> pl.LazyFrame:
            answer: pl.LazyFrame = verb(asked.with_frame(rows), *keys, **options)
            return answer

        return self.collect(about, query), called(asked, verb, *keys, **options)

    def scores(
        self, verb: Callable[..., Any], *keys: IntoKey, ci: float
    ) -> tuple[pl.DataFrame, str]:
        """The scores of slices: the page has intervals, and no standard errors."""
        others = [name for name in _METRICS if name != self.metric.name]
        slices, query = self.ask("scores", verb, *keys, metrics=[self.asked, *others], ci=ci)
        return slices.drop(f"{name}_se" for name in (self.metric.name, *others)), query


@dataclass(frozen=True)
class _Drawing:
    """What is drawn of slices, from which query, and what draws it."""

    metric: Metric
    query: str
    plot: ModuleType


def called(log: Described[Any], verb: Callable[..., Any], *keys: IntoKey, **options: object) -> str:
    """The call of a verb, as a user would write it."""
    described = f"({log.said})" if log.said else ""
    shown = [*map(as_code, keys), *(f"{name}={value!r}" for name, value in options.items())]
    return f"log.mcc{described}.{verb.__name__}({', '.join(shown)})"


class _Part(NamedTuple):
    """A key of the report: a column; or sets of columns, or windows, with a query of their own."""

    key: IntoKey
    name: str
    columns: list[str]  # the columns of the answer that make its slices
    crossed: dict[str, IntoColumn]  # what the search for the worst slices crosses, by name

    @property
    def is_column(self) -> bool:
        return not isinstance(self.key, (KeySets, Trailing))


def _parts(log: Described[Any], keys: Sequence[IntoKey]) -> list[_Part]:
    """What makes slices: each column alone, each set of columns, each window."""
    schema = log.meaning.schema
    parts: list[_Part] = []
    for key in keys:
        found = keys_of_question.found(schema, [key], long=False)
        columns = dict(found.columns.each)
        if isinstance(key, Trailing) and found.windows is not None:
            name = found.windows.index.name
            parts.append(_Part(key, f"{name}, {key.window}", [name], columns))
        elif isinstance(key, KeySets):
            name = f"{key.word}({', '.join(columns)})"
            parts.append(_Part(key, name, [SET, *columns], columns))
        else:
            parts += [_Part(one, name, [name], {name: one}) for name, one in columns.items()]
    return list({part.name: part for part in parts}.values())


def _scores(asking: _Asking, columns: Sequence[IntoKey], ci: float) -> tuple[pl.DataFrame, str]:
    """The slices of each column, and the total: of one scan."""
    if columns:
        key = each(*columns, total=True)  # type: ignore[arg-type]
        return asking.scores(by, key, ci=ci)
    total, query = asking.scores(score, ci=ci)
    return total.select(pl.lit(TOTAL).alias(SET), pl.all()), query


def _of_part(part: _Part, slices: pl.DataFrame, total: pl.DataFrame, drawing: _Drawing) -> Section:
    """The slices of one key, drawn over time if they are that, or beside the total."""
    shown = slices.drop(SET) if part.is_column else slices
    metric, less, plot = drawing.metric.name, drawing.metric.less_is_better, drawing.plot
    [*_, last] = part.columns
    if len(part.columns) == 1 and is_time(shown.schema[last]):
        chosen = shown.filter(as_expr(last).rank("dense", descending=True) <= _TIMES)
        which, draw = "last", partial(plot.over_time, chosen, metric=metric)
    else:
        chosen = _lowest(slices, part.columns, metric, highest=less)
        has_total = TOTAL in chosen[SET]
        beside = chosen if has_total else pl.concat([chosen, total], how="diagonal")
        which, draw = _end(highest=less), partial(plot.slices, beside, metric=metric)
    charts = drawn(f"{metric} by {part.name}", draw, chosen)
    notes = _left_out(slices, chosen, part.columns, which)
    ends = {"highest_of" if less else "lowest_of": metric}
    return section(f"By {part.name}", drawing.query, shown, charts=charts, notes=notes, **ends)


def _not_scored(asking: _Asking, total: pl.DataFrame) -> Section:
    """How many rows are not scored, and why, if there are such."""
    meaning, found = asking.log.meaning, []
    models = [] if meaning.preds is None else meaning.preds.each
    for (name, column), left_out in zip(models, total["n_null"], strict=True):
        if left_out:
            of_model = asking.log(pred=column)
            reasons, _ = asking.ask("rows not scored", by, _reason(of_model), log=of_model)
            rows = reasons.filter(pl.col("n_null") > 0)
            found.append(rows.select(pl.lit(name).alias("pred"), "reason", "n_null"))
    if not found:
        return Section("Rows not scored", "", ["All rows are scored."])
    return section("Rows not scored", "", pl.concat(found))


def _reason(log: Described[Any]) -> pl.Expr:
    """Why a row is not scored: which of its columns are null."""
    meaning = log.meaning
    labels = [] if meaning.nulls == "label" else [meaning.gold, meaning.preds]
    parts = [
        pl.when(column.expr.is_null()).then(pl.lit(f"{column.name} is null"))
        for column in (*labels, meaning.weight)
        if column is not None
    ]
    return pl.concat_str(parts, separator=", ", ignore_nulls=True).alias("reason")


def _worst(
    asking: _Asking, parts: Sequence[_Part], plot: ModuleType, *, ci: float, depth: int, min_n: int
) -> Iterator[Section]:
    """The slices that fall behind the rest."""
    from polars_mcc._search.words import summed_up  # noqa: PLC0415 - as the search is

    crossed = {name: column for part in parts for name, column in part.crossed.items()}
    if not crossed:
        return
    options: dict[str, Any] = {"depth": depth, "min_n": min_n, "top": _TOP, "ci": ci, "long": True}
    options |= asking.of_metric
    query = called(asking.log, worst, *crossed.values(), **options)
    answer, _ = asking.ask("worst slices", worst, *crossed.values(), verdicts=True, **options)
    slices, looked = summed_up(answer, asking.metric.name)
    what = (
        f"Slices of up to {depth} columns and at least {min_n} rows, beside the rest of the log: "
        f"those whose corrected p-value is below {round(1 - ci, 10)}, by what the log would gain "
        "without them (loss)."
    )
    notes = [what, looked]
    charts = drawn("worst slices", partial(plot.differences, slices, sort=False), slices)
    yield section("Worst slices", query, slices, charts=charts, notes=notes)


def _confusions(asking: _Asking, plot: ModuleType) -> Iterator[Section]:
    """The confusions that cost most, and the matrix of each model."""
    cells, _ = asking.ask("confusions", confusion, long=True)
    models = ["model"] if "model" in cells.columns else []
    names = [] if asking.log.meaning.preds is None else [*asking.log.meaning.preds.names]
    cells = cells.with_columns(pl.col(models).cast(pl.Enum(names)))  # in this order
    counted = Described(cells.filter(pl.col("n") > 0), weight="n", nulls="label")
    costliest = confusion(counted, *models, top=_TOP)
    costliest = costliest.drop("n_null")  # which is of the cells, and has no null
    query = called(asking.log, confusion, top=_TOP)
    charts = []
    notes = []
    for name in names:
        of_model = cells.filter(pl.col("model") == name).drop("model") if models else cells
        labels = of_model["gold"].n_unique()
        if labels > _LABELS:
            notes.append(f"The matrix of {name} has {labels} labels, and is not drawn.")
        else:
            alt = f"confusion matrix of {name}"
            charts += drawn(alt, partial(plot.confusion, of_model), of_model)
    yield section("Confusions that cost most", query, costliest, charts=charts, notes=notes)


def _comparisons(
    asking: _Asking, parts: Sequence[_Part], plot: ModuleType, ci: float
) -> Iterator[Section]:
    """Each other model beside the first: of all rows, and of the slices of each key."""
    preds = asking.log.meaning.preds
    if preds is None or len(preds.names) == 1:
        return
    [first, *_] = preds.names
    title = f"Models beside {first}"
    less = asking.metric.less_is_better
    note = f"A difference {'below' if less else 'above'} 0: better than {first}."
    ends = {"highest_of" if less else "lowest_of": "diff"}
    options: dict[str, Any] = {"ci": ci, **asking.of_metric}
    compared, query = asking.ask(title, compare, **options)
    charts = drawn(title, partial(plot.differences, compared), compared)
    yield section(title, query, compared, charts=charts, notes=[note], **ends)
    for part in parts:
        of_key = f"{title}, by {part.name}"
        compared, query = asking.ask(of_key, compare, part.key, **options)
        lowest = _lowest(compared, part.columns, "diff", highest=less)
        charts = drawn(of_key, partial(plot.differences, lowest), lowest)
        notes = [note, *_left_out(compared, lowest, part.columns, _end(highest=less))]
        yield section(of_key, query, compared, charts=charts, notes=notes, **ends)


def _end(*, highest: bool) -> str:
    return "highest" if highest else "lowest"


def _lowest(
    slices: pl.DataFrame, columns: Sequence[str], score: str, *, highest: bool
) -> pl.DataFrame:
    """The slices that score lowest, or highest, of all models: as many as a chart has lines for."""
    keys = [as_expr(column) for column in columns]
    end = pl.col(score).max() if highest else pl.col(score).min()
    least = slices.group_by(keys, maintain_order=True).agg(end)
    least = least.sort(score, descending=highest, maintain_order=True, nulls_last=True)
    least = least.head(_LINES)
    return slices.join(least.select(keys), on=keys, how="semi", nulls_equal=True)


def _left_out(
    slices: pl.DataFrame, chosen: pl.DataFrame, columns: Sequence[str], which: str
) -> list[str]:
    of, number = (frame.select(map(as_expr, columns)).n_unique() for frame in (slices, chosen))
    return [] if of == number else [f"The chart shows the {which} {number} of {of:,} slices."]
