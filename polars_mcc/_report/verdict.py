"""Answers → the verdict: sentences with numbers, each linked to the section with its table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import polars as pl

from polars_mcc._counts.sliced import SAID
from polars_mcc._log.words import ALL_ROWS
from polars_mcc._report.answers import Answers
from polars_mcc._report.sections import (
    COMPARED_ID,
    GAPS_ID,
    TOTAL_ID,
    UNSCORED_ID,
    WORST_ID,
    Drawing,
    Section,
    drawn,
)
from polars_mcc._search.words import count, percent, rows_in_words, text
from polars_mcc._show.table import slices_in_words
from polars_mcc._show.undefined import undefined

_WORST = 3  # slices that the verdict names, at most
_GAPS = 4  # gaps in error rates that the verdict names, at most
_TILES = 3  # models that have a tile, at most


class Sentence(NamedTuple):
    """A sentence of the verdict, its kind, and the section that has its numbers."""

    text: str
    kind: str
    """Any of labels, score, meaning, slices, slice, gaps, gap, comparison, regression, unscored."""
    about: str
    """The `id` of a section."""

    @property
    def is_detail(self) -> bool:
        """Whether this sentence explains the sentence before it."""
        return self.kind in {"meaning", "slice", "gap", "regression"}


class Report(NamedTuple):
    """The content of a report, the same for every format."""

    answers: Answers
    verdict: Sequence[Sentence]
    sections: Sequence[Section]
    made: Mapping[str, str]


def verdict(answers: Answers) -> list[Sentence]:
    """Say how good the models are, which slices are behind, and which rows are not scored."""
    return [
        *(Sentence(f"{one}.".replace("?.", "?"), "labels", TOTAL_ID) for one in answers.remarks),
        *_overall(answers),
        *_behind(answers),
        *_gaps(answers),
        *_better(answers),
        *_unscored(answers),
    ]


def _overall(answers: Answers) -> Iterator[Sentence]:
    metric, total = answers.metric, answers.total.rows
    is_undefined = total.select(undefined(total, metric)).to_series()
    rows = zip(total.iter_rows(named=True), is_undefined, answers.bases, strict=True)
    for row, is_0, base in rows:
        model = f"{row['model']}: " if answers.has_models else ""
        told = "no row is scored"
        if row["n"] and is_0:
            told = f"{_name(metric)} is undefined (0/0) over {base}"
        elif row["n"]:
            is_sure = row[f"{metric}_low"] is not None
            sure = f" ({_interval(answers, row, metric)})" if is_sure else ""
            told = f"{_name(metric)} is {_score(row[metric])}{sure} over {base}"
        yield Sentence(f"{model}{told}.", "score", TOTAL_ID)
    yield from _meaning(answers)


def _meaning(answers: Answers) -> Iterator[Sentence]:
    """What MCC is, and what the first model's score would mean in the simplest of logs."""
    mcc = answers.total.rows["mcc"][0]
    k = answers.cells["gold"].drop_nulls().n_unique()
    if answers.metric != "mcc" or k < 2 or mcc is None or not 0 < mcc < 1:
        return
    right = 1 / k + mcc * (1 - 1 / k)
    told = (
        "MCC is 1 without errors and 0 for guessing, whatever the mix of labels. With "
        f"{k} equally frequent labels, {_score(mcc)} means that {percent(right)} of the "
        "rows are right."
    )
    yield Sentence(told, "meaning", TOTAL_ID)


def _behind(answers: Answers) -> Iterator[Sentence]:
    if answers.worst is None:
        return
    metric = answers.metric
    listed, looked = answers.worst.listed, answers.worst.looked
    more = f" The worst {_WORST}:" if listed.height > _WORST else ""
    yield Sentence(f"{looked}{more}", "slices", WORST_ID)
    for row in listed.head(_WORST).iter_rows(named=True):
        told = (
            f"{row[SAID]}{answers.of_model(row)}: {_name(metric)} is {_score(row[metric])} over "
            f"{rows_in_words(row['n'])}, and {_score(row[f'{metric}_rest'])} in the rest of the "
            f"log (difference {_signed(row['diff'])}; {_interval(answers, row, 'diff')})."
        )
        if (expected := row[f"{metric}_expected"]) is not None:
            told += f" Given its labels alone, it would be {_score(expected)}."
        if confusion := row["confusion"]:
            told += f" {confusion[0].upper()}{confusion[1:]}."
        yield Sentence(told, "slice", WORST_ID)


def _gaps(answers: Answers) -> Iterator[Sentence]:
    """Where the error rates of two labels differ most between the slices of one key."""
    if answers.gaps is None:
        return
    found = answers.gaps.rows
    told = "The widest gaps in error rates between slices of one key:"
    none = "No gap in error rates between slices of one key is significant."
    yield Sentence(none if found.is_empty() else told, "gaps", GAPS_ID)
    for row in found.head(_GAPS).iter_rows(named=True):
        base, base_to = rows_in_words(row["n"]), count(row["n_to"])
        what = f"with gold {text(row['gold'])} are predicted {text(row['pred'])}"
        told = (
            f"{row[SAID]}{answers.of_model(row)}: {percent(row['rate'])} of {base} {what}; "
            f"{row[f'{SAID}_to']}: {percent(row['rate_to'])} of {base_to} "
            f"({_p_value(row['p_adjusted'])})."
        )
        yield Sentence(told, "gap", GAPS_ID)


def _better(answers: Answers) -> Iterator[Sentence]:
    if answers.compared is None:
        return
    first, *_ = answers.models
    turn = -1 if answers.less_is_better else 1
    signs = {"better": turn, "worse": -turn}
    for row in answers.compared.rows.iter_rows(named=True):
        name, p = row["model"], row["p_adjusted"]
        if p is None or row["diff"] is None:
            text = (
                f"{name} and {first} cannot be compared, because one of them has no confidence "
                "interval."
            )
            yield Sentence(text, "comparison", COMPARED_ID)
            continue
        said, where = f"{name} and {first} do not differ significantly", signs
        if p < 1 - answers.options.ci:
            word, other = ("better", "worse") if row["diff"] * turn > 0 else ("worse", "better")
            said, where = f"{name} is {word} than {first}", {other: signs[other]}
        numbers = f"the difference in {_name(answers.metric)} is {_signed(row['diff'])}"
        numbers += f" ({_interval(answers, row, 'diff')}; {_p_value(p)})"
        yield Sentence(f"{said}: {numbers}.", "comparison", COMPARED_ID)
        yield from _where(answers, name, where)


def _where(answers: Answers, model: str, signs: Mapping[str, int]) -> Iterator[Sentence]:
    """Name the slices in which a model is significantly better or worse than the first model."""
    first, *_ = answers.models
    is_found, looked = False, 0
    for part, answer in answers.compared_by:
        rows = answer.rows.filter(pl.col("model") == model)
        looked += rows["p_adjusted"].count()
        for word, sign in signs.items():
            moved = pl.col("diff") * sign
            is_sure = pl.col("p_adjusted") < 1 - answers.options.ci
            there = rows.filter(is_sure & (moved > 0))
            if there.is_empty():
                continue
            is_found = True
            most = there.sort(moved, descending=True, maintain_order=True).head(_WORST)
            most = most.with_columns(slices_in_words(most, part.columns).alias(SAID))
            names = ", ".join(
                f"{row[SAID]} (difference {_signed(row['diff'])}, {_p_value(row['p_adjusted'])})"
                for row in most.iter_rows(named=True)
            )
            number = f"{there.height:,} of {rows.height:,} slices by {part.name}"
            these = f", most of all in {names}" if there.height > _WORST else f": {names}"
            text = f"{model} is {word} than {first} in {number}{these}."
            yield Sentence(text, "regression", f"{COMPARED_ID}:{part.name}")
    if looked and not is_found:
        names = ", ".join(part.name for part, _ in answers.compared_by)
        text = (
            f"{model} is not significantly {' or '.join(signs)} than {first} in any of "
            f"{looked:,} slices by {names}."
        )
        yield Sentence(text, "regression", COMPARED_ID)


def _unscored(answers: Answers) -> Iterator[Sentence]:
    if answers.unscored.is_empty():
        yield Sentence("All rows are scored.", "unscored", UNSCORED_ID)
    for row in answers.unscored.iter_rows(named=True):
        of_model = f" for model {row['pred']}" if answers.has_models else ""
        what = "is" if row["n_null"] == 1 else "are"
        text = f"{rows_in_words(row['n_null'])} {what} not scored{of_model}: {row['reason']}."
        yield Sentence(text, "unscored", UNSCORED_ID)


def _name(metric: str) -> str:
    return "MCC" if metric == "mcc" else metric


def _score(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}".replace("-", "−")


def _signed(value: float) -> str:
    return f"{value:+.3f}".replace("-", "−")


def _interval(answers: Answers, row: Mapping[str, Any], score: str) -> str:
    low, high = _score(row[f"{score}_low"]), _score(row[f"{score}_high"])
    return f"{100 * answers.options.ci:.10g}\u00a0% confidence interval {low} to {high}"


def _p_value(p: float) -> str:
    return "p\u00a0<\u00a00.001" if p < 0.001 else f"p\u00a0=\u00a0{p:.2g}"


def tiles(answers: Answers) -> Iterator[tuple[str, str, str]]:
    """The large numbers at the top of the page, each with its label and the `id` of a section.

    They are scores, differences, how many slices are behind, how many rows are not scored.
    """
    metric = answers.metric
    for row in answers.total.rows.head(_TILES).iter_rows(named=True):
        of_model = f" of {row['model']}" if answers.has_models else ""
        yield _score(row[metric]), f"{_name(metric)}{of_model}", TOTAL_ID
    if answers.compared is not None:
        for row in answers.compared.rows.head(_TILES - 1).iter_rows(named=True):
            number = "–" if row["diff"] is None else _signed(row["diff"])
            yield number, f"{row['model']} minus {answers.models[0]}", COMPARED_ID
    if answers.worst is not None:
        behind = answers.worst.listed.height
        what = f"{'slice' if behind == 1 else 'slices'} behind the rest"
        yield f"{behind:,}", what, WORST_ID
    by_model = dict.fromkeys(answers.models, 0)
    for name, n in answers.unscored.select("pred", "n_null").rows():
        by_model[name] += n
    if len({*by_model.values()}) == 1:
        yield count(next(iter(by_model.values()))), "rows not scored", UNSCORED_ID
        return
    for name, n in [*by_model.items()][:_TILES]:
        yield count(n), f"rows not scored for {name}", UNSCORED_ID


def picture(answers: Answers) -> list[Drawing]:
    """The chart beside the verdict: the score of each model and of the worst slices."""
    metric = answers.metric
    low, high = f"{metric}_low", f"{metric}_high"
    models = ["model"] if answers.has_models else []
    columns = [SAID, *models, "n", metric, low, high]
    rows = [answers.total.rows.with_columns(pl.lit(ALL_ROWS).alias(SAID)).select(columns)]
    if answers.worst is not None:
        rest = pl.col(f"{metric}_rest")
        ends = {low: rest + pl.col("diff_low"), high: rest + pl.col("diff_high")}
        rows.append(answers.worst.listed.head(_WORST).with_columns(**ends).select(columns))
    alt = f"{metric} of all rows and of the worst slices, with confidence intervals"
    slices = pl.concat(rows, how="vertical_relaxed")
    return drawn(alt, "slices", slices, metric, metric=metric, sort=False)
