"""Results as great-tables tables (extra `tables`), as NumPy arrays, as texts; their keys."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import polars as pl

from polars_mcc._base.errors_and_warnings import missing
from polars_mcc._base.slice_names import slice_name, value_in_words
from polars_mcc._base.values_as_text_or_markdown import as_text, label_text
from polars_mcc._counts.sliced_log import COMPLETE, N_WAITING, SAID, SET
from polars_mcc._frame.columns import as_expr, check_collected
from polars_mcc._keys.bins import is_calendar

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from great_tables import GT

_PICTURE_WIDTH, _PICTURE_HEIGHT = 160, 16  # size of the picture of an interval, in pixels
_FIRST_ADDED = {
    "n": [],
    "label": ["support"],
    "threshold": ["n", "tp", "fp", "fn", "tn"],
}
_FIRST_ADDED |= {"bin": ["score_min", "score_max"], "reason": ["n_null"]}
"""The first column that a verb adds after the keys, and the columns that must follow it.

Confusion matrices begin with `gold`, and comparisons with `metric`, see `_is_added`."""
_FIRST_OF = {"by()": "n", "curve()": "threshold", "calibration()": "bin"}
_CELL_COLUMNS = {"pred", "n", "share", "contribution", "loss", "n_null", N_WAITING}
COLOUR, GREY = "#0072B2", "#767676"
"""Colours of marks, and of lines and text: legible on light and dark pages."""


def table(
    result: pl.DataFrame, *, score: str | None = None, title: str | None = None, decimals: int = 3
) -> GT:
    """Format a result as a table: rounded numbers, and a picture of each score and interval.

    Args:
        result: A result of `by`, `compare`, `drift`, `worst` or another verb.
        score: The column to draw, with its interval if there is one. None: `diff`; without `diff`,
            `mcc`; without both, the first column with an interval.
        title: The title above the table.
        decimals: The number of decimals of floats. Counts have thousands separators; null is a
            dash.

    Returns:
        A `great_tables.GT`. Change it, show it in a notebook, or save it with `as_raw_html()`.
        Text in cells is escaped. In a picture, the point is the score and the bar is its interval.
        The grey line is at 0, or at the end nearest to 0 if 0 is not in the range of the picture.

    Raises:
        ModuleNotFoundError: great-tables is not installed (extra `tables`).
        TypeError: The result is not a DataFrame.
        ValueError: The result has no column `score`.

    Examples:
        >>> import polars as pl
        >>> import polars_mcc
        >>> log = pl.read_parquet("data/digits.parquet")
        >>> shown = polars_mcc.table(log.mcc.by("ink_band", ci=0.95), title="Digits")
        >>> page = shown.as_raw_html()
    """
    try:
        from great_tables import GT  # noqa: PLC0415 - an optional dependency
    except ModuleNotFoundError as error:
        raise missing(subject="a table", package="great-tables", extra="tables") from error
    check_collected(result, "a table needs")
    if score is None:
        with_limits = [name for name in result.columns if f"{name}_low" in result.columns]
        likely = (name for name in ("diff", "mcc", *with_limits) if name in result.columns)
        score = next(likely, None)
    elif score not in result.columns:
        msg = f"score='{score}' is not a column of the result; the columns are {result.columns}"
        raise ValueError(msg)
    pictures = [] if score is None else _pictures(result, score)
    at = 0 if score is None else result.columns.index(score) + 1
    # great-tables reads some names as patterns. HTML hides the space before a name.
    patterns = (name for name in result.columns if pl.col(name).meta.has_multiple_outputs())
    plain = {name: f" {name}" for name in patterns}
    keys = [plain.get(name, name) for name in key_columns(result)]
    result = result.rename(plain)
    rows = with_texts(
        result, [name for name, dtype in result.schema.items() if not dtype.is_numeric()]
    )
    shown = GT(rows)
    if pictures:
        name = "" if "" not in result.columns else "picture"
        rows = rows.insert_column(at, pl.Series(name, range(result.height)))
        shown = GT(rows).fmt(lambda row: pictures[row], columns=name)
    for name, dtype in result.schema.items():
        if dtype.is_float():
            shown = shown.fmt_number([name], decimals=decimals)
        elif dtype.is_integer() and name not in keys:  # A year is not a count.
            shown = shown.fmt_integer([name])
    shown = shown.sub_missing(missing_text="–")
    return shown if title is None else shown.tab_header(title)


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
        ValueError: The frame is no wide confusion matrix: its columns differ.

    Examples:
        >>> import polars as pl
        >>> import polars_mcc
        >>> log = pl.DataFrame({"gold": ["a", "a", "b", "a"], "pred": ["a", "b", "b", "a"]})
        >>> polars_mcc.to_numpy(log.mcc.confusion())
        array([[2, 1],
               [0, 1]])
    """
    check_collected(matrix, "to_numpy takes")
    names = [name for name in matrix.columns if name != N_WAITING]
    if names[-1:] != ["n_null"] or "gold" not in names or "pred" in names:
        raise ValueError(
            "to_numpy takes a wide result of confusion(), with a column per predicted label "
            f"between 'gold' and 'n_null', but the columns are {names}"
        )
    before = names.index("gold")
    cells = matrix[names[before + 1 : -1]]
    array = cells.to_numpy()
    return array.reshape(-1, cells.width, cells.width) if before else array


def key_columns(answer: pl.DataFrame, verb: str = "") -> list[str]:
    """The columns of a result that are keys: all before the first column that the verb adds.

    Without the verb, the columns that follow tell whether a name is that of a key.
    """
    names, first = answer.columns, _FIRST_OF.get(verb)
    added = (
        at
        for at, name in enumerate(names)
        if name == first or (not first and _is_added(answer, at))
    )
    hidden = {COMPLETE} if window_keys(answer) else set()
    return [name for name in names[: next(added, None)] if name not in hidden]


def window_keys(answer: pl.DataFrame) -> list[str]:
    """The key that is the time of windows, if there is one."""
    pairs = zip(answer.columns, answer.columns[1:], strict=False)
    return [name for name, after in pairs if after == COMPLETE and is_calendar(answer.schema[name])]


def _is_added(answer: pl.DataFrame, at: int) -> bool:
    """Whether a verb added this column. A key may have the same name, so check what follows."""
    name, *after = answer.columns[at:]
    if name == "gold":
        labels = [*map(label_text, answer["gold"].unique(maintain_order=True))]
        return {*after} <= _CELL_COLUMNS or after[: len(labels) + 1] == [*labels, "n_null"]
    if name in {"baseline", "metric"}:
        return not {"score", "diff", "ratio"}.isdisjoint(after)
    return name in _FIRST_ADDED and after[: len(_FIRST_ADDED[name])] == _FIRST_ADDED[name]


def with_texts(answer: pl.DataFrame, columns: Iterable[str]) -> pl.DataFrame:
    """Convert columns to text, even columns that Polars cannot cast to text."""
    return answer.with_columns(
        as_text(as_expr(name), answer.schema[name]).alias(name) for name in columns
    )


def slices_in_words(answer: pl.DataFrame, keys: Sequence[str]) -> pl.Expr:
    """The name of each slice of a result in words, from its keys."""
    if [*keys[:2]] == [SAID, SET]:  # of the long form, or of `worst`
        return pl.col(SAID)
    texts = {key: as_text(as_expr(key), answer.schema[key]) for key in keys if key != SET}
    return slice_name(texts, _sets_of(answer, [*texts]) if SET in keys else None)


def _sets_of(answer: pl.DataFrame, keys: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The keys of each set of an answer, by its name; none of the total.

    A name with a comma may be that of several sets. A key that is not in a set is null there.
    """
    some = [of for n in range(len(keys)) for of in itertools.combinations(keys, n + 1)]
    sets = {}
    for (name,), rows in answer.group_by(pl.col(SET).cast(pl.String)):
        parts = sorted(str(name).split(", "))
        found = [own for own in some if sorted(", ".join(own).split(", ")) == parts]
        valued = {key for key in keys if rows[key].null_count() < rows.height}
        sets[str(name)] = max(found, key=lambda own: len(valued.intersection(own)), default=())
    return sets


def _cell_text(name: str, value: object) -> str:
    """A value as text: rounded."""
    if value is None:
        return "–"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, float):
        if name.startswith("p_"):
            return "<\u00a00.001" if value < 0.001 else f"{value:.2g}"
        return f"{value:z,.3f}"
    return str(value)


def cell_texts(answer: pl.DataFrame) -> dict[str, list[str]]:
    """The cells of a result as text, by column. Keys are as in the names of slices."""
    keys = [key for key in key_columns(answer) if key not in {SAID, SET}]
    of_keys = with_texts(answer.select(map(as_expr, keys)), keys)
    of_keys = of_keys.select(value_in_words(as_expr(name)).alias(name) for name in keys)
    return {
        name: of_keys[name].to_list()
        if name in keys
        else [_cell_text(name, value) for value in answer[name].to_list()]
        for name in answer.columns
    }


def _pictures(result: pl.DataFrame, score: str) -> list[str]:
    """A small picture of each score and interval, all on one scale."""
    ends = [name for name in (score, f"{score}_low", f"{score}_high") if name in result.columns]
    drawn = result[ends].select(pl.all().cast(pl.Float64).fill_nan(None))
    values: list[float] = pl.concat(drawn.get_columns()).drop_nulls().to_list() or [0.0]
    least, largest = min(values), max(values)
    span = (largest - least) or 1.0
    middle = _PICTURE_HEIGHT / 2

    def x_of(value: float) -> float:
        return round(4 + (value - least) / span * (_PICTURE_WIDTH - 8), 2)

    def picture(value: float | None, low: float | None = None, high: float | None = None) -> str:
        zero = x_of(min(max(0.0, least), largest))
        marks = f'<line x1="{zero}" x2="{zero}" y1="0" y2="{_PICTURE_HEIGHT}" stroke="{GREY}"/>'
        if low is not None and high is not None:
            marks += (
                f'<line x1="{x_of(low)}" x2="{x_of(high)}" y1="{middle}" y2="{middle}" '
                f'stroke="{COLOUR}" stroke-width="2"/>'
            )
        if value is not None:
            marks += f'<circle cx="{x_of(value)}" cy="{middle}" r="4" fill="{COLOUR}"/>'
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{_PICTURE_WIDTH}" '
            f'height="{_PICTURE_HEIGHT}">{marks}</svg>'
        )

    return [picture(*row) for row in drawn.iter_rows()]
