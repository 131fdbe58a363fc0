"""A query that counts, and the inference of arrays after it: one deferred step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import polars as pl

from polars_mcc._base.message_parts import Words, option, said
from polars_mcc._base.unstable_polars import deferred
from polars_mcc._counts.labels_seen import Seen
from polars_mcc._counts.sliced_log import SlicedLog
from polars_mcc._counts.warnings_on_labels_and_keys import warner
from polars_mcc._frame.log_options import Described
from polars_mcc._metrics.metric_type import Metric
from polars_mcc._metrics.registry import named_labels


def inferred(
    log: Described[Any],
    sliced: SlicedLog,
    counts: pl.LazyFrame,
    infer: Callable[[pl.DataFrame], pl.DataFrame],
    *,
    metrics: Sequence[Metric] = (),
    check: Callable[[pl.DataFrame], None] = lambda _: None,
) -> pl.LazyFrame:
    """What `infer` makes of counts. The counts of a lazy log are collected when the answer is.

    Then it warns about the labels. `metrics` say whether scores need two gold classes. `check`
    raises an error if the counts are wrong. `infer` gives the columns of the answer from counts
    without rows.
    """
    warn = warner(
        log, of_two_classes=any(metric.is_of_two or metric.is_of_positive for metric in metrics)
    )

    def answer(counted: pl.DataFrame) -> pl.DataFrame:
        check(counted)
        inferred = infer(counted)
        named = named_labels(metrics)
        warn(lambda: Seen.of(sliced, counted, log.roles.positive_label, named))
        return inferred

    if not log.roles.is_lazy:
        return answer(counts.collect()).lazy()
    check_portable(sliced)
    schema = infer(pl.DataFrame(schema=counts.collect_schema())).schema
    return deferred(lambda: answer(counts.collect(engine="streaming")), schema)


def check_portable(log: SlicedLog) -> None:
    """Raise a ValueError if the plan of a log is for another engine, which has no arrays."""
    if log.is_portable:
        msg = said(
            "an interval or a test is not computed by another engine, but where the counts arrive: "
            "with ",
            option("portable", value=True),
            ", ask for ",
            Words("counts(...)", "polars-mcc counts"),
            ", and ask the counts for it, with ",
            option("weight", "n"),
        )
        raise ValueError(msg)
