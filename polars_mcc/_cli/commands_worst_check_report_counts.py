"""Commands that search, gate, report and count: `worst`, `check`, `report`, `counts`."""

from __future__ import annotations

import logging
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import wraps
from logging.handlers import BufferingHandler
from pathlib import Path
from typing import Any, Literal, get_args

import polars as pl
from cyclopts import Parameter

from polars_mcc._base import allowed_values, defaults
from polars_mcc._base.message_parts import in_shell
from polars_mcc._base.visible_text import say, visible_lines
from polars_mcc._cli import app_and_answers, outputs, shared_options
from polars_mcc._cli.app_and_answers import command, errors_as_lines, run_verb
from polars_mcc._counts.label_hashes import seen
from polars_mcc._inputs import read_files
from polars_mcc._inputs.find_files import naming_files
from polars_mcc._inputs.log_from_files import TypedLog, or_none
from polars_mcc._inputs.paths_and_settings import is_url
from polars_mcc._report.report_data import ReportSettings
from polars_mcc._report.write_report import write_report
from polars_mcc._store.count_and_commit import STATUSES, keep
from polars_mcc._verbs.check import LOGGER, CheckError
from polars_mcc._verbs.counts_and_engine_counts import counts as counts_of
from polars_mcc._worst.failures_in_words import LONGEST_LIST, summed_up
from polars_mcc.prediction_log import PredictionLog


@command
def check(
    *logs: shared_options.LogPaths,
    sliced: shared_options.LogAndKeys = shared_options.LogAndKeys(),
    min: list[str] | None = None,  # noqa: A002 - the name of the option
    max: list[str] | None = None,  # noqa: A002 - likewise
    metric: str = defaults.METRIC,
    no_worse_than: str | None = None,
    max_gap: list[str] | None = None,
    min_ratio: list[str] | None = None,
    min_n: int | None = None,
    ci: float | None = None,
    false_alarms: str | None = None,
    correction: Literal[allowed_values.Correction, "none"] = defaults.CHECK_CORRECTION,
    output: shared_options.OutputOptions = shared_options.OutputOptions(),
) -> None:
    """Raise an error if a slice misses a threshold or is worse than a baseline: a release gate.

    The exit code is 0 if all slices pass, 1 if a slice fails or none can be judged, and 2 after an
    error. The answer has every slice with its verdict, also if a slice fails.

    For example:

    `polars-mcc check logs/ --by country --min 0.6 --min-n 100`

    `polars-mcc check logs/ --by country --min mcc=0.5 --min recall_macro=0.6 --max fnr=0.1`

    Args:
        min: The least score that a slice may have: a number, for --metric; or one number per
            metric, as `--min mcc=0.5 --min recall_macro=0.6`. Repeat --min for several.
        max: The largest score that a slice may have, in the same forms, for metrics where less is
            better, as `--max fnr=0.1`. Repeat --max for several.
        metric: The metric to check, if --min and --max do not name metrics: a name of `polars-mcc
            metrics`.
        no_worse_than: A baseline, instead of --min and --max. It is the name of another model or
            column of the log, and both are tested on the same rows, as in `polars-mcc compare`. Or
            it is a file of the counts of another log, such as the log of last week, by the same
            keys (see `polars-mcc counts`).
        max_gap: The widest gap between two slices, instead of the others: a number, for --metric,
            or one number per metric, as `--max-gap fpr=0.05` (see `polars-mcc gaps`). With --ci, a
            gap fails if its lower limit is wider. Repeat --max-gap for several.
        min_ratio: The least ratio of the lowest to the highest slice, instead of the others, as
            `--min-ratio selection_rate=0.8`, the four-fifths rule: for metrics from 0 to 1. With
            --ci, a ratio fails if its upper limit is less. Repeat --min-ratio for several.
        min_n: The least number of rows of a slice, here and in the baseline. Smaller slices are not
            judged. Without it: 1, but 30 with --max-gap and --min-ratio.
        ci: The confidence level of the gate. A slice fails only if the whole interval of its score
            is below --min (above --max), or the whole interval of its difference to the baseline is
            on the worse side of 0, and its p-value after correction is below 1 - ci. So a log that
            is as good as it must be fails in at most 1 - ci of runs. A slice without an interval is
            not judged. Without it: the score alone decides, however few the rows.
        false_alarms: How long a log that is as good as it must be passes, on average, if it is
            checked once a day, such as "1y": instead of --ci, which is then 1 minus a day divided
            by it. It needs a correction by "holm" or "bonferroni".
        correction: With --ci, the correction of p-values for the number of slices, metrics and
            models that are judged. "holm" and "bonferroni" limit the probability that a healthy log
            fails. "bh" and "by" limit the share of healthy slices in the list of failures. With
            none, each slice may fail by chance.
    """
    log = sliced.read(logs)
    failed: list[CheckError] = []

    @wraps(PredictionLog.check)
    def judged(*of_log: Any, **options: Any) -> pl.DataFrame:  # noqa: ANN401 - as in check
        try:
            return PredictionLog.check(*of_log, **options)
        except CheckError as error:
            failed.append(error)
            return error.judged

    def in_words() -> str:
        return visible_lines(
            str(failed[0]) if failed else "\n".join(line.getMessage() for line in heard)
        )

    def drawn(judged_slices: pl.DataFrame) -> str:
        is_wide = output.format == "wide" and not failed
        return outputs.terminal_table(judged_slices) if is_wide else in_words()

    files = [no_worse_than or ""]
    with (
        _listening() as heard,
        naming_files(files, "no_worse_than is", "the file has", "weight must"),
    ):
        run_verb(
            judged,
            log,
            output,
            as_text=drawn,
            min=shared_options.thresholds_by_metric("--min", min),
            max=shared_options.thresholds_by_metric("--max", max),
            metric=metric,
            max_gap=shared_options.thresholds_by_metric("--max-gap", max_gap),
            min_ratio=shared_options.thresholds_by_metric("--min-ratio", min_ratio),
            no_worse_than=no_worse_than and _baseline(no_worse_than, log),
            reads=[no_worse_than],
            min_n=min_n,
            ci=ci,
            false_alarms=false_alarms,
            correction=or_none(correction),
        )
    if output.out is not None:
        outputs.show(in_words())
    elif failed and output.format not in outputs.IN_TERMINAL:
        say(in_words().split("\n", 1)[0])
    if failed:
        raise SystemExit(1)


def _baseline(typed: str, log: TypedLog) -> pl.LazyFrame | str:
    """A model; or the counts of another log, with text as the dtypes of the counts of this log.

    Any other text is returned as typed, and the verb refuses it.
    """
    roles = log.log.roles
    models = [name for side in (roles.preds, roles.scores) if side for name in side.names]
    if typed in {*models, *roles.schema}:
        return typed
    dtypes = counts_of(log.log, *log.keys).drop("n").collect_schema()
    try:
        return read_files.scan_answer(typed, log.options.null or (), dtypes)
    except FileNotFoundError:
        return typed


@contextmanager
def _listening() -> Iterator[list[logging.LogRecord]]:
    """The lines that `check` logs."""
    handler, level = BufferingHandler(sys.maxsize), LOGGER.level
    LOGGER.addHandler(handler)
    LOGGER.setLevel(logging.INFO)
    try:
        yield handler.buffer
    finally:
        LOGGER.removeHandler(handler)
        LOGGER.setLevel(level)


@command
def counts(
    *logs: shared_options.LogPaths,
    sliced: shared_options.LogAndKeys = shared_options.LogAndKeys(),
    out: str | None = None,
    forget: bool = False,
    history: int | None = None,
    recount: str | None = None,
    format: outputs.Format = "table",  # noqa: A002 - the name of the option
) -> None:
    """Compress the log to counts, one row per slice and (gold, pred); all scores stay the same.

    With sets of keys, each row counts once per set; with windows, once per window. So filter to one
    set or window before you add up rows. Clusters are lost, unless the cluster column is a key.

    For example:

    `polars-mcc counts logs/ --by country --by day --out counts.parquet`

    `polars-mcc counts logs/ --by country --by day --out store/`

    `polars-mcc by store/ --by country`

    Args:
        out: Write the answer to a file (.parquet, .csv, .json, .ndjson or .md). An old file is
            replaced only when the new one is complete. Or keep the counts in a store: a folder or a
            URL. Each run then counts only new inputs, and replaces the counts of changed inputs.
            Every row is counted once, so you can run the command every night.
        forget: For a store: drop the counts of inputs that no longer exist. Without this option,
            their counts stay, and the inputs are listed.
        history: For a store: for how many days earlier versions can be read, before their files are
            deleted. Without this option: as before; 30 days for a new store.
        recount: For a store, with --outcomes: count inputs again in each run, while their newest
            row (--time) is at most so old, such as 45d, because labels may have come. The age
            counts from the newest row in the store. "all": count all inputs again, for labels that
            were corrected later.
        format: The output format. With table or wide, the suffix of --out decides. table, wide and
            markdown round numbers; the other formats keep every digit.
    """
    if out is not None and _is_store_path(out, format):
        log = sliced.read(logs, may_be_gone=forget)
        _keep_in_store(log, out, forget=forget, history=history, recount=recount)
        return
    if forget or history is not None or recount is not None:
        msg = "--forget, --history and --recount need a store: pass a folder or URL to --out"
        raise ValueError(msg)
    output = shared_options.OutputOptions(None if out is None else Path(out), format)
    run_verb(PredictionLog.counts, sliced.read(logs), output)


def _is_store_path(out: str, form: outputs.Format) -> bool:
    """Whether `out` is a store (a folder or URL), and not a file."""
    if form not in outputs.IN_TERMINAL:
        return False
    if is_url(out) and Path(out).suffix:
        msg = f"cannot write '{out}': --out is a local file, or the URL of a store without a suffix"
        raise ValueError(msg)
    return is_url(out) or Path(out).is_dir() or not Path(out).suffix


def _keep_in_store(
    log: TypedLog, store: str, *, forget: bool, history: int | None, recount: str | None
) -> None:
    """Keep the counts of each input in a store, and say what was done with each."""
    done_is_kept = "the store keeps what was counted; run it again for the rest"
    with errors_as_lines(log.inputs.typed, store, done_is_kept):
        done = keep(log, store, forget=forget, history=history, recount=recount, is_shown=True)
    app_and_answers.say_hidden_files(log.inputs)
    is_new = pl.col("status").is_in(["counted", "replaced"]) & (pl.col("rows") > 0)
    if new := done.filter(is_new)["input"].to_list():
        app_and_answers.say_spellings(replace(log, inputs=replace(log.inputs, files=new)))
    for status, what in (
        ("gone", "gone, but still counted (use --forget to drop their counts)"),
        ("forgotten", "gone, and their counts are dropped"),
    ):
        files = done.filter(status=status)["input"].to_list()
        if files:
            say(f"{what}:")
        for file in app_and_answers.first_files(files):
            say(f"  {file}")
    n_of = dict(done["status"].value_counts().iter_rows())
    always = ("counted", "replaced", "unchanged")
    shown = [status for status in STATUSES if status in always or status in n_of]
    say(f"{store}: {', '.join(f'{n_of.get(status, 0)} {status}' for status in shown)}")


@Parameter(name="*")
@dataclass(frozen=True)
class SearchOptions:
    """Options of a search, and of the list that it returns.

    Attributes:
        metric: The metric that is compared: a name of `polars-mcc metrics`, where the column `from`
            is not "pairs". If less is better, as for "fnr", slices with a higher value are listed.
        to: What a slice is compared with. "rest": the score of all other rows. "expected": what the
            slice would score given its labels, which is `expected`. Then slices are listed
            that err more than their mix of gold labels explains.
        depth: The largest number of keys that are crossed. All slices are counted: at depth 2, ten
            keys of 20 values each make about 18,000 slices.
        min_n: The least number of rows, or sum of weights, of a slice. Smaller slices are not
            tested. With sample weights w, the rows are (Σ w)² / Σ w²: so many rows of equal weight
            would be as good.
        max_share: The largest share of the rows, or of the sum of weights, of a slice that is
            tested: beside a larger one, too few rows are left.
        bins: The number of bins. A key of numbers, durations or times of the day with more than
            three times as many values is cut at round numbers near its quantiles. Its slices are
            the bins, all numbers up to a cut, and all numbers above a cut. Dates are cut by day,
            week or month, whichever gives few enough bins. Their slices are the bins, all times
            before a cut, and all times from a cut on. none: each number and each time is a value of
            its own.
        top: The largest number of rows of the answer, for all models together. Without it: all
            rows. A list has at most 100 slices: those with the most evidence.
        rank: The order of the list. "loss": by how much better the log would score without the
            slice. "gap": by how far the interval of the difference is from 0.
        ci: The confidence level of the intervals. It also limits false slices: on average they are
            at most 1 - ci of the list (see --correction). The p-values stay the same.
        correction: How false slices are limited: slices that are listed, but are not worse than
            the rest. "bh" (Benjamini and Hochberg) keeps their expected share of the list near
            1 - ci or below: the bound of a list of k slices is (1 - ci)·k/m, of m tests. "by"
            (Benjamini and Yekutieli) allows for any overlap of slices. "holm" and "bonferroni"
            limit the probability of a single false slice.
        verdicts: Return every slice that was tested: the listed slices first, then by verdict, the
            nearest to the list first. Columns that are known only for the listed slices, or for the
            nearest slice if none is listed, are null elsewhere: limits, confusions, expected scores
            that are not compared, and with clusters some p-values.
        long: Leave out the columns of the keys: `slice` says their values.
    """

    metric: str = defaults.METRIC
    to: allowed_values.Reference = defaults.TO
    depth: int = defaults.DEPTH
    min_n: int = defaults.MIN_N
    max_share: float = defaults.MAX_SHARE
    bins: int | Literal["none"] = defaults.BINS
    top: int | None = None
    rank: allowed_values.Rank = defaults.RANK
    ci: float = defaults.LEVEL
    correction: allowed_values.Correction = defaults.CORRECTION
    verdicts: bool = False
    long: bool = False


@Parameter(name="*")
@dataclass(frozen=True)
class ReportOptions:
    """What a report has.

    Attributes:
        metrics: One metric or several: names of `polars-mcc metrics`, where the column `from` is
            not "scores". Gaps and models are compared by each; charts, the worst slices and
            changes are of the first. The tables also show MCC, accuracy and macro F1. Repeat
            --metric for several, or write --metric a,b.
        ci: The confidence level of the intervals.
        depth: The search for the worst slices crosses up to this many keys. From 2 on, models are
            also compared in the slices of pairs of keys, of keys with up to 50 values.
        min_n: The search for the worst slices does not test slices with fewer rows.
        sensitive: The columns whose gaps are what the review is about, such as race. They are
            sliced by too, come first, and the verdict says their gaps. Repeat --sensitive for
            several.
        title: The heading of the report.
    """

    metrics: shared_options.MetricNames = field(default_factory=lambda: [defaults.METRICS])
    ci: float = defaults.LEVEL
    depth: int = defaults.DEPTH
    min_n: int = defaults.MIN_N
    sensitive: list[str] | None = None
    title: str = defaults.TITLE


@command
def report(
    *logs: shared_options.LogPaths,
    sliced: shared_options.LogAndKeys = shared_options.LogAndKeys(),
    asked: ReportOptions = ReportOptions(),
    out: Path,
) -> None:
    """Write a report about a log as one page of HTML that needs no network.

    Each key makes its own slices, and has its own section. Dates and datetimes are drawn over time;
    more than 60 of them are cut by day, week or month, unless a key says how: "bins(ts, '1h')".

    For example:

    `polars-mcc report logs/ --by country --by device --by day --out report.html`

    `polars-mcc report logs/ --by country --pred old --pred new --out comment.md`

    Args:
        out: Write the report to a file: a page (.html), or its text (.md, .json). An old file is
            replaced only when the new one is complete.
    """
    form = out.suffix.removeprefix(".").lower()
    if form not in get_args(allowed_values.ReportFormat):
        endings = ", ".join(f".{suffix}" for suffix in get_args(allowed_values.ReportFormat))
        raise ValueError(f"cannot write '{out}': the name of a report must end in one of {endings}")
    log = sliced.read(logs, sensitive=asked.sensitive)
    outputs.check_writable(out, log, vars(asked).values())
    made_by = {
        "command": shlex.join(["polars-mcc", *sys.argv[1:]]),
        "log": "\n".join(app_and_answers.first_files(log.inputs.files)),
        "not read": "\n".join(app_and_answers.first_files(log.inputs.hidden)),
        "filter": sliced.of_log.filter or "",
    }
    made_by = {what: text for what, text in made_by.items() if text}
    sensitive = log.columns["sensitive"] or ()  # one column, or several
    sensitive = sensitive if isinstance(sensitive, (list, tuple)) else [sensitive]
    options = {**vars(asked), "format": form, "sensitive": sensitive}
    with seen(log.log.roles.positive_label) as labels:
        settings = ReportSettings(**options, in_words=in_shell)
        page = write_report(log.log, log.keys, log.collect, settings, made_by)
    outputs.write_whole(out, page.encode)
    app_and_answers.say_warnings(log, options, labels)
    say(f"report written to {out}")


@command
def worst(
    *logs: shared_options.LogPaths,
    sliced: shared_options.LogAndColumns = shared_options.LogAndColumns(),
    search: SearchOptions = SearchOptions(),
    output: shared_options.OutputOptions = shared_options.OutputOptions(),
) -> None:
    """Find the slices that score worse than the rest of the log, in any combination of keys.

    For example:

    `polars-mcc worst logs/ --by country --by device --by browser --top 10`
    """
    log = sliced.read(logs)

    def shown(tested: pl.DataFrame) -> pl.DataFrame:
        """Say how many slices were tested, even if none is listed."""
        preds = log.log.roles.preds
        has_models = preds is not None and preds.is_several
        say(summed_up(tested, search.to, has_models=has_models))
        slices = tested if search.verdicts else tested.filter(verdict="listed")
        return slices if search.top is None else slices.head(search.top)

    # The summary needs all slices. A wrong `top` is passed on, as the verb raises its error.
    top = None if search.top in range(1, LONGEST_LIST + 1) else search.top
    is_drawn = output.out is None and output.format in outputs.IN_TERMINAL
    changed = {"bins": or_none(search.bins), "top": top, "verdicts": True}
    asked = {**vars(search), **changed, "long": search.long or is_drawn}
    run_verb(PredictionLog.worst, log, output, shown=shown, **asked)
