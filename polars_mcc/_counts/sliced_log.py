"""A log, cut into slices: a frame with renamed columns, and the facts that counting needs.

The lazy frame has the columns `key:<name>` for each key, `gold`, `weight`, and `pred:<name>` for
each model. It has `baseline`, `cluster`, or periods if a verb needs them. A row stands for `weight`
rows: 1 in a log of rows, `n` in a counts table. The log of another engine arrives as counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, TypeVar

import polars as pl
import polars.selectors as cs

from polars_mcc._base.allowed_values import Nulls
from polars_mcc._base.slice_names import SET_COLUMN, slice_name
from polars_mcc._base.values_as_text_or_markdown import as_text
from polars_mcc._counts.exact_sums import Numbers
from polars_mcc._keys.any_key import TOTAL, KeySet, Windows

SET = SET_COLUMN
COMPLETE = "complete"  # whether the log covers the whole window
SAID = "slice"  # names a slice in words, such as `age ≤ 25 and country = DE`
N_WAITING = "n_waiting"  # counts the rows that wait for their gold label
LONG = (SAID, SET)  # the columns of a slice in the long form

CLASS = "polars_mcc:class"
"""The extra column with the class of a row, if a log has a score per class."""
GOLD_CLASS = "polars_mcc:gold_class"
"""The extra column with the class of its gold label, if a metric is over pairs of classes."""
OfRow: TypeAlias = Callable[[Sequence[tuple[pl.Expr, pl.Expr]]], tuple[pl.Expr, pl.Expr]]
"""From whether each class is gold, and its score: whether a row is positive, and its one score."""

KEY = "key:"
PRED = "pred:"
MODEL = "model:"
EPSILON = 2.0**-52
"""The machine epsilon of Float64."""
LABELLED, STRATUM = "of:labels", "of:stratum"
"""The extra columns of pairs in which labelled rows stand for others: see `reweighted`."""


Rows = TypeVar("Rows", pl.LazyFrame, pl.DataFrame)
_EVERY = "of:every"  # a constant column


def joined(
    rows: Rows,
    others: Rows,
    on: Sequence[str | pl.Expr],
    how: Any = "left",  # noqa: ANN401 - as Polars has it
    **options: Any,  # noqa: ANN401
) -> Rows:
    """Join rows by keys. Without keys, each row is joined with all others.

    The in-memory engine (2.1) merges rows that are sorted by a single key, and then NaN does not
    equal NaN. So there is one more key, a constant.
    """
    rows, others = (side.with_columns(pl.lit(0).alias(_EVERY)) for side in (rows, others))
    both = rows.join(others, on=[*on, _EVERY], how=how, nulls_equal=True, **options)
    return both.drop(_EVERY)


def unscored_columns(*, waiting: bool) -> tuple[str, ...]:
    """The columns of an answer that count rows that are not scored."""
    return ("n_null", N_WAITING) if waiting else ("n_null",)


@dataclass(frozen=True, kw_only=True)
class SlicedLog:
    """A log that is ready to count: its rows, and how they are grouped, scored and added up."""

    frame: pl.LazyFrame
    with_text: pl.LazyFrame | None = None
    """If labels are hashed: the frame with their text."""
    is_portable: bool = False
    """Whether the plan has only expressions of Polars, and no source of our own."""

    # What rows are grouped by.
    keys: KeySet  # the names of the keys; the key of a window is last
    key_dtypes: pl.Schema
    models: tuple[str, ...]
    has_models: bool  # whether slices have a model: there may be several models
    baseline: str | None = None  # the name of the model that others are compared with
    has_total: bool
    """Whether there is a total slice. It is in the answer even if the log has no rows."""
    sets: Mapping[str, KeySet] | None = None
    """The sets of keys, by name, if there are several. The key of a window is in each."""
    windows: Windows | None = None
    slice_splits: tuple[str, ...] = ()
    """Further columns that split slices, such as a period or a bin."""
    pair_splits: tuple[str, ...] = ()
    """Columns that split only the pairs of a slice, such as the cluster or the baseline's label."""
    is_long: bool = False
    """Whether the answer names a slice in words, without a column per key."""

    # How rows are scored.
    label_dtype: pl.DataType
    pred_dtype: pl.DataType
    """The dtype of the predictions: labels, lists of labels, or a score."""
    nulls: Nulls
    zero_division: float | None
    is_multilabel: bool = False
    is_of_scores: bool = False
    """Whether `pred` is a score and `gold` says whether a row is positive."""
    epsilon: float = EPSILON
    """The machine epsilon of the scores, as the log has them: a log loss clips them by it."""
    waiting: bool = False
    """Whether a row without a gold label waits for it."""

    # How many rows a row stands for, and how such numbers are added up.
    numbers: Numbers
    weight_name: str | None
    is_frequency: bool
    weight_sums: tuple[str, ...] = ()
    """Aggregates by another engine: the least weight, the rows without a weight, the squares."""
    labelled_numbers: Numbers | None = None
    """If labelled rows stand for others: the arithmetic of their own number."""

    @property
    def slice(self) -> list[str]:
        """The columns that identify a slice."""
        return [*self.names]

    @property
    def names(self) -> dict[str, str]:
        """The columns that identify a slice, each with its name in an answer.

        The order is: the set of keys, if there are several; other columns, such as a period; the
        keys; whether a window is complete; and the model, if there are several.
        """
        names = {} if self.sets is None else {SET: SET}
        names |= {name: name for name in self.slice_splits}
        names |= {KEY + key: key for key in self.keys}
        names |= {} if self.windows is None else {COMPLETE: COMPLETE}
        return names | ({MODEL: "model"} if self.has_models else {})

    def split_by(self, *columns: str) -> SlicedLog:
        """The same log, whose slices are split by columns: of its pairs, or new ones."""
        of_slices = (*self.slice_splits, *columns)
        of_pairs = tuple(name for name in self.pair_splits if name not in columns)
        return replace(self, slice_splits=of_slices, pair_splits=of_pairs, has_total=False)

    @property
    def set_dtype(self) -> pl.Enum:
        """The dtype of the set of keys: an Enum, in the order that the user gave."""
        return pl.Enum([*(self.sets or ())])

    @property
    def has_clusters(self) -> bool:
        """Whether rows are in clusters."""
        return "cluster" in self.pair_splits

    @property
    def model_dtype(self) -> pl.Enum:
        """The dtype of the model: an Enum, in the order that the user gave."""
        return pl.Enum(self.models)

    @property
    def whole(self) -> SlicedLog:
        """The same log as one slice per model."""
        return replace(self, keys=(), sets=None, windows=None, has_total=False)

    def once(self, pairs: pl.LazyFrame) -> pl.LazyFrame:
        """Keep the pairs of one set of keys: several sets would count each row several times."""
        return pairs if self.sets is None else pairs.filter(pl.col(SET) == next(iter(self.sets)))

    def each_model(self) -> Iterator[tuple[str, list[pl.Expr]]]:
        """For each model, its name and the columns of its slice."""
        keys = [pl.col(KEY + key) for key in self.keys]
        for name in self.models:
            model = [pl.lit(name, self.model_dtype).alias(MODEL)] if self.has_models else []
            yield name, [*keys, *model]

    def per_slice(self, frame: pl.LazyFrame, **sums: pl.Expr) -> pl.LazyFrame:
        """Aggregate by slice. Without keys there is one slice, even if there are no rows."""
        return frame.group_by(self.slice).agg(**sums) if self.slice else frame.select(**sums)

    def within_slice(self, aggregation: pl.Expr) -> pl.Expr:
        """Repeat an aggregation of each slice on the rows of the slice."""
        return aggregation.over(self.slice) if self.slice else aggregation

    def per_slice_in_order(
        self,
        frame: pl.LazyFrame,
        columns: Sequence[str],
        sums: Mapping[str, pl.Expr],
        **in_any_order: pl.Expr,
    ) -> pl.LazyFrame:
        """Aggregate by slice: `sums` in an order of the rows, so that floats add up to equal bits.

        To sort the frame is not enough: Polars leaves out a sort before sums, and a join keeps no
        order. In an order, Polars (2.1) confuses the minimum and maximum of a plain column that it
        knows to be sorted: they must be `in_any_order`.
        """
        whole = self.slice or pl.lit(0)
        rows = frame.with_columns(
            sum_.over(whole, order_by=columns).alias(name) for name, sum_ in sums.items()
        )
        # All rows of a slice have the same sums.
        return self.per_slice(rows, **{name: pl.col(name).max() for name in sums}, **in_any_order)

    def beside(self, frame: pl.LazyFrame, slices: pl.LazyFrame) -> pl.LazyFrame:
        """Join `slices`, a row per slice, to the rows of each slice."""
        return joined(frame, slices, self.slice)

    def per_model(self, frame: pl.LazyFrame) -> pl.LazyFrame:
        """Repeat the rows of a frame for each model, if there are several."""
        return self._models.join(frame, how="cross") if self.has_models else frame

    @property
    def _models(self) -> pl.LazyFrame:
        return pl.LazyFrame({MODEL: self.models}, schema={MODEL: self.model_dtype})

    def with_total(self, classes: pl.LazyFrame) -> pl.LazyFrame:
        """Add an empty class to the total slice, so that the slice exists without rows."""
        if not self.has_total or not self.slice:
            return classes
        total = [] if self.sets is None else [pl.lit(TOTAL, self.set_dtype).alias(SET)]
        nothing = self._models.select(*total, *([MODEL] if self.has_models else []))
        return pl.concat([classes, nothing], how="diagonal")

    def answer(self, slices: pl.LazyFrame, *order: str) -> pl.LazyFrame:
        """Sort by key, model and `order`, and rename the slice columns for the answer."""
        by = [*self.slice, *order]
        slices = slices.sort(by, maintain_order=True) if by else slices
        texts = (pl.col(name).cast(pl.String) for name in (SET, MODEL) if name in self.names)
        shown, said = self.names, []
        if self.is_long:
            index = () if self.windows is None else self.windows.index.names
            said = [self.in_words]
            hidden = {KEY + key for key in self.keys if key not in index}
            shown = {column: name for column, name in shown.items() if column not in hidden}
        return slices.with_columns(texts).select(
            *said,
            *(pl.col(column).alias(name) for column, name in shown.items()),
            ~cs.by_name(self.slice),
        )

    @property
    def in_words(self) -> pl.Expr:
        """The name of a slice in words, but for its window and model."""
        index = () if self.windows is None else self.windows.index.names
        keys = [key for key in self.keys if key not in index]
        in_text = {key: as_text(pl.col(KEY + key), self.key_dtypes[key]) for key in keys}
        return slice_name(in_text, self.sets).alias(SAID)

    @property
    def unscored(self) -> tuple[str, ...]:
        """The columns of an answer that count rows that are not scored."""
        return unscored_columns(waiting=self.waiting)

    def unscored_as(self, n_null: pl.Expr, n_waiting: pl.Expr) -> dict[str, pl.Expr]:
        """The expressions of the columns `unscored`, by name."""
        return dict(zip(self.unscored, (n_null, n_waiting), strict=False))

    @property
    def is_reweighted(self) -> bool:
        """Whether labelled rows stand for others in the pairs."""
        return self.labelled_numbers is not None

    @property
    def rows(self) -> pl.LazyFrame:
        """The rows of the log, repeated per model: slice, `gold`, `pred`, `weight` and splits."""
        # Several models share one scan and must have one dtype. The labels of a single model are
        # cast later, on the counts.
        frame = self.frame.cache() if self.has_models else self.frame
        others, of_models = ["gold", "weight", *self.pair_splits, *self.weight_sums], []
        for name, model_slice in self.each_model():
            pred = pl.col(PRED + name)
            pred = pred.cast(self.pred_dtype) if self.has_models else pred
            of_models.append(frame.select(*model_slice, *others, pred=pred))
        return pl.concat(of_models)

    def distinct_labels(self) -> pl.LazyFrame:
        """The sorted labels of rows, gold or predicted, without null and weights of 0: a column."""
        rows = self.rows.filter(pl.col("weight").ne_missing(0))
        sides = [
            rows.select(label=pl.col(side).cast(self.label_dtype)) for side in ("gold", "pred")
        ]
        return pl.concat(sides).unique().drop_nulls().sort("label")
