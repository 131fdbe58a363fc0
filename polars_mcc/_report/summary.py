"""Answers → the verdict: sentences with numbers, each linked to the section with its table."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import polars as pl

from polars_mcc._base.slice_names import ALL_ROWS
from polars_mcc._base.values_as_text_or_markdown import count_as_text, percent, rows_in_words
from polars_mcc._counts.sliced_log import SAID
from polars_mcc._display.table_and_to_numpy import slices_in_words
from polars_mcc._display.undefined_scores import where_undefined
from polars_mcc._report.report_data import WORDS, Answers
from polars_mcc._report.sections import MAX_DRAWN, Drawing, Section, drawings_of

_MAX_NAMED = 3  # slices that the verdict names
_MAX_NAMED_GAPS = 4  # gaps that the verdict names
_MAX_TILES = 3  # models that have a tile


class Sentence(NamedTuple):
    """A sentence of the verdict, its kind, and the section that has its numbers."""

    text: str
    kind: str
    """Any of labels, score, meaning, slices, slice, changes, change, gaps, gap, comparison,
    regression, unscored."""
    about: str
    """The `id` of a section."""

    @property
    def is_detail(self) -> bool:
        """Whether this sentence explains the sentence before it."""
        return self.kind in {"meaning", "slice", "change", "gap", "regression"}


class Report(NamedTuple):
    """The content of a report, the same for every format."""

    answers: Answers
    verdict: Sequence[Sentence]
    sections: Sequence[Section]
    made: Mapping[str, str]


def verdict(answers: Answers) -> list[Sentence]:
    """Say how good the models are, which slices are behind, and which rows are not scored."""
    remarks = map(answers.settings.in_words, answers.remarks)
    return [
        *(Sentence(f"{text}.".replace("?.", "?"), "labels", "total") for text in remarks),
        *_score_sentences(answers),
        *_worst_sentences(answers),
        *_change_sentences(answers),
        *_gap_sentences(answers),
        *_model_sentences(answers),
        *_unscored_sentences(answers),
    ]


def _score_sentences(answers: Answers) -> Iterator[Sentence]:
    total, given = answers.total.rows, answers.counted.log.roles.zero_division
    counts_as = None if given is None or math.isnan(given) else given
    are_0 = []
    for one in answers.settings.scored:
        metric, bases = one.name, answers.bases(one)
        are_0 += [total.select(where_undefined(total, metric, counts_as or None)).to_series()]
        for row, is_0, base in zip(total.iter_rows(named=True), are_0[-1], bases, strict=True):
            model = f"{row['model']}: " if answers.has_models else ""
            score = "no row is scored"
            if row["n"] and is_0:
                score = f"{_metric_name(metric)} is undefined (0/0) over {base}"
            elif row["n"]:
                has_interval = row[f"{metric}_low"] is not None
                interval = f" ({_interval_text(answers, row, metric)})" if has_interval else ""
                score = f"{_metric_name(metric)} is {_score(row[metric])}{interval} over {base}"
            yield Sentence(f"{model}{score}.", "score", "total")
    if counts_as:
        yield Sentence(f"0/0 counts as {counts_as:g} in every score.", "meaning", "total")
    # What MCC is, and what the first model's score would mean in the simplest of logs.
    mcc, k = total["mcc"][0], answers.cells["gold"].drop_nulls().n_unique()
    is_score = mcc is not None and 0 < mcc < 1 and not are_0[0][0]
    if answers.metric == "mcc" and k > 1 and is_score:
        meaning = (
            "MCC is 1 without errors and 0 for guessing, whatever the mix of labels. With "
            f"{k} equally frequent labels, {_score(mcc)} means that "
            f"{percent(1 / k + mcc * (1 - 1 / k))} of the rows are right."
        )
        yield Sentence(meaning, "meaning", "total")


def _worst_sentences(answers: Answers) -> Iterator[Sentence]:
    if answers.worst is None:
        return
    name, listed = _metric_name(answers.metric), answers.worst.listed
    first = f" The worst {_MAX_NAMED}:" if listed.height > _MAX_NAMED else ""
    yield Sentence(f"{answers.worst.summary}{first}", "slices", "worst")
    for row in listed.head(_MAX_NAMED).iter_rows(named=True):
        sentence = (
            f"{row[SAID]}{answers.of_model(row)}: {name} is {_score(row['score'])} over "
            f"{rows_in_words(row['n'])}, and {_score(row['reference'])} in the rest of the "
            f"log (difference {_signed(row['diff'])}; {_interval_text(answers, row, 'diff')})."
        )
        if (expected := row["expected"]) is not None:
            sentence += f" Given its labels alone, it would be {_score(expected)}."
        if confusion := row["confusion"]:
            sentence += f" {confusion[0].upper()}{confusion[1:]}."
        yield Sentence(sentence, "slice", "worst")


def _change_sentences(answers: Answers) -> Iterator[Sentence]:
    """Since when slices are worse, or that none is, or why it is not known."""
    since = answers.since
    if since is None:
        return
    worse, moved = (since.with_verdict(verdict) for verdict in ("worse", "labels moved"))
    looked_at = f"{since.n_judged:,} {'slice' if since.n_judged == 1 else 'slices'}"
    said = f"{worse.height:,} of {looked_at} became worse on some day"
    if since.why_not:
        said = f"Since when slices are worse is not known: {since.why_not}"
    elif not since.n_judged:
        said = "No slice has enough rows to say since when it is worse"
    elif worse.is_empty():
        said = f"No change: none of {looked_at} became worse on some day"
    first = f" The {MAX_DRAWN} surest:" if worse.height > MAX_DRAWN else ""
    yield Sentence(f"{said}.{first}", "changes", "since")
    name = _metric_name(answers.metric)
    for row in worse.head(MAX_DRAWN).iter_rows(named=True):
        before, after = row["reference"], row["score"]
        given = "" if row["diff"] is None else f"; given its labels {_score(after - row['diff'])}"
        sentence = (
            f"Since {row['since']}, {row[WORDS]}{answers.of_model(row)}: {name} "
            f"{_score(after)}, {_score(before)} before{given} ({_p_text(row['p_adjusted'])})."
        )
        yield Sentence(sentence, "change", "since")
    if moved.height:
        slices = ", ".join(
            f"{row[WORDS]}{answers.of_model(row)} since {row['since']}"
            for row in moved.head(MAX_DRAWN).iter_rows(named=True)
        )
        more = ", and others" if moved.height > MAX_DRAWN else ""
        sentence = f"{name} moved with the mix of labels, and not given the labels: {slices}{more}."
        yield Sentence(sentence, "change", "since")


def _gap_sentences(answers: Answers) -> Iterator[Sentence]:
    """How far the lowest and the highest slice of a key are apart, if they are not all equal."""
    if answers.gaps is None:
        return
    gaps = answers.gaps.rows
    sure = gaps.filter(pl.col("p_adjusted") < 1 - answers.settings.ci)
    head = "Slices of one key are not all equal. The widest gaps:"
    if sure.is_empty():
        head = "No gap between slices of one key is significant."
    if gaps["diff"].is_null().all():
        head = "No gap between slices of one key is measured: none has two slices with enough rows."
    yield Sentence(head, "gaps", "gaps")
    for row in sure.head(_MAX_NAMED_GAPS).iter_rows(named=True):
        error = answers.error_rates.get(row["metric"])
        name = _metric_name(row["metric"]) + (f" ({error})" if error else "")
        model = f"{row['model']}: " if answers.has_models else ""
        ends = " and ".join(
            f"{_score(row[f'{end}_score'])} in {row[end]}" for end in ("lowest", "highest")
        )
        sentence = (
            f"{model}{name} is {ends}: a gap of {_score(row['diff'])} "
            f"({_interval_text(answers, row, 'diff')}; all {row['n_slices']:,} slices equal: "
            f"{_p_text(row['p_adjusted'])})."
        )
        yield Sentence(sentence, "gap", "gaps")


def _model_sentences(answers: Answers) -> Iterator[Sentence]:
    if not answers.compared:
        return
    first, *_ = answers.models
    for row in answers.compared[0].rows.iter_rows(named=True):
        name, verdict, metric = row["model"], row["verdict"], row["metric"]
        both = f"{name} and {first}"
        if verdict == "not judged":
            why = "because one of them has no confidence interval"
            yield Sentence(f"{both} cannot be compared, {why}.", "comparison", "compared")
            continue
        result = f"{name} is {verdict} than {first}"
        if verdict not in _OTHERS:
            result = f"{both} {'differ' if verdict == 'differs' else 'do not differ significantly'}"
        numbers = f"the difference in {_metric_name(metric)} is {_signed(row['diff'])}"
        numbers += f" ({_interval_text(answers, row, 'diff')}; {_p_text(row['p_adjusted'])})"
        yield Sentence(f"{result}: {numbers}.", "comparison", "compared")
        if metric == answers.metric and verdict != "differs":
            yield from _slices_of_model(answers, name, _OTHERS.get(verdict, [*_OTHERS]))


_OTHERS = {"better": ["worse"], "worse": ["better"]}
"""What is worth saying of the slices of a model that is better or worse over all rows."""


def _slices_of_model(answers: Answers, model: str, words: Sequence[str]) -> Iterator[Sentence]:
    """Name the slices in which a model is significantly better or worse than the first model."""
    first, *_ = answers.models
    is_anywhere, n_compared = False, 0
    for key, answer in zip(answers.compared_keys, answers.compared[1:], strict=True):
        rows = answer.rows.filter(pl.col("model") == model)
        n_compared += rows["p_adjusted"].count()
        for word in words:
            slices = rows.filter(pl.col("verdict") == word)
            if slices.is_empty():
                continue
            is_anywhere = True
            change = pl.col("diff").abs()
            largest = slices.sort(change, descending=True, maintain_order=True).head(_MAX_NAMED)
            names = ", ".join(
                f"{row[SAID]} (difference {_signed(row['diff'])}, {_p_text(row['p_adjusted'])})"
                for row in largest.with_columns(
                    slices_in_words(largest, key.columns).alias(SAID)
                ).iter_rows(named=True)
            )
            number = f"{slices.height:,} of {rows.height:,} slices by {key.name}"
            listed = f", most of all in {names}" if slices.height > _MAX_NAMED else f": {names}"
            sentence = f"{model} is {word} than {first} in {number}{listed}."
            yield Sentence(sentence, "regression", f"compared:{key.name}")
    if n_compared and not is_anywhere:
        slices_of = ", ".join(key.name for key in answers.compared_keys)
        is_not = f"{model} is not significantly {' or '.join(words)} than {first}"
        sentence = f"{is_not} in any of {n_compared:,} slices by {slices_of}."
        yield Sentence(sentence, "regression", "compared")


def _unscored_sentences(answers: Answers) -> Iterator[Sentence]:
    if answers.unscored.is_empty():
        yield Sentence("All rows are scored.", "unscored", "unscored")
    for row in answers.unscored.iter_rows(named=True):
        of_model = f" for model {row['pred']}" if answers.has_models else ""
        rows = f"{rows_in_words(row['n_null'])} {'is' if row['n_null'] == 1 else 'are'}"
        sentence = f"{rows} not scored{of_model}: {row['reason']}."
        yield Sentence(sentence, "unscored", "unscored")
    if answers.waiting_since and answers.waiting_since[0] is not None:
        oldest, middle, newest = answers.waiting_since
        sentence = f"The rows that wait are of {oldest} to {newest}, half of them since {middle}."
        yield Sentence(sentence, "unscored", "unscored")


def _metric_name(metric: str) -> str:
    return "MCC" if metric == "mcc" else metric


def _score(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}".replace("-", "−")


def _signed(value: float) -> str:
    return f"{value:+.3f}".replace("-", "−")


def _interval_text(answers: Answers, row: Mapping[str, Any], score: str) -> str:
    low, high = _score(row[f"{score}_low"]), _score(row[f"{score}_high"])
    return f"{100 * answers.settings.ci:.10g}\u00a0% confidence interval {low} to {high}"


def _p_text(p: float) -> str:
    return "p\u00a0<\u00a00.001" if p < 0.001 else f"p\u00a0=\u00a0{p:.2g}"


def tiles(answers: Answers) -> Iterator[tuple[str, str, str]]:
    """The large numbers at the top of the page, each with its label and the `id` of a section.

    They are scores, differences, how many slices are behind, how many rows are not scored.
    """
    metric = answers.metric
    for row in answers.total.rows.head(_MAX_TILES).iter_rows(named=True):
        of_model = f" of {row['model']}" if answers.has_models else ""
        yield _score(row[metric]), f"{_metric_name(metric)}{of_model}", "total"
    if answers.compared:
        for row in answers.compared[0].rows.head(_MAX_TILES - 1).iter_rows(named=True):
            number = "–" if row["diff"] is None else _signed(row["diff"])
            yield number, f"{row['model']} minus {answers.models[0]}", "compared"
    if answers.worst is not None:
        behind = answers.worst.listed.height
        what = f"{'slice' if behind == 1 else 'slices'} behind the rest"
        yield f"{behind:,}", what, "worst"
    by_model = dict.fromkeys(answers.models, 0)
    for name, n in answers.unscored.select("pred", "n_null").rows():
        by_model[name] += n
    if len({*by_model.values()}) == 1:
        yield count_as_text(next(iter(by_model.values()))), "rows not scored", "unscored"
        return
    for name, n in [*by_model.items()][:_MAX_TILES]:
        yield count_as_text(n), f"rows not scored for {name}", "unscored"


def overview_chart(answers: Answers) -> list[Drawing]:
    """The chart beside the verdict: the score of each model and of the worst slices."""
    metric = answers.metric
    low, high = f"{metric}_low", f"{metric}_high"
    models = ["model"] if answers.has_models else []
    columns = [SAID, *models, "n", metric, low, high]
    rows = [answers.total.rows.with_columns(pl.lit(ALL_ROWS).alias(SAID)).select(columns)]
    if answers.worst is not None:
        rest = pl.col("reference")
        drawn = {metric: pl.col("score")}
        drawn |= {low: rest + pl.col("diff_low"), high: rest + pl.col("diff_high")}
        rows.append(answers.worst.listed.head(_MAX_NAMED).with_columns(**drawn).select(columns))
    alt = f"{metric} of all rows and of the worst slices, with confidence intervals"
    slices = pl.concat(rows, how="vertical_relaxed")
    return drawings_of(alt, "slices", slices, metric, metric=metric, sort=False)
