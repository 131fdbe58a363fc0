"""The command line: the verbs of the package, on files."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, TypeAlias
from unicodedata import bidirectional, category

import polars as pl
import typer
from rich.console import Console

import polars_mcc
from polars_mcc import _files, _store
from polars_mcc._classes import Nulls
from polars_mcc._confusion import Normalize
from polars_mcc._differences import Correction
from polars_mcc._intervals import Method
from polars_mcc._labels import known_labels
from polars_mcc._log import one_or_several, read
from polars_mcc._plan_errors import reason
from polars_mcc._progress import Bar, collect
from polars_mcc._report import TITLE, written
from polars_mcc._slices import can_be_long
from polars_mcc._worst import Rank

_CONTROLS = {"Cc", "Zl", "Zp"}
"""Unicode's categories of control characters and of line breaks."""
_REORDERING = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
"""Unicode's classes of characters that change the direction of what follows."""

_LISTED = 20
"""Files that a report names, at most."""

app = typer.Typer(
    no_args_is_help=True,
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
    typer.Argument(
        help="Parquet files, folders of them, or quoted globs; or CSV, NDJSON or IPC files; or "
        "folders that are Delta or Iceberg tables; or URLs, such as s3://; or -, the standard "
        "input. A file named twice is read once."
    ),
]
Keys: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--by", metavar="COLUMN", help="Slice by this column. Repeat to cross."),
]
Gold: TypeAlias = Annotated[str, typer.Option(metavar="COLUMN", help="The true label.")]
Preds: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN",
        help="The predicted label. Repeat for several models.",
        show_default="pred",
    ),
]
SetsOfKeys: TypeAlias = Literal["crossed", "each", "rollup", "cube"]
Long: TypeAlias = Annotated[
    bool, typer.Option("--long", help="Show a slice as two columns: names of keys, and values.")
]
Level: TypeAlias = Annotated[
    float, typer.Option(metavar="LEVEL", help="The level of the interval.")
]
HowCorrected: TypeAlias = Annotated[
    Correction, typer.Option(help="Of the p-values, for how many there are.")
]
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
Metrics: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        help="What to score slices with. Repeat for several; polars-mcc metrics lists them.",
        show_default="mcc",
    ),
]
OptionalLevel: TypeAlias = Annotated[
    float | None, typer.Option(metavar="LEVEL", help="Add an interval: 0.95 is usual.")
]
Positive: TypeAlias = Annotated[
    str | None,
    typer.Option(metavar="LABEL", help="The label that is positive, if gold is not Boolean."),
]
Depth: TypeAlias = Annotated[int, typer.Option(help="How many columns are crossed, at most.")]
MinTested: TypeAlias = Annotated[int, typer.Option(help="Slices of fewer rows are not tested.")]
Out: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Write to FILE (.parquet, .csv, .json, .ndjson or .md), whole or not."
    ),
]
Form: TypeAlias = Annotated[
    _files.Format, typer.Option("--format", help="Write in this format; a table is for reading.")
]


class _To(NamedTuple):
    """Where an answer goes: to a file, or else to the standard output; and how it is written."""

    out: Path | None
    form: _files.Format


@app.command()
def by(  # noqa: PLR0917 - typer makes options of them
    logs: Logs,
    by: Keys = None,
    gold: Gold = "gold",
    pred: Preds = None,
    weight: Weight = None,
    metric: Metrics = None,
    positive: Positive = None,
    ci: OptionalLevel = None,
    method: HowInterval = "score",
    cluster: Cluster = None,
    sets: Annotated[
        SetsOfKeys,
        typer.Option(help="Cross the keys, or take each, or their subsets, in SQL's words."),
    ] = "crossed",
    total: Annotated[bool, typer.Option("--total", help="Add all rows as one slice.")] = False,
    index: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The date or time that windows go by.")
    ] = None,
    window: Annotated[
        str | None, typer.Option(metavar="LENGTH", help="Score trailing windows, such as 7d.")
    ] = None,
    every: Annotated[
        str | None, typer.Option(metavar="LENGTH", help="How often there is a window, such as 1d.")
    ] = None,
    long: Long = False,
    where: Where = None,
    nulls: HowNulls = "drop",
    out: Out = None,
    form: Form = "table",
) -> None:
    """Score every slice of a prediction log.

    A row per slice: the rows scored (n), their Matthews correlation coefficient (mcc) or other
    metrics, its standard error and interval (with --ci), and the rows not scored because a label
    is null (n_null).

    Example: `polars-mcc by logs/ --by country --by device --filter "day > DATE '2026-03-01'"`
    """
    keys, preds = by or [], pred or ["pred"]

    def query(log: pl.LazyFrame) -> pl.LazyFrame:
        return polars_mcc.by(
            log,
            *keys,
            gold=gold,
            pred=one_or_several(preds),
            weight=weight,
            nulls=nulls,
            metrics=metric or "mcc",
            positive=_label(log, gold, positive),
            ci=ci,
            method=method,
            cluster=cluster,
            sets=sets,
            total=total,
            long=long,
            index=index,
            window=window,
            every=every,
        )

    _run(query, logs, [*keys, gold, *preds, weight, cluster, index], where, _To(out, form))


@app.command()
def metrics() -> None:
    """List the metrics that `by --metric` takes.

    What is from "positive" is of one class against the rest (--positive).
    """
    listed = polars_mcc.metrics().select("metric", "from", "range", "formula")
    typer.echo(_table(listed))


@app.command()
def score(  # noqa: PLR0917 - typer makes options of them
    logs: Logs,
    gold: Gold = "gold",
    pred: Preds = None,
    weight: Weight = None,
    metric: Metrics = None,
    positive: Positive = None,
    ci: OptionalLevel = None,
    method: HowInterval = "score",
    cluster: Cluster = None,
    where: Where = None,
    nulls: HowNulls = "drop",
    out: Out = None,
    form: Form = "table",
) -> None:
    """Score all rows of a prediction log.

    Example: `polars-mcc score logs/ --metric mcc --metric f1_macro --format json`
    """
    by(
        logs,
        gold=gold,
        pred=pred,
        weight=weight,
        metric=metric,
        positive=positive,
        ci=ci,
        method=method,
        cluster=cluster,
        where=where,
        nulls=nulls,
        out=out,
        form=form,
    )


@app.command()
def counts(  # noqa: PLR0917 - typer makes options of them
    logs: Logs,
    by: Keys = None,
    gold: Gold = "gold",
    pred: Preds = None,
    weight: Weight = None,
    where: Where = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE|STORE",
            help="Write to FILE (.parquet, .csv, .json, .ndjson or .md), whole or not; or keep "
            "the counts of each input in the folder STORE, and count only what it has not.",
        ),
    ] = None,
    checksum: Annotated[
        bool,
        typer.Option(
            "--checksum",
            help="Compare the contents of inputs with those in STORE, not their times.",
        ),
    ] = False,
    form: Form = "table",
) -> None:
    """Compress a prediction log into counts, a log of fewer rows: score it with --weight n.

    A STORE keeps the counts of each file, so that no file is read again: run it every night. What
    is new is added, what has changed is replaced, each row is counted once, whatever happens.

    Examples: `polars-mcc counts logs/ --by country --by day --out counts.parquet`,
    `polars-mcc counts logs/ --by country --by day --out store/` and
    `polars-mcc by store/ --weight n --by country`
    """
    keys, preds = by or [], pred or ["pred"]
    if out is not None and form == "table" and (not out.suffix or out.is_dir()):
        asked = _store.Asked(keys, gold, preds, weight, where)
        _keep(logs, out, asked, checksum=checksum)
        return
    if checksum:
        _say("--checksum is for a STORE: --out names a folder then")
        raise typer.Exit(2)

    def query(log: pl.LazyFrame) -> pl.LazyFrame:
        return polars_mcc.counts(log, *keys, gold=gold, pred=one_or_several(preds), weight=weight)

    _run(query, logs, [*keys, gold, *preds, weight], where, _To(out, form))


@app.command()
def classes(  # noqa: PLR0917 - typer makes options of them
    logs: Logs,
    by: Keys = None,
    gold: Gold = "gold",
    pred: Preds = None,
    weight: Weight = None,
    where: Where = None,
    nulls: HowNulls = "drop",
    out: Out = None,
    form: Form = "table",
) -> None:
    """Score every class of every slice, one against the rest.

    Example: `polars-mcc classes logs/ --by country --format csv`
    """
    keys, preds = by or [], pred or ["pred"]

    def query(log: pl.LazyFrame) -> pl.LazyFrame:
        return polars_mcc.classes(
            log, *keys, gold=gold, pred=one_or_several(preds), weight=weight, nulls=nulls
        )

    _run(query, logs, [*keys, gold, *preds, weight], where, _To(out, form))


@app.command()
def confusion(  # noqa: PLR0917 - typer makes options of them
    logs: Logs,
    by: Keys = None,
    gold: Gold = "gold",
    pred: Preds = None,
    weight: Weight = None,
    normalize: Annotated[
        Normalize | None,
        typer.Option(help="Shares of each gold label, of each predicted one, or of all."),
    ] = None,
    long: Annotated[bool, typer.Option("--long", help="Show a row per cell.")] = False,
    top: Annotated[
        int | None, typer.Option(help="Show so many confusions of each slice that cost most.")
    ] = None,
    where: Where = None,
    nulls: HowNulls = "drop",
    out: Out = None,
    form: Form = "table",
) -> None:
    """Show the confusion matrix of every slice, or the confusions that cost most.

    Example: `polars-mcc confusion logs/ --by country --top 5`
    """
    keys, preds = by or [], pred or ["pred"]

    def query(log: pl.LazyFrame) -> pl.LazyFrame:
        is_wide = not long and top is None
        return polars_mcc.confusion(
            log,
            *keys,
            gold=gold,
            pred=one_or_several(preds),
            weight=weight,
            labels=_labels(log, gold, preds) if is_wide else None,
            normalize=normalize,
            nulls=nulls,
            long=long,
            top=top,
        )

    _run(query, logs, [*keys, gold, *preds, weight], where, _To(out, form))


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
    ci: Level = 0.95,
    method: HowInterval = "score",
    cluster: Cluster = None,
    correction: HowCorrected = "bh",
    where: Where = None,
    nulls: HowNulls = "drop",
    out: Out = None,
    form: Form = "table",
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
            one_or_several(b),
            *keys,
            gold=gold,
            weight=weight,
            nulls=nulls,
            ci=ci,
            method=method,
            cluster=cluster,
            correction=correction,
        )

    _run(query, logs, [*keys, gold, a, *b, weight, cluster], where, _To(out, form))


@app.command()
def worst(  # noqa: PLR0917 - typer makes options of them
    logs: Logs,
    by: Annotated[
        list[str], typer.Option("--by", metavar="COLUMN", help="Look at this column. Repeat.")
    ],
    gold: Gold = "gold",
    pred: Preds = None,
    weight: Weight = None,
    depth: Depth = 2,
    min_n: MinTested = 30,
    top: Annotated[int | None, typer.Option(help="How many slices to show, at most.")] = None,
    rank: Annotated[Rank, typer.Option(help="What comes first.")] = "loss",
    ci: Level = 0.95,
    correction: HowCorrected = "bh",
    where: Where = None,
    nulls: HowNulls = "drop",
    out: Out = None,
    form: Form = "table",
) -> None:
    """Find the slices of a prediction log that fall behind the rest.

    A row per slice: its score and that of all other rows, their difference with its interval,
    the p-value and that corrected for all slices looked at, and how much better the log would
    score without the slice (loss).

    Example: `polars-mcc worst logs/ --by country --by device --by browser --top 10`
    """
    preds = pred or ["pred"]

    def query(log: pl.LazyFrame) -> pl.LazyFrame:
        return polars_mcc.worst(
            log,
            *by,
            gold=gold,
            pred=one_or_several(preds),
            weight=weight,
            nulls=nulls,
            depth=depth,
            min_n=min_n,
            top=top,
            rank=rank,
            ci=ci,
            correction=correction,
            long=can_be_long(by),
        )

    _run(query, logs, [*by, gold, *preds, weight], where, _To(out, form))


@app.command()
def drift(  # noqa: PLR0917 - typer makes options of them
    logs: Logs,
    before: Annotated[
        str, typer.Option(metavar="SQL", help="Whether a row is of the first period.")
    ],
    after: Annotated[
        str, typer.Option(metavar="SQL", help="Whether a row is of the second period.")
    ],
    by: Keys = None,
    gold: Gold = "gold",
    pred: Preds = None,
    weight: Weight = None,
    ci: Level = 0.95,
    method: HowInterval = "score",
    correction: HowCorrected = "bh",
    where: Where = None,
    nulls: HowNulls = "drop",
    out: Out = None,
    form: Form = "table",
) -> None:
    """Tell how the score of each slice has changed between two periods.

    Example: `polars-mcc drift logs/ --before "day < DATE '2026-03-15'" --after "day >= DATE
    '2026-03-15'" --by country`
    """
    keys, preds = by or [], pred or ["pred"]
    periods = [_sql("--before", before), _sql("--after", after)]

    def query(log: pl.LazyFrame) -> pl.LazyFrame:
        return polars_mcc.drift(
            log,
            *periods,
            *keys,
            gold=gold,
            pred=one_or_several(preds),
            weight=weight,
            nulls=nulls,
            ci=ci,
            method=method,
            correction=correction,
        )

    told_by = [name for period in periods for name in period.meta.root_names()]
    _run(query, logs, [*keys, gold, *preds, weight, *told_by], where, _To(out, form))


@app.command()
def curve(  # noqa: PLR0917 - typer makes options of them
    logs: Logs,
    by: Keys = None,
    gold: Gold = "gold",
    score: Annotated[
        str, typer.Option(metavar="COLUMN", help="How sure the model is that a row is positive.")
    ] = "score",
    positive: Positive = None,
    weight: Weight = None,
    thresholds: Annotated[
        int | None, typer.Option(help="At so many quantiles of the scores. Else at every score.")
    ] = None,
    best: Annotated[
        bool, typer.Option("--best", help="Only the best threshold of each slice, and one for all.")
    ] = False,
    where: Where = None,
    out: Out = None,
    form: Form = "table",
) -> None:
    """Score every threshold of a model that gives scores.

    Example: `polars-mcc curve logs/ --score probability --by country --best`
    """
    keys = by or []
    verb = polars_mcc.best_threshold if best else polars_mcc.curve

    def query(log: pl.LazyFrame) -> pl.LazyFrame:
        return verb(
            log,
            *keys,
            gold=gold,
            score=score,
            positive=_label(log, gold, positive),
            weight=weight,
            thresholds=thresholds,
        )

    _run(query, logs, [*keys, gold, score, weight], where, _To(out, form))


@app.command()
def check(  # noqa: PLR0917 - typer makes options of them
    logs: Logs,
    by: Keys = None,
    least: Annotated[
        float | None, typer.Option("--min", metavar="SCORE", help="The least score of a slice.")
    ] = None,
    no_worse_than: Annotated[
        str | None,
        typer.Option(metavar="COUNTS", help="A Parquet file of counts, of a baseline."),
    ] = None,
    min_n: Annotated[int, typer.Option(help="Slices of fewer rows are not judged.")] = 1,
    ci: Annotated[
        float | None,
        typer.Option(metavar="LEVEL", help="A slice fails if all of its interval is too low."),
    ] = None,
    gold: Gold = "gold",
    pred: Preds = None,
    weight: Weight = None,
    where: Where = None,
    nulls: HowNulls = "drop",
    out: Out = None,
    form: Form = "table",
) -> None:
    """Exit with code 1, and show the slices that fail, if one is not good enough.

    Example: `polars-mcc check logs/ --by country --min 0.6 --min-n 100`
    """
    keys, preds = by or [], pred or ["pred"]

    def query(log: pl.LazyFrame) -> pl.LazyFrame:
        baseline = None
        if no_worse_than is not None:
            baseline = _files.scan(_files.find([no_worse_than]), ())
        judged = polars_mcc.check(
            log,
            *keys,
            min=least,
            no_worse_than=baseline,
            min_n=min_n,
            ci=ci,
            gold=gold,
            pred=one_or_several(preds),
            weight=weight,
            nulls=nulls,
        )
        return judged.lazy()

    try:
        _run(query, logs, [*keys, gold, *preds, weight], where, _To(out, form), show=_passed)
    except polars_mcc.CheckError as error:
        typer.echo(_visible_lines(str(error)))
        raise typer.Exit(1) from None


@app.command()
def report(  # noqa: PLR0917 - typer makes options of them
    logs: Logs,
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="Write the page to FILE (.html), whole or not.")
    ],
    by: Annotated[
        list[str] | None,
        typer.Option("--by", metavar="COLUMN", help="Slice by this column. Repeat for others."),
    ] = None,
    gold: Gold = "gold",
    pred: Preds = None,
    weight: Weight = None,
    ci: Level = 0.95,
    cluster: Cluster = None,
    depth: Depth = 2,
    min_n: MinTested = 30,
    title: Annotated[str, typer.Option(help="What stands above the page.")] = TITLE,
    where: Where = None,
    nulls: HowNulls = "drop",
) -> None:
    """Write a report as one page of HTML: the scores, the worst slices, charts, confusions.

    The page needs no network, can be mailed, sorted, searched and printed. Several models are
    compared with the first.

    Example: `polars-mcc report logs/ --by country --by device --by day --out report.html`
    """
    keys, preds = by or [], pred or ["pred"]
    with _refusing(logs):
        if out.suffix != ".html":
            msg = f"cannot write '{out}': the name of a report must end in .html"
            raise ValueError(msg)
        _files.check_place(out)
        opened = _opened(logs, [*keys, gold, *preds, weight, cluster], where)
        made_by = {
            "command": shlex.join(["polars-mcc", *sys.argv[1:]]),
            "log": _listed(opened.found.files),
            "not read": _listed(opened.found.others),
            "filter": where,
        }
        page = written(
            opened.collect,
            keys,
            gold=gold,
            preds=preds,
            weight=weight,
            nulls=nulls,
            ci=ci,
            cluster=cluster,
            depth=depth,
            min_n=min_n,
            title=title,
            made_by={what: text for what, text in made_by.items() if text},
        )
        _files.write_whole(out, page.encode)
    _say_what_is_not_read(opened.found)
    _say(f"a report is written to {out}")


def _listed(files: list[str]) -> str:
    more = [f"and {len(files) - _LISTED:,} more"] if len(files) > _LISTED else []
    return "\n".join([*files[:_LISTED], *more])


def _labels(log: pl.LazyFrame, gold: str, preds: list[str]) -> list[object] | None:
    """The labels that occur, which make the columns of a matrix; None if their dtype knows them."""
    read_log = read(log, [], gold, one_or_several(preds), None, answers=())
    if known_labels(read_log.labels) is not None:
        return None
    return read_log.distinct_labels().collect().to_series().to_list()


def _label(log: pl.LazyFrame, gold: str, text: str | None) -> object:
    """A label, in the dtype of the gold labels."""
    dtype: pl.DataType = log.collect_schema().get(gold, pl.String())
    if isinstance(dtype, (pl.List, pl.Array)):
        dtype = pl.Series(dtype=dtype).explode().dtype
    if text is None:
        return None
    [label] = pl.Series([text]).cast(dtype, strict=False)
    if label is None:
        msg = f"--positive {text!r} is no label: gold '{gold}' is {dtype}"
        raise ValueError(msg)
    return label


def _sql(option: str, text: str) -> pl.Expr:
    try:
        return pl.sql_expr(text)
    except pl.exceptions.PolarsError as error:
        _say(f"{option} {text!r}: {reason(error)}")
        raise typer.Exit(2) from None


def _passed(judged: pl.DataFrame) -> str:
    passes = (judged["verdict"] == "passes").sum()
    others = judged.height - passes
    return f"{passes} slices pass" + (f", {others} are not judged" if others else "")


@dataclass(frozen=True)
class _Opened:
    """The logs that a command reads."""

    found: _files.Logs
    columns: list[str]
    where: pl.Expr | None

    @cached_property
    def rows(self) -> pl.LazyFrame:
        """The rows for which the filter holds."""
        log = _files.scan(self.found, self.columns)
        return log if self.where is None else log.filter(self.where)

    @cached_property
    def rows_of_files(self) -> list[int | None]:
        """How many they are in each file, as far as that is known."""
        return _files.rows_of_files(self.found, self.where)

    def collect(self, about: str, query: Callable[[pl.LazyFrame], pl.LazyFrame]) -> pl.DataFrame:
        """The answer of a query; on a terminal, with a progress bar meanwhile."""
        rows = self.rows
        with _files.named_if_corrupt(self.found, self.columns):
            if not sys.stderr.isatty():
                return query(rows).collect()
            bar = Bar(self.rows_of_files, title=about, console=Console(stderr=True))
            with closing(bar):
                return collect(rows, query, bar)


def _opened(logs: list[str], read: Sequence[str | None], where: str | None) -> _Opened:
    found = _files.find(logs)
    rows = None if where is None else pl.sql_expr(where)
    columns = [name for name in read if name is not None]
    if rows is not None:
        columns += rows.meta.root_names()
    stores = [log for log in logs if _store.is_store(log)]
    if stores and "n" not in columns:
        msg = f"'{stores[0]}' has counts, whose rows stand for n rows each: add --weight n"
        raise ValueError(msg)
    return _Opened(found, columns, rows)


@contextmanager
def _refusing(logs: list[str], interrupted: str = "nothing is written") -> Iterator[None]:
    """Say in a line why there is no answer."""
    try:
        yield
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError) as error:
        named = logs[0] if len(logs) == 1 else f"{logs[0]} and {len(logs) - 1} more"
        _say(f"{named}: {reason(error)}")
        raise typer.Exit(2) from None
    except ModuleNotFoundError as error:
        _say(str(error))
        raise typer.Exit(2) from None
    except KeyboardInterrupt:
        _say(f"interrupted; {interrupted}")
        raise typer.Exit(130) from None


def _keep(logs: list[str], folder: Path, asked: _store.Asked, *, checksum: bool) -> None:
    """Keep the counts of inputs in a store, and say how many were counted."""
    with _refusing(logs, "what is counted is kept: run it again for the rest"):
        found = _files.find(logs)
        with ExitStack() as stack:
            note: Callable[[int], None] = _store.no_note
            if sys.stderr.isatty():
                bar = Bar(_files.rows_of_files(found, None), console=Console(stderr=True))
                note = stack.enter_context(closing(bar)).advance
            done = _store.kept(found, folder, asked, checksum=checksum, note=note)
    _say_what_is_not_read(found)
    number = dict(done["status"].value_counts().iter_rows())
    _say(
        f"{folder}: {', '.join(f'{number.get(status, 0)} {status}' for status in _store.STATUSES)}"
    )


def _run(  # noqa: PLR0917 - what is asked, of what, and where it goes
    query: Callable[[pl.LazyFrame], pl.LazyFrame],
    logs: list[str],
    read: Sequence[str | None],
    where: str | None,
    to: _To,
    show: Callable[[pl.DataFrame], str] | None = None,
) -> None:
    """Ask the query of the logs, and show or write the answer, or say why there is none."""
    with _refusing(logs):
        if to.out is not None:
            _files.check_out(to.out, to.form)
        opened = _opened(logs, read, where)
        answer = opened.collect("", query)
        if to.out is not None:
            _files.write(answer, to.out, to.form)
    _say_what_is_not_read(opened.found)
    if to.out is None:
        _show(answer, to.form, show or _table)
    else:
        _say(f"{answer.height} rows written to {to.out}")
        if _files.form_of(to.out, to.form) == "csv" and (formulas := _files.formulas(answer)):
            first, *more = formulas
            others = f" and {len(more)} more" if more else ""
            _say(f"{to.out}: written as it is, but a spreadsheet would run {first!r}{others}")


def _show(answer: pl.DataFrame, form: _files.Format, table: Callable[[pl.DataFrame], str]) -> None:
    """Write to the standard output: as it is to a file or a program, visible to a terminal."""
    if form == "table":
        typer.echo(table(answer))
        return
    data = _files.encoded(answer, form)
    if not _is_terminal():
        typer.echo(data, nl=False)
    elif form == "parquet":
        _say("a terminal cannot show parquet: add --out FILE, or > FILE")
        raise typer.Exit(2)
    else:
        typer.echo(_visible_lines(data.decode()), nl=False)


def _is_terminal() -> bool:
    return sys.stdout.isatty()


def _table(answer: pl.DataFrame) -> str:
    """All rows and columns; what is in a cell stays in its line."""
    with pl.Config(tbl_rows=-1, tbl_cols=-1, fmt_str_lengths=100, tbl_width_chars=-1):
        return _visible_lines(str(_files.in_lines(answer, {"\n": r"\n"})))


def _say_what_is_not_read(found: _files.Logs) -> None:
    if found.others:
        _say(f"not read, as not {found.kind} files: {', '.join(found.others)}")


def _say(message: str) -> None:
    typer.echo(f"polars-mcc: {_visible(message)}", err=True)


def _visible_lines(text: str) -> str:
    return "\n".join(map(_visible, text.split("\n")))


def _visible(text: str) -> str:
    """A line in which the characters that a terminal would obey are written as escapes."""

    def visible(character: str) -> str:
        is_obeyed = category(character) in _CONTROLS or bidirectional(character) in _REORDERING
        return ascii(character)[1:-1] if is_obeyed else character

    return "".join(map(visible, text))
