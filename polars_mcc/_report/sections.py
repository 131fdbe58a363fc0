"""Answers → the sections of a report: a table, what is said of it, and what is drawn beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from polars_mcc._counts.sliced import SET
from polars_mcc._log.columns import as_expr
from polars_mcc._log.keys import TOTAL
from polars_mcc._report.answers import TOP, Answer, Answers, Asked, Worst, without
from polars_mcc._report.parts import Part
from polars_mcc._search.words import said
from polars_mcc._show.table import is_time

LINES = 60  # slices of a chart with a line per slice, at most: more are a funnel
_TIMES = 1000  # times of a chart, at most: the last
_LABELS = 60  # labels of a matrix that is drawn, at most
_POINTS = 2000  # slices of a funnel, at most
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

    id: str
    """What it is known by, whatever its title."""
    title: str
    query: str
    rows: pl.DataFrame
    notes: Sequence[str] = ()
    drawings: Sequence[Drawing] = ()
    hidden: Sequence[str] = ()
    """Columns that are not for reading: the same in all rows, or told by others."""
    is_time: bool = False
    """Whether the last rows matter most, and not the first."""


TOTAL_ID, UNSCORED_ID, WORST_ID, COMPARED_ID = "total", "unscored", "worst", "compared"


def id_of(kind: str, part: Part) -> str:
    """What the section of a key is known by."""
    return f"{kind}:{part.name}"


def sections(answers: Answers, asked: Asked) -> Iterator[Section]:
    """The sections of a report, in order."""
    yield Section(TOTAL_ID, "All rows", answers.total.query, _shown(answers.total.rows, asked))
    if answers.worst is not None:
        yield _worst(answers.worst, asked, has_models=answers.has_models)
    if answers.compared is not None:
        title = f"Models beside {answers.models[0]}"
        rows, note = answers.compared.rows, _better(answers.models[0], asked)
        drawings = _drawn(title, "differences", rows, "diff", sort=False)
        yield Section(
            COMPARED_ID, title, answers.compared.query, rows, note, drawings, _OF_COMPARED
        )
    for part, answer in answers.parts:
        yield _of_part(part, answer, answers, asked)
    for part, answer in answers.compared_by:
        yield _compared_by(part, answer, answers.models[0], asked)
    yield _confusions(answers)
    notes = ["All rows are scored."] if answers.unscored.is_empty() else []
    yield Section(UNSCORED_ID, "Rows not scored", "", answers.unscored, notes)


_OF_COMPARED = ("diff_se", "p_value", "n_null")
_OF_WORST = ("p_value", "n_tested", "n_untested", "n_null")


def _shown(slices: pl.DataFrame, asked: Asked) -> pl.DataFrame:
    """The page has intervals, and no standard errors."""
    return without(slices, [f"{asked.metric.name}_se"])


def _drawn(
    alt: str,
    draw: str,
    rows: pl.DataFrame,
    score: str,
    **options: Any,  # noqa: ANN401 - of `plot`
) -> list[Drawing]:
    """What is drawn, unless there is nothing to draw."""
    return [] if rows[score].is_null().all() else [Drawing(alt, draw, rows, options)]


def _worst(worst: Worst, asked: Asked, *, has_models: bool) -> Section:
    """The slices that fall behind the rest."""
    slices = worst.listed.head(TOP)
    rate = f"{100 * (1 - asked.ci):.3g} %"
    what = (
        f"Slices of 1 to {asked.depth} keys and at least {asked.min_n} rows that score below the "
        f"rest of the log (false discovery rate {rate}). The first is the slice without which the "
        "log would score best; loss is by how much."
    )
    drawings = _drawn("Worst slices", "differences", slices, "diff", sort=False)
    texts = pl.Series("slice", [said(row) for row in slices.iter_rows(named=True)], pl.String)
    kept = slices.columns[slices.columns.index("n") - has_models :]
    rows = slices[kept].insert_column(0, texts)
    cut = [f"These are the first {TOP}."] if worst.listed.height > TOP else []
    notes = [what, " ".join([worst.looked, *cut])]
    return Section(WORST_ID, "Worst slices", worst.query, rows, notes, drawings, _OF_WORST)


def _of_part(part: Part, answer: Answer, answers: Answers, asked: Asked) -> Section:
    """The slices of one key: over time if they are that, else from the worst up."""
    metric = asked.metric.name
    title, what = f"By {part.name}", f"{metric} by {part.name}"
    slices = answer.rows
    [*_, last] = part.columns
    if len(part.columns) == 1 and is_time(slices.schema[last]):
        chosen = slices.filter(as_expr(last).rank("dense", descending=True) <= _TIMES)
        notes = _left_out(slices, chosen, part.columns, "last")
        drawings = _drawn(what, "over_time", chosen, metric, metric=metric)
        rows, more = _cut(_shown(slices, asked).tail(ROWS), slices.height, "last")
        return Section(
            id_of("by", part), title, answer.query, rows, [*notes, *more], drawings, is_time=True
        )
    ordered = _from_the_worst(slices, part.columns, metric, highest=asked.metric.less_is_better)
    end = f"{_end(asked)} by {metric}"
    rows, more = _cut(_shown(ordered, asked).head(ROWS), ordered.height, end)
    with_total = _with_total(part, ordered, answers.total.rows)
    number = ordered.select(map(as_expr, part.columns)).n_unique()
    if number <= LINES:
        drawings = _drawn(what, "slices", with_total, metric, metric=metric, sort=False)
        return Section(id_of("by", part), title, answer.query, rows, more, drawings)
    drawings = [*_funnels(part, what, ordered, answers, metric)]
    if number > _POINTS:
        more = [f"The funnel shows the {_POINTS:,} slices with most rows.", *more]
    note = (
        f"Of {number:,} slices some look bad by chance alone: the funnel shows how far chance "
        "goes, at each number of rows."
    )
    return Section(id_of("by", part), title, answer.query, rows, [note, *more], drawings)


def _funnels(
    part: Part, what: str, slices: pl.DataFrame, answers: Answers, metric: str
) -> Iterator[Drawing]:
    """The funnel of each model, of its slices that have an interval."""
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
        if answers.has_models:
            cells = cells.filter(pl.col("model") == name).drop("model")
        labels = cells["gold"].n_unique()
        if labels > _LABELS:
            notes.append(f"The matrix of {name} has {labels} labels, and is not drawn.")
        else:
            drawings += _drawn(f"confusion matrix of {name}", "confusion", cells, "n")
    what = (
        "contribution: the share of all that confusions cost. loss: what the score would gain if "
        "these rows were predicted right."
    )
    return Section(
        "confusions",
        "Confusions that cost most",
        answers.costliest.query,
        answers.costliest.rows,
        [what, *notes],
        drawings,
    )


def _compared_by(part: Part, answer: Answer, first: str, asked: Asked) -> Section:
    """The other models beside the first, in the slices of a key: from the worst difference up."""
    title = f"Models beside {first}, by {part.name}"
    [*_, last] = part.columns
    over_time = len(part.columns) == 1 and is_time(answer.rows.schema[last])
    notes = _better(first, asked)
    if over_time:
        rows, more = _cut(answer.rows.tail(ROWS), answer.rows.height, "last")
        drawings = _drawn(title, "over_time", rows, "diff", metric="diff")
    else:
        highest = asked.metric.less_is_better
        ordered = _from_the_worst(answer.rows, part.columns, "diff", highest=highest)
        lowest = _first(ordered, part.columns)
        rows, more = _cut(ordered.head(ROWS), ordered.height, f"{_end(asked)} by diff")
        notes += [f"Slices of at least {part.min_n} rows."] if part.min_n else []
        notes += _left_out(ordered, lowest, part.columns, _end(asked))
        drawings = _drawn(title, "differences", lowest, "diff", sort=False)
    id_, notes = id_of("compared", part), [*notes, *more]
    query = answer.query
    return Section(id_, title, query, rows, notes, drawings, _OF_COMPARED, is_time=over_time)


def _better(first: str, asked: Asked) -> list[str]:
    side = "below" if asked.metric.less_is_better else "above"
    return [f"Rows that both models scored. A difference {side} 0: better than {first}."]


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


def _cut(rows: pl.DataFrame, of: int, which: str) -> tuple[pl.DataFrame, list[str]]:
    """The rows of a table, and what is said if these are not all."""
    if rows.height == of:
        return rows, []
    return rows, [f"The table holds {rows.height:,} of {of:,} rows, the {which}."]


def _left_out(
    slices: pl.DataFrame, chosen: pl.DataFrame, columns: Sequence[str], which: str
) -> list[str]:
    of, number = (frame.select(map(as_expr, columns)).n_unique() for frame in (slices, chosen))
    return [] if of == number else [f"The chart shows the {which} {number} of {of:,} slices."]
