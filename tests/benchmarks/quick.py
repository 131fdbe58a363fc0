"""A short part of all tables of speed and memory, in two minutes: see figures.py, `--quick`.

    python tests/benchmarks/quick.py LOGS [--rows 2_000_000] [--rounds 3]

Makes its logs in the folder LOGS, once. A query and what it is compared with take turns in one
process, after a call of each that does not count; the table shows the ratio of the least times.
Turns end early after ten seconds. The peak of memory is that of the query in a new process.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path

import polars as pl
import report_cost
import scores_cost
import sets_cost
import speed
from measuring import apart, in_turns, parsed, peak, print_head, print_row

Call = Callable[[Path, int], object]


def of_speed(workload: str, query: str) -> Call:
    chosen = speed.BY_NAME[workload]
    return lambda logs, rows: speed.QUERIES[query](chosen, chosen.folder(logs, rows))


def of_sets(query: str) -> Call:
    def call(logs: Path, rows: int) -> object:
        files = f"{logs}/ten-keys-{rows}/*.parquet"
        return sets_cost.QUERIES[query](pl.scan_parquet(files), files)

    return call


def of_scores(query: str) -> Call:
    def call(logs: Path, rows: int) -> object:
        files = f"{logs}/scores-{rows}/*.parquet"
        return scores_cost.QUERIES[query](pl.scan_parquet(files), f"'{files}'")

    return call


def of_report(query: str) -> Call:
    return lambda logs, rows: report_cost.answer(
        "long", logs / f"report-{rows}/long.parquet", query
    )


def calls() -> Mapping[tuple[str, str], tuple[Call, Call]]:
    """What is asked and what it is compared with: the names, and both calls."""
    found = {
        (f"`by`, {workload}", peer): (of_speed(workload, "polars_mcc"), of_speed(workload, peer))
        for workload, peer in (
            ("Boolean labels", "DuckDB, from pairs"),
            ("integer labels", "DuckDB, from pairs"),
            ("short text labels", "DuckDB, from pairs"),
            ("short text labels", "the plain plan"),
            ("1000 text labels", "DuckDB, from marginals"),
            ("100 000 text slices, 5 labels", "DuckDB, from pairs"),
            ("three models", "DuckDB, from pairs"),
        )
    }
    text = "short text labels"
    with_ci = of_speed(text, "with intervals"), of_speed(text, "polars_mcc")
    found[f"`by`, {text}, with intervals", "`by`"] = with_ci
    plain = "by, each of ten keys, the plain plan"
    pairs = [(sets_cost.ALONE, sets_cost.DUCKDB[0]), (sets_cost.ALONE, plain), *sets_cost.BESIDE]
    found |= {(query, peer): (of_sets(query), of_sets(peer)) for query, peer in pairs}
    joint = "DuckDB: joint counts"
    for query, peer in (
        ("by, roc_auc", scores_cost.BASE),
        ("by, three metrics", "Polars: count"),
        ("by, three metrics, with ci", "by, three metrics"),
        ("compare, roc_auc", joint),
    ):
        found[f"scores: {query}", peer] = of_scores(query), of_scores(peer)
    for form in ("md", "html"):
        found[f"report, {form}", "by of its keys"] = of_report(form), of_report("by")
    return found


def write_logs(logs: Path, rows: int) -> None:
    for name in ("Boolean", "integer", "short text", "1000 text", "100 000 text", "three models"):
        [workload] = [one for one in speed.WORKLOADS if one.name.startswith(name)]
        speed.write_logs(workload, rows, workload.folder(logs, rows))
    sets_cost.write_logs(logs / f"ten-keys-{rows}", rows)
    scores_cost.write_log(logs / f"scores-{rows}", rows)
    report_cost.write_log("long", logs / f"report-{rows}", rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("logs", type=Path, metavar="LOGS")
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="only questions with this in their name")
    parser.add_argument("--peak", type=int, help=argparse.SUPPRESS)
    args = parsed(parser, only="by")
    every = calls()
    if args.peak is not None:
        ours, _ = [*every.values()][args.peak]
        ours(args.logs, args.rows)
        print(peak())
        return
    args.logs.mkdir(parents=True, exist_ok=True)
    write_logs(args.logs, args.rows)
    print_head(["question", "beside"], ["times as long", "peak, MB"])
    for place, ((question, beside), (ours, base)) in enumerate(every.items()):
        if args.only not in question:
            continue
        both = {
            name: lambda call=call: call(args.logs, args.rows)
            for name, call in (("ours", ours), ("base", base))
        }
        seconds = in_turns(both, args.rounds + 1, patience=10)
        ratio = min(seconds["ours"][1:]) / min(seconds["base"][1:])
        [most] = apart(__file__, args.logs, "--rows", args.rows, "--peak", place)
        print_row(question, beside, f"{ratio:.2f}", f"{most:.0f}")


if __name__ == "__main__":
    main()
