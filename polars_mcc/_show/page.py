"""A page of HTML: sections with notes, charts and a table, that needs no network."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from polars_mcc._show.table import keys_of

if TYPE_CHECKING:
    from polars_mcc._show.chart import Chart

_ROWS = 1000  # rows of a table, at most
_SCALE = 2  # pixels of a chart for each of the page, so that it is sharp when printed


class Cell(NamedTuple):
    """What is shown, all its digits, and its place in the order of its column."""

    text: str
    full: str
    rank: int | None


class Table(NamedTuple):
    """The cells of an answer, by row and column, and which columns are numbers."""

    columns: list[str]
    numbers: set[str]
    rows: list[dict[str, Cell]]


class Picture(NamedTuple):
    """A chart as an image."""

    alt: str
    source: str
    width: int


@dataclass(frozen=True)
class Section:
    """A part of a page."""

    title: str
    query: str
    notes: list[str] = field(default_factory=list)
    charts: list[Picture] = field(default_factory=list)
    table: Table | None = None


def section(
    title: str,
    query: str,
    answer: pl.DataFrame,
    *,
    charts: Sequence[Picture] = (),
    notes: Sequence[str] = (),
    lowest_of: str | None = None,
    highest_of: str | None = None,
) -> Section:
    """A section with the answer as its table: its first rows, or those that score worst."""
    shown = answer
    more = []
    if answer.height > _ROWS:
        what = "first"
        if (score := lowest_of or highest_of) is not None:
            what = f"{'lowest' if lowest_of else 'highest'} by {score}"
            places = pl.col(score).rank("ordinal", descending=lowest_of is None)
            places = places.fill_null(answer.height + 1)
            shown = answer.filter(places <= _ROWS)
        shown = shown.head(_ROWS)
        more = [f"The table holds {_ROWS:,} of {answer.height:,} rows, the {what}."]
    return Section(title, query, [*notes, *more], list(charts), _table(shown))


def drawn(alt: str, draw: Callable[[], Chart], rows: pl.DataFrame) -> list[Picture]:
    """A chart as a picture with its text, unless there is nothing to draw.

    It is a PNG: the text of an SVG would be set in a font of the reader's, and not fit.
    """
    score = next(name for name in ("diff", "mcc", "n") if name in rows.columns)
    if rows[score].is_null().all():
        return []
    file = io.BytesIO()
    # What is half transparent comes out darker on a transparent background.
    draw().properties(background="white").save(file, format="png", scale_factor=_SCALE)
    picture = file.getvalue()
    width = int.from_bytes(picture[16:20], "big") // _SCALE
    return [Picture(alt, f"data:image/png;base64,{base64.b64encode(picture).decode()}", width)]


def page(title: str, sections: Sequence[Section], made: Mapping[str, str]) -> str:
    """The page: every text escaped, and a policy that lets only its own script run."""
    import hashlib  # noqa: PLC0415 - these take most of the time that this module would take
    from importlib.resources import files  # noqa: PLC0415

    import jinja2  # noqa: PLC0415 - altair, which is optional, needs and brings it

    here = files("polars_mcc._show")
    script = here.joinpath("page.js").read_text("utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    template = environment.from_string(here.joinpath("page.html").read_text("utf-8"))
    style = here.joinpath("page.css").read_text("utf-8")
    return template.render(
        title=title, sections=sections, made=made, style=style, script=script, digest=digest
    )


def _table(answer: pl.DataFrame) -> Table:
    keys = keys_of(answer)
    numbers = {name for name, dtype in answer.schema.items() if dtype.is_numeric()}
    columns: dict[str, list[Cell]] = {}
    for column in answer.iter_columns():
        ranks = column.rank("dense") if not column.dtype.is_nested() else [None] * len(column)
        columns[column.name] = [
            Cell(
                _shown(column.name, value, is_key=column.name in keys),
                "null" if value is None else str(value),
                rank,
            )
            for value, rank in zip(column, ranks, strict=True)
        ]
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return Table(answer.columns, numbers, rows)


def _shown(name: str, value: object, *, is_key: bool) -> str:
    """A value as it is read: rounded, and without thousands separators if it may be a year."""
    if value is None:
        return "null" if is_key else "–"
    if is_key or isinstance(value, (bool, str)):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.2g}" if name.startswith("p_") else f"{value:.3f}"
    return str(value)
