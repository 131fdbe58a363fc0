"""`classes`: a row per class of every slice."""

from __future__ import annotations

import polars as pl

from polars_mcc._counts.classes import classes as classes_of
from polars_mcc._counts.cut import cut
from polars_mcc._log.described import Described
from polars_mcc._log.frames import FrameT
from polars_mcc._log.keys import IntoKey
from polars_mcc._scores.class_scores import COLUMNS, class_scores
from polars_mcc._scores.r_k import rows_of


def classes(log: Described[FrameT], *keys: IntoKey) -> FrameT:
    """Score every class of every slice, one against the rest.

    Args:
        *keys: What makes slices, as in `by`.

    Returns:
        A frame of the kind of the log, sorted by the keys and the label, a row per slice and
        label that is gold or predicted there, with the columns

        - the keys, `model` if `pred` is several, and `label`;
        - `support`, `predicted`, `hits` (Int64; Float64 for float weights): how often the
          label is gold, is predicted, and is both (true positives);
        - `precision` = hits / predicted; `recall` = hits / support; `specificity`, the recall of
          all others; `f1` = 2 hits / (support + predicted); `mcc`, the binary MCC of this
          label against all others (Matthews 1975); `informedness` = recall + specificity - 1,
          and `markedness`, the same of the predictions: precision + NPV - 1 (Powers 2011,
          arXiv 2010.16061); all Float64. The log's `zero_division` stands for each 0/0;
        - `n` and `n_null`: the rows of the slice that are scored, and that are not.

        A slice in which no row is scored has no classes; `by` shows it.

    Errors of `by` are raised.

    Examples:
        >>> import polars as pl
        >>> import polars_mcc
        >>> log = pl.DataFrame({"gold": ["a", "a", "b", "c"], "pred": ["a", "b", "b", "a"]})
        >>> log.mcc.classes().select("label", "support", "precision", "recall", "mcc")
        shape: (3, 5)
        ┌───────┬─────────┬───────────┬────────┬─────────┐
        │ label ┆ support ┆ precision ┆ recall ┆ mcc     │
        │ ---   ┆ ---     ┆ ---       ┆ ---    ┆ ---     │
        │ str   ┆ i64     ┆ f64       ┆ f64    ┆ f64     │
        ╞═══════╪═════════╪═══════════╪════════╪═════════╡
        │ a     ┆ 2       ┆ 0.5       ┆ 0.5    ┆ 0.0     │
        │ b     ┆ 1       ┆ 0.5       ┆ 1.0    ┆ 0.57735 │
        │ c     ┆ 1       ┆ 0.0       ┆ 0.0    ┆ 0.0     │
        └───────┴─────────┴───────────┴────────┴─────────┘

    Command line:
        polars-mcc classes logs/ --by country --format csv
    """
    sliced = cut(log, keys, answers=COLUMNS, lists=True)
    reduced = classes_of(sliced).with_columns(
        s=sliced.within_slice(rows_of(sliced)), null=sliced.within_slice(pl.col("null_n").sum())
    )
    return log.in_kind(sliced.answer(class_scores(sliced, reduced), "label"))
