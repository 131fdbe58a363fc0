"""Answers → sentences with numbers, eight at most in the verdict; and what names mean."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import polars as pl

from polars_mcc._base.values_as_text_or_markdown import label_text, percent, rows_in_words
from polars_mcc._counts.sliced_log import SAID, SET
from polars_mcc._display.table_and_to_numpy import slices_in_words
from polars_mcc._display.undefined_scores import where_undefined
from polars_mcc._metrics.metric_type import Metric
from polars_mcc._metrics.registry import find_metric
from polars_mcc._report.report_data import TABLE_METRICS, WORDS, Answers
from polars_mcc._report.sections import Section

_MAX_NAMED = 3  # slices that a section names
_MAX_GAPS = 2  # sentences of the verdict on gaps
_MAX_CLAUSES = 3  # models, scores or reasons in one sentence


class Sentence(NamedTuple):
    """A sentence of the verdict or of a section, its kind, and the section that has its numbers."""

    text: str
    kind: str
    """Of the verdict: labels, score, comparison, gaps, slices, changes, unscored. Of a section:
    remark, meaning, reason."""
    about: str
    """The `id` of a section."""

    @property
    def is_detail(self) -> bool:
        """Whether this sentence stands in its section, and not in the verdict."""
        return self.kind in {"remark", "meaning", "reason"}


class Report(NamedTuple):
    """The content of a report, the same for every format."""

    answers: Answers
    sentences: Sequence[Sentence]
    sections: Sequence[Section]
    words: Mapping[str, str]
    """What the names in the report mean, and in which direction they are better."""
    made: Mapping[str, str]

    @property
    def verdict(self) -> list[Sentence]:
        """What stands on top: eight sentences at most."""
        return [sentence for sentence in self.sentences if not sentence.is_detail]

    def said_of(self, section: Section) -> list[str]:
        """The sentences with numbers that stand in a section, below its notes."""
        return [one.text for one in self.sentences if one.is_detail and one.about == section.id]


def sentences(answers: Answers) -> list[Sentence]:
    """Say how good the models are, how sure that is, what fails, and what is not scored."""
    return [
        *_remarks(answers),
        *_score_sentences(answers),
        *_model_sentences(answers),
        *_gap_sentences(answers),
        *_worst_sentences(answers),
        *_change_sentences(answers),
        *_unscored_sentences(answers),
    ]


def _in_one(clauses: Sequence[str], kind: str, about: str) -> Iterator[Sentence]:
    """One sentence of the first clauses, which says how many more there are."""
    more = len(clauses) - _MAX_CLAUSES
    if clauses:
        last = [f"and {more:,} more"] if more > 0 else []
        yield Sentence(f"{'; '.join([*clauses[:_MAX_CLAUSES], *last])}.", kind, about)


def _remarks(answers: Answers) -> Iterator[Sentence]:
    """The beginning of the first warning in the verdict, and all warnings for their section."""
    remarks = [answers.settings.in_words(text) for text in answers.remarks]
    for text in remarks[:1]:
        first = re.split(r"[.?:] |[.?]$", text)[0]
        more = f", and {len(remarks) - 1} more" if remarks[1:] else ""
        yield Sentence(f"Read the warnings first: {first}{more}.", "labels", "labels")
    for text in remarks:
        yield Sentence(text if text.endswith((".", "?")) else f"{text}.", "remark", "labels")


def _score_sentences(answers: Answers) -> Iterator[Sentence]:
    total, given = answers.total.rows, answers.counted.log.roles.zero_division
    counts_as = None if given is None or math.isnan(given) else given
    are_0, clauses = [], []
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
            clauses.append(f"{model}{score}")
    yield from _in_one(clauses, "score", "total")
    if counts_as:
        yield Sentence(f"0/0 counts as {counts_as:g} in every score.", "meaning", "total")
    # What the first model's MCC would mean in the simplest of logs.
    mcc, k = total["mcc"][0], answers.cells["gold"].drop_nulls().n_unique()
    is_score = mcc is not None and 0 < mcc < 1 and not are_0[0][0]
    if answers.metric == "mcc" and k > 1 and is_score:
        meaning = (
            f"With {k} equally frequent labels, an MCC of {_score(mcc)} means that "
            f"{percent(1 / k + mcc * (1 - 1 / k))} of the rows are right."
        )
        yield Sentence(meaning, "meaning", "total")


def _model_sentences(answers: Answers) -> Iterator[Sentence]:
    """Whether another model is better than the first, and in how many slices it is not."""
    if not answers.compared:
        return
    first, *_ = answers.models
    clauses = []
    for row in answers.compared[0].rows.iter_rows(named=True):
        name, verdict, metric = row["model"], row["verdict"], row["metric"]
        both = f"{name} and {first}"
        if verdict == "not judged":
            why = "because one of them has no confidence interval"
            clauses.append(f"{both} cannot be compared, {why}")
            continue
        result = f"{name} is {verdict} than {first}"
        if verdict not in _OTHERS:
            result = f"{both} {'differ' if verdict == 'differs' else 'do not differ significantly'}"
        numbers = f"the difference in {_metric_name(metric)} is {_difference(answers, row)}"
        if metric == answers.metric and verdict != "differs":
            numbers += _in_slices(answers, name, _OTHERS.get(verdict, [*_OTHERS]))
        clauses.append(f"{result}: {numbers}")
    yield from _in_one(clauses, "comparison", "compared")


_OTHERS = {"better": ["worse"], "worse": ["better"]}
"""What is worth saying of the slices of a model that is better or worse over all rows."""


def _in_slices(answers: Answers, model: str, words: Sequence[str]) -> str:
    """In how many slices a model differs from the first in another way than over all rows."""
    if not answers.compared_keys:
        return ""
    shown = "verdict", "diff", "diff_low", "diff_high", "p_adjusted"
    rows = pl.concat(
        answer.rows.filter(model=model).select(
            slices_in_words(answer.rows, key.columns).alias(SAID), *shown
        )
        for key, answer in zip(answers.compared_keys, answers.compared[1:], strict=True)
    )
    others = rows.filter(pl.col("verdict").is_in(words)).sort(pl.col("diff").abs(), descending=True)
    which, of_slices = " or ".join(words), f" of {rows['diff'].count():,} slices"
    if others.is_empty():
        return f", and it is {which} in none{of_slices}"
    row, most = others.row(0, named=True), "most of all in " * (others.height > 1)
    first = f"{most}{row[SAID]}: a difference of {_difference(answers, row)}"
    return f", and it is {which} in {others.height:,}{of_slices}, {first}"


def _gap_sentences(answers: Answers) -> Iterator[Sentence]:
    """How far the lowest and the highest slice are apart: of each sensitive key, else of any."""
    if answers.gaps is None:
        if answers.sensitive:
            why = "the rows of a cluster may be in several slices"
            yield Sentence(f"Gaps between slices are not measured: {why}.", "gaps", "total")
        return
    gaps, names = answers.gaps.rows, [key.name for key in answers.sensitive]
    asked = [(f"slices of {name}", gaps.filter(pl.col(SET) == name)) for name in names]
    heads = []
    for what, rows in asked or [("slices of one key", gaps)]:
        sure = rows.filter(verdict="gap")
        if names:  # A share has a ratio, and the metrics asked for are what the review is about.
            is_share = pl.col("metric").is_in(answers.shares)
            is_asked = pl.col("metric").is_in([metric.name for metric in answers.settings.scored])
            by = [is_share & is_asked, is_share]
            sure = sure.sort(by, descending=True, maintain_order=True)
        if sure.height:
            heads.append(_gap_in_words(answers, sure.row(0, named=True)))
        elif rows["diff"].is_null().all():
            why = "fewer than two of a key have enough rows"
            heads.append(f"No gap between {what} is measured: {why}")
        else:
            heads.append(f"No gap between {what} is significant")
    for head in heads[: _MAX_GAPS - 1]:
        yield Sentence(f"{head}.", "gaps", "gaps")
    yield from _in_one(heads[_MAX_GAPS - 1 :], "gaps", "gaps")


def _gap_in_words(answers: Answers, row: Mapping[str, Any]) -> str:
    error = answers.error_rates.get(row["metric"])
    name = _metric_name(row["metric"]) + (f" ({error})" if error else "")
    model = f"{row['model']}: " if answers.has_models else ""
    ends = " and ".join(
        f"{_score(row[f'{end}_score'])} in {row[end]}" for end in ("lowest", "highest")
    )
    has_ratio = row["metric"] in answers.shares and row["ratio"] is not None
    ratio = f"a ratio of {_score(row['ratio'])}" if has_ratio else ""
    if ratio and row.get("ratio_low") is not None:
        ratio += f" ({_score(row['ratio_low'])} to {_score(row['ratio_high'])})"
    gap = f"a gap of {_score(row['diff'])} ({_interval_text(answers, row, 'diff')}; "
    both = f"{ratio}, {gap}" if ratio else gap
    return f"{model}{name} is {ends}: {both}{_p_text(row['p_adjusted'])})"


def _worst_sentences(answers: Answers) -> Iterator[Sentence]:
    """How many slices are worse than the rest, and the worst of them."""
    if answers.worst is None:
        return
    listed, n_tested = answers.worst.listed, answers.worst.n_tested
    many = f"{n_tested:,} {'slice' if n_tested == 1 else 'slices'} tested"
    said = f"None of {many} is worse than the rest of the log"
    if not n_tested:
        said = "No slice was tested: none has enough rows and two labels"
    for row in listed.head(1).iter_rows(named=True):
        are = "are" if listed.height > 1 else "is"
        said = (
            f"{listed.height:,} of {many} {are} worse than the rest of the log"
            f"{', first' * (listed.height > 1)}: {row[SAID]}{answers.of_model(row)}, where "
            f"{_metric_name(answers.metric)} is {_score(row['score'])} over "
            f"{rows_in_words(row['n'])}, and {_score(row['reference'])} in the rest: a difference "
            f"of {_difference(answers, row)}"
        )
    yield Sentence(f"{said}.", "slices", "worst")


def _change_sentences(answers: Answers) -> Iterator[Sentence]:
    """Since when slices are worse, or that none is, or why it is not known."""
    since = answers.since
    if since is None:
        return
    worse, name = since.with_verdict("worse"), _metric_name(answers.metric)
    sets = answers.sets_in_time.values()
    crossed = [" × ".join(key.name for key in keys) for keys in sets if len(keys) > 1]
    if len(crossed) > _MAX_NAMED:
        crossed = [f"{len(crossed)} crosses of keys"]
    asked = ", ".join(["all rows", *["each key"] * bool(sets), *crossed])
    looked_at = f"{since.n_judged:,} {'slice' if since.n_judged == 1 else 'slices'} ({asked})"
    said = f"No change: none of {looked_at} became worse on some day"
    if since.why_not:
        said = f"Since when slices are worse is not known: {since.why_not}"
    elif not since.n_judged:
        said = "No slice has enough rows to say since when it is worse"
    for row in worse.head(0 if since.why_not else 1).iter_rows(named=True):
        said = (
            f"{worse.height:,} of {looked_at} became worse on some day"
            f"{', first' * (worse.height > 1)}: since {row['since']}, "
            f"{row[WORDS]}{answers.of_model(row)} has {name} {_score(row['score'])}, "
            f"{_score(row['reference'])} before ({_p_text(row['p_adjusted'])})"
        )
    if since.with_verdict("labels moved").height and worse.is_empty():
        said += f", though {name} moved with the mix of labels"
    yield Sentence(f"{said}.", "changes", "since")


def _unscored_sentences(answers: Answers) -> Iterator[Sentence]:
    clauses = [] if answers.unscored.height else ["All rows are scored"]
    for row in answers.unscored.iter_rows(named=True):
        of_model = f" for model {row['pred']}" if answers.has_models else ""
        rows = f"{rows_in_words(row['n_null'])} {'is' if row['n_null'] == 1 else 'are'}"
        clauses.append(f"{rows} not scored{of_model}: {row['reason']}")
    yield from _in_one(clauses, "unscored", "unscored")
    if answers.waiting_since and answers.waiting_since[0] is not None:
        oldest, middle, newest = answers.waiting_since
        sentence = f"The rows that wait are of {oldest} to {newest}, half of them since {middle}."
        yield Sentence(sentence, "reason", "unscored")


def _metric_name(metric: str) -> str:
    return "MCC" if metric == "mcc" else metric


def _score(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}".replace("-", "−")


def _difference(answers: Answers, row: Mapping[str, Any]) -> str:
    how_sure = f"{_interval_text(answers, row, 'diff')}; {_p_text(row['p_adjusted'])}"
    return f"{_signed(row['diff'])} ({how_sure})"


def _signed(value: float) -> str:
    return f"{value:+.3f}".replace("-", "−")


def _interval_text(answers: Answers, row: Mapping[str, Any], score: str) -> str:
    low, high = _score(row[f"{score}_low"]), _score(row[f"{score}_high"])
    return f"{100 * answers.settings.ci:.10g}\u00a0% confidence interval {low} to {high}"


def _p_text(p: float) -> str:
    return "p\u00a0<\u00a00.001" if p < 0.001 else f"p\u00a0=\u00a0{p:.2g}"


_OF_ALL = {
    "mcc": "how well predictions and labels agree: 1 without errors, and 0 for guessing, whatever "
    "the mix of labels",
    "accuracy": "the share of the rows that are predicted right",
    "balanced_accuracy": "the share of a label's rows that are predicted right, on average over "
    "the labels",
    "f1_macro": "whether each label is found, and only where it is: F1, on average over the labels",
}
_OF_POSITIVE = {
    "tpr recall": "of the rows labelled {0}, the share that is predicted {0}",
    "fnr": "of the rows labelled {0}, the share that is not predicted {0}",
    "fpr": "of the rows not labelled {0}, the share that is predicted {0}",
    "tnr specificity": "of the rows not labelled {0}, the share that is not predicted {0}",
    "ppv precision": "of the rows predicted {0}, the share that is labelled {0}",
    "fdr": "of the rows predicted {0}, the share that is not labelled {0}",
    "npv": "of the rows not predicted {0}, the share that is not labelled {0}",
    "selection_rate": "the share of the rows that is predicted {0}",
    "prevalence": "the share of the rows that is labelled {0}",
}
_CELLS = {
    "fn": "labelled {0} and not predicted {0}",
    "fp": "predicted {0} and not labelled {0}",
    "tp": "labelled and predicted {0}",
    "tn": "neither labelled nor predicted {0}",
}


def in_words(answers: Answers) -> dict[str, str]:
    """What each name means that the report uses, in the order in which a reader meets them."""
    scored = answers.settings.scored
    others = {*answers.error_rates, *TABLE_METRICS} - {metric.name for metric in scored}
    metrics = [*scored, *map(find_metric, sorted(others))]
    level = f"{100 * answers.settings.ci:.10g}\u00a0%"
    least = f"{1 - answers.settings.ci:.3g}"
    return {metric.name: _of_metric(metric, answers) for metric in metrics} | {
        "low to high": f"the {level} confidence interval of the number before it",
        "p": "how often chance alone would make so large a difference, were there none; below "
        f"{least} it is significant",
        "gold": "the true label of a row",
        "n": "the number of rows; n_null rows are not scored",
    }


def _of_metric(metric: Metric, answers: Answers) -> str:
    """A metric in words, with its direction; its formula, if there are no words for it."""
    roles, labels = answers.log.roles, answers.two_labels
    positive = True if roles.positive is None and not labels else roles.positive_label
    positive = labels[0] if labels and roles.positive is None else positive
    named = {name: text for names, text in _OF_POSITIVE.items() for name in names.split()}
    words = (_OF_ALL | named).get(metric.name, metric.formula or "a metric of your own")
    cells = re.findall(r"([^\s(]+)·(fn|fp|tp|tn)", metric.formula) if metric.name == "cost" else []
    if cells:
        each = " and ".join(f"{number} for each {_CELLS[cell]}" for number, cell in cells)
        words = f"what errors cost, on average over all rows: {each}"
    direction = {True: "less is better", False: "more is better", None: "neither is better"}
    words = words.replace("{0}", label_text(positive))
    return f"{words}; {direction[metric.less_is_better]}"
