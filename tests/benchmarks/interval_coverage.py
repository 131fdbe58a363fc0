"""How often intervals of MCC cover the true score, and how wide they are, by simulation.

    python tests/benchmarks/interval_coverage.py --out results --chart coverage.svg

Rows are drawn from a table with the margins π of gold and pred and the score R:
p = R·diag(π) + (1 - R)·π πᵀ. Balanced: π is the same for each class. 95:5: the first class has
95 %, the others share 5 %. Paired models have the same gold labels, and the second copies the
label of the first with the probability `copied`. Each user has its own score, uniform on
[0.2, 1], and 20 rows.

Prints for each method the least and the largest coverage over the settings of a line, and the
mean width. The files of --out have a row for each setting. A sample has no score if gold or pred
has only one label; such samples are left out.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import polars as pl

import polars_mcc
from polars_mcc import Bootstrap

CI = 0.95
SIZES = (10, 30, 100, 300, 1000)
SCORES = (0.0, 0.3, 0.6, 0.9)
PAIRS = ((0.0, 0.0), (0.3, 0.3), (0.6, 0.6), (0.9, 0.9), (0.3, 0.6), (0.6, 0.9))
USERS = (5, 10, 30, 100)
MIXES = ("balanced", "95:5")
METHODS = ("score", "fisher", "wald", "bootstrap", "bca")
NATIVE = METHODS[:3]


def margins(classes: int, mix: str) -> np.ndarray:
    if mix == "balanced":
        return np.full(classes, 1 / classes)
    return np.array([0.95, *[0.05 / (classes - 1)] * (classes - 1)])


def given_gold(pi: np.ndarray, score: float) -> np.ndarray:
    """The probability of each prediction, given the gold label."""
    return score * np.eye(len(pi)) + (1 - score) * pi


def counts(draws: np.ndarray, *labels: str) -> pl.DataFrame:
    """Samples of tables, as one counts table: `sample`, the labels, and `n`."""
    places = np.nonzero(draws)
    columns = dict(zip(["sample", *labels], places, strict=True))
    return pl.DataFrame({**columns, "n": draws[places]})


def covered(answer: pl.DataFrame, truth: float, low: str, high: str) -> dict[str, float]:
    """Coverage and width over the samples that have an interval, with room for rounding."""
    found = answer.drop_nulls([low, high])
    is_covered = (pl.col(low) <= truth + 1e-9) & (pl.col(high) >= truth - 1e-9)
    coverage, width = found.select(is_covered.mean(), (pl.col(high) - pl.col(low)).mean()).row(0)
    return {
        "coverage": coverage,
        "width": width,
        "none": 1 - found.height / max(1, answer.height),
    }


def of_scores(
    replicates: int,
    n_boot: int,
    sizes: Sequence[int],
    rng: np.random.Generator,
    methods: Sequence[str] = METHODS,
) -> Iterator[dict]:
    settings = itertools.product((2, 4), MIXES, SCORES, sizes)
    for classes, mix, score, n in settings:
        pi = margins(classes, mix)
        table = pi[:, None] * given_gold(pi, score)
        draws = rng.multinomial(n, table.ravel(), size=replicates)
        log = counts(draws.reshape(-1, classes, classes), "gold", "pred")
        defined = log.mcc(weight="n", zero_division=None).by("sample").drop_nulls("mcc")
        log = log.join(defined, on="sample", how="semi")
        for method in methods:
            how = method
            if method not in NATIVE:
                how = Bootstrap(replicates=n_boot, seed=1, bca=method == "bca")
            answer = log.mcc(weight="n").by("sample", ci=CI, method=how)
            yield {
                "classes": classes,
                "mix": mix,
                "score": score,
                "n": n,
                "undefined": 1 - defined.height / replicates,
                "method": method,
                **covered(answer, score, "mcc_low", "mcc_high"),
            }


def of_differences(
    replicates: int, sizes: Sequence[int], rng: np.random.Generator
) -> Iterator[dict]:
    settings = itertools.product((2, 4), MIXES, PAIRS, (0.0, 0.8), sizes)
    for classes, mix, (first, second), copied, n in settings:
        pi = margins(classes, mix)
        a, b = given_gold(pi, first), given_gold(pi, second)
        joint = pi[:, None, None] * (
            copied * a[:, :, None] * np.eye(classes) + (1 - copied) * a[:, :, None] * b[:, None, :]
        )
        truth = (1 - copied) * (second - first)
        draws = rng.multinomial(n, joint.ravel(), size=replicates)
        log = counts(draws.reshape(-1, classes, classes, classes), "gold", "a", "b")
        differ = draws.reshape(-1, classes, classes, classes) * (1 - np.eye(classes))
        both = log.mcc(pred=["a", "b"], weight="n", zero_division=None).by("sample")
        undefined = both.filter(pl.col("mcc").is_null())
        log = log.join(undefined, on="sample", how="anti")
        for method in NATIVE:
            answer = log.mcc(weight="n", pred="b").compare(
                "sample", ci=CI, method=method, baseline="a"
            )
            yield {
                "classes": classes,
                "mix": mix,
                "a": first,
                "b": second,
                "copied": copied,
                "n": n,
                "differ": differ.sum() / replicates,
                "method": method,
                **covered(answer, truth, "diff_low", "diff_high"),
                "rejected": (answer["p_value"] < 1 - CI).mean(),
            }


def of_users(replicates: int, rng: np.random.Generator) -> Iterator[dict]:
    for classes, mix, users in itertools.product((2, 4), MIXES, USERS):
        pi, truth = margins(classes, mix), 0.6
        own = rng.uniform(truth - 0.4, truth + 0.4, size=(replicates * users, 1, 1))
        tables = pi[:, None] * (own * np.eye(classes) + (1 - own) * pi)
        draws = rng.multinomial(20, tables.reshape(len(own), -1))
        draws = draws.reshape(replicates, users, classes, classes)
        log = counts(draws, "user", "gold", "pred")
        for cluster, method in itertools.product((None, "user"), NATIVE):
            answer = log.mcc(weight="n", cluster=cluster).by("sample", ci=CI, method=method)
            yield {
                "classes": classes,
                "mix": mix,
                "users": users,
                "cluster": cluster or "ignored",
                "method": method,
                **covered(answer, truth, "mcc_low", "mcc_high"),
            }


def summary(results: pl.DataFrame, *keys: str) -> str:
    """A Markdown table, a line per `keys`: range of coverage and mean width of each method."""
    number = pl.format(
        "{} to {} ({})",
        *(
            cell.mul(1000)
            .round()
            .cast(pl.Int64)
            .cast(pl.String)
            .str.zfill(4)
            .str.replace(r"^(.)(...)$", "$1.$2")
            for cell in (pl.col("coverage").min(), pl.col("coverage").max(), pl.col("width").mean())
        ),
    )
    cells = results.group_by(*keys, "method", maintain_order=True).agg(number.alias("cell"))
    lines = cells.pivot("method", index=list(keys), values="cell", maintain_order=True)
    marks = [*["---"] * len(keys), *["--:"] * (lines.width - len(keys))]
    header = f"| {' | '.join(lines.columns)} |\n| {' | '.join(marks)} |"
    return "\n".join([header, *(f"| {' | '.join(map(str, row))} |" for row in lines.rows())])


def draw(results: pl.DataFrame, file: Path) -> None:
    """Coverage against n, a panel per table, a line per method."""
    import altair as alt  # noqa: PLC0415 - only if asked for

    panel = pl.format("{} classes, {}", "classes", "mix").alias("tables")
    data = results.with_columns(panel, pl.format("R = {}", "score").alias("truth"))
    data = data.with_columns(coverage=pl.col("coverage").clip(0.7))
    rows = sorted(results["n"].unique())
    scale = alt.Scale(domain=[0.7, 1], zero=False)
    x = alt.X("n:Q", scale=alt.Scale(type="log"), axis=alt.Axis(values=rows), title="rows")
    y = alt.Y("coverage:Q", scale=scale, title="coverage")
    lines = (
        alt.Chart().mark_line(point=True).encode(x, y, alt.Color("method:N", sort=list(METHODS)))
    )
    band = (
        alt.Chart()
        .mark_rect(color="#ddd", opacity=0.1)
        .encode(y=alt.datum(0.93, scale=scale), y2=alt.datum(0.97))
    )
    chart = alt.layer(band, lines, data=data).properties(width=170, height=110)
    order = [f"{classes} classes, {mix}" for classes in (2, 4) for mix in MIXES]
    chart.facet(
        row=alt.Row("truth:N", title=None), column=alt.Column("tables:N", sort=order, title=None)
    ).properties(title="Coverage of 95 % intervals, cut at 0.7 (the band: 0.93 to 0.97)").save(file)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--replicates", type=int, default=4000, help="samples per setting")
    parser.add_argument("--n-boot", type=int, default=1000, help="replicates of a bootstrap")
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES, help="rows of a sample")
    parser.add_argument("--out", type=Path, help="a folder for all results, as Parquet")
    parser.add_argument("--chart", type=Path, help="an .svg, .png or .html (needs altair)")
    args = parser.parse_args()
    print(
        f"polars-mcc {polars_mcc.__version__}, polars {pl.__version__}, {args.replicates} samples"
    )
    scores = pl.DataFrame(
        list(of_scores(args.replicates, args.n_boot, args.sizes, np.random.default_rng(1)))
    )
    print("\nscores\n")
    print(summary(scores, "mix", "n"))
    differences = pl.DataFrame(
        list(of_differences(args.replicates, args.sizes, np.random.default_rng(2)))
    )
    print("\ndifferences\n")
    print(summary(differences, "mix", "copied", "n"))
    print("\nusers\n")
    users = pl.DataFrame(list(of_users(args.replicates, np.random.default_rng(3))))
    print(
        summary(
            users.sort("mix", "cluster", "users", descending=[True, False, False]),
            "mix",
            "cluster",
            "users",
        )
    )
    if args.out:
        args.out.mkdir(parents=True, exist_ok=True)
        for name, results in {"scores": scores, "differences": differences, "users": users}.items():
            results.write_parquet(args.out / f"{name}.parquet")
    if args.chart:
        draw(scores, args.chart)


if __name__ == "__main__":
    main()
