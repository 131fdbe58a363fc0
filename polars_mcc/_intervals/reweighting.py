"""Labels for some rows only → what rows without a label add to the variance of a score.

Of N rows of a slice, N_j have the prediction j, and n_j of these a label. With w_j = N_j / N, and
with m_j and s_j² the mean and the variance of the influence φ over the labelled rows with the
prediction j, the variance of two phases is

    Σ_j w_j m_j² / N + Σ_j w_j² s_j² / n_j
        = Σ_j w_j (m_j² + s_j²) / N + Σ_j w_j (f_j - 1) s_j² / N,    f_j = N_j / n_j.

The first sum of the second line is the variance if all rows had a label. A labelled row counts as
f_j rows: its weight is f_j, and its squared weight f_j².
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from polars_mcc._metrics.slice_sums import Floats, Ints, Segments, added_up


def added_products(n: Floats, squares: Floats, strata: Ints, a: Floats, b: Floats) -> Floats:
    """What rows without a label add to n·a·b, for the sum of products over rows: (cells,).

    Cells of one stratum have the same predictions, and squares = f·n.
    """
    number = int(strata.max(initial=-1)) + 1
    size = added_up(n, strata, number)
    apart_a, apart_b = (x - (added_up(n * x, strata, number) / size)[strata] for x in (a, b))
    return (squares - n) * apart_a * apart_b


def rows_per_label(n: Floats, squares: Floats, pred: Ints, rows: Segments) -> Floats:
    """How many rows a labelled row with a prediction counts as: f_j, (classes,).

    A class without predictions counts as all rows of the slice do. `pred` has the class of pairs.
    """
    of_class = [added_up(x, pred, rows.size) for x in (squares, n)]
    squares, n = (np.where(of_class[1] > 0, x, rows.spread(rows.sum(x))) for x in of_class)
    return squares / n


class Moments(NamedTuple):
    """The rows with each prediction: their weight, and the sums of φ and φ², (classes,)."""

    n: Floats
    total: Floats
    squares: Floats

    @classmethod
    def of(
        cls, n: Floats, phi: Floats, pred: Ints, number: int, more: Moments | None = None
    ) -> Moments:
        """Add up pairs, and `more` rows. Slices do not have the class -1."""
        known = pred >= 0
        n, phi, pred = n[known], phi[known], pred[known]
        moments = cls(*(added_up(x, pred, number) for x in (n, n * phi, n * phi**2)))
        return moments if more is None else moments.with_rows(more)

    def with_rows(self, other: Moments) -> Moments:
        """With other rows besides."""
        return Moments(*map(np.add, self, other))

    def added_squares(self, per_label: Floats) -> Floats:
        """N_j (f_j - 1) s_j²: (classes,)."""
        variance = self.squares / self.n - (self.total / self.n) ** 2
        return np.where(self.n > 0, self.n * (per_label - 1) * np.clip(variance, 0, None), 0.0)
