"""The cost of a report, compared with one `by` of its keys: seconds, memory, size of the page.

    python tests/benchmarks/report_cost.py LOGS [--rows 20_000_000] [--rounds 3]

Makes three logs once, in the folder LOGS. The long log has two keys, two models, ten text labels.
The wide log has a twentieth of the rows, five keys of 1000, 300, 3, 4 and 24 values, and 40 labels.
The short log has 7,000 rows at most, two labels, and six keys, two of which are numbers to bin.
Queries run in turn, each in a new process. The table shows medians.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from pathlib import Path

import numpy as np
import polars as pl
from measuring import apart, peak, print_head, print_row

from polars_mcc import each

FORMATS = ("html", "md", "json")
LOGS = {
    "long": ({"country": 20, "device": 4}, 10, ["pred", "other"]),
    "wide": ({"shop": 1000, "town": 300, "size": 3, "device": 4, "hour": 24}, 40, ["pred"]),
    "short": ({"sex": 2, "group": 6, "charge": 2, "age": 70, "priors": 38, "town": 9}, 2, ["pred"]),
}
NUMBERS = {"age", "priors"}
SHARES = {"long": 1, "wide": 20, "short": 2857}
"""One row of a log for so many of the long log."""


def write_log(name: str, folder: Path, rows: int) -> Path:
    path = folder / f"{name}.parquet"
    if path.exists():
        return path
    rng = np.random.default_rng(0)
    keys, classes, models = LOGS[name]
    labels = pl.Series([f"label_{place:02}" for place in range(classes)])
    gold = rng.integers(0, classes, rows)
    columns = {}
    for key, values in keys.items():
        names = [place if key in NUMBERS else f"{key}_{place}" for place in range(values)]
        columns[key] = pl.Series(names).gather(rng.integers(0, values, rows))
    for model in models:
        pred = np.where(rng.random(rows) < 0.85, gold, rng.integers(0, classes, rows))
        columns[model] = labels.gather(pred)
    folder.mkdir(parents=True, exist_ok=True)
    pl.DataFrame({**columns, "gold": labels.gather(gold)}).write_parquet(path)
    return path


def answer(name: str, path: Path, query: str) -> str:
    """The report in a format; for "by", its keys are scored, and there is no text."""
    keys, _, models = LOGS[name]
    log = pl.scan_parquet(path).mcc(pred=models)
    if query != "by":
        return log.report(*keys, format=query)
    log.by(each(*keys, total=True), ci=0.95).collect()
    return ""


def ask(name: str, path: Path, query: str) -> None:
    """Run a query in this process; print seconds, peak memory in MB, and the text in MB."""
    start = time.perf_counter()
    text = answer(name, path, query)
    print(time.perf_counter() - start, peak(), len(text) / 1e6)


def asked(name: str, path: Path, query: str) -> list[float]:
    return apart(__file__, "--ask", name, path, query)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("logs", type=Path)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    print_head(["log", "query"], ["seconds", "times `by`", "peak, MB", "text, MB"])
    for name in LOGS:
        rows = max(arguments.rows // SHARES[name], 200)
        path = write_log(name, arguments.logs / f"report-{arguments.rows}", rows)
        rounds = [
            {query: asked(name, path, query) for query in ("by", *FORMATS)}
            for _ in range(arguments.rounds)
        ]
        for query in ("by", *FORMATS):
            took, most, size = (
                statistics.median(found[query][place] for found in rounds) for place in range(3)
            )
            ratio = statistics.median(found[query][0] / found["by"][0] for found in rounds)
            print_row(name, query, f"{took:.2f}", f"{ratio:.1f}", f"{most:.0f}", f"{size:.2f}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--ask"]:
        ask(sys.argv[2], Path(sys.argv[3]), sys.argv[4])
    else:
        main()
