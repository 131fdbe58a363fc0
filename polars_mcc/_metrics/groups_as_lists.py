"""Rows of a group → its pairs and classes, as lists of structs.

An expression cannot group by label. So it makes a list, in one of three ways. If the labels are
known, it takes a few sums per label or per pair, and sums stream. Otherwise it gathers the rows of
a group: as one integer per row, or as a struct. `list.eval` counts the list: inside `list.eval` a
group is a frame of its own, where all expressions work.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import polars as pl

from polars_mcc._base.errors_and_warnings import Failure, unless
from polars_mcc._counts import label_hashes
from polars_mcc._counts.exact_sums import Numbers, count_where, weight_failures


def field(name: str) -> pl.Expr:
    """A field of the structs in a list, inside `list.eval`."""
    return pl.element().struct.field(name)


def struct(fields: Mapping[str, pl.Expr]) -> pl.Expr:
    """Structs of these fields."""
    return pl.struct(field.alias(name) for name, field in fields.items())


@dataclass(frozen=True)
class Rows:
    """The rows of a group: labels of one dtype, and optional weights in their wide dtype."""

    gold: pl.Expr
    pred: pl.Expr
    dtype: pl.DataType
    scored: pl.Expr
    numbers: Numbers
    weight: pl.Expr | None
    weight_name: str
    listed: pl.Series | None
    """The labels that may occur, if they are known."""

    @property
    def checks(self) -> dict[str, pl.Expr]:
        """What shows whether a group can be scored: the least weight, rows of unknown labels."""
        least, unlisted = pl.lit(1, pl.Int64), pl.lit(0, pl.Int64)
        if self.weight is not None:
            least = pl.when(self.scored).then(self.weight).min()
        if self.listed is not None:
            unlisted = count_where(self.scored & ~self.are_listed).cast(pl.Int64)
        return {"least": least, "unlisted": unlisted}

    def with_checks(self, structs: Sequence[Mapping[str, pl.Expr]]) -> pl.Expr:
        """A list of structs of these fields. The first has also those of `checks`."""
        least = pl.lit(None, pl.Int64() if self.weight is None else self.numbers.wide)
        none = {"least": least, "unlisted": pl.lit(None, pl.Int64)}
        first, *others = structs
        checked = {**first, **self.checks}
        return pl.concat_list(map(struct, [checked, *({**other, **none} for other in others)]))

    @property
    def are_listed(self) -> pl.Expr:
        """Whether both labels are known."""
        assert self.listed is not None  # noqa: S101 - for the type checker
        return pl.all_horizontal(
            pl.any_horizontal(side.eq_missing(label) for label in self.listed)
            for side in (self.gold, self.pred)
        )

    def total(self, where: pl.Expr) -> pl.Expr:
        """Add up the scored rows of a condition."""
        where = self.scored & where
        if self.weight is None:
            return count_where(where).cast(pl.Int64)
        return self.numbers.total(pl.when(where).then(self.weight).otherwise(0))

    def checked(self, total: pl.Expr) -> pl.Expr:
        """The total of a list with the fields of `checks`; an error if it cannot be scored."""
        least, unlisted = field("least").min(), field("unlisted").max()
        failures = []
        if self.listed is not None:
            message = (
                f"labels={self.listed.to_list()} leave out the gold or pred of ",
                unlisted,
                " rows; list every label that occurs",
            )
            failures.append(Failure(unlisted > 0, message))
        if self.weight is not None:
            failures += weight_failures(least, total, self.weight_name)
        return unless(total, *failures, *self.numbers.failures(total))


def sums_of(rows: Rows, positive: pl.Expr) -> pl.Expr:
    """Add up the rows, the hits, and the rows of the positive class: a list of one struct."""
    gold, pred = (side.eq_missing(positive) for side in (rows.gold, rows.pred))
    wheres = {
        "s": rows.gold.is_null().is_not_null(),  # any row
        "c": rows.gold.eq_missing(rows.pred),
        "positive:gold": gold,
        "positive:pred": pred,
        "positive:tp": gold & pred,
    }
    sums = {name: rows.total(where) for name, where in wheres.items()}
    wide = {name: field(name).cast(pl.Int128) for name in sums}
    one = {"t": wide["s"], "p": wide["s"], "unit": pl.lit(1.0)}
    fields = {**wide, **one, "n": rows.checked(wide["s"])}
    return rows.with_checks([sums]).list.eval(struct(fields))


def classes_of_labels(rows: Rows, labels: Sequence[pl.Expr]) -> pl.Expr:
    """Add up the rows of each label that may occur, to the structs of `classes_of`.

    `labels` are the labels as metrics need them, in the order of `rows.listed`. Weights must be
    integers: floats are added up by pair.
    """
    assert rows.listed is not None  # noqa: S101 - for the type checker
    structs = []
    for value, label in zip(rows.listed, labels, strict=True):
        gold, pred = (side.eq_missing(value) for side in (rows.gold, rows.pred))
        sums = {"t": rows.total(gold), "p": rows.total(pred), "c": rows.total(gold & pred)}
        structs.append({"label": label, **sums})
    listed = rows.with_checks(structs)
    wide = {name: field(name).cast(pl.Int128) for name in ("t", "p", "c")}
    of_group = {"n": rows.checked(wide["t"].sum()), "unit": pl.lit(1.0)}
    return listed.list.eval(struct({"label": field("label"), **wide, **of_group}))


def pairs_of_labels(rows: Rows, labels: Sequence[pl.Expr]) -> pl.Expr:
    """Add up the rows of each pair of labels that may occur: see `pairs_of`."""
    assert rows.listed is not None  # noqa: S101 - for the type checker
    structs = []
    for (gold, as_gold), (pred, as_pred) in product(
        zip(rows.listed, labels, strict=True), repeat=2
    ):
        n = rows.total(rows.gold.eq_missing(gold) & rows.pred.eq_missing(pred))
        structs.append({"gold": as_gold, "pred": as_pred, "n": n})
    return _in_units(rows, rows.with_checks(structs))


def pairs_of_codes(rows: Rows) -> pl.Expr:
    """Count each pair of a group, from one integer per row: see `pairs_of`. Labels are codes.

    Codes of text are in the order of its hashes, and others in the order of the labels.
    """
    pair = label_hashes.of_pair(rows.gold, rows.pred, rows.dtype)
    element = pl.element()
    counts = {"pair": element.unique(maintain_order=True), "n": element.unique_counts()}
    pairs = pair.number.filter(rows.scored).implode().list.eval(struct(counts))
    gold, pred = pair.labels(field("pair"))
    fields = {"gold": gold, "pred": pred, "n": field("n").cast(pl.Int64)}
    return _in_units(rows, pairs.list.eval(struct(fields)))


def pairs_of(rows: Rows, gold: pl.Expr, pred: pl.Expr) -> pl.Expr:
    """Add up each pair of a group: structs of `gold`, `pred`, `n` and `units`.

    They also have the `unit` and the `total` of the group. `gold` and `pred` are the labels as
    metrics need them.
    """
    weight = pl.lit(1, pl.Int64) if rows.weight is None else rows.weight
    unlisted = pl.lit(0) if rows.listed is None else (~rows.are_listed).cast(pl.Int64)
    fields = {"gold": gold, "pred": pred, "weight": weight, "unlisted": unlisted}
    listed = struct(fields).filter(rows.scored).implode()
    gold, pred, weight = (field(name) for name in ("gold", "pred", "weight"))
    n = pl.len().cast(pl.Int64) if rows.weight is None else rows.numbers.total(weight)
    sums = {"n": n.over(gold, pred), "least": weight.min(), "unlisted": field("unlisted").sum()}
    is_first = pl.struct(gold, pred).is_first_distinct()
    pairs = listed.list.eval(struct({"gold": gold, "pred": pred, **sums}).filter(is_first))
    return _in_units(rows, pairs)


def _in_units(rows: Rows, pairs: pl.Expr) -> pl.Expr:
    total, n = field("n").cast(rows.numbers.wide).sum(), field("n")
    unit = rows.numbers.unit(total)
    of_group = {"total": rows.checked(total), "unit": unit}
    labels = {name: field(name) for name in ("gold", "pred")}
    units = rows.numbers.in_units(n, unit)
    return pairs.list.eval(struct({**labels, "n": n, "units": units, **of_group}))


def classes_of(pairs: pl.Expr) -> pl.Expr:
    """Add each pair to the classes of its two labels: structs of `label`, `t`, `p` and `c`.

    They are in units. All structs of a group also have its `unit`, and `n`, the total.
    """
    units, gold, pred = (field(name) for name in ("units", "gold", "pred"))
    none = units * 0
    hit = pl.when(gold.eq_missing(pred)).then(units).otherwise(0)
    counts = {"t": units.append(none), "p": none.append(units), "c": hit.append(none)}
    of_group = {
        name: field(of).append(field(of)) for name, of in {"n": "total", "unit": "unit"}.items()
    }
    sides = pairs.list.eval(struct({"label": gold.append(pred), **counts, **of_group}))
    label = field("label")
    first = label.is_first_distinct()
    sums = {name: field(name).sum().over(label) for name in counts}
    fields = {"label": label, **sums, **{name: field(name) for name in of_group}}
    return sides.list.eval(struct(fields).filter(first))
