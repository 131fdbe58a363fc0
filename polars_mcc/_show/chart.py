"""What all charts share: the rows to draw, colours, tooltips and the configuration."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import polars as pl

from polars_mcc._counts.sliced import SET
from polars_mcc._log.columns import as_expr
from polars_mcc._log.extras import missing
from polars_mcc._log.frames import check_collected
from polars_mcc._log.keys import TOTAL
from polars_mcc._log.text import as_text
from polars_mcc._show.table import COLOUR, GREY, keys_of, slices_in_words, windows_of

try:
    import altair as alt
except ModuleNotFoundError as error:
    raise missing(subject="a chart", package="altair", extra="plot") from error

__all__ = ["alt"]  # other modules take altair from here, where the error says what to install
Chart: TypeAlias = alt.LayerChart

LABEL_LIMIT = 320  # longest name of a slice, in pixels
COLOURS = (COLOUR, "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")

_CONTROLS = (*range(32), *range(127, 160), 0x2028, 0x2029, 0xFFFE, 0xFFFF)
_HIDDEN = {chr(code): f"<U+{code:04X}>" for code in _CONTROLS}
"""Characters that end lines or have no glyph. An SVG cannot hold most of them."""


def check(result: pl.DataFrame, source: str, *columns: str) -> None:
    check_collected(result, "a chart needs")
    for column in columns:
        if column not in result.columns:
            msg = (
                f"a chart of a result of {source} needs a column '{column}', but the columns are "
                f"{result.columns}"
            )
            raise ValueError(msg)
    if result.is_empty():
        msg = f"there is nothing to draw: the result of {source} has no rows"
        raise ValueError(msg)


def drawn(
    result: pl.DataFrame,
    source: str,
    score: str,
    *,
    interval: bool = False,
    at: str | None = None,
    undefined: pl.Expr | None = None,
) -> pl.DataFrame:
    """The rows that have a score, with fixed column names in place of the names of the user.

    Rows that are `undefined` have no score; they are kept, and marked by `is_undefined`.

    `slice` is the text of the slice, and `line` the text of slice and model. `is_total` marks the
    total. `score` is the value to draw, `low` and `high` its interval, and `at` its place on x.
    """
    ends = ("low", "high") if interval else ()
    columns = {"score": score, **{end: f"{score}_{end}" for end in ends}}
    columns |= {name: name for name in ("model", "n") if name in result.columns}
    columns |= {} if at is None else {"at": at}
    check(result, source, *columns.values())
    keys = [name for name in keys_of(result) if name not in {"model", at}]
    windows = [name for name in windows_of(result) if name != at]
    has_sets = SET in keys[:2] and len(keys) > 1
    text, is_total = slices_in_words(result, keys), pl.lit(value=False)
    if len(keys) == 1:  # Its name is said elsewhere.
        text = as_text(as_expr(keys[0]), result.schema[keys[0]]).fill_null("null")
    if has_sets:
        is_total = (pl.col(SET) == TOTAL) & (not windows)
        for key in windows:  # The time of a window is a key of every set.
            text += pl.lit(f" and {key} = ") + as_text(as_expr(key), result.schema[key])
    rows = result.select(
        text.alias("slice"),
        is_total.alias("is_total"),
        **{name: as_expr(column) for name, column in columns.items()},
        **({} if undefined is None else {"is_undefined": undefined}),
    )
    parts = ["slice", "model"] if "model" in columns else ["slice"]
    rows = rows.with_columns(line=pl.concat_str(parts if keys else parts[-1], separator=", "))
    rows = rows.with_columns(legible(pl.col("line", *parts)))
    rows = rows if at is None else rows.drop_nulls("at")
    if undefined is None:
        return rows.drop_nulls("score")
    rows = rows.with_columns(
        pl.when(~pl.col("is_undefined")).then(column).alias(column) for column in ("score", *ends)
    )
    return rows.filter(pl.col("is_undefined") | pl.col("score").is_not_null())


def legible(texts: pl.Expr) -> pl.Expr:
    """Texts of a log as a chart shows them: a line end is `<U+000A>`."""
    return texts.str.replace_many(_HIDDEN)


def legible_name(name: str) -> str:
    """The name of a column as a chart shows it."""
    return name.translate({ord(one): text for one, text in _HIDDEN.items()})


def title_of(column: str) -> str:
    """The name of a column as the title of an axis or a tooltip.

    Vega-Lite makes code of titles, and does not escape backslashes.
    """
    return legible_name(column).replace("\\", r"\\")


def tooltip(rows: pl.DataFrame, title: str, at: str | None = None) -> list[alt.Tooltip]:
    titles = {"slice": "slice", "model": "model", "at": at or "", "score": title}
    titles |= {"low": f"{title}_low", "high": f"{title}_high", "n": "n"}
    return [
        alt.Tooltip(name, title=title_of(titles[name])) for name in titles if name in rows.columns
    ]


def measured(axis: Any, column: str, title: str) -> Any:  # noqa: ANN401 - `alt.X` or `alt.Y`
    """An axis of numbers, which need not begin at 0."""
    return axis(field=column, title=title, type="quantitative").scale(zero=False)


def lines(rows: pl.DataFrame) -> Any:  # noqa: ANN401 - a colour, or a value
    """A colour per line, or one colour if there is only one line."""
    return colour("line", rows) if rows["line"].n_unique() > 1 else alt.ColorValue(COLOUR)


def colour(column: str, rows: pl.DataFrame) -> alt.Color:
    names = rows[column].unique(maintain_order=True).to_list()
    colours = [COLOURS[at % len(COLOURS)] for at in range(len(names))]
    return alt.Color(column, type="nominal", title=None).scale(domain=names, range=colours)


def cells(base: Any, number: str, legend: Any = alt.Undefined) -> list[alt.Chart]:  # noqa: ANN401
    """The cells of a confusion matrix: shaded by the share of gold, with `n` in this format."""
    shade = alt.Color("share", type="quantitative", title="share of gold", legend=legend)
    text = alt.Text("n", type="quantitative", format=number)
    contrast = alt.condition(alt.datum.share > 0.5, alt.value("black"), alt.value("white"))
    return [
        base.mark_rect().encode(color=shade.scale(scheme="cividis", domain=[0, 1])),
        base.mark_text(fontSize=10).encode(text=text, color=contrast),
    ]


def finished(
    layers: Sequence[alt.Chart],
    *,
    labels: Iterable[str] = (),
    note: str = "",
    **size: Any,  # noqa: ANN401 - altair's own
) -> Chart:
    """The chart, with room on the left, as a reader's font may be wider than the measured one."""
    room = 5 + min(1.5 * max(map(len, labels), default=0), LABEL_LIMIT / 5)
    padding = {"left": room, "top": 5, "right": 5, "bottom": 5}
    if note:
        size["title"] = alt.TitleParams(
            legible_name(note), fontSize=11, fontWeight="normal", color=GREY, anchor="start"
        )
    chart = alt.LayerChart(layer=list(layers), padding=padding, **size)
    chart.config = legible_config()
    return chart


def legible_config() -> alt.Config:
    """The configuration of a chart: colours that are legible on light and dark pages.

    Set it last: each step of altair copies its chart.
    """
    text = {"labelColor": GREY, "titleColor": GREY}
    lines = {"domainColor": GREY, "tickColor": GREY, "gridColor": GREY, "gridOpacity": 0.2}
    return alt.Config(
        background="transparent",
        axis={**text, **lines},
        legend={**text, "symbolOpacity": 1},
        view={"stroke": None},
    )
