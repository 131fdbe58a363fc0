"""Collect a query while a progress bar shows how many rows of the log have been read.

A separate query reads the log in Polars' batches. The rows of each batch are counted and passed
on. A sink that counts rows would be simpler, but Polars would then keep all rows in memory until
the last step of the query has read them.
"""

from __future__ import annotations

import bisect
import contextlib
import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeAlias

import polars as pl

from polars_mcc._base.errors_and_warnings import in_own_words, missing
from polars_mcc._base.unstable_polars import batches_of, is_scan_alone, source_of
from polars_mcc._counts.pair_counts import READING, Reading
from polars_mcc._frame.columns import Frame, as_expr, polars_frame

if TYPE_CHECKING:
    from rich.console import Console

LogQuery: TypeAlias = Callable[[pl.LazyFrame], Frame]
"""A function that queries a log. It may collect the result itself."""

_SECONDS_BEFORE_BAR = 0.5  # seconds before the bar appears


def progress(log: Frame, query: LogQuery) -> pl.DataFrame:
    """Collect a query with a progress bar: rows read, rate, time; in a terminal or a notebook.

    Args:
        log: The log that `query` reads. The bar shows the number of all rows if it is known at
            once: for a DataFrame, and for an unfiltered scan of Parquet or IPC files.
        query: A function that takes a LazyFrame and returns a frame. It may call a verb, or run
            any other query.

    Returns:
        The collected result of `query(log.lazy())`. The bar counts rows between the scan and the
        query. A query of less than half a second shows no bar. The bar also goes away if the query
        fails or is interrupted.

    Raises:
        ModuleNotFoundError: rich is not installed (extra `cli`), or ipywidgets is not installed
            in a notebook (extra `notebook`).

    Raises the errors of the query unchanged.

    Examples:
        >>> import polars as pl
        >>> import polars_mcc
        >>> log = pl.scan_parquet("data/digits.parquet")
        >>> scores = polars_mcc.progress(log, lambda log: log.mcc.by("ink_band", ci=0.95))
        >>> scores.equals(log.mcc.by("ink_band", ci=0.95).collect())
        True
    """
    rows = polars_frame(log, "a progress bar counts the rows of").lazy()
    with in_own_words(), contextlib.closing(ProgressBar([_rows_at_once(rows)])) as bar:
        return collect(rows, query, bar)


def collect_lazy(
    log: pl.LazyFrame, query: Callable[[pl.LazyFrame], Any], bar: ProgressBar
) -> pl.DataFrame:
    """Collect the result of a query that collects nothing itself, by codes where they are used."""
    reading = Reading(bar.advance)
    token = READING.set(reading)
    try:
        answer = query(log)
    finally:
        READING.reset(token)
    if reading.is_coded:
        return answer.lazy().collect()  # type: ignore[no-any-return]
    return collect(log, query, bar)


def collect(log: pl.LazyFrame, query: LogQuery, bar: ProgressBar) -> pl.DataFrame:
    """Collect the result of a query, and tell a bar how many rows of the log have been read."""
    running, is_stopped = 0, False

    def batches(
        columns: list[str] | None, predicate: pl.Expr | None, n_rows: int | None, _: int | None
    ) -> Iterator[pl.DataFrame]:
        nonlocal running
        # A query that only counts or numbers rows asks for no column: read one, to have its rows.
        read = [as_expr(name) for name in columns or ()] or pl.first()
        rows = log if columns is None else log.select(read)
        rows = rows if n_rows is None else rows.head(n_rows)
        running += 1
        try:
            for batch in batches_of(rows):
                if is_stopped:
                    return
                # A look at the first rows is no pass over the log.
                bar.advance(batch.height if n_rows is None else 0)
                yield batch if predicate is None else batch.filter(predicate)
        finally:
            running -= 1

    try:
        return query(source_of(batches, log.collect_schema())).lazy().collect()
    except KeyboardInterrupt:
        with contextlib.suppress(KeyboardInterrupt):
            # Polars raised it; let Python raise it here too, not in ProgressBar.close().
            time.sleep(0)
        # Stop reading. Wait up to 1 s, so that no thread still reads when Python ends.
        is_stopped, last = True, time.monotonic() + 1
        while running and time.monotonic() < last:
            time.sleep(0.01)
        raise


class ProgressBar:
    """A progress bar of rows and files read.

    The number of files follows from the number of rows, if files are read in order. If the rows
    of a file are unknown, the bar does not show files. It shows no time left: a query goes on after
    the last row is read.
    """

    def __init__(
        self,
        rows_of_files: Sequence[int | None],
        *,
        title: str = "",
        console: Console | None = None,
    ) -> None:
        """Start the clock. `rows_of_files`: the rows of each file, None where unknown."""
        try:
            from rich import get_console  # noqa: PLC0415 - an optional dependency
            from rich import progress as bars  # noqa: PLC0415
        except ModuleNotFoundError as error:
            raise missing(subject="a progress bar", package="rich", extra="cli") from error
        console = console or get_console()
        if console.is_jupyter and find_spec("ipywidgets") is None:
            raise missing(subject="a bar in a notebook", package="ipywidgets", extra="notebook")
        known = [rows for rows in rows_of_files if rows is not None]
        self._ends = list(itertools.accumulate(known)) if len(known) == len(rows_of_files) else []
        self._rows = 0
        self._starts = time.monotonic()
        self._bars = bars.Progress(
            bars.TextColumn("{task.description}"),
            bars.BarColumn(bar_width=20),
            bars.TextColumn("{task.fields[read]}"),
            bars.TimeElapsedColumn(),
            console=console,
            refresh_per_second=4,
            transient=True,
        )
        total = self._ends[-1] if self._ends else None
        self._task = self._bars.add_task(title, total=total, read=self.read)

    @property
    def read(self) -> str:
        """The text of the bar: rows and files read, and the rate."""
        seconds = max(time.monotonic() - self._starts, 1e-3)
        passes, rows = self._of_pass
        of = f" of {self._ends[-1] / 1e6:.1f}" if self._ends else ""
        text = f"pass {passes + 1}, " if passes else ""
        text += f"{rows / 1e6:.1f}{of} M rows"
        if len(self._ends) > 1:
            text += f", {bisect.bisect_right(self._ends, rows)} of {len(self._ends)} files"
        return f"{text}, {self._rows / seconds / 1e6:.1f} M/s"

    @property
    def _of_pass(self) -> tuple[int, int]:
        """Complete passes over the log, and rows read since. A verb may run several queries."""
        if not self._rows or not self._ends or not self._ends[-1]:
            return 0, self._rows
        passes = (self._rows - 1) // self._ends[-1]
        return passes, self._rows - passes * self._ends[-1]

    def advance(self, rows: int) -> None:
        """Add to the number of rows read."""
        self._rows += rows
        if time.monotonic() - self._starts > _SECONDS_BEFORE_BAR:
            self._bars.start()  # Once it has started, this does nothing.
        self._bars.update(self._task, completed=self._of_pass[1], read=self.read)

    def close(self) -> None:
        """Remove the bar."""
        if self._bars.live.is_started:
            self._bars.stop()


def _rows_at_once(log: pl.LazyFrame) -> int | None:
    """The number of rows, if it is in the footers of files, or the rows are in memory."""
    if not is_scan_alone(log):
        return None
    return int(log.select(pl.len()).collect().item())
