"""The types of frames that can be a log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import polars as pl

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    FrameT = TypeVar(
        "FrameT", bound="pl.DataFrame | pl.LazyFrame", default="pl.DataFrame | pl.LazyFrame"
    )
else:  # Python has defaults of type variables from 3.13 on.
    from typing import TypeVar

    FrameT = TypeVar("FrameT")

Frame: TypeAlias = pl.DataFrame | pl.LazyFrame


class _Narwhals(Protocol):
    @property
    def to_native(self) -> Any: ...  # noqa: ANN401


class _PandasLike(Protocol):
    @property
    def iloc(self) -> Any: ...  # noqa: ANN401


class _Arrow(Protocol):
    @property
    def num_rows(self) -> Any: ...  # noqa: ANN401


class _DuckDB(Protocol):
    @property
    def sql_query(self) -> Any: ...  # noqa: ANN401


class _Ibis(Protocol):
    @property
    def order_by(self) -> Any: ...  # noqa: ANN401


class _SparkLike(Protocol):
    @property
    def withColumn(self) -> Any: ...  # noqa: ANN401, N802


OtherFrame: TypeAlias = _Narwhals | _PandasLike | _Arrow | _DuckDB | _Ibis | _SparkLike
"""Frames of other engines. Each type has a member that Polars frames do not have."""


def polars_frame(frame: object, subject: str) -> Frame:
    """The frame if it is from Polars, else a TypeError that says what to do."""
    if not isinstance(frame, Frame):
        raise TypeError(
            f"{subject} a polars DataFrame or LazyFrame, got {type(frame).__module__}."
            f"{type(frame).__qualname__}; for a log of another engine, pass its counts, "
            "PredictionLog(frame).counts(...), and weight='n'"
        )
    return frame


def check_collected(answer: object, subject: str) -> None:
    """Raise a TypeError unless the answer is a DataFrame."""
    if not isinstance(answer, pl.DataFrame):
        msg = f"{subject} a DataFrame, got {type(answer).__qualname__}: call collect() first"
        raise TypeError(msg)
