"""Counted classes → the tables of each slice at which the variance of a score is computed.

The observed table gives the standard error. It takes a rate of 0 or 1 as known exactly. So the
rows of a proportion that an interval stands for come from smoothed tables:

- `BY_GOLD`: each gold class gets two rows more, a hit and a miss. Its rows are then scaled back, so
  that the gold margin stays. The miss is spread evenly over the other classes.
- `BY_PRED`: the same for each predicted class, and the predicted margin stays.
- `POOLED`: the gold margin of the slice, and the rates of all slices that are compared together.
  Two slices with the same rates then have the same variance, whatever happened to few rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from polars_mcc._inference.arrays import Classes, Pairs
from polars_mcc._inference.pool import Expected
from polars_mcc._scores.segments import Floats, Ints, added_up

OBSERVED, BY_GOLD, BY_PRED, POOLED = range(4)
"""The places of the tables on the first axis of arrays."""
_MORE = 2.0  # rows more of each class: a hit and a miss


class Table(NamedTuple):
    """The classes of each slice at one table, as in `Classes`: floats (classes,).

    With an axis more, (tables, classes), it is several tables.
    """

    t: Floats
    p: Floats
    c: Floats
    fn: Floats
    fp: Floats
    tn: Floats
    more: Floats
    """The share of a class that is its rows more."""
    others: Floats
    """The number of classes over which their miss is spread."""


class Cells(NamedTuple):
    """The pairs of a table, without its rows more: arrays (cells,)."""

    slices: Ints
    """The number of the slice."""
    gold: Ints
    """The place of the gold class in `Classes`."""
    pred: Ints
    """The place of the predicted class; -1 if the slice has no such class."""
    n: Floats
    """The weight of the rows."""


def tables_of(
    classes: Classes, pairs: Pairs, expected: Expected | None, *, is_smoothed: bool = True
) -> list[tuple[Table, Cells]]:
    """The tables of all slices, each with its pairs; the last one, if there is a pool.

    Without smoothed tables, only the observed one.
    """
    counts = classes.t, classes.p, classes.c, classes.fn, classes.fp, classes.tn
    cells = Cells(pairs.rows.of_row, pairs.gold, pairs.pred, pairs.n)
    found = [(Table(*counts, np.zeros_like(classes.t), classes.others), cells)]
    if not is_smoothed:
        return found
    per_weight = classes.rows.spread(pairs.per_weight)
    for side, margin, own in (("gold", classes.t, pairs.gold), ("pred", classes.p, pairs.pred)):
        more = share_of_more(margin * per_weight)
        table = smoothed(classes, Table(*counts, more, classes.others), cells, side)
        found.append((table, cells._replace(n=cells.n * (1 - more[own]))))
    if expected is not None:
        table, cells = _at_rates(classes, expected)
        kept = cells._replace(n=cells.n * (1 - table.more[cells.gold]))
        found.append((smoothed(classes, table, cells, "gold"), kept))
    return found


def share_of_more(rows: Floats) -> Floats:
    """The share of a class of so many rows that is its rows more."""
    return np.where(rows > 0, _MORE / (rows + _MORE), 0.0)


def smoothed(classes: Classes, table: Table, cells: Cells, side: str) -> Table:
    """The table that keeps the margin of one side: gold or pred.

    A class gives up the share `more` of its own rows. A half of this share comes back as hits, the
    other half as misses that are spread evenly over the other classes.
    """
    rows, (t, p, c, fn, fp, tn, more, others) = classes.rows, table
    own, other = (cells.gold, cells.pred) if side == "gold" else (cells.pred, cells.gold)
    is_miss = (own != other) & (other >= 0)
    given_up = (cells.n * more[own])[is_miss]
    gone = added_up(given_up, other[is_miss], len(t))
    half = (t if side == "gold" else p) / 2
    given = more * half
    with np.errstate(all="ignore"):
        new = np.where(others > 0, (rows.spread(rows.sum(given)) - given) / others, 0.0)
    change = new - gone
    miss, other_miss = (fn, fp) if side == "gold" else (fp, fn)
    c = c + more * (half - c)
    miss = np.clip(miss + more * (half - miss), 0, None)
    other_miss = np.clip(other_miss + change, 0, None)
    tn = np.clip(tn - change, 0, None)
    if side == "gold":
        return Table(t, c + other_miss, c, miss, other_miss, tn, more, others)
    return Table(c + other_miss, p, c, other_miss, miss, tn, more, others)


def _at_rates(classes: Classes, expected: Expected) -> tuple[Table, Cells]:
    """The classes of the expected pairs. `more` is the share of the pool's two rows."""
    cells = Cells(expected.slices, expected.gold, expected.pred, expected.n)
    is_hit, is_here = cells.gold == cells.pred, cells.pred >= 0
    hits, misses = (
        added_up(cells.n[one], cells.pred[one], len(classes.t))
        for one in (is_hit & is_here, ~is_hit & is_here)
    )
    rest = classes.fp + classes.tn  # the rows of other gold labels, which do not change
    counts = classes.t, hits + misses, hits, classes.t - hits, misses, rest - misses
    return Table(*counts, share_of_more(expected.pool_rows), expected.others), cells
