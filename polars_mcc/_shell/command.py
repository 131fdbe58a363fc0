"""The command line: one command per verb, built from the signature and docstring of the verb."""

from __future__ import annotations

import difflib
import inspect
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

import cyclopts
import polars as pl
from cyclopts import App, Parameter
from rich.console import Console

from polars_mcc._log.choices import ReportFormat
from polars_mcc._log.columns import MissingColumn
from polars_mcc._log.messages import in_shell
from polars_mcc._log.plan_errors import reason
from polars_mcc._report.written import written
from polars_mcc._scores import registry
from polars_mcc._search.listed import MOST
from polars_mcc._search.words import rows_in_words, shortened, summed_up
from polars_mcc._shell import inputs, outputs
from polars_mcc._shell.asked import Asked
from polars_mcc._shell.keep import kept
from polars_mcc._shell.keeping import STATUSES, Status
from polars_mcc._shell.options import Option, docstring_of, examples_of, options_of
from polars_mcc._shell.spoken import as_help
from polars_mcc._shell.terminal import details, open_streams, say, show, table, visible_lines
from polars_mcc._show.progress import Bar
from polars_mcc._store.paths import is_url
from polars_mcc._verbs.check import CheckError
from polars_mcc._version import __version__
from polars_mcc.prediction_log import PredictionLog

_LISTED = 20  # maximum number of file names that are shown

_METAVARS = {"column": "COLUMN", "key": "COLUMN", "label": "LABEL", "frame": "COUNTS"}
_METAVARS |= {"metric": "METRIC", "thresholds": "NUMBER"}
_HAS_METAVARS = "metavar" in inspect.signature(Parameter).parameters  # from cyclopts 5 on

Logs = Annotated[
    str,
    Parameter(
        help="What to read: files, folders, quoted globs, URLs such as s3://, or - for the "
        "standard input. Files are Parquet, CSV, NDJSON or IPC. A folder may also be a Delta "
        "table, an Iceberg table or a store of counts. A file named twice is read once.\n\n"
        "Options that take a column accept a name or SQL: --pred 'score >= 0.5', or --by "
        "\"date_trunc('week', ts) AS week\".\n\n"
        "--by also accepts bins(age, 5), and except in worst and contrast each(a, b), "
        "rollup(a, b), cube(a, b), sets((a, b), a) and trailing(day, '7d').",
        allow_leading_hyphen=True,
    ),
]
Filter = Annotated[
    str | None,
    Parameter(
        help="Score only the rows where this SQL condition is true, such as \"country = 'DE'\".",
        name="--filter",
    ),
]
_AS_A_WHOLE = "An old file is replaced only when the new one is complete."
_TO_A_FILE = f"Write the answer to a file (.parquet, .csv, .json, .ndjson or .md). {_AS_A_WHOLE}"
Out = Annotated[Path | None, Parameter(help=_TO_A_FILE)]
OutOrStore = Annotated[
    str | None,
    Parameter(
        help=f"{_TO_A_FILE} Or keep the counts in a store: a folder or a URL. Each run then "
        "counts only new inputs, and replaces the counts of changed inputs. Every row is counted "
        "once, so you can run the command every night."
    ),
]
OutReport = Annotated[
    Path,
    Parameter(
        help=f"Write the report to a file: a page (.html), or its text (.md, .json). {_AS_A_WHOLE}"
    ),
]
Form = Annotated[
    outputs.Format,
    Parameter(
        help="The output format. With table or wide, the suffix of --out decides. The table of "
        "worst, compare, contrast and drift leaves out some columns; wide shows all. table, wide "
        "and markdown round numbers; the other formats keep every digit.",
        name="--format",
    ),
]
Forget = Annotated[
    bool,
    Parameter(
        help="For a store: drop the counts of inputs that no longer exist. Without this option, "
        "their counts stay, and the inputs are listed."
    ),
]
History = Annotated[
    int | None,
    Parameter(
        help="For a store: for how many days earlier versions can be read, before their files are "
        "deleted. Without this option: as before; 30 days for a new store."
    ),
]

app = App(
    name="polars-mcc",
    help="Score every slice of a prediction log with the Matthews correlation coefficient (MCC).",
    help_format="markdown",
    version=lambda: f"polars-mcc {__version__} on polars {pl.__version__}",
    default_parameter=Parameter(negative=(), negative_iterable=()),
    suppress_keyboard_interrupt=False,  # `polars_mcc.__main__` says it.
)
app.register_install_completion_command()


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line.

    Raises:
        SystemExit: Always. The code is 1 if a check fails, and 2 after an error.
    """
    open_streams()
    try:
        app(arguments, print_error=False, exit_on_error=False)
    except cyclopts.CycloptsError as error:
        say(str(error))
        raise SystemExit(2) from None


VERBS: Mapping[str, Callable[..., Any]] = {
    name: verb
    for name, verb in vars(PredictionLog).items()
    if not name.startswith("_") and name not in {"engine_counts", "from_store"}
}
"""The verbs that are commands: every verb that takes a Polars frame."""


def _asked(
    asked: Asked,
    *,
    out: Out = None,
    form: Form = "table",
    as_text: Callable[[pl.DataFrame], str] = table,
    shown: Callable[[pl.DataFrame], pl.DataFrame] | None = None,
) -> None:
    """Write the answer of a verb to a file, or print it; `shown` selects what to print or write."""
    shown = shown or (lambda answer: answer)
    if out is None:
        answer = shown(asked.collect("", asked.answer))
        _say_of(asked)
        left_out = details(answer, asked.verb.__name__) if form == "table" else []
        _print(answer.drop(left_out), form, as_text)
        if left_out and answer.height:
            columns = "1 column is" if len(left_out) == 1 else f"{len(left_out)} columns are"
            say(f"{columns} left out; --format wide shows all")
        return
    form = outputs.form_of(out, form)
    outputs.check_place(out, asked.found.places.values())
    answer = shown(asked.collect("", asked.answer))
    outputs.write_whole(out, lambda: outputs.encoded(answer, form))
    _say_of(asked)
    say(f"{rows_in_words(answer.height)} written to {out}")
    if form == "csv" and (formulas := outputs.formulas(answer)):
        first, *more = formulas
        others = f" and {len(more)} more" if more else ""
        say(f"{out}: warning: a spreadsheet would run {first!r}{others} as a formula")


def _check(asked: Asked, *, out: Out = None, form: Form = "table") -> None:
    """Print the slices that fail the check, and exit with code 1."""
    try:
        _asked(asked, out=out, form=form, as_text=_passed if form == "table" else table)
    except CheckError as error:
        show(visible_lines(str(error)))
        raise SystemExit(1) from None


def _worst(asked: Asked, *, out: Out = None, form: Form = "table") -> None:
    """Say how many slices were tested, even if none is listed."""

    def shown(answer: pl.DataFrame) -> pl.DataFrame:
        preds = asked.log.meaning.preds
        has_models = preds is not None and preds.is_several
        metric = registry.one(asked.options["metric"]).name
        say(summed_up(answer, metric, asked.options["to"], has_models=has_models))
        shown = answer if has_verdicts else shortened(answer, has_models=has_models)
        return shown if top is None else shown.head(top)

    top = asked.options["top"]
    if top is not None and 1 <= top <= MOST:  # The summary counts all slices.
        asked.options["top"] = None
    has_verdicts = asked.options["verdicts"]
    asked.options["verdicts"] = True
    asked.options["long"] |= out is None and form in outputs.IN_TERMINAL
    _asked(asked, out=out, form=form, shown=shown)


def _counts(
    asked: Asked,
    *,
    out: OutOrStore = None,
    forget: Forget = False,
    history: History = None,
    form: Form = "table",
) -> None:
    """Write or print counts; if `out` is a folder or URL, keep the counts of each input there."""
    if out is None or not _is_store(out, form):
        if forget or history is not None:
            msg = "--forget and --history need a store: pass a folder or URL to --out"
            raise ValueError(msg)
        _asked(asked, out=None if out is None else Path(out), form=form)
        return
    done_is_kept = "the store keeps what was counted; run it again for the rest"
    with _refusing(asked.logs, out, done_is_kept):
        asked = replace(asked, may_be_gone=forget)
        with ExitStack() as stack:

            def watch(files: inputs.Logs) -> Callable[[int], None]:
                if not sys.stderr.isatty():
                    return lambda _: None
                bar = Bar(inputs.rows_of_files(files), console=Console(stderr=True))
                return stack.enter_context(closing(bar)).advance

            done = kept(
                asked,
                out,
                forget=forget,
                history=history,
                watch=watch,
                told=lambda one: say(f"{out}: {one}"),
            )
    _say_what_is_not_read(asked.found)
    for status, what in _TOLD_OF_INPUTS.items():
        files = done.filter(status=status)["input"].to_list()
        if files:
            say(f"{what}:")
            for line in _listed(files):
                say(f"  {line}")
    number = dict(done["status"].value_counts().iter_rows())
    always = ("counted", "replaced", "unchanged")
    numbers = {one: number.get(one, 0) for one in STATUSES if one in always or one in number}
    say(f"{out}: {', '.join(f'{many} {status}' for status, many in numbers.items())}")


_TOLD_OF_INPUTS: Mapping[Status, str] = {
    "gone": "gone, but still counted (use --forget to drop their counts)",
    "forgotten": "gone, and their counts are dropped",
}


def _is_store(out: str, form: outputs.Format) -> bool:
    """Whether `out` is a store (a folder or URL), and not a file."""
    if form not in outputs.IN_TERMINAL:
        return False
    if is_url(out) and Path(out).suffix:
        msg = f"cannot write '{out}': --out is a local file, or the URL of a store without a suffix"
        raise ValueError(msg)
    return is_url(out) or Path(out).is_dir() or not Path(out).suffix


def _report(asked: Asked, *, out: OutReport) -> None:
    """Write a report in the format that the suffix of `out` names."""
    form = out.suffix.removeprefix(".")
    if form not in get_args(ReportFormat):
        endings = ", ".join(f".{one}" for one in get_args(ReportFormat))
        msg = f"cannot write '{out}': the name of a report must end in one of {endings}"
        raise ValueError(msg)
    asked.options["format"] = form
    outputs.check_place(out, asked.found.places.values())
    made_by = {
        "command": shlex.join(["polars-mcc", *sys.argv[1:]]),
        "log": "\n".join(_listed(asked.found.files)),
        "not read": "\n".join(_listed(asked.found.others)),
        "filter": asked.filter,
    }
    told = {what: text for what, text in made_by.items() if text}
    page = written(asked.log, asked.keys, asked.collect, **asked.options, made_by=told)
    outputs.write_whole(out, page.encode)
    _say_of(asked)
    say(f"report written to {out}")


def _parameter(option: Option) -> Parameter:
    """The flag, the help and the metavar of an option."""
    what = "several keys" if option.role == "slice" else "several"
    several = f" Repeat {option.flag} for {what}." if option.is_list else ""
    told: dict[str, Any] = {"metavar": _METAVARS.get(option.role)} if _HAS_METAVARS else {}
    if isinstance(option.default_in_shell, list):
        told["show_default"] = " ".join
    return Parameter(name=option.flag, help=option.words + several, negative=(), **told)


def _made(name: str, run: Callable[..., None]) -> None:
    """Add the command of a verb to the app; `run` writes or prints the answer."""
    verb = VERBS[name]
    of_shell = [*inspect.signature(run, eval_str=True).parameters.values()][1:]
    of_shell = [one for one in of_shell if get_origin(one.annotation) is Annotated]

    known = [*options_of(verb), *options_of(PredictionLog.__init__)]

    def command(*logs: Logs, filter: Filter = None, **typed: Any) -> None:  # noqa: A002, ANN401
        for log in logs:
            if log.startswith("-") and log != inputs.STDIN:
                near = difflib.get_close_matches(log, [option.flag for option in known], n=1)
                hint = f"; did you mean {near[0]}?" if near else "."
                say(f"there is no option {log}{hint} --help lists the options.")
                raise SystemExit(2)
        given = {one.name: typed.pop(one.name) for one in of_shell if one.name in typed}
        asked = Asked(verb, logs, filter, typed)
        with _refusing(logs, given.get("out")):
            run(asked, **given)

    [logs, of_log, _] = inspect.signature(command, eval_str=True).parameters.values()
    options = [
        inspect.Parameter(
            option.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=option.default_in_shell,
            annotation=Annotated[option.hint, _parameter(option)],
        )
        for option in known
        if option.name != "format"  # The suffix of --out decides.
    ]
    parameters = [logs, *options, of_log, *of_shell]
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {one.name: one.annotation for one in parameters}
    examples = "\n\n".join(f"`{example}`" for example in examples_of(verb))
    exits = [_EXITS] if run is _check else []
    short = as_help(docstring_of(verb).short_description or "")
    command.__doc__ = "\n\n".join([short, *exits, "For example:", examples])
    app.command(command, name=name.replace("_", "-"))


_EXITS = (
    "The exit code is 0 if all slices pass, 1 if a slice fails or none can be judged, and 2 after "
    "an error."
)
_SPECIAL: Mapping[str, Callable[..., None]]
_SPECIAL = {"counts": _counts, "check": _check, "report": _report, "worst": _worst}
for _name in VERBS:
    _made(_name, _SPECIAL.get(_name, _asked))


@app.command
def metrics() -> None:
    """List the metrics that `--metric` accepts.

    Metrics with "positive" in the column "from" score one class against the rest (see --positive).
    """
    show(table(registry.metrics().select("metric", "from", "range", "formula")))


def _passed(judged: pl.DataFrame) -> str:
    """How many slices pass, and between which scores they are: with `ci`, some may be below."""
    passing = judged.filter(verdict="passes").fill_nan(None)
    others = judged.height - passing.height
    passed = "1 slice passes" if passing.height == 1 else f"{passing.height} slices pass"
    names = ["diff"] if "diff" in judged.columns else registry.metrics()["metric"]
    found = passing.select(name for name in names if name in passing.columns)
    scores = ", ".join(
        f"{one.name} {' to '.join(dict.fromkeys(map(_number, (one.min(), one.max()))))}"
        for one in found.iter_columns()
        if one.count()
    )
    return ": ".join(filter(None, [passed, scores])) + (f"; {others} not judged" if others else "")


def _number(value: Any) -> str:  # noqa: ANN401 - of any column
    return f"{value:.3f}" if isinstance(value, float) else f"{value:,}"


def _listed(files: list[str]) -> list[str]:
    more = [f"and {len(files) - _LISTED:,} more"] if len(files) > _LISTED else []
    return [*files[:_LISTED], *more]


@contextmanager
def _refusing(
    logs: Sequence[str],
    out: object,
    interrupted: str = "nothing is written",
) -> Iterator[None]:
    """Print an expected error as one line, and exit with code 2 (130 after Ctrl-C)."""
    try:
        yield
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError) as error:
        what = in_shell(reason(error))
        places = [str(one).rstrip("/") for one in (*logs, out) if one]
        if isinstance(error, MissingColumn):  # A column may be called as a log is.
            places = []
        more = f" and {len(logs) - 1} more" if len(logs) > 1 else ""
        # No prefix where the message names a log or the output itself.
        is_named = any(f"'{place}{end}" in what for place in places for end in "'/")
        say(what if is_named or not logs else f"{logs[0]}{more}: {what}")
        raise SystemExit(2) from None
    except ModuleNotFoundError as error:
        say(str(error))
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        say(f"interrupted; {interrupted}")
        raise SystemExit(130) from None


def _print(
    answer: pl.DataFrame, form: outputs.Format, as_text: Callable[[pl.DataFrame], str]
) -> None:
    """Write to the standard output; on a terminal, control characters become escapes."""
    if form in outputs.IN_TERMINAL:
        show(as_text(answer))
        return
    data = outputs.encoded(answer, form)
    if not sys.stdout.isatty():
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
    elif form == "parquet":
        say("a terminal cannot show parquet: use --out FILE, or > FILE")
        raise SystemExit(2)
    else:
        sys.stdout.write(visible_lines(data.decode()))


def _say_of(asked: Asked) -> None:
    """Say which files were not read, and what makes every score 0 or 0/0."""
    _say_what_is_not_read(asked.found)
    for sentence in asked.told_of_labels():
        say(in_shell(sentence))


def _say_what_is_not_read(found: inputs.Logs) -> None:
    if found.others:
        say(f"not read (not {found.kind.name} files): {', '.join(found.others)}")
