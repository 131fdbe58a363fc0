"""A report on a log: one page of HTML, to be mailed, and opened without a network."""

from __future__ import annotations

import base64
import datetime as dt
import io
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from importlib.resources import files
from types import ModuleType
from typing import TYPE_CHECKING, TypeAlias

import polars as pl

from polars_mcc._classes import Nulls
from polars_mcc._log import SET, TOTAL, Frame, as_expr, check_level, check_polars, one_or_several
from polars_mcc._namespaces import FrameMcc
from polars_mcc._slices import can_be_long
from polars_mcc._table import keys_of

if TYPE_CHECKING:
    from polars_mcc.plot import Chart

Query: TypeAlias = Callable[[pl.LazyFrame], pl.LazyFrame]
Collect: TypeAlias = Callable[[str, Query], pl.DataFrame]
"""What collects the answer of a query about the log; it is told what that is about."""

TITLE = "How good is each slice?"
_DEFAULTS: dict[str, object] = {
    "gold": "gold",
    "pred": "pred",
    "weight": None,
    "nulls": "drop",
    "cluster": None,
    "long": False,
}
_METRICS = ["mcc", "accuracy", "f1_macro"]
_ROWS = 1000
"""Rows of a table, at most."""
_LINES = 60
"""Slices of a chart, at most."""
_TIMES = 1000
"""Times of a chart, at most: the last."""
_LABELS = 60
"""Labels of a matrix that is drawn, at most."""
_SCALE = 2
"""Pixels of a chart for each of the page, so that it is sharp when printed."""
_TOP = 20
"""Slices and confusions that are called the worst, at most."""


def report(
    frame: Frame,
    *keys: str,
    gold: str = "gold",
    pred: str | Sequence[str] = "pred",
    weight: str | None = None,
    nulls: Nulls = "drop",
    ci: float = 0.95,
    cluster: str | None = None,
    depth: int = 2,
    min_n: int = 30,
    title: str = TITLE,
) -> str:
    """Write a report on a log as one page of HTML, which needs no network.

    It holds the total, how many rows are not scored and why, the slices that fall behind the
    rest, a chart and a table per key, the confusions, and if there are several models a
    comparison of the others with the first; each with the query that made it. Tables can be
    sorted and searched in the page, and the page can be printed.

    Args:
        frame: The log. It is read three times; if rows are not scored, once more per model; if
            there are several models, once more, and once per key.
        *keys: Names of columns. Each makes slices of its own; dates are drawn as time.
        gold: The column of true labels.
        pred: The column of predicted labels, or a list of several models.
        weight: A column: how many rows a row stands for.
        nulls: What becomes of rows with a null label, as in `by`.
        ci: The level of the intervals.
        cluster: A column: what rows have in common that are not independent. `worst`, which has
            no such argument, takes them for independent all the same.
        depth: How many keys are crossed in the search for the worst slices, at most.
        min_n: Slices of fewer rows are not tested there.
        title: What stands above the page.

    Returns:
        The page. What comes from the log is escaped, and no script runs in it but its own. A
        table holds 1000 rows at most, and a chart 60 slices, those of the lowest score; the page
        says so where it left some out.

    Raises:
        ModuleNotFoundError: altair is not installed; the extra `plot` has it.

    Errors of `by`, `worst`, `confusion` and `compare` are raised as they are; lists of labels are
    refused, as `worst` and `confusion` do.

    Examples:
        >>> import polars as pl
        >>> import polars_mcc
        >>> log = pl.scan_parquet("data/digits.parquet")
        >>> page = polars_mcc.report(log, "ink_band", "fold", pred=["logistic", "knn"])
        >>> page.splitlines()[0]
        '<!doctype html>'
    """
    check_polars(frame, "a report is of")
    log = frame.lazy()
    return written(
        lambda _, query: query(log).collect(),
        keys,
        gold=gold,
        preds=[pred] if isinstance(pred, str) else list(pred),
        weight=weight,
        nulls=nulls,
        ci=ci,
        cluster=cluster,
        depth=depth,
        min_n=min_n,
        title=title,
    )


def written(
    collect: Collect,
    keys: Sequence[str],
    *,
    gold: str,
    preds: Sequence[str],
    weight: str | None,
    nulls: Nulls,
    ci: float,
    cluster: str | None,
    depth: int,
    min_n: int,
    title: str,
    made_by: Mapping[str, str] | None = None,
) -> str:
    """The page of `report`; `made_by` adds lines to its last part, by what they are."""
    from polars_mcc import __version__, plot  # noqa: PLC0415 - altair is optional

    check_level(ci)
    log = _Log(collect, list(dict.fromkeys(keys)), gold, list(preds), weight, nulls)
    sure: dict[str, object] = {"ci": ci, "cluster": cluster}
    scores, query = _scores(log, sure)
    total = scores.filter(pl.col(SET) == TOTAL).drop(SET, *log.keys)
    sections = [
        _section("All rows", query, total),
        _not_scored(log, total),
        *_worst(log, plot, ci=ci, depth=depth, min_n=min_n),
        *(_of_key(key, scores.drop(set(log.keys) - {key}), query, plot) for key in log.keys),
        *_confusions(log, plot),
        *_comparisons(log, plot, sure),
    ]
    versions = {
        "polars_mcc": __version__,
        "Polars": pl.__version__,
        "altair": version("altair"),
        "Python": platform.python_version(),
    }
    made = {
        **(made_by or {}),
        "made": f"{dt.datetime.now(dt.timezone.utc):%Y-%m-%d %H:%M} UTC",
        "versions": ", ".join(f"{name} {number}" for name, number in versions.items()),
    }
    return _page(title, sections, made)


@dataclass(frozen=True)
class _Log:
    """What all queries of a report have in common."""

    collect: Collect
    keys: list[str]
    gold: str
    preds: list[str]
    weight: str | None
    nulls: Nulls

    def call(self, verb: str, *keys: object, **options: object) -> tuple[str, Query]:
        """A verb of the namespace: as a user would write it, and as a function of the log."""
        given = {"gold": self.gold, "weight": self.weight, "nulls": self.nulls, **options}
        for name, default in _DEFAULTS.items():
            if name in given and given[name] == default:
                del given[name]
        texts = [*map(repr, keys), *(f"{name}={value!r}" for name, value in given.items())]

        def query(log: pl.LazyFrame) -> pl.LazyFrame:
            answer: pl.LazyFrame = getattr(FrameMcc(log), verb)(*keys, **given)
            return answer

        return f"log.mcc.{verb}({', '.join(texts)})", query

    def ask(
        self, about: str, verb: str, *keys: object, **options: object
    ) -> tuple[pl.DataFrame, str]:
        """The answer of a verb, and the call."""
        text, query = self.call(verb, *keys, **options)
        return self.collect(about, query), text

    @property
    def pred(self) -> str | Sequence[str]:
        return one_or_several(self.preds)


@dataclass(frozen=True)
class _Cell:
    """What is shown, all its digits, and its place in the order of its column."""

    text: str
    full: str
    rank: int | None


@dataclass(frozen=True)
class _Table:
    columns: list[str]
    numbers: set[str]
    rows: list[dict[str, _Cell]]


@dataclass(frozen=True)
class _Chart:
    alt: str
    source: str
    width: int


@dataclass(frozen=True)
class _Section:
    title: str
    query: str
    notes: list[str] = field(default_factory=list)
    charts: list[_Chart] = field(default_factory=list)
    table: _Table | None = None


def _scores(log: _Log, sure: Mapping[str, object]) -> tuple[pl.DataFrame, str]:
    """The slices of each key, and the total: of one scan."""
    options = {"pred": log.pred, "metrics": _METRICS, **sure}
    if log.keys:
        return log.ask("scores", "by", *log.keys, **options, sets="each", total=True)
    total, query = log.ask("scores", "score", **options)
    return total.select(pl.lit(TOTAL).alias(SET), pl.all()), query


def _of_key(key: str, scores: pl.DataFrame, query: str, plot: ModuleType) -> _Section:
    """The slices of one key, drawn over time if they are that, or beside the total."""
    slices = scores.filter(pl.col(SET) == key).drop(SET)
    if plot.is_time(slices.schema[key]):
        drawn = slices.filter(as_expr(key).rank("dense", descending=True) <= _TIMES)
        which, draw = "last", partial(plot.over_time, drawn)
    else:
        drawn = _lowest(slices, key, "mcc")
        total = scores.filter(pl.col(SET) == TOTAL)
        with_total = pl.concat([total, drawn.select(pl.lit(key).alias(SET), pl.all())])
        which, draw = "lowest", partial(plot.slices, with_total)
    charts = _drawn(f"mcc by {key}", draw, drawn)
    notes = _left_out(slices, drawn, key, which)
    return _section(f"By {key}", query, slices, charts=charts, notes=notes, lowest_of="mcc")


def _not_scored(log: _Log, total: pl.DataFrame) -> _Section:
    """How many rows are not scored, and why, if there are such."""
    found = []
    for name, left_out in zip(log.preds, total["n_null"], strict=True):
        if left_out:
            reasons, _ = log.ask("rows not scored", "by", _reason(log, name), pred=name)
            rows = reasons.filter(pl.col("n_null") > 0)
            found.append(rows.select(pl.lit(name).alias("pred"), "reason", "n_null"))
    if not found:
        return _Section("Rows not scored", "", ["All rows are scored."])
    return _section("Rows not scored", "", pl.concat(found))


def _reason(log: _Log, pred: str) -> pl.Expr:
    """Why a row is not scored: which of its columns are null."""
    columns = [log.weight] if log.nulls == "label" else [log.gold, pred, log.weight]
    parts = [
        pl.when(as_expr(name).is_null()).then(pl.lit(f"{name} is null"))
        for name in columns
        if name is not None
    ]
    return pl.concat_str(parts, separator=", ", ignore_nulls=True).alias("reason")


def _worst(log: _Log, plot: ModuleType, *, ci: float, depth: int, min_n: int) -> Iterator[_Section]:
    """The slices that fall behind the rest."""
    if not log.keys:
        return
    asked = {"depth": depth, "min_n": min_n, "top": _TOP, "ci": ci, "long": can_be_long(log.keys)}
    slices, query = log.ask("worst slices", "worst", *log.keys, pred=log.pred, **asked)
    what = (
        f"Slices of up to {depth} columns and at least {min_n} rows, beside the rest of the log: "
        f"those whose corrected p-value is below {round(1 - ci, 10)}, by what the log would gain "
        "without them (loss)."
    )
    notes = [what, *(["No slice falls behind the rest."] if slices.is_empty() else [])]
    charts = _drawn("worst slices", partial(plot.differences, slices, sort=False), slices)
    yield _section("Worst slices", query, slices, charts=charts, notes=notes)


def _confusions(log: _Log, plot: ModuleType) -> Iterator[_Section]:
    """The confusions that cost most, and the matrix of each model."""
    cells, _ = log.ask("confusions", "confusion", pred=log.pred, long=True)
    models = ["model"] if "model" in cells.columns else []
    cells = cells.with_columns(pl.col(models).cast(pl.Enum(log.preds)))  # in this order
    counted = FrameMcc(cells.filter(pl.col("n") > 0))
    costliest = counted.confusion(*models, weight="n", nulls="label", top=_TOP)
    costliest = costliest.drop("n_null")  # which is of the cells, and has no null
    query, _ = log.call("confusion", pred=log.pred, top=_TOP)
    charts = []
    notes = []
    for name in log.preds:
        of_model = cells.filter(pl.col("model") == name).drop("model") if models else cells
        labels = of_model["gold"].n_unique()
        if labels > _LABELS:
            notes.append(f"The matrix of {name} has {labels} labels, and is not drawn.")
        else:
            alt = f"confusion matrix of {name}"
            charts += _drawn(alt, partial(plot.confusion, of_model), of_model)
    yield _section("Confusions that cost most", query, costliest, charts=charts, notes=notes)


def _comparisons(log: _Log, plot: ModuleType, sure: Mapping[str, object]) -> Iterator[_Section]:
    """Each other model beside the first: of all rows, and of the slices of each key."""
    a, *others = log.preds
    if not others:
        return
    b = one_or_several(others)
    note = f"A difference above 0: better than {a}."
    for key in [None, *log.keys]:
        slice_ = [] if key is None else [key]
        title = f"Models beside {a}" + ("" if key is None else f", by {key}")
        compared, query = log.ask(title, "compare", a, b, *slice_, **sure)
        lowest = compared if key is None else _lowest(compared, key, "diff")
        left_out = [] if key is None else _left_out(compared, lowest, key, "lowest")
        charts = _drawn(title, partial(plot.differences, lowest), lowest)
        yield _section(
            title, query, compared, charts=charts, notes=[note, *left_out], lowest_of="diff"
        )


def _section(
    title: str,
    query: str,
    answer: pl.DataFrame,
    *,
    charts: Sequence[_Chart] = (),
    notes: Sequence[str] = (),
    lowest_of: str | None = None,
) -> _Section:
    """A section with the answer as its table: its first rows, or those that score lowest."""
    shown = answer
    more = []
    if answer.height > _ROWS:
        what = "first"
        if lowest_of is not None:
            what = f"lowest by {lowest_of}"
            places = pl.col(lowest_of).rank("ordinal").fill_null(answer.height + 1)
            shown = answer.filter(places <= _ROWS)
        shown = shown.head(_ROWS)
        more = [f"The table holds {_ROWS:,} of {answer.height:,} rows, the {what}."]
    return _Section(title, query, [*notes, *more], list(charts), _table(shown))


def _table(answer: pl.DataFrame) -> _Table:
    keys = keys_of(answer)
    numbers = {name for name, dtype in answer.schema.items() if dtype.is_numeric()}
    columns: dict[str, list[_Cell]] = {}
    for column in answer.iter_columns():
        ranks = column.rank("dense") if not column.dtype.is_nested() else [None] * len(column)
        columns[column.name] = [
            _Cell(_shown(column.name, value, is_key=column.name in keys), _full(value), rank)
            for value, rank in zip(column, ranks, strict=True)
        ]
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return _Table(answer.columns, numbers, rows)


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


def _full(value: object) -> str:
    return "null" if value is None else str(value)


def _drawn(alt: str, draw: Callable[[], Chart], rows: pl.DataFrame) -> list[_Chart]:
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
    return [_Chart(alt, f"data:image/png;base64,{base64.b64encode(picture).decode()}", width)]


def _lowest(slices: pl.DataFrame, key: str, score: str) -> pl.DataFrame:
    """The slices that score lowest, of all models, as many as a chart has lines for."""
    least = slices.group_by(as_expr(key), maintain_order=True).agg(pl.col(score).min())
    least = least.sort(score, maintain_order=True, nulls_last=True).head(_LINES)
    return slices.join(least.select(as_expr(key)), on=as_expr(key), how="semi", nulls_equal=True)


def _left_out(slices: pl.DataFrame, drawn: pl.DataFrame, key: str, which: str) -> list[str]:
    of, number = slices[key].n_unique(), drawn[key].n_unique()
    return [] if of == number else [f"The chart shows the {which} {number} of {of:,} slices."]


def _page(title: str, sections: Sequence[_Section], made: Mapping[str, str]) -> str:
    """The page: every text escaped, and a policy that lets only its own script run."""
    import hashlib  # noqa: PLC0415 - it takes most of the time that this module would take

    import jinja2  # noqa: PLC0415 - altair, which is optional, needs and brings it

    here = files("polars_mcc")
    script = here.joinpath("report.js").read_text("utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    template = environment.from_string(here.joinpath("report.html").read_text("utf-8"))
    style = here.joinpath("report.css").read_text("utf-8")
    return template.render(
        title=title,
        sections=sections,
        made=made,
        style=style,
        script=script,
        digest=digest,
    )
