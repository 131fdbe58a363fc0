"""Options that several commands share, with their help texts; and how typed values are parsed.

Most options are fields of a dataclass. Each field is named like a keyword of the verb, so a command
passes `vars(options)` to its verb. A class also has the help texts of the class that it extends.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Group, Parameter, Token

from polars_mcc import _public_names  # noqa: F401 - its import fills `WORDS`
from polars_mcc._base import allowed_values, defaults
from polars_mcc._base.cuts_of_numbers import Number, as_number
from polars_mcc._cli import outputs
from polars_mcc._inputs.log_from_files import LogOptions, TypedLog
from polars_mcc._inputs.read_files import find_logs
from polars_mcc._keys.any_key import WORDS


def _shown_as(word: str) -> dict[str, Any]:
    """Show this word for a value in the help; cyclopts below 5 cannot."""
    return {"metavar": word} if "metavar" in inspect.signature(Parameter).parameters else {}


_KEY_EXAMPLES = [WORDS[name].example for name in sorted(WORDS)]

LogPaths = Annotated[
    str,
    Parameter(
        help="What to read: files, folders, quoted globs, URLs such as s3://, or - for the "
        "standard input. Files are Parquet, CSV, NDJSON or IPC. A folder may also be a Delta "
        "table, an Iceberg table or a store of counts. A file named twice is read once.\n\n"
        "Options that take a column accept a name or SQL: --pred 'score >= 0.5', or --by "
        "\"date_trunc('week', ts) AS week\". SQL is one expression of the columns of the log; a "
        "subquery is refused.\n\n"
        f"--by also accepts {', '.join(_KEY_EXAMPLES)}. In worst and contrast, a key is a column, "
        "cut or not.",
        allow_leading_hyphen=True,
    ),
]
OfLog = Annotated[LogOptions, Parameter(name="*", group=Group("The log", sort_key=1))]
By = Annotated[list[str] | None, Parameter(name="--by", **_shown_as("COLUMN"))]


_METRIC = re.compile(r"(?:[^,(]|\((?:[^()]|\([^()]*\))*\)|\()+")
"""The text of one metric: a comma inside brackets is part of a call."""


def _metric_names(_: object, typed: Sequence[Token]) -> list[str]:
    """The metrics of `--metric a,b --metric c`."""
    return [name.strip() for token in typed for name in _METRIC.findall(token.value)]


MetricNames = Annotated[
    list[str],
    Parameter(
        name="--metric", converter=_metric_names, show_default=" ".join, **_shown_as("METRIC")
    ),
]

ReferenceWords = Annotated[list[str], Parameter(show_default=" ".join)]


@Parameter(name="*")
@dataclass(frozen=True)
class LogAndKeys:
    """The options of the log, and the keys to group by.

    Attributes:
        keys: The keys to group by: columns; bins; each, rollup, cube or sets of columns; trailing
            windows of time, unless the command compares slices, periods or thresholds. Several keys
            are crossed. Without keys, all rows are one slice. Repeat --by for several.
    """

    keys: By = None
    of_log: OfLog = field(default_factory=LogOptions)

    def read(
        self, logs: Sequence[str], *, may_be_gone: bool = False, **columns: str | list[str] | None
    ) -> TypedLog:
        """Find the log; `columns` are named by other options of the command, such as `within`."""
        return TypedLog(find_logs(logs, may_be_gone=may_be_gone), self.of_log, self.keys, columns)


@Parameter(name="*")
@dataclass(frozen=True)
class LogAndColumns(LogAndKeys):
    """The options of the log, and the columns to slice by.

    Attributes:
        keys: The columns to slice by, cut or not, as in bins(age, 5). Repeat --by for several.
    """


@Parameter(name="*")
@dataclass(frozen=True)
class TypedIntervals:
    """The confidence intervals of scores.

    Attributes:
        ci: The confidence level of an interval for each score, such as 0.95. Without it: no
            interval.
        method: The kind of interval. "score" has the best coverage. "fisher" and "wald" are the
            textbook intervals.
    """

    ci: float | None = None
    method: allowed_values.Method = defaults.METHOD


@Parameter(name="*")
@dataclass(frozen=True)
class ScoreOptions(TypedIntervals):
    """The metrics, with intervals if there is a confidence level.

    Attributes:
        metrics: One metric or several, computed from the same counts: a name of `polars-mcc
            metrics`, such as "accuracy", "f1_macro" or "kappa"; or a call, such as "f_beta(2)",
            "cost(fn=10, fp=1)" or "kappa(quadratic)". Metrics of one class, such as "tpr", need
            --positive, the label of the class. Repeat --metric for several, or write
            --metric a,b.
    """

    metrics: MetricNames = field(default_factory=lambda: [defaults.METRICS])


@Parameter(name="*")
@dataclass(frozen=True)
class ThresholdOptions:
    """Thresholds of a model score.

    Attributes:
        thresholds: The thresholds. One integer: at most this many, at the quantiles of the scores
            of all rows, the same for all slices, and one above all scores. Several numbers: these;
            memory then does not grow with the number of distinct scores. Without it: every distinct
            score of the slice, and one above all scores. Repeat --thresholds for several.
    """

    thresholds: Annotated[list[str] | None, Parameter(**_shown_as("NUMBER"))] = None

    @property
    def asked(self) -> int | Sequence[Number] | None:
        """How many thresholds, or which, with all typed digits. None: all scores."""
        try:
            typed = [*map(as_number, self.thresholds or ())]
        except ValueError:
            msg = f"--thresholds {' '.join(self.thresholds or ())}: not a number"
            raise ValueError(msg) from None
        if len(typed) == 1 and isinstance(typed[0], int):
            return typed[0]
        return typed or None


@Parameter(name="*")
@dataclass(frozen=True)
class DifferenceOptions:
    """Tests of differences between scores.

    Attributes:
        metrics: One metric or several, all of labels or all of scores: names of `polars-mcc
            metrics`. Each is corrected alone. Repeat --metric for several, or write --metric a,b.
        min_n: A slice is judged if it has so many rows, and the other side too: with fewer
            rows, a p-value is too small too often. A score must be of half as many:
            "tpr" is of rows with the positive label. With sample weights w, the rows are
            (Σ w)² / Σ w².
        ci: The confidence level of the intervals.
        method: The kind of interval of each score. "score" has the best coverage. "fisher" and
            "wald" are the textbook intervals. The interval of a difference is made from both.
        correction: The correction of p-values for the number of tests in the answer. The false
            discovery rate: "bh" (Benjamini and Hochberg 1995) or "by" (Benjamini and Yekutieli
            2001, also valid if slices overlap). The probability of any false discovery: "holm" or
            "bonferroni".
    """

    metrics: MetricNames = field(default_factory=lambda: [defaults.METRICS])
    min_n: int = defaults.COMPARED_N
    ci: float = defaults.LEVEL
    method: allowed_values.Method = defaults.METHOD
    correction: allowed_values.Correction = defaults.CORRECTION


@Parameter(name="*", group=Group("The answer", sort_key=2))
@dataclass(frozen=True)
class OutputOptions:
    """The file and the format of the answer.

    Attributes:
        out: Write the answer to a file (.parquet, .csv, .json, .ndjson or .md), or its picture
            (.svg, .png or .html): a chart per metric, or per confusion matrix. An old file is
            replaced only when the new one is complete.
        format: The output format. With table or wide, the suffix of --out decides. The table of
            worst, compare, contrast and drift leaves out some columns; wide shows all. table, wide
            and markdown round numbers; the other formats keep every digit. JSON has NaN and
            infinities as text: "NaN", "Infinity" and "-Infinity". Durations are text such as
            "1m 30s", bytes are hex; lists and structs are JSON in CSV. The options that take an
            answer (--no-worse-than, --known) read every format but markdown.
    """

    out: Path | None = None
    format: outputs.Format = "table"


def thresholds_by_metric(flag: str, typed: Sequence[str] | None) -> float | dict[str, float] | None:
    """Parse --min or --max: one number, or a number per metric, as in mcc=0.5."""
    if typed is None:
        return None
    takes = f"{flag} takes one number ({flag} 0.6), or each metric once ({flag} mcc=0.5)"
    if typed[1:] or "=" in typed[0]:
        # The call of a metric has equals signs of its own.
        named = _by_name(typed, takes, str.rpartition)
        return {name: _as_float(text, takes) for name, text in named.items()}
    return _as_float(typed[0], takes)


def word_or_slice(flag: str, typed: Sequence[str]) -> str | dict[str, str]:
    """Parse --to: one word, or the keys of one slice, as in country=US."""
    takes = f"{flag} takes one word, or each key once, as in {flag} country=US {flag} device=pc"
    return _by_name(typed, takes) if typed[1:] or "=" in typed[0] else typed[0]


def _by_name(
    typed: Sequence[str],
    takes: str,
    split: Callable[[str, str], tuple[str, str, str]] = str.partition,
) -> dict[str, str]:
    """Parse texts such as name=value. A name may be given once."""
    values: dict[str, str] = {}
    for text in typed:
        name, equals, value = split(text, "=")
        name = name.strip()
        if not (name and equals) or name in values:
            why = f"{name} is given twice" if name in values else f"{text!r} has no name"
            raise ValueError(f"{takes}; {why}")
        values[name] = value
    return values


def _as_float(text: str, takes: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{takes}; {text!r} is no number") from None
