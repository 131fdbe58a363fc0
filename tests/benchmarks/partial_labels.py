"""How often 95 % intervals cover the true score if labels come for some rows only, by simulation.

    python tests/benchmarks/partial_labels.py [--samples 4000]

Rows are drawn from a table of shares, gold by prediction. Whether a label comes depends on the
prediction. The true score is of all rows. "Labelled alone" is `nulls="drop"`, "reweighted" is
`nulls="reweight"`. A sample has no score, and is left out, if it has one class, or if no row of a
prediction is labelled.

The first table has settings of fraud, and of more classes. The second has the least coverage over
settings with two to five classes. Each class is found with the same rate, 0.7, 0.9 or 0.97. The
first class has half of the rows, each other half of the rest, or all have as many. Labels come for
10 % of the rows of the most frequent prediction and more for others, up to all rows; or the other
way round. As many rows are drawn as give, on average, so many labelled rows of each prediction and
of each gold class.

The third table has the intervals of differences whose true value is 0. Two slices have the same
shares and other chances of a label. Of two models, the second copies most predictions of the first,
and the likelier label of both predictions comes.

In the fourth table, whether a label comes depends on the label: no weight repairs that.

The last table searches logs of five keys of six values with `worst`, at depth 2. No slice is bad;
or one slice of two keys has three times as many misses. Labels come alike in all slices; or they
come so for one value of another key only, and all other rows have one.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl
from measuring import print_head, print_row

import polars_mcc  # noqa: F401 - registers the namespace

NULLS = ("drop", "reweight")
METRICS = ("mcc", "accuracy", "kappa", "f1_macro", "tpr", "ppv")
FRAUD = np.array([[0.90, 0.04], [0.02, 0.04]])
THREE = np.array([[0.45, 0.03, 0.02], [0.04, 0.26, 0.03], [0.02, 0.03, 0.12]])
FOUND = (0.7, 0.9, 0.97)
SHARES = ("halves", "equal")
ORDERS = ("rare ones more", "rare ones less")
COPIED = 0.8
KEYS = [f"key{place}" for place in range(5)]
PLANTED = "key0 = 1 and key1 = 2"
LOGS = 50


def counts_of(
    samples: np.ndarray, comes: np.ndarray, rng: np.random.Generator, *preds: str
) -> pl.DataFrame:
    """Samples of tables as one counts table; rows without a label have no gold label."""
    names = ("sample", "gold", *(preds or ("pred",)))
    seen = rng.binomial(samples, np.broadcast_to(comes, samples.shape))
    labelled, missing = np.nonzero(seen), np.nonzero((samples - seen).sum(1))
    counts = [
        pl.DataFrame(dict(zip(names, labelled, strict=True)) | {"n": seen[labelled]}),
        pl.DataFrame(
            dict(zip((names[0], *names[2:]), missing, strict=True))
            | {"n": (samples - seen).sum(1)[missing]}
        ),
    ]
    return pl.concat(counts, how="diagonal")


def draws_of(shares: np.ndarray, rows: int, samples: int, rng: np.random.Generator) -> np.ndarray:
    return rng.multinomial(rows, shares.ravel(), size=samples).reshape(-1, *shares.shape)


def truth_of(shares: np.ndarray) -> dict[str, float]:
    """The scores of a very large log with these shares."""
    n = np.rint(shares * 1e12).astype(np.int64)
    gold, pred = np.indices(n.shape).reshape(2, -1)
    log = pl.DataFrame({"gold": gold, "pred": pred, "n": n.ravel()})
    scores = log.mcc(weight="n", positive=len(shares) - 1).score(metrics=METRICS)
    return scores.select(METRICS).row(0, named=True)


def coverage(
    shares: np.ndarray, comes: np.ndarray, rows: int, samples: int, *, seed: int = 1
) -> dict[str, dict[str, float]]:
    """For each policy and metric: how often the interval covers the true score.

    `comes` is the probability of a label, by prediction, or by gold label and prediction.
    """
    rng = np.random.default_rng([seed, rows, len(shares)])
    drawn = draws_of(shares, rows, samples, rng)
    log = counts_of(drawn, comes, rng).mcc(weight="n", positive=len(shares) - 1)
    truth, covers = truth_of(shares), {}
    for nulls in NULLS:
        found = log(nulls=nulls).by("sample", metrics=METRICS, ci=0.95)
        of_metrics = {
            name: found.drop_nulls(f"{name}_low").select(
                (pl.col(f"{name}_low") <= true) & (true <= pl.col(f"{name}_high"))
            )
            for name, true in truth.items()
        }
        covers[nulls] = {name: hits.to_series().mean() for name, hits in of_metrics.items()}
    return covers


def table_of(classes: int, found: float, shares: str) -> np.ndarray:
    """The shares of rows, gold by prediction: missed rows are spread as the rows are."""
    sizes = np.ones(classes) if shares == "equal" else 0.5 ** np.arange(classes)
    sizes /= sizes.sum()
    others = np.where(np.eye(classes), 0, sizes)
    others /= others.sum(1, keepdims=True)
    return sizes[:, None] * (found * np.eye(classes) + (1 - found) * others)


def labelled_rows(shares: np.ndarray, comes: np.ndarray) -> float:
    """The expected labelled rows of the rarest label and prediction, for one row of the log."""
    labelled = shares * comes
    return min(labelled.sum(0).min(), labelled.sum(1).min())


def settings(classes: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The shares of rows, and how often labels come by prediction."""
    for found, shares, order in itertools.product(FOUND, SHARES, ORDERS):
        comes = np.linspace(0.1, 1, classes)
        yield table_of(classes, found, shares), comes[:: 1 if order == ORDERS[0] else -1]


def percent(shares: Sequence[float]) -> str:
    return ", ".join(f"{share:.0%}" for share in shares)


def cells(covers: dict[str, float], names: Sequence[str] = METRICS) -> list[str]:
    return [f"{covers[name]:.3f}" for name in names]


def print_named(samples: int, rows_of: Sequence[int]) -> None:
    """Settings with a name, each with the coverage of some metrics."""
    alone = [f"alone: {name}" for name in METRICS[:2]]
    reweighted = [f"reweighted: {name}" for name in METRICS]
    print_head(["classes", "labels come, by prediction", "rows"], [*alone, *reweighted])
    named = [(FRAUD, (0.3, 1.0)), (FRAUD, (0.1, 0.9))]
    named += [(THREE, (0.9, 0.5, 0.2)), (THREE, (0.6, 0.6, 0.6))]
    for (shares, comes), rows in itertools.product(named, rows_of):
        covers = coverage(shares, np.array(comes), rows, samples)
        both = [*cells(covers["drop"], METRICS[:2]), *cells(covers["reweight"])]
        print_row(len(shares), percent(comes), rows, *both)


def print_least(samples: int, classes_of: Sequence[int], fewest: Sequence[int]) -> None:
    """The least coverage over all settings."""
    print_head(["classes", "labelled rows of each"], [f"least: {name}" for name in METRICS])
    for classes, labelled in itertools.product(classes_of, fewest):
        least = dict.fromkeys(METRICS, 1.0)
        for shares, comes in settings(classes):
            rows = int(np.ceil(labelled / labelled_rows(shares, comes)))
            covers = coverage(shares, comes, rows, samples)["reweight"]
            least = {name: min(covers[name], value) for name, value in least.items()}
        print_row(classes, labelled, *cells(least))


def of_two_models(shares: np.ndarray) -> np.ndarray:
    """The shares of rows, gold by the predictions of two models: the second copies the first."""
    given = shares / shares.sum(1, keepdims=True)
    both = given[:, :, None] * given[:, None, :] * (1 - COPIED)
    both += COPIED * given[:, :, None] * np.eye(len(shares))
    return shares.sum(1)[:, None, None] * both


def holds_zero(found: pl.DataFrame) -> float:
    holds = (pl.col("diff_low") <= 0) & (pl.col("diff_high") >= 0)
    return found.drop_nulls("diff_low").select(holds.mean()).item()


def print_differences(samples: int) -> None:
    """The coverage of 0 by the interval of a difference."""
    names = ("mcc", "accuracy", "f1_macro", "tpr")
    print_head(["what is compared", "classes", "labels come", "rows"], names)
    rows, rng = 2000, np.random.default_rng(2)
    settings_of = [(FRAUD, (0.3, 1.0), (0.1, 0.9)), (THREE, (0.9, 0.5, 0.2), (0.2, 0.5, 0.9))]
    for shares, *both in settings_of:
        options = {"weight": "n", "nulls": "reweight", "positive": len(shares) - 1}
        drawn = [draws_of(shares, rows, samples, rng) for _ in both]
        slices = pl.concat(
            counts_of(draws, np.array(comes), rng).with_columns(half=pl.lit(half))
            for half, (draws, comes) in enumerate(zip(drawn, both, strict=True))
        ).mcc(**options)
        covers = {
            name: holds_zero(slices.contrast("half", within="sample", to="each", metrics=name))
            for name in names
        }
        labels = "; ".join(map(percent, both))
        print_row("two slices", len(shares), labels, rows, *cells(covers, names))
        comes = np.maximum.outer(both[0], both[0])
        drawn_models = draws_of(of_two_models(shares), rows, samples, rng)
        models = counts_of(drawn_models, comes, rng, "old", "new").mcc(
            pred=["old", "new"], **options
        )
        covers = {name: holds_zero(models.compare("sample", metrics=name)) for name in names}
        print_row("two models", len(shares), percent(both[0]), rows, *cells(covers, names))


def print_wrong(samples: int, rows_of: Sequence[int]) -> None:
    """Fraud is confirmed at once, and a row that is well has its label after months."""
    print_head(["labels come, of fraud", "of the others", "rows"], [*METRICS])
    for rows, late in itertools.product(rows_of, (0.1, 0.3)):
        comes = np.array([[late, late], [1.0, 1.0]])
        covers = coverage(FRAUD, comes, rows, samples)
        print_row("100%", f"{late:.0%}", rows, *cells(covers["reweight"]))


def log_of_slices(
    shares: np.ndarray, comes: np.ndarray, rows: int, seed: int, *, planted: bool, alike: bool
) -> pl.DataFrame:
    """Rows with keys. Unless `alike`, labels are missing only in a value of the third key."""
    rng, k = np.random.default_rng([seed, rows, len(shares)]), len(shares)
    keys, gold = rng.integers(0, 6, (rows, len(KEYS))), rng.choice(k, rows, p=shares.sum(1))
    missed = 1 - np.diag(shares) / shares.sum(1)
    is_bad = (keys[:, 0] == 1) & (keys[:, 1] == 2) & planted
    miss = np.where(is_bad, np.clip(3 * missed[gold], 0, 1), missed[gold])
    pred = np.where(rng.random(rows) < miss, (gold + rng.integers(1, k, rows)) % k, gold)
    comes_here = np.where((keys[:, 2] == 0) | alike, comes[pred], 1.0)
    has_label = pl.Series(rng.random(rows) < comes_here)
    frame = pl.DataFrame({**dict(zip(KEYS, keys.T, strict=True)), "gold": gold, "pred": pred})
    return frame.with_columns(gold=pl.when(has_label).then("gold"))


def print_searches(settings_of: Sequence[tuple[np.ndarray, tuple[float, ...]]]) -> None:
    """How many slices `worst` lists that are not bad, and how often it finds one that is."""
    names = [f"{nulls}: {what}" for nulls in NULLS for what in ("false, healthy", "found", "false")]
    head = ["classes", "labels come, by prediction", "in", "metric", "rows"]
    print_head(head, names)
    rows = 10_000
    by_setting = itertools.product(settings_of, (True, False), METRICS[:2])
    for (shares, comes), alike, metric in by_setting:
        of_policies = []
        for nulls in NULLS:
            lists: dict[bool, list[list[str]]] = {False: [], True: []}
            for seed, planted in itertools.product(range(LOGS), lists):
                kind = {"planted": planted, "alike": alike}
                log = log_of_slices(shares, np.array(comes), rows, seed, **kind).mcc(nulls=nulls)
                found = log.worst(*KEYS, metric=metric, bins=None, depth=2)
                lists[planted].append(found["slice"].to_list())
            healthy = sum(map(len, lists[False])) / LOGS
            hits = sum(PLANTED in found for found in lists[True]) / LOGS
            n_false = sum(map(len, lists[True])) / LOGS - hits
            of_policies += [f"{number:.2f}" for number in (healthy, hits, n_false)]
        where = "all slices" if alike else "one slice"
        print_row(len(shares), percent(comes), where, metric, rows, *of_policies)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--samples", type=int, default=4000)
    args = parser.parse_args()
    rows_of = (1000, 5000)
    print_named(args.samples, rows_of)
    print()
    print_least(args.samples, (2, 3, 4, 5), (30, 100, 300))
    print()
    print_differences(args.samples)
    print()
    print_wrong(args.samples, rows_of)
    print()
    searches = [(FRAUD, (0.3, 1.0)), (THREE, (0.9, 0.5, 0.2)), (THREE, (0.2, 0.5, 0.9))]
    print_searches(searches)


if __name__ == "__main__":
    main()
