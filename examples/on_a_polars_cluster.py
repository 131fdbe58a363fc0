"""Run a query on a Polars cluster: in Polars Cloud, or on your own machines.

    python examples/on_a_polars_cluster.py "s3://bucket/logs/*.parquet" s3://bucket/scores/

The cluster needs `pip install polars-cloud` and a workspace. Without arguments, the script sends
the query to another process, as it would to a cluster. A worker needs Polars, not polars_mcc.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import polars as pl

import polars_mcc  # noqa: F401 - registers the namespace

DIGITS = Path(__file__).parent.parent / "data" / "digits.parquet"
WORKER = """
import sys
import polars as pl
print(pl.LazyFrame.deserialize(sys.argv[1]).collect())
assert "polars_mcc" not in sys.modules
"""


def on_a_cluster(logs: str, scores: str) -> None:
    """Workers count their files, exchange the counts, and write the answer."""
    query = pl.scan_parquet(logs).mcc(portable=True).by("country", "device", ci=0.95)
    query.remote().distributed().sink_parquet(scores).await_result()
    print(pl.read_parquet(f"{scores}*.parquet"))


def in_another_process() -> None:
    query = pl.scan_parquet(DIGITS).mcc(portable=True).by("ink_band", ci=0.95)
    with tempfile.TemporaryDirectory() as folder:
        plan = Path(folder, "plan.bin")
        query.serialize(plan)
        print(f"Another process runs the plan of {plan.stat().st_size} bytes:", flush=True)
        command = [sys.executable, "-c", WORKER, str(plan)]
        done = subprocess.run(command, check=True, capture_output=True, encoding="utf-8")  # noqa: S603
        print(done.stdout)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        on_a_cluster(*sys.argv[1:])
    else:
        in_another_process()
