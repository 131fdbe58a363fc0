"""The door: a frame and what its columns mean, described once and checked against the schema."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, cast

import polars as pl

from polars_mcc._log import defaults
from polars_mcc._log.choices import Nulls, check_choice, check_number
from polars_mcc._log.columns import (
    Columns,
    IntoColumn,
    IntoColumns,
    as_code,
    check_weight,
    one,
    several,
)
from polars_mcc._log.frames import Frame, FrameT, OtherFrame
from polars_mcc._log.labels import as_label, common_dtype, dtype_in_lists, is_list

if TYPE_CHECKING:
    from typing_extensions import Self

    from polars_mcc._log.engines import Engine

OF_STORE = "polars_mcc:input"
"""A column that only files of a store have: which of its inputs a row is of, by number."""

P = ParamSpec("P")
LogT = TypeVar("LogT", bound="Described[Any]")


def _takes_what(
    _: Callable[Concatenate[Any, Any, P], None],
) -> Callable[[Callable[..., LogT]], Callable[Concatenate[LogT, P], LogT]]:
    """Type a method by a constructor: it takes the same, but the frame."""
    return lambda method: cast("Callable[Concatenate[LogT, P], LogT]", method)


class Described(Generic[FrameT]):
    """A frame and what its columns mean: what the verbs take."""

    def __init__(
        self,
        frame: FrameT | OtherFrame,
        *,
        gold: IntoColumn = defaults.GOLD,
        pred: IntoColumns | None = None,
        score: IntoColumns | None = None,
        positive: object = None,
        weight: IntoColumn | None = None,
        sample_weight: IntoColumn | None = None,
        cluster: IntoColumn | None = None,
        nulls: Nulls = defaults.NULLS,
        zero_division: float | None = defaults.ZERO_DIVISION,
    ) -> None:
        """Describe a log: what is true of it, whatever is asked.

        Args:
            frame: The log, a row per prediction; or a counts table, with `weight="n"`. A
                DataFrame or LazyFrame of Polars; or a frame of Spark, DuckDB, Dask, Ibis, pandas
                or PyArrow, or one that narwhals has wrapped: its engine counts the rows, and
                Polars does the rest. Its columns are then named, and not computed.
            gold: The true label.
            pred: The predicted label, or several models. Labels may be integers, floats, text,
                Booleans or dates; gold and pred compare by value. Or they are lists of these, if
                rows have several labels. None: the column "pred", unless there is a score.
            score: How sure a model is that a row is positive: a number, the larger the surer. Or
                several models. What `curve` and `best_threshold` are asked of.
            positive: The label that is positive, where one class is held against the rest; all
                others are negative. None: True, if labels are Boolean.
            weight: How many rows a row stands for (a frequency, not an importance): integer or
                float, not negative. None: 1. A row whose weight is null is not scored.
            sample_weight: How much a row counts (an importance: of a survey, of a class). The
                score is the same as with `weight`. The interval is wider: a row that counts for
                ten is not ten rows.
            cluster: What rows have in common that are not independent, such as a user: an
                interval is then as wide as the clusters differ.
            nulls: What a null label is. "drop": the row is not scored, and counted in `n_null`.
                "label": a class of its own, so that an abstention is a miss.
            zero_division: The score of a slice with one gold class or one predicted class, where
                R_K is 0/0: 0.0, NaN, or None for null.

        Raises:
            polars.exceptions.ColumnNotFoundError: A named column is missing.
            polars.exceptions.SchemaError: Gold and pred cannot be compared (String and Int64), or
                a weight or score is not a number.
            ValueError: An option has no such value; both `weight` and `sample_weight`.
            TypeError: It is no frame, or a column of another engine is yet to be computed.

        All of it is checked at once, against the schema; no data are read.
        """
        options = {**locals()}
        self.frame: FrameT | OtherFrame = options.pop("frame")
        del options["self"]
        self._options: Mapping[str, Any] = options
        self.meaning  # noqa: B018 - it is checked at once

    @classmethod
    def by_default(cls, frame: Frame) -> Self:
        """A log whose columns have their default names, checked when something is asked of it."""
        log = cls.__new__(cls)
        vars(log).update(frame=frame, _options={})
        return log

    @cached_property
    def meaning(self) -> Meaning:
        """What the columns are, found in the schema: for who writes a verb."""
        return _meaning(self.frame, SimpleNamespace(**{**_DEFAULTS, **self._options}))

    @_takes_what(__init__)
    def __call__(self, **columns: Any) -> Self:  # noqa: ANN401 - what the constructor takes
        """The same frame, described otherwise: takes what the class takes, but the frame."""
        return type(self)(self.frame, **{**self._options, **columns})

    def with_frame(self, frame: FrameT, **columns: Any) -> Self:  # noqa: ANN401 - as they take
        """The same description of another frame, but for these columns."""
        return type(self)(frame, **{**self._options, **columns})

    def in_kind(self, answer: pl.LazyFrame) -> FrameT:
        """An answer of the kind of the frame: lazy if that is, else collected."""
        return cast("FrameT", answer if self.meaning.is_lazy else answer.collect())

    @property
    def said(self) -> str:
        """What was said of the columns, as the arguments of a call."""
        return ", ".join(
            f"{name}={as_code(value)}"
            for name, value in self._options.items()
            if not _is_same(value, _DEFAULTS[name])
        )

    def __repr__(self) -> str:
        """The kind of frame, and what was said of its columns."""
        about = ", ".join(filter(None, [type(self.frame).__name__, self.said]))
        return f"{type(self).__name__}({about})"


_DEFAULTS = {
    name: option.default
    for name, option in inspect.signature(Described.__init__).parameters.items()
    if option.kind is option.KEYWORD_ONLY
}


def _is_same(value: object, default: object) -> bool:
    """Whether an option was left as it is; expressions have no truth value to compare by."""
    return value is default or (isinstance(value, (str, float)) and value == default)


@dataclass(frozen=True)
class Meaning:
    """What the columns of a log are, found in its schema."""

    source: Frame | Engine
    schema: pl.Schema
    gold: Columns
    preds: Columns | None
    scores: Columns | None
    positive: pl.Expr | None  # the positive label, of the dtype of labels; None if none was named
    weight: Columns | None
    is_frequency: bool
    """Whether the weight is how many rows a row stands for, and not how much it counts."""
    cluster: Columns | None
    nulls: Nulls
    zero_division: float | None
    label_dtype: pl.DataType  # the dtype in which labels are compared
    is_multilabel: bool  # whether labels are in lists

    @property
    def is_lazy(self) -> bool:
        """Whether nothing is to be read before `collect`."""
        if isinstance(self.source, Frame):
            return isinstance(self.source, pl.LazyFrame)
        return self.source.is_lazy

    def check_columns(self, columns: Columns | None, role: str) -> None:
        """Raise a TypeError if another engine has the log and cannot compute its columns."""
        if columns is not None and not isinstance(self.source, Frame):
            self.source.check(columns.given, role)

    def check_without(self, verb: str, reason: str, *options: str) -> None:
        """Raise a ValueError if the log is described by what a verb cannot take into account."""
        is_given = {
            "cluster": self.cluster is not None,
            "weight": self.weight is not None and self.is_frequency,
            "sample_weight": not self.is_frequency,
            "nulls='label'": self.nulls == "label",
        }
        for option in options:
            if is_given[option]:
                name, *_ = option.split("=")
                msg = (
                    f"{verb} cannot take {option} into account: {reason}; leave it out, as in "
                    f"log({name}={_DEFAULTS[name]!r}).{verb}(...)"
                )
                raise ValueError(msg)


def _meaning(frame: object, said: SimpleNamespace) -> Meaning:
    check_choice("nulls", said.nulls, Nulls)
    check_number("zero_division", said.zero_division)
    if said.weight is not None and said.sample_weight is not None:
        msg = (
            "weight says how many rows a row stands for, sample_weight how much one row counts: "
            "give one of them, not both"
        )
        raise ValueError(msg)
    source = opened(frame)
    schema = source.lazy().collect_schema() if isinstance(source, Frame) else source.schema
    if OF_STORE in schema:
        msg = (
            "these are files of a store of counts, some of which are no longer valid: open the "
            "store as PredictionLog.from_store(folder)"
        )
        raise ValueError(msg)
    if said.pred is None and said.score is None:
        said.pred = defaults.PRED
    found = {
        role: find(schema, getattr(said, role), role)
        for role, find in _ROLES.items()
        if getattr(said, role) is not None
    }
    gold, preds, scores = found["gold"], found.get("pred"), found.get("score")
    weight = found.get("weight") or found.get("sample_weight")
    if weight is not None:
        check_weight(weight.name, weight.dtype)
    labelled = [*gold.dtypes.items(), *(preds.dtypes.items() if preds else ())]
    is_multilabel = any(is_list(dtype) for _, dtype in labelled)
    labels = dtype_in_lists(labelled) if is_multilabel else common_dtype(labelled)
    for name, dtype in (scores.dtypes if scores else {}).items():
        if not dtype.is_numeric():
            msg = f"score must be a number, but '{name}' is {dtype}; cast it, or use it as pred"
            raise pl.exceptions.SchemaError(msg)
    meaning = Meaning(
        source=source,
        schema=schema,
        gold=gold,
        preds=preds,
        scores=scores,
        positive=None if said.positive is None else pl.lit(as_label(said.positive, labels), labels),
        weight=weight,
        is_frequency=said.sample_weight is None,
        cluster=found.get("cluster"),
        nulls=said.nulls,
        zero_division=said.zero_division,
        label_dtype=labels,
        is_multilabel=is_multilabel,
    )
    for role, columns in found.items():
        meaning.check_columns(columns, role)
    return meaning


_ROLES: Mapping[str, Callable[[pl.Schema, Any, str], Columns]] = {
    **dict.fromkeys(("gold", "weight", "sample_weight", "cluster"), one),
    **dict.fromkeys(("pred", "score"), several),
}


def opened(frame: object) -> Frame | Engine:
    """A frame of Polars as it is; another as its engine has it; or a TypeError."""
    if isinstance(frame, Frame):
        return frame
    try:
        from polars_mcc._log import engines  # noqa: PLC0415 - narwhals is loaded for it alone
    except ModuleNotFoundError:
        msg = (
            "expected a polars DataFrame or LazyFrame, got "
            f"{type(frame).__module__}.{type(frame).__qualname__}; for frames of Spark, DuckDB, "
            "Dask, Ibis, pandas and PyArrow: pip install 'polars-mcc[engines]'"
        )
        raise TypeError(msg) from None
    return engines.of(frame)
