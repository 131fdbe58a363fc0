"""The cost of intervals, compared with counting pairs and with resampling rows.

    python tests/benchmarks/interval_cost.py LOGS [--again 10]

Uses the logs of speed.py in the folder LOGS, and makes them once. Queries for intervals and for
counts take turns, each in a new process. The table shows the median of the ratios and their range.
The bootstrap draws 10 000 replicates of 200 slices of 10 classes. scikit-learn resamples rows for
about one second; its time for all replicates is extrapolated.

With --again, one process asks for the intervals of the two logs of most pairs so often. The table
shows the seconds of the fastest call but the first, and the peak of memory after the first call and
after the last.
"""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path

import numpy as np
import polars as pl
import speed
from measuring import apart, peak, print_head, print_row, times

from polars_mcc import Bootstrap
from polars_mcc._counts.pair_counts import pairs
from polars_mcc._counts.sides_and_slices import cut, sides_of

TASKS = [
    *(
        (workload, query, "pairs")
        for workload in (
            "Boolean labels",
            "short text labels",
            "1000 text labels",
            "100 000 text slices, 5 labels",
        )
        for query in ("fisher", "score")
    ),
    ("three models", "compare", "joint pairs"),
]
QUERIES = {
    "pairs": lambda log: pairs(cut(sides_of(log.mcc(pred="model_0")), ["slice"], taken=[])),
    "fisher": lambda log: log.mcc(pred="model_0").by("slice", ci=0.95, method="fisher"),
    "score": lambda log: log.mcc(pred="model_0").by("slice", ci=0.95),
    "joint pairs": lambda log: log.group_by("slice", "gold", "model_0", "model_1").agg(pl.len()),
    "compare": lambda log: log.mcc(pred="model_1").compare("slice", baseline="model_0"),
}


def written(name: str, logs: Path, rows: int) -> Path:
    """The folder of a log, which is made unless it exists."""
    workload = speed.BY_NAME[name]
    folder = workload.folder(logs, rows)
    speed.write_logs(workload, rows, folder)
    return folder


def seconds_of(query: str, log: Path) -> float:
    [seconds, _] = apart(__file__, "--query", query, log)
    return seconds


def run(query: str, log: str, times: int) -> None:
    """Run a query in this process; print the seconds of each time, and the peak after it, in MB."""
    for _ in range(times):
        lazy = QUERIES[query](pl.scan_parquet(f"{log}/**/*.parquet"))
        start = time.perf_counter()
        lazy.collect()
        print(time.perf_counter() - start, peak())


def again(logs: Path, rows: int, times: int) -> None:
    print_head(["log"], ["s", "peak of 1 call, MB", f"peak of {times} calls, MB"])
    for name in ("1000 text labels", "100 000 text slices, 5 labels"):
        log = written(name, logs, rows)
        figures = apart(__file__, "--query", "score", "--again", times, log)
        seconds, peaks = figures[::2], figures[1::2]
        print_row(name, f"{min(seconds[1:]):.2f}", f"{peaks[0]:.0f}", f"{peaks[-1]:.0f}")


def intervals(logs: Path, rows: int, rounds: int, only: str) -> None:
    print_head(["log", "query", "beside"], ["times as long", "range", "beside, s"])
    for name, query, beside in TASKS:
        if only not in name:
            continue
        log = written(name, logs, rows)
        both = [(seconds_of(query, log), seconds_of(beside, log)) for _ in range(rounds)]
        ours, counted = zip(*both, strict=True)
        median = f"{statistics.median(counted):.2f}"
        print_row(name, query, beside, *times(ours, counted, 2), median)


def bootstrap(rows: int, n_boot: int) -> None:
    """Time the bootstrap of slices of `rows` rows, ours and by scikit-learn."""
    from sklearn.metrics import matthews_corrcoef  # noqa: PLC0415 - the queries do not need it

    rng = np.random.default_rng(0)
    table = (0.8 * np.eye(10) + 0.02) / 10
    draws = rng.multinomial(rows, table.ravel(), size=200)
    places = np.nonzero(draws)
    gold, pred = np.divmod(places[1], 10)
    counts = pl.DataFrame({"slice": places[0], "gold": gold, "pred": pred, "n": draws[places]})
    start = time.perf_counter()
    counts.mcc(weight="n").by("slice", ci=0.95, method=Bootstrap(replicates=n_boot, seed=0))
    ours = time.perf_counter() - start

    one = counts.filter(pl.col("slice") == 0)
    one = one.select(pl.col("gold", "pred").repeat_by("n").explode())
    gold, pred = one["gold"].to_numpy(), one["pred"].to_numpy()
    done, start = 0, time.perf_counter()
    while time.perf_counter() - start < 1 or done < 3:
        pick = rng.integers(0, rows, rows)
        matthews_corrcoef(gold[pick], pred[pick])
        done += 1
    theirs = (time.perf_counter() - start) / done * 200 * n_boot
    print_row(rows, f"{theirs / ours:.0f}", f"{ours:.1f}", f"{theirs:.0f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("logs", help="a folder for logs of 1 GB")
    parser.add_argument("--rows", type=int, default=8_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--n-boot", type=int, default=10_000)
    parser.add_argument("--only", default="", help="logs with this in their name")
    parser.add_argument("--again", type=int, help="how often one process asks")
    parser.add_argument("--query", choices=QUERIES, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.query:
        run(args.query, args.logs, args.again or 1)
        return
    if args.again:
        again(Path(args.logs), args.rows, args.again)
        return
    intervals(Path(args.logs), args.rows, args.rounds, args.only)
    print(f"\n{args.n_boot} replicates of 200 slices of 10 classes; scikit-learn is extrapolated\n")
    times_rows = "resampled rows (scikit-learn) / counts"
    print_head(["rows of a slice"], [times_rows, "counts, s", "rows, s"])
    for rows in (1000, 100_000):
        bootstrap(rows, args.n_boot)


if __name__ == "__main__":
    main()
