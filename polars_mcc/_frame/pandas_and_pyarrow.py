"""Logs of pandas and PyArrow: each column that a question needs is converted, and no other.

Polars then counts the rows, and decides which labels are equal.
"""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import Any

import narwhals.stable.v2 as nw
import polars as pl
import pyarrow as pa

from polars_mcc._base.unstable_polars import deferred
from polars_mcc._frame.columns import Frame, IntoColumn, NamedColumns, Weighed
from polars_mcc._frame.engines import Engine, EngineQuery

_SAMPLE = 1000  # values of a column of objects that tell its dtype
_PLAIN = {
    *("boolean", "integer", "floating", "mixed-integer-float", "decimal", "string", "bytes"),
    *("time", "timedelta", "empty"),
}
"""Objects that Arrow converts without a loss, in the words of pandas."""
_FAILURES = (
    *(pa.ArrowException, pl.exceptions.PolarsError, pl.exceptions.PanicException),
    *(TypeError, ValueError, OverflowError, NotImplementedError),
)
_OF_TEXT = (pl.Categorical, pl.Enum)


@dataclass(frozen=True)
class InMemory(Engine):
    """A frame of pandas or PyArrow."""

    frame: Any

    @property
    def name(self) -> str:
        """The name of the library."""
        return "pyarrow" if isinstance(self.frame, pa.Table) else "pandas"

    @cached_property
    def schema(self) -> pl.Schema:
        """The columns, with their dtypes in Polars; Unknown if Polars has no such dtype."""
        return pl.Schema(
            {
                name: _dtype(self._column(place)) if not others else pl.Unknown()
                for name, (place, *others) in self._places.items()
            }
        )

    @cached_property
    def _places(self) -> Mapping[str, Sequence[int]]:
        """The places of each column, by its name as text: a name may be there twice."""
        is_table = isinstance(self.frame, pa.Table)
        places = defaultdict[str, list[int]](list)
        for place, name in enumerate(self.frame.column_names if is_table else self.frame.columns):
            places[str(name)].append(place)
        return places

    def _column(self, place: int) -> Any:  # noqa: ANN401 - of either library
        is_table = isinstance(self.frame, pa.Table)
        return self.frame.column(place) if is_table else self.frame.iloc[:, place]

    def count(self, columns: Sequence[str], name: str) -> EngineQuery:
        """The rows, counted by the library itself."""
        self.check_known(columns)
        places = [place for column in columns for place in self._places[column]]
        if isinstance(self.frame, pa.Table):
            return Engine(nw.from_native(self.frame.select(places))).count(columns, name)
        named = self.frame.iloc[:, places].set_axis([*columns], axis=1)
        return Engine(nw.from_native(named)).count(columns, name)

    def counted(
        self, columns: Iterable[IntoColumn], weight: NamedColumns | None, *, is_frequency: bool
    ) -> Weighed:
        """The columns, converted on `collect`. Polars counts their rows."""
        del is_frequency
        names = self.named([*columns, *(weight.given if weight else ())])
        dtypes = pl.Schema({name: self.schema[name] for name in names})
        rows = deferred(lambda: self.read(names), dtypes, once=True)
        if weight is None:
            return Weighed(rows, pl.lit(1, pl.Int64), None, pl.Int64())
        return Weighed(rows, weight.expr, weight.name, weight.dtype)

    def check_known(self, names: Iterable[str]) -> None:
        """Raise an error if Polars has no dtype for a column, or two columns have one name."""
        for name in names:
            place, *others = self._places[name]
            if others:
                msg = f"two columns of the {self.name} frame are called '{name}': rename one"
                raise pl.exceptions.DuplicateError(msg)
            if self.schema[name] == pl.Unknown:
                column = self._column(place)
                own = column.type if isinstance(column, pa.ChunkedArray) else column.dtype
                raise pl.exceptions.SchemaError(
                    f"column '{name}' is {own}, which Polars does not have: cast it in {self.name} "
                    "first"
                )

    def rows_in_memory(self) -> pl.DataFrame:
        """The columns that Polars knows, converted."""
        unknown = (pl.Unknown, pl.Object)
        known = [name for name, dtype in self.schema.items() if dtype not in unknown]
        return self.read(known)

    def read(self, names: Sequence[str]) -> pl.DataFrame:
        """Convert some columns."""
        return pl.DataFrame([self._series(name).alias(name) for name in names])

    def _series(self, name: str) -> pl.Series:
        [place] = self._places[name]
        dtype = self.schema[name]
        try:
            values = _converted(self._column(place))
            if values.dtype == dtype or isinstance(dtype, _OF_TEXT):
                return values.cast(dtype)
            why = f"some values are {values.dtype}"
        except _FAILURES as error:
            why = str(error).split("\n", 1)[0]
        msg = f"column '{name}' cannot be read as {dtype} ({why}): cast it in {self.name} first"
        raise pl.exceptions.SchemaError(msg)


def of(frame: object) -> Engine | Frame:
    """The engine of a native or narwhals frame. A Polars frame is returned as it is."""
    if isinstance(frame, Engine):
        return frame
    native = nw.to_native(frame, pass_through=True)
    if isinstance(native, Frame):
        return native
    if nw.dependencies.is_pandas_dataframe(native) or nw.dependencies.is_pyarrow_table(native):
        return InMemory(native)
    return Engine(nw.from_native(native))


def _dtype(column: Any) -> pl.DataType:  # noqa: ANN401 - of either library
    """The dtype of a column in Polars. Of objects, a few tell it."""
    is_table = isinstance(column, pa.ChunkedArray)
    try:
        if is_table or column.dtype.name not in {"category", "object"}:
            return _of_arrow(column.type if is_table else _in_arrow(column.iloc[:0]).type)
        if column.dtype.name == "object":
            return _of_objects(column[column.notna()])
        values = _categories(column)
    except _FAILURES:
        return pl.Unknown()
    if values.dtype != pl.String:
        return values.dtype
    return pl.Enum(values) if column.dtype.ordered else pl.Categorical()


def _of_objects(values: Any) -> pl.DataType:  # noqa: ANN401 - of pandas
    """The dtype of objects of one kind; else Object."""
    try:
        dtype = _converted(values.iloc[:_SAMPLE]).dtype
        return _converted(values).dtype if dtype.is_decimal() else dtype  # of the longest
    except _FAILURES:
        return pl.Object()


def _converted(column: Any) -> pl.Series:  # noqa: ANN401 - of either library
    """A column in Polars, or an error."""
    if isinstance(column, pa.ChunkedArray):
        return pl.Series(pl.from_arrow(column))
    if column.dtype.name == "category":
        codes = pl.Series(column.cat.codes.to_numpy())
        return _categories(column).gather(codes.set(codes < 0, None))
    if column.dtype == object:
        _check_one_kind(column)
    return pl.Series(pl.from_arrow(_in_arrow(column)))


def _categories(column: Any) -> pl.Series:  # noqa: ANN401 - of pandas
    """The values of a categorical column. Intervals, as of `pd.cut`, are text."""
    values = column.cat.categories
    if values.dtype.name.startswith("interval"):
        return pl.Series([*map(str, values)], dtype=pl.String)
    return _converted(values.to_series())


def _check_one_kind(values: Any) -> None:  # noqa: ANN401 - of pandas
    """Raise a TypeError if Arrow cannot convert objects without a loss."""
    kind = import_module("pandas.api.types").infer_dtype(values, skipna=True)
    if kind in _PLAIN:
        return
    times = values[values.notna()]
    if kind == "date" and not any(isinstance(time, dt.datetime) for time in times):
        return
    if kind == "datetime" and len({time.tzinfo for time in times}) == 1:
        return
    raise TypeError(f"its values are of kind {kind}")


def _in_arrow(column: Any) -> pa.Array | pa.ChunkedArray:  # noqa: ANN401 - of pandas
    array = pa.array(column, from_pandas=True)
    _of_arrow(array.type)
    return array


def _of_arrow(dtype: pa.DataType) -> pl.DataType:
    """The dtype in Polars, or a TypeError."""
    inner = dtype.value_type if pa.types.is_dictionary(dtype) else dtype
    is_timed = pa.types.is_timestamp(inner) and inner.tz
    # In Polars 2.1, an unknown zone or wide decimals inside a dictionary are a panic.
    if isinstance(inner, pa.BaseExtensionType) or pa.types.is_decimal256(inner):
        raise TypeError(f"Polars has no {dtype}")
    if is_timed:
        pl.from_arrow(pa.array([], inner))
    return pl.Series(pl.from_arrow(pa.chunked_array([], dtype))).dtype
