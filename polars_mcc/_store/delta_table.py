"""A store of counts: a Delta table that has, for each input, a row per group of equal rows.

A step adds, replaces and drops the counts of whole inputs in one commit. A `Store` is the table at
one version. A step from it fails if another process has taken a step since: both name the same
application in their transactions, which Delta refuses. Then open the store and look at the inputs
again.

The property `polars_mcc.format` of the table is the number of its format. Without it, a store is of
format 1. Every format has `polars_mcc.format` and `polars_mcc.counts`. By these an older polars_mcc
knows a store, and refuses a higher number.

Format 1:

- The columns are those of the counts, `n` and those of `INPUT_COLUMNS`. Dtypes of Polars that Delta
  does not have are stored as others, see `delta_dtype`.
- `polars_mcc.counts` is JSON: `by`, `pred` and the other settings, as they were typed. A setting
  that is not named has its default in `LogOptions`. `columns` has `gold`, `pred` and `waiting` of
  the counts, as arguments of `PredictionLog`.
- `polars_mcc.schema` is the schema of the counts, see `schema_as_text`.
- `polars_mcc.empty` is JSON: the inputs without rows, which have no counts, with size and version.

A new setting of `keep_counts` needs no new number: its default must mean what stores without it
have counted. A polars_mcc that does not know the setting reads the store, and refuses to count into
it. Take a new number if an older polars_mcc would misread the store, or if a default changes.
`tests/store/` has stores of each number; each later version reads them and counts into them.
"""

from __future__ import annotations

import base64
import io
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
from polars.datatypes import DataType, DataTypeClass

from polars_mcc._base.errors_and_warnings import check_installed
from polars_mcc._inputs.paths_and_settings import Options, as_dict, is_url
from polars_mcc._version import __version__

if TYPE_CHECKING:
    from deltalake import CommitProperties, DeltaTable

N = "n"
INPUT, SIZE, VERSION, NEWEST = "input", "input_size", "input_version", "input_newest"
INPUT_COLUMNS = {INPUT: pl.String(), SIZE: pl.Int64(), VERSION: pl.String(), NEWEST: pl.Int64()}
"""The columns that say where a row of counts comes from."""

FORMAT = 1
_FORMAT, _ABOUT = "polars_mcc.format", "polars_mcc.counts"
_SCHEMA, _EMPTY = "polars_mcc.schema", "polars_mcc.empty"
_HISTORY_PROPERTIES = ("delta.logRetentionDuration", "delta.deletedFileRetentionDuration")
_DAYS = 30  # for which earlier versions can be read, in a new store
_MAX_FILES = 32  # files above which they are merged
_DESCRIPTION = (
    "Counts of a prediction log, written by polars_mcc. Each row stands for n rows of the log with "
    "the same keys, true label and predicted labels, in one input. The labels may be null."
)
_COMMENTS = {
    N: "how many rows of the log a row stands for",
    INPUT: "the file, object or table that the rows come from",
    SIZE: "its size in bytes; 0 for a table",
    VERSION: "its version: a modification time in nanoseconds, an ETag, or the version of a table",
    NEWEST: "the time of its newest row in microseconds since 1970, if labels come later",
}


@dataclass(frozen=True)
class Input:
    """A file, object or table: where it is, its size and its version."""

    path: str
    """The path or the URL."""
    size: int
    version: str
    """Changes when the file is rewritten: the modification time in nanoseconds, or the ETag."""
    newest: int | None = field(default=None, compare=False)
    """The time of its newest row, in microseconds since 1970, if that was asked for."""
    rows: float = field(default=0, compare=False)
    """How many rows were counted."""


@dataclass
class Store:
    """A store at one version; a step moves it on. Without a table: a folder that may become one."""

    path: str
    options: Options | None
    table: DeltaTable | None

    @classmethod
    def of(cls, path: str, options: Options | None = None) -> Store:
        """The newest version of the store in a folder, or a folder that may become one."""
        store = cls(path, options, _newest_table(path, options))
        if store.table is None and (other := _first_file_in(path)):
            raise ValueError(
                f"'{path}' is not a store of counts, and has '{other}': use a folder that is empty "
                "or new"
            )
        return store

    @cached_property
    def about(self) -> dict[str, Any]:
        """The description of the counts. It never changes."""
        about: dict[str, Any] = json.loads(self._properties[_ABOUT])
        return about

    @cached_property
    def schema(self) -> pl.Schema:
        """The schema of the counts, with the dtypes of the log."""
        return schema_of_text(self._properties[_SCHEMA])

    @property
    def _delta(self) -> DeltaTable:
        assert self.table is not None  # noqa: S101 - the store was made
        return self.table

    @property
    def _properties(self) -> Mapping[str, str]:
        properties: Mapping[str, str] = self._delta.metadata().configuration
        if _ABOUT not in properties:
            raise _not_a_store(self.path)
        if (number := int(properties.get(_FORMAT, 1))) > FORMAT:
            raise ValueError(
                f"the store '{self.path}' has format {number}, but polars_mcc {__version__} reads "
                f"formats up to {FORMAT}; upgrade polars_mcc"
            )
        return properties

    def made(self, about: Mapping[str, Any], schema: pl.Schema) -> Store:
        """Make the folder a store, unless another process was first."""
        import pyarrow as pa  # noqa: PLC0415 - its import takes long
        from deltalake import DeltaTable, Schema  # noqa: PLC0415 - it is optional

        if not is_url(self.path) and not (folder := Path(self.path).absolute().parent).is_dir():
            raise FileNotFoundError(f"cannot make '{self.path}': there is no folder '{folder}'")
        _check_delta_names(self.path, schema)
        preds = about["columns"]["pred"]
        roles = dict.fromkeys([preds] if isinstance(preds, str) else preds, "predicted label")
        roles |= {about["columns"]["gold"]: "true label", **_COMMENTS}
        comments = _COMMENTS | {
            name: f"{roles.get(name, 'key')}, {dtype} in Polars" for name, dtype in schema.items()
        }
        in_arrow = pl.DataFrame(schema=_in_delta(schema)).to_arrow().schema
        fields = [of.with_metadata({"comment": comments[of.name]}) for of in in_arrow]
        try:
            columns = Schema.from_arrow(pa.schema(fields))
        except Exception as error:  # deltalake raises no class of its own here
            msg = f"a Delta table cannot hold columns of {schema} ({error}); cast them"
            raise pl.exceptions.SchemaError(msg) from error
        properties = {_FORMAT: str(FORMAT), _ABOUT: json.dumps(about)} | _kept_for(_DAYS)
        properties |= {_SCHEMA: schema_as_text(schema)}
        try:
            with _naming_store(f"cannot make the store '{self.path}'"):
                DeltaTable.create(
                    self.path,
                    columns,
                    name="counts",
                    description=_DESCRIPTION,
                    configuration=properties,
                    storage_options=as_dict(self.options),
                    raise_if_key_not_exists=False,  # Our own properties are no properties of Delta.
                )
        except OSError:
            if _newest_table(self.path, self.options) is None:
                raise
        return Store.of(self.path, self.options)

    @property
    def inputs(self) -> dict[str, Input]:
        """The inputs whose counts are in the store, by path."""
        empty = {path: Input(path, *about) for path, about in self._empty.items()}
        return empty | self._counted

    @cached_property
    def _counted(self) -> dict[str, Input]:
        """The inputs that have rows."""
        counted = (
            self._rows()
            .with_columns(pl.col(N).cast(self.schema[N]))
            .group_by(INPUT)
            .agg(pl.col(SIZE, VERSION, NEWEST).first(), total(self.schema[N]))
            .sort(INPUT)
            .collect()
        )
        return {path: Input(path, *about) for path, *about in counted.iter_rows()}

    @property
    def _empty(self) -> dict[str, tuple[int, str]]:
        """The size and version of the inputs that have no rows. Counts in the table win."""
        empty: dict[str, tuple[int, str]] = json.loads(self._properties.get(_EMPTY, "{}"))
        return empty

    def columns_with_values(self) -> set[str]:
        """The columns that are not null in every row."""
        valued = self._rows().select(pl.col(*self.schema).is_not_null().any()).collect()
        return {name for name, is_valued in valued.row(0, named=True).items() if is_valued}

    def scan(self) -> pl.LazyFrame:
        """Scan the counts."""
        if self._delta.version() == 0:
            raise ValueError(
                f"'{self.path}' has no counts yet: add counts with polars-mcc counts LOGS --out "
                f"{self.path}"
            )
        return self._rows().select(pl.col(name).cast(dtype) for name, dtype in self.schema.items())

    def _rows(self) -> pl.LazyFrame:
        """Scan the files of this version: `pl.scan_delta` (2.1) fails in a folder with a space."""
        names = [uri.rpartition("/")[2] for uri in self._delta.file_uris()]
        files = [f"{self.path.rstrip('/')}/{name}" for name in names]
        if not is_url(self.path) and not all(map(os.path.exists, files)):
            msg = f"files of version {self._delta.version()} of '{self.path}' have been deleted"
            raise ValueError(msg)
        if not files:
            return pl.LazyFrame(schema=_in_delta(self.schema))
        options = as_dict(self.options)
        return pl.scan_parquet(files, glob=False, hive_partitioning=False, storage_options=options)

    def step(self, added: Sequence[Input], counts: pl.DataFrame, dropped: Iterable[str]) -> bool:
        """Take a step; or return False if another process took one first.

        Args:
            added: Inputs whose counts are added, or replaced.
            counts: Their counts, with the columns of `INPUT_COLUMNS`. Where a column of the store
                has no value, it takes the dtype that it has here.
            dropped: The paths of other inputs, whose counts are dropped.
        """
        from deltalake import write_deltalake  # noqa: PLC0415 - it is optional
        from deltalake.exceptions import CommitFailedError  # noqa: PLC0415 - as above

        has_rows = {*counts[INPUT].unique()}
        gone = {*dropped}
        touched = self._counted.keys() & (gone | {file.path for file in added})
        before = self._empty
        empty = {path: about for path, about in before.items() if path not in gone | has_rows}
        without_rows = (file for file in added if file.path not in has_rows)
        empty |= {file.path: (file.size, file.version) for file in without_rows}
        schema = pl.Schema({name: counts.schema[name] for name in self.schema})
        dtypes = _in_delta(schema)
        rows = counts.select(pl.col(name).cast(dtype) for name, dtype in dtypes.items())
        how: dict[str, Any] = {"mode": "append"}
        if touched:
            # Delta wants the new rows to match too.
            names = ["'" + path.replace("'", "''") + "'" for path in sorted(touched | has_rows)]
            how = {"mode": "overwrite", "predicate": f"{INPUT} IN ({', '.join(names)})"}
        is_taken = False
        try:
            with _naming_store(f"cannot write to the store '{self.path}'", CommitFailedError):
                if schema != self.schema:
                    self._take_dtypes(schema)
                if touched or rows.height:
                    write_deltalake(self._delta, rows, commit_properties=_commit(), **how)
                    is_taken = True
                if empty != before:
                    self._set({_EMPTY: json.dumps(empty)})
        except CommitFailedError:
            return is_taken  # An input without rows that is not noted is looked at again.
        finally:
            vars(self).pop("_counted", None)
        return True

    def _take_dtypes(self, schema: pl.Schema) -> None:
        """Give columns without a value other dtypes, for the values that come."""
        from deltalake import write_deltalake  # noqa: PLC0415 - it is optional

        if (dtypes := _in_delta(schema)) != _in_delta(self.schema):
            rows = self._rows().collect().cast(dtypes)
            how: dict[str, Any] = {"mode": "overwrite", "schema_mode": "overwrite"}
            write_deltalake(self._delta, rows, commit_properties=_commit(), **how)
        self._set({_SCHEMA: schema_as_text(schema)})
        del self.schema

    def _set(self, properties: dict[str, str]) -> None:
        self._delta.alter.set_table_properties(
            properties, raise_if_not_exists=False, commit_properties=_commit()
        )

    def upkeep(self, history: int | None) -> Iterator[str]:
        """Merge small files, and delete files that are no longer needed. Say what was done."""
        from deltalake.exceptions import CommitFailedError  # noqa: PLC0415 - it is optional

        # If another process changes the same files, a later run does it.
        with (
            suppress(CommitFailedError),
            _naming_store(f"cannot write to the store '{self.path}'", CommitFailedError),
        ):
            if history and not (wanted := _kept_for(history)).items() <= self._properties.items():
                self._set(wanted)
            if (files := len(self._delta.file_uris())) > _MAX_FILES:
                yield f"{self._delta.optimize.compact()['numFilesRemoved']} of {files} files merged"
            if old := len(self._delta.vacuum(full=True)):
                self._delta.vacuum(full=True, dry_run=False)
                yield f"{old} {'file' if old == 1 else 'files'} of earlier versions deleted"


def open_store(
    path: str, options: Options | None = None, version: int | datetime | None = None
) -> Store:
    """Open the store in a folder at a version, or raise a ValueError."""
    table = _newest_table(path, options)
    if table is None:
        raise _not_a_store(path)
    store = Store(path, options, table)
    store.about  # noqa: B018 - it is read
    if version is None:
        return store
    newest = table.version()
    if isinstance(version, bool) or not isinstance(version, (int, datetime)):
        raise TypeError(f"version={version!r} is neither the number of a version nor a datetime")
    try:
        table.load_as_version(version if isinstance(version, int) else version.astimezone())
    except _delta_errors() as error:
        raise ValueError(
            f"the store '{path}' has no version {version}: use a number up to {newest}, or a "
            "time, of the days for which its history is kept"
        ) from error
    if table.version() == 0:
        raise ValueError(f"the store '{path}' had no counts at version {version}")
    return store


def _in_delta(schema: pl.Schema) -> pl.Schema:
    """The columns of the table: of the counts, in dtypes of Delta, and of the inputs."""
    dtypes = {name: delta_dtype(dtype) for name, dtype in schema.items()}
    return pl.Schema({**dtypes, **INPUT_COLUMNS})


def total(dtype: pl.DataType) -> pl.Expr:
    """Add up row counts of a dtype, without an overflow."""
    return (pl.col(N).cast(pl.Int128) if dtype.is_integer() else pl.col(N)).sum()


def is_store(path: str, options: Options | None) -> bool:
    """Whether the folder of a Delta table is a store; False if deltalake is not installed."""
    with suppress(ModuleNotFoundError):
        table = _newest_table(path, options)
        return table is not None and _ABOUT in table.metadata().configuration
    return False


def _newest_table(path: str, options: Options | None) -> DeltaTable | None:
    """The newest version of a Delta table; None if there is none."""
    check_installed("deltalake", subject=f"the store '{path}'", extra="store")
    from deltalake import DeltaTable  # noqa: PLC0415 - it is optional
    from deltalake.exceptions import TableNotFoundError  # noqa: PLC0415 - as above

    if Path(path).is_file():
        raise NotADirectoryError(f"'{path}' is a file, not a folder")
    hint = " (are its name and the credentials right?)" if is_url(path) else ""
    try:
        with _naming_store(f"cannot read '{path}' as a Delta table{hint}", TableNotFoundError):
            return DeltaTable(path, storage_options=as_dict(options))
    except TableNotFoundError:
        return None


_NOT_IN_DELTA = re.compile(r"[\[\]\n\r\t]|%[0-9A-Fa-f]{2}" + (r"|\\" if os.sep == "/" else ""))
"""What deltalake (1.6) cannot open in the path of a local folder."""


def _check_delta_names(path: str, schema: pl.Schema) -> None:
    """Raise an error for names that Delta does not take."""
    if not is_url(path) and (refused := _NOT_IN_DELTA.search(path)):
        raise ValueError(
            f"cannot make the store {path!r}: a Delta table cannot be in a folder with "
            f"{refused[0]!r}; choose another name"
        )
    seen: dict[str, str] = {}
    for name in (N, *INPUT_COLUMNS, *schema):
        if (other := seen.setdefault(name.lower(), name)) != name:
            raise pl.exceptions.DuplicateError(
                f"a Delta table cannot have columns '{other}' and '{name}', which differ only in "
                f"case; rename one, as in '{name} AS {name}_2'"
            )


def _first_file_in(path: str) -> str | None:
    """A file in a local folder; hidden ones, and what a failed start left, do not count."""
    names = os.listdir(path) if Path(path).is_dir() else []  # noqa: PTH208 - names are enough
    files = (name for name in sorted(names) if name[0] != "." and name != "_delta_log")
    return next(files, None)


def _delta_errors() -> tuple[type[Exception], ...]:
    from deltalake.exceptions import DeltaError  # noqa: PLC0415 - it is optional

    return (DeltaError, OSError, OverflowError, ValueError)


@contextmanager
def _naming_store(what: str, *unchanged: type[Exception]) -> Iterator[None]:
    """Turn errors of the library into OSErrors that name the store, but leave some `unchanged`."""
    try:
        yield
    except unchanged:
        raise
    except _delta_errors() as error:
        lines = re.sub(r"\x1b\[\d*m|↳", "", str(error)).splitlines()
        raise OSError(f"{what}: {', '.join(line.strip() for line in lines[:3])}") from error


def _commit() -> CommitProperties:
    from deltalake import CommitProperties, Transaction  # noqa: PLC0415 - it is optional

    return CommitProperties(app_transactions=[Transaction("polars_mcc", 1)])


def _kept_for(days: int) -> dict[str, str]:
    return dict.fromkeys(_HISTORY_PROPERTIES, f"interval {days} days")


def _not_a_store(path: str) -> ValueError:
    return ValueError(
        f"'{path}' is not a store of counts: make one with polars-mcc counts LOGS --out {path}"
    )


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
