"""What the columns of a log are, resolved against its schema: gold, models, scores, weights."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from polars_mcc._base import defaults
from polars_mcc._base.allowed_values import Nulls, Role, check_choice, check_number
from polars_mcc._base.message_parts import Words, option, refused
from polars_mcc._frame import columns
from polars_mcc._frame.columns import Frame, IntoColumn, IntoColumns, NamedColumns, Weighed, as_expr
from polars_mcc._frame.labels import LabelsDiffer, as_label, dtype_of_labels, is_list
from polars_mcc._frame.missing_and_likely_columns import MissingColumn, likely

if TYPE_CHECKING:
    from polars_mcc._frame.engines import Engine


LABELLED_AT = "polars_mcc:labelled_at"
"""The time of the newest label of a row, if labels come later and have a time."""


class GivenRoles(NamedTuple):
    """The options of a log as a user gave them: `Described` documents each."""

    gold: IntoColumn = defaults.GOLD
    pred: IntoColumns | None = None
    score: IntoColumns | Mapping[Any, IntoColumn] | None = None
    positive: object = None
    weight: IntoColumn | None = None
    sample_weight: IntoColumn | None = None
    cluster: IntoColumn | None = None
    nulls: Nulls = defaults.NULLS
    zero_division: float | None = defaults.ZERO_DIVISION
    portable: bool = False
    outcomes: Any = None
    on: IntoColumns | None = None
    latest: IntoColumn | None = None
    waiting: bool = False
    time: IntoColumn | None = None
    min_age: str | timedelta | None = None
    now: str | date | None = None

    @property
    def changed(self) -> dict[str, object]:
        """The options that differ from their defaults. Expressions cannot be compared with ==."""
        default = self._field_defaults
        return {
            name: value
            for name, value in self._asdict().items()
            if value is not default[name]
            and not (isinstance(value, (str, float)) and value == default[name])
        }


@dataclass(frozen=True)
class Roles:
    """The columns and options of a log, resolved against its schema: see `roles_of`."""

    source: Frame | Engine
    schema: pl.Schema
    gold: NamedColumns
    preds: NamedColumns | None
    """The predicted labels, a column per model."""
    scores: NamedColumns | None
    """The scores: a column per model; or of one model, a column per label of `score_labels`."""
    score_labels: tuple[object, ...]
    weight: NamedColumns | None
    is_frequency: bool
    """Whether the weight counts rows (`weight`), and is no importance (`sample_weight`)."""
    cluster: NamedColumns | None
    time: NamedColumns | None
    """When a row was predicted."""
    label_dtype: pl.DataType
    """The dtype in which labels are compared."""
    is_multilabel: bool
    """Whether labels are in lists."""
    positive: pl.Expr | None
    """The positive label, in the dtype of the labels."""
    nulls: Nulls
    zero_division: float | None
    portable: bool
    waiting: bool
    """Whether a row without a gold label waits for it: answers then say how many do."""

    @property
    def positive_label(self) -> object:
        """The positive label as a value, or None."""
        return None if self.positive is None else pl.select(self.positive).item()

    @property
    def is_lazy(self) -> bool:
        """Whether the log is read only on `collect`."""
        source = self.source
        return isinstance(source, pl.LazyFrame) if isinstance(source, Frame) else source.is_lazy

    @property
    def label_columns(self) -> tuple[str, ...]:
        """The names of the columns with the true and the predicted labels."""
        return (self.gold.name, *(self.preds.names if self.preds else ()))

    def has_models(self, roles: Iterable[Role]) -> bool:
        """Whether answers about predicted labels or scores name the model: there may be several.

        A score per class is of one model.
        """
        scores = None if self.score_labels else self.scores
        columns = {"pred": self.preds, "score": scores}
        return any((side := columns[role]) is not None and side.is_several for role in roles)

    def weighed(self, columns: Mapping[str, NamedColumns]) -> Weighed:
        """The log. From another engine: the counts of equal rows in these columns, by their role.

        Another engine does not compute Polars expressions: a TypeError says so.
        """
        weight = self.weight
        if not isinstance(self.source, Frame):
            self.source.check(columns)
            given = [column for named in columns.values() for column in named.given]
            return self.source.counted(given, weight, is_frequency=self.is_frequency)
        if weight is None:
            return Weighed(self.source.lazy(), pl.lit(1, pl.Int64), None, pl.Int64())
        return Weighed(self.source.lazy(), weight.expr, weight.name, weight.dtype)

    def check_without(self, verb: str, reason: str, *options: str) -> None:
        """Raise a ValueError if the log has an option that a verb does not support."""
        is_given = {
            "cluster": self.cluster is not None,
            "weight": self.weight is not None and self.is_frequency,
            "sample_weight": not self.is_frequency,
            "nulls": self.nulls == "label",
            "reweight": self.nulls == "reweight",
        }
        for given in options:
            if is_given[given]:
                name = "nulls" if given == "reweight" else given
                what = option(name, self.nulls) if name == "nulls" else name
                call = verb if verb.endswith(")") else f"{verb}(...)"
                default = GivenRoles._field_defaults[name]
                instead = Words(f", as in log({name}={default!r}).{call}")
                raise refused(
                    verb, " does not support ", what, f": {reason}; leave it out", instead
                )

    def check_score_per_class(self) -> None:
        """Raise a ValueError if the log has one score of a row."""
        if self.scores is not None and not self.score_labels:
            raise ValueError(
                "this metric ranks the scores of all classes of a row, and this log has one score: "
                "name a score per class, as in log(score={'cat': 'p_cat', 'dog': 'p_dog'})"
            )


def roles_of(frame: object, given: GivenRoles) -> Roles:
    """Check the options of a log against its schema, or raise an error. No lazy data are read."""
    try:
        return _resolved(frame, given)
    except MissingColumn as error:
        error.is_default = error.is_default and error.role not in given.changed
        if error.is_default:
            error.options = {**given.changed, **likely(error.schema, **given.changed)}
        if not isinstance(frame, Frame):
            error.frame = "PredictionLog(df, {})"
        raise


def _resolved(frame: object, given: GivenRoles) -> Roles:
    check_choice("nulls", given.nulls, Nulls)
    check_number("zero_division", given.zero_division)
    _check_together(given)
    source = opened(frame)
    schema = schema_of(source)
    # A selector selects columns of the user.
    schema = pl.Schema((name, schema[name]) for name in schema if name != LABELLED_AT)
    score, by_label = given.score, None
    if isinstance(score, Mapping):
        by_label, score = score, [*score.values()]
    pred = defaults.PRED if given.pred is None and score is None else given.pred
    named = {"gold": columns.one_column(schema, given.gold, "gold")}
    for role in ("weight", "sample_weight", "cluster", "time"):
        if (column := getattr(given, role)) is not None:
            named[role] = columns.one_column(schema, column, role)
    named |= {
        role: columns.several_columns(schema, into, role)
        for role, into in (("pred", pred), ("score", score))
        if into is not None
    }
    weight = named.get("weight") or named.get("sample_weight")
    if weight is not None:
        columns.check_weight(weight.name, weight.dtype)
    if (time := named.get("time")) is not None:
        columns.check_time(time.name, time.dtype)
    sides = [named[role] for role in ("gold", "pred") if role in named]
    label_dtype = _label_dtype(source, sides, given.positive)
    scores = named.get("score")
    for name, dtype in (scores.dtypes if scores else {}).items():
        columns.check_score(name, dtype)
    positive = given.positive
    roles = Roles(
        source=source,
        schema=schema,
        gold=named["gold"],
        preds=named.get("pred"),
        scores=scores,
        score_labels=() if by_label is None else _score_labels(by_label, scores, label_dtype),
        weight=weight,
        is_frequency=given.sample_weight is None,
        cluster=named.get("cluster"),
        time=time,
        label_dtype=label_dtype,
        is_multilabel=any(is_list(dtype) for side in sides for dtype in side.dtypes.values()),
        positive=None if positive is None else pl.lit(as_label(positive, label_dtype), label_dtype),
        nulls=given.nulls,
        zero_division=given.zero_division,
        portable=given.portable,
        waiting=given.waiting,
    )
    if not isinstance(source, Frame):
        source.check(named)
    if roles.nulls == "reweight":
        _check_reweighting(roles)
    return roles


def schema_of(source: Frame | Engine) -> pl.Schema:
    """The columns of a frame of Polars, or of another engine."""
    return source.collect_schema() if isinstance(source, Frame) else source.schema


def _check_together(given: GivenRoles) -> None:
    """Raise a ValueError if options exclude each other."""
    if given.weight is not None and given.sample_weight is not None:
        raise ValueError(
            "weight is a number of rows, sample_weight is the importance of one row: pass only "
            "one of them"
        )
    if given.waiting and given.nulls == "label":
        raise refused(
            option("nulls", "label"),
            " does not support labels that come later: a row that waits has no class; fill the "
            "nulls of the predictions, and leave nulls out",
        )


def _check_reweighting(roles: Roles) -> None:
    """Raise a ValueError if labelled rows cannot stand for the rows without a label."""
    reasons = {
        "cluster": ("it assumes that rows are independent", roles.cluster is not None),
        "sample_weight": ("it counts rows", not roles.is_frequency),
        "lists of labels": ("a prediction must be one label", roles.is_multilabel),
    }
    for what, (reason, is_given) in reasons.items():
        if is_given:
            policy = option("nulls", roles.nulls)
            raise refused(policy, f" does not support {what}: {reason}; leave one of them out")


def _label_dtype(
    source: Frame | Engine, sides: Iterable[NamedColumns], positive: object
) -> pl.DataType:
    """The dtype in which labels are compared, or an error that knows the labels that occur."""
    labelled = [item for side in sides for item in side.dtypes.items()]
    try:
        return dtype_of_labels(labelled)
    except LabelsDiffer as error:
        error.true = positive
        error.are_lists = any(is_list(dtype) for _, dtype in labelled)
        for name, column in (item for side in sides for item in side.each):
            if isinstance(column, pl.Expr) and not column.meta.is_column():
                error.codes[name] = Words("(...)", "(...)")  # Polars shows it, but not as code.
            if isinstance(source, pl.DataFrame) and error.is_of_text:
                label = as_expr(column).explode() if error.are_lists else as_expr(column)
                occurring = source.select(label.unique().drop_nulls().sort())
                error.known.setdefault(name, occurring.to_series().to_list())
        error.engine = None if isinstance(source, Frame) else source.cast
        raise


def _score_labels(
    by_label: Mapping[Any, IntoColumn], scores: NamedColumns | None, dtype: pl.DataType
) -> tuple[object, ...]:
    """The labels of a score per class."""
    labels = tuple(as_label(label, dtype, f"the label {label!r} of score") for label in by_label)
    columns = () if scores is None else scores.names
    if not 1 < len({*labels} - {None}) == len(labels) == len(columns):
        raise ValueError(
            "a score per class needs one column for each of two labels or more, as in "
            f"score={{'cat': 'p_cat', 'dog': 'p_dog'}}, but has {len(columns)} columns for the "
            f"labels {', '.join(map(repr, labels))}; for one score, pass its column and positive"
        )
    return labels


def opened(frame: object) -> Frame | Engine:
    """A Polars frame as it is, or the engine of another frame, or a TypeError."""
    if isinstance(frame, Frame):
        return frame
    kind = f"{type(frame).__module__}.{type(frame).__qualname__}"
    try:
        from polars_mcc._frame import pandas_and_pyarrow  # noqa: PLC0415 - narwhals is loaded for it alone
    except ModuleNotFoundError:
        raise TypeError(
            f"expected a polars DataFrame or LazyFrame, got {kind}; for frames of Spark, DuckDB, "
            "Dask, Ibis, pandas and PyArrow: pip install 'polars-mcc[engines]'"
        ) from None
    try:
        return pandas_and_pyarrow.of(frame)
    except TypeError as error:
        raise TypeError(
            f"expected a polars DataFrame or LazyFrame, or a frame that narwhals takes, got {kind}"
        ) from error
