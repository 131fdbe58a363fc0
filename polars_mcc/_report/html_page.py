"""A report as a page of HTML that needs no network: tables and charts.

The charts are SVG in the page: they are read without a script, on a phone and on paper.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from itertools import chain
from typing import Any

from polars_mcc import plot
from polars_mcc._display.chart_style import COLOURS, alt, legible_name
from polars_mcc._report.sections import Drawing, Section, shown
from polars_mcc._report.summary import Report

ALTAIR: str = alt.__version__
_AND = " and "  # between the keys of a slice
_WIDTH = 420  # of a chart with its labels, in pixels: as wide as a phone
_TEXT = {"labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal"}


def page(report: Report) -> str:
    """Write a report as HTML. Text is escaped, and a policy lets only the page's own script run."""
    answers = report.answers
    drawings = [*chain(*(section.drawings for section in report.sections))]
    # Altair would check each part of a chart against the schema, and again each copy of it.
    with alt.utils.schemapi.debug_mode(False):  # noqa: FBT003 - positional only
        specs = [_spec(drawing, answers.models) for drawing in drawings]
    for draw, channel in (("slices", "x"), ("over_time", "y")):
        of_metric = [
            spec
            for drawing, spec in zip(drawings, specs, strict=True)
            if drawing.draw == draw and drawing.options.get("metric") == answers.metric
        ]
        _on_one_axis(of_metric, channel)
    template, css, js = _files()
    page: str = template.render(
        title=answers.settings.title,
        verdict=report.verdict,
        words=report.words,
        said_of=report.said_of,
        sections=report.sections,
        anchors={section.id: f"section-{at}" for at, section in enumerate(report.sections)},
        drawn={drawing: _svg(spec) for drawing, spec in zip(drawings, specs, strict=True)},
        table=_html_table,
        made=report.made,
        style=css,
        script=js,
        # The policy of the page allows only a script with this hash.
        digest=base64.b64encode(sha256(js.encode()).digest()).decode(),
    )
    return page


@cache
def _files() -> tuple[Any, str, str]:
    """The template of the page, its style, and its script."""
    from importlib.resources import files  # noqa: PLC0415 - these take long to load

    import jinja2  # noqa: PLC0415 - altair, which is optional, needs and brings it

    here = files("polars_mcc._report")
    html, css, js = (
        here.joinpath(f"html_page.{kind}").read_text("utf-8") for kind in ("html", "css", "js")
    )
    undefined = jinja2.StrictUndefined
    template = jinja2.Template(
        html, autoescape=True, undefined=undefined, trim_blocks=True, lstrip_blocks=True
    )
    return template, css, js


def _on_one_axis(specs: Sequence[dict[str, Any]], channel: str) -> None:
    """Give all charts of a metric the same axis."""
    ends = [
        row[name]
        for spec in specs
        for rows in spec["datasets"].values()
        for row in rows
        for name in ("score", "low", "high", "zero")
        if row.get(name) is not None
    ]
    if not ends:
        return
    axis = {"domain": [min(ends), max(ends)], "nice": True, "zero": False}
    for spec in specs:
        for layer in _layers_of(spec):
            encoding = layer["encoding"].get(channel, {})
            if encoding.get("field") in {"score", "low", "zero"}:
                encoding["scale"] = axis


def _layers_of(spec: dict[str, Any]) -> list[dict[str, Any]]:
    """The layers of a chart, or of each of its facets."""
    layers: list[dict[str, Any]] = spec.get("spec", spec)["layer"]
    return layers


def _spec(drawing: Drawing, models: Sequence[str]) -> dict[str, Any]:
    """The specification of a chart. Most are as wide as their place in the page."""
    figure = getattr(plot, drawing.draw)(drawing.rows, **drawing.options)
    with alt.data_transformers.disable_max_rows():  # Each chart has its own bound.
        spec: dict[str, Any] = figure.to_dict(validate=False)
    config = spec["config"] | {"aria": False, "mark": {"aria": False}}
    spec |= {"padding": 10, "config": config}
    config["axis"] |= _TEXT
    config["legend"] |= _TEXT | {"orient": "top", "columns": 2}
    colours = {legible_name(name): COLOURS[at % len(COLOURS)] for at, name in enumerate(models)}
    for layer in _layers_of(spec):
        encoding = layer["encoding"]
        y, colour = encoding.get("y", {}), encoding.get("color", {})
        if "labelLimit" in y.get("axis", {}):  # This axis names slices.
            names = y["scale"]["domain"]
            y["axis"] |= _labelled(names)
            # The font of a reader may be wider than the font that the chart was measured with.
            longest = max(len(clause) for name in names for clause in name.split(_AND))
            spec["padding"] = {"left": 10 + 1.5 * min(longest, 30), "right": 5, "bottom": 5}
            of_slice = encoding["yOffset"]["scale"]["domain"] if "yOffset" in encoding else []
            lines = len(names) * max(len(of_slice) + 1, *(name.count(_AND) + 1 for name in names))
        if colour.get("field") in {"model", "line"}:  # A model has one colour in all charts.
            scale = colour["scale"]
            of_lines = zip(scale["domain"], scale["range"], strict=True)
            scale["range"] = [colours.get(name, given) for name, given in of_lines]
    if "spec" in spec:
        spec["columns"] = 1
    elif drawing.draw != "confusion":
        spec |= {"width": _WIDTH, "autosize": {"type": "fit-x", "contains": "padding"}}
        # Vega-Lite warns of a step if the width fits the page.
        if isinstance(spec["height"], dict):
            spec["height"] = spec["height"]["step"] * lines
    return spec


def _svg(spec: dict[str, Any]) -> tuple[str, str]:
    """A chart as SVG, whose texts are escaped; and its title, which the page shows below."""
    import vl_convert  # noqa: PLC0415 - it loads a browser's engine, only to draw

    version = ".".join(alt.SCHEMA_VERSION.split(".")[:2])
    title = " ".join(spec.pop("title", {"text": []})["text"])
    svg = vl_convert.vegalite_to_svg(spec, vl_version=version)
    # In marks, not in texts: a third of the bytes.
    return re.sub("<[^>]*>", lambda mark: _NEEDLESS.sub("", mark[0]), svg), title


_NEEDLESS = re.compile(
    r' (?:(?:aria-[a-z]+|class|font-family|pointer-events|role)="[^"]*"|opacity="1")|(?<=\.\d\d)\d+'
)
"""What a chart looks the same without, and digits below a hundredth of a pixel."""


def _labelled(slices: Sequence[str]) -> dict[str, Any]:
    """Axis labels of slices: omit a key that all share, or else put each key on its own line."""
    name, equals, _ = slices[0].partition(" = ")
    key = f"{name}{equals}"
    has_one_key = all(name.startswith(key) and _AND not in name for name in slices)
    if equals and has_one_key and len(slices) > 1:
        return {"labelExpr": f"substring(datum.label, {len(key)}, length(datum.label))"}
    return {"labelExpr": f"split(datum.label, '{_AND}')", "labelLimit": 180}


def _html_table(section: Section) -> tuple[list[tuple[str, bool]], list[tuple[Any, ...]]]:
    """The heads of a table and its rows.

    A head has its text, and whether the column is of numbers. A cell has the text, the rank within
    the column, and whether it is a number.
    """
    heads, columns = [], []
    for head, column, texts in shown(section, section.rows):
        values = column.alias("value")  # A name may be a pattern for Polars.
        ranks = [None] * len(column) if column.dtype.is_nested() else values.rank("dense")
        is_number = column.dtype.is_numeric()
        heads.append((head, is_number))
        columns.append([*zip(texts, ranks, [is_number] * len(column), strict=True)])
    return heads, [*zip(*columns, strict=True)]
