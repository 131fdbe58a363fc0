"""Since when a slice is worse: its score by period, beside what its labels explain."""

from __future__ import annotations

import polars as pl

from polars_mcc._base.allowed_values import check_at_least
from polars_mcc._base.values_as_text_or_markdown import as_text
from polars_mcc._counts.sliced_log import joined
from polars_mcc._display import chart_style as style
from polars_mcc._display.chart_style import Charts, alt
from polars_mcc._display.table_and_to_numpy import (
    COLOUR,
    GREY,
    is_time,
    key_columns,
    slices_in_words,
)
from polars_mcc._display.undefined_scores import where_undefined
from polars_mcc._frame.columns import as_expr
from polars_mcc._keys.bins import times_named

_SIDES = {"before": style.COLOURS[5], "after": style.COLOURS[1]}
_ROUNDING = 1e-9  # of sums of weights


def changes(
    result: pl.DataFrame, periods: pl.DataFrame, *, metric: str = "mcc", top: int = 6
) -> Charts:
    """Draw the score of each period, beside what its labels explain, and mark since when it moved.

    Args:
        result: A result of `changes`. Each row with a `since` is a chart: filter the rows first, as
            in `result.filter(verdict="worse")`.
        periods: The scores of the periods: a result of `contrast` with `to="expected"`, where the
            period is the key, and the keys of `result` are in `within`. The period is a Date or
            Datetime, or `bins` of one such as `bins("ts", "1w")`.
        metric: The metric of both results.
        top: Draw the first rows, at most so many. The surest changes are first.

    Returns:
        A layered altair chart; or facets, if there are several rows. The line is the score of
        each period. The dashed line is what its gold labels explain: its score, if they were
        predicted at the rates of the whole slice. The upright line is at `since`. Before and after
        it, a band reaches from what the labels of all these rows explain to their score, which has
        a thick line. Only rows that the change was looked for in have a band. A period whose score
        is 0/0, as with one gold class, has no point.

    Raises:
        TypeError: A result is not a DataFrame.
        ValueError: A result lacks a column, or has no rows; no row has a `since`; `periods` has not
            the keys of `result` and one more, a time; `top` is below 1.

    Examples:
        >>> import polars as pl
        >>> import polars_mcc
        >>> log = pl.read_parquet("data/digits.parquet").mcc(pred="bayes", time="day")
        >>> found = log.changes("ink_band", alternative="two-sided")
        >>> days = log.contrast("day", within="ink_band", to="expected")
        >>> chart = polars_mcc.plot.changes(found, days)
        >>> chart.save("changes.svg")  # doctest: +SKIP
    """
    check_at_least("top", top, 1)
    names = {"n": "n", "score": metric, "expected": f"{metric}_expected"}
    of_sides = {f"{name}_{side}": f"{names[name]}_{side}" for name in names for side in _SIDES}
    style.check_drawable(result, "changes()", "since", *of_sides.values(), "verdict")
    style.check_drawable(periods, "contrast(time, to='expected')", *names.values())
    keys = key_columns(result)
    times = [periods[name] for name in key_columns(periods) if name not in keys]
    at = next((time if is_time(time.dtype) else times_named(time) for time in times), None)
    if len(times) != 1 or at is None or not {*keys} <= {*periods.columns}:
        raise ValueError(
            f"periods must have the keys {keys} and one more, the time of a period, but its keys "
            f"are {key_columns(periods)}: ask for contrast(time, within={keys}, to='expected')"
        )
    words = [slices_in_words(result, [name for name in keys if name != "model"])]
    words += [pl.col("model")] * ("model" in keys)
    since = _on_clock(pl.col("since"), result.schema["since"])
    date = since.dt.to_string("%Y-%m-%d %H:%M").str.strip_suffix(" 00:00")
    verdict = pl.format("since {}: {}", date, pl.col("verdict").cast(pl.String))
    line = pl.concat_str(*words, verdict, separator=", ")
    # Names of keys may be patterns, and altair lacks some dtypes.
    texts = [as_text(as_expr(name), result.schema[name]) for name in keys]
    same = [text.alias(f"key {place}") for place, text in enumerate(texts)]
    columns = {name: as_expr(column) for name, column in of_sides.items()}
    found = result.select(*same, since=since, line=style.legible(line), **columns)
    found = found.drop_nulls("since").head(top).with_row_index("row")
    if found.is_empty():
        raise ValueError("there is nothing to draw: no row of the result of changes() has a since")
    score, expected = as_expr(metric), as_expr(names["expected"])
    is_undefined = where_undefined(periods, metric) & expected.eq_missing(score)
    cells = periods.select(
        *same,
        pl.when(~is_undefined).then(pl.struct(score=score, expected=expected)).struct.unnest(),
        n="n",
        at=_on_clock(pl.lit(at), at.dtype),
    )
    on = [f"key {place}" for place, _ in enumerate(keys)]
    both = joined(found, cells, on, how="inner")
    rows = both.drop_nulls("at").sort("row", "at")
    return _drawn(rows, metric, times[0].name)


def _drawn(rows: pl.DataFrame, metric: str, time: str) -> Charts:
    """The chart of periods in order, each with the change of its slice."""
    data = pl.concat([rows, *(_band(rows, side) for side in _SIDES)], how="diagonal")
    several = "line" if data["line"].n_unique() > 1 else None
    notes = [
        f"Line: {metric} of each period. Dashed: what its labels explain.",
        "Bands: from what the labels explain to the score.",
    ]
    title = style.title_of(metric)
    y = {
        name: style.number_axis(alt.Y, name, title)
        for name in ("score", "expected", "level", "explained")
    }
    x, to_end = alt.X("at", title=style.title_of(time), type="temporal"), alt.X2("end")
    scale = alt.Scale(domain=[*_SIDES], range=[*_SIDES.values()])
    colour = alt.Color("side", type="nominal", title=None, scale=scale)
    of_band = {"n": "n", "level": metric, "explained": f"{metric} explained by labels"}
    tooltip = [alt.Tooltip("line", title="slice"), *_titled({"side": "side", **of_band})]
    base = alt.Chart(data).encode(x=x)
    bands = base.transform_filter("isValid(datum.side)").encode(
        x2=to_end, color=colour, tooltip=tooltip
    )
    since = base.transform_filter("datum.side == 'after'").mark_rule(strokeWidth=1.5, color=GREY)
    of_point = {"at": time, "n": "n", "score": metric, "expected": f"{metric}_expected"}
    points = base.transform_filter("!isValid(datum.side)").encode(tooltip=_titled(of_point))
    dashed = points.mark_line(strokeDash=[4, 3], color=GREY)
    layers = [
        bands.mark_rect(opacity=0.3).encode(y=y["explained"], y2=alt.Y2("level")),
        bands.mark_rule(strokeWidth=3).encode(y=y["level"]),
        since,
        dashed.encode(y=y["expected"]),
        points.mark_line(point=True, color=COLOUR).encode(y=y["score"]),
    ]
    notes = notes if several else [*data["line"].unique(), *notes]
    return style.faceted_chart(layers, data, notes, pane=several, width=520, height=260)


def _band(rows: pl.DataFrame, side: str) -> pl.DataFrame:
    """The band of each change on one side: over as many rows as were compared on this side."""
    is_after = side == "after"
    here = rows.filter((pl.col("at") >= pl.col("since")) == is_after)
    until = pl.col("n").cum_sum(reverse=not is_after).over("row")
    here = here.filter(until <= pl.col(f"n_{side}") * (1 + _ROUNDING))
    length = rows["at"].unique().sort().diff().min()
    end = pl.col("at").max() + pl.lit(length) if is_after else pl.col("since").first()
    return here.group_by("row", "line", maintain_order=True).agg(
        pl.col(f"n_{side}").first().alias("n"),
        pl.col(f"score_{side}").first().alias("level"),
        pl.col(f"expected_{side}").first().alias("explained"),
        at=pl.col("since").first() if is_after else pl.col("at").min(),
        end=end,
        side=pl.lit(side),
    )


def _titled(titles: dict[str, str]) -> list[alt.Tooltip]:
    return [alt.Tooltip(name, title=style.title_of(text)) for name, text in titles.items()]


def _on_clock(time: pl.Expr, dtype: pl.DataType) -> pl.Expr:
    """A time as a clock shows it."""
    if isinstance(dtype, pl.Datetime) and dtype.time_zone is not None:
        time = time.dt.replace_time_zone(None)
    return time.cast(pl.Datetime("us"))
