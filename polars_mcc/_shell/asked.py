"""From a typed command to its answer: find the files, describe the log, run the verb."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, get_args

import polars as pl

from polars_mcc._counts.cut import cut
from polars_mcc._counts.remarks import (
    PredictionLogWarning,
    Sides,
    heard,
    key_is_gold,
    labels_of,
    remarks,
)
from polars_mcc._log import defaults
from polars_mcc._log.keys import IntoKey
from polars_mcc._log.labels import known_labels
from polars_mcc._log.messages import in_shell, of_error, said
from polars_mcc._scores.registry import NoPositiveError, needs_two_classes
from polars_mcc._shell import inputs
from polars_mcc._shell.kinds import STORE
from polars_mcc._shell.options import NONE, Option, options_of
from polars_mcc._shell.sql import Typed, check_row_by_row, columns_in, where
from polars_mcc._shell.terminal import say
from polars_mcc._show.progress import Bar, collect
from polars_mcc._store.paths import Options
from polars_mcc._store.rows import as_described
from polars_mcc._store.table import opened
from polars_mcc.prediction_log import PredictionLog


@dataclass(frozen=True)
class Asked:
    """A typed command: a verb, logs, and options."""

    verb: Callable[..., Any]
    logs: Sequence[str]
    filter: str | None
    typed: Mapping[str, Any]  # what was typed, by parameter name
    storage_options: Options | None = None
    may_be_gone: bool = False  # deleted logs are no error
    source: pl.LazyFrame | None = None  # None: all rows of the files

    @cached_property
    def found(self) -> inputs.Logs:
        """The files."""
        if not self.logs:
            msg = "name the logs to read: Parquet files, folders of them, or quoted globs"
            raise ValueError(msg)
        # A store counts each object on its own, so it needs a list of the objects.
        is_kept = self.verb is PredictionLog.counts
        return inputs.find(
            self.logs, self.storage_options, expand=is_kept, may_be_gone=self.may_be_gone
        )

    @property
    def texts(self) -> list[str]:
        """The texts that were typed: columns, SQL, labels, words."""
        typed = [self.filter, *self.typed.values()]
        listed = [one if isinstance(one, list) else [one] for one in typed]
        return [text for one in listed for text in one if isinstance(text, str)]

    def check_rows(self) -> None:
        """Raise a ValueError if SQL uses several rows at once, as files are counted one by one."""
        columns = {name: self.typed.get(name) for name in ("keys", "gold", "pred", "weight")}
        for text in replace(self, typed=columns).texts:
            check_row_by_row(text)

    def of(self, source: pl.LazyFrame) -> Asked:
        """The same command on some of the rows."""
        part = replace(self, source=source)
        vars(part)["_by_default"] = self._by_default  # Avoid a second look-up of the files.
        return part

    @cached_property
    def _by_default(self) -> Mapping[str, Any]:
        """The description that a store of counts has of itself; empty for other logs."""
        if self.found.kind.name != STORE:
            return {}
        options = self.storage_options
        known = [as_described(opened(store, options).about) for store in self.found.files]
        if any(one != known[0] for one in known):
            msg = "the stores have counts of different columns; score each store on its own"
            raise ValueError(msg)
        return known[0]

    @cached_property
    def _scanned(self) -> pl.LazyFrame:
        return inputs.scan(self.found) if self.source is None else self.source

    @cached_property
    def _rows(self) -> pl.LazyFrame:
        """The rows where the filter is true."""
        return self._scanned if self.filter is None else where(self.filter)(self._scanned)

    @cached_property
    def _columns(self) -> Typed:
        return Typed(self._rows)

    @cached_property
    def keys(self) -> list[IntoKey]:
        """The keys of the slices."""
        return [self._columns.key("--by", text) for text in self.typed.get("keys") or ()]

    @cached_property
    def options(self) -> dict[str, Any]:
        """The options of the verb, without labels: their dtype comes from the log."""
        return self._meant(options_of(self.verb))

    @cached_property
    def log(self) -> PredictionLog[pl.LazyFrame]:
        """The log with its description, and with the columns that the command computes by SQL."""
        keys, options = self.keys, self.options  # First: they may add computed columns.
        said = self._meant(options_of(PredictionLog.__init__))
        said |= {name: told for name, told in self._by_default.items() if not self._is_told(name)}
        log = PredictionLog(self._columns.beside(self._rows), **said)
        if (positive := self.typed.get("positive")) is not None:
            log = log(positive=_label(log, "--positive", positive))
        if self.verb is PredictionLog.confusion:
            options["labels"] = self._labels(log, keys)
        return log

    def _is_told(self, name: str) -> bool:
        """Whether the user typed a column other than the default."""
        typed = self.typed.get(name)
        return typed is not None and typed not in (defaults.GOLD, [defaults.PRED])

    def _meant(self, options: Sequence[Option]) -> dict[str, Any]:
        return {
            option.name: self._value(option, self.typed.get(option.name, option.default_in_shell))
            for option in options
            if option.role not in {"key", "label"}
        }

    def _value(self, option: Option, value: Any) -> Any:  # noqa: ANN401 - of any option
        if value is None or (value == "none" and NONE in get_args(option.hint)):
            return None
        if option.role in {"value", "metric"}:
            return value
        if option.role == "column":
            texts = value if isinstance(value, list) else [value]
            columns = [self._columns.column(option.flag, text) for text in texts]
            return columns[0] if len(columns) == 1 else columns
        if option.role in _OF_TEXTS:
            return _OF_TEXTS[option.role](option.flag, value)
        if option.role == "frame":
            return inputs.scan(inputs.find([value]))
        [first, *others] = value
        return int(first) if not others and first.is_integer() else value

    @property
    def rows(self) -> pl.LazyFrame:
        """The rows of the log, with the columns that the command computes by SQL."""
        rows = self.log.frame
        assert isinstance(rows, pl.LazyFrame)  # noqa: S101 - for the type checker
        return rows

    def answer(self, rows: pl.LazyFrame) -> Any:  # noqa: ANN401 - of any verb
        """The answer of the verb for these rows of the log."""
        try:
            with warnings.catch_warnings():  # `told_of_labels` says it in other words.
                warnings.simplefilter("ignore", PredictionLogWarning)
                return self.verb(self.log.with_frame(rows), *self.keys, **self.options)
        except NoPositiveError as error:
            labels = labels_of(Sides.of(self.log.with_frame(rows)))
            if not labels:
                raise
            msg = said(of_error(error), f". This log has the labels {labels}")
            raise NoPositiveError(msg) from None

    def told_of_labels(self) -> Iterator[str]:
        """Sentences on a log whose scores are all 0 or 0/0; `check` has refused it already."""
        if self.verb is not PredictionLog.check:
            needs_two = needs_two_classes(self.options)
            yield from key_is_gold(self.log, self.keys) if needs_two else ()
            yield from remarks(Sides.of(self.log), of_two_classes=needs_two)

    @cached_property
    def read(self) -> list[str]:
        """The columns that the command reads from the files."""
        preds = self.log.meaning.preds
        by_default = [] if preds is None else [one for one in preds.given if isinstance(one, str)]
        return [*self._columns.read, *by_default, *self._of_filter]

    @cached_property
    def _of_filter(self) -> list[str]:
        """The columns that the filter uses."""
        if self.filter is None:
            return []
        return columns_in(self.filter, self._scanned.collect_schema())

    def collect(self, about: str, query: Callable[[pl.LazyFrame], Any]) -> pl.DataFrame:
        """Run a query; on a terminal, show a progress bar."""
        inputs.check_same(self.found, self.read)
        with inputs.named_if_corrupt(self.found, self.read), self._saying():
            if not sys.stderr.isatty():
                return query(self.rows).lazy().collect()  # type: ignore[no-any-return]
            from rich.console import Console  # noqa: PLC0415 - it is optional

            bar = Bar(self._rows_of_files, title=about, console=Console(stderr=True))
            with closing(bar):
                return collect(self.rows, query, bar)

    @contextmanager
    def _saying(self) -> Iterator[None]:
        """Say the warnings of a verb in the words of a shell."""
        with heard() as sentences:
            yield
        for one in sentences:
            say(in_shell(one))

    @cached_property
    def _rows_of_files(self) -> list[int | None]:
        kept = None if self.filter is None else where(self.filter)
        return inputs.rows_of_files(self.found, kept, self._of_filter)

    def _labels(self, log: PredictionLog[pl.LazyFrame], keys: list[IntoKey]) -> list[object] | None:
        """The labels of a matrix: typed, or found in the log if its dtype does not list them."""
        if (texts := self.typed.get("labels")) is not None:
            return [_label(log, "--labels", text) for text in texts]
        is_wide = not self.options["long"] and self.options["top"] is None
        if not is_wide or known_labels(log.meaning.label_dtype) is not None:
            return None
        return cut(log, keys, answers=()).distinct_labels().collect().to_series().to_list()


def _bar(flag: str, texts: Sequence[str]) -> float | dict[str, float]:
    """A threshold, or one threshold per metric, such as mcc=0.5."""
    named = dict(text.rpartition("=")[::2] for text in texts)
    try:
        bars = {name.strip(): float(number) for name, number in named.items()}
    except ValueError:
        msg = f"{flag} takes a number (0.6) or metric=number (mcc=0.5), got {' '.join(texts)!r}"
        raise ValueError(msg) from None
    if "" in bars and len(texts) > 1:
        msg = f"{flag} takes one number, or one number per metric, such as {flag} mcc=0.5"
        raise ValueError(msg)
    return bars.get("", bars)


def _slice(flag: str, texts: Sequence[str]) -> str | dict[str, str]:
    """A word, or a slice by its keys, such as country=US."""
    named = dict(text.partition("=")[::2] for text in texts if "=" in text)
    if len(named) == len(texts):
        return named
    if len(texts) > 1:
        msg = f"{flag} takes one word, or each key once, as in {flag} country=US {flag} device=pc"
        raise ValueError(msg)
    return texts[0]


_OF_TEXTS: Mapping[str, Callable[[str, Sequence[str]], object]] = {"bar": _bar, "slice": _slice}


def _label(log: PredictionLog[pl.LazyFrame], option: str, text: str) -> object:
    """Convert typed text to a label, in the dtype of the labels."""
    dtype = log.meaning.label_dtype
    if dtype == pl.Boolean:
        label: object = {"true": True, "false": False}.get(text.lower())
    else:
        [label] = pl.Series([text]).cast(dtype, strict=False)
    if label is None:
        name = log.meaning.gold.name
        msg = f"{option} {text!r} is not a label: column '{name}' (gold) is {dtype}"
        raise ValueError(msg)
    return label
