"""The benchmark runs, on small logs, and its peers agree with us."""

from __future__ import annotations

import subprocess
import sys

import duckdb
import pytest
from benchmarks import speed


@pytest.mark.skipif(duckdb.__version__ < "2", reason="the benchmark asks for DuckDB 2")
@pytest.mark.parametrize("workload", ["three models", "hive partitions, half of them"])
def test_speed_of_ours_and_of_duckdb(workload, tmp_path):
    command = [sys.executable, speed.__file__, str(tmp_path), "--rows", "8000", "--rounds", "1"]
    done = subprocess.run(
        [*command, "--only", workload, "--peers", "DuckDB"],
        capture_output=True,
        text=True,
        check=True,
    )
    _, _, header, _, *rows = done.stdout.splitlines()
    cells = [dict(zip(header.split(" | "), row.split(" | "), strict=True)) for row in rows]
    assert [row["peer"] for row in cells] == ["DuckDB, from pairs", "DuckDB, from marginals"]
    for row in cells:
        assert float(row["ours / peer"]) > 0
        assert float(row["differ |"].removesuffix(" |")) < 1e-14
