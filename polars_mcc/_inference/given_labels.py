"""What a slice would score given its labels: its gold labels, and the prediction rates of all rows.

Each gold label of the slice is predicted as often right, and as often as each other label, as it is
in all rows that the slice is compared with. A slice that scores less errs more than its mix of
labels explains.

If the rates of the slice are the same, its row of the confusion matrix for a gold label i is a
draw without replacement: n_i of the N_i rows with this label. The draws are independent. With the
influence φ_ij of a row on the score, and the rates r_ij, the variance of the score is about

    1/n² · Σ_i n_i · (1 - n_i/N_i) · N_i/(N_i - 1) · Σ_j r_ij (φ_ij - Σ_j r_ij φ_ij)²
"""

from __future__ import annotations

import numpy as np

from polars_mcc._scores.segments import Floats, Segments


def spread_of_draws(
    slices: Segments,
    labels: Segments,
    rows: Floats,
    of_all: Floats,
    *,
    rate: Floats,
    phi: Floats,
) -> tuple[Floats, Floats]:
    """The standard error of each expected score, and how far one prediction moves it, at most.

    The arrays are of expected pairs: `rows` of the gold label in the slice, and `of_all` rows in
    the pool; the `rate` of the prediction, and the influence of a row. `slices` and `labels` say
    which pairs belong to a slice, and to a gold label of a slice.
    """
    with np.errstate(all="ignore"):
        not_drawn = np.where(of_all > 1, (of_all - rows) / (of_all - 1), 0.0)
        # Differences from the least φ: if all are equal, the variance is exactly 0.
        above = phi - labels.spread(labels.min(phi))
        mean = labels.spread(labels.sum(rate * above))
        squares = slices.sum(rows * not_drawn * rate * (above - mean) ** 2)
        size = slices.sum(rows * rate)
        return np.sqrt(squares / size**2), slices.max(labels.spread(labels.max(above))) / size
