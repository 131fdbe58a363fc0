"""`worst`: the slices that fall behind the rest of the log."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import polars as pl

from polars_mcc._counts.cut import cut
from polars_mcc._log import defaults
from polars_mcc._log.choices import (
    Correction,
    Rank,
    check_at_least,
    check_choice,
    check_level,
)
from polars_mcc._log.columns import IntoColumn, resolved
from polars_mcc._log.described import Described
from polars_mcc._log.frames import Frame, FrameT
from polars_mcc._log.keys import KeySets, check_plain
from polars_mcc._scores import registry
from polars_mcc._scores.registry import IntoMetric


def worst(
    log: Described[FrameT],
    *keys: IntoColumn,
    metric: IntoMetric = defaults.METRIC,
    depth: int = defaults.DEPTH,
    min_n: int = defaults.MIN_N,
    bins: int | None = defaults.BINS,
    top: int | None = None,
    rank: Rank = defaults.RANK,
    ci: float = defaults.LEVEL,
    correction: Correction = defaults.CORRECTION,
    verdicts: bool = False,
    long: bool = False,
) -> FrameT:
    """Find the slices that fall behind the rest of the log, without naming them beforehand.

    Every slice of up to `depth` keys is compared with the rest of the log: with all rows outside
    the slice. A slice is listed if it is behind and has a reason of its own. The slice with the
    smallest p-value comes first:

    - Take the rows of all slices listed before out of the log. The remaining rows of the slice
      must be behind the remaining log. If phones in BR are bad, all phones are behind; without
      BR they are not, so they are not listed.
    - A part of a listed slice must be behind the rest of that slice. If all of DE is bad, phones
      in DE are listed only if they are worse.
    - Take the listed parts out of a slice. If its remaining rows are not behind, the slice is
      removed from the list.

    The log is read several times: for the values of each key, for the slices, and for the slices
    that may be listed. Each query depends on the answer of the one before. So a lazy log is read
    when the answer is collected, by several queries that stream.

    Args:
        *keys: The columns to look at: names, expressions, selectors.
        metric: What slices fall behind in: a name of `metrics()` that is not of pairs, or an
            expression over `classes`, as in `by`. Where less is better, such as of "fnr", slices
            with more of it fall behind.
        depth: How many keys are crossed, at most. With k keys of v values there are about
            (k·v)² / 2 slices at a depth of 2, all of them counted.
        min_n: Slices of fewer rows, or of a smaller sum of weights, are not looked at. Parts of a
            value that has too few are not even counted.
        bins: Numbers of more than three times so many values are cut into so many parts, at
            round numbers near their quantiles; their slices are these parts, all numbers up to
            one, and all above one. Dates and times are cut by day, week or month, whichever
            makes few enough: their slices are parts, all before one, all from one on. None:
            each number and time is a value by itself.
        top: How many rows the answer has, at most: of all models together, and with `verdicts`
            of all slices. None: all, but a list has no more than the 100 slices of most evidence.
        rank: Which slice comes first. "loss": the one without which the score of the log would be
            best. "gap": the one whose interval is farthest from 0.
        ci: The confidence level: of the intervals; and 1 - ci is the rate of slices that are
            listed, but not behind, that is accepted. p-values do not depend on it.
        correction: How many false slices a list may have. "bh" (Benjamini and Hochberg, focused
            on the list) keeps their expected share below 1 - ci where tests are independent or
            help each other; "by" (Benjamini and Yekutieli) whatever the overlap of slices;
            "holm", "bonferroni": the probability of a single one.
        verdicts: Give every slice that was looked at, with its verdict: the listed ones, then
            those that are "not behind", the nearest first. What is known of the listed slices
            alone is null: limits, confusions, and with clusters some p-values.
        long: Show a slice as two columns, `slice` (names of keys) and `value` (as text), in place
            of a column per key.

    Returns:
        A frame of the kind of the log, a row per slice that is listed, the worst first:

        - `keys` (String): the names of the keys of the slice;
        - the keys, with their dtypes, but numbers and times as String, in words, unless `bins` is
          None; null if not of the slice, which `keys` tells from a null that is a value;
        - `model` (String), if `pred` is several: each is compared with itself elsewhere, and has
          a list of its own;
        - `n`, `mcc` (called by the metric): of the slice;
        - `mcc_rest` (Float64): of all other rows; `diff`, `diff_low`, `diff_high`: the
          slice less the rest, and its interval;
        - `p_value` (Float64): of no difference, two-sided, from the ratio of the likelihoods of
          two proportions; 1 if the slice is not below the rest;
        - `p_adjusted` (Float64): the least 1 - ci for which this list holds down to this slice.
          It is made from the larger of `p_value` and the p-value of what is left of the slice,
          and from `n_tested`: slices that are better than the rest count as tests that found
          nothing. With `verdicts`, of a slice that is not behind: what it would be as the next one
          listed;
        - `loss` (Float64): how much better the log would score without the slice;
        - `confused_gold`, `confused_pred` (as the labels): the confusion of which the slice has
          most rows more than it would have at the rate of the rest; `confused` and
          `confused_rest` (Float64): its share of the rows of that gold label, there and elsewhere;
        - `verdict` (Enum), with `verdicts`: "listed"; "beyond the list" (behind, and the list is
          full); "not behind"; "explained by those listed" (behind by itself, for reasons that are
          listed); "no interval";
        - `n_tested`, `n_untested` (Int64; the same in all rows of a model): the slices looked at;
          and those that were counted and have too few rows, or no interval. A slice with all
          scored rows of a coarser one is that one, and counted once;
        - `n_null`: rows of the slice not scored.

        If no slice is behind, no row: `verdicts=True` then tells what was looked at. A slice in
        which one label alone occurs, or is predicted, has no interval of MCC, and is not listed:
        `metric="accuracy"` finds it.

    How many planted slices are found, and how many false ones: README, *Which slices fail*.
    Memory does not grow with the rows, but for 1 to 4 bytes a row and key up to 512 MB in all,
    which spare reading the log again. With clusters a slice is counted by cluster before it is
    listed, but not before.

    Raises:
        ValueError: There are no keys, or they are sets or windows; `depth`, `min_n`, `bins` or
            `top` is too small; an option has no such value; the metric is of pairs, or has no
            derivative.

    Errors of `by` are raised too.

    References:
        The list: E. Katsevich, C. Sabatti and M. Bogomolov, Journal of the American Statistical
        Association 118 (2023) 165-176; Y. Benjamini and Y. Hochberg, Journal of the Royal
        Statistical Society B 57 (1995) 289-300; Y. Benjamini and D. Yekutieli, Annals of
        Statistics 29 (2001) 1165-1188. The p-value: S. S. Wilks, Annals of Mathematical
        Statistics 9 (1938) 60-62. The interval: G. Y. Zou, Psychological Methods 12 (2007)
        399-413.

    Examples:
        >>> import polars as pl
        >>> import polars_mcc
        >>> log = pl.read_parquet("data/digits.parquet")
        >>> found = log.mcc.worst("ink", "day", "fold", long=True)
        >>> found.select("slice", "value", "n", "mcc", "mcc_rest")
        shape: (1, 5)
        ┌──────────┬────────────────────────────────┬─────┬──────────┬──────────┐
        │ slice    ┆ value                          ┆ n   ┆ mcc      ┆ mcc_rest │
        │ ---      ┆ ---                            ┆ --- ┆ ---      ┆ ---      │
        │ str      ┆ str                            ┆ i64 ┆ f64      ┆ f64      │
        ╞══════════╪════════════════════════════════╪═════╪══════════╪══════════╡
        │ ink, day ┆ up to 4.17, week of 2026-03-23 ┆ 57  ┆ 0.779528 ┆ 0.946452 │
        └──────────┴────────────────────────────────┴─────┴──────────┴──────────┘
        >>> found.select("^confused.*$", "p_adjusted", "n_tested")
        shape: (1, 6)
        ┌───────────────┬───────────────┬──────────┬───────────────┬────────────┬──────────┐
        │ confused_gold ┆ confused_pred ┆ confused ┆ confused_rest ┆ p_adjusted ┆ n_tested │
        │ ---           ┆ ---           ┆ ---      ┆ ---           ┆ ---        ┆ ---      │
        │ i8            ┆ i8            ┆ f64      ┆ f64           ┆ f64        ┆ i64      │
        ╞═══════════════╪═══════════════╪══════════╪═══════════════╪════════════╪══════════╡
        │ 4             ┆ 8             ┆ 0.666667 ┆ 0.005618      ┆ 0.032168   ┆ 486      │
        └───────────────┴───────────────┴──────────┴───────────────┴────────────┴──────────┘

    Command line:
        polars-mcc worst logs/ --by country --by device --by browser --top 10
    """
    check_choice("rank", rank, Rank)
    check_choice("correction", correction, Correction)
    check_level(ci)
    check_at_least("depth", depth, 1)
    check_at_least("min_n", min_n, 1)
    if top is not None:
        check_at_least("top", top, 1)
    if bins is not None:
        check_at_least("bins", bins, 2)
    check_plain(keys, "worst", "it crosses the columns itself, up to depth; name the columns alone")
    if not resolved(log.meaning.schema, keys, "key"):
        msg = "worst looks for slices: name the keys to slice by, as in worst('country', 'device')"
        raise ValueError(msg)
    chosen = registry.one(metric)
    if chosen.is_count:
        msg = f"worst compares rates, and '{chosen.name}' is a count, which is smaller in any slice"
        raise ValueError(msg)
    if chosen.pairs:
        msg = f"worst looks at metrics of classes, and '{chosen.name}' is of pairs"
        raise ValueError(msg)
    from polars_mcc._search.found import Search  # noqa: PLC0415 - NumPy is loaded for it alone

    search = Search(
        metric=chosen,
        positive=None,
        depth=depth,
        min_n=min_n,
        bins=bins,
        top=top,
        rank=rank,
        ci=ci,
        correction=correction,
        verdicts=verdicts,
    )
    sliced = cut(
        log, [KeySets("each", keys, total=False)], answers=search.columns(), cluster=True, long=long
    )
    positive = registry.checked([chosen], log.meaning.positive, sliced.label_dtype)
    search = replace(search, positive=positive)
    is_of_polars = isinstance(log.meaning.source, Frame)

    def found() -> pl.DataFrame:
        # Another engine is asked once.
        once = sliced if is_of_polars else replace(sliced, frame=sliced.frame.collect().lazy())
        return search.found(once)

    if not log.meaning.is_lazy:
        return cast("FrameT", found())
    return cast("FrameT", pl.defer(found, schema=search.schema(sliced)))
