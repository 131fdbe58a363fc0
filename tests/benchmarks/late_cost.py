"""The cost of labels in another frame: `by` with `outcomes`, beside joins of Polars and of DuckDB.

    python tests/benchmarks/late_cost.py LOGS [--rows 20_000_000]

Makes logs once, in the folder LOGS: predictions with text ids of 16 characters, 200 countries and
ten labels, and labels for 80 % of them, which come up to nine days later. Both have a file a day.
Queries run in turn, each in a new process. The table shows the median of the ratios to DuckDB's
query with the same check, and the peak of memory. The check is that no id has two different labels.
The shell loads its modules within its time.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
import polars as pl
from measuring import apart, peak, print_head, print_row, times

import polars_mcc  # noqa: F401 - registers the namespace

FILES, LATEST = 60, 9  # days of predictions, and until a label comes
OURS, BASE = "by, with outcomes", "DuckDB, join and pairs, with the check"


def write_logs(folder: Path, rows: int) -> None:
    if folder.exists():
        return
    rng = np.random.default_rng(0)
    for name in ("predictions", "labels"):
        (folder / name).mkdir(parents=True)
    countries = pl.Series([f"country_{place:03}" for place in range(200)])
    names = pl.Series([f"label_{place}" for place in range(10)])
    size, late = rows // FILES, list[pl.DataFrame]()
    for file in range(FILES):
        numbers = pl.Series(np.arange(file * size, (file + 1) * size))
        ids = numbers.hash().cast(pl.String).str.zfill(20).str.slice(0, 16)
        gold = rng.integers(0, 10, size)
        pred = np.where(rng.random(size) < 0.85, gold, rng.integers(0, 10, size))
        columns = {"id": ids, "country": countries.gather(rng.integers(0, 200, size))}
        pl.DataFrame({**columns, "pred": names.gather(pred)}).write_parquet(
            folder / "predictions" / f"{file}.parquet"
        )
        labels = pl.DataFrame({"id": ids, "gold": names.gather(gold)})
        at = file + rng.integers(0, LATEST + 1, size, np.int32)
        labels = labels.with_columns(at=at.clip(max=FILES - 1))
        late = [*late[-LATEST:], labels.sample(fraction=0.8, seed=file, shuffle=True)]
        of_day = pl.concat(labels.filter(at=file) for labels in late)
        of_day.write_parquet(folder / "labels" / f"{file}.parquet")


def of_duckdb(logs: str, *, is_checked: bool) -> None:
    labels, check = f"'{logs}/labels/*.parquet'", ""
    if is_checked:
        labels = f"(SELECT id, min(gold) AS gold, max(gold) AS most FROM {labels} GROUP BY id)"  # noqa: S608 - no input of users
        check = ", bool_or(gold <> most)"
    query = (
        f"SELECT country, gold, pred, count(*){check} FROM '{logs}/predictions/*.parquet' AS p "  # noqa: S608
        f"LEFT JOIN {labels} AS l ON p.id = l.id GROUP BY country, gold, pred"
    )
    duckdb.sql(query).to_arrow_table()


def joined(logs: str) -> pl.LazyFrame:
    labels = pl.scan_parquet(f"{logs}/labels/*.parquet").select("id", "gold")
    return pl.scan_parquet(f"{logs}/predictions/*.parquet").join(labels, on="id", how="left")


def plain(logs: str) -> None:
    joined(logs).group_by("country", "gold", "pred").len().collect(engine="streaming")


def plain_with_check(logs: str) -> None:
    label = pl.col("gold")
    labels = pl.scan_parquet(f"{logs}/labels/*.parquet").select("id", "gold")
    labels = labels.group_by("id").agg(label.min(), most=label.max())
    rows = pl.scan_parquet(f"{logs}/predictions/*.parquet").join(labels, on="id", how="left")
    is_two = (label != pl.col("most")).any()
    pairs = rows.group_by("country", "gold", "pred").agg(pl.len(), is_two=is_two)
    pairs.collect(engine="streaming")


def ours(logs: str, **options: str) -> None:
    predictions = pl.scan_parquet(f"{logs}/predictions/*.parquet")
    labels = pl.scan_parquet(f"{logs}/labels/*.parquet")
    log = predictions.mcc(outcomes=labels, on="id", **options)
    log.by("country").collect(engine="streaming")


def in_shell(logs: str) -> None:
    from polars_mcc._cli.run_command import main  # noqa: PLC0415 - a part of its time

    of_labels = ("--outcomes", f"{logs}/labels", "--on", "id")
    answer = ("--by", "country", "--out", f"{logs}/scores.parquet")
    with contextlib.suppress(SystemExit):
        main(["by", f"{logs}/predictions", *of_labels, *answer])


QUERIES: dict[str, Callable[[str], object]] = {
    OURS: ours,
    "by, with outcomes, in the shell": in_shell,
    "by, with outcomes, latest": lambda logs: ours(logs, latest="at"),
    "by, joined by hand, without a check": lambda logs: (
        joined(logs).mcc.by("country").collect(engine="streaming")
    ),
    "Polars, join and pairs, with the check": plain_with_check,
    "Polars, join and pairs, without a check": plain,
    BASE: lambda logs: of_duckdb(logs, is_checked=True),
    "DuckDB, join and pairs, without a check": lambda logs: of_duckdb(logs, is_checked=False),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("logs", metavar="LOGS")
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--query", choices=QUERIES, help="run one query, and print its seconds")
    options = parser.parse_args()
    logs = Path(options.logs) / f"late-{options.rows}"
    if options.query is not None:
        start = time.perf_counter()
        QUERIES[options.query](options.logs)
        print(time.perf_counter() - start, peak())
        return
    write_logs(logs, options.rows)
    done: dict[str, list[list[float]]] = {name: [] for name in QUERIES}
    for _ in range(options.rounds):
        for name, runs in done.items():
            runs.append(apart(__file__, logs, "--query", name))
    base = [seconds for seconds, _ in done[BASE]]
    print_head(["query"], [f"times {BASE}", "range", "s", "peak, MB"])
    for name, runs in done.items():
        seconds, memory = zip(*runs, strict=True)
        print_row(
            name,
            *times(seconds, base, 2),
            f"{statistics.median(seconds):.1f}",
            f"{max(memory):.0f}",
        )


if __name__ == "__main__":
    main()
