"""What verbs that test metrics share: checks of options, and the cut log."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import polars as pl

from polars_mcc._base.allowed_values import Correction
from polars_mcc._base.message_parts import Words, option, refused
from polars_mcc._counts.sides_and_slices import cut, sides_of
from polars_mcc._counts.sliced_log import SlicedLog
from polars_mcc._frame.columns import IntoColumn
from polars_mcc._frame.log_options import Described
from polars_mcc._intervals.interval_options import IntervalOptions
from polars_mcc._keys.any_key import IntoKey, check_plain, keys_of
from polars_mcc._keys.each_rollup_cube_sets_trailing import step_of
from polars_mcc._metrics import registry
from polars_mcc._metrics.exact_scores import with_labels_for


def cut_log(
    log: Described[Any],
    keys: Sequence[IntoKey],
    asked: IntervalOptions,
    taken: Iterable[str],
    baseline: IntoColumn | None = None,
    **options: Any,  # noqa: ANN401 - those of `cut`
) -> tuple[SlicedLog, IntervalOptions]:
    """The log cut by keys, with labels if the metric needs them, and what the metric needs."""
    of_row, *others = {metric.of_row_in(log.roles) for metric in asked.metrics}
    if others:
        names = " and ".join(repr(metric.name) for metric in asked.metrics)
        msg = f"{names} make one score of a score per class in their own ways: ask for each alone"
        raise ValueError(msg)
    sides = sides_of(log, registry.role_of(asked.metrics), of_row=of_row, baseline=baseline)
    sliced = cut(sides, keys, taken=taken, **options)
    positive = registry.positive_class(asked.metrics, log.roles.positive, sliced.label_dtype)
    return with_labels_for(sliced, asked.metrics), replace(asked, positive=positive)


def keys_and_within(
    log: Described[Any],
    verb: str,
    keys: Sequence[IntoKey],
    within: IntoKey | Sequence[IntoKey] | None,
    *,
    sets: bool = False,
) -> tuple[list[IntoKey], list[str], list[str]]:
    """The keys of `within`, the names of the keys, and of `within`, or an error.

    `sets`: whether the verb takes sets of keys.
    """
    inside: list[Any] = [] if within is None else [within]
    if isinstance(within, Sequence) and not isinstance(within, str):
        inside = [*within]
    reason = "it slices by plain columns; pass only these"
    check_plain(keys, verb, "it compares the slices of all rows" if sets else reason, sets=sets)
    check_plain(inside, verb, reason)
    log.roles.check_without(verb, "it assumes independent rows", "cluster")
    schema = log.roles.schema
    names, of_whole = (
        [*keys_of(schema, some, long=False).columns.names] for some in (keys, inside)
    )
    if not names:
        call = Words(f"{verb}('country')", "--by country")
        raise refused(f"{verb} compares slices: name the keys to slice by, as in ", call)
    for name in {*names} & {*of_whole}:
        raise ValueError(f"'{name}' is a key and also in within: remove it from one of them")
    return inside, names, of_whole


def level_without(
    false_alarms: str | None, ci: float | None, correction: Correction | None, every: str = "1d"
) -> float | None:
    """The confidence level of a test that is made once in each period, or a ValueError.

    Without `false_alarms` it is `ci`; else there is one false alarm in such a time, on average.
    """
    if false_alarms is None:
        return ci
    if ci is not None:
        msg = "ci and false_alarms both say how sure an alarm must be: leave one of them out"
        raise ValueError(msg)
    if correction not in {"holm", "bonferroni"}:
        raise refused(
            option("correction", correction),
            " does not limit false alarms to one in a time: use 'holm' or 'bonferroni'",
        )
    start = pl.lit(datetime(2001, 1, 1))  # noqa: DTZ001 - any year of 365 days
    lengths = []
    for name, length in (("every", every), ("false_alarms", false_alarms)):
        number, unit = step_of(name, length)
        lengths.append(pl.select(start.dt.offset_by(f"{number}{unit}") - start).item())
    step, time = lengths
    if step >= time:
        given = option("false_alarms", false_alarms)
        raise refused(given, f" must be longer than a period of {every}")
    return 1 - float(step / time)
