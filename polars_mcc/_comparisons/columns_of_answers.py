"""The columns of the verbs that compare: the same names, whatever is asked."""

from __future__ import annotations

from typing import Any

import polars as pl

from polars_mcc._counts.sliced_log import unscored_columns
from polars_mcc._frame.log_options import Described

CONFUSION = ["confused_gold", "confused_pred", "confused", "confused_rest"]
"""The confusion `gold → pred` that costs a slice the most, and its share of the rows of that gold
label: in the slice, and in the rest."""
COLUMNS = {
    "compare": "baseline metric n n_clusters score reference",
    "contrast": "metric n n_reference score reference expected",
    "drift": "metric n_before n_after n_clusters_before n_clusters_after reference score",
    "gaps": "metric n_slices n lowest lowest_score highest highest_score "
    "ratio ratio_low ratio_high spread",
    "changes": "metric since n_before n_after reference score reference_expected expected "
    "dispersion n_untimed part_of",
    "worst": "metric n score reference expected beside p_beside loss confusion "
    f"{' '.join(CONFUSION)} explained_by n_tested n_untested",
}
"""What each verb has between the model and the end, which is the same for all."""
VERDICT, CHANGED = "verdict", ("worse", "better")
"""`CHANGED` are the verdicts of a change in `changes`."""
SEEN = "of:seen"
"""When a change was that somebody has seen: a column of slices."""
VERDICTS = pl.Enum(["worse", "better", "differs", "gap", "not sure", "not judged"])
"""The verdicts of `compare`, `contrast`, `drift` and `gaps`."""


def answer_columns(verb: str, log: Described[Any], *, ratio: bool = False) -> list[str]:
    """The columns of an answer after the model. `ratio`: scores are compared by their ratio."""
    effect = "ratio ratio_low ratio_high" if ratio else "diff diff_low diff_high"
    names = f"{COLUMNS[verb]} {effect} p_value p_adjusted verdict".split()
    if log.roles.cluster is None:
        names = [name for name in names if not name.startswith("n_clusters")]
    return [*names, *unscored_columns(waiting=log.roles.waiting)]
