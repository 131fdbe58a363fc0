"""Every promise for every metric: coverage of intervals, and false discoveries, by simulation.

    python tests/benchmarks/promises.py --samples 1000 --logs 60 --out results

The grid is claim × metric × class shares × rows × weights × kind of model. Each cell draws samples
from a known table. Claims:

- coverage: how often the 95 % interval of `by` contains the true score.
- gate: how often `check(min=the true score, ci=0.95)` fails; 0.025 is right.
- rest, total, expected, within, drift: how often p < 0.05, 0.01 and 0.001 of `contrast` and `drift`
  where nothing differs, over the level. The rest of a slice has 7/3 of its rows. "Other mix"
  compares slices with equal scores and other class shares; for "expected", with equal rates of
  misses given the gold labels.
- compare: the same for two models with equal rates; the second copies half of the first.
- worst: the share of logs without a bad slice in which something is listed. A log has 3000 rows
  and five keys of eight values that do not matter. "Worst, expected" has one key more, on which
  the class shares depend, and compares with the score given the labels.

Weights: "none"; "mild" sample weights are exponential; "heavy" ones its squares; "clusters" have
five rows each: half of them have up to twice the misses, and the others as many fewer.

Prints a row for each claim, family of metrics, class shares, rows and weights: the mean and the
least coverage, or the largest ratio. Then it prints a table of the guide, and the cells outside the
promises: see `LIMITS`.
A cell is promised from so many rows of the smallest class on, gold and predicted, as `LIMITS` say.

`--rare` measures models that hardly ever predict a class, in the same way, where 3 to 95 % of the
samples have a gold class that is never predicted: "all" classes but the first, so that predictions
collapse to one class; or the "last" one. One claim more:

- never predicted: coverage among those samples alone, if they are at least one in ten.

`--scores` measures metrics of scores in the same way: metric × shape of the scores × true AUC ×
positive and negative rows × weights, for the claims coverage, gate, rest, drift and compare.

- Shapes: normal scores, of the same spread in both classes ("equal"), or of twice the spread in
  positive rows ("unequal"); and cut at "five levels". "Over-confident" scores are twice the
  log-odds. "Zero or one" says which class is nearer, as if it were sure. "One number" is the share
  of positive rows, for all rows. "Equal", "five levels" and "one number" are calibrated. "Far off":
  one positive row of ten has a lower score than all negative rows. "Rarely wrong": half of the rows
  have a score of 10⁻⁶, and two of them on average are positive; all others have one number.
- With an AUC of 0.999, nearly all small samples have an AUC of 1.
- Labels are drawn: a sample has so many positive and negative rows on average. Clusters share a
  quarter of the variance of their scores. The second model of compare shares half of the variance
  of the first.
"""

from __future__ import annotations

import argparse
import itertools
import math
import multiprocessing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import polars as pl
from measuring import print_head, print_row
from scipy import stats

import polars_mcc

FAMILIES: Mapping[str, tuple[str, ...]] = {
    "rates of one class": ("tpr", "ppv", "tnr", "npv", "f1", "fnr", "jaccard", "fowlkes_mallows"),
    "means over rows": (
        *("accuracy", "f1_weighted", "precision_weighted", "mcc_micro", "error_rate"),
        *("jaccard_micro", "jaccard_weighted", "specificity_micro", "specificity_weighted"),
        *("npv_weighted", "fpr_micro", "fpr_weighted", "fnr_weighted"),
    ),
    "sums of rates": (
        *("informedness", "markedness", "balanced_accuracy"),
        *("informedness_macro", "markedness_macro"),
    ),
    "means over classes": (
        *("recall_macro", "precision_macro", "f1_macro", "mcc_macro", "jaccard_macro"),
        *("specificity_macro", "npv_macro", "fpr_macro", "fnr_macro", "g_mean"),
    ),
    "R_K": ("mcc", "mcc_normalized", "phi"),
    "kappa": ("kappa",),
    "F2": ("f2", "f2_macro"),
    "weighted kappa": ("kappa_quadratic",),
    "costs": ("cost_10", "cost_100"),
    "own": ("own_rate", "own_squares"),
}
TITLES: Mapping[str, str] = {
    "rates of one class": "rates of one class (`tpr`, `ppv`, `f1`, …)",
    "means over rows": "means over rows (`accuracy`, `f1_weighted`, …)",
    "sums of rates": "sums of rates (`informedness`, `balanced_accuracy`, …)",
    "means over classes": "means over classes (`f1_macro`, `recall_macro`, …)",
    "R_K": "MCC (`mcc`, `phi`)",
    "kappa": "`kappa`",
    "F2": "`f_beta(2)`, `f_beta(2, macro)`",
    "weighted kappa": "`kappa(quadratic)`",
    "costs": "`cost(fn=10, fp=1)`, `cost(fn=100, fp=1)`",
    "own": "two metrics of your own",
}
TITLES_OF_SCORES: Mapping[str, tuple[str, ...]] = {
    "`roc_auc`": ("roc_auc",),
    "`roc_auc`, with one positive row of ten below all negative rows": ("roc_auc, far off",),
    "`average_precision`": ("average_precision",),
    "`brier`": ("brier",),
    "`log_loss`": ("log_loss", "log_loss, not calibrated"),
    "`log_loss`, with two sure mistakes on average": ("log_loss, rarely wrong",),
    "both, if all scores are 0 or 1": ("brier, zero or one", "log_loss, zero or one"),
}
OF_DIFFERENCES: Mapping[str, tuple[str, ...]] = {
    "`contrast` to the rest, `drift`": ("rest", "drift"),
    "`contrast` to the total": ("total",),
    "`contrast` of equal scores with other mixes of classes": ("rest, other mix",),
    "`compare` of two models": ("compare",),
}
WEIGHED = "all of them with sample weights or clusters"
FAMILY = {metric: family for family, metrics in FAMILIES.items() for metric in metrics}
ZIPF = 1 / np.arange(1, 31)
MIXES: Mapping[str, np.ndarray] = {
    "50:50": np.array([0.5, 0.5]),
    "90:10": np.array([0.9, 0.1]),
    "95:5": np.array([0.95, 0.05]),
    "99:1": np.array([0.99, 0.01]),
    "10 balanced": np.full(10, 0.1),
    "30 Zipf": ZIPF / ZIPF.sum(),
}
SKEWED = {f"{k} skewed": 0.5 ** np.array([*range(1, k), k - 1]) for k in (3, 5)}
RARE: Mapping[str, tuple[float, float]] = {
    "2% found": (0.02, 0.002),
    "9% found, no false alarm": (0.09, 0.0),
    "10% found": (0.1, 0.01),
    "30% found": (0.3, 0.002),
}
"""The recall of classes that are hardly ever predicted, and their rate of false alarms."""
SIZES = (15, 30, 60, 200, 1000)
WEIGHTS = ("none", "mild", "heavy", "clusters")
LEVELS = (0.05, 0.01, 0.001)
Z = 4.0
"""How many standard errors of simulation a cell may be outside. There are thousands of cells."""

CALLS: Mapping[str, Any] = {
    "own_rate": lambda col: (col("hits").sum() / col("support").sum()).alias("own_rate"),
    "own_squares": lambda col: col("recall").pow(2).mean().sqrt().alias("own_squares"),
    "f2": "f_beta(2)",
    "f2_macro": "f_beta(2, macro)",
    "kappa_quadratic": "kappa(quadratic)",
    **{f"cost_{n}": polars_mcc.metric.cost(fn=n, fp=1).alias(f"cost_{n}") for n in (10, 100)},
}
"""What is asked for, of metrics that have more than a name."""


@dataclass(frozen=True)
class Limits:
    """What a claim promises, from so many rows of the smallest gold and predicted class on."""

    least_class: float
    coverage: float = 0.0
    ratio: float = np.inf
    family: str = ""
    """The only family of metrics that it is about."""


LIMITS: Mapping[str, tuple[Limits, ...]] = {
    "coverage": (Limits(30, coverage=0.92), Limits(8, coverage=0.85)),
    "never predicted": (Limits(8, coverage=0.9),),
    **dict.fromkeys(
        ("rest", "within", "drift", "compare", "total", "expected", "expected, other mix"),
        (Limits(0, ratio=1.5),),
    ),
}
LIMITS_OF_SCORES: Mapping[str, tuple[Limits, ...]] = {
    "coverage": (
        Limits(5, coverage=0.93, family="roc_auc"),
        Limits(5, coverage=0.91, family="average_precision"),
        Limits(5, coverage=0.92, family="brier"),
        Limits(5, coverage=0.92, family="log_loss"),
    ),
    **dict.fromkeys(("rest", "drift", "compare"), (Limits(5, ratio=1.5),)),
}


def models(mix: np.ndarray) -> dict[str, np.ndarray]:
    """The probability of each prediction given the gold label, for kinds of models."""
    k = len(mix)
    evenly = (1 - np.eye(k)) / (k - 1)
    often = np.tile(mix, (k, 1)) * (1 - np.eye(k))
    often /= often.sum(axis=1, keepdims=True)
    found = {
        f"{miss:.0%} wrong": (1 - miss) * np.eye(k) + miss * evenly for miss in (0.02, 0.1, 0.3)
    }
    found["30% wrong, as frequent"] = 0.7 * np.eye(k) + 0.3 * often
    if k == 2:
        found["nearly all one class"] = np.array([[0.94, 0.06], [0.9, 0.1]])
        found["misses the rare class"] = np.array([[0.98, 0.02], [0.4, 0.6]])
    return found


@dataclass(frozen=True)
class Cell:
    """A setting: class shares, a kind of model, rows, weights."""

    mix: str
    model: str
    rows: int
    weights: str

    @property
    def shares(self) -> np.ndarray:
        return MIXES[self.mix]

    @property
    def given(self) -> np.ndarray:
        return models(self.shares)[self.model]

    @property
    def table(self) -> np.ndarray:
        return self.shares[:, None] * self.given

    @property
    def least_class(self) -> float:
        """The expected rows of the smallest class, gold or predicted."""
        return self.rows * min(self.table.sum(axis=1).min(), self.table.sum(axis=0).min())

    @property
    def about(self) -> dict:
        return {**vars(self), "least_class": self.least_class}


@dataclass(frozen=True)
class Rare(Cell):
    """A setting in which some classes are hardly ever predicted: all but the first, or the last."""

    which: str = "all"

    @property
    def shares(self) -> np.ndarray:
        return {**MIXES, **SKEWED}[self.mix]

    @property
    def given(self) -> np.ndarray:
        k, (recall, false) = len(self.shares), RARE[self.model]
        found = 0.8 * np.eye(k)
        found[1:, 0] = 0.2
        rare = range(1, k) if self.which == "all" else [k - 1]
        for label in rare:
            found[label] = 0
            found[label, [0, label]] = 1 - recall, recall
        found[0] = 0
        found[0, 1:] = 0.0 if self.which == "all" else 0.2 / (k - 1)
        found[0, rare] = false / len(rare)
        found[0, 0] = 1 - found[0].sum()
        return found

    @property
    def least_class(self) -> float:
        """The expected rows of the smallest gold class: none may be predicted."""
        return float(self.rows * self.shares.min())

    @property
    def about(self) -> dict:
        return {**super().about, "model": f"{self.model}, {self.which}"}


def rare_cells(sizes: Sequence[int] = SIZES) -> Iterator[Rare]:
    mixes = ("50:50", "90:10", "95:5", "3 skewed", "5 skewed", "10 balanced")
    for mix, model, rows, weights in itertools.product(mixes, RARE, sizes, WEIGHTS):
        for which in ("all", "last"):
            cell = Rare(mix, model, rows, weights, which)
            if which == "last" and len(cell.shares) == 2:  # the same as all
                continue
            if rows * cell.shares.min() >= 0.7:
                yield cell


def cells(sizes: Sequence[int] = SIZES, weights: Sequence[str] = WEIGHTS) -> Iterator[Cell]:
    for mix, rows, weight in itertools.product(MIXES, sizes, weights):
        if rows * MIXES[mix].min() < 0.7:  # a class that most samples lack
            continue
        for model in models(MIXES[mix]):
            yield Cell(mix, model, rows, weight)


def drawn(cell: Cell, samples: int, rows: int, rng: np.random.Generator) -> pl.DataFrame:
    """Rows of samples: `sample`, `gold`, `pred`, `other`, and a weight or cluster if asked for."""
    k, size = len(cell.shares), samples * rows
    gold = rng.choice(k, size, p=cell.shares)
    given = cell.given
    if cell.weights == "clusters":  # as many misses on average
        user = np.arange(size) // 5
        missed = 1 - np.diag(given)
        spread = min(1.0, 1 / missed.max() - 1)
        factor = 1 + spread * (2 * rng.integers(0, 2, user[-1] + 1)[user] - 1)
        miss = missed[gold] * factor
    else:
        miss = (1 - np.diag(given))[gold]
    wrong = given * (1 - np.eye(k))
    share = wrong.sum(axis=1, keepdims=True)
    edges = np.cumsum(np.divide(wrong, share, where=share > 0, out=np.zeros_like(wrong)), axis=1)

    def predicted() -> np.ndarray:
        place = (rng.random(size)[:, None] > edges[gold]).sum(axis=1).clip(max=k - 1)
        return np.where(rng.random(size) < miss, place, gold)

    pred = predicted()
    columns = {
        "sample": np.repeat(np.arange(samples), rows),
        "gold": gold,
        "pred": pred,
        "other": np.where(rng.random(size) < 0.5, pred, predicted()),
    }
    if cell.weights == "clusters":
        columns["user"] = user
    elif cell.weights != "none":
        columns["w"] = rng.exponential(size=size) ** (1 if cell.weights == "mild" else 2)
    return pl.DataFrame(columns)


def weighed(weights: str) -> dict[str, str]:
    return {"clusters": {"cluster": "user"}, "none": {}}.get(weights, {"sample_weight": "w"})


def options(cell: Cell) -> dict:
    return {"positive": len(cell.shares) - 1, **weighed(cell.weights)}


def truths(table: np.ndarray, names: Iterable[str] = FAMILY) -> dict[str, float]:
    """The true scores of a table of shares, from so many rows that rounding does not matter."""
    gold, pred = np.nonzero(table)
    counts = np.round(table[gold, pred] * 10**15).astype(np.int64)
    log = pl.DataFrame({"gold": gold, "pred": pred, "n": counts})
    asked = [CALLS.get(name, name) for name in names]
    return log.mcc(weight="n", positive=len(table) - 1).score(metrics=asked).row(0, named=True)


def coverage(cell: Cell, samples: int, rng: np.random.Generator) -> Iterator[dict]:
    """Coverage of intervals, and how often a gate at the true score fails."""
    log, truth = drawn(cell, samples, cell.rows, rng), truths(cell.table)
    k = len(cell.shares)
    # A mean over classes is another score where a class is missing.
    whole = log.group_by("sample").agg(pl.col("gold").n_unique() == k).filter("gold")
    log = log.join(whole, on="sample", how="semi")
    if whole.height < samples / 20:
        return
    asked = [CALLS.get(name, name) for name in FAMILY]
    found = log.mcc(**options(cell)).by("sample", metrics=asked, ci=0.95)
    if isinstance(cell, Rare):
        k_pred = log.group_by("sample").agg(number=pl.col("pred").n_unique())
        never = k_pred.filter(pl.col("number") < k).select("sample")
        share = never.height / whole.height
        if not 0.03 <= share <= 0.95:
            return
        of_never = found.join(never, on="sample", how="semi")
    for name, family in FAMILY.items():
        about = {"metric": name, "family": family, **cell.about}
        yield from covered(found, name, truth[name], about, less_is_better=family == "costs")
        if isinstance(cell, Rare) and share >= 0.1:
            for one in covered(of_never, name, truth[name], about):
                if one["claim"] == "coverage":
                    yield {**one, "claim": "never predicted"}


def covered(
    found: pl.DataFrame, name: str, truth: float, about: dict, *, less_is_better: bool = False
) -> Iterator[dict]:
    """How often the interval of a metric holds the truth, and lies on its worse side."""
    known = found.drop_nulls(f"{name}_low")
    low, high, score = (known[f"{name}{end}"] for end in ("_low", "_high", ""))
    if not len(low) or not np.isfinite(truth):
        return
    about = {**about, "samples": len(low)}
    inside = (low <= truth + 1e-9) & (truth - 1e-9 <= high)
    yield {"claim": "coverage", **about, "value": inside.mean(), "width": (high - low).mean()}
    is_worse = low > truth + 1e-9 if less_is_better else high < truth - 1e-9
    yield {"claim": "gate", **about, "value": is_worse.mean(), "width": score.mean()}


def rejected(p: pl.Series) -> dict[str, float]:
    """How often a p-value is below each level, over the level. Null is no rejection."""
    values = p.fill_null(1.0).to_numpy()
    return {f"p{level:g}": float((values < level).mean() / level) for level in LEVELS}


COMPARED = (
    *("tpr", "ppv", "f1", "accuracy", "f1_weighted", "informedness", "markedness", "kappa", "mcc"),
    *("balanced_accuracy", "recall_macro", "precision_macro", "f1_macro", "mcc_macro", "mcc_micro"),
    *("jaccard", "fowlkes_mallows", "jaccard_macro", "npv_macro", "informedness_macro", "g_mean"),
    *CALLS,
)


def differences(cell: Cell, samples: int, rng: np.random.Generator) -> Iterator[dict]:
    """P-values of differences where nothing differs."""
    least = 5 if cell.weights == "clusters" else 1  # clusters are whole on each side
    total = round(cell.rows * 10 / 3 / least) * least
    log = (
        drawn(cell, samples, total, rng)
        .with_columns(place=pl.int_range(pl.len()).over("sample"))
        .with_columns(part=pl.col("place") < cell.rows // least * least)
    )
    others = ["rest", "total", *(["expected"] if cell.weights == "none" else [])]
    others = [] if cell.weights == "clusters" else others
    calls = questions(log, options(cell), {"pred": ["pred", "other"]}, others)
    for name, (claim, call) in itertools.product(COMPARED, calls.items()):
        p = call(CALLS.get(name, name))["p_value"]
        about = {"metric": name, "family": FAMILY[name], **cell.about, "samples": samples}
        yield {"claim": claim, **about, **rejected(p)}


def questions(
    log: pl.DataFrame, options: dict, models: dict[str, list[str]], others: Sequence[str]
) -> dict[str, Callable[[str | pl.Expr], pl.DataFrame]]:
    """The claims about differences of a metric, each with its call."""
    described = log.mcc(**options, **{role: names[0] for role, names in models.items()})
    return {
        "drift": lambda metric: described.drift(
            "sample", before=~pl.col("part"), after="part", metrics=metric, min_n=1
        ),
        "compare": lambda metric: log.mcc(**options, **models).compare(
            "sample", metrics=metric, min_n=1
        ),
        **{
            to: lambda metric, to=to: described.contrast(
                "part", within="sample", to=to, metrics=metric, min_n=1
            ).filter("part")
            for to in others
        },
    }


OTHER_MIX = {"50:50": "90:10", "90:10": "50:50", "95:5": "90:10"}


def other_mixes(cell: Cell, samples: int, rng: np.random.Generator) -> Iterator[dict]:
    """P-values of slices with equal scores, other class shares, and so other rates of misses."""
    if cell.mix not in OTHER_MIX or cell.weights != "none" or not cell.model.endswith("wrong"):
        return
    mix = MIXES[OTHER_MIX[cell.mix]]
    for name in ("mcc", "f1_macro", "kappa", "informedness", "markedness", "accuracy", "f1"):
        goal, low, high = truths(cell.table, [name])[name], 0.0, 0.5

        def of(miss: float) -> np.ndarray:
            return mix[:, None] * np.array([[1 - miss, miss], [miss, 1 - miss]])

        for _ in range(25):  # to 1.5e-8: the draws err more
            middle = (low + high) / 2
            low, high = (middle, high) if truths(of(middle), [name])[name] > goal else (low, middle)
        if not 1e-6 < low < 0.49:
            continue
        rest = round(cell.rows * 7 / 3)
        tables = [(cell.table, cell.rows, True), (of(low), rest, False)]
        frames = []
        for table, rows, part in tables:
            draws = rng.multinomial(rows, table.ravel(), samples)
            sample, pair = np.nonzero(draws)
            columns = {"sample": sample, "gold": pair // 2, "pred": pair % 2}
            counts = pl.DataFrame({**columns, "n": draws[sample, pair]})
            frames.append(counts.with_columns(part=part))
        log = pl.concat(frames).mcc(weight="n", positive=1)
        for to in ("rest", "total") if name == "accuracy" else ("rest",):
            p = log.contrast("part", within="sample", to=to, metrics=name).filter("part")["p_value"]
            about = {"metric": name, "family": FAMILY[name], **cell.about, "samples": samples}
            yield {"claim": f"{to}, other mix", **about, **rejected(p)}
    yield from other_labels(cell, samples, rng)


def other_labels(cell: Cell, samples: int, rng: np.random.Generator) -> Iterator[dict]:
    """P-values given the labels: of slices with equal rates of misses and other class shares."""
    mix, rest = MIXES[OTHER_MIX[cell.mix]], round(cell.rows * 7 / 3)
    frames = []
    for shares, rows, part in ((mix, cell.rows, True), (MIXES[cell.mix], rest, False)):
        table = shares[:, None] * cell.given
        draws = rng.multinomial(rows, table.ravel(), samples)
        sample, pair = np.nonzero(draws)
        columns = {"sample": sample, "gold": pair // len(mix), "pred": pair % len(mix)}
        frames.append(pl.DataFrame({**columns, "n": draws[sample, pair]}).with_columns(part=part))
    log = pl.concat(frames).mcc(weight="n", positive=len(mix) - 1)
    for name in COMPARED:
        asked = CALLS.get(name, name)
        found = log.contrast("part", within="sample", to="expected", metrics=asked).filter("part")
        about = {"metric": name, "family": FAMILY[name], **cell.about, "samples": samples}
        yield {"claim": "expected, other mix", **about, **rejected(found["p_value"])}


SEARCHED = (
    *("mcc", "phi", "informedness", "balanced_accuracy", "kappa", "f1_macro", "precision_macro"),
    *("recall_macro", "accuracy", "f1", "markedness", "tpr", "fnr", "mcc_macro", "f1_weighted"),
    *("f2", "kappa_quadratic", "cost_10", "cost_100"),
)


def searches(cell: Cell, logs: int, rng: np.random.Generator) -> Iterator[dict]:
    """The share of logs without a bad slice in which `worst` lists something."""
    keys = [f"key{place}" for place in range(5)]
    given = cell.weights == "none"  # Only then can the score given the labels be compared.
    claims = [(name, "rest") for name in SEARCHED]
    claims += [(name, "expected") for name in ("mcc", "f1_macro", "accuracy", "tpr") if given]
    listed = dict.fromkeys(claims, 0)
    for _ in range(logs):
        log = drawn(cell, 1, cell.rows, rng)
        shape = log.height if cell.weights != "clusters" else log["user"].max() + 1
        values = rng.integers(0, 8, (shape, len(keys)))
        values = values if cell.weights != "clusters" else values[log["user"].to_numpy()]
        log = log.with_columns(
            **{key: pl.Series(values[:, place]).cast(pl.String) for place, key in enumerate(keys)}
        )
        # On average, half of the rows of a slice have labels of this slice's own mix.
        is_own = rng.random(log.height) < 0.5
        mixed = np.where(is_own, log["gold"].to_numpy() % 8, rng.integers(0, 8, log.height))
        log = log.with_columns(mixed=pl.Series(mixed).cast(pl.String))
        for name, to in claims:
            others = ["mixed"] if to == "expected" else []
            found = log.mcc(**options(cell)).worst(
                *keys, *others, metric=CALLS.get(name, name), to=to
            )
            listed[name, to] += found.height > 0
    for (name, to), number in listed.items():
        claim = "worst" if to == "rest" else "worst, expected"
        about = {"metric": name, "family": FAMILY[name], **cell.about, "samples": logs}
        yield {"claim": claim, **about, "value": number / logs}


OF_BOTH = ("equal", "unequal", "five levels")
OF_LOSSES = ("over-confident", "zero or one", "one number", "rarely wrong")
"""Shapes that are new for losses alone."""
SHAPES = (*OF_BOTH, "far off", *OF_LOSSES)
ODD = {"far off", "zero or one", "rarely wrong"}
"""Shapes that the promises leave out: the summary shows them apart."""
CALIBRATED = {"equal", "five levels", "one number"}
AREAS = (0.5, 0.8, 0.9, 0.99, 0.999)
CLASS_SIZES = (
    *((5, 5), (10, 10), (15, 15), (10, 90), (10, 990), (20, 180)),
    *((30, 30), (30, 300), (100, 100)),
)
OF_SCORES = {"rank": ("roc_auc", "average_precision"), "p": ("brier", "log_loss")}
"""Columns of scores, any numbers or probabilities, and the metrics that they are for."""


@dataclass(frozen=True)
class Scores:
    """A setting: the shape of scores, the true AUC of normal scores, rows, weights."""

    shape: str
    area: float
    positive: int
    negative: int
    weights: str

    @property
    def rows(self) -> int:
        return self.positive + self.negative

    @property
    def model(self) -> str:
        return f"AUC {self.area}"

    @property
    def spread(self) -> float:
        return 2.0 if self.shape == "unequal" else 1.0

    @property
    def distance(self) -> float:
        return math.hypot(1, self.spread) * NormalDist().inv_cdf(self.area)

    def about(self, metric: str) -> dict:
        is_calibrated = metric != "log_loss" or self.shape in CALIBRATED
        family = metric if is_calibrated else f"{metric}, not calibrated"
        return {
            "metric": metric,
            "family": f"{metric}, {self.shape}" if self.shape in ODD else family,
            "mix": f"{self.shape}, {self.positive}:{self.negative}",
            "model": self.model,
            "rows": self.rows,
            "weights": self.weights,
            "least_class": min(self.positive, self.negative),
        }

    @property
    def metrics(self) -> dict[str, tuple[str, ...]]:
        without = {"far off": "p", **dict.fromkeys(OF_LOSSES, "rank")}.get(self.shape)
        return {column: names for column, names in OF_SCORES.items() if column != without}

    def odd_share(self, gold: np.ndarray) -> np.ndarray:
        """The share of rows of a class whose scores are apart from the others."""
        wrong = min(2.0, self.positive / 2)
        of_class = {"far off": (0.1, 0.0), "rarely wrong": (wrong / self.positive, 0.5)}
        positive, negative = of_class.get(self.shape, (0.0, 0.0))
        return np.where(gold, positive, negative)

    def odd(self, x: np.ndarray) -> np.ndarray:
        """The scores of such rows, from normal ones."""
        return x - 20 if self.shape == "far off" else np.full_like(x, -math.inf)

    def scores(self, x: np.ndarray) -> dict[str, np.ndarray]:
        """The scores of rows, as any numbers and as probabilities."""
        if self.shape == "rarely wrong":
            of_class = np.array([self.positive, self.negative])
            positive, negative = of_class * (1 - self.odd_share(np.array([True, False])))
            return {"p": np.where(np.isneginf(x), 1e-6, positive / (positive + negative))}
        d, odds = self.distance, self.positive / self.negative
        rank, logit = x, math.log(odds) + d * (x - d / 2)
        if self.shape == "five levels":
            low, high = min(-1.5, d - 1.5), max(1.5, d + 1.5)
            cuts = [-math.inf, *np.linspace(low, high, 6)[1:-1], math.inf]
            rank = np.searchsorted(cuts, x) - 1
            of_levels = (np.diff([NormalDist(m).cdf(cut) for cut in cuts]) for m in (d, 0))
            gold, rest = (shares.clip(1e-300) for shares in of_levels)
            logit = np.log(odds * gold / rest)[rank]
        logit *= 2 if self.shape == "over-confident" else 1
        p = 1 / (1 + np.exp(-logit.clip(-30, 30)))
        if self.shape == "zero or one":
            p = (x > d / 2).astype(float)
        elif self.shape == "one number":
            p = np.full_like(x, self.positive / self.rows)
        return {"rank": rank.astype(float), "p": p}


def drawn_scores(cell: Scores, samples: int, times: int, rng: np.random.Generator) -> pl.DataFrame:
    """Rows of samples, with so many times the rows of the cell: see `drawn`."""
    size = samples * cell.rows * times
    gold = rng.random(size) < cell.positive / cell.rows
    columns = {"sample": np.repeat(np.arange(samples), cell.rows * times), "gold": gold}
    shared = rng.standard_normal(size) / math.sqrt(2)
    if cell.weights == "clusters":
        columns["user"] = user = np.arange(size) // 5
        shared = (shared + rng.standard_normal(size // 5 + 1)[user] / math.sqrt(2)) / math.sqrt(2)
    elif cell.weights != "none":
        columns["w"] = rng.exponential(size=size)
    for name in ("", "_other"):
        x = shared + rng.standard_normal(size) / math.sqrt(2)
        x = np.where(gold, cell.distance + cell.spread * x, x)
        found = cell.scores(np.where(rng.random(size) < cell.odd_share(gold), cell.odd(x), x))
        columns |= {kind + name: scores for kind, scores in found.items()}
    return pl.DataFrame(columns)


def true_scores(cell: Scores) -> dict[str, float]:
    """The true metrics, from the densities on a fine grid."""
    d, spread = cell.distance, cell.spread
    x = np.linspace(min(-9, d - 9 * spread), max(9, d + 9 * spread), 20_001)
    rows = [cell.positive / spread * np.exp(-(((x - d) / spread) ** 2) / 2)]
    rows.append(cell.negative * np.exp(-(x**2) / 2))
    gold, x = np.repeat([True, False], len(x)), np.tile(x, 2)
    share, odd = cell.odd_share(gold), cell.odd_share(gold) > 0
    n = np.concatenate(rows) / np.sum(rows) * 10**15
    n = np.concatenate([n * (1 - share), (n * share)[odd]]).round().astype(np.int64)
    scores = cell.scores(np.concatenate([x, cell.odd(x)[odd]]))
    log = pl.DataFrame({"gold": np.concatenate([gold, gold[odd]]), **scores, "n": n})
    return {
        name: truth
        for column, names in cell.metrics.items()
        for name, truth in log.mcc(score=column, weight="n")
        .score(metrics=names)
        .row(0, named=True)
        .items()
    }


def coverage_of_scores(cell: Scores, samples: int, rng: np.random.Generator) -> Iterator[dict]:
    """Coverage of intervals of metrics of scores, and how often a gate at the truth fails."""
    log, truth = drawn_scores(cell, samples, 1, rng), true_scores(cell)
    for column, names in cell.metrics.items():
        described = log.mcc(score=column, **weighed(cell.weights))
        found = described.by("sample", metrics=names, ci=0.95)
        for name in names:
            about, is_loss = cell.about(name), column == "p"
            yield from covered(found, name, truth[name], about, less_is_better=is_loss)


def differences_of_scores(cell: Scores, samples: int, rng: np.random.Generator) -> Iterator[dict]:
    """P-values of differences of metrics of scores, where nothing differs: see `differences`."""
    log = drawn_scores(cell, samples, 3, rng).with_columns(
        part=pl.int_range(pl.len()).over("sample") < cell.rows
    )
    others = [] if cell.weights == "clusters" else ["rest"]
    for column, names in cell.metrics.items():
        models = {"score": [column, f"{column}_other"]}
        calls = questions(log, weighed(cell.weights), models, others)
        for name, (claim, call) in itertools.product(names, calls.items()):
            p = call(name)["p_value"]
            yield {"claim": claim, **cell.about(name), "samples": samples, **rejected(p)}


def found_in(job: tuple[Callable[..., Iterator[dict]], Cell | Scores, int, int]) -> list[dict]:
    claim, cell, samples, seed = job
    return list(claim(cell, samples, np.random.default_rng([seed, cell.rows, len(cell.model)])))


def jobs(samples: int, logs: int, sizes: Sequence[int], only: str) -> Iterator[tuple]:
    for seed, cell in enumerate(cells(sizes)):
        if "coverage" in only:
            yield coverage, cell, samples, seed
        # Differences are many queries: with weights, two kinds of models.
        if "difference" in only and (
            cell.weights == "none" or cell.model in {"10% wrong", "nearly all one class"}
        ):
            if cell.rows <= 200:
                yield differences, cell, samples, seed
            yield other_mixes, cell, samples, seed
    for seed, (mix, weight) in enumerate(itertools.product(MIXES, WEIGHTS)):
        if "worst" in only:
            for model in ("10% wrong", "nearly all one class"):
                if model in models(MIXES[mix]):
                    yield searches, Cell(mix, model, 3000, weight), logs, seed


def jobs_of_rare(samples: int, sizes: Sequence[int], only: str) -> Iterator[tuple]:
    for seed, cell in enumerate(rare_cells(sizes)):
        if "coverage" in only:
            yield coverage, cell, samples, seed
        if "difference" in only and cell.weights == "none" and cell.rows <= 200:
            yield differences, cell, samples, seed


def jobs_of_scores(samples: int, only: str) -> Iterator[tuple]:
    for seed, (sizes, weights) in enumerate(
        itertools.product(CLASS_SIZES, ("none", "mild", "clusters"))
    ):
        for shape, area in itertools.product(SHAPES, AREAS):
            has_order = shape not in {"one number", "rarely wrong"}
            if area != AREAS[0] and not has_order:
                continue
            cell = Scores(shape, area, *sizes, weights)
            if "coverage" in only:
                yield coverage_of_scores, cell, samples, seed
            is_main = weights == "none" or (shape, area) == ("equal", 0.9)
            if "difference" in only and cell.rows <= 200 and is_main:
                yield differences_of_scores, cell, samples, seed


def outside(found: pl.DataFrame, limits: Mapping[str, tuple[Limits, ...]] = LIMITS) -> pl.DataFrame:
    """The cells that break a promise by more than the noise of the simulation: exact binomial."""
    parts = []
    for claim, limits_of_claim in limits.items():
        of_claim = found.filter(pl.col("claim") == claim)
        for limit in limits_of_claim:
            here = of_claim.filter(pl.col("least_class") >= limit.least_class)
            here = here.filter(family=limit.family) if limit.family else here
            if limit.coverage:
                parts.append(more_often(here, 1 - pl.col("value"), 1 - limit.coverage, Z))
            else:
                parts.append(more_often(here, 0.01 * pl.col("p0.01"), 0.01 * limit.ratio, Z))
    worst = found.filter(pl.col("claim").is_in(["worst", "worst, expected"]))
    parts.append(more_often(worst, pl.col("value"), 0.05, 3))
    return pl.concat(parts).unique(maintain_order=True)


def more_often(cells: pl.DataFrame, share: pl.Expr, promised: float, z: float) -> pl.DataFrame:
    """Cells whose share of samples has, at the promised rate, a smaller chance than z standard
    errors of a normal distribution have."""
    n, shares = cells["samples"].to_numpy(), cells.select(share).to_series().to_numpy()
    chance = stats.binom.sf(np.round(shares * n) - 1, n, promised)
    return cells.filter(pl.Series(chance < stats.norm.sf(z)))


def summary(found: pl.DataFrame) -> str:
    """A Markdown table: a row for each claim, family, class shares, rows and weights."""
    ratios = [pl.col(f"p{level:g}").max().round(1) for level in LEVELS]
    rows = found.group_by("claim", "family", "mix", "rows", "weights", maintain_order=True).agg(
        cells=pl.len(),
        mean=pl.col("value").mean().round(3),
        least=pl.col("value").min().round(3),
        most=pl.col("value").max().round(3),
        **{f"p < {level:g}": ratio for level, ratio in zip(LEVELS, ratios, strict=True)},
    )
    header = f"| {' | '.join(rows.columns)} |\n|{' --- |' * rows.width}"
    lines = (
        f"| {' | '.join('' if cell is None else str(cell) for cell in row)} |"
        for row in rows.rows()
    )
    return "\n".join([header, *lines])


def print_by_family(found: pl.DataFrame, *, rare: bool) -> None:
    """A row per family: what the guide shows of coverage, and of what `worst` lists."""
    value, covered = pl.col("value"), found.filter(claim="coverage")
    covered = covered if rare else covered.filter(weights="none")
    last = "among these, mean" if rare else "`worst` lists something"
    least = {rows: f"least, from {rows} rows" for rows in (30, 8)}
    print_head(["family"], ["coverage, mean", f"{least[30]} of a class", least[8], last])
    for family in found["family"].unique(maintain_order=True):
        own = covered.filter(family=family).filter(pl.col("least_class") >= 8)
        of_class = own.filter(weights="none")
        more = found.filter(family=family, claim="never predicted" if rare else "worst")
        print_row(
            TITLES.get(family, family),
            *map(
                three_digits,
                (
                    own["value"].mean(),
                    of_class.filter(pl.col("least_class") >= 30)["value"].min(),
                    of_class["value"].min(),
                    more.select(value.mean()).item(),
                ),
            ),
        )


def three_digits(number: float | None) -> str:
    return "" if number is None else f"{number:.3f}"


def print_of_differences(found: pl.DataFrame) -> None:
    """How many times too often p < 0.01 comes, with 15 rows of two classes."""
    two = found.filter(pl.col("mix").is_in([*OTHER_MIX]), rows=15)
    none = two.filter(weights="none")
    print_head(["where nothing differs"], ["mean of the cells", "most"])
    for title, claims in OF_DIFFERENCES.items():
        share = none.filter(pl.col("claim").is_in(claims))["p0.01"]
        if share.count():
            print_row(title, f"{share.mean():.2f}", f"{share.max():.2f}")
    weighed = two.filter(pl.col("weights") != "none", pl.col("p0.01").is_not_null())
    means = weighed.group_by("claim").agg(pl.col("p0.01").mean())["p0.01"]
    if means.len():
        mean = f"{means.min():.2f} to {means.max():.2f}"
        print_row(WEIGHED, mean, f"{weighed['p0.01'].max():.2f}")


def print_of_scores(found: pl.DataFrame) -> None:
    """The coverage of metrics of scores, and where it is least."""
    print_head(["metric"], ["mean", "least", "where it is least"])
    for title, families in TITLES_OF_SCORES.items():
        own = found.filter(pl.col("family").is_in(families), claim="coverage").sort("value")
        where = ", ".join(own.select("mix", "model", "weights").row(0))
        print_row(title, f"{own['value'].mean():.2f}", f"{own['value'][0]:.2f}", where)


def run(todo: Sequence[tuple], processes: int) -> pl.DataFrame:
    """All cells of the grid, as a frame."""
    if processes == 1:
        found = [row for job in todo for row in found_in(job)]
    else:
        spawn = multiprocessing.get_context("spawn")  # Polars cannot be forked
        with ProcessPoolExecutor(processes, mp_context=spawn) as pool:
            found = [row for rows in pool.map(found_in, todo, chunksize=1) for row in rows]
    return as_frame(found)


def as_frame(found: Sequence[dict]) -> pl.DataFrame:
    """The cells as a frame. A claim has only some of the columns."""
    columns = ["value", "width", *(f"p{level:g}" for level in LEVELS)]
    frame = pl.DataFrame(found, infer_schema_length=None)
    missing = [
        pl.lit(None, pl.Float64).alias(name) for name in columns if name not in frame.columns
    ]
    return frame.with_columns(missing)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--samples", type=int, default=1000, help="samples per cell")
    parser.add_argument("--logs", type=int, default=60, help="logs per cell of worst")
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES, help="rows of a sample")
    parser.add_argument("--only", default="coverage,difference,worst")
    parser.add_argument("--scores", action="store_true", help="metrics of scores")
    parser.add_argument(
        "--rare", action="store_true", help="classes that are hardly ever predicted"
    )
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--out", type=Path, help="a folder for all cells, as Parquet")
    args = parser.parse_args()
    print(f"polars-mcc {polars_mcc.__version__}, polars {pl.__version__}, {args.samples} samples\n")
    todo = jobs(args.samples, args.logs, args.sizes, args.only)
    todo = jobs_of_scores(args.samples, args.only) if args.scores else todo
    todo = jobs_of_rare(args.samples, args.sizes, args.only) if args.rare else todo
    found = run([*todo], args.processes)
    print(summary(found), "\n")
    if args.scores:
        print_of_scores(found)
    elif "coverage" in args.only:
        print_by_family(found, rare=args.rare)
    elif "difference" in args.only:
        print_of_differences(found)
    print("\nOutside the promises:\n")
    broken = outside(found, LIMITS_OF_SCORES if args.scores else LIMITS)
    print(summary(broken) if broken.height else "nothing")
    if args.out:
        args.out.mkdir(parents=True, exist_ok=True)
        found.write_parquet(args.out / "promises.parquet")


if __name__ == "__main__":
    main()
