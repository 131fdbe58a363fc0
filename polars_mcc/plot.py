"""Pictures of answers: altair charts, which a user can change, and save without a network.

The extra `plot` has altair, and what saves a chart as `.svg`, `.png` or `.html`. Charts are
legible on light and dark pages: their background is transparent, and text a grey with the same
contrast to both. Colours are those of Okabe and Ito, which the colour-blind tell apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import polars as pl

from polars_mcc._counts.sliced import LONG, SET
from polars_mcc._log.extras import missing
from polars_mcc._log.frames import check_collected
from polars_mcc._log.keys import TOTAL
from polars_mcc._show.table import COLOUR, GREY, is_time, keys_of, windows_of, with_texts

try:
    import altair as alt
except ModuleNotFoundError as error:
    raise missing(subject="a chart", package="altair", extra="plot") from error

Chart: TypeAlias = alt.LayerChart

_COLOURS = (COLOUR, "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_STEP = 16  # pixels of a line of a chart with a line per slice
_WIDTH = 400  # pixels of that line
_LABEL_LIMIT = 320  # pixels of the name of a slice
_TEXTS = 30  # labels up to which the cells of a matrix show their numbers


def slices(result: pl.DataFrame, *, metric: str = "mcc", sort: bool = True) -> Chart:
    """Draw the score of each slice as a point with its interval: a forest plot.

    Args:
        result: What `by` gives. With `ci`, intervals are drawn; with `total`, the total is a line
            to compare with; several models have a colour each.
        metric: The column to draw.
        sort: From the lowest score up; else in the order of the result.

    Returns:
        A layered altair chart, as tall as there are slices.

    Raises:
        TypeError: The result is no DataFrame.
        ValueError: It has no such column, or no slice.

    Examples:
        >>> import polars as pl
        >>> import polars_mcc
        >>> from polars_mcc import each
        >>> log = pl.read_parquet("data/digits.parquet")
        >>> chart = polars_mcc.plot.slices(log.mcc.by(each("ink_band", total=True), ci=0.95))
        >>> chart.save("slices.svg")  # doctest: +SKIP
    """
    _check(result, "by()", "n", metric)
    rows = _drawn(result, "by()", metric, interval=f"{metric}_low" in result.columns)
    total, rows = rows.filter("is_total"), rows.filter(~pl.col("is_total"))
    layers = _forest(rows, metric, sort=sort)
    if not total.is_empty():
        line = alt.Chart(total).mark_rule(strokeDash=[4, 3], strokeWidth=1.5)
        colour = _colour("model", rows) if "model" in rows.columns else alt.value(GREY)
        layers = [line.encode(x="score", color=colour, tooltip=_tooltip(total, metric)), *layers]
    return _finished(layers, labels=rows["slice"], width=_WIDTH, height=alt.Step(_STEP))


def differences(result: pl.DataFrame, *, sort: bool = True) -> Chart:
    """Draw the difference of each slice with its interval, beside a line at no difference.

    Args:
        result: What `compare`, `drift` or `worst` gives.
        sort: From the lowest difference up; else in the order of the result.

    Returns:
        A layered altair chart, as tall as there are slices.

    Errors are those of `slices`.

    Examples:
        >>> import polars as pl
        >>> import polars_mcc
        >>> log = pl.read_parquet("data/digits.parquet")
        >>> models = log.mcc(pred=["logistic", "knn"])
        >>> chart = polars_mcc.plot.differences(models.compare("ink_band"))
        >>> chart.save("differences.html", inline=True)  # doctest: +SKIP
    """
    rows = _drawn(result, "compare(), contrast(), drift() or worst()", "diff", interval=True)
    none = alt.Chart(pl.DataFrame({"score": [0.0]})).mark_rule(strokeDash=[4, 3], color=GREY)
    layers = [none.encode(x="score"), *_forest(rows, "diff", sort=sort)]
    return _finished(layers, labels=rows["slice"], width=_WIDTH, height=alt.Step(_STEP))


def over_time(result: pl.DataFrame, *, time: str | None = None, metric: str = "mcc") -> Chart:
    """Draw a score over time, with a band for its interval, and a colour per slice or model.

    Args:
        result: What `by` gives, of a key or of windows by a Date or Datetime.
        time: That column. None: the only one there is.
        metric: The column to draw.

    Returns:
        A layered altair chart.

    Raises:
        ValueError: There is no such column, or several.

    Errors of `slices` are raised too.

    Examples:
        >>> import polars as pl
        >>> import polars_mcc
        >>> from polars_mcc import trailing
        >>> log = pl.read_parquet("data/digits.parquet")
        >>> weeks = log.mcc.by(trailing("day", "14d", every="7d"), ci=0.95)
        >>> chart = polars_mcc.plot.over_time(weeks)
        >>> chart.save("weeks.png")  # doctest: +SKIP
    """
    _check(result, "by()", "n", metric)
    keys = keys_of(result)
    times = [name for name in keys if is_time(result.schema[name])]
    if time is None:
        if len(times) != 1:
            msg = f"time must be one column, but there are {times}: name it, as in time='day'"
            raise ValueError(msg)
        [time] = times
    if time not in times:
        msg = f"time='{time}' is no key of the result that is a date or a time; these are {times}"
        raise ValueError(msg)
    has_band = f"{metric}_low" in result.columns
    rows = _drawn(result, "by()", metric, interval=has_band, at=time)
    base = alt.Chart(rows).encode(x=alt.X("at", title=time, type="temporal"), color=_lines(rows))
    y = alt.Y("score", title=metric, type="quantitative").scale(zero=False)
    layers = [base.mark_line(point=True).encode(y=y, tooltip=_tooltip(rows, metric, at=time))]
    if has_band:
        low = alt.Y("low", title=metric, type="quantitative").scale(zero=False)
        layers = [base.mark_area(opacity=0.2).encode(y=low, y2="high"), *layers]
    return _finished(layers, width=520, height=260)


def curve(result: pl.DataFrame, *, metric: str = "mcc") -> Chart:
    """Draw the score at each threshold, with a point at the best, and a colour per slice or model.

    Args:
        result: What `curve` gives.
        metric: The column to draw, `"mcc"` or `"f1"`.

    Returns:
        A layered altair chart.

    Errors are those of `slices`.

    Examples:
        >>> import polars as pl
        >>> import polars_mcc
        >>> tumours = pl.read_parquet("data/breast_cancer.parquet")
        >>> chart = polars_mcc.plot.curve(tumours.mcc(score="radius").curve(thresholds=100))
        >>> chart.save("curve.svg")  # doctest: +SKIP
    """
    rows = _drawn(result, "curve()", metric, at="threshold")
    best = rows.filter(pl.col("score") == pl.col("score").max().over("line"))
    best = best.unique("line", keep="first", maintain_order=True)
    x = alt.X("at", title="threshold", type="quantitative").scale(zero=False)
    y = alt.Y("score", title=metric, type="quantitative")
    encoding = {"x": x, "y": y, "color": _lines(rows)}
    tooltip = _tooltip(rows, metric, at="threshold")
    layers = [
        alt.Chart(rows).mark_line().encode(**encoding, tooltip=tooltip),
        alt.Chart(best)
        .mark_point(filled=True, size=70, opacity=1)
        .encode(**encoding, tooltip=tooltip),
    ]
    return _finished(layers, width=520, height=260)


def confusion(result: pl.DataFrame) -> Chart:
    """Draw a confusion matrix as a heat map: a cell's colour is its share of the gold label.

    Args:
        result: What `confusion` gives of one slice, wide or long.

    Returns:
        A layered altair chart. Up to 30 labels, cells show their numbers.

    Raises:
        ValueError: It is no confusion matrix, or has several slices.

    Errors of `slices` are raised too.

    Examples:
        >>> import polars as pl
        >>> import polars_mcc
        >>> log = pl.read_parquet("data/digits.parquet")
        >>> chart = polars_mcc.plot.confusion(log.mcc.confusion())
        >>> chart.save("confusion.svg")  # doctest: +SKIP
    """
    _check(result, "confusion()", "gold", "n_null")
    keys = keys_of(result)
    if result.select(keys).unique().height > 1:
        msg = f"the result has several slices, of {keys}: filter one, as in result.filter(...)"
        raise ValueError(msg)
    if "pred" in result.columns:
        [value] = [name for name in ("n", "share") if name in result.columns]
        cells = result.select("gold", "pred", n=value)
    else:
        labels = result.columns[len(keys) + 1 : -1]
        cells = result.unpivot(labels, index="gold", variable_name="pred", value_name="n")
    cells = cells.with_columns(pl.col("gold", "pred").cast(pl.String).fill_null("null"))
    whole = pl.col("n").sum().over("gold")
    cells = cells.with_columns(share=pl.when(whole > 0).then(pl.col("n") / whole).otherwise(0.0))
    order = list(dict.fromkeys([*cells["gold"], *cells["pred"]]))
    angle = -45 if max(map(len, order)) > 3 else 0
    base = alt.Chart(cells).encode(
        x=alt.X("pred", type="nominal", sort=order).axis(labelAngle=angle),
        y=alt.Y("gold", type="nominal", sort=order),
        tooltip=["gold", "pred", "n", "share"],
    )
    shade = alt.Color("share", type="quantitative", title="of gold")
    layers = [base.mark_rect().encode(color=shade.scale(scheme="cividis", domain=[0, 1]))]
    if len(order) <= _TEXTS:
        text = alt.Text("n", format="d" if cells.schema["n"].is_integer() else ".2f")
        contrast = alt.condition("datum.share > 0.5", alt.value("black"), alt.value("white"))
        layers.append(base.mark_text(fontSize=10).encode(text=text, color=contrast))
    size = alt.Step(28 if len(order) <= _TEXTS else 12)
    return _finished(layers, labels=order, width=size, height=size)


def _check(result: pl.DataFrame, source: str, *columns: str) -> None:
    check_collected(result, "a chart needs")
    for column in columns:
        if column not in result.columns:
            msg = (
                f"a chart of what {source} gives needs a column '{column}', but the columns are "
                f"{result.columns}"
            )
            raise ValueError(msg)
    if result.is_empty():
        msg = f"there is nothing to draw: what {source} gave has no rows"
        raise ValueError(msg)


def _drawn(
    result: pl.DataFrame, source: str, score: str, *, interval: bool = False, at: str | None = None
) -> pl.DataFrame:
    """The rows that have a score, in columns whose names are no user's.

    `slice` is the text of a slice, with `model` that of a line, and `is_total` tells the total;
    `score` is what is drawn, from `low` to `high`, and `at` where.
    """
    columns = {"score": score}
    columns |= {side: f"{score}_{side}" for side in ("low", "high") if interval}
    columns |= {name: name for name in ("model", "n") if name in result.columns}
    columns |= {} if at is None else {"at": at}
    _check(result, source, *columns.values())
    keys = [name for name in keys_of(result) if name not in {"model", at}]
    windows = [name for name in windows_of(result) if name != at]
    if keys[:2] == [*LONG]:
        has_sets = True
        is_slice = pl.col("slice") != TOTAL
        text: pl.Expr = pl.when(is_slice).then(
            pl.concat_str("slice", pl.lit(" = "), pl.col("value").fill_null("null"))
        )
    else:
        has_sets = keys[:1] == [SET] and len(keys) > 1
        text = _text(keys[1:], pl.col(SET).str.split(", ")) if has_sets else _text(keys)
    named = text.fill_null("total" if has_sets else "all rows")
    if has_sets:  # A window is of all sets.
        named = pl.concat_str(named, *(pl.lit(f", {key} = ") + pl.col(key) for key in windows))
    rows = with_texts(result, keys).select(
        named.alias("slice"),
        (text.is_null() & has_sets & (not windows)).alias("is_total"),
        **{name: pl.col(column) for name, column in columns.items()},
    )
    parts = ["slice", "model"] if "model" in columns else ["slice"]
    rows = rows.with_columns(line=pl.concat_str(parts if keys else parts[-1], separator=", "))
    return rows.drop_nulls(["score", *(["at"] if at is not None else [])])


def _text(keys: Sequence[str], active: pl.Expr | None = None) -> pl.Expr:
    """The values of the keys that are active, as text; with their names, if there are several."""
    if not keys:
        return pl.lit(None, pl.String)
    values = {key: pl.col(key).fill_null("null") for key in keys}
    if active is None and len(keys) == 1:
        return values[keys[0]]
    named = {key: pl.lit(f"{key} = ") + value for key, value in values.items()}
    parts = [
        part if active is None else pl.when(active.list.contains(key)).then(part)
        for key, part in named.items()
    ]
    has_any = pl.any_horizontal(part.is_not_null() for part in parts)
    return pl.when(has_any).then(pl.concat_str(parts, separator=", ", ignore_nulls=True))


def _forest(rows: pl.DataFrame, title: str, *, sort: bool) -> list[alt.Chart]:
    """A line per slice, with a point, and its interval; in it, a place for each of the models."""
    order = rows.sort("score") if sort else rows
    names = order["slice"].unique(maintain_order=True).to_list()
    axis = alt.Axis(title=None, labelLimit=_LABEL_LIMIT, labelOverlap=False)
    encoding: dict[str, Any] = {
        "y": alt.Y("slice", type="nominal", sort=names, axis=axis),
        "color": alt.value(COLOUR),
        "tooltip": _tooltip(rows, title),
    }
    if "model" in rows.columns:
        encoding |= {"color": _colour("model", rows), "yOffset": alt.YOffset("model")}
    base = alt.Chart(rows).encode(**encoding)
    x = alt.X("score", title=title, type="quantitative").scale(zero=False)
    points = base.mark_point(filled=True, size=50, opacity=1).encode(x=x)
    if "low" not in rows.columns:
        return [points]
    low = alt.X("low", title=title, type="quantitative").scale(zero=False)
    return [base.mark_rule(strokeWidth=2).encode(x=low, x2="high"), points]


def _tooltip(rows: pl.DataFrame, title: str, at: str | None = None) -> list[alt.Tooltip]:
    titles = {"slice": "slice", "model": "model", "at": at, "score": title}
    titles |= {"low": f"{title}_low", "high": f"{title}_high", "n": "n"}
    return [alt.Tooltip(name, title=titles[name]) for name in titles if name in rows.columns]


def _lines(rows: pl.DataFrame) -> Any:  # noqa: ANN401 - a colour, or a value
    """A colour per line, if there are several."""
    return _colour("line", rows) if rows["line"].n_unique() > 1 else alt.value(COLOUR)


def _colour(column: str, rows: pl.DataFrame) -> alt.Color:
    names = rows[column].unique(maintain_order=True).to_list()
    colours = [_COLOURS[place % len(_COLOURS)] for place in range(len(names))]
    return alt.Color(column, type="nominal", title=None).scale(domain=names, range=colours)


def _finished(
    layers: Sequence[alt.Chart],
    *,
    labels: Iterable[str] = (),
    **size: Any,  # noqa: ANN401 - altair's own
) -> Chart:
    """The chart, with room on the left for labels in a wider font than they were measured in."""
    text = {"labelColor": GREY, "titleColor": GREY}
    lines = {"domainColor": GREY, "tickColor": GREY, "gridColor": GREY, "gridOpacity": 0.2}
    room = 5 + min(1.5 * max(map(len, labels), default=0), _LABEL_LIMIT / 5)
    padding = {"left": room, "top": 5, "right": 5, "bottom": 5}
    chart = alt.LayerChart(layer=list(layers)).properties(padding=padding, **size)
    chart = chart.configure(background="transparent").configure_axis(**text, **lines)
    finished: Chart = chart.configure_legend(**text, symbolOpacity=1).configure_view(stroke=None)
    return finished
