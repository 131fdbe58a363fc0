"""Labels in another frame of another engine: the engine joins each once, by an id."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import narwhals.stable.v2 as nw
import polars as pl

from polars_mcc._frame.columns import NamedColumns
from polars_mcc._frame.engines import Engine, EngineQuery, collected

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
    of_time = {} if latest is None else {"latest": latest}
    outcomes.check({"on": ids, "gold": gold, **of_time})
    keys = outcomes.named(ids.given)
    rows = outcomes.frame.select(*keys, *outcomes.named(gold.given), *_names(outcomes, latest))
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
            which = ", ".join(f"{key} {row[key]}" for key in keys)
            what = "two labels" if latest is None else f"two labels at its newest '{latest.name}'"
            way = "" if latest is not None else "name the time of a label as latest, or "
            msg = (
                f"{which} has {what} in '{gold.name}', {row[gold.name]!r} and {row[_OTHER]!r}; "
                f"{way}keep one of them"
            )
            raise pl.exceptions.InvalidOperationError(msg)

    frame = _beside(source.frame, labels.drop(_OTHER), keys)
    return replace(source, frame=frame, check_rows=check)


def _names(engine: Engine, columns: NamedColumns | None) -> Sequence[str]:
    return [] if columns is None else engine.named(columns.given)


def _beside(rows: EngineQuery, of_ids: Any, keys: Sequence[str]) -> EngineQuery:  # noqa: ANN401 - of the same kind
    """Join a row per id to the rows with this id."""
    return rows.join(of_ids, on=[*keys], how="left")
