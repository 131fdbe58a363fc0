"""Draw results as altair charts. A user can change a chart, and save it without a network.

The extra `plot` installs altair and the packages that save a chart as `.svg`, `.png` or `.html`.
Charts are legible on light and dark pages: the background is transparent, and the text is a grey
with the same contrast to both. The colours are the palette of Okabe and Ito, which colour-blind
readers can tell apart.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import polars as pl
import polars.selectors as cs

from polars_mcc._base.values_as_text_or_markdown import label_text
from polars_mcc._display import chart_style as style
from polars_mcc._display.chart_style import Chart, Charts, alt
from polars_mcc._display.funnel_and_changes_charts import changes, funnel
from polars_mcc._display.table_and_to_numpy import COLOUR, GREY, key_columns, with_texts
from polars_mcc._display.undefined_scores import UNSCORED, undefined_in_words
from polars_mcc._frame.columns import as_expr
from polars_mcc._keys.bins import is_calendar, times_named

__all__ = [
    "calibration",
    "changes",
    "confusion",
    "curve",
    "differences",
    "funnel",
    "over_time",
    "slices",
]

_SLICE_HEIGHT = 16  # height of the line of one slice, in pixels
_FOREST_WIDTH = 400  # width of that line, in pixels
_LINES_HEIGHT = 260  # height of a chart over time, in pixels
_POINT_AREAS = [12, 110]  # pixels of the point of a slice without rows, and of the largest
_MAX_NUMBERED = 30  # labels of a matrix with numbers in its cells, at most
_MIN_MATRIX_WIDTH = 200  # width of a matrix, in pixels, at least
_NUMBER_CELL, _SMALL_CELL = 28, 12  # least width of a cell with and without number, in pixels


def slices(result: pl.DataFrame, *, metric: str = "mcc", sort: bool = True) -> Chart:
    """Draw the score of each slice as a point with its interval: a forest plot.

    Args:
        result: A result of `by`; or of `classes`, whose labels are then slices, with as many rows
            as `support`. With `ci`, the chart has intervals. With `total`, the total is a line to
            compare with. The area of a point grows with the rows of the slice. Several models have
            a colour each. A cross marks a slice in which the model predicts one class only: its MCC
            is 0. A slice whose score is 0/0, as with one gold class, has no point; it is marked
            "○ 0/0". Without `ci` both look alike: the cross marks every MCC of 0.
        metric: The column to draw.
        sort: Draw the lowest score first. False: keep the order of the result.

    Returns:
        A layered altair chart. Its height grows with the number of slices.

    Raises:
        TypeError: The result is not a DataFrame.
        ValueError: The result has no column `metric`, or no rows.

    Examples:
        >>> import polars as pl
        >>> import polars_mcc
        >>> from polars_mcc import each
        >>> log = pl.read_parquet("data/digits.parquet")
        >>> chart = polars_mcc.plot.slices(log.mcc.by(each("ink_band", total=True), ci=0.95))
        >>> chart.save("slices.svg")  # doctest: +SKIP
    """
    style.check_drawable(result, "by()", metric)
    if result.columns[len(key_columns(result)) :][:1] == ["label"]:  # of `classes`
        result = result.drop("n", strict=False).rename({"support": "n"})
    style.check_drawable(result, "by()", "n", metric)
    has_interval = f"{metric}_low" in result.columns
    rows = style.rows_to_draw(result, "by()", metric, interval=has_interval, marked=True)
    slices = result.filter(~style.is_total(result, "by()"))
    notes = map(" ".join, undefined_in_words(slices, metric, "rows"))
    total, rows = rows.filter("is_total"), rows.filter(~pl.col("is_total"))
    lines = []
    if total["score"].count():
        line = alt.Chart(total).mark_rule(strokeDash=[4, 3], strokeWidth=1.5)
        has_models = "model" in rows.columns
        colour = style.colours_of("model", rows) if has_models else alt.ColorValue(GREY)
        tooltip = style.tooltip(total, metric)
        lines = [line.encode(x=alt.X("score"), color=colour, tooltip=tooltip)]
    return _forest(rows, metric, lines, notes, sort=sort)


def differences(result: pl.DataFrame, *, sort: bool = True) -> Chart:
    """Draw the difference of each slice with its interval, and a line at 0; a ratio, at 1.

    Args:
        result: A result of `compare`, `contrast`, `drift` or `worst`. Several metrics have a colour
            each, as several models do.
        sort: Draw the lowest difference first. False: keep the order of the result.

    Returns:
        A layered altair chart. Its height grows with the number of slices.

    Raises the errors of `slices`.

    Examples:
        >>> import polars as pl
        >>> import polars_mcc
        >>> log = pl.read_parquet("data/digits.parquet")
        >>> models = log.mcc(pred=["logistic", "knn"])
        >>> chart = polars_mcc.plot.differences(models.compare("ink_band"))
        >>> chart.save("differences.html", inline=True)  # doctest: +SKIP
    """
    verbs = "compare(), contrast(), drift() or worst()"
    is_ratio = "diff" not in result.columns and "ratio" in result.columns
    effect, same = ("ratio", 1.0) if is_ratio else ("diff", 0.0)
    style.check_drawable(result, verbs, effect)
    metrics = result["metric"].unique().to_list() if "metric" in result.columns else []
    title = f"{effect} of {metrics[0]}" if len(metrics) == 1 else effect
    if len(metrics) > 1:
        named = cs.by_name("model", "metric", require_all=False)
        result = result.with_columns(model=pl.concat_str(named, separator=", "))
    rows = style.rows_to_draw(result, verbs, effect, interval=True)
    none = alt.Chart(pl.DataFrame({"score": [same]})).mark_rule(strokeDash=[4, 3], color=GREY)
    return _forest(rows, title, [none.encode(x=alt.X("score"))], sort=sort)


def over_time(result: pl.DataFrame, *, time: str | None = None, metric: str = "mcc") -> Charts:
    """Draw a score over time, with its interval as a band and a colour per slice or model.

    Args:
        result: A result of `by` that has one key of times: a Date or Datetime, windows over one, or
            `bins` of one such as `bins("ts", "1w")`. A cross marks a time when the model predicts
            one class only: its MCC is 0. The line stops where the score is 0/0, as with one gold
            class; a ring at the bottom marks the time. Without `ci` both look alike: the line stops
            at each MCC of 0, and a cross marks it.
        time: The name of that key. None: the only such key.
        metric: The column to draw.

    Returns:
        A layered altair chart. More than eight lines are facets, one for each slice, with a colour
        per model.

    Raises:
        ValueError: The result has no such key, or has several and `time` is None.

    Raises the errors of `slices` too.

    Examples:
        >>> import polars as pl
        >>> import polars_mcc
        >>> from polars_mcc import trailing
        >>> log = pl.read_parquet("data/digits.parquet")
        >>> weeks = log.mcc.by(trailing("day", "14d", every="7d"), ci=0.95)
        >>> chart = polars_mcc.plot.over_time(weeks)
        >>> chart.save("weeks.png")  # doctest: +SKIP
    """
    style.check_drawable(result, "by()", "n", metric)
    keys = key_columns(result, "by()")
    columns = {
        name: result[name] if is_calendar(result.schema[name]) else times_named(result[name])
        for name in keys
    }
    times = {name: column for name, column in columns.items() if column is not None}
    if time is None:
        # A text such as 2026 may be no time.
        likely = [name for name in times if is_calendar(result.schema[name])] or [*times]
        if len(likely) != 1:
            msg = f"time must be one column, but there are {likely}: name it, as in time='day'"
            raise ValueError(msg)
        [time] = likely
    if time not in times:
        raise ValueError(
            f"time='{time}' is not a Date or Datetime key of the result, nor bins of one; such "
            f"keys are {[*times]}"
        )
    result = result.with_columns(times[time])
    has_band = f"{metric}_low" in result.columns
    rows = style.rows_to_draw(result, "by()", metric, interval=has_band, at=time, marked=True)
    base = alt.Chart(rows).encode(
        x=alt.X("at", title=style.title_of(time), type="temporal"), color=style.line_colours(rows)
    )
    title, tooltip = style.title_of(metric), style.tooltip(rows, metric, at=time)
    y, zero = (style.number_axis(alt.Y, column, title) for column in ("score", "zero"))
    layers = [base.mark_line(point=True).encode(y=y, tooltip=tooltip)]
    low, to_high = style.number_axis(alt.Y, "low", title), alt.Y2("high")
    if has_band:
        layers = [base.mark_area(opacity=0.2).encode(y=low, y2=to_high), *layers]
    if rows["zero"].count():
        layers.append(style.collapsed_marks(base, y=zero, tooltip=tooltip))
        if has_band:  # A band needs two times, and a collapse may last for one.
            ends = base.mark_rule(strokeWidth=2, opacity=0.5)
            ends = ends.transform_filter("isValid(datum.zero)")
            layers.append(ends.encode(y=low, y2=to_high))
    if rows["is_undefined"].any():
        ring = base.mark_point(size=40, yOffset=-6).transform_filter("datum.is_undefined")
        layers.append(ring.encode(y=alt.YValue("height"), tooltip=["line", "at", "n"]))
    notes = undefined_in_words(result, metric, "times" if keys == [time] else "rows")
    sentences = map(" ".join, notes)
    return style.faceted_chart(layers, rows, sentences, width=520, height=_LINES_HEIGHT)


def curve(result: pl.DataFrame, *, metric: str = "mcc") -> Charts:
    """Draw the score at each threshold, with a point at the best and a colour per slice or model.

    Args:
        result: A result of `curve`.
        metric: The column to draw, `"mcc"` or `"f1"`.

    Returns:
        A layered altair chart, without infinite thresholds. More than eight lines are facets, as in
        `over_time`.

    Raises the errors of `slices`.

    Examples:
        >>> import polars as pl
        >>> import polars_mcc
        >>> tumours = pl.read_parquet("data/breast_cancer.parquet")
        >>> chart = polars_mcc.plot.curve(tumours.mcc(score="radius").curve(thresholds=100))
        >>> chart.save("curve.svg")  # doctest: +SKIP
    """
    rows = style.rows_to_draw(result, "curve()", metric, at="threshold")
    is_highest = pl.col("score") == pl.col("score").max().over("line")
    rows = rows.with_columns(is_best=is_highest & is_highest.cum_sum().eq(1).over("line"))
    rows = rows.filter(pl.col("at").cast(pl.Float64).is_finite())  # infinity has no place
    x = style.number_axis(alt.X, "at", "threshold")
    y = alt.Y("score", title=style.title_of(metric), type="quantitative")
    tooltip = style.tooltip(rows, metric, at="threshold")
    base = alt.Chart(rows).encode(x=x, y=y, color=style.line_colours(rows), tooltip=tooltip)
    best = base.mark_point(filled=True, size=70, opacity=1).transform_filter("datum.is_best")
    return style.faceted_chart([base.mark_line(), best], rows, width=520, height=_LINES_HEIGHT)


def calibration(result: pl.DataFrame) -> Charts:
    """Draw the rate of positive rows by the mean score: a reliability diagram.

    Args:
        result: A result of `calibration`. Each slice and model has a line with a point and an
            interval per bin. The dashed line is a perfectly calibrated score. A bin below it has
            scores that are too high. Scores that are no probabilities have no such line.

    Returns:
        A layered altair chart. More than eight lines are facets, as in `over_time`.

    Raises the errors of `slices`.

    Examples:
        >>> import polars as pl
        >>> import polars_mcc
        >>> log = pl.DataFrame({"gold": [True, True, False, False], "p": [0.9, 0.6, 0.7, 0.1]})
        >>> chart = polars_mcc.plot.calibration(log.mcc(score="p").calibration(bins=2))
        >>> chart.save("calibration.svg")  # doctest: +SKIP
    """
    rows = style.rows_to_draw(result, "calibration()", "rate", interval=True, at="score_mean")
    largest = rows.select(pl.max_horizontal(pl.col("at", "high").max())).item() or 1.0
    are_probabilities = rows["at"].is_between(0, 1).all()
    scale, title = alt.Scale(domain=[0, min(largest, 1.0)]), "rate of positive rows"
    x = style.number_axis(alt.X, "at", "mean score")
    x = x.scale(scale) if are_probabilities else x
    y = alt.Y("score", title=title, type="quantitative", scale=scale)
    low = alt.Y("low", title=title, type="quantitative", scale=scale)
    perfect = alt.Chart(pl.DataFrame({"at": [0.0, largest], "score": [0.0, largest]}))
    tooltip = style.tooltip(rows, "rate", at="score_mean")
    base = alt.Chart(rows).encode(x=x, color=style.line_colours(rows), tooltip=tooltip)
    layers = [
        perfect.mark_line(strokeDash=[4, 3], color=GREY).encode(x=x, y=y),
        base.mark_rule(strokeWidth=1.5).encode(y=low, y2=alt.Y2("high")),
        base.mark_line(point=True).encode(y=y),
    ][0 if are_probabilities else 1 :]
    return style.faceted_chart(layers, rows, width=360, height=360)


def confusion(result: pl.DataFrame) -> Chart:
    """Draw a confusion matrix as a heat map, coloured by the share of the gold label's rows.

    Args:
        result: A result of `confusion` for one slice, wide or long.

    Returns:
        A layered altair chart. With up to 30 labels, cells show their numbers. Few labels make
        large cells.

    Raises:
        ValueError: The result is not a confusion matrix, or has several slices.

    Raises the errors of `slices` too.

    Examples:
        >>> import polars as pl
        >>> import polars_mcc
        >>> log = pl.read_parquet("data/digits.parquet")
        >>> chart = polars_mcc.plot.confusion(log.mcc.confusion())
        >>> chart.save("confusion.svg")  # doctest: +SKIP
    """
    style.check_drawable(result, "confusion()", "gold", "n_null")
    if "contribution" in result.columns and "pred" in result.columns:
        raise ValueError("the result has confusions only, no matrix: ask without top")
    keys = key_columns(result)
    if result.select(map(as_expr, keys)).unique().height > 1:
        msg = f"the result has several slices, of {keys}: filter one, as in result.filter(...)"
        raise ValueError(msg)
    if "pred" in result.columns:
        [value] = [name for name in ("n", "share") if name in result.columns]
        cells = result.select("gold", "pred", n=value)
    else:
        labels = result.columns[len(keys) + 1 : -1]
        golds = pl.Series("gold", [*map(label_text, result["gold"])], pl.String)
        cells = result.with_columns(golds).unpivot(
            cs.by_name(labels), index="gold", variable_name="pred", value_name="n"
        )
    cells = with_texts(cells, ["gold", "pred"]).with_columns(
        style.legible(pl.col("gold", "pred").fill_null("null"))
    )
    whole = pl.col("n").sum().over("gold")
    cells = cells.with_columns(share=pl.when(whole > 0).then(pl.col("n") / whole).otherwise(0.0))
    order = list(dict.fromkeys([*cells["gold"], *cells["pred"]]))
    number = "d" if cells.schema["n"].is_integer() else ".2f"
    largest = cast("float", cells["n"].max())
    has_texts, for_number = len(order) <= _MAX_NUMBERED, 7 * len(format(largest, number)) + 6
    cell = (
        max(_MIN_MATRIX_WIDTH / len(order), _NUMBER_CELL, for_number) if has_texts else _SMALL_CELL
    )
    angle = -45 if 7 * max(map(len, order)) > cell else 0
    base = alt.Chart(cells).encode(
        x=alt.X("pred", type="nominal").scale(domain=order).axis(labelAngle=angle),
        y=alt.Y("gold", type="nominal").scale(domain=order),
        tooltip=[*map(alt.Tooltip, ("gold", "pred", "n", "share"))],
    )
    shade = alt.Color("share", type="quantitative", title="share of gold")
    shade = shade.legend(values=[0, 0.5, 1]).scale(scheme="cividis", domain=[0, 1])
    layers = [base.mark_rect().encode(color=shade)]
    if has_texts:
        # Altair would infer the channel slowly.
        is_dark = {"test": "datum.share > 0.5", "value": "black"}
        contrast = alt.ColorValue("white", condition=[is_dark])
        text = alt.Text("n", type="quantitative", format=number)
        layers.append(base.mark_text(fontSize=10).encode(text=text, color=contrast))
    size = alt.Step(cell)
    return style.layered_chart(layers, labels=order, width=size, height=size)


def _forest(
    rows: pl.DataFrame, metric: str, more: list[alt.Chart], notes: Iterable[str] = (), *, sort: bool
) -> Chart:
    """A forest plot, above `more` layers: a row per slice, with a point and an interval per model.

    The order of slices and models is the domain of a scale, as Vega-Lite makes code of a sort.
    """
    title = style.title_of(metric)
    order = rows.sort(pl.coalesce("score", "zero"), nulls_last=True) if sort else rows
    names = order["slice"].unique(maintain_order=True).to_list()
    axis = alt.Axis(title=None, labelLimit=style.LABEL_LIMIT, labelOverlap=False)
    encoding: dict[str, Any] = {
        "y": alt.Y("slice", type="nominal", axis=axis).scale(domain=names),
        "color": alt.ColorValue(COLOUR),
        "tooltip": style.tooltip(rows, metric),
    }
    if "model" in rows.columns:
        models = rows["model"].unique(maintain_order=True).to_list()
        # Without a sort, Vega-Lite sorts by the domain of the colours.
        offset = alt.YOffset("model", type="nominal", sort="ascending").scale(domain=models)
        encoding |= {"color": style.colours_of("model", rows), "yOffset": offset}
    base = alt.Chart(rows).encode(**encoding)
    x = style.number_axis(alt.X, "score", title)
    dots = base.mark_point(filled=True, size=50, opacity=1).encode(x=x)
    dots = dots.transform_filter("!isValid(datum.zero)")
    if "n" in rows.columns:
        largest: Any = rows["n"].max() or 1
        size = alt.Size("n", type="quantitative", legend=None)
        dots = dots.encode(size=size.scale(domain=[0, largest], range=_POINT_AREAS))
    points = [dots]
    if rows["zero"].count():
        points.append(style.collapsed_marks(base, x=style.number_axis(alt.X, "zero", title)))
    if rows["is_undefined"].any():
        text = base.transform_filter("datum.is_undefined").mark_text(align="left", dx=3, color=GREY)
        mark = alt.TextValue(f"{UNSCORED} 0/0")
        points.append(text.encode(x=alt.XValue(0), text=mark, color=alt.ColorValue(GREY)))
    if "low" in rows.columns:
        low = style.number_axis(alt.X, "low", title)
        more = [*more, base.mark_rule(strokeWidth=2).encode(x=low, x2=alt.X2("high"))]
    step = alt.Step(_SLICE_HEIGHT)
    layers = [*more, *points]
    return style.layered_chart(layers, labels=names, notes=notes, width=_FOREST_WIDTH, height=step)
