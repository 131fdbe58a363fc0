"""The dtype in which labels are compared, and the labels of a dtype."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import TypeAlias, TypeVar

import polars as pl

from polars_mcc._base.allowed_values import Nulls
from polars_mcc._base.errors_and_warnings import Failure, unless
from polars_mcc._base.message_parts import Words, cast, column, option, refused, said, sql_text
from polars_mcc._base.values_as_text_or_markdown import BOOLEANS, read_as

T = TypeVar("T")

Labelled: TypeAlias = Sequence[tuple[str, pl.DataType]]
"""The name and dtype of each column of labels. Two columns may have the same name."""

_WIDE = (pl.UInt64, pl.Int128, pl.UInt128)
_SHOWN = 10  # labels that a message shows, at most
_LARGEST_INT128 = 2**127 - 1  # the largest Int128


def common_dtype(columns: Labelled) -> pl.DataType:
    """The dtype in which the labels of all `columns` are compared by value, or a SchemaError.

    Labels of one dtype are compared as they are. Integers of different widths are compared in a
    wider integer, floats in Float64, text (String, Categorical, Enum) in String. Integers beside
    Booleans are compared as Booleans: they must be 0 or 1. A column of dtype Null fits any other.
    """
    for name, dtype in columns:
        if dtype.is_nested() or dtype.is_object():
            msg = said(
                f"labels must be plain values here, but '{name}' is {dtype}; take one label of "
                "it first (a struct field, a list element); lists of labels work in ",
                Words("by(), score(), classes() and counts()", "by, score, classes and counts"),
                " without intervals",
            )
            raise pl.exceptions.SchemaError(msg)
    dtypes = list(dict.fromkeys(dtype for _, dtype in columns if dtype != pl.Null))
    if not dtypes:
        return pl.Null()
    if len(dtypes) == 1:
        return dtypes[0]
    if all(dtype.is_integer() or dtype == pl.Boolean for dtype in dtypes):
        return _of_integers(dtypes)
    if all(dtype.is_float() for dtype in dtypes):
        return pl.Float64()
    if all(map(is_text, dtypes)):
        return pl.String()
    raise LabelsDiffer(columns, dtypes[0], dtypes[1])


class LabelsDiffer(pl.exceptions.SchemaError):
    """Gold and predicted labels are of two kinds.

    Attributes:
        problem: The columns and their dtypes.
        name, dtype: A column that can be cast, and its dtype.
        other: The dtype to cast it to.
        codes: Each column as code.
        known: The labels of the columns whose labels are known.
        true: The word for true: the positive label that was named.
        are_lists: Whether the labels are in lists.
        engine: Makes the code of a cast in the words of another engine; None: of Polars.
    """

    def __init__(self, columns: Labelled, *dtypes: pl.DataType) -> None:
        """Take the columns, and two dtypes of them that cannot be compared."""
        super().__init__(columns, *dtypes)
        listed_dtypes = ", ".join(f"'{name}' is {dtype}" for name, dtype in columns)
        self.problem = f"labels cannot be compared: {listed_dtypes}"
        # Text stays as it is, and a float may be a score.
        other, self.dtype = sorted(
            dtypes, key=lambda dtype: 0 if is_text(dtype) else 1 + dtype.is_float()
        )
        if self.dtype == columns[0][1] and self.dtype.is_float():  # Gold is no score.
            other, self.dtype = self.dtype, other
        if is_text(other) and self.dtype == pl.Boolean:  # Polars would write "true", not "True".
            other, self.dtype = self.dtype, other
        self.name = next(name for name, dtype in columns if dtype == self.dtype)
        self.other = pl.String() if is_text(other) else other
        self.codes = {name: column(name) for name, _ in columns}
        self.known: dict[str, list[object]] = {
            name: labels for name, dtype in columns if (labels := known_labels(dtype)) is not None
        }
        self.true: object = None
        self.are_lists = False
        self.engine: Callable[[LabelsDiffer], str] | None = None

    @property
    def is_of_text(self) -> bool:
        """Whether text is beside integers or Booleans: their labels say which is which."""
        return self.is_word or (is_text(self.other) and self.dtype.is_integer())

    @property
    def is_score(self) -> bool:
        """Whether a column is probably a score: a cast to an integer would make it 0."""
        return self.dtype.is_float() and (self.other.is_integer() or self.other == pl.Boolean)

    @property
    def is_word(self) -> bool:
        """Whether a column has words beside Booleans: which word is true is not known."""
        return is_text(self.dtype) and self.other == pl.Boolean

    @property
    def word(self) -> str:
        """The word for true: the one that was named, or the last label, as yes is after no."""
        labels = [str(label) for label in self.known.get(self.name, ()) if label is not None]
        last = "True" if "True" in labels else max(labels, default="True")
        return self.true if isinstance(self.true, str) else last

    @property
    def words(self) -> Words:
        """The message, with the code that makes the labels of the column like the others."""
        own = self.codes[self.name]
        how, code = "cast one to the other's dtype", cast(own, repr(self.other))
        if self.are_lists:
            code = Words(f"{own}.cast(pl.List(pl.{self.other!r}))", f"{code.in_shell}[]")
        if self.is_score:
            how, code = "cut the score at a threshold", said(own, " >= 0.5")
        if self.is_word:
            how = "compare the text with the word for true"
            code = said(own, Words(f" == {self.word!r}", f" = {sql_text(self.word)}"))
        advice = said(f"{how}, as in ", self.engine(self) if self.engine else code)
        if self.is_word and isinstance(self.true, str):
            advice = said(advice, ", and leave out ", option("positive", self.true))
        if self.is_of_text and not self.is_word:
            same = "; else give both columns the same labels first"
            advice = said("if the text is numbers, ", advice, same)
        labels = ((name, self.known.get(name)) for name in self.codes if self.is_of_text)
        shown = [f"'{name}' has {listed(known)}" for name, known in labels if known]
        return said("; ".join([self.problem, *shown]), "; ", advice)

    def __str__(self) -> str:
        """The message in Python."""
        return self.words


def listed(labels: Sequence[object] | pl.Series) -> str:
    """Labels for a message, the first ten."""
    left_out = ["…"] if len(labels) > _SHOWN else []
    return ", ".join([*map(repr, labels[:_SHOWN]), *left_out])


def _of_integers(dtypes: Sequence[pl.DataType]) -> pl.DataType:
    """The dtype in which integers and Booleans are compared."""
    if pl.Boolean in dtypes:
        return pl.Boolean()
    if pl.UInt128 in dtypes and all(dtype.is_unsigned_integer() for dtype in dtypes):
        return pl.UInt128()
    return pl.Int128() if any(dtype in _WIDE for dtype in dtypes) else pl.Int64()


def as_compared(label: pl.Expr, name: str, dtype: pl.DataType, common: pl.DataType) -> pl.Expr:
    """The labels of a column, as they are compared with others: NaN is null, arrays are lists.

    Integers beside Booleans become Booleans; an integer other than 0 and 1 is an error on
    `collect`. All other casts are left to the caller, who may cast counts instead of rows.
    """
    if isinstance(dtype, (pl.List, pl.Array)):
        listed = label.cast(pl.List(dtype.inner)) if isinstance(dtype, pl.Array) else label
        is_float = dtype.inner.is_float()
        return listed.list.eval(pl.element().fill_nan(None)) if is_float else listed
    if dtype.is_float():
        return label.fill_nan(None)
    if common == pl.Boolean and dtype.is_integer():
        is_other = (label != 0) & (label != 1)
        why = "but beside Booleans only 0 and 1 are labels; make it Boolean by a comparison"
        return unless(label == 1, _failure(label, name, is_other, why))
    if dtype == pl.UInt128 and common == pl.Int128:
        is_other = label > _LARGEST_INT128
        why = "too large beside integers that may be negative; make both text"
        return unless(label.cast(common, strict=False), _failure(label, name, is_other, why))
    return label


def _failure(label: pl.Expr, name: str, is_other: pl.Expr, why: str) -> Failure:
    shown = pl.when(is_other).then(label)
    return Failure(is_other, (f"'{name}' has the label ", shown, f", {why}"))


def dtype_of_labels(columns: Labelled) -> pl.DataType:
    """The dtype in which labels are compared, plain or inside lists, or a SchemaError."""
    lists = [name for name, dtype in columns if is_list(dtype)]
    if not lists:
        return common_dtype(columns)
    inner: list[tuple[str, pl.DataType]] = []
    for name, dtype in columns:
        if not isinstance(dtype, (pl.List, pl.Array)):
            instead = Words(f", as in pl.concat_list('{name}')")
            what = f"'{lists[0]}' has lists of labels, but '{name}' is {dtype}: make both lists"
            raise pl.exceptions.SchemaError(said(what, instead, ", or neither"))
        inner += pl.Schema({name: dtype.inner}).items()
    labels = common_dtype(inner)
    if labels == pl.Boolean:
        names = " and ".join(repr(name) for name, _ in columns)
        msg = f"{names} have lists of Booleans, but lists must hold the names of labels"
        raise pl.exceptions.SchemaError(msg)
    return pl.String() if labels == pl.Null else labels


def as_labels(labels: Sequence[object], dtype: pl.DataType, *, null: bool) -> pl.Series:
    """The labels that a user listed as a Series of `dtype`. `null`: null is a label too."""
    missing = [None] if null and None not in labels else []
    known = [_as_known(label, dtype) for label in labels]
    try:
        listed = pl.Series("labels", [*known, *missing], dtype=dtype, strict=True)
    except (TypeError, pl.exceptions.PolarsError) as error:
        given = option("labels", list(labels))
        msg = said(given, f" do not have the dtype of the columns, {dtype}: {error}")
        raise pl.exceptions.SchemaError(msg) from error
    if listed.is_duplicated().any():
        raise refused(option("labels", list(labels)), " lists a label twice")
    return listed


def as_label(label: object, dtype: pl.DataType, given: str = "") -> object:
    """A label as a value of `dtype`, or a SchemaError that says what is `given`."""
    try:
        [value] = pl.Series([_as_known(label, dtype)], dtype=dtype, strict=True)
    except (TypeError, pl.exceptions.PolarsError) as error:
        msg = said(
            given or option("positive", label), f" does not have the dtype of the labels, {dtype}"
        )
        raise pl.exceptions.SchemaError(msg) from error
    return value


def from_text(text: str, dtype: pl.DataType) -> object:
    """A value of `dtype` from its text, as a user types it; None if the text is no such value."""
    known = BOOLEANS.get(text.lower())
    if dtype.is_integer() and known is not None:
        return int(known)
    try:
        value = pl.select(read_as(pl.lit(text), pl.String(), dtype).cast(dtype)).item()
    except pl.exceptions.PolarsError:
        return None
    is_rounded = isinstance(dtype, pl.Decimal) and value is not None and value != Decimal(text)
    return None if is_rounded else value


def _as_known(label: object, dtype: pl.DataType) -> object:
    """0 and 1 as Booleans, and Booleans as 0 and 1, if the labels are."""
    if dtype == pl.Boolean and isinstance(label, int) and label in {0, 1}:
        return bool(label)
    return int(label) if dtype.is_integer() and isinstance(label, bool) else label


def known_labels(dtype: pl.DataType) -> list[object] | None:
    """All labels of a Boolean or Enum dtype, in order. None for other dtypes."""
    if dtype == pl.Boolean:
        return [False, True]
    return dtype.categories.to_list() if isinstance(dtype, pl.Enum) else None


def is_text(dtype: pl.DataType) -> bool:
    """Whether labels are text."""
    return isinstance(dtype, (pl.String, pl.Categorical, pl.Enum))


def is_list(dtype: pl.DataType) -> bool:
    """Whether the dtype is a list of labels."""
    return isinstance(dtype, (pl.List, pl.Array))


def are_scored(gold: pl.Expr, pred: pl.Expr, nulls: Nulls) -> pl.Expr:
    """Whether a row is scored, given the policy for null labels."""
    if nulls == "label":
        return pl.lit(value=True)
    return gold.is_not_null() & pred.is_not_null()


def of_two_labels(
    ids: Iterable[tuple[str, T]], labels: Iterable[T], gold: str, latest: str | None
) -> list[str | T]:
    """The words and values of the message that an id has two labels, maybe at its newest time."""
    message: list[str | T] = []
    for name, value in ids:
        message += [f"{', ' if message else ''}{name} ", value]
    first, last = labels
    time = "" if latest is None else f" at its newest '{latest}'"
    way = "name the time of a label as latest, or " if latest is None else ""
    message += [f" has two labels{time} in '{gold}', '", first, "' and '", last]
    return [*message, f"'; {way}keep one of them"]
