"""A frame and the roles of its columns, described once and checked against the schema."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date, timedelta
from functools import cached_property, wraps
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar, cast

import polars as pl

from polars_mcc._base import defaults
from polars_mcc._base.allowed_values import Nulls
from polars_mcc._base.message_parts import as_arguments, quoted
from polars_mcc._frame.columns import Frame, FrameT, IntoColumn, IntoColumns, OtherFrame
from polars_mcc._frame.late_labels import with_late_labels
from polars_mcc._frame.missing_and_likely_columns import role_like
from polars_mcc._frame.roles import GivenRoles, Roles, roles_of

P = ParamSpec("P")
LogT = TypeVar("LogT", bound="Described[Any]")


def _with_options_of(
    _: Callable[Concatenate[Any, Any, P], None],
) -> Callable[[Callable[..., LogT]], Callable[Concatenate[LogT, P], LogT]]:
    """Copy the signature of `__init__` to a method, without the frame; reject unnamed options."""

    def typed(method: Callable[..., LogT]) -> Callable[Concatenate[LogT, P], LogT]:
        @wraps(method)
        def named(log: LogT, *unnamed: object, **columns: object) -> LogT:
            if unnamed:
                options = as_arguments(dict(zip(("gold", "pred"), unnamed, strict=False)))
                raise TypeError(f"name the options: df.mcc({options})")
            return method(log, **columns)

        return cast("Callable[Concatenate[LogT, P], LogT]", named)

    return typed


def _of_known_options(init: Callable[P, None]) -> Callable[P, None]:
    """Reject unknown options, and name the known ones that are like them."""

    @wraps(init)
    def checked(*log_and_frame: P.args, **columns: P.kwargs) -> None:
        known = ("frame", *GivenRoles._fields)
        if unknown := [name for name in columns if name not in known]:
            roles = {role: columns[name] for name in unknown if (role := role_like(name))}
            meant = f"; did you mean {as_arguments(roles)}?" if roles else "."
            options = ", ".join(GivenRoles._fields)
            raise TypeError(
                f"there is no option {quoted(unknown)}{meant} The options are {options}"
            )
        init(*log_and_frame, **columns)

    return checked


class Described(Generic[FrameT]):
    """A frame and the roles of its columns: the input of every verb."""

    min_age: str | timedelta | None = None
    """The age that the rows of the frame have at least, which they keep in another frame."""

    @_of_known_options
    def __init__(
        self,
        frame: FrameT | OtherFrame,
        *,
        gold: IntoColumn = defaults.GOLD,
        pred: IntoColumns | None = None,
        score: IntoColumns | Mapping[Any, IntoColumn] | None = None,
        positive: object = None,
        weight: IntoColumn | None = None,
        sample_weight: IntoColumn | None = None,
        cluster: IntoColumn | None = None,
        nulls: Nulls = defaults.NULLS,
        zero_division: float | None = defaults.ZERO_DIVISION,
        portable: bool = False,
        outcomes: Frame | OtherFrame | None = None,
        on: IntoColumns | None = None,
        latest: IntoColumn | None = None,
        waiting: bool = False,
        time: IntoColumn | None = None,
        min_age: str | timedelta | None = None,
        now: str | date | None = None,
    ) -> None:
        """Describe a log once, for every question.

        Args:
            frame: The log, with one row per prediction, or a counts table with `weight="n"`. It
                is a Polars DataFrame or LazyFrame, or a frame of Spark, DuckDB, Dask, Ibis, pandas
                or PyArrow, or a narwhals frame. Another engine counts its rows, and Polars does
                the rest. Columns of another engine are named, not computed.
            gold: The true label.
            pred: The predicted label. In Python, a list for several models. Labels may be
                integers, floats, text, Booleans or dates, and gold and pred are of one kind. The
                integers 0 and 1 may stand beside Booleans. NaN is missing, as null is. If a row has
                several labels, both columns have lists. None: the column "pred", or none if there
                is a score.
            score: The model's score for the positive class, a number such as a probability. In
                Python, a list for several models, or a score per class by its label, as in
                `{"cat": "p_cat", "dog": "p_dog"}`; a gold label without a score is then an error.
                A larger score means more positive. `curve`, `best_threshold`, `calibration` and
                metrics of scores, such as "roc_auc" and "brier", use it. Metrics of scores do not
                score a row whose score is null or NaN, and count it in `n_null`. Many distinct
                scores need memory: round them.
            positive: The positive label, for metrics of one class such as "tpr", and for scores.
                All other labels are then negative. Other metrics do not change. None: True, if
                labels are Boolean.
            weight: The number of rows that a row stands for, a frequency: integer or float, not
                negative. None: 1. A row whose weight is null is not scored. A row of weight 0 has a
                slice, and else counts for nothing: its labels are no classes. With weights, `n` is
                the sum of the weights of the rows scored. `n_null` is the sum of the weights of the
                rows not scored; a null weight adds 1.
            sample_weight: The importance of a row, such as a survey weight or a class weight. The
                score is the same as with `weight`, and so are `n` and `n_null`: sums of weights,
                not numbers of rows. The interval is wider, because a row of weight
                10 is still one row.
            cluster: The column that groups dependent rows, such as the user id. Intervals then
                use the differences between clusters, not between rows.
            nulls: What to do with a null label. "drop": the row is not scored, and is counted in
                `n_null`. "label": null is a class of its own, so an abstention is an error. Metrics
                of scores always drop it. "reweight": the labelled rows of a slice stand for its
                rows with the same prediction and no gold label, if labels came for some rows only.
                The scores are then of all rows with a prediction. They are right only if, among
                the rows of a slice with one prediction, whether a label comes does not depend on
                the label. `by`, `score`, `classes`, `check`, `compare`, `contrast`, `drift` and
                `worst` take it: see *Labels for some rows* of `by`.
            zero_division: The score of a slice with one gold class or one predicted class, where
                R_K is 0/0: 0.0, NaN, or None for null. So are precision and F1 at 0/0; fdr and for
                are 1 minus it. Rates of gold rows, such as "tpr" and "fpr", are null without them,
                and so is "roc_auc".
            portable: Whether a lazy plan must consist of Polars' own expressions, so that it can be
                serialised, or sent to a cluster. Otherwise text in local Parquet files is counted
                by the codes of the files, which is faster: an IO source in the plan does that. The
                answers are the same. An interval or a test of a lazy log is not portable, and
                raises an error: send `counts(...)`, and ask the counts for it, as in
                `counts.mcc(weight="n").by("country", ci=0.95)`.
            outcomes: The labels, if they come later and lie in another frame, of the same engine.
                `gold` and `latest` are then columns of it, and all other columns are of the
                predictions. It is joined by `on`; other columns of it are not read. A prediction
                without a label, or without an id, waits: it is not scored. An id that several
                predictions have is scored for each of them. A label whose id no prediction has is
                left out.
            on: The id that predictions and outcomes share: a column or several, of both frames, and
                no floats. An id with two different labels is an error, on `collect` if the log is
                lazy.
            latest: The time of a label, in `outcomes`: a date, a time or an integer. The newest
                label of an id counts; null is the oldest. A newest label that is null was taken
                back: its prediction waits. None: all labels of an id must be equal.
            waiting: Whether a row without a gold label waits for it. Answers then have a column
                `n_waiting` after `n_null`: how many of the rows that are not scored wait. With
                `outcomes` it is True.
            time: The time of a prediction, Date or Datetime; for `changes` and `min_age`.
            min_age: Score only rows that are at least so old, such as "30d", so that each label had
                the same time to come. A row without a time is left out. The age counts from `now`,
                or else from the newest row, or today if that is earlier; then the log is read once
                more.
            now: The time from which `min_age` counts: a date or a time. Labels count whenever they
                came, also after it: to see a log as it was then, filter `outcomes` too.

        Raises:
            polars.exceptions.ColumnNotFoundError: A named column is missing.
            polars.exceptions.SchemaError: Gold and pred cannot be compared (String and Int64), a
                weight or score is not a number, an id has another dtype in `outcomes`, or `latest`
                or `time` is no time.
            polars.exceptions.DuplicateError: `gold` is a column of both frames.
            polars.exceptions.InvalidOperationError: An id has two labels.
            ValueError: An option has an unknown value; both `weight` and `sample_weight` are given;
                a score per class has not one column for each of two labels or more; an option needs
                another that is not given; `nulls="label"` with `outcomes`; or `nulls="reweight"`
                with clusters, sample weights or lists of labels.
            TypeError: `frame` is no frame; a column of another engine is an expression; `outcomes`
                is of another engine than `frame`; or `min_age` of a frame of another engine.

        Everything is checked at once, against the schema; `frame.mcc` is checked by its first verb.
        No rows of a lazy frame are read. Of a DataFrame, some are read for the message if its
        labels cannot be compared; it is joined with `outcomes` at once.
        """
        roles = (gold, pred, score, positive, weight, sample_weight, cluster)
        late = (outcomes, on, latest, waiting, time, min_age, now)
        given = GivenRoles(*roles, nulls, zero_division, portable, *late)
        joined, self._given = with_late_labels(frame, given)
        self.frame: FrameT | OtherFrame = joined
        self.roles = roles_of(joined, self._given)
        self.min_age = min_age

    @classmethod
    def by_default(cls, frame: Frame) -> Self:
        """Make a log with the default column names. The first verb checks them."""
        log = cls.__new__(cls)
        vars(log).update(frame=frame, _given=GivenRoles())
        return log

    @cached_property
    def roles(self) -> Roles:
        """The columns and options, resolved against the schema. Verbs use it."""
        return roles_of(self.frame, self._given)

    @_with_options_of(__init__)
    def __call__(self, **columns: Any) -> Self:  # noqa: ANN401 - what the constructor takes
        """Describe the same frame again, with these options changed."""
        return self.with_frame(self.frame, **columns)

    def with_frame(self, frame: FrameT | OtherFrame, **columns: Any) -> Self:  # noqa: ANN401 - as they take
        """Describe another frame in the same way, except for these columns."""
        log = type(self)(frame, **{**self._given._asdict(), **columns})
        log.min_age = log.min_age or self.min_age
        return log

    def in_kind(self, answer: pl.LazyFrame) -> FrameT:
        """The answer as a LazyFrame if the log is lazy, else collected."""
        return cast("FrameT", answer if self.roles.is_lazy else answer.collect())

    @property
    def said(self) -> str:
        """The options that differ from their defaults, as the arguments of a call."""
        return as_arguments(self._given.changed)

    def __repr__(self) -> str:
        """The kind of frame, and the options that differ from their defaults."""
        about = ", ".join(filter(None, [type(self.frame).__name__, self.said]))
        return f"{type(self).__name__}({about})"
