"""A query collected while a bar shows how many rows of its log have been read.

The log is read by a query of its own, in batches as Polars makes them, which are counted and
handed on. A sink beside the query would leave the scan in its plan, but has Polars keep all rows
until a query of several steps has asked for them.
"""

from __future__ import annotations

import bisect
import contextlib
import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, TypeAlias

import polars as pl
from polars.io.plugins import register_io_source

from polars_mcc._log.extras import missing
from polars_mcc._log.frames import Frame, polars_frame

if TYPE_CHECKING:
    from rich.console import Console

Query: TypeAlias = Callable[[pl.LazyFrame], Frame]
"""What is asked of a log; it may collect the answer itself."""

_PATIENCE = 0.5  # seconds after which there is a bar


def progress(log: Frame, query: Query) -> pl.DataFrame:
    """Collect an answer with a progress bar: rows read, rate, time, in a terminal or a notebook.

    Args:
        log: What `query` is asked of. The time left is shown if its number of rows is known at
            once: of a DataFrame, and of a scan of Parquet or IPC files that is not filtered.
        query: A function of a LazyFrame that asks a verb, or anything else, and returns a frame.

    Returns:
        What `query(log.lazy())` gives, collected. The rows of the log are counted on their way
        from the scan to the query. A query of less than half a second shows no bar; one that
        fails, or is interrupted, takes its bar away.

    Raises:
        ModuleNotFoundError: rich is not installed, which the extra `cli` has, or in a notebook
            ipywidgets, which `notebook` has.

    Errors of the query are raised as they are.

    Examples:
        >>> import polars as pl
        >>> import polars_mcc
        >>> log = pl.scan_parquet("data/digits.parquet")
        >>> scores = polars_mcc.progress(log, lambda log: log.mcc.by("ink_band", ci=0.95))
        >>> scores.equals(log.mcc.by("ink_band", ci=0.95).collect())
        True
    """
    rows = polars_frame(log, "a progress bar counts the rows of").lazy()
    with contextlib.closing(Bar([_rows_at_once(rows)])) as bar:
        return collect(rows, query, bar)


def collect(log: pl.LazyFrame, query: Query, bar: Bar) -> pl.DataFrame:
    """The answer of a query, while a bar is told how many rows of the log have passed."""
    reading = _Reading(log, bar)
    try:
        return query(reading.rows).lazy().collect()
    except KeyboardInterrupt:
        with contextlib.suppress(KeyboardInterrupt):
            time.sleep(0)  # Polars has raised it; now Python does, and not when the bar goes away
        reading.stop()
        raise


class _Reading:
    """The rows of a log, read in batches by a query of its own; a bar is told of each."""

    def __init__(self, log: pl.LazyFrame, bar: Bar) -> None:
        self._log = log
        self._bar = bar
        self._is_stopped = False
        self._running = 0

    @property
    def rows(self) -> pl.LazyFrame:
        schema = self._log.collect_schema()
        return register_io_source(self._batches, schema=schema, is_pure=True)

    def stop(self) -> None:
        """Read no more, and wait a little, so that no thread is at it when Python ends."""
        self._is_stopped = True
        last = time.monotonic() + 1
        while self._running and time.monotonic() < last:
            time.sleep(0.01)

    def _batches(
        self,
        columns: list[str] | None,
        predicate: pl.Expr | None,
        n_rows: int | None,
        _: int | None,
    ) -> Iterator[pl.DataFrame]:
        # A query that only numbers rows asks for no column, of which there would be no rows.
        rows = self._log if columns is None else self._log.select(columns or pl.first())
        rows = rows if n_rows is None else rows.head(n_rows)
        self._running += 1
        try:
            for batch in rows.collect_batches():
                if self._is_stopped:
                    return
                self._bar.advance(batch.height)
                yield batch if predicate is None else batch.filter(predicate)
        finally:
            self._running -= 1


class Bar:
    """How many rows have been read, and how many files: those whose rows are no more than these.

    Where a number of rows is not known, neither are the files and the time left.
    """

    def __init__(
        self,
        rows_of_files: Sequence[int | None],
        *,
        title: str = "",
        console: Console | None = None,
    ) -> None:
        """Take the rows of each file, and start the clock."""
        try:
            from rich import get_console  # noqa: PLC0415 - only where it is asked for
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
        self._is_shown = False
        self._bars = bars.Progress(
            bars.TextColumn("{task.description}"),
            bars.BarColumn(bar_width=20),
            bars.TextColumn("{task.fields[read]}"),
            *((bars.TimeRemainingColumn(), "left") if self._ends else (bars.TimeElapsedColumn(),)),
            console=console,
            refresh_per_second=4,
            transient=True,
        )
        total = self._ends[-1] if self._ends else None
        self._task = self._bars.add_task(title, total=total, read=self.read)

    @property
    def read(self) -> str:
        """What has been read, and how fast."""
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
        """How often all rows have been read before, as several queries do, and the rows since."""
        if not self._rows or not self._ends or not self._ends[-1]:
            return 0, self._rows
        passes = (self._rows - 1) // self._ends[-1]
        return passes, self._rows - passes * self._ends[-1]

    def advance(self, rows: int) -> None:
        """Note that so many more rows have been read."""
        self._rows += rows
        if not self._is_shown and time.monotonic() - self._starts > _PATIENCE:
            self._is_shown = True
            self._bars.start()
        self._bars.update(self._task, completed=self._of_pass[1], read=self.read)

    def close(self) -> None:
        """Take the bar away."""
        if self._is_shown:
            self._bars.stop()


def _rows_at_once(log: pl.LazyFrame) -> int | None:
    """The number of rows, if files tell it in their footers, or they are in memory."""
    if not log.explain(optimized=False).startswith(("Parquet SCAN", "IPC SCAN", "DF [")):
        return None
    rows: int = log.select(pl.len()).collect().item()
    return rows
