"""No name of a column is a pattern: an answer only changes its names if columns are renamed.

Polars reads `*` and names from ^ to $ as patterns. The package has columns of its own, too.
"""

from __future__ import annotations

import functools
import html
import json
import re
from collections.abc import Callable

import polars as pl
from polars.testing import assert_frame_equal
from support import in_turn, some_slow

import polars_mcc
from polars_mcc import cube, each, plot, trailing

PLAIN = ["Qgold", "Qpred", "Qother", "Qscore", "Qweight", "Quser", "Qday", "Qone", "Qtwo", "Qold"]
LABELS = {"Qant": "^l$", "Qbee": "^m$"}
OTHER = {
    "columns": ["*", "^.*$", "^a$", "", " ", "key:a", "^key:.*$", "a, b", "a = b", "^b$"],
    "keys": [" ", "a, b", "a = b", "^b$", "", "key:a", "^a$", "^.*$", "*", "^key:.*$"],
    "both": ["^b$", "*", "^c$", "a, b", "key:a", "", "^key:.*$", "^a$", "^.*$", " "],
    "inner": ["label", "class", "null", "cut", "n", "hits", "at", "line", "weight", "before:"],
}
"""Names that stand in place of the plain ones: patterns, and names of the package's own columns."""


def others(names: str) -> dict[str, str]:
    return dict(zip(PLAIN, OTHER[names], strict=True)) | LABELS


def log_of(names: dict[str, str]) -> pl.DataFrame:
    i = pl.int_range(240)
    labels = pl.Series([names.get(label, label) for label in LABELS])
    one = pl.lit(pl.Series(["x", "y", "z"])).gather(i % 3)
    missed = pl.when(one == "x").then(i % 2 == 0).otherwise(i % 7 == 0).cast(pl.Int8)
    columns = {
        "Qgold": pl.lit(labels).gather(i // 5 % 2),
        "Qpred": pl.lit(labels).gather((i // 5 + missed) % 2),
        "Qother": pl.lit(labels).gather((i // 5 + (i % 4 == 0).cast(pl.Int8)) % 2),
        "Qscore": (i * 7 % 11) / 10,
        "Qweight": 1 + i % 2,
        "Quser": i // 3,
        "Qday": pl.date(2026, 3, 1) + pl.duration(days=i // 40),
        "Qone": one,
        "Qtwo": i // 2 % 4,
        "Qold": i < 120,
    }
    return pl.select(**columns).rename({name: names.get(name, name) for name in columns})


class Asked:
    """A log with names, the names of its keys, and its descriptions."""

    def __init__(self, names: dict[str, str]) -> None:
        self.frame = log_of(names)
        names = {name: name for name in (*PLAIN, *LABELS)} | names
        self.one, self.two, self.day = names["Qone"], names["Qtwo"], names["Qday"]
        self.keys = [self.one, self.two]
        self.old = names["Qold"]
        self.score, self.other = names["Qscore"], names["Qother"]
        gold, pred, weight, user = (names[of] for of in ("Qgold", "Qpred", "Qweight", "Quser"))
        self.log = self.frame.mcc(gold=gold, pred=pred, positive=names["Qbee"])
        self.models = self.log(pred=[pred, self.other])
        self.weighed = self.models(weight=weight)
        self.users = self.models(cluster=user)
        self.timed = self.models(time=names["Qday"])
        self.scores = self.log(pred=None, score=[self.score, names["Qtwo"]])

    def thresholds(self) -> pl.DataFrame:
        return pl.DataFrame({self.one: ["x", "y"], "min": [-0.9, -0.8]})

    def by(self) -> pl.DataFrame:
        return self.models.by(each(*self.keys, total=True), ci=0.9)


FRAMES: dict[str, Callable[[Asked], pl.DataFrame]] = {
    "by": lambda asked: asked.weighed.by(*asked.keys, ci=0.9, metrics=["mcc", "f1_macro", "f1"]),
    "by, sets": lambda asked: asked.models.by(cube(*asked.keys), metrics=["mcc", "accuracy"]),
    "by, long": lambda asked: asked.users.by(each(*asked.keys), long=True, ci=0.9),
    "by, windows": lambda asked: asked.log.by(
        asked.one, trailing(asked.day, "2d", every="1d"), ci=0.9
    ),
    "by, resampled": lambda asked: asked.users.by(
        asked.one, ci=0.9, method=polars_mcc.Bootstrap(replicates=20, seed=1)
    ),
    "by, labels for some": lambda asked: asked.models(nulls="reweight").by(*asked.keys, ci=0.9),
    "by, pairs": lambda asked: asked.log.by(*asked.keys, metrics=["chi2", "mcc"]),
    "score": lambda asked: asked.weighed.score(ci=0.9),
    "compare": lambda asked: asked.users.compare(each(*asked.keys), baseline=asked.other),
    "contrast": lambda asked: asked.models.contrast(*asked.keys),
    "contrast, total": lambda asked: asked.log.contrast(*asked.keys, to="total"),
    "contrast, best": lambda asked: asked.weighed.contrast(asked.one, to="best", within=asked.two),
    "contrast, each": lambda asked: asked.log.contrast(*asked.keys, to="each", ratio=True),
    "contrast, one": lambda asked: asked.log.contrast(asked.one, to={asked.one: "y"}),
    "gaps": lambda asked: asked.models.gaps(each(asked.one), within=asked.two),
    "gaps, crossed": lambda asked: asked.weighed.gaps(*asked.keys, metrics=["f1", "accuracy"]),
    "changes": lambda asked: asked.models(time=asked.day).changes(*asked.keys, min_n=1),
    "worst": lambda asked: asked.log.worst(*asked.keys, min_n=5, verdicts=True),
    "worst, long": lambda asked: asked.models.worst(*asked.keys, min_n=5, long=True),
    "drift": lambda asked: asked.users.drift(
        each(*asked.keys, total=True), before=asked.old, after=~pl.nth(9)
    ),
    "curve": lambda asked: asked.scores.curve(*asked.keys[:1], thresholds=5),
    "curve, listed": lambda asked: asked.scores.curve(each(*asked.keys[:1]), thresholds=[0.2, 0.5]),
    "best_threshold": lambda asked: asked.scores.best_threshold(*asked.keys[:1]),
    "best_threshold, kept": lambda asked: asked.scores.best_threshold(
        *asked.keys[:1], max={"fpr": 0.4}
    ),
    "calibration": lambda asked: asked.log(score=asked.score).calibration(*asked.keys),
    "calibration, per score": lambda asked: asked.log(score=asked.score).calibration(
        *asked.keys, bins=None
    ),
    "check": lambda asked: asked.weighed.check(*asked.keys, min={"mcc": -1, "f1": 0}, ci=0.9),
    "check, thresholds": lambda asked: asked.log.check(asked.one, min=asked.thresholds()),
    "check, baseline": lambda asked: asked.log.check(
        asked.one, no_worse_than=asked.log.counts(asked.one), ci=0.9
    ),
    "progress": lambda asked: polars_mcc.progress(
        asked.frame, lambda rows: asked.log.with_frame(rows).by(asked.one)
    ),
    "counts": lambda asked: asked.weighed.counts(*asked.keys, asked.day),
    "classes": lambda asked: asked.users.classes(*asked.keys, ci=0.9),
    "classes, labels for some": lambda asked: asked.models(nulls="reweight").classes(*asked.keys),
    "compare, labels for some": lambda asked: asked.models(nulls="reweight").compare(*asked.keys),
    "confusion": lambda asked: asked.log.confusion(*asked.keys),
    "confusion, long": lambda asked: asked.weighed.confusion(*asked.keys, long=True),
    "confusion, top": lambda asked: asked.models.confusion(*asked.keys, top=2),
}
CHARTS = {
    "slices": lambda asked: plot.slices(asked.by()),
    "slices, classes": lambda asked: plot.slices(asked.users.classes(*asked.keys, ci=0.9)),
    "slices, crossed": lambda asked: plot.slices(asked.models.by(*asked.keys, ci=0.9)),
    "differences": lambda asked: plot.differences(asked.models.compare(*asked.keys)),
    "over_time": lambda asked: plot.over_time(asked.models.by(asked.one, asked.day)),
    "changes": lambda asked: plot.changes(
        asked.timed.changes(asked.one, min_n=2, every=None),
        asked.timed.contrast(asked.day, within=asked.one, to="expected"),
    ),
    "curve": lambda asked: plot.curve(asked.scores.curve(asked.one, thresholds=5)),
    "calibration": lambda asked: plot.calibration(
        asked.log(score=asked.score).calibration(asked.one)
    ),
    "confusion": lambda asked: plot.confusion(
        asked.log.confusion(asked.one).filter(pl.first() == "x")
    ),
    "funnel": lambda asked: plot.funnel(asked.log.by(each(*asked.keys, total=True), ci=0.9)),
}


def cells(page: str) -> list[str]:
    return re.findall(r"<t[dh].*?>(.*?)</t[dh]>", html.unescape(page), re.DOTALL)


TEXTS = {
    "table": lambda asked: cells(polars_mcc.table(asked.by()).as_raw_html()),
    "to_numpy": lambda asked: (
        polars_mcc.to_numpy(asked.log.confusion(*asked.keys)).ravel().tolist()
    ),
    "html": lambda asked: cells(asked.models.report(asked.one, asked.day)),
    "scores": lambda asked: (
        asked.log(score=asked.score).report(*asked.keys, format="md").replace("\\", "").split("\n")
    )[:-2],
    "md": lambda asked: (
        asked.models.report(asked.one, format="md").replace("\\", "").split("\n")[:-2]
    ),
    "json": lambda asked: json.loads(
        asked.models.report(asked.one, each(*asked.keys), format="json", min_n=5)
    )["sections"],
    "since": lambda asked: json.loads(asked.timed.report(*asked.keys, format="json", min_n=5))[
        "sections"
    ],
}
KINDS = {"frame": FRAMES, "chart": CHARTS, "text": TEXTS}


def renamed(value, names: dict[str, str]):
    """A value with other names in all of its texts."""
    if isinstance(value, str):
        return re.sub("Q[a-z]+", lambda found: names.get(found[0], found[0]), value)
    if isinstance(value, dict):
        return {renamed(key, names): renamed(one, names) for key, one in value.items()}
    if isinstance(value, list):
        return [renamed(one, names) for one in value]
    return value


def trimmed(found: list) -> list:
    """Texts without the spaces around them, which HTML and Markdown do not show.

    A text that is `null` is in quotes in a table.
    """
    plain_texts = (one.replace('"null"', "null") if isinstance(one, str) else one for one in found)
    return [one.strip() if isinstance(one, str) else one for one in plain_texts]


def values_of(chart) -> list:
    return list(chart.to_dict()["datasets"].values())


def answer(verb: str, asked: Asked):
    kind, _, name = verb.partition(": ")
    if kind == "chart":
        return values_of(CHARTS[name](asked))
    return (FRAMES if kind == "frame" else TEXTS)[name](asked)


VERBS = [f"{kind}: {name}" for kind, of in KINDS.items() for name in of]


LONG = (
    *("frame: contrast", "frame: contrast, total", "frame: worst, long"),
    *("text: html", "text: json", "text: md", "text: scores"),
)


@functools.cache
def asked_with(names: str | None) -> Asked:
    return Asked({} if names is None else others(names))


@functools.cache
def plain(verb: str):
    """The answer with plain names."""
    return answer(verb, asked_with(None))


@in_turn(verb=some_slow(VERBS, *LONG), names=OTHER)
def test_other_names_give_the_same_answer(names, verb):
    found, expected = answer(verb, asked_with(names)), plain(verb)
    if isinstance(found, pl.DataFrame):
        texts = pl.col(pl.String).map_elements(
            lambda text: renamed(text, others(names)), return_dtype=pl.String
        )
        expected = expected.with_columns(texts).rename(lambda name: renamed(name, others(names)))
        assert_frame_equal(found, expected)
    else:
        assert trimmed(found) == trimmed(renamed(expected, others(names)))
