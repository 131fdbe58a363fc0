"""Answers → the sections of a report: a table, what is said of it, and what is drawn beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from polars_mcc._counts.sliced import SET
from polars_mcc._log.columns import as_expr
from polars_mcc._log.keys import TOTAL
from polars_mcc._report.answers import Answer, Answers, Asked
from polars_mcc._report.parts import Part
from polars_mcc._search.words import said, summed_up
from polars_mcc._show.table import is_time, keys_of

LINES = 60  # slices of a chart with a line per slice, at most: more are a funnel
_TIMES = 1000  # times of a chart, at most: the last
_LABELS = 60  # labels of a matrix that is drawn, at most
ROWS = 1000  # rows of a table, at most


@dataclass(frozen=True)
class Drawing:
    """A chart that is drawn if the format has charts: a function of `plot`, and what it takes."""

    alt: str
    draw: str
    rows: pl.DataFrame
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Section:
    """A part of a report."""

    title: str
    query: str
    rows: pl.DataFrame
    notes: Sequence[str] = ()
    drawings: Sequence[Drawing] = ()


def sections(answers: Answers, asked: Asked) -> Iterator[Section]:
    """The sections of a report, in order."""
    yield Section(ALL, answers.total.query, _shown(answers.total.rows))
    unscored = answers.unscored
    notes = ["All rows are scored."] if unscored.is_empty() else []
    yield Section(UNSCORED, "", unscored, notes)
    if answers.worst is not None:
        yield _worst(answers.worst, asked)
    for part, answer in answers.parts:
        yield _of_part(part, answer, answers.total.rows, asked)
    yield _confusions(answers)
    if answers.compared is not None:
        first = answers.models[0]
        title = beside(first)
        note = _better(first, asked)
        rows = answers.compared.rows
        drawings = _drawn(title, "differences", rows, "diff", sort=False)
        yield Section(title, answers.compared.query, rows, [note], drawings)
        for part, answer in answers.compared_by:
            yield _compared_by(f"{title}, by {part.name}", part, answer, note, asked)


ALL, UNSCORED, WORST = "All rows", "Rows not scored", "Worst slices"


def beside(first: str) -> str:
    """The title of the comparison with the first model."""
    return f"Models beside {first}"


def _shown(slices: pl.DataFrame) -> pl.DataFrame:
    """The page has intervals, and no standard errors."""
    return slices.select(pl.exclude("^.*_se$"))


def _drawn(
    alt: str,
    draw: str,
    rows: pl.DataFrame,
    score: str,
    **options: Any,  # noqa: ANN401 - of `plot`
) -> list[Drawing]:
    """What is drawn, unless there is nothing to draw."""
    return [] if rows[score].is_null().all() else [Drawing(alt, draw, rows, options)]


def _worst(answer: Answer, asked: Asked) -> Section:
    """The slices that fall behind the rest."""
    slices, looked = summed_up(answer.rows, asked.metric.name)
    what = (
        f"Slices of up to {asked.depth} columns and at least {asked.min_n} rows, beside the rest "
        f"of the log: those whose corrected p-value is below {round(1 - asked.ci, 10)}, by what "
        "the log would gain without them (loss)."
    )
    drawings = _drawn(WORST, "differences", slices, "diff", sort=False)
    texts = [said(row, with_model=False) for row in slices.iter_rows(named=True)]
    keys = [name for name in keys_of(slices) if name != "model"]
    rows = slices.select(pl.Series("slice", texts, pl.String), pl.exclude(keys))
    return Section(WORST, answer.query, rows, [what, looked], drawings)


def _of_part(part: Part, answer: Answer, total: pl.DataFrame, asked: Asked) -> Section:
    """The slices of one key: over time if they are that, else from the worst up."""
    metric = asked.metric.name
    title, what = f"By {part.name}", f"{metric} by {part.name}"
    slices = answer.rows
    [*_, last] = part.columns
    if len(part.columns) == 1 and is_time(slices.schema[last]):
        chosen = slices.filter(as_expr(last).rank("dense", descending=True) <= _TIMES)
        notes = _left_out(slices, chosen, part.columns, "last")
        drawings = _drawn(what, "over_time", chosen, metric, metric=metric)
        rows, more = _cut(_shown(slices), "first")
        return Section(title, answer.query, rows, [*notes, *more], drawings)
    ordered = _from_the_worst(slices, part.columns, metric, highest=asked.metric.less_is_better)
    end = f"{_end(asked)} by {metric}"
    rows, more = _cut(_shown(ordered), end)
    with_total = _with_total(part, ordered, total)
    number = ordered.select(map(as_expr, part.columns)).n_unique()
    if number <= LINES:
        drawings = _drawn(what, "slices", with_total, metric, metric=metric, sort=False)
        return Section(title, answer.query, rows, more, drawings)
    funnels = {what: with_total}
    if "model" in slices.columns:
        models = slices["model"].unique(maintain_order=True)
        funnels = {
            f"{what}, {model}": with_total.filter(pl.col("model") == model).drop("model")
            for model in models
        }
    drawings = [
        drawing
        for alt, of_model in funnels.items()
        for drawing in _drawn(alt, "funnel", of_model, f"{metric}_se", metric=metric)
    ]
    note = (
        f"Of {number:,} slices some look bad by chance alone: the funnel shows how far chance "
        "goes, at each number of rows."
    )
    return Section(title, answer.query, rows, [note, *more], drawings)


def _with_total(part: Part, slices: pl.DataFrame, total: pl.DataFrame) -> pl.DataFrame:
    """The slices and the total, told apart by the set of keys that they are of."""
    if part.is_column:
        slices = slices.select(pl.lit(part.name).alias(SET), pl.all())
    elif TOTAL in slices[SET]:
        return slices
    return pl.concat([slices, total.with_columns(pl.lit(TOTAL).alias(SET))], how="diagonal")


def _confusions(answers: Answers) -> Section:
    """The confusions that cost most, and the matrix of each model."""
    notes, drawings = [], []
    for name in answers.models:
        cells = answers.cells
        if "model" in cells.columns:
            cells = cells.filter(pl.col("model") == name).drop("model")
        labels = cells["gold"].n_unique()
        if labels > _LABELS:
            notes.append(f"The matrix of {name} has {labels} labels, and is not drawn.")
        else:
            drawings += _drawn(f"confusion matrix of {name}", "confusion", cells, "n")
    title = "Confusions that cost most"
    return Section(title, answers.costliest.query, answers.costliest.rows, notes, drawings)


def _compared_by(title: str, part: Part, answer: Answer, note: str, asked: Asked) -> Section:
    """The other models beside the first, in the slices of a key: from the worst difference up."""
    highest = asked.metric.less_is_better
    ordered = _from_the_worst(answer.rows, part.columns, "diff", highest=highest)
    lowest = _first(ordered, part.columns)
    notes = [note, *_left_out(ordered, lowest, part.columns, _end(asked))]
    rows, more = _cut(ordered, f"{_end(asked)} by diff")
    drawings = _drawn(title, "differences", lowest, "diff", sort=False)
    return Section(title, answer.query, rows, [*notes, *more], drawings)


def _better(first: str, asked: Asked) -> str:
    side = "below" if asked.metric.less_is_better else "above"
    return f"A difference {side} 0: better than {first}."


def _end(asked: Asked) -> str:
    return "highest" if asked.metric.less_is_better else "lowest"


def _from_the_worst(
    slices: pl.DataFrame, columns: Sequence[str], score: str, *, highest: bool
) -> pl.DataFrame:
    """The slices from the worst score of all their models, these together and in order."""
    end = pl.col(score).max() if highest else pl.col(score).min()
    by = "polars_mcc:worst"
    ranked = slices.with_columns(end.over(list(map(as_expr, columns))).alias(by))
    return ranked.sort(by, descending=highest, nulls_last=True, maintain_order=True).drop(by)


def _first(slices: pl.DataFrame, columns: Sequence[str]) -> pl.DataFrame:
    """The rows of the first slices: as many as a chart has lines for."""
    keys = [as_expr(column) for column in columns]
    first = slices.select(keys).unique(maintain_order=True).head(LINES)
    return slices.join(first, on=keys, how="semi", nulls_equal=True, maintain_order="left")


def _cut(rows: pl.DataFrame, which: str) -> tuple[pl.DataFrame, list[str]]:
    """As many rows as a table holds, and what is said if these are not all."""
    if rows.height <= ROWS:
        return rows, []
    return rows.head(ROWS), [f"The table holds {ROWS:,} of {rows.height:,} rows, the {which}."]


def _left_out(
    slices: pl.DataFrame, chosen: pl.DataFrame, columns: Sequence[str], which: str
) -> list[str]:
    of, number = (frame.select(map(as_expr, columns)).n_unique() for frame in (slices, chosen))
    return [] if of == number else [f"The chart shows the {which} {number} of {of:,} slices."]
