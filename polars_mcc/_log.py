"""The door: a user's frame and arguments become a log that the rest can trust.

A log is a lazy frame with the columns `key:<name>` …, `gold`, `weight`, and `pred:<name>` of
each model; and with `baseline` and `cluster`, if asked for. A row stands for `weight` rows: 1
in a log as it was written, `n` in a counts table. Everything that can be wrong with names and
dtypes is found here. A log of another engine comes in as the counts of its rows.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import polars as pl
import polars.selectors as cs

from polars_mcc._exact import Integers, Numbers, numbers
from polars_mcc._labels import common_dtype

if TYPE_CHECKING:
    from polars_mcc._engines import Counted, Engine

IntoColumn: TypeAlias = str | pl.Expr
"""A column name or any Polars expression."""

IntoColumns: TypeAlias = str | pl.Expr | Sequence[str | pl.Expr]
"""A column, or several: a list, a selector, an expression with several outputs."""

Frame: TypeAlias = pl.DataFrame | pl.LazyFrame

AnyFrame: TypeAlias = object
"""A Frame, or one of another engine, as narwhals takes it; what it is not is found at the door."""

SET = "keys"
"""The column that names the set of keys of a slice, where there are several sets."""
TOTAL = ""
"""The name of the set of no keys: all rows are one slice."""

_KEY = "key:"
_PRED = "pred:"
_MODEL = "model:"


@dataclass(frozen=True)
class Log:
    """A user's log, renamed and checked, and what its schema says."""

    columns: pl.LazyFrame
    keys: tuple[str, ...]
    preds: tuple[str, ...]
    several: bool
    labels: pl.DataType
    pred: pl.DataType
    weight: str | None
    is_frequency: bool
    extras: tuple[str, ...]
    numbers: Numbers
    has_total: bool
    multilabel: bool = False
    sets: tuple[str, ...] = ()
    apart: tuple[str, ...] = ()
    sums: tuple[str, ...] = ()

    @property
    def slice(self) -> list[str]:
        """The columns that make a slice: the keys, and the model if there are several.

        Before them, what else tells slices apart: the set of keys that they are of, a period.
        """
        model = [_MODEL] if self.several else []
        return [*self._before, *map(key_column, self.keys), *model]

    @property
    def _before(self) -> list[str]:
        return [*([SET] if self.sets else []), *self.apart]

    @property
    def set_names(self) -> pl.Enum:
        """The dtype of the set of keys: in the order asked for."""
        return pl.Enum(self.sets)

    @property
    def has_clusters(self) -> bool:
        """Whether rows are in clusters."""
        return "cluster" in self.extras

    @property
    def models(self) -> pl.Enum:
        """The dtype of the model: in the order given."""
        return pl.Enum(self.preds)

    def each_model(self) -> Iterator[tuple[pl.Expr, list[pl.Expr]]]:
        """Of each model, its column of predictions and the columns that make its slice."""
        for name in self.preds:
            model = [pl.lit(name, self.models).alias(_MODEL)] if self.several else []
            yield pl.col(_PRED + name), [*map(pl.col, map(key_column, self.keys)), *model]

    @property
    def rows(self) -> pl.LazyFrame:
        """A row per row and model: the slice, `gold`, `pred`, `weight` and the extras."""
        # Several models share one scan, and need one dtype; the labels of one are cast when
        # they are counted.
        columns = self.columns.cache() if self.several else self.columns
        return pl.concat(
            columns.select(
                *model_slice,
                "gold",
                "weight",
                *self.extras,
                *self.sums,
                pred=pred.cast(self.pred) if self.several else pred,
            )
            for pred, model_slice in self.each_model()
        )

    def per_slice(self, frame: pl.LazyFrame, **sums: pl.Expr) -> pl.LazyFrame:
        """Aggregate by slice; without keys all rows are one slice, even if there are none."""
        return frame.group_by(self.slice).agg(**sums) if self.slice else frame.select(**sums)

    def within_slice(self, aggregation: pl.Expr) -> pl.Expr:
        """An aggregation over the slice of a row, as a column."""
        return aggregation.over(self.slice) if self.slice else aggregation

    def beside(self, frame: pl.LazyFrame, slices: pl.LazyFrame) -> pl.LazyFrame:
        """Add the columns of a row per slice to the rows of each slice."""
        if not self.slice:
            return frame.join(slices, how="cross")
        return frame.join(slices, on=self.slice, how="left", nulls_equal=True)

    def per_model(self, frame: pl.LazyFrame) -> pl.LazyFrame:
        """Repeat the rows of a frame for each model, if there are several."""
        if not self.several:
            return frame
        return pl.LazyFrame({_MODEL: self.preds}, schema={_MODEL: self.models}).join(
            frame, how="cross"
        )

    def with_total(self, classes: pl.LazyFrame) -> pl.LazyFrame:
        """Add a class of nothing to the slices that are a whole log, which may have no rows."""
        if not self.has_total or not self.slice:
            return classes
        total = [pl.lit(TOTAL, self.set_names).alias(SET)] if self.sets else []
        models = pl.LazyFrame({_MODEL: self.preds}, schema={_MODEL: self.models})
        nothing = models.select(*total, *([_MODEL] if self.several else []))
        return pl.concat([classes, nothing], how="diagonal")

    def answer(self, slices: pl.LazyFrame, *order: str) -> pl.LazyFrame:
        """Sort by key, model and `order`, and give keys and model their names back."""
        by = [*self.slice, *order]
        return self.named(slices.sort(by, maintain_order=True) if by else slices)

    def named(self, slices: pl.LazyFrame) -> pl.LazyFrame:
        """Give keys and model their names back."""
        model = [pl.col(_MODEL).cast(pl.String).alias("model")] if self.several else []
        return slices.select(
            *(pl.col(name).cast(pl.String) for name in self._before),
            *(pl.col(key_column(name)).alias(name) for name in self.keys),
            *model,
            ~cs.by_name(self.slice),
        )

    def distinct_labels(self) -> pl.LazyFrame:
        """The labels that occur, gold or predicted, without null, sorted: one column."""
        sides = [
            self.rows.select(label=pl.col(side).cast(self.labels)) for side in ("gold", "pred")
        ]
        return pl.concat(sides).unique().drop_nulls().sort("label")


def read(
    frame: AnyFrame,
    keys: Sequence[IntoColumn],
    gold: IntoColumn,
    pred: IntoColumns,
    weight: IntoColumn | None,
    *,
    answers: Iterable[str],
    sample_weight: IntoColumn | None = None,
    baseline: IntoColumn | None = None,
    cluster: IntoColumn | None = None,
    periods: Mapping[str, IntoColumn] | None = None,
    role: Literal["pred", "score"] = "pred",
    lists: bool = False,
    computed: Sequence[pl.Expr] = (),
) -> Log:
    """Check a user's arguments against the schema and rename the columns they name.

    Args:
        frame: The log, or a counts table with `weight="n"`.
        keys: The columns that make the slices.
        gold: The true labels.
        pred: The predicted labels, of one model or several.
        weight: How many rows a row stands for; None for 1.
        answers: The names of the columns that the caller adds to the keys.
        sample_weight: How much a row counts, in place of `weight`.
        baseline: The model that the others are compared with.
        cluster: What rows have in common that are not independent.
        periods: By name, whether a row is of a period. Rows of none are left out.
        role: Whether `pred` is a label, or a score: a number that says how sure a model is.
        lists: Whether a row may have several labels, in lists.
        computed: Those of these expressions that are no user's: if another engine has the log,
            they are computed of its counts.
    """
    source = opened(frame)
    schema = _schema_of(source)
    several = not isinstance(pred, str) and (
        not isinstance(pred, pl.Expr) or pred.meta.has_multiple_outputs()
    )
    preds = [pred] if isinstance(pred, (str, pl.Expr)) else list(pred)

    key_dtypes = _resolve(schema, keys, "key")
    gold_dtype = _resolve_one(schema, gold, "gold")
    pred_dtypes = _resolve(schema, preds, role)
    if weight is not None and sample_weight is not None:
        msg = (
            "weight says how many rows a row stands for, sample_weight how much one row counts: "
            "give one of them, not both"
        )
        raise ValueError(msg)
    kind, weight = ("weight", weight) if sample_weight is None else ("sample_weight", sample_weight)
    weight_dtype = pl.Schema() if weight is None else _resolve_one(schema, weight, kind)
    extras = {
        name: column
        for name, column in {"baseline": baseline, "cluster": cluster, **(periods or {})}.items()
        if column is not None
    }
    extra_dtypes = {name: _resolve_one(schema, column, name) for name, column in extras.items()}
    for name in periods or {}:
        [(column, dtype)] = extra_dtypes[name].items()
        if dtype != pl.Boolean:
            msg = (
                f"{name} must say of each row whether it is, as in pl.col('day') < "
                f"date(2026, 3, 15), but '{column}' is {dtype}"
            )
            raise pl.exceptions.SchemaError(msg)
    if not pred_dtypes:
        msg = f"{role}={pred} matches no column; the columns are {_quoted(schema)}"
        raise pl.exceptions.ColumnNotFoundError(msg)
    _check_keys(key_dtypes, [*answers, *(["model"] if several else [])])
    weight_name = next(iter(weight_dtype), None)
    arithmetic: Numbers = Integers()
    if weight_name is not None:
        arithmetic = numbers(weight_name, weight_dtype[weight_name])
    labelled = {**gold_dtype, **extra_dtypes.get("baseline", {})}
    labels: pl.DataType
    pred_dtype: pl.DataType
    multilabel = lists and any(map(_is_list, (*gold_dtype.values(), *pred_dtypes.values())))
    if multilabel:
        labels = _dtype_in_lists({**gold_dtype, **pred_dtypes})
        pred_dtype = pl.List(labels)
    elif role == "pred":
        labels = pred_dtype = common_dtype({**labelled, **pred_dtypes})
    else:
        labels, pred_dtype = common_dtype(labelled), _score_dtype(pred_dtypes)

    sums: tuple[str, ...] = ()
    if isinstance(source, Frame):
        looked_at = source.lazy()
    else:
        roles = {"key": keys, "gold": [gold], role: preds, **{n: [c] for n, c in extras.items()}}
        looked_at, rows, sums = _counted(source, roles, {kind: weight}, computed)
        [(weight, dtype)] = rows.items()
        weight_name = weight_name or weight
        arithmetic = numbers(weight_name, dtype)
    if periods:  # Before all else, so that the scan can do it.
        looked_at = looked_at.filter(pl.any_horizontal(map(as_expr, periods.values())))
    columns = [
        *(as_expr(key).name.prefix(_KEY) for key in keys),
        as_expr(gold).alias("gold"),
        (pl.lit(1, pl.Int64) if weight is None else as_expr(weight)).alias("weight"),
        *(as_expr(model).name.prefix(_PRED) for model in preds),
        *(as_expr(column).alias(name) for name, column in extras.items()),
        *sums,
    ]
    return Log(
        columns=looked_at.select(columns),
        keys=tuple(key_dtypes),
        preds=tuple(pred_dtypes),
        several=several,
        labels=labels,
        pred=pred_dtype,
        weight=weight_name,
        is_frequency=sample_weight is None,
        extras=tuple(extras),
        numbers=arithmetic,
        has_total=not key_dtypes,
        multilabel=multilabel,
        sums=sums,
    )


def opened(frame: AnyFrame) -> Frame | Engine:
    """A frame of Polars as it is; another, as what its engine makes of it.

    Raises:
        TypeError: It is no frame; or narwhals, which knows other frames, is not installed.
    """
    if isinstance(frame, Frame):
        return frame
    try:
        from polars_mcc import _engines  # noqa: PLC0415 - narwhals is loaded for it alone
    except ModuleNotFoundError:
        msg = (
            "expected a polars DataFrame or LazyFrame, got "
            f"{type(frame).__module__}.{type(frame).__qualname__}; for frames of Spark, DuckDB, "
            "Dask, Ibis, pandas and PyArrow: pip install 'polars-mcc[engines]'"
        )
        raise TypeError(msg) from None
    return _engines.of(frame)


def key_column(name: str) -> str:
    """The column of a log that holds the key of this name."""
    return _KEY + name


def dtype_of(frame: AnyFrame, column: IntoColumn, role: str) -> tuple[str, pl.DataType]:
    """The name and dtype of the one column that a user gives for a role."""
    source = opened(frame)
    [found] = _resolve_one(_schema_of(source), column, role).items()
    if not isinstance(source, Frame):
        source.check([column], role)
    return found


def one_or_several(models: Sequence[str]) -> str | Sequence[str]:
    """Models as `pred`: of one, the answer has no column `model`."""
    return models[0] if len(models) == 1 else models


def as_expr(column: IntoColumn) -> pl.Expr:
    """A column name as an expression that means this column and no other."""
    # pl.col("*") and pl.col("^a.*$") are patterns; a column so named is not.
    if not isinstance(column, str):
        return column
    is_pattern = column == "*" or (column.startswith("^") and column.endswith("$"))
    return cs.by_name(column).as_expr() if is_pattern else pl.col(column)


def pred_column(name: str) -> str:
    """The column of a log that holds the predictions of this model."""
    return _PRED + name


def check_number(name: str, value: float | None) -> None:
    """Raise a TypeError unless an option is a number or None."""
    if not (value is None or isinstance(value, (int, float))):
        msg = f"{name} must be a number or None, got {value!r}"
        raise TypeError(msg)


def check_level(ci: float) -> None:
    """Raise a ValueError unless a confidence level is between 0 and 1."""
    if not (isinstance(ci, (int, float)) and 0 < ci < 1):
        msg = f"ci must be a confidence level between 0 and 1, such as 0.95, got {ci!r}"
        raise ValueError(msg)


def check_polars(frame: object, subject: str) -> None:
    """Raise a TypeError unless a log is Polars'."""
    if not isinstance(frame, Frame):
        msg = (
            f"{subject} a polars DataFrame or LazyFrame, got {type(frame).__module__}."
            f"{type(frame).__qualname__}: of a log that another engine has, take "
            "polars_mcc.counts(...), with weight='n'"
        )
        raise TypeError(msg)


def check_collected(answer: object, subject: str) -> None:
    """Raise a TypeError unless what is to be shown is a DataFrame."""
    if not isinstance(answer, pl.DataFrame):
        msg = f"{subject} a DataFrame, got {type(answer).__qualname__}: collect() it first"
        raise TypeError(msg)


def check_choice(name: str, value: str, allowed: Sequence[str]) -> None:
    """Raise a ValueError unless an option has one of the values it can have."""
    if value not in allowed:
        msg = f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}"
        raise ValueError(msg)


def _schema_of(source: Frame | Engine) -> pl.Schema:
    if isinstance(source, Frame):
        return source.lazy().collect_schema()
    return source.schema


def _counted(
    engine: Engine,
    roles: Mapping[str, Sequence[IntoColumn]],
    weight: Mapping[str, IntoColumn | None],
    computed: Sequence[pl.Expr],
) -> Counted:
    """The log of an engine as counts of the rows that are alike in what the arguments name."""
    for role, columns in roles.items():
        theirs = [one for one in columns if not any(one is ours for ours in computed)]
        engine.check(theirs, role)
    [(role, column)] = weight.items()
    weights = [] if column is None else [column]
    engine.check(weights, role)
    return engine.counted(
        _roots(engine.schema, [column for columns in roles.values() for column in columns]),
        next(iter(_roots(engine.schema, weights)), None),
        is_frequency=role == "weight",
    )


def _roots(schema: pl.Schema, columns: Iterable[IntoColumn]) -> list[str]:
    """The columns of a frame that are needed for these, each once."""
    found: dict[str, None] = {}
    for column in columns:
        roots = [column] if isinstance(column, str) else column.meta.root_names()
        is_by_name = bool(roots) and all(root in schema for root in roots)
        found |= dict.fromkeys(roots if is_by_name else _resolve(schema, [column], "column"))
    return list(found)


def _resolve(schema: pl.Schema, columns: Sequence[IntoColumn], role: str) -> pl.Schema:
    """The names and dtypes that `columns` come to, after checking that they exist."""
    for column in columns:
        if not isinstance(column, (str, pl.Expr)):
            unpack = "; unpack a list with *" if isinstance(column, (list, tuple)) else ""
            msg = f"{role} must be a column name or a polars expression, got {column!r}{unpack}"
            raise TypeError(msg)
        for name in [column] if isinstance(column, str) else column.meta.root_names():
            if name not in schema:
                raise _not_found(name, schema, role)
    try:
        return (
            pl.LazyFrame(schema=schema)
            .select(as_expr(column) for column in columns)
            .collect_schema()
        )
    except pl.exceptions.DuplicateError as error:
        listed = ", ".join(map(str, columns))
        msg = f"two {role} columns have one name, in {listed}; name one of them with .alias(...)"
        raise pl.exceptions.DuplicateError(msg) from error


def _resolve_one(schema: pl.Schema, column: IntoColumn, role: str) -> pl.Schema:
    found = _resolve(schema, [column], role)
    if len(found) != 1:
        msg = f"{role} must be one column, but {column} is {_quoted(found) or 'none'}"
        raise ValueError(msg)
    return found


def _not_found(name: str, schema: pl.Schema, role: str) -> pl.exceptions.ColumnNotFoundError:
    def likeness(other: str) -> float:
        return difflib.SequenceMatcher(None, name.lower(), other.lower()).ratio()

    nearest = sorted(schema, key=likeness, reverse=True)
    hint = f"; did you mean '{nearest[0]}'?" if nearest and likeness(nearest[0]) >= 0.6 else "."
    columns = f"The columns are {_quoted(nearest[:10])}" if nearest else "There are no columns"
    more = f" and {len(nearest) - 10} more" if len(nearest) > 10 else ""
    msg = f"no column '{name}' for {role}{hint} {columns}{more}."
    return pl.exceptions.ColumnNotFoundError(msg)


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


def _is_list(dtype: pl.DataType) -> bool:
    return isinstance(dtype, (pl.List, pl.Array))


def _dtype_in_lists(columns: Mapping[str, pl.DataType]) -> pl.DataType:
    """The dtype in which labels in lists are compared."""
    inner: dict[str, pl.DataType] = {}
    for name, dtype in columns.items():
        if not isinstance(dtype, (pl.List, pl.Array)):
            lists = next(other for other in columns if _is_list(columns[other]))
            msg = (
                f"'{lists}' has lists of labels, but '{name}' is {dtype}: make both lists, as in "
                f"pl.concat_list('{name}'), or none"
            )
            raise pl.exceptions.SchemaError(msg)
        inner[name] = dtype.inner() if isinstance(dtype.inner, type) else dtype.inner
    labels = common_dtype(inner)
    if labels == pl.Boolean:
        names = " and ".join(map(repr, columns))
        msg = f"{names} have lists of Booleans, which are no names of labels; cast them to integers"
        raise pl.exceptions.SchemaError(msg)
    return pl.String() if labels == pl.Null else labels


def _score_dtype(scores: pl.Schema) -> pl.DataType:
    for name, dtype in scores.items():
        if not dtype.is_numeric():
            msg = f"score must be a number, but '{name}' is {dtype}; cast it, or use it as pred"
            raise pl.exceptions.SchemaError(msg)
    return pl.Float64() if len({*scores.values()}) > 1 else next(iter(scores.values()))


def _check_keys(keys: pl.Schema, answers: Sequence[str]) -> None:
    for name, dtype in keys.items():
        if dtype.is_object():
            msg = f"key '{name}' has dtype Object, whose values cannot be grouped; cast it first"
            raise pl.exceptions.SchemaError(msg)
        if name in answers:
            msg = (
                f"key '{name}' has the name of a column of the answer; "
                f"rename it, as in pl.col('{name}').alias('{name}_key')"
            )
            raise pl.exceptions.DuplicateError(msg)
