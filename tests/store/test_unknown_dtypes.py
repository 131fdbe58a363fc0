"""What has no value has no dtype: it takes that of the first value, in a store and in a folder."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from itertools import cycle, product

import polars as pl
import pytest
from runner import invoke
from support import in_turn, some_slow

import polars_mcc
from polars_mcc import PredictionLog

DAY = dt.date(2026, 1, 1)
VALUES = {
    "integers": ([1, 0], [1, 1]),
    "texts": (["u", "v"], ["u", "u"]),
    "booleans": ([True, False], [True, True]),
    "floats": ([0.5, 1.5], [0.5, 0.5]),
    "dates": ([DAY, DAY.replace(day=2)], [DAY, DAY]),
    "times": ([dt.datetime(2026, 1, 1, 7), None], [dt.datetime(2026, 1, 1, 7)] * 2),
    "lists": ([["a"], ["b", "c"]], [["a"], ["a"]]),
}
FULL = ["parquet", "arrow"]
SIMPLE = [*FULL, "csv", "ndjson"]


def write(rows: pl.DataFrame, file) -> None:
    how = {"parquet": rows.write_parquet, "arrow": rows.write_ipc, "csv": rows.write_csv}
    how.get(file.suffix[1:], rows.write_ndjson)(file)


@in_turn(ending=SIMPLE, column=["key", "gold", None])
def test_the_first_value_tells_the_dtype_in_either_order(column, ending, tmp_path):
    reached = 0
    for (kind, (values, pred)), is_first in zip(VALUES.items(), cycle((True, False)), strict=False):
        if kind == "lists" and column == "gold":  # Whether a label is a list is a dtype of its own.
            continue
        if ending not in FULL and kind in {"dates", "times", "lists"}:
            continue
        place = tmp_path / f"{kind}{is_first}"
        place.mkdir()
        rows = pl.DataFrame({"key": values, "gold": values, "pred": pred})
        none = rows.clear() if column is None else rows.with_columns(pl.lit(None).alias(column))
        frames = [none, rows] if is_first else [rows, none]
        for name, frame in enumerate(frames):
            write(frame, file := place / f"{name}.{ending}")
            if name == 0 and file.stat().st_size == 0:
                continue
            polars_mcc.keep_counts(place, f"{place}.store", "key")
        want = Counter(
            (str(key), gold is not None) for frame in frames for key, gold, _ in frame.iter_rows()
        )
        kept = PredictionLog.from_store(f"{place}.store").by("key").collect()
        done = invoke("by", str(place), "--by", "key", "--format", "parquet")
        assert done.exit_code == 0, (kind, done.stderr)
        for found in (kept, pl.read_parquet(done.stdout_bytes)):
            counted = Counter()
            for row in found.iter_rows(named=True):
                counted[str(row["key"]), True] += row["n"]
                counted[str(row["key"]), False] += row["n_null"]
            assert +counted == want, (kind, found)
        assert kept.schema["key"] == pl.Series(values).dtype
        reached += 1
    assert reached == ((6 if column == "gold" else 7) if ending in FULL else 4)


@pytest.mark.parametrize("ending", ["csv", "ndjson"])
def test_a_file_without_a_byte_has_no_rows(ending, tmp_path):
    logs, store = tmp_path / "logs", tmp_path / "store"
    logs.mkdir()
    write(pl.DataFrame({"gold": [1, 0], "pred": [1, 1]}), logs / f"1.{ending}")
    (logs / f"0.{ending}").touch()
    (logs / f"2.{ending}").touch()
    for _ in range(2):
        kept = polars_mcc.keep_counts(logs, store)
        assert kept["rows"].to_list() == [0, 2, 0]
    assert set(kept["status"]) == {"unchanged"}
    assert '"n":2,' in invoke("by", str(logs), "--format", "ndjson").stdout
    refused = invoke("by", f"{logs}/0.{ending}")
    assert f"'{logs}/0.{ending}' has no columns: it is empty" in refused.stderr
    (logs / f"3.{ending}").touch()
    alone = invoke("counts", str(logs), "--out", str(store))
    assert alone.exit_code == 0
    assert alone.stderr.endswith("1 counted, 0 replaced, 3 unchanged\n")


def test_values_of_two_dtypes_stay_an_error(tmp_path):
    logs, store = tmp_path / "logs", tmp_path / "store"
    logs.mkdir()
    for name, key in {"0": [None, None], "1": ["a", "b"], "2": [1, 2]}.items():
        rows = pl.DataFrame({"key": key, "gold": [1, 0], "pred": [1, 1]})
        write(rows, logs / f"{name}.parquet")
    with pytest.raises(pl.exceptions.SchemaError, match="column 'key' is .* but .* in the store"):
        polars_mcc.keep_counts(logs, store, "key")
    assert PredictionLog.from_store(store).score().collect()["n"].item() == 4
    refused = invoke("by", str(logs), "--by", "key")
    assert f"column 'key' is String in '{logs}/1.parquet' but Int64 in '{logs}/2" in refused.stderr


@pytest.mark.parametrize("ending", some_slow(SIMPLE, "arrow", "ndjson"))
def test_labels_may_all_be_yet_to_come(ending, tmp_path):
    """On the first night there is no label, no row, no file; on the second there are labels."""
    reached = 0
    for first, latest in product(("no file", "no rows", "no label", "no byte"), (None, "at")):
        if first == "no byte" and ending in FULL:
            continue
        place = tmp_path / f"{first}{latest}"
        logs, labels = place / "logs", place / "labels"
        logs.mkdir(parents=True)
        labels.mkdir()
        options = {"outcomes": labels, "on": "id", "latest": latest, "recount": "all"}
        told = pl.DataFrame({"id": [1, 2], "gold": [0, 1], "at": [5, 5]})
        if first in {"no rows", "no label"}:
            nothing = told.clear() if first == "no rows" else told.with_columns(gold=None)
            write(nothing, labels / f"0.{ending}")
        if first == "no byte":
            (labels / f"0.{ending}").touch()
        waiting = []
        for night in (0, 1):
            ids = [2 * night + 1, 2 * night + 2]
            write(pl.DataFrame({"id": ids, "pred": [0, 0]}), logs / f"{night}.{ending}")
            polars_mcc.keep_counts(logs, place / "store", **options)
            score = PredictionLog.from_store(place / "store").score(metrics="accuracy").collect()
            waiting.append(score.select("n", "n_waiting", "accuracy").row(0))
            write(told, labels / f"0.{ending}")
        assert waiting == [(0, 2, None), (2, 2, 0.5)], (first, latest)
        reached += 1
    assert reached == (6 if ending in FULL else 8)
