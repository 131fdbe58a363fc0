"""Labels that come later, in another frame: each joined once, by an id; and rows of some age."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from typing import Any, Literal, NamedTuple

import polars as pl

from polars_mcc._base.errors_and_warnings import Failure, in_own_words, unless, warn_of
from polars_mcc._base.message_parts import cast, column, option, quoted, said
from polars_mcc._base.unstable_polars import at_largest
from polars_mcc._base.values_as_text_or_markdown import as_text
from polars_mcc._frame import columns
from polars_mcc._frame.columns import Frame, NamedColumns, as_expr
from polars_mcc._frame.labels import as_compared, common_dtype, from_text, is_text, of_two_labels
from polars_mcc._frame.missing_and_likely_columns import MissingColumn
from polars_mcc._frame.roles import LABELLED_AT, GivenRoles, opened, schema_of

_ID, _TIME, _FIRST, _LAST, _LABEL = (
    f"polars_mcc:{name}" for name in ("id:", "time", "first", "last", "label")
)
_HALF = 2**64  # values of 64 bits: the rest of an Int128
_LENGTH = re.compile(r"(?:\d+(?:ns|us|ms|s|m|h|d|w|mo|q|y))+")


def with_late_labels(frame: Any, given: GivenRoles) -> tuple[Any, GivenRoles]:  # noqa: ANN401 - of any engine
    """A log that is old enough, beside its labels; and its options, for the log that this makes.

    A lazy frame stays lazy, and is not read.
    """
    if given.min_age is not None or given.now is not None:
        frame = _old_enough(_rows_of(frame), given)
        given = given._replace(min_age=None, now=None)
    if given.outcomes is None:
        for name in ("on", "latest"):
            if getattr(given, name) is not None:
                raise ValueError(
                    f"{name} is about labels in another frame, and there is none: pass it as "
                    f"outcomes, or leave {name} out; if labels are joined already, describe the "
                    "predictions again"
                )
        return frame, given
    if given.on is None:
        msg = said(
            "outcomes needs the columns that say which label belongs to which prediction: pass "
            "them, as in ",
            option("on", "request_id"),
        )
        raise ValueError(msg)
    try:
        outcomes = _rows_of(given.outcomes)
    except TypeError as error:
        raise TypeError(f"outcomes: {error}") from None
    frame, gold = _joined(_rows_of(frame), outcomes, given)
    return frame, given._replace(gold=gold, outcomes=None, on=None, latest=None, waiting=True)


class LabelsOfIds(NamedTuple):
    """The label of each id, once."""

    rows: pl.LazyFrame
    """A row per id: the keys that ids are joined by, the label, and its time if it is known."""
    gold: str
    keys: Sequence[pl.Expr]
    """The keys of the predictions."""

    def beside(self, predictions: pl.LazyFrame, *, in_order: bool = False) -> pl.LazyFrame:
        """The predictions, each beside its label; without keys, the labels and the predictions."""
        if not self.keys:
            return pl.concat([self.rows, predictions], how="diagonal")
        names = [key.meta.output_name() for key in self.keys]
        rows = predictions.with_columns(self.keys)
        order: Literal["left", "none"] = "left" if in_order else "none"
        return rows.join(self.rows, on=names, how="left", maintain_order=order).drop(names)

    def in_memory(self) -> LabelsOfIds:
        """The same, for several queries: the labels are read now."""
        return self._replace(rows=_collected(self.rows).lazy())


def labels_of_ids(predictions: pl.LazyFrame, given: GivenRoles) -> LabelsOfIds:
    """The label of each id, for these predictions, or an error."""
    return _of_polars(given.outcomes.lazy(), _Found.of(predictions, given.outcomes, given))


def _joined(source: Any, outcomes: Any, given: GivenRoles) -> tuple[Any, str]:  # noqa: ANN401 - as above
    """The predictions, each beside its label, and the name of the column with the labels."""
    if isinstance(source, Frame) != isinstance(outcomes, Frame):
        raise TypeError(
            "the predictions and the outcomes are of two engines, which cannot be joined: read "
            "one of them with the engine of the other first"
        )
    found = _Found.of(source, outcomes, given)
    if not isinstance(source, Frame):
        from polars_mcc._frame.engines import joined_by_engine  # noqa: PLC0415 - narwhals

        joined = joined_by_engine(source, outcomes, found.of_labels, found.gold, found.latest)
        return joined, found.gold.name
    labels = _of_polars(outcomes.lazy(), found)
    if isinstance(source, pl.LazyFrame):
        return labels.beside(source), labels.gold
    warn_of(about_ids(source.lazy(), labels, source.lazy()))
    return _collected(labels.beside(source.lazy(), in_order=True)), labels.gold


class _Found(NamedTuple):
    """The columns of both frames that a user named."""

    ids: NamedColumns
    of_labels: NamedColumns
    """The ids of the outcomes."""
    dtypes: Sequence[pl.DataType]
    """The dtypes in which ids are compared."""
    gold: NamedColumns
    latest: NamedColumns | None

    @classmethod
    def of(cls, source: Any, outcomes: Any, given: GivenRoles) -> _Found:  # noqa: ANN401 - as above
        """Find the columns, or raise an error."""
        schema, of_labels = schema_of(source), schema_of(outcomes)
        assert given.on is not None  # noqa: S101 - checked by the caller
        try:
            ids, named = (
                columns.several_columns(each, given.on, "on") for each in (schema, of_labels)
            )
            gold = columns.one_column(of_labels, given.gold, "gold")
            latest = None
            if given.latest is not None:
                latest = columns.one_column(of_labels, given.latest, "latest")
        except MissingColumn as error:
            where = "the outcomes" if error.schema == of_labels else "the predictions"
            alike = " Both frames need it: rename it in one of them." if error.role == "on" else ""
            msg = f"{where} have {error.problem}{alike}"
            raise pl.exceptions.ColumnNotFoundError(msg) from None
        if ids.names != named.names:
            raise ValueError(
                f"on is {quoted(ids.names)} in the predictions and {quoted(named.names)} in the "
                "outcomes: name columns that both have"
            )
        if gold.name in schema:
            raise pl.exceptions.DuplicateError(
                f"both the predictions and the outcomes have a column '{gold.name}' (gold): drop "
                "or rename the one that is not the label; if labels are joined already, describe "
                "the predictions again"
            )
        if latest is not None:
            _check_latest(latest.name, latest.dtype)
        both = zip(ids.dtypes.items(), named.dtypes.dtypes(), strict=True)
        engine = None if isinstance(source, Frame) else "the engine"
        dtypes = [_dtype_of_id(name, own, other, engine) for (name, own), other in both]
        return cls(ids, named, dtypes, gold, latest)


def _check_latest(name: str, dtype: pl.DataType) -> None:
    """Raise a SchemaError unless the times of labels have an order."""
    has_order = dtype.is_temporal() or dtype.is_integer() or dtype == pl.Null
    if not has_order or dtype in {pl.Int128, pl.UInt128}:
        what = f"latest must be a date, a time or an integer of 64 bits, but '{name}' is {dtype}; "
        raise pl.exceptions.SchemaError(said(what, columns.made_a_time(name, dtype)))


def _rows_of(frame: object) -> Any:  # noqa: ANN401 - as above
    """A frame of Polars, also of rows of another library in memory; or an engine."""
    source = opened(frame)
    if isinstance(source, Frame) or (rows := source.rows_in_memory()) is None:
        return source
    return rows


def _dtype_of_id(
    name: str, own: pl.DataType, other: pl.DataType, engine: str | None
) -> pl.DataType:
    """The dtype in which the ids of both frames are compared, or a SchemaError."""
    both = own, other
    what = f"on '{name}' is {own} in the predictions and {other} in the outcomes: "
    if any(dtype.is_object() or dtype.is_nested() for dtype in both):
        to_text = f"make both text first, as in frame['{name}'].map(str) of pandas"
        plain = "an id must be a plain value; its parts may be several columns"
        raise pl.exceptions.SchemaError(what + (to_text if pl.Object in both else plain))
    is_float = any(dtype.is_float() for dtype in both)
    is_code = pl.Boolean in both and any(dtype.is_integer() for dtype in both)
    if not (is_float or is_code):
        with suppress(pl.exceptions.SchemaError):
            return common_dtype([(name, own), (name, other)])
    if (dtype := _castable(both)) is None:
        msg = f"{what}no id of one is an id of the other; name columns with the same ids"
        raise pl.exceptions.SchemaError(msg)
    what += "floats that look alike may differ; if all are whole numbers, " * is_float
    code = cast(column(name), dtype) if engine is None else f"{dtype}, by {engine}"
    raise pl.exceptions.SchemaError(said(what, "cast both, as in ", code))


def _castable(dtypes: Sequence[pl.DataType]) -> str | None:
    """The dtype to cast ids of two dtypes to, so that equal ones match, as code of Polars."""
    units = {dtype.time_unit for dtype in dtypes if isinstance(dtype, (pl.Datetime, pl.Duration))}
    unit = "ns" if "ns" in units else "us"
    if all(isinstance(dtype, pl.Duration) for dtype in dtypes):
        return f"Duration('{unit}')"
    if all(isinstance(dtype, (pl.Date, pl.Datetime)) for dtype in dtypes):
        has_zone = any(isinstance(dtype, pl.Datetime) and dtype.time_zone for dtype in dtypes)
        return f"Datetime('{unit}', 'UTC')" if has_zone else f"Datetime('{unit}')"
    scales = [dtype.scale for dtype in dtypes if isinstance(dtype, pl.Decimal)]
    others = {dtype for dtype in dtypes if not dtype.is_numeric()}
    if any(dtype.is_float() for dtype in dtypes):
        return "Int64" if others <= {pl.String(), pl.Null()} else None
    if not others:
        return f"Decimal(38, {max(scales)})"
    has_text = any(map(is_text, dtypes)) and pl.Duration not in dtypes
    return "String" if has_text else None


def _keys_of(ids: NamedColumns, dtypes: Iterable[pl.DataType]) -> list[pl.Expr]:
    """The columns that identify a row, in dtypes that both frames share."""
    columns = zip(ids.each, ids.dtypes.dtypes(), dtypes, strict=True)
    return [
        as_compared(as_expr(column), name, own, dtype).cast(dtype).alias(_ID + name)
        for (name, column), own, dtype in columns
    ]


def _as_key(id_: pl.Expr, dtype: pl.DataType) -> pl.Expr:
    """An id that is joined by: of text, two hashes of 64 bits, in half the time.

    That any two of n ids have both hashes in common has a probability of n² / 2¹²⁹.
    """
    if dtype not in (pl.String, pl.Binary):
        return id_
    # The hashes fill an Int128, which may wrap: that loses nothing.
    high, low = (id_.hash(seed).cast(pl.Int128) for seed in (0, 1))
    return pl.when(id_.is_not_null()).then(high * _HALF + low)


def _of_polars(outcomes: pl.LazyFrame, found: _Found) -> LabelsOfIds:
    """The label of each id, once. The query fails if an id has two labels.

    Of the labels of an id, or of its newest ones, the first and the last in some order are equal,
    unless there are two.
    """
    gold, latest, keys = found.gold, found.latest, _keys_of(found.of_labels, found.dtypes)
    names = [key.meta.output_name() for key in keys]
    label = as_compared(gold.expr, gold.name, gold.dtype, gold.dtype)
    if isinstance(gold.dtype, (pl.List, pl.Array)):  # A list with a null is a null label.
        is_whole = ~label.list.eval(pl.element().is_null()).list.any()
        label = pl.when(is_whole).then(label.list.unique().list.sort())
    time = pl.lit(0) if latest is None else latest.expr
    if latest is not None and latest.dtype == pl.UInt64:
        time = time.cast(pl.Int128) - 2**63
    rows = outcomes.select(*keys, label.alias(_LABEL), time.cast(pl.Int64).alias(_TIME))
    rows = rows.filter(pl.all_horizontal(pl.col(names).is_not_null()))
    label, first, last = map(pl.col, (_LABEL, _FIRST, _LAST))
    ends = label.min(), label.max()
    if latest is not None or gold.dtype.is_nested():
        time = pl.col(_TIME).fill_null(-(2**63)).cast(pl.Int128) * _HALF
        hashed = label.hash().cast(pl.Int128)
        # A time without a value is the oldest. A null is no label: it comes before the labels of
        # the same time.
        up, down = (
            time + pl.when(label.is_not_null()).then(by.clip(1)).otherwise(0)
            for by in (hashed, _HALF - 1 - hashed)
        )
        ends = at_largest(label, up), at_largest(label, down)
    of_id = {_FIRST: ends[0], _LAST: ends[1]}
    dtype = pl.Null() if latest is None else latest.dtype
    shown = [LABELLED_AT] if isinstance(dtype, (pl.Date, pl.Datetime)) else []
    of_id |= dict.fromkeys(shown, pl.col(_TIME).max())
    each = rows.group_by(names).agg(**of_id)
    is_two = first != last
    of_keys = [*zip(names, found.dtypes, strict=True)]

    def told(value: pl.Expr, dtype: pl.DataType) -> pl.Expr:
        return as_text(pl.when(is_two).then(value), dtype)

    which = [(name.removeprefix(_ID), told(pl.col(name), of_id)) for name, of_id in of_keys]
    labels = (told(side, gold.dtype) for side in (first, last))
    message = of_two_labels(which, labels, gold.name, None if latest is None else latest.name)
    known = unless(first, Failure(is_two, message)).alias(gold.name)
    joined_by = [_as_key(pl.col(name), of_id).alias(name) for name, of_id in of_keys]
    rows = each.select(*joined_by, known, *(pl.col(name).cast(dtype) for name in shown))
    own = zip(_keys_of(found.ids, found.dtypes), of_keys, strict=True)
    of_rows = [_as_key(key, of_id).alias(name) for key, (name, of_id) in own]
    return LabelsOfIds(rows, gold.name, of_rows)


def _old_enough(source: Any, given: GivenRoles) -> Any:  # noqa: ANN401 - of any engine
    """The rows of at least some age, at a time or against the newest row."""
    if given.min_age is None or given.time is None:
        missing = "min_age" if given.min_age is None else "time"
        needs = "now" if given.min_age is None else "min_age"
        example = "30d" if missing == "min_age" else "timestamp"
        needed = said(f"{needs} needs {missing} too, as in ", option(missing, example))
        raise ValueError(needed)
    if not isinstance(source, Frame):
        raise TypeError(
            "min_age does not support frames of another engine: filter the old rows with the "
            "engine, and leave min_age out"
        )
    rows = source.lazy()
    time = columns.one_column(rows.collect_schema(), given.time, "time")
    columns.check_time(time.name, time.dtype)
    age = as_length("min_age", given.min_age)
    if given.now is None:
        newest = newest_or_now(time.expr.max(), time.dtype)
        latest = rows.select(earlier(newest, age).alias(_TIME))
        rows = rows.join(latest, how="cross").filter(time.expr <= pl.col(_TIME)).drop(_TIME)
    else:
        now = pl.lit(_as_time(given.now, time), time.dtype)
        since = pl.select(earlier(now, age)).to_series()  # A scan skips files that are younger.
        rows = rows.filter(time.expr <= pl.lit(since.item(), since.dtype))
    return rows if isinstance(source, pl.LazyFrame) else _collected(rows)


def as_length(name: str, age: str | timedelta) -> str | timedelta:
    """A length of time, or a ValueError."""
    is_length = isinstance(age, str) and _LENGTH.fullmatch(age)
    if is_length or (isinstance(age, timedelta) and age >= timedelta(0)):
        with suppress(pl.exceptions.PolarsError):
            pl.select(earlier(pl.lit(datetime(2000, 1, 1)), age))  # noqa: DTZ001 - any time
            return age
    raise ValueError(f"{name} must be a length of time, as '30d', '12h' or '3mo', got {age!r}")


def earlier(time: pl.Expr, age: str | timedelta) -> pl.Expr:
    """The time so long before another."""
    return time - pl.lit(age) if isinstance(age, timedelta) else time.dt.offset_by(f"-{age}")


def is_as_long(age: str | timedelta, other: str | timedelta) -> bool:
    """Whether a length of time is as long as another, in winter."""
    end = pl.lit(datetime(2000, 3, 1))  # noqa: DTZ001 - any time
    return bool(pl.select(earlier(end, age) <= earlier(end, other)).item())


def before(microseconds: int, age: str) -> int:
    """The time so long before the newest one, or now; in microseconds since 1970."""
    time = newest_or_now(pl.from_epoch(pl.lit(microseconds), "us"), pl.Datetime("us"))
    result: int = pl.select(earlier(time, age).dt.epoch("us")).item()
    return result


def newest_or_now(newest: pl.Expr, dtype: pl.DataType) -> pl.Expr:
    """The time from which ages count: one row of the future must not make all others old."""
    return pl.min_horizontal(newest, now_of(dtype))


def now_of(dtype: pl.DataType) -> pl.Expr:
    """Now; if a time has no zone, where on earth it is latest."""
    now, zone = datetime.now(UTC), dtype.time_zone if isinstance(dtype, pl.Datetime) else None
    latest = (now + timedelta(hours=14)).replace(tzinfo=None)
    return pl.lit(now if zone else latest).cast(dtype)


def _as_time(now: object, time: NamedColumns) -> object:
    """A time in the dtype of a column, and in its zone if it names none; or a ValueError."""
    dtype: Any = time.dtype
    typed, zone = now, None if dtype == pl.Date else dtype.time_zone
    if isinstance(now, str) and re.search(r":.*(Z|[+-]\d\d:?\d\d)$", now):
        with suppress(ValueError):  # Else the error below.
            now = datetime.fromisoformat(now)
    has_zone = isinstance(now, datetime) and now.tzinfo is not None
    plain = dtype if zone is None or has_zone else pl.Datetime(dtype.time_unit)
    known = from_text(now, plain) if isinstance(now, str) else now
    if isinstance(known, date) and not (has_zone and zone is None):
        times = pl.Series([known]).cast(plain)
        return times.item() if plain == dtype else times.dt.replace_time_zone(zone).item()
    msg = f"now must be a time like those of column '{time.name}' ({time.dtype}), got {typed!r}"
    raise ValueError(msg)


def _collected(rows: pl.LazyFrame) -> pl.DataFrame:
    """The rows, or the error of a label in our own words."""
    with in_own_words():
        return rows.collect()


_MANY = 0.1
"""The share of labels without a prediction, and of predictions without a label, that is told."""


def about_ids(
    predictions: pl.LazyFrame,
    labels: LabelsOfIds,
    every: pl.LazyFrame | None,
    n_labels: float = math.inf,
    n_labelled: int = 0,
) -> Iterator[str]:
    """Sentences if several predictions share an id; and if labels and predictions miss each other.

    To group ids takes as long as to score a log, so it is done only if a sentence is likely.

    Args:
        predictions: The predictions that are scored. Their ids are read.
        labels: The label of each id.
        every: All predictions, also those that are not scored, if they are known.
        n_labels: The number of labels, at most.
        n_labelled: The number of predictions with a label, at least.
    """
    names = [key.meta.output_name() for key in labels.keys]
    ids = quoted(name.removeprefix(_ID) for name in names)
    n, is_known, known = pl.col("n"), pl.col("is_known"), labels.rows.select(*names, n=0)

    def sums(rows: pl.LazyFrame, *of_ids: pl.Expr) -> tuple[int, ...]:
        each = rows.group_by(names).agg(n.sum(), is_known=(n == 0).any())
        named = {str(place): numbers.sum() for place, numbers in enumerate(of_ids)}
        return each.select(**named).collect(engine="streaming").row(0)

    scored = predictions.select(labels.keys, n=1).drop_nulls()
    hashes = scored.select(pl.struct(names).hash()).collect(engine="streaming").to_series()
    are_shared = hashes.n_unique() < len(hashes)
    [shared] = sums(scored, n.filter(n > 1)) if are_shared else [0]
    if shared:
        yield (
            f"{shared} predictions share their id ({ids}) with another: each of them is scored, by "
            "the same label"
        )
    n_met = n_labelled - shared  # Each of these has a label of its own.
    if every is None or n_labels - n_met <= _MANY * n_met:
        return
    both = pl.concat([every.select(labels.keys, n=1).drop_nulls(), known])
    lonely, n_known, n_waiting, n_all = sums(both, n == 0, is_known, n.filter(~is_known), n)
    if _MANY * n_all < n_waiting < n_all and lonely > _MANY * n_known:
        yield (
            f"{lonely} of {n_known} labels have an id ({ids}) that no prediction has, and "
            f"{n_waiting} of {n_all} predictions wait: do ids have the same spelling?"
        )
