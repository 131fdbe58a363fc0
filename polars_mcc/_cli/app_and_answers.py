"""The app of the command line: its commands, from a typed log to an output and an exit code."""

from __future__ import annotations

import difflib
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial, wraps
from itertools import chain
from typing import Any

import polars as pl
from cyclopts import App, Parameter

from polars_mcc._base.errors_and_warnings import PredictionLogWarning, reason
from polars_mcc._base.message_parts import in_shell, of_error, option, said
from polars_mcc._base.values_as_text_or_markdown import rows_in_words
from polars_mcc._base.visible_text import say, visible_lines
from polars_mcc._cli import outputs
from polars_mcc._cli.shared_options import OutputOptions
from polars_mcc._counts.label_hashes import Seen, seen
from polars_mcc._counts.warnings_on_labels_and_keys import LogLabels, key_is_gold, remarks
from polars_mcc._counts.warnings_on_missing_labels import seldom_of_late
from polars_mcc._frame.missing_and_likely_columns import MissingColumn
from polars_mcc._inputs.find_files import TOLD_BY_FIRST_ROWS
from polars_mcc._inputs.formats import SEPARATORS, STDIN
from polars_mcc._inputs.log_from_files import TypedLog
from polars_mcc._inputs.paths_and_settings import slashed
from polars_mcc._inputs.read_files import Logs
from polars_mcc._inputs.spelling_in_files import spelling_warnings
from polars_mcc._metrics.registry import NoPositiveError, needs_two_classes
from polars_mcc._version import __version__

app = App(
    name="polars-mcc",
    help="Score every slice of a prediction log with the Matthews correlation coefficient (MCC).",
    help_format="markdown",
    version=lambda: f"polars-mcc {__version__} on polars {pl.__version__}",
    default_parameter=Parameter(negative=(), negative_iterable=()),
    suppress_keyboard_interrupt=False,  # `__main__` says it.
)
app.register_install_completion_command()


def command(run: Callable[..., None]) -> Callable[..., None]:
    """Make a function a command of the app. It prints an expected error as one line."""
    name = run.__name__.replace("_", "-")

    @wraps(run)
    def refusing_errors(*logs: str, **options: Any) -> None:  # noqa: ANN401 - of any command
        for log in logs:
            if log.startswith("-") and log != STDIN:
                known = [
                    flag
                    for argument in app[name].assemble_argument_collection()
                    for flag in argument.names
                ]
                near = difflib.get_close_matches(log, known, n=1)
                hint = f"; did you mean {near[0]}?" if near else "."
                say(f"there is no option {log}{hint} --help lists the options.")
                raise SystemExit(2)
        out = options.get("out") or getattr(options.get("output"), "out", None)
        with errors_as_lines(logs, out):
            run(*logs, **options)

    app.command(refusing_errors, name=name)
    return run


_MAX_LISTED = 20  # maximum number of file names that are shown


def run_verb(
    verb: Callable[..., Any],
    log: TypedLog,
    output: OutputOptions,
    *,
    as_text: Callable[[pl.DataFrame], str] = outputs.terminal_table,
    shown: Callable[[pl.DataFrame], pl.DataFrame] = lambda rows: rows,
    reads: Sequence[str | None] = (),
    **options: Any,  # noqa: ANN401 - of any verb
) -> pl.DataFrame:
    """Write the answer of a verb to a file, or print it; `shown` selects what to print or write.

    `reads` are other files that are read. Returns what was written or printed.
    """
    out, form, name = output.out, str(output.format), verb.__name__
    if out is not None:
        form = outputs.format_of_file(out, form, name)
        outputs.check_writable(out, log, [*reads, *options.values()])
        as_file: Callable[[pl.DataFrame, str], bytes] = outputs.as_bytes
        if form in outputs.PICTURES:
            from polars_mcc._cli.pictures import picture  # noqa: PLC0415 - altair is optional

            as_file = partial(picture, name, log, options)
    is_check = name == "check"
    with seen(log.log.roles.positive_label) as labels:
        frame = log.collect("", lambda rows: _call(verb, log, rows, options), is_lazy=not is_check)
    frame = shown(frame)
    if out is not None:
        outputs.write_whole(out, lambda: as_file(frame, form))
    say_warnings(log, options, labels, is_check=is_check)
    if out is None:
        left_out = outputs.hidden_columns(frame, name) if form == "table" else []
        _print(frame, form, as_text, left_out)
        return frame
    say(f"{rows_in_words(frame.height)} written to {out}")
    if form == "csv" and (formulas := outputs.run_as_formulas(frame)):
        first, *further = formulas
        and_more = f" and {len(further)} more" if further else ""
        say(f"{out}: warning: a spreadsheet would run {first!r}{and_more} as a formula")
    return frame


def _call(
    verb: Callable[..., Any], log: TypedLog, rows: pl.LazyFrame, options: Mapping[str, Any]
) -> Any:  # noqa: ANN401 - of any verb
    """The answer of a verb for these rows of a log."""
    try:
        with warnings.catch_warnings():  # `say_warnings` says it later.
            warnings.simplefilter("ignore", PredictionLogWarning)
            return verb(log.log.with_frame(rows), *log.keys, **options)
    except NoPositiveError as error:
        labels = LogLabels.of(log.log.with_frame(rows)).in_words
        if not labels:
            raise
        msg = said(of_error(error), f". This log has the labels {labels}")
        raise NoPositiveError(msg) from None


def _print(
    frame: pl.DataFrame,
    form: str,
    as_text: Callable[[pl.DataFrame], str],
    left_out: Sequence[str],
) -> None:
    """Write to the standard output; on a terminal, control characters become escapes."""
    if form in outputs.IN_TERMINAL:
        outputs.show(as_text(frame.drop(left_out)))
        if left_out and frame.height:
            columns = "1 column is" if len(left_out) == 1 else f"{len(left_out)} columns are"
            say(f"{columns} left out; --format wide shows all")
        return
    data = outputs.as_bytes(frame, form)
    if not sys.stdout.isatty():
        outputs.write(data)
    elif form == "parquet":
        say("a terminal cannot show parquet: use --out FILE, or > FILE")
        raise SystemExit(2)
    else:
        outputs.show(visible_lines(data.decode()).rstrip("\n"))


def say_warnings(
    log: TypedLog, options: Mapping[str, Any], labels: Seen, *, is_check: bool = False
) -> None:
    """Say which files were not read, and what makes scores wrong, 0 or 0/0.

    `labels` are the counted ones. `check` itself refuses scores that are 0 or 0/0.
    """
    say_hidden_files(log.inputs)
    say_spellings(log)
    for sentence in log.about_ids(labels.labelled):
        say(sentence)
    sides = LogLabels.of(log.log, log.apart)
    if is_check:
        by_day = seldom_of_late(log.log, lambda query: query(log.rows).collect(engine="streaming"))
        sentences = chain(remarks(sides, labels, is_sound=True), by_day)
    else:
        about_keys = key_is_gold(log.log, log.keys) if needs_two_classes(options) else ()
        needs_two = needs_two_classes(options, or_positive=True)
        sentences = chain(about_keys, remarks(sides, labels, of_two_classes=needs_two))
    for sentence in sentences:
        say(in_shell(sentence))


def say_spellings(log: TypedLog) -> None:
    """Say how a CSV file spells labels and keys, if reading it changes them."""
    for sentence in spelling_warnings(log):
        say(sentence)


def say_hidden_files(logs: Logs) -> None:
    """Say which hidden files in the folders may be logs."""
    if logs.hidden:
        say(f"not read (hidden): {', '.join(first_files(logs.hidden))}")


def first_files(files: Sequence[str]) -> list[str]:
    """The first files, and how many more there are."""
    and_more = [f"and {len(files) - _MAX_LISTED:,} more"] if len(files) > _MAX_LISTED else []
    return [*files[:_MAX_LISTED], *and_more]


@contextmanager
def errors_as_lines(
    logs: Sequence[str], out: object, interrupted: str = "nothing is written"
) -> Iterator[None]:
    """Print an expected error as one line, and exit with code 2 (130 after Ctrl-C)."""
    try:
        yield
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError) as error:
        what = in_shell(reason(error))
        if isinstance(error, MissingColumn):
            what += _hint_at_format(logs, error.schema)
        # A column may be called as a log is.
        typed = () if isinstance(error, MissingColumn) else filter(None, (*logs, out))
        paths = [name.rstrip("/") for path in map(str, typed) for name in (path, slashed(path))]
        and_more = f" and {len(logs) - 1} more" if len(logs) > 1 else ""
        # No prefix where the message names a log or the output itself.
        is_named = any(f"'{path}{end}" in what for path in paths for end in "'/")
        first = re.match(r"'([^']+)'(: )?", what)  # Labels and costs have files of their own.
        is_named |= first is not None and bool(
            first[2] or os.path.exists(first[1])  # noqa: PTH110 - False if it is forbidden
        )
        say(what if is_named or not logs else f"{logs[0]}{and_more}: {what}")
        raise SystemExit(2) from None
    except ModuleNotFoundError as error:
        say(str(error))
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        say(f"interrupted; {interrupted}")
        raise SystemExit(130) from None


def _hint_at_format(logs: Sequence[str], names: Iterable[str]) -> str:
    """A hint at columns that come late in JSON lines, or that another character separates."""
    if any(re.search(r"\.(ndjson|jsonl)\b", log, re.IGNORECASE) for log in logs):
        return f" If the column comes later: {TOLD_BY_FIRST_ROWS}"
    separator = next((mark for mark in SEPARATORS for name in names if mark in name), None)
    if separator is None or not any(re.search(r"\.[ct]sv\b", log, re.IGNORECASE) for log in logs):
        return ""
    return (
        f" If {separator!r} separates the columns, add {in_shell(option('separator', separator))}"
    )
