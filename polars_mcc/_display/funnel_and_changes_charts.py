"""Charts: which slices are further off than chance explains; since when a slice is worse."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Any

import polars as pl

from polars_mcc._base.allowed_values import check_at_least, check_number
from polars_mcc._base.values_as_text_or_markdown import as_text
from polars_mcc._comparisons.columns_of_answers import COLUMNS
from polars_mcc._counts.sliced_log import joined
from polars_mcc._display import chart_style as style
from polars_mcc._display.chart_style import COLOUR, GREY, Chart, Charts, alt
from polars_mcc._display.table_and_to_numpy import key_columns, slices_in_words
from polars_mcc._display.undefined_scores import where_undefined
from polars_mcc._frame.columns import as_expr
from polars_mcc._intervals.interval_methods import normal_critical
from polars_mcc._intervals.interval_options import ranges_of
from polars_mcc._keys.bins import is_calendar, times_named
from polars_mcc._metrics import registry

_LEVELS = {"99.8 %": normal_critical(0.998), "95 %": normal_critical(0.95)}
"""Limits, from the outer to the inner, each with its distance in standard errors."""
_LIMIT_DASHES = [[1, 0], [4, 3]]
_PLACE_COLOURS = dict(zip(map("outside {}".format, _LEVELS), ("#D55E00", "#E69F00"), strict=True))
_PLACE_COLOURS |= {"within": COLOUR, "no interval": GREY}
_POINTS_OF_LIMIT = 60  # points of a limit: enough for a smooth line
_PADDING = 8  # between the outermost points and the frame


def funnel(result: pl.DataFrame, *, metric: str = "mcc", overall: float | None = None) -> Chart:
    """Draw the score of each slice against n, with the limits of chance: a funnel plot.

    Small slices scatter more than large ones. A slice within the limits may be as good as the
    others; a slice outside deserves a look. With the overall score θ, and the variance σ² of one
    row, the limits of a slice of n rows are

        θ ± z·σ / √n,   z = 1.96 for 95 %, 3.09 for 99.8 %

    If no slice is better or worse, 1 slice in 20 lies outside the limits of 95 %, and 1 in 500
    outside the limits of 99.8 %: 500 and 20 slices of 10 000.

    σ² is n·se² of the total row. Without a total row, σ² is the mean of n·se² over the slices,
    weighted by n. That mean is too large if slices have few rows and many are perfect, because a
    perfect slice has no standard error. So ask for the total.

    Args:
        result: A result of `by` with `ci`, for one model. Best with `total`, as in
            `by(each("country", total=True), ci=0.95)`.
        metric: The column to draw.
        overall: The score θ. None: the score of the total row; without a total row, the mean of
            the scores of slices, weighted by n.

    Returns:
        A layered altair chart, with a point per slice that has a score. A grey point has a score
        and no interval; it is not compared. For example, the score of a slice with one gold label
        is 0/0, shown as 0, even if no row is wrong. Perfect slices have intervals only with
        `method="score"`.

    What the limits ignore:
        - Composition. All slices share one σ². A slice with rarer classes has a larger variance,
          and a different score, even if the model is no worse there. `worst` and `contrast` use
          the standard error of each slice.
        - Small n. The limits assume a normal distribution. High scores of slices with fewer than
          100 rows, or with few rows of a class, are skewed: more slices lie below the limits than
          above. With a class of 5 %, and 30 to 300 rows per slice, between 1 and 2 slices of 100
          lay outside the limits of 99.8 %, not 1 of 500.
        - Clusters. A slice with larger clusters has a larger variance.
        - The error of θ. If there are few slices, a bad slice moves θ; then pass `overall`.

    Raises:
        TypeError: The result is not a DataFrame, or `overall` is not a number.
        ValueError: The result has no column `metric`, no intervals, several models, no slice with
            a score, or no standard error; or `overall` is outside the range of the metric.

    References:
        D. J. Spiegelhalter, Funnel plots for comparing institutional performance, Statistics in
        Medicine 24 (2005) 1185-1202, doi:10.1002/sim.1970.

    Examples:
        >>> import polars as pl
        >>> import polars_mcc
        >>> from polars_mcc import each
        >>> log = pl.read_parquet("data/digits.parquet")
        >>> scores = log.mcc.by(each("ink_band", "fold", total=True), ci=0.95)
        >>> chart = polars_mcc.plot.funnel(scores)
        >>> chart.save("funnel.svg")  # doctest: +SKIP
    """
    total, slices = _total_and_slices(result, metric)
    low, high = _range_of_metric(slices["score"], metric)
    check_number("overall", overall)
    if overall is not None and not (math.isfinite(overall) and low <= overall <= high):
        msg = f"overall={overall} is not a score of '{metric}': pass one from {low:g} to {high:g}"
        raise ValueError(msg)
    sigma = _sigma(total, slices, metric)
    compared = slices.filter("is_compared") if total.is_empty() else total
    target = _mean(compared, pl.col("score")) if overall is None else float(overall)
    limits = _funnel_limits(slices, target, sigma).with_columns(pl.col("limit").clip(low, high))
    points = _placed(slices, target, sigma)
    counts = points["where"].value_counts(sort=False).sort("where", descending=True)
    numbers = ", ".join(f"{count} {where}" for where, count in counts.iter_rows())
    title = style.title_of(metric)
    description = (
        f"Funnel plot of {title} against n, around {target:.3f}, with limits of 95 % and 99.8 %. "
        f"Slices: {numbers}."
    )
    layers = _funnel_layers(points, limits, target, title)
    return style.layered_chart(layers, width=520, height=320, description=description)


def _total_and_slices(result: pl.DataFrame, metric: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The total, and the slices that have a score; an error if there is no slice.

    Added to the columns that every chart draws: `se`, and `is_compared`: whether a slice has a
    standard error or an interval.
    """
    style.check_drawable(result, "by()", "n", metric)
    if metric in {built_in.name for built_in in registry.BUILT_IN_METRICS if built_in.is_log}:
        msg = f"a funnel is of scores, and '{metric}_se' is of a logarithm: use plot.slices"
        raise ValueError(msg)
    se, low = f"{metric}_se", f"{metric}_low"
    for column in (se, low):
        if column not in result.columns:
            raise ValueError(
                f"a funnel plot needs a column '{column}', but the columns are {result.columns}: "
                "ask for intervals, as in by(..., ci=0.95)"
            )
    models = result.get_column("model", default=pl.Series()).unique(maintain_order=True).to_list()
    if len(models) > 1:
        raise ValueError(
            f"a funnel plot shows one model, but the result has {len(models)}, such as "
            f"{models[0]!r}: filter one, as in result.filter(model={models[0]!r}); if 'model' is "
            "a key, rename the key"
        )
    scored = result.filter(pl.col("n") > 0, pl.col(metric).cast(pl.Float64).is_finite())
    if scored.is_empty():
        raise ValueError(f"there is nothing to draw: '{metric}' is null in every row")
    rows = style.rows_to_draw(scored, "by()", metric).with_columns(
        pl.col("score").cast(pl.Float64),
        scored[se].alias("se"),
        (scored[se].is_not_null() | scored[low].is_not_null()).alias("is_compared"),
    )
    total, slices = rows.filter("is_total"), rows.filter(~pl.col("is_total"))
    if slices.is_empty():
        raise ValueError("there is nothing to draw: the total is the only row with a score")
    return total, slices


def _range_of_metric(scores: pl.Series, metric: str) -> tuple[float, float]:
    """The range of the metric. No ends if a score is outside: the column is not that metric."""
    low = high = None
    with suppress(ValueError):  # The registry has no metric that is an expression.
        low, high = ranges_of([registry.find_metric(metric)]).get(metric, (None, None))
    low, high = -math.inf if low is None else low, math.inf if high is None else high
    return (low, high) if scores.is_between(low, high).all() else (-math.inf, math.inf)


def _sigma(total: pl.DataFrame, slices: pl.DataFrame, metric: str) -> float:
    """σ from the total if the total has a standard error, otherwise from the slices."""
    with_se = (rows.drop_nulls("se") for rows in (total, slices))
    rows = next((rows for rows in with_se if not rows.is_empty()), None)
    if rows is None:
        raise ValueError(
            f"'{metric}_se' is null in every row, so there are no limits: all scores are at an "
            "end of the range, or 0/0; use plot.slices"
        )
    return math.sqrt(_mean(rows, pl.col("n") * pl.col("se").pow(2)))


def _mean(rows: pl.DataFrame, value: pl.Expr) -> float:
    """The mean, weighted by n."""
    n = pl.col("n").cast(pl.Float64)
    mean: float = rows.select((n * value).sum() / n.sum()).item()
    return mean


def _placed(slices: pl.DataFrame, target: float, sigma: float) -> pl.DataFrame:
    """Where each slice lies. Slices outside come last, so they are drawn above the others."""
    apart = (pl.col("score") - target).abs() * pl.col("n").sqrt()
    where: Any = pl.when(~pl.col("is_compared")).then(pl.lit("no interval"))
    for level, z in _LEVELS.items():
        where = where.when(apart > z * sigma).then(pl.lit(f"outside {level}"))
    where = where.otherwise(pl.lit("within")).cast(pl.Enum([*reversed(_PLACE_COLOURS)]))
    return slices.select("slice", "score", "n", where=where).sort("where", maintain_order=True)


def _funnel_limits(slices: pl.DataFrame, target: float, sigma: float) -> pl.DataFrame:
    """Points of the four limits, from the least to the largest n, evenly spaced on a log scale."""
    n = pl.col("n").cast(pl.Float64).log()
    room = pl.when(n.min() == n.max()).then(math.log(2)).otherwise(0.0)  # A line needs two n.
    low, high = n.min() - room, n.max() + room
    grid = slices.select(
        n=(low + (high - low) * pl.int_range(_POINTS_OF_LIMIT + 1) / _POINTS_OF_LIMIT).exp()
    )
    limits = [(level, sign * z) for level, z in _LEVELS.items() for sign in (1, -1)]
    return grid.join(pl.DataFrame(limits, ["level", "z"], orient="row"), how="cross").select(
        "n",
        "level",
        limit=target + pl.col("z") * sigma / pl.col("n").sqrt(),
        is_upper=pl.col("z") > 0,
    )


def _funnel_layers(
    points: pl.DataFrame, limits: pl.DataFrame, target: float, title: str
) -> list[alt.Chart]:
    """The overall score as a line, the limits, and the slices."""
    n = style.number_axis(alt.X, "n", "n").scale(type="log", nice=False, padding=_PADDING)
    score = style.number_axis(alt.Y, "score", title)
    shown = [name for name in _PLACE_COLOURS if name != "no interval" or name in points["where"]]
    colours = [_PLACE_COLOURS[name] for name in shown]
    where = alt.Color("where:N", title="slices").scale(domain=shown, range=colours)
    levels = alt.StrokeDash("level", title="limits", type="nominal")
    titles = {"slice:N": "slice", "score:Q": title, "n:Q": "n"}
    tooltip = [alt.Tooltip(column, title=text) for column, text in titles.items()]
    overall = alt.Chart(pl.DataFrame({"score": [target]})).mark_rule(color=GREY)
    lines = alt.Chart(limits).mark_line(color=GREY, strokeWidth=1.5)
    # A dict, because altair refuses frames of more than 5000 rows.
    dots = alt.Chart({"values": points.to_dicts()}).mark_point(filled=True, size=25, opacity=1)
    return [
        overall.encode(y=score),
        lines.encode(
            x=n,
            y=style.number_axis(alt.Y, "limit", title),
            detail=alt.Detail("is_upper", type="nominal"),
            strokeDash=levels.scale(domain=[*_LEVELS], range=_LIMIT_DASHES),
        ),
        dots.encode(x=n, y=score, color=where, tooltip=tooltip),
    ]


_SIDES = {"before": style.COLOURS[5], "after": style.COLOURS[1]}
_ROUNDING = 1e-9  # of sums of weights


def changes(result: pl.DataFrame, periods: pl.DataFrame, *, top: int = 6) -> Charts:
    """Draw the score of each period, beside what its labels explain, and mark since when it moved.

    Args:
        result: A result of `changes`. Each row with a `since` is a chart: filter the rows first, as
            in `result.filter(verdict="worse")`.
        periods: The scores of the periods: a result of `contrast` with `to="expected"`, where the
            period is the key, and the keys of `result` are in `within`. The period is a Date or
            Datetime, or `bins` of one such as `bins("ts", "1w")`. Both are of one metric.
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
    style.check_drawable(result, "changes()", *COLUMNS["changes"].split(), "verdict")
    shown = "metric", "n", "score", "expected"
    style.check_drawable(periods, "contrast(time, to='expected')", *shown)
    metric = result["metric"][0]
    periods = periods.filter(pl.col("metric") == metric)
    keys = key_columns(result)
    times = [periods[name] for name in key_columns(periods) if name not in keys]
    at = next((time if is_calendar(time.dtype) else times_named(time) for time in times), None)
    if len(times) != 1 or at is None or not {*keys} <= {*periods.columns}:
        raise ValueError(
            f"periods must have the keys {keys} and one more, the time of a period, but its keys "
            f"are {key_columns(periods)}: ask for contrast(time, within={keys}, to='expected')"
        )
    words = [slices_in_words(result, [name for name in keys if name != "model"])]
    words += [pl.col("model")] * ("model" in keys)
    since = _on_clock(pl.col("since"), result.schema["since"])
    date = since.dt.to_string("%Y-%m-%d %H:%M").str.strip_suffix(" 00:00")
    told = [pl.col(name).cast(pl.String) for name in ("verdict", "part_of")]
    change = pl.concat_str(told, separator=" ", ignore_nulls=True)
    verdict = pl.format("since {}: {}", date, change)
    line = pl.concat_str(*words, verdict, separator=", ")
    # Names of keys may be patterns, and altair lacks some dtypes.
    texts = [as_text(as_expr(name), result.schema[name]) for name in keys]
    same = [text.alias(f"key {place}") for place, text in enumerate(texts)]
    names = "n_before", "reference", "reference_expected", "n_after"
    after = {"score_after": "score", "expected_after": "expected"}
    found = result.select(*same, *names, since=since, line=style.legible(line), **after)
    every = found.drop_nulls("since")
    found = every.head(top).with_row_index("row")
    if found.is_empty():
        raise ValueError("there is nothing to draw: no row of the result of changes() has a since")
    named = periods.select("n", pl.col("score").alias(metric))
    score, expected = pl.col("score"), pl.col("expected")
    is_0 = named.select(where_undefined(named, metric)).to_series()
    is_undefined = is_0 & expected.eq_missing(score)
    cells = periods.select(
        *same,
        pl.when(~is_undefined).then(pl.struct(score=score, expected=expected)).struct.unnest(),
        n="n",
        at=_on_clock(pl.lit(at), at.dtype),
    )
    on = [f"key {place}" for place, _ in enumerate(keys)]
    both = joined(found, cells, on, how="inner")
    rows = both.drop_nulls("at").sort("row", "at")
    is_part = every.height > top
    drawn = [f"The first {top} of {every.height} changes."] if is_part else []
    return _drawn(rows, metric, times[0].name, drawn)


def _drawn(rows: pl.DataFrame, metric: str, time: str, drawn: list[str]) -> Charts:
    """The chart of periods in order, each with the change of its slice."""
    data = pl.concat([rows, *(_band(rows, side) for side in _SIDES)], how="diagonal")
    several = "line" if data["line"].n_unique() > 1 else None
    notes = [
        *drawn,
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
    tooltip = style.titled({"line": "slice", "side": "side", **of_band})
    base = alt.Chart(data).encode(x=x)
    bands = base.transform_filter("isValid(datum.side)").encode(
        x2=to_end, color=colour, tooltip=tooltip
    )
    since = base.transform_filter("datum.side == 'after'").mark_rule(strokeWidth=1.5, color=GREY)
    of_point = {"at": time, "n": "n", "score": metric, "expected": f"{metric} expected"}
    points = base.transform_filter("!isValid(datum.side)").encode(tooltip=style.titled(of_point))
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
        pl.col("score_after" if is_after else "reference").first().alias("level"),
        pl.col("expected_after" if is_after else "reference_expected").first().alias("explained"),
        at=pl.col("since").first() if is_after else pl.col("at").min(),
        end=end,
        side=pl.lit(side),
    )


def _on_clock(time: pl.Expr, dtype: pl.DataType) -> pl.Expr:
    """A time as a clock shows it."""
    if isinstance(dtype, pl.Datetime) and dtype.time_zone is not None:
        time = time.dt.replace_time_zone(None)
    return time.cast(pl.Datetime("us"))
