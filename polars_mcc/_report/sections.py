"""Answers → the sections of a report. A section has a table, notes, and charts."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import polars as pl

from polars_mcc._comparisons.columns_of_answers import CONFUSION
from polars_mcc._counts.sliced_log import SAID, SET, joined
from polars_mcc._display.table_and_to_numpy import cell_texts, key_columns, slices_in_words
from polars_mcc._display.undefined_scores import undefined_in_words
from polars_mcc._frame.columns import as_expr
from polars_mcc._keys.any_key import TOTAL
from polars_mcc._keys.bins import Bins, is_calendar
from polars_mcc._report.keys_counted_once import Answer, SectionKey, without
from polars_mcc._report.report_data import MAX_WORST, SCORE_METRICS, WORDS, Answers, Since, Worst

MAX_DRAWN = 5  # slices that are worse, at most, that the report names and draws
MAX_LINES = 60  # slices in a chart with a line per slice, at most; more slices make a funnel plot
_MAX_TIMES = 1000  # times in a chart, at most; the last ones are drawn
_MAX_MATRIX_LABELS = 60  # labels in a confusion matrix that is drawn, at most
_MAX_POINTS = 2000  # slices in a funnel plot, at most
MAX_TABLE_ROWS = 1000  # rows in a table, at most


@dataclass(frozen=True, eq=False)
class Drawing:
    """A chart as a function name of `plot` with its arguments. Only HTML draws it."""

    alt: str
    draw: str
    rows: pl.DataFrame
    options: Mapping[str, object]


@dataclass(frozen=True)
class Section:
    """A section of a report: a title, a table, notes and charts."""

    id: str
    """The stable name of the section, independent of the title."""
    title: str
    rows: pl.DataFrame
    query: str
    notes: Sequence[str] = ()
    on_charts: Sequence[str] = ()
    """Notes on the charts. Markdown and JSON have no charts."""
    drawings: Sequence[Drawing] = ()
    hidden: Collection[str] = ()
    """Columns that Markdown and HTML leave out: constant or redundant."""
    is_time: bool = False
    """Whether the rows are in order of time, so that the last rows matter most."""


_HIDDEN = {"baseline", "explained_by", "reference_expected", "spread", "dispersion", "p_value"}
_HIDDEN |= {"p_beside", "n_tested", "n_untested", "n_untimed", "n_null", "n_waiting", *CONFUSION}
"""Columns of comparisons that a reader seldom needs; JSON has them."""


def sections(answers: Answers) -> Iterator[Section]:
    """The sections of a report, in order."""
    if answers.remarks:
        yield Section("labels", "Warnings", pl.DataFrame(), "", ["What may make scores wrong."])
    rows, query = answers.total
    # A report shows intervals instead of standard errors.
    note = f"The scores over all rows, with {100 * answers.settings.ci:.10g} % intervals."
    yield Section("total", "All rows", without(rows, answers.errors), query, [note])
    gaps = [] if answers.gaps is None else [_gaps_section(answers, answers.gaps)]
    if answers.sensitive:
        yield from gaps
    by_key = zip(answers.keys, answers.slices, strict=True)
    yield from (_key_section(answers, *next(by_key)) for _ in answers.sensitive)
    if answers.worst is not None:
        yield _worst_section(answers, answers.worst)
    if answers.since is not None:
        yield _since_section(answers, answers.since)
    if not answers.sensitive:
        yield from gaps
    if answers.compared:
        yield _models_section(answers, answers.compared[0])
    for key, answer in by_key:
        yield _key_section(answers, key, answer)
    for key, answer in zip(answers.compared_keys, answers.compared[1:], strict=False):
        yield _models_by_key_section(answers, key, answer)
    yield from _score_sections(answers)
    yield _confusions_section(answers)
    notes = ["All rows are scored."] if answers.unscored.is_empty() else ["Why rows have no score."]
    yield Section("unscored", "Rows not scored", answers.unscored, "", notes)


def shown(section: Section, rows: pl.DataFrame) -> Iterator[tuple[str, pl.Series, list[str]]]:
    """The columns of a table that a reader sees, with their texts. Both limits are one column."""
    texts, keys = cell_texts(rows), key_columns(rows)
    limits = {
        f"{name}_low": f"{name}_high"
        for name in rows.columns
        if name not in keys and {f"{name}_low", f"{name}_high"} <= texts.keys()
    }
    for name in rows.columns:
        if name in limits:
            ends = zip(texts[name], texts[limits[name]], strict=True)
            both = [low if low == "–" else f"{low} to {high}" for low, high in ends]
            yield "low to high", rows[name], both
        elif name not in {*section.hidden, *limits.values()} or (name in keys and name != SET):
            yield name, rows[name], texts[name]


def drawings_of(
    alt: str, draw: str, rows: pl.DataFrame, score: str, **options: object
) -> list[Drawing]:
    """One drawing; none if all scores are null."""
    return [] if rows[score].is_null().all() else [Drawing(alt, draw, rows, options)]


def _worst_section(answers: Answers, worst: Worst) -> Section:
    """The section of the slices that are behind the rest of the log."""
    slices, settings = worst.listed.head(MAX_WORST), answers.settings
    fdr = f"false discovery rate {100 * (1 - settings.ci):.3g} %"
    what = (
        f"Slices of up to {settings.depth} keys, with at least {settings.min_n} rows, that score "
        f"worse than the rest of the log ({fdr}), the slice with the largest loss first; loss is "
        "how much better the log would score without the slice, beside how much of the difference "
        "is left beside the other slices of the list, expected what its mix of labels explains."
    )
    cut = [f"The table shows the first {MAX_WORST}."] if worst.listed.height > MAX_WORST else []
    return Section(
        "worst",
        "Worst slices",
        slices,
        worst.query,
        [what, " ".join([worst.summary, *cut])],
        drawings=drawings_of("Worst slices", "differences", slices, "diff", sort=False),
        hidden={*_HIDDEN, SET, "metric"},
    )


def _since_section(answers: Answers, since: Since) -> Section:
    """The section of the slices that became worse, with the days of the surest."""
    if since.why_not:
        return Section("since", "Since when", since.rows, "", [f"{since.why_not}."])
    names = [SET, *(key.name for key in answers.timeless)]
    what = (
        "For each slice, the day that parts its rows into before (reference) and after (score) "
        "most clearly, and whether the rows after are worse, given their labels, the surest first; "
        "expected is what the labels explain, at the rates of all rows of the slice."
    )
    which = "Asked are all rows, each key but times, and keys of the worst slices; not all pairs."
    notes = [what, which]
    if since.rows.height > MAX_WORST:
        notes += [f"The table shows the first {MAX_WORST}."]
    if any(since.rows["n_untimed"]):
        notes += ["Rows without a time are not used."]
    drawings = []
    if answers.settings.format == "html":  # The days are read from the log.
        worse, days = since.with_verdict("worse").head(MAX_DRAWN), dict[str, pl.DataFrame]()
        for at, row in enumerate(worse.iter_rows(named=True)):
            own = row.get(SET, TOTAL)
            if own not in days:
                days[own] = answers.days_of(own)
            own_keys = {key.name for key in answers.sets_in_time.get(own, ())}
            one = without(worse[at], {WORDS, *names} - own_keys)
            alt = f"{row[WORDS]}{answers.of_model(row)}, since {row['since']}"
            drawings.append(Drawing(alt, "changes", one, {"periods": days[own]}))
    rows = without(since.rows.head(MAX_WORST), names).select(
        pl.col(WORDS).alias(SAID), pl.exclude(WORDS)
    )
    hidden = {*_HIDDEN, "metric"}
    return Section(
        "since", "Since when", rows, since.query, notes, drawings=drawings, hidden=hidden
    )


def _gaps_section(answers: Answers, gaps: Answer) -> Section:
    """The section of the gaps between the slices of each key."""
    min_n = answers.settings.min_n
    what = (
        f"For each key, the slices with the lowest and the highest score, of those with at least "
        f"{min_n} rows: ratio is the lowest divided by the highest, diff the highest minus the "
        "lowest, and limits and p allow for having looked at all slices of the key."
    )
    return Section("gaps", "Gaps between slices", *gaps, [what], hidden={*_HIDDEN, "n", "n_slices"})


def _models_section(answers: Answers, answer: Answer) -> Section:
    """The section that compares models over all rows."""
    title = _models_title(answers)
    drawings = drawings_of(title, "differences", answer.rows, "diff", sort=False)
    notes = [_models_note(answers)]
    return Section("compared", title, *answer, notes, drawings=drawings, hidden=_HIDDEN)


def _models_by_key_section(answers: Answers, key: SectionKey, answer: Answer) -> Section:
    """The section that compares models in the slices of a key."""
    title = f"{_models_title(answers)}, by {key.name}"
    section = _section_of_slices(answers, key, answer, "diff", title=title, draw="differences")
    min_n = answers.settings.min_n
    few = [f"Only slices with at least {min_n} rows."] if key.joins and min_n else []
    notes = [_models_note(answers), *few, *section.notes]
    if key.joins:  # Most keys are null in a row.
        words = slices_in_words(section.rows, key.columns).alias(SAID)
        rows = section.rows.select(words, *without(section.rows, key.columns))
        section = replace(section, rows=rows)
    hidden = {*_HIDDEN, "metric"}
    return replace(section, id=f"compared:{key.name}", notes=notes, hidden=hidden)


def _models_title(answers: Answers) -> str:
    return f"Models compared with {answers.models[0]}"


def _models_note(answers: Answers) -> str:
    first, directions = answers.models[0], {one.less_is_better for one in answers.settings.scored}
    means = "Whether that is better, the verdict says."
    if directions in ({True}, {False}):
        end = "below" if True in directions else "above"
        means = f"A difference {end} 0 means that the model is better than {first}."
    what = f"score is of the model, reference of {first}, diff score minus reference"
    return f"Only rows with a prediction from both models are compared: {what}. {means}"


def _key_section(answers: Answers, key: SectionKey, answer: Answer) -> Section:
    """The section of the scores by one key."""
    metric = answers.metric
    alt = f"{metric} by {key.name}"
    section = _section_of_slices(answers, key, answer, metric, title=alt, draw="slices")
    on_charts, drawings = section.on_charts, section.drawings
    number = answer.rows.select(map(as_expr, key.columns)).n_unique()
    notes = [f"The scores by {key.name}, with limits of {metric}."]
    notes += [f"{text}." for _, text in undefined_in_words(answer.rows, metric, "slices")]
    if number > MAX_LINES and not section.is_time:
        notes = [f"Among {number:,} slices, some look bad by chance alone.", *notes]
        drawings = [*_funnels(answers, key, alt, _sorted(answers, key, answer.rows, metric))]
        on_charts = ["The funnel plot shows the limits of chance for each number of rows."]
        if number > _MAX_POINTS:
            on_charts += [f"The funnel plot shows the {_MAX_POINTS:,} slices with the most rows."]
    return replace(
        section,
        title=f"By {key.name}",
        rows=without(section.rows, answers.errors),
        notes=[*notes, *section.notes],
        on_charts=on_charts if drawings else [],
        drawings=drawings,
    )


def _funnels(
    answers: Answers, key: SectionKey, what: str, slices: pl.DataFrame
) -> Iterator[Drawing]:
    """A funnel plot per model, of the slices that have an interval."""
    metric, total = answers.metric, answers.total.rows
    has_interval = pl.all_horizontal(pl.col(metric, f"{metric}_se").is_not_null())
    slices = slices.filter(has_interval).sort("n", descending=True, maintain_order=True)
    for model in answers.models:
        of_model = answers.rows_of(model, slices).head(_MAX_POINTS)
        if of_model.height:
            rows = _with_total(key, of_model, answers.rows_of(model, total))
            name = f"{what}, {model}" if answers.has_models else what
            yield from drawings_of(name, "funnel", rows, metric, metric=metric)


def _with_total(key: SectionKey, slices: pl.DataFrame, total: pl.DataFrame) -> pl.DataFrame:
    """Append the total to the slices. The column `keys` tells the total from a slice."""
    if key.is_column:
        slices = slices.select(pl.lit(key.name).alias(SET), pl.all())
    elif TOTAL in slices[SET]:
        return slices
    return pl.concat([slices, total.with_columns(pl.lit(TOTAL).alias(SET))], how="diagonal")


def _score_sections(answers: Answers) -> Iterator[Section]:
    """The sections of the scores: how good they are, and whether they are calibrated."""
    if not answers.of_scores:
        return
    (rows, query), *calibrated = answers.of_scores
    if SET in rows.columns:  # The total is first.
        order = pl.when(pl.col(SET) != TOTAL).then(SCORE_METRICS[0]).otherwise(-1.0)
        rows = rows.sort(order, nulls_last=True, maintain_order=True)
    notes = ["roc_auc: how often a positive row has a higher score than a negative row."]
    if not calibrated:
        notes += ["The scores are not all between 0 and 1, so they are no probabilities."]
    if rows.height > MAX_TABLE_ROWS:
        which = f"the lowest by {SCORE_METRICS[0]}"
        notes += [f"The table holds {MAX_TABLE_ROWS:,} of {rows.height:,} rows, {which}."]
    hidden = [SET, *(f"{metric}_se" for metric in SCORE_METRICS)]
    title = "How good are the scores?"
    yield Section("scores", title, rows.head(MAX_TABLE_ROWS), query, notes, hidden=hidden)
    for answer in calibrated:
        title = "Are the scores calibrated?"
        what = (
            "Rows in bins of equal size, by score. If the scores are calibrated, the rate of "
            "positive rows is the mean score of the bin, within its interval."
        )
        drawings = drawings_of(title, "calibration", answer.rows, "rate")
        yield Section("calibration", title, *answer, [what], drawings=drawings)


def _confusions_section(answers: Answers) -> Section:
    """The section of the costliest confusions, with the confusion matrix of each model."""
    on_charts, drawings = [], []
    for name in answers.models:
        cells = answers.rows_of(name, answers.cells)
        labels = cells["gold"].n_unique()
        if labels > _MAX_MATRIX_LABELS:
            why = f"because it has {labels} labels"
            on_charts.append(f"The confusion matrix of {name} is not drawn, {why}.")
        else:
            drawings += drawings_of(f"confusion matrix of {name}", "confusion", cells, "n")
    what = (
        "contribution: the part of MCC that comes from this confusion, below 0. loss: how much MCC "
        "would rise if these rows were predicted correctly."
    )
    title = "Confusions that cost most"
    return Section("confusions", title, *answers.costliest, [what], on_charts, drawings)


def _section_of_slices(
    answers: Answers,
    key: SectionKey,
    answer: Answer,
    score: str,
    *,
    title: str,
    draw: Literal["slices", "differences"],
) -> Section:
    """A section of the slices of a key in order: of time, or the worst score of any model first.

    `draw` draws slices that are not of time, each as a line.
    """
    keys = [as_expr(column) for column in key.columns]
    slices, on_charts = answer.rows, list[str]()
    of_time = key.is_time or (len(keys) == 1 and is_calendar(slices.schema[key.columns[0]]))
    if of_time:
        which = order = "last"
        rows = slices.tail(MAX_TABLE_ROWS)
        shown = slices.filter(keys[0].rank("dense", descending=True) <= _MAX_TIMES)
        drawn = without(shown, [] if draw == "slices" else ["baseline", "metric"])
        drawings = drawings_of(title, "over_time", drawn, score, metric=score)
    else:
        which = "highest" if answers.less_is_better else "lowest"
        order = f"{which} by {score}"
        slices = _sorted(answers, key, slices, score)
        rows = slices.head(MAX_TABLE_ROWS)
        first = slices.select(keys).unique(maintain_order=True).head(MAX_LINES)
        shown = joined(slices, first, keys, how="semi", maintain_order="left")
        if draw == "slices":
            lines = _with_total(key, shown, answers.total.rows)
            drawings = drawings_of(title, draw, lines, score, metric=score, sort=False)
            on_charts += ["The dashed line is of all rows."]
        else:
            drawings = drawings_of(title, draw, shown, score, sort=False)
    n_slices, n_shown = (frame.select(keys).n_unique() for frame in (slices, shown))
    notes = [*filter(None, [key.note])]
    if rows.height < slices.height:
        notes += [f"The table holds {rows.height:,} of {slices.height:,} rows, the {order}."]
    if drawings and n_shown < n_slices:
        on_charts += [f"The chart shows the {which} {n_shown} of {n_slices:,} slices."]
    id_ = f"by:{key.name}"
    return Section(id_, title, rows, answer.query, notes, on_charts, drawings, is_time=of_time)


def _sorted(answers: Answers, key: SectionKey, slices: pl.DataFrame, score: str) -> pl.DataFrame:
    """Sort slices by the worst score of any model; bins and other Enums keep their own order.

    The models of a slice stay together.
    """
    columns, highest = [*map(as_expr, key.columns)], answers.less_is_better
    has_order = isinstance(key.of_log, Bins) or isinstance(slices.schema[key.columns[-1]], pl.Enum)
    if has_order and len(columns) == 1 and slices.select(columns).n_unique() <= MAX_LINES:
        return slices
    end = pl.col(score).max() if highest else pl.col(score).min()
    worst = end.over(columns)
    return slices.sort(worst, descending=highest, nulls_last=True, maintain_order=True)
