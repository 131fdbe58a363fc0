"""Answers → the verdict, in sentences: each made of numbers of an answer, which it links to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import polars as pl

from polars_mcc._report.answers import Answers, Asked
from polars_mcc._report.sections import ALL, UNSCORED, WORST, Drawing, Section, beside
from polars_mcc._search.words import said, summed_up

_WORST = 3  # slices that are told of


class Sentence(NamedTuple):
    """What is said, and the title of the section that has the numbers."""

    text: str
    about: str
    is_detail: bool = False
    """Whether it belongs to the sentence before it."""


class Report(NamedTuple):
    """What a report says, in whatever format."""

    title: str
    verdict: Sequence[Sentence]
    sections: Sequence[Section]
    made: Mapping[str, str]


def verdict(answers: Answers, asked: Asked) -> list[Sentence]:
    """How good, how sure, which slices are behind, which model is better, what is not scored."""
    return [
        *_overall(answers, asked),
        *_behind(answers, asked),
        *_better(answers, asked),
        _unscored(answers),
    ]


def _overall(answers: Answers, asked: Asked) -> Iterator[Sentence]:
    metric = asked.metric.name
    for row in answers.total.rows.iter_rows(named=True):
        model = f"{row['model']}: " if "model" in row else ""
        if row[metric] is None:
            yield Sentence(f"{model}no row is scored.", ALL)
            continue
        low, high = row[f"{metric}_low"], row[f"{metric}_high"]
        sure = "" if low is None else f" ({_percent(asked.ci)} interval {_to(low, high)})"
        score = f"{_named(metric)} {_score(row[metric])}{sure}"
        yield Sentence(f"{model}{score}, of {_rows(row['n'])}.", ALL)


def _behind(answers: Answers, asked: Asked) -> Iterator[Sentence]:
    if answers.worst is None:
        return
    metric = asked.metric.name
    listed, looked = summed_up(answers.worst.rows, metric)
    yield Sentence(looked, WORST)
    for row in listed.head(_WORST).iter_rows(named=True):
        scores = f"{_score(row[metric])} beside {_score(row[f'{metric}_rest'])} elsewhere"
        confused = ""
        if row["confused"] is not None:
            confused = (
                f"; {_percent(row['confused'])} of gold {row['confused_gold']} are predicted "
                f"{row['confused_pred']}, elsewhere {_percent(row['confused_rest'])}"
            )
        text = (
            f"{said(row)}: {_named(metric)} {scores} (difference {_signed(row['diff'])}, "
            f"{_to(row['diff_low'], row['diff_high'])}), n {row['n']:,}{confused}."
        )
        yield Sentence(text, WORST, is_detail=True)


def _better(answers: Answers, asked: Asked) -> Iterator[Sentence]:
    if answers.compared is None:
        return
    first, *_ = answers.models
    turn = -1 if asked.metric.less_is_better else 1
    level = 1 - asked.ci
    for row in answers.compared.rows.iter_rows(named=True):
        about = beside(first)
        name, p = row["model"], row["p_adjusted"]
        if p is None or row["diff"] is None:
            yield Sentence(f"{name} and {first} cannot be compared: one has no interval.", about)
            continue
        numbers = (
            f"{_signed(row['diff'])} ({_to(row['diff_low'], row['diff_high'])}), {_p_value(p)}"
        )
        if p >= level:
            yield Sentence(f"Nothing shows that {name} differs from {first}: {numbers}.", about)
        else:
            is_better = row["diff"] * turn > 0
            word = "better" if is_better else "worse"
            yield Sentence(f"{name} is {word} than {first}: {numbers}.", about)
            turn_here = turn if is_better else -turn
            yield from _otherwise(answers, name, word, turn_here, level)


def _otherwise(
    answers: Answers, model: str, word: str, turn: int, level: float
) -> Iterator[Sentence]:
    """Where a model that is better is worse; or one that is worse, better."""
    other = {"better": "worse", "worse": "better"}[word]
    title, looked = beside(answers.models[0]), 0
    found = []
    for part, answer in answers.compared_by:
        rows = answer.rows.filter(pl.col("model") == model)
        looked += rows.height
        against = rows.filter((pl.col("p_adjusted") < level) & (pl.col("diff") * turn < 0))
        if against.is_empty():
            continue
        worst = against.sort(pl.col("diff") * turn, maintain_order=True).head(_WORST)
        told = [
            f"{_slice(row, part.columns)} ({_signed(row['diff'])}, {_p_value(row['p_adjusted'])})"
            for row in worst.iter_rows(named=True)
        ]
        number = f"{against.height:,} of {rows.height:,} slices by {part.name}"
        text = f"It is {other} in {number}: {', '.join(told)}."
        found.append(Sentence(text, f"{title}, by {part.name}", is_detail=True))
    if looked and not found:
        names = ", ".join(part.name for part, _ in answers.compared_by)
        text = f"It is {other} in none of {looked:,} slices by {names}."
        found = [Sentence(text, title, is_detail=True)]
    yield from found


def _slice(row: dict[str, Any], columns: Sequence[str]) -> str:
    if len(columns) > 1:
        return said(row, with_model=False)
    [name] = columns
    return f"{name} = {'null' if row[name] is None else row[name]}"


def _unscored(answers: Answers) -> Sentence:
    if answers.unscored.is_empty():
        return Sentence("All rows are scored.", UNSCORED)
    reasons = answers.unscored.iter_rows(named=True)
    several = len(answers.models) > 1
    told = [
        f"{row['n_null']:,} of {row['pred']} ({row['reason']})"
        if several
        else f"{row['n_null']:,} ({row['reason']})"
        for row in reasons
    ]
    return Sentence(f"Rows not scored: {', '.join(told)}.", UNSCORED)


def _named(metric: str) -> str:
    return "MCC" if metric == "mcc" else metric


def _rows(n: float) -> str:
    return f"{n:,} row" if n == 1 else f"{n:,} rows"


def _score(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _signed(value: float) -> str:
    return f"{value:+.3f}".replace("-", "−")


def _to(low: float | None, high: float | None) -> str:
    ends = (f"{end:.3f}".replace("-", "−") if end is not None else "–" for end in (low, high))
    return " to ".join(ends)


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.3g} %"


def _p_value(p: float) -> str:
    return "p < 0.001" if p < 0.001 else f"p {p:.2g}"


def picture(answers: Answers, asked: Asked) -> list[Drawing]:
    """The score of each model, and of the worst slices, on one scale."""
    metric = asked.metric.name
    total = answers.total.rows
    models = ["model"] if "model" in total.columns else []
    ends = [f"{metric}_{side}" for side in ("low", "high")]
    columns = ["slice", *models, "n", metric, *ends]
    rows = [total.select(pl.lit("all rows").alias("slice"), *models, "n", metric, *ends)]
    if answers.worst is not None:
        listed, _ = summed_up(answers.worst.rows, metric)
        worst = listed.head(_WORST)
        texts = [said(row, with_model=False) for row in worst.iter_rows(named=True)]
        rest = pl.col(f"{metric}_rest")
        rows.append(
            worst.with_columns(
                pl.Series("slice", texts, pl.String),
                (rest + pl.col("diff_low")).alias(ends[0]),
                (rest + pl.col("diff_high")).alias(ends[1]),
            ).select(columns)
        )
    drawn = pl.concat(rows, how="vertical_relaxed")
    if drawn[metric].is_null().all():
        return []
    alt = f"{metric} of all rows and of the worst slices, with intervals"
    return [Drawing(alt, "slices", drawn, {"metric": metric, "sort": False})]
