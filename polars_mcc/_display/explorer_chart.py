"""Counts → a chart that makes and scores slices in the browser, with Vega's transforms alone.

The data of the chart are codes and counts: keys and labels are numbers, and their texts are listed
once. No text of a log is part of an expression, so a log cannot inject code.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, TypeAlias

import polars as pl

from polars_mcc._base import defaults
from polars_mcc._base.allowed_values import Nulls, check_at_least, check_choice
from polars_mcc._base.message_parts import quoted
from polars_mcc._base.values_as_text_or_markdown import as_text
from polars_mcc._counts.count_rows import OF_COUNTS
from polars_mcc._display import chart_style as style
from polars_mcc._display.chart_style import alt
from polars_mcc._display.explorer_scores import (
    ALL,
    IS_SHOWN,
    LABEL_METRICS,
    LINES_OF_PAGE,
    ONE_GOLD,
    ONE_PRED,
    PAIR,
    POSITIVE_METRICS,
    AnyChart,
    scored_slices,
)
from polars_mcc._display.table_and_to_numpy import COLOUR, GREY
from polars_mcc._frame.columns import as_expr, as_many_as_fit, distinct
from polars_mcc._frame.labels import as_label

Explorer: TypeAlias = alt.VConcatChart

_MAX_MATRIX = 30  # labels of a matrix, at most; with more, the most frequent misses are shown
_MAX_MISSES = 25  # most misses that are shown
_LINE_HEIGHT = 20  # height of a line, in pixels
_MIN_CELL, _MAX_CELL = 36, 90  # least and largest width of a cell of the matrix, in pixels
_MIN_MATRIX_HEIGHT = 120  # height of the matrix, in pixels, at least
_POINTS_WIDTH = 400  # width of the points, without names and numbers, in pixels
_MAX_NAME_WIDTH = 200  # longest name of a slice, in pixels
_CHOSEN_COLOUR = "#CC79A7"
_FILLED_CROSS = "M-1.4,-1L-1,-1.4L0,-.4L1,-1.4L1.4,-1L.4,0L1.4,1L1,1.4L0,.4L-1,1.4L-1.4,1L-.4,0Z"
_FILLED_RING = "M-1,0A1,1,0,1,1,1,0A1,1,0,1,1,-1,0ZM-.6,0A.6,.6,0,1,0,.6,0A.6,.6,0,1,0,-.6,0Z"
_COUNT_FORMAT = ",~r"  # the format of a number of rows


def explore(
    counts: pl.DataFrame,
    *,
    metric: str = defaults.METRIC,
    positive: object = None,
    nulls: Nulls = defaults.NULLS,
    min_n: int = 0,
    rows: int = defaults.EXPLORED,
) -> Explorer:
    """Draw counts as an interactive chart: choose, score and open slices in the browser.

    The reader chooses the keys that make slices, the values of each key, the model and the metric.
    The chart lists the slices, the lowest score first, with n and score. It shows the confusion
    matrix of one slice: click the point of a slice, or move the slider. The browser computes
    everything from the counts in the chart; nothing is sent. The chart has no intervals: ask
    `by(..., ci=0.95)` for them, or read them in the tables of `report`.

    Args:
        counts: A result of `counts`: keys, `model` if there are several, `gold`, `pred`, `n`.
        metric: The metric at first: "mcc", "accuracy", "balanced_accuracy", "f1_macro" or "kappa";
            with a positive label also "precision", "recall" or "f1".
        positive: The positive label. None: True, if labels are Boolean.
        nulls: What a null label means, as in `PredictionLog`: "drop" or "label".
        min_n: Hide slices of fewer rows. The reader can change this number in the chart.
        rows: The most counts that the chart holds, of 20 to 40 bytes each. If there are more, the
            keys with the most values are left out; the title of the chart names them.

    Returns:
        An altair chart. Scores equal the scores of `by` to 12 digits or more. A slice of one
        predicted or one gold label has MCC 0; a cross marks the former, a ring the latter. A slice
        whose precision, recall or F1 is 0/0 is not shown.

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
    style.check_drawable(counts, "counts()", "gold", "pred", "n")
    check_at_least("rows", rows, 1)
    check_choice("nulls", nulls, Nulls)
    if counts.schema["gold"] != counts.schema["pred"]:
        dtypes = f"gold is {counts.schema['gold']} and pred {counts.schema['pred']}"
        msg = f"{dtypes}: labels are compared in one dtype, as counts() gives them; cast them to it"
        raise ValueError(msg)
    cells = cells_within(counts, rows, nulls)
    if cells is None:
        msg = (
            f"the labels alone make more than rows={rows:,} counts; pass a larger rows=, or use "
            "fewer labels"
        )
        raise ValueError(msg)
    if cells.is_empty():
        msg = "there is nothing to explore: the counts have no row with two labels"
        raise ValueError(msg)
    metrics = metrics_of(cells, positive)
    if metric not in metrics:
        msg = f"metric must be one of {quoted(metrics)}, got {metric!r}"
        raise ValueError(msg)
    left_out = [key for key in keys_in(counts) if key not in cells.columns]
    return explorer_of(cells, metric=metric, positive=positive, min_n=min_n, left_out=left_out)


def explorer_of(
    cells: pl.DataFrame, *, metric: str, positive: object, min_n: int, left_out: Sequence[str]
) -> Explorer:
    """Draw the counts of `cells_within`. The title names the keys that are left out."""
    keys, metrics = keys_in(cells), metrics_of(cells, positive)
    names = ", ".join(map(style.legible_name, left_out))
    title = f"left out, as they have too many values: {names}" if names else ""
    columns, texts = _columns_as_codes(cells, keys)
    controls = [
        *_choices_of_rows(keys, texts),
        _control("metric", "metric", metric, "select", options=metrics),
        alt.param(name="positive", value=_code_of(positive, cells)),
        _control("least", "minimum rows", min_n, "number"),
        _control("page", "page", 1, "number"),
        *(alt.param(name=f"texts_{name}", value=values) for name, values in texts.items()),
    ]
    explorer = alt.VConcatChart(
        vconcat=[_slice_list(), _matrix_of_chosen(texts["gold"])],
        title=alt.TitleParams(title, anchor="start", color=GREY, fontWeight="normal"),
        padding=5,
        autosize=alt.AutoSizeParams(type="pad", resize=True),  # The list grows and shrinks.
        resolve=alt.Resolve(scale=alt.ScaleResolveMap(color="independent")),
    )
    # Set these last, because each step above copies its chart.
    of_list: Any = explorer.params
    of_controls: list[Any] = [control.param for control in controls]
    explorer.params = [*of_list, *of_controls]
    explorer.config = style.legible_config()
    explorer.data = alt.InlineData(values=[columns])
    explorer.transform = scored_slices([*columns], len(keys)).transform
    return explorer


def keys_in(counts: pl.DataFrame) -> list[str]:
    """The keys of a counts table."""
    return [name for name in counts.columns if name not in OF_COUNTS]


def metrics_of(counts: pl.DataFrame, positive: object) -> tuple[str, ...]:
    """The metrics that a reader can choose: more if there is a positive label, and it occurs."""
    has_positive = _code_of(positive, counts) is not None
    return (*LABEL_METRICS, *(POSITIVE_METRICS if has_positive else ()))


def _code_of(positive: object, counts: pl.DataFrame) -> int | None:
    """The code of the positive label. None: there is no positive label, or it does not occur."""
    labels = pl.concat([counts["gold"], counts["pred"]]).unique().sort()
    if positive is None and labels.dtype != pl.Boolean:
        return None
    value: Any = as_label(True if positive is None else positive, labels.dtype)
    return labels.index_of(value)


def cells_within(counts: pl.DataFrame, rows: int, nulls: Nulls) -> pl.DataFrame | None:
    """The counts by as many keys as fit in `rows` rows. None: the labels alone make more rows.

    Each label that occurs in a cell of the keys has a row for its hits, also if there is no hit.
    """
    if counts.schema["n"].is_decimal():
        counts = counts.with_columns(pl.col("n").cast(pl.Float64))
    if nulls != "label":
        counts = counts.drop_nulls(["gold", "pred"])
    labels = [name for name in ("model", "gold", "pred") if name in counts.columns]

    def n_groups(keys: Sequence[str]) -> int:
        return int(counts.select(distinct(keys)).item())

    @cache  # for the keys that fit
    def cells(*keys: str) -> pl.DataFrame:
        by = [*map(as_expr, [*keys, *labels])]
        pairs = counts.group_by(by, maintain_order=True).agg(pl.col("n").sum())
        none = pl.lit(0, counts.schema["n"])
        hits = [pairs.with_columns(gold=side, pred=side, n=none) for side in ("gold", "pred")]
        return pl.concat([pairs, *hits]).group_by(by, maintain_order=True).agg(pl.col("n").sum())

    kept = as_many_as_fit(
        keys_in(counts),
        lambda key: n_groups([key]),
        lambda keys: n_groups([*keys, *labels]) <= rows and cells(*keys).height <= rows,
    )
    return None if kept is None else cells(*kept)


def _columns_as_codes(
    cells: pl.DataFrame, keys: Sequence[str]
) -> tuple[dict[str, list[Any]], dict[str, list[str]]]:
    """The columns of the data as codes, and for each column the texts of its codes, in order."""
    columns, texts = {"n": cells["n"].to_list()}, {}
    for at, key in enumerate(keys):
        columns[f"key_{at}"], texts[f"key_{at}"] = _codes_and_texts(cells[key])
    if "model" in cells.columns:
        columns["model"], texts["model"] = _codes_and_texts(cells["model"], in_order=True)
    codes, texts["gold"] = _codes_and_texts(pl.concat([cells["gold"], cells["pred"]]))
    return columns | {"gold": codes[: cells.height], "pred": codes[cells.height :]}, texts


def _codes_and_texts(values: pl.Series, *, in_order: bool = False) -> tuple[list[int], list[str]]:
    """The codes of values, and the text of each code; sorted, unless the values are `in_order`."""
    column = values.alias("value").to_frame()  # Polars could read another name as a pattern.
    distinct_values = column.unique(maintain_order=True)
    distinct_values = distinct_values if in_order else distinct_values.sort("value")
    numbered = distinct_values.with_row_index("code")
    codes = column.join(numbered, on="value", how="left", nulls_equal=True, maintain_order="left")
    text = style.legible(as_text(pl.col("value"), values.dtype)).fill_null("null")
    return codes["code"].to_list(), distinct_values.select(text).to_series().to_list()


def _choices_of_rows(
    keys: Sequence[str], texts: Mapping[str, Sequence[str]]
) -> Iterator[alt.Parameter]:
    """The controls that choose slices and rows: the keys, the values of each key, the model."""
    for at, key in enumerate(keys):
        yield _control(f"by_{at}", f"slice by {key}", at == 0, "checkbox")
    for at, key in enumerate(keys):
        values = texts[f"key_{at}"]
        codes, labels = [ALL, *range(len(values))], ["all", *values]
        yield _control(f"only_{at}", f"only {key}", ALL, "select", options=codes, labels=labels)
    if models := texts.get("model"):
        codes = [*range(len(models))]
        yield _control("model", "model", 0, "select", options=codes, labels=models)


def _control(name: str, title: str, first: object, kind: str, **choices: object) -> alt.Parameter:
    """A control with its value at first."""
    bind: Any = {"input": kind, "name": f"{title} ", **choices}
    return alt.param(name=name, value=first, bind=bind)


def _slice_list() -> AnyChart:
    """The list of slices: a line each, with a point, and n and score as numbers."""
    shown = alt.selection_point(
        name="shown",
        fields=["line"],
        on="click",
        clear=False,
        value=[{"line": 1}],
        empty=False,
        bind=alt.binding_range(name="slice shown ", min=1, max=LINES_OF_PAGE, step=1),
    )
    rows = alt.Chart().transform_aggregate(
        pairs="count()",
        groupby=["line", "lines", "slice", "score", "state", "s", "shown_of"],
    )
    y = alt.Y("line:O", title=None).axis(labelExpr="''", ticks=False, domain=False, grid=False)
    tooltip = [
        alt.Tooltip("slice:N"),
        alt.Tooltip("s:Q", title="n"),
        alt.Tooltip("score:Q", format=".3f"),
    ]
    base = rows.encode(y=y, tooltip=tooltip)
    chosen = style.value_if(alt.ColorValue, COLOUR, (IS_SHOWN, _CHOSEN_COLOUR))
    shapes = (PAIR.state == ONE_PRED, _FILLED_CROSS), (PAIR.state == ONE_GOLD, _FILLED_RING)
    shape = style.value_if(alt.ShapeValue, "circle", *shapes)
    points = base.mark_point(filled=True, size=70, opacity=1, cursor="pointer").encode(shape=shape)
    score = style.number_axis(alt.X, "score", "score")
    text = base.mark_text(align="right", limit=_MAX_NAME_WIDTH, color=GREY, cursor="pointer")
    head = rows.transform_filter(PAIR.line == 1).encode(y=alt.YValue(-10))
    left, right = (
        head.mark_text(align=to, fontWeight="bold", color=GREY) for to in ("left", "right")
    )
    of_n, of_score = alt.XValue(_POINTS_WIDTH + 70), alt.XValue(_POINTS_WIDTH + 120)
    layers = [
        points.encode(x=score, color=chosen).add_params(shown),
        text.encode(x=alt.XValue(-10), text=alt.Text("slice:N")),
        text.encode(x=of_n, text=alt.Text("s:Q", format=_COUNT_FORMAT)),
        text.encode(x=of_score, text=alt.Text("score:Q", format=".3f")),
        left.encode(x=alt.XValue(0), text=alt.Text("shown_of:N")),
        right.encode(x=of_n, text=alt.TextValue("n")),
        right.encode(x=of_score, text=alt.TextValue("score")),
    ]
    described = "List of slices, the lowest score first, with n and score."
    return alt.layer(*layers).properties(
        width=_POINTS_WIDTH, height=alt.Step(_LINE_HEIGHT), description=described
    )


def _matrix_of_chosen(labels: Sequence[str]) -> AnyChart:
    """The confusion matrix of the chosen slice; with many labels, its most frequent misses."""
    of_slice = alt.Chart().transform_filter(IS_SHOWN).transform_filter(PAIR.n > 0)
    has_cells = len(labels) <= _MAX_MATRIX
    layers = _matrix_layers(of_slice) if has_cells else _miss_layers(of_slice)
    height = max(_LINE_HEIGHT, _MIN_MATRIX_HEIGHT / len(labels)) if has_cells else _LINE_HEIGHT
    width = min(max(_MIN_CELL, height, 8 * max(map(len, labels)) + 12), _MAX_CELL)
    slice_ = of_slice.transform_aggregate(pairs="count()", groupby=["slice"])
    title = slice_.mark_text(align="left", baseline="bottom", fontWeight="bold", color=GREY)
    layers.append(title.encode(x=alt.XValue(0), y=alt.YValue(-8), text=alt.Text("slice:N")))
    described = "The confusion matrix of the chosen slice."
    return alt.layer(*layers).properties(
        width=alt.Step(width) if has_cells else _POINTS_WIDTH,
        height=alt.Step(height),
        description=described,
    )


def _miss_layers(of_slice: AnyChart) -> list[AnyChart]:
    misses = (
        of_slice.transform_filter(~PAIR.is_hit)
        .transform_window(order="row_number()", sort=[alt.SortField("n", order="descending")])
        .transform_filter(PAIR.order <= _MAX_MISSES)
        .transform_calculate(pair=PAIR.gold_text + " taken for " + PAIR.pred_text)
    )
    base = misses.encode(x=alt.X("n:Q"), y=alt.Y("order:O").axis(None))
    names = base.mark_text(align="right", limit=_MAX_NAME_WIDTH, color=GREY)
    return [
        base.mark_bar(color=COLOUR),
        base.mark_text(align="left", dx=4, color=GREY).encode(
            text=alt.Text("n:Q", format=_COUNT_FORMAT)
        ),
        names.encode(x=alt.XValue(-10), text=alt.Text("pair:N")),
    ]


def _matrix_layers(of_slice: AnyChart) -> list[AnyChart]:
    pred = alt.X("pred_text:N", sort=alt.SortField("pred"), title="pred")
    gold = alt.Y("gold_text:N", sort=alt.SortField("gold"), title="gold")
    base = of_slice.transform_calculate(share=PAIR.n / PAIR.t).encode(
        x=pred.axis(labelAngle=0, labelLimit=_MAX_CELL),
        y=gold.axis(labelLimit=_MAX_NAME_WIDTH),
        tooltip=[
            alt.Tooltip("gold_text:N", title="gold"),
            alt.Tooltip("pred_text:N", title="pred"),
            alt.Tooltip("n:Q"),
            alt.Tooltip("share:Q", title="share of gold", format=".3f"),
        ],
    )
    return style.matrix_cells(base, _COUNT_FORMAT, has_legend=False)
