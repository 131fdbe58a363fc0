"""Answers → the verdict: sentences with numbers, each linked to the section with its table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias

import polars as pl

from polars_mcc._counts.sliced import SAID
from polars_mcc._report.answers import Answers, Asked
from polars_mcc._report.sections import (
    COMPARED_ID,
    GAPS_ID,
    TOTAL_ID,
    UNSCORED_ID,
    WORST_ID,
    Drawing,
    Section,
    id_of,
)
from polars_mcc._search.words import count, percent, rows_in_words, text
from polars_mcc._show.table import slices_in_words
from polars_mcc._show.undefined import undefined

_WORST = 3  # slices that the verdict names, at most
_GAPS = 4  # gaps in error rates that the verdict names, at most
_TILES = 3  # models that have a tile, at most


Kind: TypeAlias = Literal[
    "labels",
    "score",
    "meaning",
    "slices",
    "slice",
    "gaps",
    "gap",
    "comparison",
    "regression",
    "unscored",
]


class Sentence(NamedTuple):
    """A sentence of the verdict, its kind, and the section that has its numbers."""

    text: str
    kind: Kind
    about: str
    """The `id` of a section."""

    @property
    def is_detail(self) -> bool:
        """Whether this sentence explains the sentence before it."""
        return self.kind in {"meaning", "slice", "gap", "regression"}


class Report(NamedTuple):
    """The content of a report, the same for every format."""

    title: str
    asked: Asked
    models: Sequence[str]
    keys: Sequence[str]
    verdict: Sequence[Sentence]
    sections: Sequence[Section]
    made: Mapping[str, str]


def verdict(answers: Answers, asked: Asked) -> list[Sentence]:
    """Say how good the models are, which slices are behind, and which rows are not scored."""
    return [
        *(Sentence(f"{one}.".replace("?.", "?"), "labels", TOTAL_ID) for one in answers.remarks),
        *_overall(answers, asked),
        *_behind(answers, asked),
        *_gaps(answers),
        *_better(answers, asked),
        *_unscored(answers),
    ]


def _overall(answers: Answers, asked: Asked) -> Iterator[Sentence]:
    metric, total = asked.metric.name, answers.total.rows
    is_undefined = total.select(undefined(total, metric)).to_series()
    rows = zip(total.iter_rows(named=True), is_undefined, answers.bases, strict=True)
    for row, is_0, base in rows:
        model = f"{row['model']}: " if answers.has_models else ""
        told = "no row is scored"
        if row["n"] and is_0:
            told = f"{_named(metric)} is undefined (0/0) over {base}"
        elif row["n"]:
            low, high = row[f"{metric}_low"], row[f"{metric}_high"]
            sure = "" if low is None else f" ({_interval(asked, low, high)})"
            told = f"{_named(metric)} is {_score(row[metric])}{sure} over {base}"
        yield Sentence(f"{model}{told}.", "score", TOTAL_ID)
    yield from _meaning(answers, metric)


def _meaning(answers: Answers, metric: str) -> Iterator[Sentence]:
    """What MCC is, and what the first model's score would mean in the simplest of logs."""
    first = answers.total.rows.row(0, named=True)
    k = answers.cells["gold"].drop_nulls().n_unique()
    if metric != "mcc" or k < 2 or first["mcc"] is None or not 0 < first["mcc"] < 1:
        return
    right = 1 / k + first["mcc"] * (1 - 1 / k)
    told = (
        "MCC is 1 without errors and 0 for guessing, whatever the mix of labels. With "
        f"{k} equally frequent labels, {_score(first['mcc'])} means that {percent(right)} of the "
        "rows are right."
    )
    yield Sentence(told, "meaning", TOTAL_ID)


def _behind(answers: Answers, asked: Asked) -> Iterator[Sentence]:
    if answers.worst is None:
        return
    metric = asked.metric.name
    listed, looked = answers.worst.listed, answers.worst.looked
    more = f" The worst {_WORST}:" if listed.height > _WORST else ""
    yield Sentence(f"{looked}{more}", "slices", WORST_ID)
    for row in listed.head(_WORST).iter_rows(named=True):
        model = f" ({row['model']})" if answers.has_models else ""
        here, rest = _score(row[metric]), _score(row[f"{metric}_rest"])
        interval = _interval(asked, row["diff_low"], row["diff_high"])
        expected = row[f"{metric}_expected"]
        given = (
            "" if expected is None else f" Given its labels alone, it would be {_score(expected)}."
        )
        confusion = "" if row["confusion"] is None else f" {row['confusion']}."
        told = (
            f"{row[SAID]}{model}: {_named(metric)} is {here} over {rows_in_words(row['n'])}, and "
            f"{rest} in the rest of the log (difference {_signed(row['diff'])}; "
            f"{interval}).{given}{confusion}"
        )
        yield Sentence(told, "slice", WORST_ID)


def _gaps(answers: Answers) -> Iterator[Sentence]:
    """Where the error rates of two labels differ most between the slices of one key."""
    if answers.gaps is None:
        return
    found = answers.gaps.rows
    if found.is_empty():
        none = "No gap in error rates between slices of one key is significant."
        yield Sentence(none, "gaps", GAPS_ID)
        return
    told = "The widest gaps in error rates between slices of one key:"
    yield Sentence(told, "gaps", GAPS_ID)
    for row in found.head(_GAPS).iter_rows(named=True):
        model = f" ({row['model']})" if answers.has_models else ""
        base, base_to = rows_in_words(row["n"]), count(row["n_to"])
        what = f"with gold {text(row['gold'])} are predicted {text(row['pred'])}"
        told = (
            f"{row[SAID]}{model}: {percent(row['rate'])} of {base} {what}; {row[f'{SAID}_to']}: "
            f"{percent(row['rate_to'])} of {base_to} ({_p_value(row['p_adjusted'])})."
        )
        yield Sentence(told, "gap", GAPS_ID)


def _better(answers: Answers, asked: Asked) -> Iterator[Sentence]:
    if answers.compared is None:
        return
    first, *_ = answers.models
    turn = -1 if asked.metric.less_is_better else 1
    level = 1 - asked.ci
    for row in answers.compared.rows.iter_rows(named=True):
        name, p = row["model"], row["p_adjusted"]
        if p is None or row["diff"] is None:
            text = (
                f"{name} and {first} cannot be compared, because one of them has no confidence "
                "interval."
            )
            yield Sentence(text, "comparison", COMPARED_ID)
            continue
        interval = _interval(asked, row["diff_low"], row["diff_high"])
        difference = f"the difference in {_named(asked.metric.name)} is {_signed(row['diff'])}"
        numbers = f"{difference} ({interval}; {_p_value(p)})"
        if p >= level:
            text = f"{name} and {first} do not differ significantly: {numbers}."
            yield Sentence(text, "comparison", COMPARED_ID)
            where: Sequence[tuple[str, int]] = [("better", turn), ("worse", -turn)]
        else:
            is_better = row["diff"] * turn > 0
            word = "better" if is_better else "worse"
            yield Sentence(f"{name} is {word} than {first}: {numbers}.", "comparison", COMPARED_ID)
            where = [("worse", -turn)] if is_better else [("better", turn)]
        yield from _where(answers, name, where, level)


def _where(
    answers: Answers, model: str, signs: Sequence[tuple[str, int]], level: float
) -> Iterator[Sentence]:
    """Name the slices in which a model is significantly better or worse than the first model."""
    first, *_ = answers.models
    looked = 0
    found = []
    for part, answer in answers.compared_by:
        rows = answer.rows.filter(pl.col("model") == model)
        looked += rows["p_adjusted"].drop_nulls().len()
        for word, sign in signs:
            moved = pl.col("diff") * sign
            there = rows.filter((pl.col("p_adjusted") < level) & (moved > 0))
            if there.is_empty():
                continue
            most = there.sort(moved, descending=True, maintain_order=True).head(_WORST)
            most = most.with_columns(slices_in_words(most, part.columns).alias(SAID))
            named = ", ".join(
                f"{row[SAID]} (difference {_signed(row['diff'])}, {_p_value(row['p_adjusted'])})"
                for row in most.iter_rows(named=True)
            )
            number = f"{there.height:,} of {rows.height:,} slices by {part.name}"
            these = f", most of all in {named}" if there.height > _WORST else f": {named}"
            text = f"{model} is {word} than {first} in {number}{these}."
            found.append(Sentence(text, "regression", id_of("compared", part)))
    if looked and not found:
        names = ", ".join(part.name for part, _ in answers.compared_by)
        either = " or ".join(word for word, _ in signs)
        text = (
            f"{model} is not significantly {either} than {first} in any of {looked:,} slices by "
            f"{names}."
        )
        found = [Sentence(text, "regression", COMPARED_ID)]
    yield from found


def _unscored(answers: Answers) -> Iterator[Sentence]:
    if answers.unscored.is_empty():
        yield Sentence("All rows are scored.", "unscored", UNSCORED_ID)
    for row in answers.unscored.iter_rows(named=True):
        of_model = f" for model {row['pred']}" if answers.has_models else ""
        what = "is" if row["n_null"] == 1 else "are"
        text = f"{rows_in_words(row['n_null'])} {what} not scored{of_model}: {row['reason']}."
        yield Sentence(text, "unscored", UNSCORED_ID)


def _named(metric: str) -> str:
    return "MCC" if metric == "mcc" else metric


def _score(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _signed(value: float) -> str:
    return f"{value:+.3f}".replace("-", "−")


def _to(low: float | None, high: float | None) -> str:
    ends = (f"{end:.3f}".replace("-", "−") if end is not None else "–" for end in (low, high))
    return " to ".join(ends)


def _interval(asked: Asked, low: float | None, high: float | None) -> str:
    return f"{100 * asked.ci:.10g}\u00a0% confidence interval {_to(low, high)}"


def _p_value(p: float) -> str:
    return "p\u00a0<\u00a00.001" if p < 0.001 else f"p\u00a0=\u00a0{p:.2g}"


class Tile(NamedTuple):
    """A large number at the top of the page, and its label."""

    number: str
    what: str
    about: str
    """The `id` of a section."""


def tiles(answers: Answers, asked: Asked) -> Iterator[Tile]:
    """The tiles: scores, differences, how many slices are behind, how many rows are not scored."""
    metric = asked.metric.name
    for row in answers.total.rows.head(_TILES).iter_rows(named=True):
        of_model = f" of {row['model']}" if answers.has_models else ""
        yield Tile(_score(row[metric]), f"{_named(metric)}{of_model}", TOTAL_ID)
    if answers.compared is not None:
        for row in answers.compared.rows.head(_TILES - 1).iter_rows(named=True):
            number = "–" if row["diff"] is None else _signed(row["diff"])
            yield Tile(number, f"{row['model']} minus {answers.models[0]}", COMPARED_ID)
    if answers.worst is not None:
        behind = answers.worst.listed.height
        what = f"{'slice' if behind == 1 else 'slices'} behind the rest"
        yield Tile(f"{behind:,}", what, WORST_ID)
    unscored = sum(answers.unscored["n_null"])
    yield Tile(count(unscored), "predictions not scored", UNSCORED_ID)


def picture(answers: Answers, asked: Asked) -> list[Drawing]:
    """The chart beside the verdict: the score of each model and of the worst slices."""
    metric = asked.metric.name
    total = answers.total.rows
    models = ["model"] if answers.has_models else []
    ends = [f"{metric}_{side}" for side in ("low", "high")]
    columns = ["slice", *models, "n", metric, *ends]
    rows = [total.select(pl.lit("all rows").alias("slice"), *models, "n", metric, *ends)]
    if answers.worst is not None:
        worst = answers.worst.listed.head(_WORST)
        rest = pl.col(f"{metric}_rest")
        rows.append(
            worst.with_columns(
                (rest + pl.col("diff_low")).alias(ends[0]),
                (rest + pl.col("diff_high")).alias(ends[1]),
            ).select(columns)
        )
    drawn = pl.concat(rows, how="vertical_relaxed")
    if drawn[metric].is_null().all():
        return []
    alt = f"{metric} of all rows and of the worst slices, with confidence intervals"
    return [Drawing(alt, "slices", drawn, {"metric": metric, "sort": False})]
