"""Answers as formatted tables, by great-tables: the extra `tables`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import polars as pl

from polars_mcc._counts.sliced import COMPLETE
from polars_mcc._log.columns import as_expr
from polars_mcc._log.extras import missing
from polars_mcc._log.frames import check_collected
from polars_mcc._log.labels import label_names
from polars_mcc._log.text import as_text

if TYPE_CHECKING:
    from great_tables import GT

_WIDTH, _HEIGHT = 160, 16  # pixels of the picture of an interval
_FIRST = {"n": [], "n_before": [], "label": ["support"], "threshold": ["n", "tp"]}
"""The first columns that verbs add to keys, and which follow; beside them there is `gold`."""
_OF_CELLS = {"pred", "n", "share", "contribution", "loss", "n_null"}
COLOUR, GREY = "#0072B2", "#767676"
"""Of what is drawn, and of lines and text: legible on light and dark pages."""


def table(
    result: pl.DataFrame, *, score: str | None = None, title: str | None = None, decimals: int = 3
) -> GT:
    """Format an answer as a table: rounded numbers, and a picture of each score and interval.

    Args:
        result: What `by`, `compare`, `drift`, `worst` or another verb gives.
        score: The column that is drawn, with its interval if it has one. None: `diff`, or else
            `mcc`, or the first that has an interval.
        title: What is written above it.
        decimals: How many are shown of floats. Counts have thousands separators; null is a dash.

    Returns:
        A `great_tables.GT`, to be changed, shown in a notebook, or saved with `as_raw_html()`.
        Text in cells is escaped. In a picture the grey line is at 0, or at the least of what is
        drawn if that is more; the point is the score, the bar its interval.

    Raises:
        ModuleNotFoundError: great-tables is not installed; the extra `tables` has it.
        TypeError: The result is no DataFrame.
        ValueError: It has no such column.

    Examples:
        >>> import polars as pl
        >>> import polars_mcc
        >>> log = pl.read_parquet("data/digits.parquet")
        >>> shown = polars_mcc.table(log.mcc.by("ink_band", ci=0.95), title="Digits")
        >>> page = shown.as_raw_html()
    """
    try:
        from great_tables import GT  # noqa: PLC0415 - only where it is asked for
    except ModuleNotFoundError as error:
        raise missing(subject="a table", package="great-tables", extra="tables") from error
    check_collected(result, "a table needs")
    if score is None:
        with_limits = [name for name in result.columns if f"{name}_low" in result.columns]
        first = [name for name in ("diff", "mcc") if name in result.columns]
        score = next(iter([*first, *with_limits]), None)
    elif score not in result.columns:
        msg = f"score='{score}' is no column of the result; these are {result.columns}"
        raise ValueError(msg)
    rows = with_texts(
        result, [name for name, dtype in result.schema.items() if not dtype.is_numeric()]
    )
    integers = [name for name, dtype in result.schema.items() if dtype.is_integer()]
    floats = [name for name, dtype in result.schema.items() if dtype.is_float()]
    shown = GT(rows)
    if score is not None and result.height:
        pictures = _pictures(result, score)
        place = "" if "" not in result.columns else "picture"
        rows = rows.with_columns(pl.Series(place, range(result.height)))
        after = result.columns.index(score) + 1
        rows = rows.select(*result.columns[:after], place, *result.columns[after:])
        shown = GT(rows).fmt(lambda row: pictures[row], columns=place)
    # What is a key keeps its digits: a year is no count.
    keys = keys_of(result)
    counts = [name for name in integers if name not in keys]
    if counts:
        shown = shown.fmt_integer(counts)
    if floats:
        shown = shown.fmt_number(floats, decimals=decimals)
    shown = shown.sub_missing(missing_text="–")
    return shown if title is None else shown.tab_header(title)


def keys_of(answer: pl.DataFrame) -> list[str]:
    """The columns of an answer that make slices: those before the first that it adds to them."""
    names = answer.columns
    added = (place for place, _ in enumerate(names) if _is_added(answer, place))
    hidden = {COMPLETE} if windows_of(answer) else set()
    return [name for name in names[: next(added, None)] if name not in hidden]


def windows_of(answer: pl.DataFrame) -> list[str]:
    """The key that is the time of windows, if one is."""
    named = zip(answer.columns, answer.columns[1:], strict=False)
    return [name for name, after in named if after == COMPLETE and is_time(answer.schema[name])]


def _is_added(answer: pl.DataFrame, place: int) -> bool:
    """Whether a column is the first that a verb adds, though a key may have the same name."""
    name, *after = answer.columns[place:]
    if name == "gold":
        labels = label_names(answer["gold"].unique(maintain_order=True))
        return {*after} <= _OF_CELLS or after == [*labels, "n_null"]
    return name in _FIRST and after[: len(_FIRST[name])] == _FIRST[name]


def is_time(dtype: pl.DataType) -> bool:
    """Whether a key is drawn as time: a time of the day, or a duration, is no axis."""
    return isinstance(dtype, (pl.Date, pl.Datetime))


def with_texts(answer: pl.DataFrame, columns: Iterable[str]) -> pl.DataFrame:
    """Make text of columns, also of those that Polars does not cast."""
    return answer.with_columns(
        as_text(as_expr(name), answer.schema[name]).alias(name) for name in columns
    )


def shown(name: str, value: object, *, is_key: bool) -> str:
    """A value as it is read: rounded, and without thousands separators if it may be a year."""
    if value is None:
        return "null" if is_key else "–"
    if is_key or isinstance(value, (bool, str)):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        if name.startswith("p_"):
            return "<0.001" if value < 0.001 else f"{value:.2g}"
        return f"{value:.3f}"
    return str(value)


def _pictures(result: pl.DataFrame, score: str) -> list[str]:
    """A small picture of each score and interval, all on one scale."""
    ends = [score, *(name for name in (f"{score}_low", f"{score}_high") if name in result.columns)]
    drawn = result.select(pl.col(ends).cast(pl.Float64).fill_nan(None))
    least, most = (
        0.0 if end is None else end
        for end in drawn.select(
            pl.min_horizontal(ends).min().alias("least"),
            pl.max_horizontal(ends).max().alias("most"),
        ).row(0)
    )
    span = (most - least) or 1.0

    def x_of(value: float) -> float:
        return round(4 + (value - least) / span * (_WIDTH - 8), 2)

    middle = _HEIGHT / 2
    zero = x_of(min(max(0.0, least), most))
    axis = f'<line x1="{zero}" x2="{zero}" y1="0" y2="{_HEIGHT}" stroke="{GREY}"/>'

    def picture(value: float | None, low: float | None = None, high: float | None = None) -> str:
        marks = axis
        if low is not None and high is not None:
            marks += (
                f'<line x1="{x_of(low)}" x2="{x_of(high)}" y1="{middle}" y2="{middle}" '
                f'stroke="{COLOUR}" stroke-width="2"/>'
            )
        if value is not None:
            marks += f'<circle cx="{x_of(value)}" cy="{middle}" r="4" fill="{COLOUR}"/>'
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{_WIDTH}" '
            f'height="{_HEIGHT}">{marks}</svg>'
        )

    return [picture(*row) for row in drawn.iter_rows()]
