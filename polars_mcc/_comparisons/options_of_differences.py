"""What verbs that test a metric share: checks of options, the cut log, and names of columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import polars as pl

from polars_mcc._base.allowed_values import Correction, Method, check_choice, check_level
from polars_mcc._base.message_parts import Words, option, refused
from polars_mcc._counts.sides_and_slices import cut, sides_of
from polars_mcc._counts.sliced_log import SlicedLog, unscored_columns
from polars_mcc._frame.columns import IntoColumn
from polars_mcc._frame.log_options import Described
from polars_mcc._intervals.interval_options import IntervalOptions
from polars_mcc._keys.any_key import IntoKey, check_plain, keys_of
from polars_mcc._keys.each_rollup_cube_sets_trailing import step_of
from polars_mcc._metrics import registry
from polars_mcc._metrics.exact_scores import with_labels_for
from polars_mcc._metrics.metric_type import Metric

P_VALUES = ("p_value", "p_adjusted")
DIFFERENCE = ("diff", "diff_low", "diff_high", "diff_se")


def check(ci: float, method: Method, correction: Correction) -> None:
    """Raise a ValueError if an option of a test has an unknown value."""
    check_choice("method", method, Method)
    check_choice("correction", correction, Correction)
    check_level(ci)


def names_of(
    log: Described[Any], sizes: Sequence[str], scores: Mapping[str, str], tests: Sequence[str]
) -> dict[str, str]:
    """The columns of an answer, each with its name.

    A metric may have any name, so columns with its `scores` get their names last.
    """
    columns = (*sizes, *scores, *tests, *unscored_columns(waiting=log.roles.waiting))
    return {name: scores.get(name, name) for name in columns}


def names_of_periods(
    log: Described[Any], metric: Metric, tests: Sequence[str], *, has_clusters: bool
) -> dict[str, str]:
    """The columns of an answer about two periods, each with its name."""
    names = ("n", "n_clusters", metric.name) if has_clusters else ("n", metric.name)
    of_periods = [f"{name}_{period}" for name in names for period in ("before", "after")]
    return names_of(log, of_periods, {}, tests)


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


def answer_of(log: SlicedLog, slices: pl.DataFrame, names: Mapping[str, str]) -> pl.DataFrame:
    """The slices with their columns in the answer."""
    return slices.select(
        *log.slice, *(pl.col(column).alias(name) for column, name in names.items())
    )


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
