"""Counts → a chart that makes and scores slices in the browser, with Vega's transforms alone.

The data of the chart are codes and counts: keys and labels are numbers, and their texts are listed
once. No text of a log is part of an expression, so a log cannot inject code.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import polars as pl

from polars_mcc._inference.methods import normal_critical
from polars_mcc._log import defaults
from polars_mcc._log.choices import Nulls, check_at_least, check_choice, check_level
from polars_mcc._log.columns import as_expr, as_many_as_fit, distinct, quoted
from polars_mcc._log.labels import as_label
from polars_mcc._log.text import as_text
from polars_mcc._show import chart
from polars_mcc._show.chart import alt
from polars_mcc._show.in_browser import (
    ALL,
    IS_SHOWN,
    LINES,
    METRICS,
    OF_POSITIVE,
    PAIR,
    Chart,
    named,
    of_slices,
    ranked,
    with_interval,
)
from polars_mcc._show.table import COLOUR, GREY

Explorer: TypeAlias = alt.VConcatChart

_LABELS = 30  # with more labels, the chart shows the most frequent misses, not a matrix
_PAIRS = 25  # most misses that are shown
_STEP = 20  # height of a line, in pixels
_CELL, _CELL_LIMIT = 36, 90  # least and largest width of a cell of the matrix, in pixels
_WIDTH = 400  # width of the points, without names and numbers, in pixels
_NAMES = 200  # longest name of a slice, in pixels
_CHOSEN = "#CC79A7"


def explore(
    counts: pl.DataFrame,
    *,
    metric: str = defaults.METRIC,
    ci: float | None = defaults.LEVEL,
    positive: object = None,
    nulls: Nulls = defaults.NULLS,
    min_n: int = 0,
    rows: int = defaults.EXPLORED,
) -> Explorer:
    """Draw counts as an interactive chart: choose, score and open slices in the browser.

    The reader chooses the keys that make slices, the values of each key, the model and the metric.
    The chart lists the slices, the lowest score first, with n, score and interval. It shows the
    confusion matrix of one slice: click the point of a slice, or move the slider. The browser
    computes everything from the counts in the chart; nothing is sent.

    Args:
        counts: A result of `counts`: keys, `model` if there are several, `gold`, `pred`, `n`.
        metric: The metric at first: "mcc", "accuracy", "balanced_accuracy", "f1_macro" or "kappa";
            with a positive label also "precision", "recall" or "f1".
        ci: The confidence level of the intervals. None: no intervals. Use None if the rows of the
            counts are not independent.
        positive: The positive label. None: True, if labels are Boolean.
        nulls: What a null label means, as in `PredictionLog`: "drop" or "label".
        min_n: Hide slices of fewer rows. The reader can change this number in the chart.
        rows: The most counts that the chart holds, of 20 to 40 bytes each. If there are more, the
            keys with the most values are left out; the title of the chart names them.

    Returns:
        An altair chart. Scores equal the scores of `by` to 12 digits or more. The interval is
        Wilson's (1927), for a proportion with the variance of the score (the delta method): a
        little simpler than the intervals of `by`. A slice of one gold or one predicted label has
        MCC 0 and no interval. A slice whose precision, recall or F1 is 0/0 is not shown.

    Raises:
        TypeError: `counts` is not a DataFrame.
        ValueError: `counts` lacks a column or has no rows, or an argument has a wrong value.

    Examples:
        >>> import polars as pl
        >>> import polars_mcc
        >>> log = pl.read_parquet("data/digits.parquet")
        >>> counts = log.mcc(pred=["logistic", "knn"]).counts("ink_band", "fold")
        >>> chart = polars_mcc.plot.explore(counts)
        >>> chart.save("explore.html", inline=True)  # doctest: +SKIP
    """
    chart.check(counts, "counts()", "gold", "pred", "n")
    if ci is not None:
        check_level(ci)
    check_at_least("rows", rows, 1)
    check_choice("nulls", nulls, Nulls)
    if counts.schema["gold"] != counts.schema["pred"]:
        sides = f"gold is {counts.schema['gold']} and pred {counts.schema['pred']}"
        msg = f"{sides}: labels are compared in one dtype, as counts() gives them; cast them to it"
        raise ValueError(msg)
    if counts.schema["n"].is_decimal():
        counts = counts.with_columns(pl.col("n").cast(pl.Float64))
    counts = labelled(counts, nulls)
    if counts.is_empty():
        msg = "there is nothing to explore: the counts have no row with two labels"
        raise ValueError(msg)
    labels = _labels_of(counts)
    metrics = metrics_of(counts, positive)
    if metric not in metrics:
        msg = f"metric must be one of {quoted(metrics)}, got {metric!r}"
        raise ValueError(msg)
    cells = within(counts, rows)
    if cells is None:
        msg = (
            f"the labels alone make more than rows={rows:,} counts; pass a larger rows=, or use "
            "fewer labels"
        )
        raise ValueError(msg)
    keys = keys_in(cells)
    left_out = [chart.legible_name(key) for key in keys_in(counts) if key not in keys]
    columns, texts = _coded(cells, keys, labels)
    chosen = alt.binding_select(options=[*metrics], name="metric ")
    of_metric = alt.param(name="metric", value=metric, bind=chosen)
    asking = _asking(keys, texts, of_metric, _code(labels, positive), min_n)
    title = alt.TitleParams(
        f"left out, as they have too many values: {', '.join(left_out)}" if left_out else "",
        anchor="start",
        color=GREY,
        fontWeight="normal",
    )
    names = [alt.param(name=f"texts_{name}", value=values) for name, values in texts.items()]
    shown = alt.selection_point(
        name="shown",
        fields=["line"],
        on="click",
        clear=False,
        value=[{"line": 1}],
        empty=False,
        bind=alt.binding_range(name="slice shown ", min=1, max=LINES, step=1),
    )
    views: Chart = alt.vconcat(
        _list(shown, has_interval=ci is not None),
        _matrix(texts["gold"]),
    )
    of = [f"of_{place}" for place, _ in enumerate(keys)]
    pairs = named(ranked(of_slices(alt.Chart(), [*columns], of), of), of)
    pairs = pairs if ci is None else with_interval(pairs, normal_critical(ci))
    views = views.add_params(*asking, *names).properties(title=title, padding=5)
    finished: Explorer = chart.styled(views.resolve_scale(color="independent"))
    # Set these last, because each step above copies its chart.
    finished.autosize = alt.AutoSizeParams(type="pad", resize=True)  # The list grows and shrinks.
    finished.transform, finished.data = pairs.transform, alt.InlineData(values=[columns])
    return finished


def labelled(counts: pl.DataFrame, nulls: Nulls) -> pl.DataFrame:
    """The counts without null labels, unless null is a label."""
    if nulls == "label":
        return counts
    return counts.filter(pl.all_horizontal(pl.col("gold", "pred").is_not_null()))


def keys_in(counts: pl.DataFrame) -> list[str]:
    """The keys of a counts table."""
    return [name for name in counts.columns if name not in {"model", "gold", "pred", "n"}]


def metrics_of(counts: pl.DataFrame, positive: object) -> tuple[str, ...]:
    """The metrics that a reader can choose: more if there is a positive label, and it occurs."""
    code = _code(_labels_of(counts), positive)
    return METRICS if code is None else (*METRICS, *OF_POSITIVE)


def _labels_of(counts: pl.DataFrame) -> pl.Series:
    """The labels that occur, sorted. The code of a label is its place in this list."""
    return pl.concat([counts["gold"], counts["pred"]]).unique().sort()


def _code(labels: pl.Series, positive: object) -> int | None:
    """The code of the positive label. None: there is no positive label, or it does not occur."""
    if positive is None and labels.dtype != pl.Boolean:
        return None
    value: Any = as_label(positive if positive is not None else True, labels.dtype)
    return labels.index_of(value)


def within(counts: pl.DataFrame, rows: int) -> pl.DataFrame | None:
    """The counts by as many keys as fit in `rows` rows, completed by `_with_hits`.

    None: the labels alone make more rows.
    """
    others = [name for name in ("model", "gold", "pred") if name in counts.columns]

    def cells(keys: Sequence[str]) -> pl.DataFrame:
        by = [as_expr(name) for name in (*keys, *others)]
        return _with_hits(counts.group_by(by, maintain_order=True).agg(pl.col("n").sum()), keys)

    def fits(keys: Sequence[str]) -> bool:
        number: int = counts.select(distinct([*keys, *others])).item()
        return number <= rows and cells(keys).height <= rows

    def size(key: str) -> float:
        number: int = counts.select(distinct([key])).item()
        return number

    kept = as_many_as_fit(keys_in(counts), size, fits)
    return None if kept is None else cells(kept)


def _with_hits(cells: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """Add a row of 0 hits for each label that occurs in a cell of the keys without a hit."""
    cell = [name for name in (*keys, "model") if name in cells.columns]
    sides = [
        cells.select(*map(as_expr, cell), pl.col(side).alias("gold"), pl.col(side).alias("pred"))
        for side in ("gold", "pred")
    ]
    none = pl.lit(0, cells.schema["n"]).alias("n")
    possible = pl.concat(sides).unique(maintain_order=True).with_columns(none)
    on = [as_expr(name) for name in (*cell, "gold", "pred")]
    return pl.concat([cells, possible.join(cells, on=on, how="anti", nulls_equal=True)])


def _coded(
    cells: pl.DataFrame, keys: Sequence[str], labels: pl.Series
) -> tuple[dict[str, list[Any]], dict[str, list[str]]]:
    """The columns of the data as codes, and for each column the texts of its codes, in order."""
    columns: dict[str, list[Any]] = {"n": cells["n"].to_list()}
    texts: dict[str, list[str]] = {}

    def code(name: str, values: pl.Series) -> None:
        places = pl.DataFrame({"value": values}).with_row_index("code")
        found = pl.DataFrame({"value": cells[name]}).join(
            places, on="value", how="left", nulls_equal=True, maintain_order="left"
        )
        columns[coded[name]] = found["code"].to_list()

    coded = {key: f"key_{place}" for place, key in enumerate(keys)}
    coded |= {name: name for name in ("model", "gold", "pred") if name in cells.columns}
    for name, column in coded.items():
        is_label = column in {"gold", "pred"}
        given = cells[name].alias("value")  # Polars could read the name as a pattern.
        values = labels if is_label else given.unique(maintain_order=name == "model")
        values = values if is_label or name == "model" else values.sort()
        code(name, values)
        text = values.to_frame("text").select(
            text=chart.legible(as_text(pl.col("text"), values.dtype))
        )
        texts["gold" if is_label else column] = text.to_series().fill_null("null").to_list()
    return columns, texts


def _asking(
    keys: Sequence[str],
    texts: Mapping[str, Sequence[str]],
    metric: alt.Parameter,
    positive: int | None,
    min_n: int,
) -> list[alt.Parameter]:
    """The controls of the chart, as parameters."""
    asked, filters = [], []
    for place, key in enumerate(keys):
        box = alt.binding_checkbox(name=f"slice by {key} ")
        values = texts[f"key_{place}"]
        codes, named = [ALL, *range(len(values))], ["all", *values]
        only = alt.binding_select(options=codes, labels=named, name=f"only {key} ")
        asked.append(alt.param(name=f"by_{place}", value=place == 0, bind=box))
        filters.append(alt.param(name=f"only_{place}", value=ALL, bind=only))
    asked += filters
    if models := texts.get("model", ()):
        model = alt.binding_select(options=[*range(len(models))], labels=models, name="model ")
        asked.append(alt.param(name="model", value=0, bind=model))
    least = alt.BindInput(input="number", name="minimum rows ")
    pages = alt.BindInput(input="number", name="page ")
    return [
        *asked,
        metric,
        alt.param(name="positive", value=-1 if positive is None else positive),
        alt.param(name="least", value=min_n, bind=least),
        alt.param(name="page", value=1, bind=pages),
    ]


def _list(shown: alt.Parameter, *, has_interval: bool) -> Chart:
    """The list of slices: a line each, with point, interval, and n and score as numbers."""
    ends = ["low", "high"] if has_interval else []
    rows = alt.Chart().transform_aggregate(
        pairs="count()", groupby=["line", "lines", "slice", "score", "s", "shown_of", *ends]
    )
    y = alt.Y("line", type="ordinal").axis(
        title=None,
        labelExpr="''",
        ticks=False,
        domain=False,
        grid=False,
    )
    tooltip = [
        alt.Tooltip("slice", type="nominal"),
        alt.Tooltip("s", type="quantitative", title="n"),
    ]
    tooltip += [alt.Tooltip(name, type="quantitative", format=".3f") for name in ("score", *ends)]
    base = rows.encode(y=y, tooltip=tooltip)
    x = alt.X("score", type="quantitative").scale(zero=False).title("score")
    chosen = alt.condition(IS_SHOWN, alt.value(_CHOSEN), alt.value(COLOUR))
    points = base.mark_point(filled=True, size=70, opacity=1, cursor="pointer").encode(
        x=x, color=chosen
    )
    layers = [points.add_params(shown)]
    if has_interval:
        low = alt.X("low", type="quantitative").scale(zero=False).title("score")
        layers = [base.mark_rule(strokeWidth=2).encode(x=low, x2="high", color=chosen), *layers]
    named = base.mark_text(align="right", limit=_NAMES, color=GREY, cursor="pointer").encode(
        x=alt.value(-10), text="slice:N"
    )
    figures = [
        base.mark_text(align="right", color=GREY).encode(x=alt.value(_WIDTH + at), text=text)
        for at, text in (
            (70, alt.Text("s", type="quantitative", format=",~r")),
            (120, alt.Text("score", type="quantitative", format=".3f")),
        )
    ]
    first = rows.transform_filter(PAIR.line == 1)
    texts = {0: alt.Text("shown_of", type="nominal"), 70: alt.value("n"), 120: alt.value("score")}
    heads = [
        first.mark_text(align="right" if at else "left", fontWeight="bold", color=GREY).encode(
            x=alt.value(_WIDTH + at if at else 0), y=alt.value(-10), text=text
        )
        for at, text in texts.items()
    ]
    layers += [named, *figures, *heads]
    described = "List of slices, the lowest score first, with n, score and interval."
    return alt.layer(*layers).properties(
        width=_WIDTH, height=alt.Step(_STEP), description=described
    )


def _matrix(labels: Sequence[str]) -> Chart:
    """The confusion matrix of the chosen slice; with many labels, its most frequent misses."""
    pair = PAIR
    of_slice = alt.Chart().transform_filter(IS_SHOWN).transform_filter(pair.n > 0)
    n = alt.Text("n", type="quantitative", format=",~r")
    if len(labels) > _LABELS:
        misses = (
            of_slice.transform_filter(~pair.is_hit)
            .transform_window(place="row_number()", sort=[alt.SortField("n", order="descending")])
            .transform_filter(pair.place <= _PAIRS)
            .transform_calculate(pair=pair.gold_text + " taken for " + pair.pred_text)
        )
        base = misses.encode(y=alt.Y("place", type="ordinal").axis(None))
        length = alt.X("n", type="quantitative")
        layers = [
            base.mark_bar(color=COLOUR).encode(x=length),
            base.mark_text(align="left", dx=4, color=GREY).encode(x=length, text=n),
            base.mark_text(align="right", limit=_NAMES, color=GREY).encode(
                x=alt.value(-10), text="pair:N"
            ),
        ]
        size = {"width": _WIDTH, "height": alt.Step(_STEP)}
    else:
        share = of_slice.transform_calculate(share=pair.n / pair.t)
        sort = alt.SortField("gold"), alt.SortField("pred")
        base = share.encode(
            x=alt.X("pred_text", type="nominal", sort=sort[1], title="pred").axis(
                labelAngle=0, labelLimit=_CELL_LIMIT
            ),
            y=alt.Y("gold_text", type="nominal", sort=sort[0], title="gold").axis(
                labelLimit=_NAMES
            ),
            tooltip=[
                alt.Tooltip("gold_text", type="nominal", title="gold"),
                alt.Tooltip("pred_text", type="nominal", title="pred"),
                alt.Tooltip("n", type="quantitative"),
                alt.Tooltip("share", type="quantitative", title="share of gold", format=".3f"),
            ],
        )
        shade = alt.Color("share", type="quantitative", title="share of gold", legend=None)
        contrast = alt.condition(pair.share > 0.5, alt.value("black"), alt.value("white"))
        layers = [
            base.mark_rect().encode(color=shade.scale(scheme="cividis", domain=[0, 1])),
            base.mark_text(fontSize=10).encode(text=n, color=contrast),
        ]
        cell = min(max(_CELL, 8 * max(map(len, labels))), _CELL_LIMIT)
        size = {"width": alt.Step(cell), "height": alt.Step(_STEP)}
    slice_ = of_slice.transform_aggregate(pairs="count()", groupby=["slice"])
    title = slice_.mark_text(align="left", baseline="bottom", fontWeight="bold", color=GREY)
    layers.append(title.encode(x=alt.value(0), y=alt.value(-8), text="slice:N"))
    described = "The confusion matrix of the chosen slice."
    return alt.layer(*layers).properties(**size, description=described)
