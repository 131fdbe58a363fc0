"""Labels in another frame of another engine: the engine joins each once, by an id."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import narwhals.stable.v2 as nw
import polars as pl

from polars_mcc._frame.columns import NamedColumns
from polars_mcc._frame.engines import Engine, EngineQuery, collected
from polars_mcc._frame.labels import of_two_labels

_NEWEST, _OTHER = "polars_mcc_newest", "polars_mcc_other"


def joined_by_engine(
    source: Engine,
    outcomes: Engine,
    ids: NamedColumns,
    gold: NamedColumns,
    latest: NamedColumns | None,
) -> Engine:
    """The predictions, each beside its label. On `collect`, the engine looks for two labels first.

    The columns are named, and checked.
    """
    columns = {"on": ids, "gold": gold, **({} if latest is None else {"latest": latest})}
    outcomes.check(columns)
    keys = outcomes.named(ids.given)
    used = (name for named in columns.values() for name in outcomes.named(named.given))
    rows = outcomes.frame.select(*used)
    rows = rows.filter(*(~nw.col(key).is_null() for key in keys))
    if latest is not None:
        time = nw.col(latest.name)
        newest = rows.group_by(*keys).agg(time.max().alias(_NEWEST))
        rows = _beside(rows, newest, keys)
        rows = rows.filter((time == nw.col(_NEWEST)) | nw.col(_NEWEST).is_null())
    label = nw.col(gold.name)
    labels = rows.group_by(*keys).agg(label.min(), label.max().alias(_OTHER))
    twice = labels.filter(label != nw.col(_OTHER)).head(1)

    def check() -> None:
        dtypes = {name: outcomes.schema[name] for name in (*keys, gold.name)}
        of_two = collected(twice, {**dtypes, _OTHER: dtypes[gold.name]})
        for row in of_two.iter_rows(named=True):
            which, labels = [(key, row[key]) for key in keys], (row[gold.name], row[_OTHER])
            named = None if latest is None else latest.name
            msg = "".join(map(str, of_two_labels(which, labels, gold.name, named)))
            raise pl.exceptions.InvalidOperationError(msg)

    frame = _beside(source.frame, labels.drop(_OTHER), keys)
    return replace(source, frame=frame, check_rows=check)


def _beside(rows: EngineQuery, of_ids: Any, keys: Sequence[str]) -> EngineQuery:  # noqa: ANN401 - of the same kind
    """Join a row per id to the rows with this id."""
    return rows.join(of_ids, on=[*keys], how="left")
