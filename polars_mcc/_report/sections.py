"""Answers → the sections of a report. A section has a table, notes, and charts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from polars_mcc._counts.sliced import SAID, SET
from polars_mcc._log.bins import Bins
from polars_mcc._log.columns import as_expr
from polars_mcc._log.keys import TOTAL
from polars_mcc._report.answers import TOP, Answer, Answers, Asked, Worst, without
from polars_mcc._report.gaps import MOST
from polars_mcc._report.parts import Part
from polars_mcc._search.described import CONFUSION
from polars_mcc._show.table import is_time
from polars_mcc._show.undefined import counted

LINES = 60  # slices in a chart with a line per slice, at most; more slices make a funnel plot
_TIMES = 1000  # times in a chart, at most; the last ones are drawn
_LABELS = 60  # labels in a confusion matrix that is drawn, at most
_POINTS = 2000  # slices in a funnel plot, at most
ROWS = 1000  # rows in a table, at most


@dataclass(frozen=True)
class Drawing:
    """A chart as a function name of `plot` with its arguments. Only HTML draws it."""

    alt: str
    draw: str
    rows: pl.DataFrame
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Section:
    """A section of a report: a title, a table, notes and charts."""

    id: str
    """The stable name of the section, independent of the title."""
    title: str
    query: str
    rows: pl.DataFrame
    notes: Sequence[str] = ()
    on_charts: Sequence[str] = ()
    """Notes on the charts. Markdown and JSON have no charts."""
    drawings: Sequence[Drawing] = ()
    on_demand: Sequence[Drawing] = ()
    """Charts that a reader of the page opens."""
    hidden: Sequence[str] = ()
    """Columns that Markdown and HTML leave out: constant or redundant."""
    is_time: bool = False
    """Whether the rows are in order of time, so that the last rows matter most."""


TOTAL_ID, UNSCORED_ID, WORST_ID, COMPARED_ID = "total", "unscored", "worst", "compared"
GAPS_ID = "gaps"


def id_of(kind: str, part: Part) -> str:
    """The `id` of the section of a key."""
    return f"{kind}:{part.name}"


def sections(answers: Answers, asked: Asked) -> Iterator[Section]:
    """The sections of a report, in order."""
    yield Section(TOTAL_ID, "All rows", answers.total.query, _shown(answers.total.rows, asked))
    if answers.worst is not None:
        yield _worst(answers.worst, asked, has_models=answers.has_models)
    if answers.gaps is not None:
        yield _gaps(answers.gaps, asked)
    if answers.compared is not None:
        title = f"Models compared with {answers.models[0]}"
        rows, note = answers.compared.rows, _better(answers.models[0], asked)
        drawings = _drawn(title, "differences", rows, "diff", sort=False)
        yield Section(
            COMPARED_ID,
            title,
            answers.compared.query,
            rows,
            note,
            (),
            drawings,
            hidden=_OF_COMPARED,
        )
    for part, answer in answers.parts:
        yield _of_part(part, answer, answers, asked)
    for part, answer in answers.compared_by:
        yield _compared_by(part, answer, answers.models[0], asked)
    yield _confusions(answers)
    notes = ["All rows are scored."] if answers.unscored.is_empty() else []
    yield Section(UNSCORED_ID, "Rows not scored", "", answers.unscored, notes)


_OF_COMPARED = ("diff_se", "p_value", "n_null")
_OF_WORST = ("keys", "p_value", *CONFUSION, "parts", "n_tested", "n_untested", "n_null")


def _shown(slices: pl.DataFrame, asked: Asked) -> pl.DataFrame:
    """Drop the standard error: a report shows intervals instead."""
    return without(slices, [f"{asked.metric.name}_se"])


def _drawn(
    alt: str,
    draw: str,
    rows: pl.DataFrame,
    score: str,
    **options: Any,  # noqa: ANN401 - of `plot`
) -> list[Drawing]:
    """One drawing; none if all scores are null."""
    return [] if rows[score].is_null().all() else [Drawing(alt, draw, rows, options)]


def _worst(worst: Worst, asked: Asked, *, has_models: bool) -> Section:
    """The section of the slices that are behind the rest of the log."""
    slices = worst.listed.head(TOP)
    rate = f"{100 * (1 - asked.ci):.3g} %"
    what = (
        f"Slices of up to {asked.depth} keys, with at least {asked.min_n} rows and at most half of "
        f"the log, that score worse than the rest of the log (false discovery rate {rate}). The "
        "slice with the largest loss is first. loss: how much better the log would score without "
        "the slice."
    )
    drawings = _drawn("Worst slices", "differences", slices, "diff", sort=False)
    cut = [f"The table shows the first {TOP}."] if worst.listed.height > TOP else []
    notes = [what, " ".join([worst.looked, *cut])]
    return Section(
        WORST_ID,
        "Worst slices",
        worst.query,
        slices,
        notes,
        drawings=drawings,
        on_demand=[*_waterfalls(slices, asked, has_models=has_models)],
        hidden=_OF_WORST,
    )


def _waterfalls(slices: pl.DataFrame, asked: Asked, *, has_models: bool) -> Iterator[Drawing]:
    """A waterfall for each slice of several keys: what each key adds."""
    for place, row in enumerate(slices.iter_rows(named=True)):
        if row["parts"] is not None and None not in [part["adds"] for part in row["parts"]]:
            model = f" ({row['model']})" if has_models else ""
            options = {"row": place, "metric": asked.metric.name}
            yield Drawing(f"{row[SAID]}{model}", "waterfall", slices, options)


def _gaps(gaps: Answer, asked: Asked) -> Section:
    """The section of the gaps in error rates."""
    what = (
        "For each key and gold label, the two slices whose rates of misses differ most, if the "
        f"difference is significant (false discovery rate {100 * (1 - asked.ci):.3g} % over all "
        f"pairs of slices). Only slices with at least {asked.min_n} rows of the label, and keys of "
        f"at most {MOST} slices."
    )
    none = [] if gaps.rows.height else ["There is none."]
    return Section(GAPS_ID, "Gaps in error rates", gaps.query, gaps.rows, [what, *none])


def _of_part(part: Part, answer: Answer, answers: Answers, asked: Asked) -> Section:
    """The section of one key, see `_ordered`; its slices may be in the order of time."""
    metric = asked.metric.name
    title, what = f"By {part.name}", f"{metric} by {part.name}"
    slices = answer.rows
    unsure = [f"{one}." for one in [counted(slices, metric, "slices")] if one]
    [*_, last] = part.columns
    if len(part.columns) == 1 and is_time(slices.schema[last]):
        chosen = slices.filter(as_expr(last).rank("dense", descending=True) <= _TIMES)
        on_charts = _left_out(slices, chosen, part.columns, "last")
        drawings = _drawn(what, "over_time", chosen, metric, metric=metric)
        rows, more = _cut(_shown(slices, asked).tail(ROWS), slices.height, "last")
        id_, query, more = id_of("by", part), answer.query, [*unsure, *more]
        return Section(id_, title, query, rows, more, on_charts, drawings, is_time=True)
    ordered = _ordered(part, slices, metric, asked)
    end = f"{_end(asked)} by {metric}"
    rows, cut = _cut(_shown(ordered, asked).head(ROWS), ordered.height, end)
    more = [*unsure, *cut]
    with_total = _with_total(part, ordered, answers.total.rows)
    number = ordered.select(map(as_expr, part.columns)).n_unique()
    if number <= LINES:
        drawings = _drawn(what, "slices", with_total, metric, metric=metric, sort=False)
        return Section(id_of("by", part), title, answer.query, rows, more, drawings=drawings)
    drawings = [*_funnels(part, what, ordered, answers, metric)]
    on_charts = ["The funnel plot shows the limits of chance for each number of rows."]
    if number > _POINTS:
        on_charts += [f"The funnel plot shows the {_POINTS:,} slices with the most rows."]
    notes = [f"Among {number:,} slices, some look bad by chance alone.", *more]
    shown = on_charts if drawings else []
    return Section(id_of("by", part), title, answer.query, rows, notes, shown, drawings)


def _funnels(
    part: Part, what: str, slices: pl.DataFrame, answers: Answers, metric: str
) -> Iterator[Drawing]:
    """A funnel plot per model, of the slices that have an interval."""
    has_interval = pl.all_horizontal(pl.col(metric, f"{metric}_se").is_not_null())
    slices = slices.filter(has_interval).sort("n", descending=True, maintain_order=True)
    total = answers.total.rows
    if not answers.has_models:
        drawn = _with_total(part, slices.head(_POINTS), total)
        yield from _drawn(what, "funnel", drawn, metric, metric=metric) if slices.height else []
        return
    for model in answers.models:
        of_model, all_rows = (frame.filter(model=model).drop("model") for frame in (slices, total))
        if of_model.height:
            drawn = _with_total(part, of_model.head(_POINTS), all_rows)
            yield from _drawn(f"{what}, {model}", "funnel", drawn, metric, metric=metric)


def _with_total(part: Part, slices: pl.DataFrame, total: pl.DataFrame) -> pl.DataFrame:
    """Append the total to the slices. The column `keys` tells the total from a slice."""
    if part.is_column:
        slices = slices.select(pl.lit(part.name).alias(SET), pl.all())
    elif TOTAL in slices[SET]:
        return slices
    return pl.concat([slices, total.with_columns(pl.lit(TOTAL).alias(SET))], how="diagonal")


def _confusions(answers: Answers) -> Section:
    """The section of the costliest confusions, with the confusion matrix of each model."""
    on_charts, drawings = [], []
    for name in answers.models:
        cells = answers.cells
        if answers.has_models:
            cells = cells.filter(pl.col("model") == name).drop("model")
        labels = cells["gold"].n_unique()
        if labels > _LABELS:
            on_charts.append(
                f"The confusion matrix of {name} is not drawn, because it has {labels} labels."
            )
        else:
            drawings += _drawn(f"confusion matrix of {name}", "confusion", cells, "n")
    what = (
        "contribution: the part of MCC that comes from this confusion, below 0. loss: how much MCC "
        "would rise if these rows were predicted correctly."
    )
    return Section(
        "confusions",
        "Confusions that cost most",
        answers.costliest.query,
        answers.costliest.rows,
        [what],
        on_charts,
        drawings,
    )


def _compared_by(part: Part, answer: Answer, first: str, asked: Asked) -> Section:
    """The section that compares models in the slices of a key."""
    title = f"Models compared with {first}, by {part.name}"
    [*_, last] = part.columns
    over_time = len(part.columns) == 1 and is_time(answer.rows.schema[last])
    notes, on_charts = _better(first, asked), list[str]()
    if over_time:
        rows, more = _cut(answer.rows.tail(ROWS), answer.rows.height, "last")
        drawings = _drawn(title, "over_time", rows, "diff", metric="diff")
    else:
        ordered = _ordered(part, answer.rows, "diff", asked)
        lowest = _first(ordered, part.columns)
        rows, more = _cut(ordered.head(ROWS), ordered.height, f"{_end(asked)} by diff")
        notes += [f"Only slices with at least {part.min_n} rows."] if part.min_n else []
        on_charts = _left_out(ordered, lowest, part.columns, _end(asked))
        drawings = _drawn(title, "differences", lowest, "diff", sort=False)
    id_, notes = id_of("compared", part), [*notes, *more]
    query = answer.query
    return Section(
        id_, title, query, rows, notes, on_charts, drawings, hidden=_OF_COMPARED, is_time=over_time
    )


def _better(first: str, asked: Asked) -> list[str]:
    side = "below" if asked.metric.less_is_better else "above"
    means = f"A difference {side} 0 means that the model is better than {first}."
    return [f"Only rows with a prediction from both models are compared. {means}"]


def _end(asked: Asked) -> str:
    return "highest" if asked.metric.less_is_better else "lowest"


def _ordered(part: Part, slices: pl.DataFrame, score: str, asked: Asked) -> pl.DataFrame:
    """Sort slices by the worst score of any model; bins and other Enums keep their own order.

    The models of a slice stay together.
    """
    columns, highest = part.columns, asked.metric.less_is_better
    has_order = isinstance(part.key, Bins) or isinstance(slices.schema[columns[-1]], pl.Enum)
    if has_order and len(columns) == 1 and slices.select(map(as_expr, columns)).n_unique() <= LINES:
        return slices
    end = pl.col(score).max() if highest else pl.col(score).min()
    by = "polars_mcc:worst"
    ranked = slices.with_columns(end.over(list(map(as_expr, columns))).alias(by))
    return ranked.sort(by, descending=highest, nulls_last=True, maintain_order=True).drop(by)


def _first(slices: pl.DataFrame, columns: Sequence[str]) -> pl.DataFrame:
    """The rows of the first `LINES` slices."""
    keys = [as_expr(column) for column in columns]
    first = slices.select(keys).unique(maintain_order=True).head(LINES)
    return slices.join(first, on=keys, how="semi", nulls_equal=True, maintain_order="left")


def _cut(rows: pl.DataFrame, of: int, which: str) -> tuple[pl.DataFrame, list[str]]:
    """The rows of a table, and a note if some rows are left out."""
    if rows.height == of:
        return rows, []
    return rows, [f"The table holds {rows.height:,} of {of:,} rows, the {which}."]


def _left_out(
    slices: pl.DataFrame, chosen: pl.DataFrame, columns: Sequence[str], which: str
) -> list[str]:
    of, number = (frame.select(map(as_expr, columns)).n_unique() for frame in (slices, chosen))
    return [] if of == number else [f"The chart shows the {which} {number} of {of:,} slices."]
