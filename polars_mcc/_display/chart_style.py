"""What all charts share: the rows to draw, colours, tooltips and the configuration."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import polars as pl

from polars_mcc._base.errors_and_warnings import missing
from polars_mcc._base.slice_names import clause, value_in_words
from polars_mcc._base.values_as_text_or_markdown import as_text
from polars_mcc._counts.sliced_log import SET
from polars_mcc._display.table_and_to_numpy import (
    COLOUR,
    GREY,
    key_columns,
    slices_in_words,
    window_keys,
)
from polars_mcc._display.undefined_scores import where_collapsed, where_undefined
from polars_mcc._frame.columns import as_expr, check_collected
from polars_mcc._keys.any_key import TOTAL

try:
    import altair as alt
except ModuleNotFoundError as error:
    raise missing(subject="a chart", package="altair", extra="plot") from error

# Other modules take altair from here, where the error says what to install.
__all__ = ["COLOUR", "GREY", "alt"]
Chart: TypeAlias = alt.LayerChart
Charts: TypeAlias = alt.LayerChart | alt.FacetChart

LABEL_LIMIT = 320  # longest name of a slice, in pixels
COLOURS = (COLOUR, "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#995533", "#7755DD")
"""Okabe's and Ito's, and two that stay as far from them for colour-blind readers."""
_PANES_IN_ROW = 3  # facets beside each other
_STROKED_CROSS = "M-0.7,-0.7L0.7,0.7M-0.7,0.7L0.7,-0.7"

_CONTROL_CODES = (*range(32), *range(127, 160), 0x2028, 0x2029, 0xFFFE, 0xFFFF)
_VISIBLE_CODES = {chr(code): f"<U+{code:04X}>" for code in _CONTROL_CODES}
"""Characters that end lines or have no glyph. An SVG cannot hold most of them."""


def check_drawable(result: pl.DataFrame, source: str, *columns: str) -> None:
    check_collected(result, "a chart needs")
    for column in columns:
        if column not in result.columns:
            raise ValueError(
                f"a chart of a result of {source} needs a column '{column}', but the columns are "
                f"{result.columns}"
            )
    if result.is_empty():
        raise ValueError(f"there is nothing to draw: the result of {source} has no rows")


def rows_to_draw(
    result: pl.DataFrame,
    source: str,
    score: str,
    *,
    interval: bool = False,
    at: str | None = None,
    marked: bool = False,
) -> pl.DataFrame:
    """The rows that have a score, with fixed column names in place of the names of the user.

    If `marked`, rows without a score are kept: `is_undefined` marks them. `zero` is the score of a
    row that `where_collapsed` marks, else null.

    `slice` is the text of the slice, and `line` the text of slice and model. `is_total` marks the
    total. `score` is the value to draw, `low` and `high` its interval, and `at` its place on x.
    """
    ends = ("low", "high") if interval else ()
    columns = {"score": score, **{end: f"{score}_{end}" for end in ends}}
    columns |= {name: name for name in ("model", "n") if name in result.columns}
    columns |= {} if at is None else {"at": at}
    check_drawable(result, source, *columns.values())
    keys = [name for name in key_columns(result, source) if name not in {"model", at}]
    windows = [name for name in window_keys(result) if name != at]
    text = slices_in_words(result, keys)
    if len(keys) == 1:  # Its name is said elsewhere.
        text = value_in_words(as_text(as_expr(keys[0]), result.schema[keys[0]]))
    if _has_sets(keys):
        for key in windows:  # The time of a window is a key of every set.
            text += pl.lit(" and ") + clause(key, as_text(as_expr(key), result.schema[key]))
    rows = result.select(
        text.alias("slice"),
        is_total(result, source).alias("is_total"),
        **{name: as_expr(column) for name, column in columns.items()},
        is_undefined=where_undefined(result, score) if marked else pl.lit(value=False),
        zero=pl.when(where_collapsed(result, score) if marked else False).then(as_expr(score)),
    )
    names = ["slice", "model"] if "model" in columns else ["slice"]
    rows = rows.with_columns(line=pl.concat_str(names if keys else names[-1], separator=", "))
    rows = rows.with_columns(legible(pl.col("line", *names)))
    numbers = ["score", *ends]  # The best threshold of a curve may be infinite.
    has_other_at = at is None or rows.schema["at"].is_temporal() or source == "curve()"
    numbers += [] if has_other_at else ["at"]
    has_score, is_collapsed = ~pl.col("is_undefined"), pl.col("zero").is_not_null()
    rows = rows.with_columns(
        pl.when(has_score).then(column).alias(column) for column in ("score", *ends)
    ).with_columns(is_undefined=pl.col("is_undefined") & ~is_collapsed)
    rows = rows.filter(pl.col("is_undefined") | pl.col("score").is_not_null() | is_collapsed)
    # An axis has no place for an infinite value.
    drawn = rows.with_columns(pl.when(pl.col(numbers).is_finite()).then(pl.col(numbers)))
    return drawn if at is None else drawn.drop_nulls("at")


def _has_sets(keys: Sequence[str]) -> bool:
    return SET in keys[:2] and len(keys) > 1


def is_total(result: pl.DataFrame, source: str) -> pl.Expr:
    """Whether a row is the total of sets of keys. A window of all rows is a slice."""
    has_total = _has_sets(key_columns(result, source)) and not window_keys(result)
    return pl.col(SET) == TOTAL if has_total else pl.lit(value=False)


def legible(texts: pl.Expr) -> pl.Expr:
    """Texts of a log as a chart shows them: a line end is `<U+000A>`."""
    return texts.str.replace_many(_VISIBLE_CODES)


def legible_name(name: str) -> str:
    """The name of a column as a chart shows it."""
    return name.translate({ord(char): text for char, text in _VISIBLE_CODES.items()})


def title_of(column: str) -> str:
    """The name of a column as the title of an axis or a tooltip.

    Vega-Lite makes code of titles, and does not escape backslashes.
    """
    return legible_name(column).replace("\\", r"\\")


def tooltip(rows: pl.DataFrame, title: str, at: str | None = None) -> list[alt.Tooltip]:
    titles = {"slice": "slice", "model": "model", "at": at or "", "score": title}
    titles |= {"low": f"{title}_low", "high": f"{title}_high", "n": "n"}
    return titled({name: text for name, text in titles.items() if name in rows.columns})


def titled(titles: Mapping[str, str]) -> list[alt.Tooltip]:
    """Tooltips of columns, each with its title."""
    return [alt.Tooltip(name, title=title_of(text)) for name, text in titles.items()]


def number_axis(axis: Any, column: str, title: str) -> Any:  # noqa: ANN401 - `alt.X` or `alt.Y`
    """An axis of numbers, which need not begin at 0."""
    return axis(field=column, title=title, type="quantitative").scale(zero=False)


def line_colours(rows: pl.DataFrame) -> Any:  # noqa: ANN401 - a colour, or a value
    """A colour per line; one colour if each pane has one line, or if there is one and no model."""
    pane = pane_of(rows)
    column = "model" if pane == "slice" else "line"
    is_one = rows[column].n_unique() == 1 and "model" not in rows.columns
    return alt.ColorValue(COLOUR) if pane == "line" or is_one else colours_of(column, rows)


def pane_of(rows: pl.DataFrame) -> str | None:
    """The column that makes facets, if there are more lines than colours: a slice or a line each.

    None: all lines fit in one pane.
    """
    if rows["line"].n_unique() <= len(COLOURS):
        return None
    models = rows["model"].n_unique() if "model" in rows.columns else len(COLOURS) + 1
    return "slice" if models <= len(COLOURS) else "line"


def collapsed_marks(base: Any, **encoding: Any) -> alt.Chart:  # noqa: ANN401 - altair's own
    """The marks of collapsed rows: large crosses, in the colour of their line."""
    mark: alt.Chart = base.mark_point(shape=_STROKED_CROSS, size=220, strokeWidth=3, opacity=1)
    return mark.transform_filter("isValid(datum.zero)").encode(**encoding)


def colours_of(column: str, rows: pl.DataFrame) -> alt.Color:
    names = rows[column].unique(maintain_order=True).to_list()
    colours = [COLOURS[at % len(COLOURS)] for at in range(len(names))]
    return alt.Color(column, type="nominal", title=None).scale(domain=names, range=colours)


def layered_chart(
    layers: Sequence[alt.Chart],
    *,
    labels: Iterable[str] = (),
    notes: Iterable[str] = (),
    **size: Any,  # noqa: ANN401 - altair's own
) -> Chart:
    """Layers as one chart, with colours that are legible on light and dark pages.

    It has room on the left: the font of a reader may be wide.
    """
    room = 5 + min(1.5 * max(map(len, labels), default=0), LABEL_LIMIT / 5)
    size["padding"] = {"left": room, "top": 5, "right": 5, "bottom": 5}
    if texts := [*map(legible_name, notes)]:
        size["title"] = alt.TitleParams(
            texts, fontSize=11, fontWeight="normal", color=GREY, anchor="start"
        )
    chart = alt.LayerChart(layer=list(layers), **size)
    text = {"labelColor": GREY, "titleColor": GREY}
    lines = {"domainColor": GREY, "tickColor": GREY, "gridColor": GREY, "gridOpacity": 0.2}
    apart = {"labelFlush": False, "labelSeparation": 8}
    # Set it last: each step of altair copies its chart.
    chart.config = alt.Config(
        background="transparent",
        axis={**text, **lines, **apart},
        axisXQuantitative={"tickCount": 6},
        header={**text, "labelLimit": LABEL_LIMIT},
        legend={**text, "symbolOpacity": 1},
        title={"color": GREY},
        view={"stroke": None},
    )
    return chart


def faceted_chart(
    layers: Sequence[alt.Chart],
    rows: pl.DataFrame,
    notes: Iterable[str] = (),
    *,
    width: int,
    height: int,
    pane: str | None = None,
) -> Charts:
    """A chart of lines, `width` pixels wide; facets of half this size by `pane`, or if many."""
    pane = pane or pane_of(rows)
    if pane is None:
        return layered_chart(layers, notes=notes, width=width, height=height)
    chart = layered_chart(layers, notes=notes)
    for layer in layers:
        if layer.data is rows:  # A facet divides these rows, and repeats others.
            layer.data = alt.Undefined
    spec = alt.LayerChart(layer=list(layers), width=width // 2, height=height // 2)
    in_order = alt.EncodingSortField("place", op="min")  # A list of names would become code.
    facet = alt.Facet(pane, type="nominal", title=None, sort=in_order)
    rows = rows.with_row_index("place")
    faceted = alt.FacetChart(rows, spec=spec, facet=facet, columns=_PANES_IN_ROW, title=chart.title)
    faceted.config = chart.config
    return faceted
