"""Logs of other engines: the engine counts the rows, and only counts travel to Polars.

narwhals wraps the frame. The engine groups the rows by the named columns and counts them. The
counts come back as Arrow. Polars reads them as a log with a weight, and does the rest. Polars adds
up labels that it takes for equal. So the engine's own equality matters only where the engine
merges labels that Polars would keep apart. Labels in another frame are joined by the engine too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias, cast

import narwhals.stable.v2 as nw
import polars as pl

from polars_mcc._base.errors_and_warnings import Failure, unless
from polars_mcc._base.unstable_polars import deferred
from polars_mcc._frame.columns import IntoColumn, NamedColumns, Weighed, roots
from polars_mcc._frame.labels import LabelsDiffer, of_two_labels

EngineQuery: TypeAlias = "nw.LazyFrame[Any] | nw.DataFrame[Any]"

_ROWS = "polars_mcc_rows"  # the number of rows that a counted row stands for

_LEAST, _NULL, _SQUARES = "polars_mcc_least", "polars_mcc_null", "polars_mcc_squares"
_HIGH, _LOW = "polars_mcc_high", "polars_mcc_low"
_LIMB = 2**31

# How an engine adds a column, by the name of the engine.
_PANDAS = ("pandas", "modin", "cudf", "dask")
_SPARK = ("pyspark", "pyspark[connect]", "sqlframe")
_BY_NARWHALS = "nw.from_native(df).with_columns({}=...)"
_ADDED = dict.fromkeys(_PANDAS, "df.assign({}=...)")
_ADDED |= {
    "pyarrow": "df.append_column('{}', ...)",
    "duckdb": "df.project('*, ... AS {}')",
    "ibis": "df.mutate({}=...)",
}
_ADDED |= dict.fromkeys(_SPARK, "df.withColumn('{}', ...)")


_CASTS = {"duckdb": "CAST({} AS {})", **dict.fromkeys(_PANDAS, "{}.astype('{}')")}


@dataclass(frozen=True)
class Engine:
    """A frame of another engine."""

    frame: EngineQuery
    check_rows: Callable[[], None] | None = None
    """Raises an error if the rows are wrong; called before they are counted."""

    @property
    def name(self) -> str:
        """The name of the engine."""
        return str(self.frame.implementation.value)

    @property
    def is_lazy(self) -> bool:
        """Whether the engine reads the rows only on `collect`."""
        return isinstance(self.frame, nw.LazyFrame)

    @cached_property
    def schema(self) -> pl.Schema:
        """The columns, with their dtypes in Polars."""
        columns = self.frame.collect_schema().items()
        return pl.Schema({name: _in_polars(dtype) for name, dtype in columns})

    def cast(self, labels: LabelsDiffer) -> str:
        """The call that adds a column of labels in the dtype of the others."""
        column = labels.name if self.name == "duckdb" else f"df['{labels.name}']"
        dtype = str(labels.other).lower()
        if self.name in {*_SPARK, "duckdb"}:
            dtype = {"int64": "bigint", "float64": "double"}.get(dtype, dtype)
        calls, call = _CASTS, "{}.cast('{}')"
        if labels.is_score:
            calls, call = {"pyarrow": "pc.greater_equal({}, 0.5)"}, "{} >= 0.5"
        if labels.is_word:
            calls = {"pyarrow": "pc.equal({}, 'True')", "duckdb": r"{} = \'True\'"}
            call = "{} == 'True'"
        call = calls.get(self.name, call).replace("True", labels.word)
        added = _ADDED.get(self.name, _BY_NARWHALS).format(f"{labels.name}_label")
        return added.replace("...", call.format(column, dtype))

    def check(self, columns: Mapping[str, NamedColumns]) -> None:
        """Raise a TypeError if a column is a Polars expression: the engine cannot compute it.

        The message says the role of the column, by which `columns` are given.
        """
        of_roles = ((role, column) for role, named in columns.items() for column in named.given)
        for role, column in of_roles:
            if isinstance(column, str) or column.meta.is_column_selection(allow_aliasing=True):
                continue
            name = next(iter(column.meta.root_names()), "column")
            added = _ADDED.get(self.name, _BY_NARWHALS)
            raise TypeError(
                f"{role} {column} is a Polars expression, and {self.name} cannot compute it: "
                f"add it as a column and pass its name, as in {added.format(f'{name}_key')}"
            )

    def named(self, columns: Iterable[IntoColumn]) -> list[str]:
        """The columns of the frame that these columns are, or an error."""
        names = roots(self.schema, columns)
        self.check_known(names)
        return names

    def check_known(self, names: Iterable[str]) -> None:
        """Raise a SchemaError if Polars has no dtype for a column."""
        for name in names:
            if self.schema[name] == pl.Unknown:
                raise pl.exceptions.SchemaError(
                    f"column '{name}' has a dtype of {self.name} that narwhals cannot convert to "
                    f"Polars: cast it in {self.name} first"
                )

    def count(self, columns: Sequence[str], name: str) -> EngineQuery:
        """A query of the engine that counts rows, grouped by these columns."""
        return self.frame.group_by(*columns).agg(nw.len().alias(name))

    def counted(
        self, columns: Iterable[IntoColumn], weight: NamedColumns | None, *, is_frequency: bool
    ) -> Weighed:
        """Group the rows by these columns. `_ROWS` is the number of rows of each group.

        With a weight, `_ROWS` is the sum of the weights. The engine adds up integers in two limbs
        that fit 64 bits.
        """
        names = self.named(columns)
        dtypes = pl.Schema({name: self.schema[name] for name in names})
        if weight is None:
            counts = self._asked(self.count(names, _ROWS), {**dtypes, _ROWS: pl.Int64()})
            return Weighed(counts, pl.col(_ROWS), _ROWS, pl.Int64())
        given = nw.col(*roots(self.schema, weight.given))
        is_integer = weight.dtype.is_integer()
        number = pl.Int64() if is_integer else pl.Float64()
        rows = self.frame.select(
            *names,
            given.cast(nw.Int64() if is_integer else nw.Float64()).alias(_ROWS),
            nw.when(given.is_null()).then(nw.lit(1)).otherwise(nw.lit(0)).alias(_NULL),
        )
        summed: dict[str, pl.DataType] = {_ROWS: number, _NULL: pl.Int64()}
        if is_integer:
            rows = rows.with_columns((nw.col(_ROWS) // _LIMB).cast(nw.Int64()).alias(_HIGH))
            rows = rows.with_columns((nw.col(_ROWS) - nw.col(_HIGH) * _LIMB).alias(_LOW))
            summed = {_HIGH: number, _LOW: number, _NULL: pl.Int64()}
        if not is_frequency:
            rows = rows.with_columns((nw.col(_ROWS).cast(nw.Float64()) ** 2).alias(_SQUARES))
            summed[_SQUARES] = pl.Float64()
        query = rows.group_by(*names).agg(
            nw.col(_ROWS).min().alias(_LEAST), *(nw.col(name).sum() for name in summed)
        )
        counts = self._asked(query, {**dtypes, _LEAST: number, **summed})
        sums = (_LEAST, _NULL, *([] if is_frequency else [_SQUARES]))
        if not is_integer:
            return Weighed(counts, pl.col(_ROWS), weight.name, number, sums)
        total = pl.col(_HIGH).cast(pl.Int128) * _LIMB + pl.col(_LOW)
        # The sum of the low limbs passes 64 bits: it takes 2^32 equal rows.
        message = (
            f"the sum of weight '{weight.name}' passes 2^63 - 1, the largest exact count; make the "
            "weights smaller, or cast them to Float64"
        )
        is_wrapped = (total < 0) & (pl.col(_LEAST) >= 0)
        whole = unless(total, Failure(is_wrapped, [message]))
        return Weighed(counts, whole, weight.name, pl.Int128(), sums)

    def rows_in_memory(self) -> pl.DataFrame | None:
        """The rows, if they are in memory: then Polars can do what an engine does."""
        return None

    def _asked(self, query: EngineQuery, dtypes: Mapping[str, pl.DataType]) -> pl.LazyFrame:
        """The answer of the engine as a LazyFrame. The engine runs once, on `collect`."""

        def answer() -> pl.DataFrame:
            if self.check_rows is not None:
                self.check_rows()
            return collected(query, dtypes)

        return deferred(answer, dtypes, once=True)


def _in_polars(dtype: nw.dtypes.DType) -> pl.DataType:
    """The dtype in Polars; Unknown if there is none. Times in seconds become milliseconds."""
    if isinstance(dtype, nw.Datetime) and dtype.time_unit == "s":
        return pl.Datetime("ms", dtype.time_zone)
    if isinstance(dtype, nw.Duration) and dtype.time_unit == "s":
        return pl.Duration("ms")
    try:
        [in_polars] = nw.Schema({"": dtype}).to_polars().values()
        pl.Series(dtype=in_polars)  # A time zone may be unknown.
    except (pl.exceptions.PolarsError, TypeError, ValueError):
        return pl.Unknown()
    return in_polars


def collected(query: EngineQuery, dtypes: Mapping[str, pl.DataType]) -> pl.DataFrame:
    """The answer of an engine."""
    eager = query.collect("pyarrow") if isinstance(query, nw.LazyFrame) else query
    counts = cast("pl.DataFrame", pl.from_arrow(eager.to_arrow()))
    return counts.select(pl.col(name).cast(dtype) for name, dtype in dtypes.items())


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
        for row in collected(twice, {**dtypes, _OTHER: dtypes[gold.name]}).iter_rows(named=True):
            which, labels = [(key, row[key]) for key in keys], (row[gold.name], row[_OTHER])
            time = None if latest is None else latest.name
            message = of_two_labels(which, labels, gold.name, time)
            raise pl.exceptions.InvalidOperationError("".join(map(str, message)))

    frame = _beside(source.frame, labels.drop(_OTHER), keys)
    return replace(source, frame=frame, check_rows=check)


def _beside(rows: EngineQuery, of_ids: Any, keys: Sequence[str]) -> EngineQuery:  # noqa: ANN401 - of the same kind
    """Join a row per id to the rows with this id."""
    return rows.join(of_ids, on=[*keys], how="left")
