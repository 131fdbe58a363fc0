"""What a user imports: a frame, described once, with the verbs as its methods."""

from __future__ import annotations

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
