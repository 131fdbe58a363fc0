"""How long it takes to score the slices of a Parquet log, compared with peers.

    python tests/benchmarks/speed.py LOGS

makes its logs in the folder LOGS (seeded; once), runs polars_mcc and a peer in turn, and prints
two Markdown tables. The first table is what a user feels: each run is a new process, with imports.
It shows the median and the range of the ratios, peaks of memory, and the largest difference of the
scores. The second table is what the engine does: warm calls, in turns in one process, without the
first call of each. Runs repeat `--rounds` times. In the first table they stop earlier if a peer has
taken `--patience` seconds. Two tables more have the fastest query of DuckDB for each log, and a
third one has what is beside DuckDB: the command line and scikit-learn, on short text labels.

The floor is what any query of Polars must do: decode the columns, and hash their values.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

from measuring import print_head, print_row

FILES = 8
DAYS = 8


@dataclass(frozen=True)
class Workload:
    """A kind of log, and the keys and models to score."""

    name: str
    labels: str
    classes: int = 10
    slices: int = 200
    slice_dtype: str = "string"
    keys: Sequence[str] = ("slice",)
    models: int = 1
    days: int = 0
    """If not 0, the log has hive partitions by day, and the second half of them is scored."""
    device: str = ""
    """If not empty, only the rows of this device are scored."""
    repeat: int = 1
    """How many times each file is read, for logs larger than the disk."""

    @property
    def preds(self) -> list[str]:
        return [f"model_{i}" for i in range(self.models)]

    def folder(self, logs: Path, rows: int) -> Path:
        shape = f"{self.labels}-{self.classes}x{self.slice_dtype}-{self.slices}"
        return logs / f"{shape}-{self.models}-{self.days}-{rows}"


SHORT_TEXT = "short text labels"
WORKLOADS = [
    Workload("Boolean labels", "boolean", classes=2),
    Workload("integer labels", "integer"),
    Workload("8-bit labels, 16-bit slices", "int8", slice_dtype="int16"),
    Workload("Enum labels", "enum"),
    Workload(SHORT_TEXT, "short"),
    Workload("long text labels", "long"),
    Workload("1000 text labels", "short", classes=1000),
    Workload("100 000 text slices, 5 labels", "short", classes=5, slices=100_000),
    Workload(
        "100 000 integer slices, 5 labels",
        "short",
        classes=5,
        slices=100_000,
        slice_dtype="integer",
    ),
    Workload("two keys", "short", keys=("slice", "device")),
    Workload("three models", "short", models=3),
    Workload("hive partitions, half of them", "short", days=DAYS),
    Workload("one device of four", "short", device="phone"),
]
BY_NAME = {workload.name: workload for workload in WORKLOADS}
GROWTH = [1, 2, 5, 10, 50]


def write_logs(workload: Workload, rows: int, folder: Path) -> None:
    """Write the log of a workload, unless it exists."""
    import numpy as np
    import polars as pl

    if folder.exists():
        return
    partial = folder.with_name(folder.name + ".partial")
    text = {"short": "label-{}", "long": "a-rather-long-label-of-the-class-{:04}"}
    formatted = [text.get(workload.labels, "{}").format(k) for k in range(workload.classes)]
    names = pl.Series(formatted, dtype=pl.Enum(formatted) if workload.labels == "enum" else None)

    numbers = {"boolean": pl.Boolean, "integer": pl.Int64, "int8": pl.Int8}
    slice_dtypes = {"string": pl.String, "integer": pl.Int64, "int16": pl.Int16}

    def label(codes: np.ndarray) -> pl.Series:
        if workload.labels in numbers:
            return pl.Series(codes).cast(numbers[workload.labels])
        return names.gather(codes)

    for part in range(FILES):
        rng = np.random.default_rng(part)
        n = rows * (part + 1) // FILES - rows * part // FILES
        slices = pl.Series(rng.integers(0, workload.slices, n))
        gold = rng.integers(0, workload.classes, n)
        columns = {
            "slice": (
                "slice-" + slices.cast(pl.String)
                if workload.slice_dtype == "string"
                else slices.cast(slice_dtypes[workload.slice_dtype])
            ),
            "device": pl.Series(["phone", "tablet", "desktop", "tv"]).gather(rng.integers(0, 4, n)),
            "gold": label(gold),
        }
        for model, pred in enumerate(workload.preds):
            is_right = rng.random(n) < 0.8 + 0.05 * model
            columns[pred] = label(np.where(is_right, gold, rng.integers(0, workload.classes, n)))
        day = partial / f"day=2026-01-{part + 1:02}" if workload.days else partial
        day.mkdir(parents=True, exist_ok=True)
        pl.DataFrame(columns).write_parquet(day / f"{part}.parquet")
    partial.rename(folder)


def files(workload: Workload, folder: Path) -> list[str]:
    found = sorted(str(file) for file in folder.glob("**/*.parquet"))
    return found * workload.repeat


# The queries. Each imports what it needs, as a user's process would.


def scan(workload: Workload, folder: Path):
    import datetime as dt

    import polars as pl

    log = pl.scan_parquet(files(workload, folder), hive_partitioning=workload.days > 0)
    if workload.days:
        log = log.filter(pl.col("day") > dt.date(2026, 1, workload.days // 2))
    return log.filter(pl.col("device") == workload.device) if workload.device else log


def polars_mcc(workload: Workload, folder: Path):
    import polars_mcc

    pred = workload.preds if workload.models > 1 else workload.preds[0]
    return polars_mcc.PredictionLog(scan(workload, folder), pred=pred).by(*workload.keys).collect()


def portable(workload: Workload, folder: Path):
    """The same scores by a plan of Polars' own expressions, without the codes of the files."""
    import polars_mcc

    pred = workload.preds if workload.models > 1 else workload.preds[0]
    log = polars_mcc.PredictionLog(scan(workload, folder), pred=pred, portable=True)
    return log.by(*workload.keys).collect()


def interval(workload: Workload, folder: Path):
    """The same scores, with intervals."""
    import polars_mcc

    [pred] = workload.preds
    log = polars_mcc.PredictionLog(scan(workload, folder), pred=pred)
    return log.by(*workload.keys, ci=0.95).collect()


def shell(workload: Workload, folder: Path) -> None:
    """The same scores, by the command line. It writes a table of text."""
    from contextlib import redirect_stdout, suppress

    from polars_mcc.__main__ import main

    sys.argv = ["polars-mcc", "by", *files(workload, folder)]
    sys.argv += [text for key in workload.keys for text in ("--by", key)]
    sys.argv += [text for pred in workload.preds for text in ("--pred", pred)]
    with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere), suppress(SystemExit):
        main()


def floor(workload: Workload, folder: Path) -> None:
    import polars as pl

    columns = pl.col(*workload.keys, "gold", *workload.preds)
    scan(workload, folder).select(columns.hash().max()).collect()


def plain(workload: Workload, folder: Path) -> None:
    """Only the pairs, by a plain group by, without the scores."""
    import polars as pl

    log = scan(workload, folder)
    pl.collect_all(
        [log.group_by(*workload.keys, "gold", pred).agg(pl.len()) for pred in workload.preds]
    )


def duckdb_pairs(workload: Workload, folder: Path):
    return _duckdb(
        workload,
        folder,
        """WITH pairs AS (
            SELECT {keys}, gold, {pred} AS pred, count(*) AS n FROM {log} GROUP BY ALL
        ), classes AS (
            SELECT {keys}, k, sum(t) AS t, sum(p) AS p, sum(c) AS c FROM (
                SELECT {keys}, gold AS k, n AS t, 0 AS p, if(gold = pred, n, 0) AS c FROM pairs
                UNION ALL SELECT {keys}, pred, 0, n, 0 FROM pairs
            ) GROUP BY ALL""",
    )


def duckdb_marginals(workload: Workload, folder: Path):
    return _duckdb(
        workload,
        folder,
        """WITH classes AS (
            SELECT {keys}, k, sum(t) AS t, sum(p) AS p, sum(c) AS c FROM (
                SELECT {keys}, gold AS k, count(*) AS t, 0 AS p,
                    count(*) FILTER (gold = {pred}) AS c FROM {log} GROUP BY ALL
                UNION ALL
                SELECT {keys}, {pred}, 0, count(*), 0 FROM {log} GROUP BY ALL
            ) GROUP BY ALL""",
    )


def duckdb_joint(workload: Workload, folder: Path):
    """Count the pairs of all models in one group by: each combination of their labels."""
    return _duckdb(
        workload,
        folder,
        """WITH pairs AS (
            SELECT {keys}, gold, {pred} AS pred, sum(n)::BIGINT AS n FROM joint GROUP BY ALL
        ), classes AS (
            SELECT {keys}, k, sum(t) AS t, sum(p) AS p, sum(c) AS c FROM (
                SELECT {keys}, gold AS k, n AS t, 0 AS p, if(gold = pred, n, 0) AS c FROM pairs
                UNION ALL SELECT {keys}, pred, 0, n, 0 FROM pairs
            ) GROUP BY ALL""",
        """WITH joint AS MATERIALIZED (
            SELECT {keys}, gold, {preds}, count(*) AS n FROM {log} GROUP BY ALL
        ) """,
    )


def _duckdb(workload: Workload, folder: Path, classes: str, before: str = ""):
    import duckdb

    log = f"read_parquet({files(workload, folder)}, hive_partitioning = {workload.days > 0})"
    if workload.days:
        log = f"(SELECT * FROM {log} WHERE day > DATE '2026-01-{workload.days // 2:02}')"
    if workload.device:
        log = f"(SELECT * FROM {log} WHERE device = '{workload.device}')"
    keys = ", ".join(workload.keys)
    scores = f"""), sums AS (
            SELECT {keys}, sum(t) AS s, sum(c) AS c, sum(t * p) AS tp, sum(t * t) AS tt,
                sum(p * p) AS pp FROM classes GROUP BY ALL
        ) SELECT {keys}, {{model}} s AS n, (c * s - tp) / sqrt((s * s - pp) * (s * s - tt)) AS mcc
        FROM sums"""
    classes = classes.replace("{log}", log)
    before = before.format(keys=keys, log=log, preds=", ".join(workload.preds))
    query = before + " UNION ALL ".join(
        "("
        + (classes + scores).format(
            keys=keys, pred=pred, model=f"'{pred}' AS model," * (workload.models > 1)
        )
        + ")"
        for pred in workload.preds
    )
    return duckdb.sql(f"{query} ORDER BY ALL").materialize()


def pandas_scikit_learn(workload: Workload, folder: Path):
    import pandas as pd
    from sklearn.metrics import matthews_corrcoef

    [pred] = workload.preds
    log = pd.read_parquet(folder, columns=[*workload.keys, "gold", pred])
    groups = log.groupby(list(workload.keys), observed=True)
    scores = groups[["gold", pred]].apply(lambda rows: matthews_corrcoef(rows["gold"], rows[pred]))
    return scores.rename("mcc").reset_index()


def map_groups_scikit_learn(workload: Workload, folder: Path):
    import polars as pl
    from sklearn.metrics import matthews_corrcoef

    [pred] = workload.preds

    def score(rows: pl.DataFrame) -> pl.DataFrame:
        mcc = matthews_corrcoef(rows["gold"].to_numpy(), rows[pred].to_numpy())
        return rows.select(*workload.keys).head(1).with_columns(mcc=mcc)

    log = scan(workload, folder).select(*workload.keys, "gold", pred).collect()
    return log.group_by(*workload.keys).map_groups(score)


def fairlearn(workload: Workload, folder: Path):
    import pandas as pd
    from fairlearn.metrics import MetricFrame
    from sklearn.metrics import matthews_corrcoef

    [pred] = workload.preds
    log = pd.read_parquet(folder, columns=[*workload.keys, "gold", pred])
    frame = MetricFrame(
        metrics=matthews_corrcoef,
        y_true=log["gold"],
        y_pred=log[pred],
        sensitive_features=log[list(workload.keys)],
    )
    return frame.by_group.rename("mcc").reset_index()


def polars_ds(workload: Workload, folder: Path):
    import polars_ds as pds

    [pred] = workload.preds
    mcc = pds.query_mcc("gold", pred)
    return scan(workload, folder).group_by(*workload.keys).agg(mcc=mcc).collect()


QUERIES: dict[str, Callable] = {
    "polars_mcc": polars_mcc,
    "the plain plan": portable,
    "with intervals": interval,
    "the command line": shell,
    "floor": floor,
    "DuckDB, from pairs": duckdb_pairs,
    "DuckDB, from marginals": duckdb_marginals,
    "DuckDB, from joint pairs": duckdb_joint,
    "Polars, pairs only": plain,
    "pandas, scikit-learn": pandas_scikit_learn,
    "map_groups, scikit-learn": map_groups_scikit_learn,
    "fairlearn": fairlearn,
    "polars_ds": polars_ds,
}


def scores(workload: Workload, answer) -> dict[str, float]:
    """The score of each slice, from the answer of a query."""
    keys = [*workload.keys, *(["model"] if workload.models > 1 else [])]
    if hasattr(answer, "materialize"):
        rows = answer.project(", ".join([*keys, "mcc"])).fetchall()
    elif hasattr(answer, "itertuples"):
        rows = answer[[*keys, "mcc"]].itertuples(index=False)
    else:
        rows = answer.select(*keys, "mcc").rows()
    return {"/".join(map(str, row[:-1])): row[-1] for row in rows}


class Run(NamedTuple):
    seconds: float
    megabytes: float


def run(query: str, workload: Workload, folder: Path, answer: Path | None = None) -> Run:
    """Run a query in a new process."""
    command = [sys.executable, __file__, str(folder), "--query", query]
    command += ["--workload", json.dumps(asdict(workload))]
    command += ["--answer", str(answer)] if answer else []
    start = time.perf_counter()
    process = subprocess.Popen(command)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    if status:
        sys.exit(f"{query} failed on {workload.name}")
    return Run(seconds, usage.ru_maxrss / 1024)


def difference(peer: str, workload: Workload, folder: Path) -> str:
    """The largest difference between the scores of a peer and ours."""
    with tempfile.TemporaryDirectory() as answers:
        paths = [Path(answers, name) for name in ("ours.json", "theirs.json")]
        for query, path in zip(("polars_mcc", peer), paths, strict=True):
            run(query, workload, folder, path)
        ours, theirs = (json.loads(path.read_text("utf-8")) for path in paths)
    if not theirs:
        return ""
    assert ours.keys() == theirs.keys(), (peer, workload.name)
    most = max(abs(ours[key] - mcc) for key, mcc in theirs.items() if not math.isnan(mcc))
    return f"{most:.0e}" if most else "0"


def compared(
    workload: Workload, peer: str, ours: Sequence[float], theirs: Sequence[float], *, digits: int
) -> list[str]:
    """The first cells of a row of either table, from the seconds of each round."""
    ratios = [a / b for a, b in zip(ours, theirs, strict=True)]
    return [
        workload.name,
        peer,
        f"{statistics.median(ratios):.2f}",
        f"{min(ratios):.2f} to {max(ratios):.2f}",
        *(f"{statistics.median(seconds):.{digits}f}" for seconds in (ours, theirs)),
    ]


def beside(peer: str, workload: Workload, folder: Path, rounds: int, patience: float) -> list[str]:
    """A row of the first table: ours and a peer, in turn."""
    ours, theirs = [], []
    while len(theirs) < rounds and sum(run.seconds for run in theirs) <= patience:
        ours.append(run("polars_mcc", workload, folder))
        theirs.append(run(peer, workload, folder))
    seconds = [[run.seconds for run in runs] for runs in (ours, theirs)]
    return [
        *compared(workload, peer, *seconds, digits=2),
        f"{max(run.megabytes for run in ours):.0f}",
        f"{max(run.megabytes for run in theirs):.0f}",
        difference(peer, workload, folder),
    ]


def warm(
    workload: Workload, folder: Path, others: Sequence[str], rounds: int
) -> Iterator[list[str]]:
    """Rows of the second table: ours and peers, in turns in one process."""
    command = [sys.executable, __file__, str(folder), "--query", *["polars_mcc", *others]]
    command += ["--workload", json.dumps(asdict(workload)), "--rounds", str(rounds)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds = json.loads(done.stdout)
    ours = seconds.pop("polars_mcc")
    for peer, theirs in seconds.items():
        yield compared(workload, peer, ours, theirs, digits=3)


def in_turns(queries: Sequence[str], workload: Workload, folder: Path, rounds: int) -> None:
    """Run queries in turns, and print the seconds of each round but the first."""
    seconds: dict[str, list[float]] = {query: [] for query in queries}
    for _ in range(rounds + 1):
        for query, times in seconds.items():
            start = time.perf_counter()
            QUERIES[query](workload, folder)
            times.append(time.perf_counter() - start)
    print(json.dumps({query: times[1:] for query, times in seconds.items()}))


def peers(workload: Workload) -> Iterator[str]:
    yield from engines(workload)
    yield "Polars, pairs only"
    if workload.labels == "boolean":
        yield "polars_ds"
    if workload.name == SHORT_TEXT:
        yield from [
            "the command line",
            "map_groups, scikit-learn",
            "pandas, scikit-learn",
            "fairlearn",
        ]


def engines(workload: Workload) -> Iterator[str]:
    """The peers that warm calls are compared with."""
    yield from ["DuckDB, from pairs", "DuckDB, from marginals", "the plain plan"]
    if workload.models > 1:
        yield "DuckDB, from joint pairs"
    elif workload.classes < 100:
        yield "with intervals"
    yield "floor"


def growth(rows: int) -> Iterator[tuple[Workload, int]]:
    """Logs that grow in rows, in slices, or in labels, with the number of rows to write."""
    short = BY_NAME[SHORT_TEXT]
    for times in GROWTH:
        yield replace(short, name=f"{times} × {rows // 20} rows", repeat=times), rows // 20
    for times in GROWTH:
        slices = times * short.slices
        yield replace(short, name=f"{rows // 4} rows, {slices} slices", slices=slices), rows // 4
    for times in GROWTH:
        classes = times * short.classes
        name = f"{rows // 4} rows, {classes} labels"
        yield replace(short, name=name, classes=classes), rows // 4


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("logs", type=Path, help="a folder for the logs")
    parser.add_argument("--rows", type=int, default=8_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--patience", type=float, default=30, help="seconds that a peer may take")
    parser.add_argument("--only", nargs="*", default=[""], help="only logs with this in their name")
    parser.add_argument("--peers", nargs="*", default=[""], help="only peers with this in theirs")
    parser.add_argument("--query", choices=QUERIES, nargs="+", help=argparse.SUPPRESS)
    parser.add_argument("--workload", type=json.loads, help=argparse.SUPPRESS)
    parser.add_argument("--answer", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.query:
        workload = Workload(**args.workload)
        if len(args.query) > 1:
            in_turns(args.query, workload, args.logs, args.rounds)
            return
        answer = QUERIES[args.query[0]](workload, args.logs)
        if args.answer:
            found = {} if answer is None else scores(workload, answer)
            args.answer.write_text(json.dumps(found))
        return

    versions = (f"{name} {version(name)}" for name in ("polars", "duckdb"))
    python = platform.python_version()
    print(f"{args.rows} rows, {os.cpu_count()} cores, Python {python}, {', '.join(versions)}\n")
    whole, in_process = print_whole_processes(args), print_warm_calls(args)
    print_fastest("whole processes", WHOLE, whole)
    print_fastest("warm calls", WARM, in_process)
    print_beside(whole)


WARM = ["ours / peer", "range", "ours, s", "peer, s"]
WHOLE = [*WARM, "ours, MB", "peer, MB"]


def is_asked(name: str, texts: Sequence[str]) -> bool:
    return any(text in name for text in texts)


def print_whole_processes(args: argparse.Namespace) -> list[list[str]]:
    print_head(["log", "each peer"], [*WHOLE, "differ"])
    tasks = [(workload, args.rows, list(peers(workload))) for workload in WORKLOADS]
    tasks += [(workload, rows, ["DuckDB, from pairs"]) for workload, rows in growth(args.rows)]
    found = []
    for workload, rows, beside_whom in tasks:
        if not is_asked(workload.name, args.only):
            continue
        folder = workload.folder(args.logs, rows)
        # In a new process, because the peak of memory of a process starts at its parent's peak.
        with ProcessPoolExecutor(1, get_context("spawn")) as writer:
            writer.submit(write_logs, workload, rows, folder).result()
        for peer in beside_whom:
            if is_asked(peer, args.peers):
                found.append(beside(peer, workload, folder, args.rounds, args.patience))
                print_row(*found[-1])
    return found


def print_warm_calls(args: argparse.Namespace) -> list[list[str]]:
    print("\nwarm, in turns in one process:\n")
    print_head(["log", "each peer"], WARM)
    found = []
    for workload in WORKLOADS:
        others = [peer for peer in engines(workload) if is_asked(peer, args.peers)]
        if is_asked(workload.name, args.only) and others:
            folder = workload.folder(args.logs, args.rows)
            for row in warm(workload, folder, others, args.rounds):
                found.append(row)
                print_row(*row)
    return found


def print_fastest(title: str, figures: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table of the fastest query of DuckDB for each log."""
    print(f"\nthe fastest query of DuckDB, {title}:\n")
    print_head(["log"], ["peer", *figures])  # another query may be the fastest next time
    for name in BY_NAME:
        of_log = [row for row in rows if row[0] == name and row[1].startswith("DuckDB")]
        if of_log:
            fastest = max(of_log, key=lambda row: float(row[2]))
            print_row(*fastest[: 2 + len(figures)])


def print_beside(rows: Sequence[Sequence[str]]) -> None:
    """A table of the peers but DuckDB, on short text labels."""
    print("\nbeside DuckDB, whole processes:\n")
    print_head(["beside DuckDB"], WHOLE)
    for name, peer, *figures in rows:
        if name == SHORT_TEXT and not peer.startswith("DuckDB"):
            print_row(peer, *figures[: len(WHOLE)])


if __name__ == "__main__":
    main()
