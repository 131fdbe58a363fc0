"""`changes`: since when a slice is worse."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date, timedelta
from functools import partial
from typing import Any

import polars as pl

from polars_mcc._base import allowed_values, defaults
from polars_mcc._base.allowed_values import Alternative, Correction, Reference
from polars_mcc._base.errors_and_warnings import warn_of
from polars_mcc._base.message_parts import Words, option, refused, said
from polars_mcc._base.values_as_text_or_markdown import as_text, read_as, rows_in_words
from polars_mcc._comparisons import options_of_differences
from polars_mcc._comparisons.columns_of_answers import CHANGED, SEEN, VERDICT, answer_columns
from polars_mcc._counts.count_rows import count_pairs
from polars_mcc._counts.pair_counts import pairs
from polars_mcc._counts.sliced_log import KEY, SET, SlicedLog
from polars_mcc._counts.warnings_on_missing_labels import labels_that_stopped
from polars_mcc._frame.columns import Frame, FrameT, IntoColumn, as_expr
from polars_mcc._frame.labels import is_text
from polars_mcc._frame.late_labels import as_length, earlier, newest_or_now, now_of
from polars_mcc._frame.log_options import Described
from polars_mcc._intervals.interval_options import IntervalOptions, inferred
from polars_mcc._keys.any_key import IntoKey, check_plain, name_of
from polars_mcc._keys.each_rollup_cube_sets_trailing import check_days, step_of
from polars_mcc._metrics import registry
from polars_mcc._metrics.registry import IntoMetric

SINCE = "since"


def changes(
    log: Described[FrameT],
    *keys: IntoKey,
    every: str | None = "1d",
    metric: IntoMetric = defaults.METRIC,
    ci: float = defaults.LEVEL,
    false_alarms: str | None = None,
    correction: Correction = defaults.CHECK_CORRECTION,
    alternative: Alternative = "worse",
    to: Reference = "expected",
    lookback: str | timedelta | None = None,
    known: pl.DataFrame | pl.LazyFrame | None = None,
    min_n: int = defaults.MIN_N,
    max_changes: int = defaults.MAX_CHANGES,
) -> FrameT:
    """Find since when each slice is worse, and whether that is chance.

    The rows of each slice are counted by period. For every period, the rows from it on are compared
    with the rows before. The largest of these differences is tested; its p-value and its limits
    allow for having looked at all periods.

    A score moves with the mix of labels, although the model is the same: rare classes are more
    frequent on weekends, for example. So both sides are compared given their gold labels.

    A failure is seen in every slice that has some of its rows. So, in the order of p-values, each
    slice that changed is tested again, without the rows of all surer slices that changed, and
    with the same periods. If it then has no such change, or is below `min_n`, it is "part of" them.

    Args:
        *keys: The keys to slice by, as in `by`, but no windows. None: all rows are one slice.
        every: The length of a period, such as "1d", "1w" or "6h". Days are those of the zone of
            the time; weeks begin on Mondays. None: each value of the time is a period of its own,
            as a column of days in a frame of another engine.
        metric: The metric to compare: a name of `metrics()`, of labels, with an interval. In Python
            also a function, as in `by`.
        ci: The confidence level of the limits. 1 - `ci` is the level of the test.
        false_alarms: How long healthy slices are without a false alarm, on average, if this is
            asked once in each period, such as "1y": instead of `ci`, which is then 1 minus `every`
            (a day, if that is None) divided by it. It allows for all slices of the answer, and
            needs a correction by "holm" or "bonferroni".
        correction: The correction of p-values for the number of slices: see `compare`.
        alternative: Whether to find slices that became "worse", "better", or either, "two-sided".
            Only the last tells that a score fell, and recovered.
        to: What the rows after are compared with. "expected": with what they would score given
            their labels, at the rates of all rows of the slice; the rows before likewise. "rest":
            with the score of the rows before. Then a change of the mix of labels counts too.
        lookback: Only look at the last periods, such as "90d" before the end of the newest, or
            before now if that is earlier.
        known: Changes that somebody has seen: rows of an earlier answer, with the keys and `since`.
            Of these slices, only rows from `since` on are looked at, so that they are not found
            again. What changes elsewhere only with their rows, and not since then, is part of them.
            Rows whose `verdict` is neither "worse" nor "better" are left out. Text is read in the
            dtype of the log: read a CSV file with `infer_schema=False`.
        min_n: The least number of rows before and after. With weights, the least sum.
        max_changes: The largest number of changes of a slice. If a change is sure, the rows before
            it and the rows after it are looked at in the same way.

    Returns:
        A DataFrame, or a LazyFrame if the log is lazy, the slice with the surest change first. It
        has one row per slice, or one per change in the order of time, with the keys, `model` if the
        log has several models, and

        - `metric` (String);
        - `since` (the dtype of the time): the first period after; null if no period has enough rows
          before and after;
        - `n_before`, `n_after`: the rows scored; `reference`, `score` (Float64): their scores,
          before and after; `reference_expected`, `expected` (Float64): what they would score given
          their gold labels if nothing had changed;
        - `dispersion` (Float64): how many times as much the score varies between blocks of seven
          periods as independent rows would. Blocks are those of the calendar, whatever days have
          rows: of days, they are weeks from Monday on, and so they are if `every` is None. It is
          at least 1, and p-value and limits allow for it;
        - `n_untimed`: the rows without a time, which are not used;
        - `part_of` (String): if the verdict is "part of", the surest slice that shares rows with
          this one, in words;
        - `diff` (Float64): after minus before, each less what its labels explain; or of the plain
          scores, with `to="rest"`; `diff_low`, `diff_high`, its limits;
        - `p_value`, that nothing changed, and `p_adjusted`, after correction (Float64);
        - `verdict` (Enum): "worse" or "better" if `p_adjusted` is below 1 - `ci`; then "part of" if
          surer slices explain it; "labels moved" if the plain score changed so surely, but not
          given the labels; "no change"; or "not judged", without enough rows;
        - `n_null`: the rows not scored.

    Significance:
        Rows must be independent given their slice and label. Let φ be how far a row moves the score
        (its influence), and U the sum over the rows before of φ less its mean over all rows with
        the same gold label. Where nothing changes, the predictions of each label before are a draw
        without replacement, so U has known moments, and the skewness is taken into account (Wilson
        and Hilferty 1931). The p-value of the largest of all periods is Worsley's bound (1982) from
        the correlations of neighbours. The guide has the measured error rates.

        If the true rates wander from day to day, that is a change too, and it is found.
        `dispersion` makes such alarms rarer, but does not bring them to the level; nor do longer
        periods.

        The second test only takes alarms away. Its p-value is corrected for the number of slices
        (Bonferroni). Slices of the same keys share no rows. If keys are not counted together, as
        with `each`, the rows of the slices that changed are counted once more.

    Raises:
        ValueError: The log has no `time`; a key is a window; `every`, `lookback` or `false_alarms`
            is no length of time; both `ci` and `false_alarms` are given, or a correction that does
            not fit; labels come later, and the log has no `min_age`: the last days would only have
            labels that came quickly; the log has clusters, sample weights or `nulls="reweight"`;
            the metric has no interval, is of scores, or is a count; `false_alarms` with
            `to="rest"`; `known` has a key that is not asked for, or a text that is no value of its
            column in the log.
        TypeError: `known` is no frame of Polars.
        polars.exceptions.ColumnNotFoundError: `known` lacks a key or `since`.
        polars.exceptions.SchemaError: `since` in `known` is no time.

    The errors of `by` are raised too.

    References:
        K. J. Worsley, An improved Bonferroni inequality and applications, Biometrika 69 (1982)
        297-302. B. Lausen and M. Schumacher, Maximally selected rank statistics, Biometrics 48
        (1992) 73-85. E. B. Wilson and M. M. Hilferty, The distribution of chi-square, Proceedings
        of the National Academy of Sciences 17 (1931) 684-688.

    Examples:
        >>> import polars as pl
        >>> import polars_mcc
        >>> from datetime import date, timedelta
        >>> days = [date(2026, 3, 1) + timedelta(i // 20) for i in range(800)]
        >>> gold = [i % 3 == 0 for i in range(800)]
        >>> is_wrong = [i % (3.5 if i >= 600 else 7) < 1 for i in range(800)]
        >>> pred = [label ^ wrong for label, wrong in zip(gold, is_wrong)]
        >>> log = pl.DataFrame({"day": days, "gold": gold, "pred": pred}).mcc(time="day")
        >>> found = log.changes()
        >>> found.select("since", "reference", "score", "p_value", "verdict")
        shape: (1, 5)
        ┌────────────┬───────────┬──────────┬──────────┬─────────┐
        │ since      ┆ reference ┆ score    ┆ p_value  ┆ verdict │
        │ ---        ┆ ---       ┆ ---      ┆ ---      ┆ ---     │
        │ date       ┆ f64       ┆ f64      ┆ f64      ┆ enum    │
        ╞════════════╪═══════════╪══════════╪══════════╪═════════╡
        │ 2026-03-31 ┆ 0.691976  ┆ 0.404799 ┆ 0.000234 ┆ worse   │
        └────────────┴───────────┴──────────┴──────────┴─────────┘

    Command line::

        polars-mcc changes logs/ --by country --time ts --false-alarms 1y
    """
    allowed_values.check_choice("alternative", alternative, Alternative)
    allowed_values.check_choice("to", to, Reference)
    allowed_values.check_at_least("max_changes", max_changes, 1)
    check_plain(keys, "changes", "windows overlap, but each row must be in one period", sets=True)
    _check_log(log)
    if known is not None and not isinstance(known, Frame):
        raise TypeError(f"known must be a DataFrame of earlier changes, got {type(known).__name__}")
    if false_alarms is not None and to == "rest":
        both = option("false_alarms", false_alarms), " does not support ", option("to", to)
        why = ": a change of the mix of labels is no false alarm; leave one of them out"
        raise refused(*both, why)
    given = None if ci == defaults.LEVEL else ci
    level = options_of_differences.level_without(false_alarms, given, correction, every or "1d")
    ci = ci if level is None else level
    chosen = registry.find_tested_metric(metric, log.roles.label_dtype)
    registry.check_rate(chosen, "long periods")
    if chosen.is_of_scores:
        raise ValueError(f"metric '{chosen.name}' is of scores: use one of labels, as 'mcc'")
    names = answer_columns("changes", log)
    period, name, uncut = _period(log, every)
    taken = [column for column in names if column != name]
    asked = IntervalOptions(
        ci, metrics=[chosen], is_compared=True, min_n=min_n, correction=correction
    )
    sliced, asked = options_of_differences.cut_log(log, [*keys, period], asked, taken)
    of_slices = _apart(sliced, name)

    def by_period(counted: pl.LazyFrame) -> pl.LazyFrame:
        """The pairs of slices and periods, with `since`."""
        counted = counted.rename({KEY + name: SINCE})
        return counted if uncut is None else counted.with_columns(pl.col(SINCE).dt.truncate(uncut))

    def again(added: Callable[[pl.LazyFrame], pl.LazyFrame], keys: Sequence[str]) -> pl.LazyFrame:
        of_keys = replace(sliced, keys=(*keys, name), sets=None)
        return by_period(count_pairs(of_keys, added(sliced.rows)))

    def infer(cells: pl.DataFrame) -> pl.DataFrame:
        from polars_mcc._comparisons import changes_of_slices as found  # noqa: PLC0415 - NumPy, for it alone

        wanted = found.Wanted(
            asked=asked,
            falls=alternative != "better",
            rises=alternative != "worse",
            given_labels=to == "expected",
            max_changes=max_changes,
            block=_block_of(every or "1d"),
        )
        looked_at = cells if lookback is None else _recent(cells, lookback)
        looked_at = looked_at.with_columns(pl.lit(None, cells.schema[SINCE]).alias(SEEN))
        if known is not None and known.lazy().collect_schema():  # Else it has no rows.
            looked_at = _unseen(log, of_slices, looked_at, known)
        slices = found.changes(of_slices, looked_at, cells, again, wanted)
        return slices.select(*of_slices.slice, *names)

    check = partial(_warn_of_times, log, of_slices)
    counted = by_period(pairs(sliced))
    slices = inferred(log, of_slices, counted, infer, metrics=asked.metrics, check=check)
    answer = of_slices.answer(slices, SINCE)
    if of_slices.sets is not None:
        answer = answer.with_columns(pl.col(SET).replace(_set_names(of_slices)))
    # The surest slice comes first, with its changes in the order of time.
    surest = pl.col("p_value").min().over([*map(as_expr, of_slices.names.values())] or pl.lit(0))
    return log.in_kind(answer.sort(surest, nulls_last=True, maintain_order=True))


def _check_log(log: Described[Any]) -> None:
    """Raise a ValueError if the log cannot say since when it is worse."""
    roles = log.roles
    if roles.time is None:
        needed = option("time", "timestamp")
        raise refused("changes needs the time of a prediction: a column of the log, as in ", needed)
    if roles.waiting and log.min_age is None:
        way_out = said(
            "say how old a row must be to be looked at, as in ", option("min_age", "30d")
        )
        if not isinstance(roles.source, Frame):
            way_out = said("join them with the engine, filter the old rows, and leave outcomes out")
        why = "labels come later here, and the last days only have those that came quickly: "
        raise refused(why, way_out)
    reason = "it assumes independent rows of equal weight"
    roles.check_without("changes", reason, "cluster", "sample_weight", "reweight")


def _period(log: Described[Any], every: str | None) -> tuple[IntoColumn, str, str | None]:
    """The period of a row as a key, its name, and how its counts are still to be cut.

    A column of days stays as it is. Another engine counts the times; those in memory are cut later.
    """
    time = log.roles.time
    assert time is not None  # noqa: S101 - for the type checker
    if every is not None:
        check_days(time, "time", every)
    uncut = None if every == "1d" and time.dtype == pl.Date else every
    if isinstance(log.roles.source, Frame):
        period = time.expr if uncut is None else time.expr.dt.truncate(uncut)
        return period.alias(SINCE), SINCE, None
    if uncut is not None and log.roles.is_lazy:
        raise refused(
            f"another engine does not cut time '{time.name}' into periods: add a column of days "
            "with the engine, and pass ",
            option("every", value=None),
        )
    return time.given[0], time.name, uncut


def _block_of(every: str) -> str:
    """The length of seven periods. Weeks begin on Mondays, seven days on Thursdays."""
    number, unit = step_of("every", every)
    return f"{number}w" if unit == "d" else f"{7 * number}{unit}"


def _apart(sliced: SlicedLog, name: str) -> SlicedLog:
    """The slices of a log that is also cut by period."""
    keys = tuple(key for key in sliced.keys if key != name)
    of_slices = replace(sliced, keys=keys, pair_splits=(SINCE,))
    if sliced.sets is None:
        return replace(of_slices, has_total=not keys)
    own = {
        of_set: tuple(key for key in sets if key != name) for of_set, sets in sliced.sets.items()
    }
    return replace(of_slices, sets=own)


def _set_names(log: SlicedLog) -> dict[str, str]:
    """A set of keys is called after its own keys, without the period."""
    return {of_set: name_of(keys) for of_set, keys in (log.sets or {}).items()}


def _warn_of_times(log: Described[Any], slices: SlicedLog, cells: pl.DataFrame) -> None:
    """Warn of times after now, of numbers of another unit, and of labels that stopped coming."""
    if log.roles.waiting:
        waiting = pl.col("n").filter(pl.col("gold").is_null())
        of_times = slices.once(cells.lazy()).group_by(time=SINCE)
        sums = of_times.agg(pl.col("n").sum(), waiting=waiting.sum()).collect()
        warn_of(labels_that_stopped(sums, log.roles.gold.name))
    days = cells[SINCE].drop_nulls().cast(pl.Date)
    if len(days) and days.is_between(date(1969, 12, 1), date(1970, 1, 31)).all():
        what = "all times are of January 1970: if they count seconds or milliseconds, "
        way_out = Words("use pl.from_epoch(...)", "multiply by 1000000 or 1000 before ::TIMESTAMP")
        warn_of([said(what, way_out)])
    n = cells.filter(pl.col(SINCE) > now_of(cells.schema[SINCE]))["n"].sum()
    if n:
        warn_of([f"the time of {rows_in_words(float(n))} is after now: a change may be wrong"])


def _recent(cells: pl.DataFrame, lookback: str | timedelta) -> pl.DataFrame:
    """The pairs of the last periods, and those without a time."""
    since = pl.col(SINCE)
    newest = newest_or_now(since.max(), cells.schema[SINCE])
    oldest = earlier(newest, as_length("lookback", lookback))
    return cells.filter(since.is_null() | (since > oldest))


def _unseen(
    log: Described[Any], slices: SlicedLog, cells: pl.DataFrame, known: pl.DataFrame | pl.LazyFrame
) -> pl.DataFrame:
    """The pairs since the newest known change of their slice, `SEEN`, and those without a time."""
    seen, on = _seen(log, slices, known, cells.schema[SINCE]), [*slices.names.values()]
    texts = [
        as_text(pl.col(column), cells.schema[column]).alias(name)
        for column, name in slices.names.items()
    ]
    texts[:1] = [text.replace(_set_names(slices)) if slices.sets else text for text in texts[:1]]
    of_cells = cells.select(*texts, pl.col(SINCE))
    if not on:
        last = of_cells.with_columns(pl.lit(seen[SEEN].max()).alias(SEEN))
    else:
        last = of_cells.join(seen, on=on, how="left", nulls_equal=True, maintain_order="left")
        if n := seen.join(of_cells, on=on, how="anti", nulls_equal=True).height:
            rows = rows_in_words(float(n))
            warn_of([f"known has {rows} of no slice of the log: its keys may be misspelt"])
    is_seen = pl.col(SINCE) < pl.col(SEEN)
    return cells.with_columns(last[SEEN]).remove(is_seen)


def _seen(
    log: Described[Any], slices: SlicedLog, known: pl.DataFrame | pl.LazyFrame, dtype: pl.DataType
) -> pl.DataFrame:
    """The newest known change of each slice: its keys as text, and its time."""
    rows, names = known.lazy().collect(), [*slices.names.values()]
    for name in (*names, SINCE):
        if name not in rows.columns:
            msg = f"known has no column '{name}': pass an answer of changes by the same keys"
            raise pl.exceptions.ColumnNotFoundError(msg)
    others = {"keys", "model", *log.roles.schema} - {*names, *answer_columns("changes", log)}
    for name in rows.columns:
        if name in others:
            raise ValueError(
                f"known has the key '{name}', and changes is asked without it: ask by the same keys"
            )
    if VERDICT in rows.columns:
        rows = rows.filter(pl.col(VERDICT).cast(pl.String).is_in(CHANGED))
    of_keys = slices.key_dtypes
    typed = [_typed(rows[name], of_keys.get(name, pl.String())) for name in names]
    texts = [as_text(as_expr(key.name), key.dtype).alias(key.name) for key in typed]
    seen = pl.DataFrame([*typed, _typed(rows[SINCE], dtype).alias(SEEN)]).select(*texts, SEEN)
    return seen.group_by(names).agg(pl.col(SEEN).max()) if names else seen


def _typed(known: pl.Series, dtype: pl.DataType) -> pl.Series:
    """A column of known changes in the dtype of the log, or an error. A CSV file has text."""
    if known.name == SINCE and not (
        known.dtype.is_temporal() or known.dtype in {pl.String, pl.Null}
    ):
        msg = f"known has a column '{SINCE}' of {known.dtype}, which is no time"
        raise pl.exceptions.SchemaError(msg)
    if is_text(dtype):
        if known.dtype.is_numeric():  # It may have been 007.
            what = f"known has {known.dtype} in column '{known.name}', which is text in the log"
            raise pl.exceptions.SchemaError(f"{what}: read it as text")
        return known.cast(pl.String)
    typed = read_as(as_expr(known.name), known.dtype, dtype).cast(dtype)
    try:
        values = known.to_frame().select(typed.alias(known.name)).to_series()
        wrong = known.filter(known.is_not_null() & values.is_null())
    except pl.exceptions.ComputeError:  # no JSON
        wrong = known.drop_nulls()
    if len(wrong):
        raise ValueError(f"known has {wrong[0]!r} in column '{known.name}', which is no {dtype}")
    return values
