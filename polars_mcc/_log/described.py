"""A frame and the roles of its columns, described once and checked against the schema."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property, wraps
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, cast

import polars as pl

from polars_mcc._log import defaults
from polars_mcc._log.choices import Nulls, Role, check_choice, check_number
from polars_mcc._log.columns import (
    Columns,
    IntoColumn,
    IntoColumns,
    as_expr,
    check_score,
    check_weight,
    one,
    several,
)
from polars_mcc._log.frames import Frame, FrameT, OtherFrame
from polars_mcc._log.labels import LabelsDiffer, as_label, dtype_of_labels, is_list
from polars_mcc._log.likely import likely
from polars_mcc._log.messages import Words, as_arguments, option, said
from polars_mcc._log.missing_column import MissingColumn

if TYPE_CHECKING:
    from typing_extensions import Self

    from polars_mcc._log.engines import Engine

P = ParamSpec("P")
LogT = TypeVar("LogT", bound="Described[Any]")


def _takes_what(
    _: Callable[Concatenate[Any, Any, P], None],
) -> Callable[[Callable[..., LogT]], Callable[Concatenate[LogT, P], LogT]]:
    """Give a method the parameters of a constructor, without the frame. All have to be named."""

    def typed(method: Callable[..., LogT]) -> Callable[Concatenate[LogT, P], LogT]:
        @wraps(method)
        def named(log: LogT, *unnamed: object, **columns: object) -> LogT:
            if unnamed:
                options = as_arguments(dict(zip(("gold", "pred"), unnamed, strict=False)))
                msg = f"name the options: df.mcc({options})"
                raise TypeError(msg)
            return method(log, **columns)

        return cast("Callable[Concatenate[LogT, P], LogT]", named)

    return typed


class Described(Generic[FrameT]):
    """A frame and the roles of its columns: the input of every verb."""

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
                negative. None: 1. A row whose weight is null is not scored.
            sample_weight: The importance of a row, such as a survey weight or a class weight. The
                score is the same as with `weight`. The interval is wider, because a row of weight
                10 is still one row.
            cluster: The column that groups dependent rows, such as the user id. Intervals then
                use the differences between clusters, not between rows.
            nulls: What to do with a null label. "drop": the row is not scored, and is counted in
                `n_null`. "label": null is a class of its own, so an abstention is an error. Metrics
                of scores always drop it.
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

        Raises:
            polars.exceptions.ColumnNotFoundError: A named column is missing.
            polars.exceptions.SchemaError: Gold and pred cannot be compared (String and Int64), or
                a weight or score is not a number.
            ValueError: An option has an unknown value; both `weight` and `sample_weight` are given;
                or a score per class has not one column for each of two labels or more.
            TypeError: `frame` is no frame, or a column of another engine is an expression.

        Everything is checked at once, against the schema. No data are read.
        """
        options = {**locals()}
        self.frame: FrameT | OtherFrame = options.pop("frame")
        del options["self"]
        self._options: Mapping[str, Any] = options
        self.meaning  # noqa: B018 - it is checked at once

    @classmethod
    def by_default(cls, frame: Frame) -> Self:
        """Make a log with the default column names. The first verb checks them."""
        log = cls.__new__(cls)
        vars(log).update(frame=frame, _options={})
        return log

    @cached_property
    def meaning(self) -> Meaning:
        """The columns and options, resolved against the schema. Verbs use it."""
        try:
            return Meaning(self.frame, SimpleNamespace(**{**_DEFAULTS, **self._options}))
        except MissingColumn as error:
            error.is_default = error.is_default and error.role not in self._changed
            if error.is_default:
                error.options = {**self._changed, **likely(error.schema, **self._changed)}
            if not isinstance(self.frame, Frame):
                error.frame = "PredictionLog(df, {})"
            raise

    @_takes_what(__init__)
    def __call__(self, **columns: Any) -> Self:  # noqa: ANN401 - what the constructor takes
        """Describe the same frame again, with these options changed."""
        for name in columns.keys() - _DEFAULTS:
            msg = f"there is no option {name!r}; the options are {', '.join(_DEFAULTS)}"
            raise TypeError(msg)
        return type(self)(self.frame, **{**self._options, **columns})

    def with_frame(self, frame: FrameT, **columns: Any) -> Self:  # noqa: ANN401 - as they take
        """Describe another frame in the same way, except for these columns."""
        return type(self)(frame, **{**self._options, **columns})

    def in_kind(self, answer: pl.LazyFrame) -> FrameT:
        """The answer as a LazyFrame if the log is lazy, else collected."""
        return cast("FrameT", answer if self.meaning.is_lazy else answer.collect())

    @property
    def said(self) -> str:
        """The options that differ from their defaults, as the arguments of a call."""
        return as_arguments(self._changed)

    @property
    def _changed(self) -> Mapping[str, object]:
        """The options that differ from their defaults."""
        return {
            name: value
            for name, value in self._options.items()
            if not _is_same(value, _DEFAULTS[name])
        }

    def __repr__(self) -> str:
        """The kind of frame, and the options that differ from their defaults."""
        about = ", ".join(filter(None, [type(self.frame).__name__, self.said]))
        return f"{type(self).__name__}({about})"


_DEFAULTS = {
    name: option.default
    for name, option in inspect.signature(Described.__init__).parameters.items()
    if option.kind is option.KEYWORD_ONLY
}


def _is_same(value: object, default: object) -> bool:
    """Whether an option has its default value. Expressions cannot be compared with ==."""
    return value is default or (isinstance(value, (str, float)) and value == default)


class Meaning:
    """The columns and options of a log, resolved against its schema."""

    def __init__(self, frame: object, options: SimpleNamespace) -> None:
        """Resolve the options, or raise an error."""
        check_choice("nulls", options.nulls, Nulls)
        check_number("zero_division", options.zero_division)
        if options.weight is not None and options.sample_weight is not None:
            msg = (
                "weight is a number of rows, sample_weight is the importance of one row: pass only "
                "one of them"
            )
            raise ValueError(msg)
        self.nulls: Nulls = options.nulls
        self.zero_division: float | None = options.zero_division
        self.portable: bool = options.portable
        self.source = source = opened(frame)
        self.schema = source.lazy().collect_schema() if isinstance(source, Frame) else source.schema
        if options.pred is None and options.score is None:
            options.pred = defaults.PRED
        by_label = options.score if isinstance(options.score, Mapping) else None
        options.score = options.score if by_label is None else [*by_label.values()]
        found = {
            role: (several if role in {"pred", "score"} else one)(self.schema, columns, role)
            for role in ("gold", "weight", "sample_weight", "cluster", "pred", "score")
            if (columns := getattr(options, role)) is not None
        }
        self.gold, self.preds = found["gold"], found.get("pred")
        self.scores, self.cluster = found.get("score"), found.get("cluster")
        self.weight = found.get("weight") or found.get("sample_weight")
        self.is_frequency = options.sample_weight is None
        """Whether the weight counts rows (`weight`), and is no importance (`sample_weight`)."""
        if self.weight is not None:
            check_weight(self.weight.name, self.weight.dtype)
        labelled = [*self.gold.dtypes.items(), *(self.preds.dtypes.items() if self.preds else ())]
        self.is_multilabel = any(is_list(dtype) for _, dtype in labelled)
        """Whether labels are in lists."""
        try:
            self.label_dtype = labels = dtype_of_labels(labelled)
            """The dtype in which labels are compared."""
        except LabelsDiffer as error:
            sides = (found[role] for role in ("gold", "pred") if role in found)
            given = {name: column for side in sides for name, column in side.each}
            error.are_lists = self.is_multilabel
            for name, column in given.items():
                if isinstance(column, pl.Expr) and not column.meta.is_column():
                    error.codes[name] = Words("(...)", "(...)")  # Polars shows it, but not as code.
                if isinstance(source, pl.DataFrame) and error.is_of_text:
                    label = as_expr(column).explode() if error.are_lists else as_expr(column)
                    occurring = source.select(label.unique().drop_nulls().sort())
                    error.known.setdefault(name, occurring.to_series().to_list())
            error.engine = None if isinstance(source, Frame) else source.cast
            raise
        for name, dtype in (self.scores.dtypes if self.scores else {}).items():
            check_score(name, dtype)
        self.score_labels = _labels_of_scores(by_label, self.scores, labels)
        """The label of each score, if there is a score per class."""
        positive = options.positive
        self.positive = None if positive is None else pl.lit(as_label(positive, labels), labels)
        """The positive label, in the dtype of the labels."""
        for role, columns in found.items():
            self.check_columns(columns, role)

    @property
    def positive_label(self) -> object:
        """The positive label as a value, or None."""
        return None if self.positive is None else pl.select(self.positive).item()

    @property
    def is_lazy(self) -> bool:
        """Whether the log is read only on `collect`."""
        if isinstance(self.source, Frame):
            return isinstance(self.source, pl.LazyFrame)
        return self.source.is_lazy

    @property
    def label_columns(self) -> tuple[str, ...]:
        """The names of the columns with the true and the predicted labels."""
        return (self.gold.name, *(self.preds.names if self.preds else ()))

    def has_models(self, roles: Iterable[Role]) -> bool:
        """Whether answers about predicted labels or scores name the model: there may be several.

        A score per class is of one model.
        """
        scores = None if self.score_labels else self.scores
        columns = ({"pred": self.preds, "score": scores}[role] for role in roles)
        return any(one is not None and one.is_several for one in columns)

    def check_columns(self, columns: Columns | None, role: str) -> None:
        """Raise a TypeError if another engine would have to compute a Polars expression."""
        if columns is not None and not isinstance(self.source, Frame):
            self.source.check(columns.given, role)

    def check_without(self, verb: str, reason: str, *options: str) -> None:
        """Raise a ValueError if the log has an option that a verb does not support."""
        is_given = {
            "cluster": self.cluster is not None,
            "weight": self.weight is not None and self.is_frequency,
            "sample_weight": not self.is_frequency,
            "nulls": self.nulls == "label",
        }
        for name in options:
            if is_given[name]:
                what = option(name, self.nulls) if name == "nulls" else name
                call = verb if verb.endswith(")") else f"{verb}(...)"
                instead = Words(f", as in log({name}={_DEFAULTS[name]!r}).{call}")
                msg = said(verb, " does not support ", what, f": {reason}; leave it out", instead)
                raise ValueError(msg)


def _labels_of_scores(
    by_label: Mapping[Any, IntoColumn] | None, scores: Columns | None, dtype: pl.DataType
) -> tuple[object, ...]:
    """The labels of a score per class, or none."""
    if by_label is None:
        return ()
    found = tuple(as_label(label, dtype, f"the label {label!r} of score") for label in by_label)
    columns = () if scores is None else scores.names
    if not 1 < len({*found} - {None}) == len(found) == len(columns):
        msg = (
            "a score per class needs one column for each of two labels or more, as in "
            f"score={{'cat': 'p_cat', 'dog': 'p_dog'}}, but has {len(columns)} columns for the "
            f"labels {', '.join(map(repr, found))}; for one score, pass its column and positive"
        )
        raise ValueError(msg)
    return found


def opened(frame: object) -> Frame | Engine:
    """A Polars frame as it is, or the engine of another frame, or a TypeError."""
    if isinstance(frame, Frame):
        return frame
    kind = f"{type(frame).__module__}.{type(frame).__qualname__}"
    try:
        from polars_mcc._log import in_memory  # noqa: PLC0415 - narwhals is loaded for it alone
    except ModuleNotFoundError:
        msg = (
            f"expected a polars DataFrame or LazyFrame, got {kind}; for frames of Spark, DuckDB, "
            "Dask, Ibis, pandas and PyArrow: pip install 'polars-mcc[engines]'"
        )
        raise TypeError(msg) from None
    try:
        return in_memory.of(frame)
    except TypeError as error:
        msg = (
            f"expected a polars DataFrame or LazyFrame, or a frame that narwhals takes, got {kind}"
        )
        raise TypeError(msg) from error
