"""A metric as one expression, for `select`, `agg`, `over`, `rolling`.

These are the definitions of `by`, over fields of structs in lists in place of columns of frames.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from polars_mcc._base.allowed_values import Nulls
from polars_mcc._counts import label_hashes
from polars_mcc._counts.exact_sums import FloatNumbers, Numbers, numbers
from polars_mcc._frame.columns import check_weight
from polars_mcc._frame.labels import (
    LabelsDiffer,
    are_scored,
    as_compared,
    as_label,
    as_labels,
    common_dtype,
)
from polars_mcc._metrics import groups_as_lists
from polars_mcc._metrics.exact_scores import OfPairs, terms_of
from polars_mcc._metrics.groups_as_lists import Rows, field, struct
from polars_mcc._metrics.mcc_and_one_vs_rest import (
    CLASS_DTYPES,
    CLASS_RANGES,
    Sums,
    TwoByTwo,
    of_marginals,
)
from polars_mcc._metrics.metric_type import PAIR_DTYPES, Metric, Sum, Terms, sum_name
from polars_mcc._metrics.registry import IntoMetric, find_metric, positive_class

_SUMMED = {"s", "c", "t", "p", "total", "ss", "cs"}
"""Terms that sums over rows give, besides those of the positive class."""
_OF_ROWS = {"s", "t", "p", "total", "ss"}
"""Terms that the number of rows gives."""
_FEW = 6
"""For so many labels at most, pairs are added up one by one, and not gathered."""


@dataclass(frozen=True)
class Score:
    """A metric of (pred, gold[, weight]), made at plan time, when Polars knows their dtypes.

    It is a class, not a closure: a serialised plan refers to it by name.
    """

    metric: IntoMetric
    positive: object
    labels: Sequence[object] | None
    nulls: Nulls
    zero_division: float | None

    def __call__(self, inputs: list[tuple[pl.Expr, pl.DataType]]) -> pl.Expr:
        """Return the score as an expression that is named like pred."""
        (pred, pred_dtype), (gold, gold_dtype), *weights = inputs
        name = pred.meta.output_name()
        metric = find_metric(self.metric)
        try:
            dtype = common_dtype([(gold.meta.output_name(), gold_dtype), (name, pred_dtype)])
            metric, positive = metric.bound(dtype), None
            if self.positive is not None:
                positive = pl.lit(as_label(self.positive, dtype), dtype)
            elif dtype == pl.Boolean:
                positive = pl.lit(value=True)
            positive_class([metric], positive, dtype)
        except (LabelsDiffer, ValueError) as error:  # Polars keeps the text of an error alone.
            text = str(error).replace("log(positive=", "score(positive=")
            raise pl.exceptions.SchemaError(text) from None
        gold = as_compared(gold, gold.meta.output_name(), gold_dtype, dtype).cast(dtype)
        pred = as_compared(pred, name, pred_dtype, dtype).cast(dtype)
        scored = are_scored(gold, pred, self.nulls)
        weight, weight_name = None, ""
        arithmetic = Numbers()
        if weights:
            [(given, weight_dtype)] = weights
            weight_name = given.meta.output_name()
            check_weight(weight_name, weight_dtype)
            arithmetic = numbers(weight_dtype)
            scored = scored & given.is_not_null()
            weight = arithmetic.widen(given)
        is_boolean = dtype == pl.Boolean
        listed = [False, True] if is_boolean and self.labels is None else self.labels
        known = None
        if listed is not None and dtype != pl.Null:  # null has no dtype to list labels of
            known = as_labels(listed, dtype, null=self.nulls == "label")
        rows = Rows(gold, pred, dtype, scored, arithmetic, weight, weight_name, known)
        one = OneMetric(metric, dtype, positive, self.zero_division, arithmetic)
        score = one.of_rows(rows).list.first()
        return (score.fill_null(0) if metric.is_count else score).alias(name)


@dataclass(frozen=True)
class OneMetric:
    """A metric with its options, to compute it from lists of structs."""

    metric: Metric
    dtype: pl.DataType
    """The dtype of the labels."""
    positive: pl.Expr | None
    zero_division: float | None
    numbers: Numbers

    def of_rows(self, rows: Rows) -> pl.Expr:
        """The value of the metric, in a list."""
        metric = self.metric
        if self._sums_suffice:
            positive = pl.lit(None, rows.dtype) if self.positive is None else self.positive
            return self._value(groups_as_lists.sums_of(rows, positive))
        known = None
        if rows.listed is not None:
            literals = (pl.lit(label, rows.dtype) for label in rows.listed)
            known = [self._needed(label) for label in literals]
        by_pair = bool(metric.pairs) or isinstance(self.numbers, FloatNumbers)
        if known is not None and not by_pair:
            return self._over_classes(groups_as_lists.classes_of_labels(rows, known))
        if known is not None and len(known) <= _FEW:
            pairs = groups_as_lists.pairs_of_labels(rows, known)
        elif known is None and rows.weight is None and self._codes_suffice:
            pairs = groups_as_lists.pairs_of_codes(rows)
        else:
            sides = (self._needed(side) for side in (rows.gold, rows.pred))
            pairs = groups_as_lists.pairs_of(rows, *sides)
        return self._over_classes(groups_as_lists.classes_of(pairs), pairs)

    @property
    def _terms(self) -> set[str]:
        """The names of the terms that the metric needs."""
        value = self.metric.value(Terms().of(self.metric, self.zero_division))
        return {*value.meta.root_names()}

    @property
    def _sums_suffice(self) -> bool:
        """Whether sums over rows are enough: no group by label. Floats are added up by pair."""
        is_float = isinstance(self.numbers, FloatNumbers)
        terms = {name for name in self._terms if not name.startswith("positive:")}
        return not (is_float or self.metric.classes or self.metric.pairs) and terms <= _SUMMED

    @property
    def _codes_suffice(self) -> bool:
        """Whether codes of labels are enough: no label is named, and sums are in their order."""
        metric = self.metric
        in_order = label_hashes.has_codes_in_order(self.dtype)
        return metric.labels_needed == "equality" and (
            in_order or not (metric.classes or metric.pairs)
        )

    def _needed(self, label: pl.Expr) -> pl.Expr:
        """A label as the metric needs it, in the order of `by`: see `with_labels_for`."""
        needed = self.metric.labels_needed
        if needed == "values":
            return label.cast(label_hashes.wide_of(self.dtype))
        is_hashed = needed == "equality" and self.dtype == pl.String
        return label_hashes.hash_of(label) if is_hashed else label

    def _over_classes(self, classes: pl.Expr, pairs: pl.Expr | None = None) -> pl.Expr:
        """The value of the metric from the classes of each group, and from its pairs."""
        parts: list[tuple[set[str], pl.Expr]] = []
        if self.metric.classes:
            parts.append(({*self._named(self.metric.classes)}, self._class_sums(classes)))
        if self.metric.pairs and pairs is not None:
            own = {*self._named(self.metric.pairs), "unseen"}
            parts.append((own, self._pair_sums(pairs)))
        for own, part in parts:  # Not all sums, if these are enough: lists would be made twice.
            if self._terms <= own | _OF_ROWS:
                return self._value(part)
        sums = self._sums(classes)
        if parts:
            fields = [part.list.first().struct.field(*sorted(own)) for own, part in parts]
            sums = pl.concat_list(pl.struct(sums.list.first().struct.unnest(), *fields))
        return self._value(sums)

    def _sums(self, classes: pl.Expr) -> pl.Expr:
        """The sums of each group that are not of the metric alone."""
        t, p, c = (field(name) for name in "tpc")
        sums = Sums.over_classes(t, p, c.sum(), self.numbers)
        is_positive = pl.lit(value=False)
        if self.positive is not None and self.metric.is_of_positive:
            is_positive = field("label").eq_missing(self.positive)
        terms = self._terms
        computed = terms_of(self.numbers, sums.from_columns(pl.col))
        made_of = {
            root for name in terms & {*computed} for root in computed[name].meta.root_names()
        }
        marginals = of_marginals(t, p, c, is_positive)
        columns = {name: marginals[name] for name in marginals if name in terms | made_of}
        columns |= {name: field(name).first() for name in ("n", "unit")}
        return classes.list.eval(struct({**sums.columns(), **columns}))

    def _class_sums(self, classes: pl.Expr) -> pl.Expr:
        """The sums of the metric over its classes, in the order of the labels."""
        numbers, unit = self.numbers, field("unit")
        s = field("s")
        t, p, c = (field(name) for name in "tpc")
        with_s = {name: field(name) for name in ("label", "t", "p", "c", "n", "unit")}
        classes = classes.list.eval(struct({**with_s, "s": t.sum()}))
        counts = {"support": t, "predicted": p, "hits": c, "n": s}
        scores = TwoByTwo.exact(numbers, t, p, c, s).scores(self.zero_division)
        columns = {
            "label": field("label"),
            **{
                name: numbers.from_units(count, unit).cast(pl.Float64)
                for name, count in counts.items()
            },
            **{name: scores[name] for name in CLASS_RANGES},
            "s": s,
            "unit": unit,
        }
        classes = classes.list.eval(struct(columns).filter(t + p > 0))
        classes = classes.list.eval(pl.element().sort_by(field("label")))
        of_group = _of_rows(s.first(), field("n").first(), unit.first())
        return classes.list.eval(struct({**self._named(self.metric.classes), **of_group}))

    def _pair_sums(self, pairs: pl.Expr) -> pl.Expr:
        """The sums of the metric over its pairs, in the order of the labels."""
        of_pairs = OfPairs(self.numbers, field)
        units, labels = field("units"), {name: field(name) for name in ("gold", "pred")}
        margins = {
            "gold_t": units.sum().over(labels["gold"]),
            "pred_p": units.sum().over(labels["pred"]),
            "s": units.sum(),
        }
        of_group = {name: field(name) for name in ("total", "unit")}
        cells = pairs.list.eval(
            struct({**labels, "n": field("n"), "units": units, **margins, **of_group}).filter(
                field("n") > 0
            )
        )
        columns = {**labels, **of_pairs.columns(), **of_group}
        rows = cells.list.eval(struct(columns).sort_by(*labels.values()))
        sums = self._named(self.metric.pairs)
        firsts = {name: field(name).first() for name in of_group}
        slices = rows.list.eval(struct({**sums, **of_pairs.sums(), **firsts}))
        fields = {
            **{name: field(name) for name in sums},
            "unseen": of_pairs.unseen(),
            **_of_rows(field("s"), field("total"), field("unit")),
        }
        return slices.list.eval(struct(fields))

    def _named(self, sums: Mapping[str, Sum]) -> dict[str, pl.Expr]:
        """Sums of the metric over classes or pairs, by the names of `Terms`."""
        named = {}
        for name, sum_ in sums.items():
            result = sum_(field)
            if self.metric.labels_needed == "values" and self._is_wide(sum_(pl.col)):
                result = result.cast(pl.Int64)
            named[sum_name(self.metric.name, name)] = result
        return named

    def _is_wide(self, result: pl.Expr) -> bool:
        """Whether a result is an Int128, as integer labels are while they are computed with."""
        wide = label_hashes.wide_of(self.dtype)
        labels = dict.fromkeys(("label", "gold", "pred"), wide)
        rows = pl.LazyFrame(schema={**labels, **CLASS_DTYPES, **PAIR_DTYPES})
        [dtype] = rows.select(result).collect_schema().dtypes()
        return dtype == pl.Int128

    def _value(self, slices: pl.Expr) -> pl.Expr:
        """The value of the metric, from the sums of each group."""
        metric, numbers, needed = self.metric, self.numbers, self._terms
        t, p, c = (field(name) for name in "tpc")
        sums = Sums.over_classes(t, p, c, numbers).from_columns(field)
        computed = terms_of(numbers, sums, field)
        terms = {name: computed.get(name, field(name)) for name in needed}
        slices = slices.list.eval(struct({**terms, "n": field("n"), "unit": field("unit")}))
        value = metric.value(Terms.in_columns(field).of(metric, self.zero_division))
        if metric.is_count:
            value = numbers.as_count(numbers.from_units(value, field("unit")))
        return slices.list.eval(pl.when(field("n") > 0).then(value))


def _of_rows(s: pl.Expr, n: pl.Expr, unit: pl.Expr) -> dict[str, pl.Expr]:
    """The numbers of a group that only its rows tell. With one label a row, there are s labels."""
    return {**dict.fromkeys("stp", s), "n": n, "unit": unit}
