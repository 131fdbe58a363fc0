"""What a user imports: a frame, described once, with the verbs as its methods."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import polars as pl

from polars_mcc._log.described import Described
from polars_mcc._log.frames import FrameT
from polars_mcc._report.report import report as _report
from polars_mcc._verbs.best_threshold import best_threshold as _best_threshold
from polars_mcc._verbs.by import by as _by
from polars_mcc._verbs.check import check as _check
from polars_mcc._verbs.classes import classes as _classes
from polars_mcc._verbs.compare import compare as _compare
from polars_mcc._verbs.confusion import confusion as _confusion
from polars_mcc._verbs.contrast import contrast as _contrast
from polars_mcc._verbs.counts import counts as _counts
from polars_mcc._verbs.curve import curve as _curve
from polars_mcc._verbs.drift import drift as _drift
from polars_mcc._verbs.engine_counts import engine_counts as _engine_counts
from polars_mcc._verbs.score import score as _score
from polars_mcc._verbs.worst import worst as _worst


class PredictionLog(Described[FrameT]):
    """A prediction log: a frame, what its columns mean, and the questions it is asked.

    A DataFrame gives DataFrames, a LazyFrame LazyFrames. `frame.mcc` is `PredictionLog(frame)`, and
    `frame.mcc(gold="label")` is `PredictionLog(frame, gold="label")`; type checkers see only the
    class.

    Examples:
        >>> import polars as pl
        >>> from polars_mcc import PredictionLog
        >>> frame = pl.DataFrame({"label": ["a", "b", "b"], "one": ["a", "b", "a"], "two": "b"})
        >>> log = PredictionLog(frame, gold="label", pred=["one", "two"])
        >>> log.score().rows()
        [('one', 3, 0.5, 0), ('two', 3, 0.0, 0)]
        >>> log(pred="two")
        PredictionLog(DataFrame, gold='label', pred='two')
    """

    by = _by
    score = _score
    compare = _compare
    contrast = _contrast
    worst = _worst
    drift = _drift
    curve = _curve
    best_threshold = _best_threshold
    check = _check
    counts = _counts
    engine_counts = _engine_counts
    classes = _classes
    confusion = _confusion
    report = _report

    @classmethod
    def from_store(
        cls, path: str | Path, *, storage_options: Mapping[str, str] | None = None
    ) -> PredictionLog[pl.LazyFrame]:
        """Open a store of counts as the log that it was made of.

        The store knows its columns, and how many rows each of its rows stands for. What it has at
        this moment is what the log has: counts that are added later are not in it. Use the log
        within a day, or open the store again: files that were merged are deleted then.

        Args:
            path: The folder, or its URL.
            storage_options: Credentials and settings of an object storage, as Polars takes them.
                None: the environment has them.

        Returns:
            A lazy log, with the keys that the store was made by, `gold` and `pred` as they were
            named, and `weight="n"`.

        Raises:
            ValueError: The folder is no store, or has no counts yet.
            ModuleNotFoundError: It is a URL, and obstore is not installed.

        Examples:
            >>> import tempfile
            >>> from polars_mcc import PredictionLog, keep_counts
            >>> store = tempfile.mkdtemp()
            >>> done = keep_counts("data/digits.parquet", store, "fold", pred=["knn", "logistic"])
            >>> PredictionLog.from_store(store).score().collect()["model"].to_list()
            ['knn', 'logistic']
        """
        from polars_mcc._store.kept import opened  # noqa: PLC0415 - few need it
        from polars_mcc._store.rows import as_described  # noqa: PLC0415 - as above

        kept = opened(str(path), storage_options)
        return PredictionLog(kept.scan(), **as_described(kept.about))
