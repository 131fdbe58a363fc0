"""Count on a Polars cluster, and score the counts here: in Polars Cloud, or on your own machines.

    python examples/on_a_polars_cluster.py "s3://bucket/logs/*.parquet" s3://bucket/counts/

The cluster needs `pip install polars-cloud` and a workspace. Without arguments, the script sends
the plan to another process, as it would to a cluster. A worker needs Polars, not polars_mcc.
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
pl.LazyFrame.deserialize(sys.argv[1]).sink_parquet(sys.argv[2])
assert "polars_mcc" not in sys.modules
"""


def on_a_cluster(logs: str, counted: str) -> None:
    """Workers count their files, exchange the counts, and write them."""
    query = pl.scan_parquet(logs).mcc(portable=True).counts("country", "device")
    query.remote().distributed().sink_parquet(counted).await_result()
    counts = pl.read_parquet(f"{counted}*.parquet")
    # Intervals and tests need the counts, not the rows.
    print(counts.mcc(weight="n").by("country", "device", ci=0.95))


def in_another_process() -> None:
    query = pl.scan_parquet(DIGITS).mcc(portable=True).counts("ink_band", "fold")
    with tempfile.TemporaryDirectory() as folder:
        plan, counted = Path(folder, "plan.bin"), Path(folder, "counts.parquet")
        query.serialize(plan)
        print(f"Another process runs the plan of {plan.stat().st_size} bytes.")
        subprocess.run([sys.executable, "-c", WORKER, str(plan), str(counted)], check=True)  # noqa: S603
        counts = pl.read_parquet(counted)
    print(f"{counts['n'].sum()} rows come back as {counts.height} counts:")
    log = counts.mcc(weight="n")
    print(log.by("ink_band", ci=0.95))
    print(log.contrast("ink_band").select("ink_band", "score", "diff", "verdict"))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        on_a_cluster(*sys.argv[1:])
    else:
        in_another_process()
