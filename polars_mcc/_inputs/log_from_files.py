"""A log as it is typed: find the files, read names and SQL as columns, describe the log."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, Literal, NamedTuple

import polars as pl
import polars.selectors as cs

from polars_mcc._base import defaults
from polars_mcc._base.allowed_values import Nulls
from polars_mcc._base.errors_and_warnings import Failure, heard, unless
from polars_mcc._base.message_parts import Words, as_sql, in_shell, of_error, option, said
from polars_mcc._base.values_as_text_or_markdown import read_as
from polars_mcc._base.visible_text import say
from polars_mcc._display.progress_bar import ProgressBar, collect, collect_lazy
from polars_mcc._frame.columns import IntoColumn, as_expr
from polars_mcc._frame.labels import LabelsDiffer, from_text, is_text
from polars_mcc._frame.late_labels import LabelsOfIds, about_ids, labels_of_ids, with_late_labels
from polars_mcc._frame.log_options import Described
from polars_mcc._frame.missing_and_likely_columns import missing_column
from polars_mcc._frame.roles import GivenRoles
from polars_mcc._inputs import read_files, sql_columns
from polars_mcc._inputs.find_files import naming_files
from polars_mcc._inputs.formats import CSV
from polars_mcc._inputs.read_files import Logs
from polars_mcc._keys.any_key import IntoKey, Key, settled

_OF_LABELS = "the outcomes have", "latest must be"
"""How messages about the columns of the labels begin."""
_COLUMN_OPTIONS = ("gold", "pred", "score", "weight", "sample_weight", "cluster")


@dataclass(frozen=True)
class LogOptions:
    """What the columns of a log mean, as it is typed. The command line shows these texts.

    Attributes:
        gold: The true label.
        pred: The predicted label. Labels may be integers, floats, text, Booleans or dates, and gold
            and pred are of one kind. The integers 0 and 1 may stand beside Booleans. NaN is
            missing, as null is. If a row has several labels, both columns have lists. Without it:
            the column "pred", or none if there is a score. Repeat --pred for several.
        score: The model's score for the positive class, a number such as a probability. A larger
            score means more positive. curve, best-threshold, calibration and metrics of scores,
            such as roc_auc and brier, use it. Many distinct scores need memory: round them, as in
            "round(p, 4)". Repeat --score for several.
        positive: The positive label, for metrics of one class such as "tpr", and for scores. All
            other labels are then negative. Other metrics do not change. Without it: True, if
            labels are Boolean.
        weight: The number of rows that a row stands for, a frequency: integer or float, not
            negative. Without it: 1. A row whose weight is null is not scored. A row of weight 0 has
            a slice, and else counts for nothing: its labels are no classes. With weights, `n` is
            the sum of the weights of the rows scored. `n_null` is the sum of the weights of the
            rows not scored; a null weight adds 1.
        sample_weight: The importance of a row, such as a survey weight or a class weight. The score
            is the same as with --weight, and so are `n` and `n_null`: sums of weights, not numbers
            of rows. The interval is wider, because a row of weight 10 is still one row.
        cluster: The column that groups dependent rows, such as the user id. Intervals then use the
            differences between clusters, not between rows.
        nulls: What to do with a null label. "drop": the row is not scored, and is counted in
            `n_null`. "label": null is a class of its own, so an abstention is an error. Metrics of
            scores always drop it. "reweight": the labelled rows of a slice stand for its rows with
            the same prediction and no gold label, if labels came for some rows only. The scores are
            right only if, among the rows of a slice with one prediction, whether a label comes does
            not depend on the label. by, score, classes, check, compare, contrast, drift and worst
            take it.
        zero_division: The score of a slice with one gold class or one predicted class, where R_K is
            0/0: 0.0, NaN, or none for null. So are precision and F1 at 0/0; fdr and for are 1 minus
            it. Rates of gold rows, such as "tpr" and "fpr", are null without them, and so is
            "roc_auc".
        portable: Count text in local Parquet files without the codes of the files, so that the
            plan has only Polars' own expressions. The answers are the same. An interval or a test
            is then an error: ask the counts for it.
        outcomes: Where the labels are, if they come later and lie apart from the predictions:
            files, as for the log. --gold and --latest are then columns of them, and all other
            columns are of the predictions. A prediction without a label, or without an id, waits:
            it is not scored, and is counted in `n_waiting`. An id that several predictions have is
            scored for each of them. A label whose id no prediction has is left out. Repeat
            --outcomes for several.
        on: The id that predictions and outcomes share: a column of both, or SQL. A column of a CSV
            file is text, as it stands; beside another dtype it must be spelled as that dtype is. An
            id with two different labels is an error. Repeat --on for several columns.
        latest: The time of a label, in the outcomes: a date, a time or an integer. The newest label
            of an id counts; null is the oldest. A newest label that is null was taken back: its
            prediction waits. Without it: all labels of an id must be equal.
        waiting: Whether a row without a gold label waits for it. Answers then have a column
            `n_waiting` after `n_null`: how many of the rows that are not scored wait. With
            --outcomes it is so.
        time: The time of a prediction, Date or Datetime; for `changes` and --min-age.
        min_age: Score only rows that are at least so old, such as 30d, so that each label had the
            same time to come. A row without a time is left out. The age counts from --now, or else
            from the newest row, or today if that is earlier; then the log is read once more.
        now: The time from which --min-age counts, such as 2026-03-31. Labels count whenever they
            came, also after it.
        filter: Score only the rows where this SQL condition is true, such as "country = 'DE'".
        text: A column of a CSV file to read as text, so that 1.1 and 1.10, or 01 and 1, are two
            values; of the log or the outcomes. Repeat --text for several.
        null: A text that is null in all columns of a CSV file, such as NA. Without it: only empty
            fields without quotes are null, and NA is a label like others. Repeat --null for
            several.
        separator: The character between the columns of a CSV file, such as ";" or tab. Without it:
            a tab for .tsv, else the one of , ; | and tab that the first line has most of.
    """

    gold: str = defaults.GOLD
    pred: list[str] | None = None
    score: list[str] | None = None
    positive: str | None = None
    weight: str | None = None
    sample_weight: str | None = None
    cluster: str | None = None
    nulls: Nulls = defaults.NULLS
    zero_division: float | Literal["none"] = defaults.ZERO_DIVISION
    portable: bool = False
    outcomes: list[str] | None = None
    on: list[str] | None = None
    latest: str | None = None
    waiting: bool = False
    time: str | None = None
    min_age: str | None = None
    now: str | None = None
    filter: str | None = None
    text: list[str] | None = None
    null: list[str] | None = None
    separator: str | None = None

    def ids_in(self, schema: pl.Schema) -> list[str]:
        """The columns of a schema that the ids are made of."""
        return [name for sql in self.on or () for name in sql_columns.columns_in(sql, schema)]


class _Read(NamedTuple):
    """The rows of a log, with the names and the SQL of options as columns."""

    own: sql_columns.TypedColumns
    """The rows without the labels that come later, and their columns for these."""
    outcomes: sql_columns.TypedColumns | None
    """The labels that come later, and their columns."""
    given: GivenRoles
    """The options about labels that come later."""
    roles: GivenRoles
    """What the rows have beside these labels."""
    typed: sql_columns.TypedColumns
    """The rows to score, and the keys and columns that are typed."""


@dataclass(frozen=True)
class TypedLog:
    """A log as it is typed: the files, the options of the log, and the keys of the slices."""

    inputs: Logs
    options: LogOptions = field(default_factory=LogOptions)
    by: Sequence[str] | None = None
    of_options: Mapping[str, str | Sequence[str] | None] = field(default_factory=dict)
    """The columns that other options of the command name, such as `within`."""
    source: pl.LazyFrame | None = None
    """Some of the rows. Without it: all rows of the files."""
    labels: LabelsOfIds | None = None
    """The labels that come later, if they are in memory already."""

    def __post_init__(self) -> None:
        """Read the files as the options say. An id in a CSV file is text, as it stands."""
        if self.source is not None or self.labels is not None:
            return  # They are of another log, which has read the files.
        options = self.options
        ids = list[str]()
        if self.is_csv and options.on:
            schema = read_files.scan_logs(self.inputs).collect_schema()
            ids = options.ids_in(schema)
        of_csv = (*(options.text or ()), *ids), options.null or (), options.separator
        if self.is_csv or not any(of_csv) or self.of_labels is None or not self.of_labels.is_csv:
            object.__setattr__(self, "inputs", self.inputs.read_as(*of_csv))

    @property
    def is_csv(self) -> bool:
        """Whether the files are CSV."""
        return self.inputs.format.name == CSV

    @property
    def _scanned(self) -> pl.LazyFrame:
        if self.source is not None:
            return self.source
        rows = read_files.scan_logs(self.inputs)
        if not rows.collect_schema():
            raise pl.exceptions.NoDataError(f"'{self.inputs.files[0]}' has no columns: it is empty")
        return rows

    @cached_property
    def of_labels(self) -> TypedLog | None:
        """The files of the labels that come later, as a log of their own."""
        options = self.options
        if options.outcomes is None:
            return None
        no_labels_yet = all(Path(path).is_dir() for path in options.outcomes)
        source = None
        with self._naming_labels():
            logs = read_files.find_logs(options.outcomes, may_be_gone=no_labels_yet)
            rows = read_files.scan_logs(logs)
            schema = rows.collect_schema()
            with read_files.named_if_corrupt(logs, [*schema]):
                is_empty = rows.head(1).collect().is_empty()
            if is_empty:  # Their dtypes are not known: any would fit.
                beside = self._scanned.collect_schema()
                ids = {name: beside[name] for name in options.ids_in(beside)}
                times = {options.latest: pl.Int64()} if options.latest else {}
                source = pl.LazyFrame(schema={options.gold: pl.Null(), **schema, **ids, **times})
        own = LogOptions(gold=options.gold, pred=[options.gold])
        if logs.format.name == CSV:
            text = [name for name in options.text or () if name in schema] + options.ids_in(schema)
            own = replace(own, text=text, null=options.null, separator=options.separator)
        return replace(TypedLog(logs, own), source=source)

    @cached_property
    def of_files(self) -> pl.LazyFrame:
        """The rows where the filter is true."""
        rows = self._scanned
        for name in self.options.text or ():
            is_of_labels = self.of_labels and name in self.of_labels.of_files.collect_schema()
            if name not in (schema := rows.collect_schema()) and not is_of_labels:
                raise missing_column(name, schema, "--text")
        if (condition := self.options.filter) is not None:
            sql_columns.check_condition(condition, rows.collect_schema())
        return sql_columns.filtered(rows, condition)

    def _naming_labels(self, *beginnings: str) -> AbstractContextManager[None]:
        """Name the files of the labels in their errors: all errors, or those that so begin."""
        return naming_files(self.options.outcomes or (), *beginnings)

    def with_ids(self, names: Sequence[str], beside: pl.Schema) -> pl.LazyFrame:
        """The rows of the files. Ids of CSV, which are text, have the dtypes that are beside them.

        A text that is spelled otherwise in this dtype, as 007 in numbers, is an error.
        """
        rows, ids = self.of_files, list[pl.Expr]()
        known = rows.collect_schema()
        for name in names if self.is_csv else ():
            dtype: Any = beside.get(name, pl.String())
            is_plain = dtype.is_integer() or dtype.is_decimal() or dtype == pl.Boolean
            is_plain |= isinstance(dtype, (pl.Date, pl.Datetime, pl.Time))
            if known.get(name) != pl.String or not is_plain:
                continue  # Ids of other dtypes are refused later.
            text = as_expr(name)
            value = read_as(text, pl.String(), dtype)
            spelled = value.cast(pl.String) if dtype != pl.Datetime else text
            is_other = text.is_not_null() & (value.is_null() | (spelled != text))
            numbers = f"; for numbers, use --on '{as_sql(name)}::BIGINT'" * dtype.is_integer()
            why = f"', but no {dtype} is spelled so, which it is in the other files{numbers}"
            shown, file = pl.when(is_other).then(text), self.inputs.typed[0]
            failure = Failure(is_other, (f"'{file}': '{name}' is '", shown, why))
            ids.append(unless(value, failure).alias(name))
        return rows.with_columns(ids)

    @cached_property
    def _read(self) -> _Read:
        """Names and SQL become columns; labels that come later are joined."""
        options, rows, labels = self.options, self.of_files, self.of_labels
        outcomes, late = None, dict[str, Any](gold=options.gold, latest=options.latest)
        if labels is not None:
            with self._naming_labels():
                of_labels = labels.with_ids(options.on or (), rows.collect_schema())
                named = {**late, "on": options.on}
                outcomes = sql_columns.TypedColumns(of_labels, (), named)
                read_files.check_same_dtypes(labels.inputs, outcomes.read)
            late = {name: outcomes.columns[name] for name in late} | {"outcomes": outcomes.rows}
            rows = self.with_ids(options.on or (), labels.of_files.collect_schema())
        own = sql_columns.TypedColumns(rows, (), {"on": options.on, "time": options.time})
        ages = {"min_age": options.min_age, "now": options.now}
        given = GivenRoles(**late, **own.columns, **ages, waiting=options.waiting)  # type: ignore[arg-type]
        if self.labels is not None:
            rows = self.labels.beside(own.rows)
            roles = given._replace(gold=self.labels.gold, waiting=True)
        else:
            with self._naming_labels(*_OF_LABELS):
                rows, roles = with_late_labels(own.rows, given)
        of_log = {name: getattr(options, name) for name in _COLUMN_OPTIONS} | {"gold": roles.gold}
        columns = {**of_log, **self.of_options}
        typed = sql_columns.TypedColumns(rows, self.by or (), columns)
        # Labels that are yet to come are text in CSV, whatever they will be.
        gold, pred = typed.columns["gold"], typed.columns["pred"]
        schema = typed.rows.collect_schema()
        preds = pred if isinstance(pred, list) else [defaults.PRED if pred is None else pred]
        sides = [name for name in (gold, *preds) if isinstance(name, str) and name in schema]
        texts = [name for name in sides if schema[name] == pl.String]
        if 0 < len(texts) < len(sides):
            is_null = typed.rows.select(cs.by_name(texts).is_null().all()).collect()
            nulls = (name for name in texts if is_null[name].item())
            typed.rows = typed.rows.with_columns(pl.lit(None).alias(name) for name in nulls)
        return _Read(own, outcomes, given, roles, typed)

    def with_rows(self, source: pl.LazyFrame | None, labels: LabelsOfIds | None = None) -> TypedLog:
        """The log of other rows, or with other labels. No file is looked at again."""
        log = replace(self, source=source, labels=labels or self.labels)
        vars(log)["of_labels"] = self.of_labels
        return log

    def labels_in_memory(self) -> TypedLog:
        """The log with labels that come later, read now: several queries may use them."""
        if self._read.outcomes is None or self.of_labels is None:
            return self
        with self._naming_labels(*_OF_LABELS):
            labels = labels_of_ids(self._read.own.rows, self._read.given)
        logs = self.of_labels.inputs
        with self._naming_labels(), read_files.named_if_corrupt(logs, [*self._read.outcomes.read]):
            return self.with_rows(self.source, labels.in_memory())

    def about_ids(self, labelled: pl.DataFrame | None) -> Iterator[str]:
        """Sentences about the ids of predictions and labels. The ids are read again.

        `labelled`: how many predictions have a label, if they were counted.
        """
        if (outcomes := self._read.outcomes) is not None:
            alone = self._read.given._replace(outcomes=None, on=None, latest=None)
            rows, _ = with_late_labels(self._read.own.rows, alone)
            every = self._read.own.rows if self.options.filter is None else None
            n_labels, n_labelled = outcomes.rows.select(pl.len()).collect().item(), 0
            if labelled is not None and self.log.roles.weight is None:
                of_models = labelled.group_by("model").agg(pl.sum("labelled"))["labelled"]
                n_labelled = max(of_models, default=0)
            labels = labels_of_ids(rows, self._read.given)
            yield from about_ids(rows, labels, every, n_labels, n_labelled)

    @property
    def apart(self) -> Described[pl.LazyFrame] | None:
        """The labels that come later, and the predictions, in rows of their own."""
        if (outcomes := self._read.outcomes) is None:
            return None
        gold: Any = outcomes.columns["gold"]
        labels = LabelsOfIds(outcomes.rows.select(as_expr(gold)), self.log.roles.gold.name, ())
        return self.with_rows(self.source, labels).log

    def check_row_by_row(self) -> None:
        """Raise a ValueError if SQL uses several rows at once, such as an aggregation or OVER."""
        given = [(sql, self._read.own) for sql in [self.options.filter] if sql is not None]
        for typed in filter(None, (self._read.own, self._read.outcomes, self._read.typed)):
            given += [(sql, typed) for sql in typed.computed]
        for sql, typed in given:
            sql_columns.check_row_by_row(sql, typed.schema)

    def newest_times(self, of: str) -> pl.LazyFrame:
        """The newest time of the rows for each value of a column, in microseconds since 1970."""
        column: Any = self._read.own.columns["time"]
        time = pl.lit(None, pl.Datetime("us")) if column is None else as_expr(column)
        return self._read.own.rows.group_by(of).agg(
            newest=time.cast(pl.Datetime("us")).max().dt.epoch("us")
        )

    @property
    def keys(self) -> Sequence[IntoKey]:
        """The keys of the slices."""
        return self._read.typed.keys

    @property
    def columns(self) -> dict[str, Any]:
        """The columns of `of_options`: one, or a list, or None."""
        return {name: self._read.typed.columns[name] for name in self.of_options}

    @property
    def rows(self) -> pl.LazyFrame:
        """The rows where the filter is true, with the columns that the command computes by SQL."""
        return self._read.typed.rows

    @property
    def compared_columns(self) -> list[list[IntoColumn]]:
        """The columns whose values make classes, slices or clusters; the labels are one list."""
        roles = self.log.roles
        labels = [column for side in (roles.gold, roles.preds) if side for column in side.given]
        schema, keys = self.rows.collect_schema(), settled(self.log, self.keys, unread=True)
        made = [key.made(schema).columns if isinstance(key, Key) else [key] for key in keys]
        given = (columns for columns in self.columns.values() if columns is not None)
        named = (columns if isinstance(columns, list) else [columns] for columns in given)
        clusters = roles.cluster.given if roles.cluster else ()
        return [labels, *([column] for column in chain(clusters, *made, *named))]

    @cached_property
    def log(self) -> Described[pl.LazyFrame]:
        """The log with its description, and with the columns that the command computes by SQL."""
        columns: dict[str, Any] = {name: self._read.typed.columns[name] for name in _COLUMN_OPTIONS}
        by_default = (None, defaults.GOLD, [defaults.PRED])
        is_late = self._read.roles.waiting or "waiting" in self.inputs.described
        columns |= {"waiting": is_late, "time": self._read.roles.time}
        columns |= {
            name: column
            for name, column in self.inputs.described.items()
            if getattr(self.options, name) in by_default
        }
        try:
            log = Described(
                self._read.typed.rows,
                **columns,
                nulls=self.options.nulls,
                zero_division=or_none(self.options.zero_division),
                portable=self.options.portable,
            )
        except pl.exceptions.SchemaError as error:
            is_csv, computed = self.is_csv, self._read.typed.computed
            if isinstance(error, LabelsDiffer):
                error.true = self.options.positive
                for name in (
                    self._read.typed.computed & error.codes.keys()
                ):  # It is called by its SQL.
                    error.codes[name] = Words(error.codes[name], f"({name})")
                if is_csv and error.name not in computed and is_text(error.other):
                    # A number has lost its text: 01 is 1.
                    error.engine = lambda column: option("text", column.name)
            if not is_csv or "String" not in str(error):
                raise
            hint = "; if it is text because a word such as NA stands for no value, add --null NA"
            raise pl.exceptions.SchemaError(said(of_error(error), Words("", hint))) from error
        log.min_age = self.options.min_age
        positive = self.options.positive
        return log if positive is None else log(positive=typed_label(log, "--positive", positive))

    def collect(
        self, about: str, query: Callable[[pl.LazyFrame], Any], *, is_lazy: bool = True
    ) -> pl.DataFrame:
        """Run a query; on a terminal, show a progress bar. A lazy one collects nothing itself."""
        preds, condition = self.log.roles.preds, self.options.filter
        by_default = (
            [] if preds is None else [pred for pred in preds.given if isinstance(pred, str)]
        )
        schema = self._read.own.schema
        of_filter = [] if condition is None else sql_columns.columns_in(condition, schema)
        used = [*self._read.typed.read, *by_default, *of_filter, *self._read.own.read]
        read = [name for name in used if name in schema]
        read_files.check_same_dtypes(self.inputs, read)
        progress = progress_bar(self.inputs, condition, of_filter, about)
        corrupt = read_files.named_if_corrupt(self.inputs, read)
        try:
            with corrupt, heard() as sentences, progress as bar:
                rows = self._read.typed.rows
                if bar is None:
                    answer: pl.DataFrame = query(rows).lazy().collect()
                else:
                    answer = (collect_lazy if is_lazy else collect)(rows, query, bar)
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
            self.labels_in_memory()  # If they are at fault, its error names their files.
            raise
        for sentence in sentences:
            say(in_shell(sentence))
        return answer


@contextmanager
def progress_bar(
    logs: Logs, condition: str | None = None, columns: Sequence[str] = (), title: str = ""
) -> Iterator[ProgressBar | None]:
    """A progress bar of a filtered log on the standard error; None if it is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console  # noqa: PLC0415 - it is optional

    rows = read_files.rows_of_files(logs, condition, columns)
    with closing(ProgressBar(rows, title=title, console=Console(stderr=True))) as bar:
        yield bar


def or_none(value: Any) -> Any:  # noqa: ANN401 - a number or a word
    """A value, or None for the word `none`."""
    return None if value == "none" else value


def typed_label(log: Described[pl.LazyFrame], flag: str, text: str) -> object:
    """Convert typed text to a label, in the dtype of the labels."""
    dtype = log.roles.label_dtype
    label = from_text(text, dtype)
    if label is None:
        name = log.roles.gold.name
        as_in = {pl.Boolean: " (true or false)", pl.Date: ", as in 2026-03-01"}
        as_in |= {pl.Datetime: ", as in '2026-03-01 12:00'", pl.Time: ", as in 12:00"}
        example = as_in.get(dtype.base_type(), "")
        msg = f"{flag} {text!r} is not a label: column '{name}' (gold) is {dtype}{example}"
        raise ValueError(msg)
    return label
