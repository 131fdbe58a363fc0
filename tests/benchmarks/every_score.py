"""How often the intervals of every kind of score cover the true score, by simulation.

    python tests/benchmarks/every_score.py --samples 4000 --out results

Tables have 2, 4 and 10 classes. They are balanced, 95:5 (the first class has 95 %, the others share
5 %) or 80/15/5 (80/20 for two classes). In each class, 5, 20 or 50 % of the rows are wrong. The
wrong predictions are spread evenly over the other classes, or "as frequent": in proportion to their
frequency. A setting is left out if its true score is outside 0.3 to 0.97. It is also left out if a
class is not gold or not predicted in more than 5 % of the samples. The score then has fewer
classes, or is undefined.

Prints a row for each score and number of rows: the least, the median and the largest coverage of a
95 % interval over the settings, the share of settings between 93 and 97.5 %, and the mean width.
With --peers, it compares macro F1, precision and recall with the package `confidenceinterval` and
with the percentile bootstrap, on the same samples; use fewer samples then.
"""

from __future__ import annotations

import argparse
import itertools
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import polars as pl
from interval_coverage import CI, counts

import polars_mcc
from polars_mcc import Bootstrap

SIZES = (30, 100, 300, 1000)
MIXES = ("balanced", "95:5", "80/15/5")
ERRORS = ((0.05, "evenly"), (0.2, "evenly"), (0.2, "as frequent"), (0.5, "as frequent"))
LEAST, MOST = 0.93, 0.975

RECALL, LABEL = pl.col("recall"), pl.col("label")
SCORES: dict[str, str | pl.Expr] = {
    **{name: name for name in ("accuracy", "tpr", "ppv", "tnr", "f1", "phi", "kappa")},
    **{name: name for name in ("informedness", "markedness", "balanced_accuracy")},
    **{name: name for name in ("precision_macro", "f1_macro", "f1_weighted", "mcc_macro")},
    **{name: name for name in ("mcc_normalized", "mcc_min_class", "mcc_max", "phi_over_max")},
    **{name: name for name in ("cramers_v", "mutual_info")},
}
PEERS = ("f1_macro", "precision_macro", "balanced_accuracy")


def margins(classes: int, mix: str) -> np.ndarray:
    if mix == "balanced":
        return np.full(classes, 1 / classes)
    if mix == "95:5":
        return np.array([0.95, *[0.05 / (classes - 1)] * (classes - 1)])
    first = {2: [0.8, 0.2], 4: [0.8, 0.1], 10: [0.8, 0.15]}[classes]
    return np.array([*first, *[0.05 if classes == 4 else 0.05 / 8] * (classes - 2)])


def table(pi: np.ndarray, error: float, spread: str) -> np.ndarray:
    """The share of each pair (gold, pred)."""
    others = np.ones((len(pi), len(pi))) if spread == "evenly" else np.tile(pi, (len(pi), 1))
    np.fill_diagonal(others, 0)
    others /= others.sum(axis=1, keepdims=True)
    return pi[:, None] * ((1 - error) * np.eye(len(pi)) + error * others)


def settings(sizes: Sequence[int]) -> Iterator[tuple[dict, np.ndarray]]:
    for classes, mix, (error, spread), n in itertools.product((2, 4, 10), MIXES, ERRORS, sizes):
        about = {"classes": classes, "mix": mix, "error": error, "spread": spread, "n": n}
        yield about, table(margins(classes, mix), error, spread)


def truths(shares: np.ndarray, metrics: Sequence[str | pl.Expr]) -> dict[str, float]:
    """The true scores of a table of shares, from so many rows that rounding does not matter."""
    log = counts(np.round(shares[None] * 10**15).astype(np.int64), "gold", "pred")
    positive = int(shares.shape[0] - 1)
    return log.mcc(weight="n", positive=positive).score(metrics=metrics).row(0, named=True)


def covered(found: pl.DataFrame, name: str, truth: float) -> dict[str, float]:
    low, high = pl.col(f"{name}_low"), pl.col(f"{name}_high")
    is_covered = (low <= truth + 1e-9) & (high >= truth - 1e-9)
    known = found.drop_nulls([f"{name}_low", f"{name}_high"])
    coverage, width = known.select(is_covered.mean(), (high - low).mean()).row(0)
    return {"coverage": coverage, "width": width, "none": 1 - known.height / found.height}


def samples(shares: np.ndarray, n: int, size: int, rng: np.random.Generator) -> np.ndarray:
    return rng.multinomial(n, shares.ravel(), size=size).reshape(size, *shares.shape)


def drawn(
    names: list[str], size: int, sizes: Sequence[int], rng: np.random.Generator
) -> Iterator[tuple[dict, np.ndarray, dict[str, float]]]:
    """Samples of each setting, with the true scores. 95 % of samples must have every class."""
    for about, shares in settings(sizes):
        draws = samples(shares, about["n"], size, rng)
        is_whole = (draws.sum(axis=1) > 0).all(axis=1) & (draws.sum(axis=2) > 0).all(axis=1)
        if is_whole.mean() < 0.95:
            continue
        true = truths(shares, names)
        yield about, draws, true


def of_scores(size: int, sizes: Sequence[int], rng: np.random.Generator) -> Iterator[dict]:
    names = list(SCORES)
    for about, draws, true in drawn(names, size, sizes, rng):
        asked = [name for name in names if 0.3 <= true[name] <= 0.97]
        log = counts(draws, "gold", "pred").mcc(weight="n", positive=about["classes"] - 1)
        found = log.by("sample", metrics=asked, ci=CI) if asked else pl.DataFrame()
        for name in asked:
            how = {"score": name, "method": "ours", "truth": true[name]}
            yield {**about, **how, **covered(found, name, true[name])}


def of_peers(size: int, sizes: Sequence[int], rng: np.random.Generator) -> Iterator[dict]:
    import confidenceinterval  # noqa: PLC0415 - only with --peers

    functions = {
        "f1_macro": confidenceinterval.f1_score,
        "precision_macro": confidenceinterval.precision_score,
        "balanced_accuracy": confidenceinterval.recall_score,
    }
    names = list(PEERS)
    for about, draws, true in drawn(names, size, sizes, rng):
        log = counts(draws, "gold", "pred").mcc(weight="n")
        answers = {
            "ours": log.by("sample", metrics=names, ci=CI),
            "bootstrap": log.by(
                "sample", metrics=names, ci=CI, method=Bootstrap(replicates=500, seed=1)
            ),
        }
        rows = []
        for draw in draws:
            gold, pred = np.nonzero(draw)
            gold, pred = (np.repeat(side, draw[gold, pred]) for side in np.nonzero(draw))
            row = {}
            for name, function in functions.items():
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    _, (low, high) = function(gold, pred, average="macro", confidence_level=CI)
                row |= {f"{name}_low": low, f"{name}_high": high}
            rows.append(row)
        answers["confidenceinterval"] = pl.DataFrame(rows).fill_nan(None)
        for method, found in answers.items():
            for name in names:
                if 0.3 <= true[name] <= 0.97:
                    how = {"score": name, "method": method, "truth": true[name]}
                    yield {**about, **how, **covered(found, name, true[name])}


def summary(results: pl.DataFrame) -> str:
    percent = (
        (pl.col("coverage").min(), pl.col("coverage").median(), pl.col("coverage").max()),
        pl.col("coverage").is_between(LEAST, MOST).mean(),
    )
    (least, middle, most), within = percent
    rows = results.group_by("score", "method", "n", maintain_order=True).agg(
        settings=pl.len(),
        least=least,
        median=middle,
        largest=most,
        within=within,
        width=pl.col("width").mean(),
    )
    shown = rows.sort("score", "method", "n", maintain_order=True).with_columns(
        pl.col("least", "median", "largest", "width").map_elements("{:.3f}".format, pl.String),
        pl.col("within").map_elements("{:.0%}".format, pl.String),
    )
    header = f"| {' | '.join(shown.columns)} |\n|{' --- |' * shown.width}"
    return "\n".join([header, *(f"| {' | '.join(map(str, row))} |" for row in shown.rows())])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--samples", type=int, default=4000, help="samples per setting")
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES, help="rows of a sample")
    parser.add_argument("--peers", action="store_true", help="compare with other packages")
    parser.add_argument("--out", type=Path, help="a folder for all results, as Parquet")
    args = parser.parse_args()
    print(f"polars-mcc {polars_mcc.__version__}, polars {pl.__version__}, {args.samples} samples\n")
    of = of_peers if args.peers else of_scores
    results = pl.DataFrame(list(of(args.samples, args.sizes, np.random.default_rng(1))))
    print(summary(results))
    if args.out:
        args.out.mkdir(parents=True, exist_ok=True)
        results.write_parquet(args.out / f"{of.__name__}.parquet")


if __name__ == "__main__":
    main()
