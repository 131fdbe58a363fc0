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

from polars_mcc._metrics.slice_sums import Flags, Floats, Ints, Segments, added_up


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
        """Add up pairs, and `more` rows. A prediction of -1 is a class that the slice has not."""
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


class ClassGaps(NamedTuple):
    """What rows without a label add to n times the mean of φ², for each class against the rest.

    With the prediction j, φ of a class k takes two values: of the gold label k, and of the others.
    So s_j² is q (1 - q) times the square of their difference, with q the share of the gold label.
    """

    own: Floats
    """N_k (f_k - 1) q_kk (1 - q_kk): (classes,)."""
    others: Floats
    """The sum of N_j (f_j - 1) q_kj (1 - q_kj) over all other predictions j of the slice."""

    @classmethod
    def of(  # noqa: PLR0917 - arrays of classes and pairs
        cls,
        rows: Segments,
        per_label: Floats,
        p: Floats,
        hits: Floats,
        n: Floats,
        gold: Ints,
        pred: Ints,
        spread: tuple[Floats, Floats],
    ) -> ClassGaps:
        """From the predictions and hits of classes, and from the rows of pairs.

        `spread` has two numbers of each class. Besides its rows, the pair (k, j) has a row with
        the weight of the first number of k, times the second number of j.
        """
        u, v = spread
        gaps = np.where(p > 0, per_label - 1, 0.0)
        p = np.where(p > 0, p, 1.0)

        def added(pred: Ints, n: Floats) -> Floats:
            return gaps[pred] * n * (1 - n / p[pred])

        misses = gold != pred
        gold, pred, n = gold[misses], pred[misses], n[misses]
        more = u[gold] * v[pred]
        seen = added_up(added(pred, n + more) - added(pred, more), gold, len(p))
        first, second = (rows.spread(rows.sum(x)) - x for x in (gaps * v, gaps * v**2 / p))
        return cls(added(np.arange(len(p)), hits), seen + u * first - u**2 * second)


def have_gaps(rows: Segments, per_label: Floats) -> Flags:
    """Whether some rows of a slice have no label: (slices,)."""
    return np.asarray(rows.max(per_label) > 1)
