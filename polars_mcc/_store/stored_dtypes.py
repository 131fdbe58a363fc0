"""Dtypes of Polars that a Delta table does not have: how they are stored, and restored."""

from __future__ import annotations

import base64
import io

import polars as pl
from polars.datatypes import DataType, DataTypeClass

_DELTA_DTYPES: dict[DataTypeClass, DataType] = {
    pl.UInt8: pl.Int16(),
    pl.UInt16: pl.Int32(),
    pl.UInt32: pl.Int64(),
    pl.UInt64: pl.Decimal(20, 0),
    pl.Int128: pl.Decimal(38, 0),
    pl.Float16: pl.Float32(),
    pl.Enum: pl.String(),
    pl.Categorical: pl.String(),
    pl.Null: pl.String(),
    pl.Time: pl.Int64(),
    pl.Duration: pl.Int64(),
}
"""Times are stored as nanoseconds since midnight, durations in their own unit."""


def delta_dtype(dtype: DataType | DataTypeClass) -> DataType | DataTypeClass:
    """A dtype of Delta that holds every value of a dtype of Polars."""
    if isinstance(dtype, pl.Datetime):
        if dtype.time_unit == "ns":  # Delta has microseconds.
            return pl.Int64()
        return pl.Datetime("us", "UTC" if dtype.time_zone else None)
    if isinstance(dtype, (pl.List, pl.Array)):
        return pl.List(delta_dtype(dtype.inner))
    if isinstance(dtype, pl.Struct):
        return pl.Struct({field.name: delta_dtype(field.dtype) for field in dtype.fields})
    return _DELTA_DTYPES.get(dtype.base_type(), dtype)


def schema_as_text(schema: pl.Schema) -> str:
    """A schema as text: the base64 of an empty file of Arrow IPC."""
    file = io.BytesIO()
    pl.DataFrame(schema=schema).write_ipc(file)
    return base64.b64encode(file.getvalue()).decode()


def schema_of_text(text: str) -> pl.Schema:
    """The schema of such a text."""
    return pl.read_ipc(io.BytesIO(base64.b64decode(text))).schema
