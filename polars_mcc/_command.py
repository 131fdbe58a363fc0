"""The command line: the verbs of the package, on files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, TypeAlias
from unicodedata import bidirectional, category

import polars as pl
import typer

import polars_mcc
from polars_mcc import _files
from polars_mcc._classes import Nulls
from polars_mcc._compare import Correction
from polars_mcc._intervals import Method
from polars_mcc._plan_errors import reason

_CONTROLS = {"Cc", "Zl", "Zp"}
"""Unicode's categories of control characters and of line breaks."""
_REORDERING = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
"""Unicode's classes of characters that change the direction of what follows."""

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)


@app.callback(invoke_without_command=True)
def _main(
    *, version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False
) -> None:
    """How good is each slice of a prediction log: the Matthews correlation coefficient."""
    if version:
        typer.echo(f"polars-mcc {polars_mcc.__version__} on polars {pl.__version__}")
        raise typer.Exit


Logs: TypeAlias = Annotated[
    list[str],
    typer.Argument(help="Parquet files, folders of them, or quoted globs. Each file is read once."),
]
Keys: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--by", metavar="COLUMN", help="Slice by this column. Repeat to cross."),
]
Gold: TypeAlias = Annotated[str, typer.Option(metavar="COLUMN", help="The true label.")]
Weight: TypeAlias = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="How many rows a row stands for: n in counts."),
]
Cluster: TypeAlias = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="What rows have in common that are not independent."),
]
HowInterval: TypeAlias = Annotated[Method, typer.Option(help="How the interval is made.")]
Where: TypeAlias = Annotated[
    str | None,
    typer.Option("--filter", metavar="SQL", help="Score only the rows for which this holds."),
]
HowNulls: TypeAlias = Annotated[
    Nulls, typer.Option(help="Leave rows with a null label out, or take null for a label.")
]
Out: TypeAlias = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Write to FILE (.parquet, .csv or .json)."),
]


@app.command()
def by(  # noqa: PLR0917 - typer makes options of them
    logs: Logs,
    by: Keys = None,
    gold: Gold = "gold",
    pred: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="The predicted label. Repeat for several models.",
            show_default="pred",
        ),
    ] = None,
    weight: Weight = None,
    ci: Annotated[
        float | None, typer.Option(metavar="LEVEL", help="Add an interval: 0.95 is usual.")
    ] = None,
    method: HowInterval = "score",
    cluster: Cluster = None,
    where: Where = None,
    nulls: HowNulls = "drop",
    out: Out = None,
) -> None:
    """Score every slice of a prediction log.

    A row per slice: the rows scored (n), their Matthews correlation coefficient (mcc), its
    standard error and interval (with --ci), and the rows not scored because a label is null
    (n_null).

    Example: `polars-mcc by logs/ --by country --by device --filter "day > DATE '2026-03-01'"`
    """
    keys, preds = by or [], pred or ["pred"]

    def query(log: pl.LazyFrame) -> pl.LazyFrame:
        return polars_mcc.by(
            log,
            *keys,
            gold=gold,
            pred=preds if len(preds) > 1 else preds[0],
            weight=weight,
            nulls=nulls,
            ci=ci,
            method=method,
            cluster=cluster,
        )

    _run(query, logs, [*keys, gold, *preds, weight, cluster], where, out)


@app.command()
def compare(  # noqa: PLR0917 - typer makes options of them
    logs: Logs,
    a: Annotated[str, typer.Option(metavar="COLUMN", help="The baseline.")],
    b: Annotated[
        list[str],
        typer.Option(metavar="COLUMN", help="The model to compare with it. Repeat for several."),
    ],
    by: Keys = None,
    gold: Gold = "gold",
    weight: Weight = None,
    ci: Annotated[float, typer.Option(metavar="LEVEL", help="The level of the interval.")] = 0.95,
    method: HowInterval = "score",
    cluster: Cluster = None,
    correction: Annotated[
        Correction, typer.Option(help="Of the p-values, for how many there are.")
    ] = "bh",
    where: Where = None,
    nulls: HowNulls = "drop",
    out: Out = None,
) -> None:
    """Compare models on the same rows of a prediction log.

    A row per slice: the rows scored (n), both scores, their difference (above 0 where b is
    better), its standard error and interval, its p-value, and that corrected for the number of
    rows.

    Example: `polars-mcc compare logs/ --a old --b new --by country`
    """
    keys = by or []

    def query(log: pl.LazyFrame) -> pl.LazyFrame:
        return polars_mcc.compare(
            log,
            a,
            b if len(b) > 1 else b[0],
            *keys,
            gold=gold,
            weight=weight,
            nulls=nulls,
            ci=ci,
            method=method,
            cluster=cluster,
            correction=correction,
        )

    _run(query, logs, [*keys, gold, a, *b, weight, cluster], where, out)


def _run(
    query: Callable[[pl.LazyFrame], pl.LazyFrame],
    logs: list[str],
    read: Sequence[str | None],
    where: str | None,
    out: Path | None,
) -> None:
    """Ask the query of the logs, and show or write the answer, or say why there is none."""
    try:
        if out is not None:
            _files.check_out(out)
        found = _files.find(logs)
        rows = None if where is None else pl.sql_expr(where)
        columns = [name for name in read if name is not None]
        if rows is not None:
            columns += rows.meta.root_names()
        lf = _files.scan(found.files, columns)
        lazy = query(lf if rows is None else lf.filter(rows))
        with _files.named_if_corrupt(found.files, columns):
            answer = lazy.collect()
        if out is not None:
            _files.write(answer, out)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError) as error:
        named = logs[0] if len(logs) == 1 else f"{logs[0]} and {len(logs) - 1} more"
        _say(f"{named}: {reason(error)}")
        raise typer.Exit(2) from None
    except KeyboardInterrupt:
        _say("interrupted; nothing is written")
        raise typer.Exit(130) from None
    if found.others:
        _say(f"not read, as not named .parquet: {', '.join(found.others)}")
    if out is None:
        typer.echo(_table(answer))
    else:
        _say(f"{answer.height} rows written to {out}")
        if out.suffix == ".csv" and (formulas := _files.formulas(answer)):
            first, *more = formulas
            others = f" and {len(more)} more" if more else ""
            _say(f"{out}: written as it is, but a spreadsheet would run {first!r}{others}")


def _table(answer: pl.DataFrame) -> str:
    """All rows and columns; what is in a cell stays in its line."""
    texts = _files.texts(answer)
    broken = [text.name for text in texts if text.str.contains("\n", literal=True).any()]
    one_line = pl.col(broken).cast(pl.String).str.replace_all("\n", r"\n", literal=True)
    answer = answer.with_columns(one_line).rename(lambda name: name.replace("\n", r"\n"))
    with pl.Config(tbl_rows=-1, tbl_cols=-1, fmt_str_lengths=100, tbl_width_chars=-1):
        return "\n".join(map(_visible, str(answer).split("\n")))


def _say(message: str) -> None:
    typer.echo(f"polars-mcc: {_visible(message)}", err=True)


def _visible(text: str) -> str:
    """A line in which the characters that a terminal would obey are written as escapes."""

    def visible(character: str) -> str:
        is_obeyed = category(character) in _CONTROLS or bidirectional(character) in _REORDERING
        return ascii(character)[1:-1] if is_obeyed else character

    return "".join(map(visible, text))
