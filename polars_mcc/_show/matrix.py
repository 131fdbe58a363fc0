"""A confusion matrix as an array."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from polars_mcc._log.frames import check_collected

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


def to_numpy(matrix: pl.DataFrame) -> npt.NDArray[np.int64] | npt.NDArray[np.float64]:
    """Convert a confusion matrix to a NumPy array, with axes as in scikit-learn.

    Args:
        matrix: A wide result of `confusion`, with a column per predicted label.

    Returns:
        An array of shape (labels, labels), with a row per gold and a column per predicted label,
        as in `sklearn.metrics.confusion_matrix`. Several slices give (slices, labels, labels), in
        the order of the frame. Int64, or Float64 for shares and float weights.

    Raises:
        TypeError: The matrix is not a DataFrame.
        ValueError: The columns are not those of a wide confusion matrix.

    Examples:
        >>> import polars as pl
        >>> import polars_mcc
        >>> log = pl.DataFrame({"gold": ["a", "a", "b", "a"], "pred": ["a", "b", "b", "a"]})
        >>> polars_mcc.to_numpy(log.mcc.confusion())
        array([[2, 1],
               [0, 1]])
    """
    check_collected(matrix, "to_numpy takes")
    names = matrix.columns
    if names[-1:] != ["n_null"] or "gold" not in names or "pred" in names:
        msg = (
            "to_numpy takes a wide result of confusion(), with a column per predicted label "
            f"between 'gold' and 'n_null', but the columns are {names}"
        )
        raise ValueError(msg)
    before = names.index("gold")
    cells = matrix[names[before + 1 : -1]]
    array = cells.to_numpy()
    return array.reshape(-1, cells.width, cells.width) if before else array
