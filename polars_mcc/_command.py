"""The command line: the verbs of the package, on files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated
from unicodedata import bidirectional, category

import polars as pl
import typer

import polars_mcc
from polars_mcc import _files
from polars_mcc._classes import Nulls
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


@app.command()
def by(  # noqa: PLR0917 - typer makes options of them
    logs: Annotated[
        list[str],
        typer.Argument(
            help="Parquet files, folders of them, or quoted globs. Each file is read once."
        ),
    ],
    by: Annotated[
        list[str] | None,
        typer.Option("--by", metavar="COLUMN", help="Slice by this column. Repeat to cross."),
    ] = None,
    gold: Annotated[str, typer.Option(metavar="COLUMN", help="The true label.")] = "gold",
    pred: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="The predicted label. Repeat for several models.",
            show_default="pred",
        ),
    ] = None,
    weight: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="How many rows a row stands for: n in counts."),
    ] = None,
    where: Annotated[
        str | None,
        typer.Option("--filter", metavar="SQL", help="Score only the rows for which this holds."),
    ] = None,
    nulls: Annotated[
        Nulls, typer.Option(help="Leave rows with a null label out, or take null for a label.")
    ] = "drop",
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write to FILE (.parquet, .csv or .json)."),
    ] = None,
) -> None:
    """Score every slice of a prediction log.

    A row per slice: the rows scored (n), their Matthews correlation coefficient (mcc),
    and the rows not scored because a label is null (n_null).

    Example: `polars-mcc by logs/ --by country --by device --filter "day > DATE '2026-03-01'"`
    """
    keys, preds = by or [], pred or ["pred"]
    try:
        if out is not None:
            _files.check_out(out)
        found = _files.find(logs)
        rows = None if where is None else pl.sql_expr(where)
        columns = [*keys, gold, *preds, *([weight] if weight else [])]
        if rows is not None:
            columns += rows.meta.root_names()
        lf = _files.scan(found.files, columns)
        query = polars_mcc.by(
            lf if rows is None else lf.filter(rows),
            *keys,
            gold=gold,
            pred=preds if len(preds) > 1 else preds[0],
            weight=weight,
            nulls=nulls,
        )
        with _files.named_if_corrupt(found.files, columns):
            answer = query.collect()
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
        _say(f"{answer.height} slices written to {out}")
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
