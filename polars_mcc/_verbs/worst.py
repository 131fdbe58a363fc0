"""`worst`: the slices that score worse than the rest of the log."""

from __future__ import annotations

from typing import cast

import polars as pl

from polars_mcc._base import allowed_values, defaults
from polars_mcc._base.allowed_values import Correction, Rank, Reference
from polars_mcc._base.errors_and_warnings import warn_of
from polars_mcc._base.message_parts import Words, quoted
from polars_mcc._base.unstable_polars import deferred
from polars_mcc._comparisons.columns_of_answers import answer_columns
from polars_mcc._counts.label_hashes import Seen
from polars_mcc._counts.sides_and_slices import cut, sides_of
from polars_mcc._counts.sliced_log import SAID
from polars_mcc._counts.warnings_on_labels_and_keys import LogLabels, named_in_vain, warner
from polars_mcc._frame.columns import FrameT, resolved
from polars_mcc._frame.log_options import Described
from polars_mcc._intervals.interval_options import IntervalOptions, check_portable
from polars_mcc._keys.any_key import IntoKey, check_plain, columns_of
from polars_mcc._keys.each_rollup_cube_sets_trailing import KeySets
from polars_mcc._metrics import registry
from polars_mcc._metrics.registry import IntoMetric


def worst(
    log: Described[FrameT],
    *keys: IntoKey,
    metric: IntoMetric = defaults.METRIC,
    to: Reference = defaults.TO,
    depth: int = defaults.DEPTH,
    min_n: int = defaults.MIN_N,
    max_share: float = defaults.MAX_SHARE,
    bins: int | None = defaults.BINS,
    top: int | None = None,
    rank: Rank = defaults.RANK,
    ci: float = defaults.LEVEL,
    correction: Correction = defaults.CORRECTION,
    verdicts: bool = False,
    long: bool = False,
) -> FrameT:
    """Find the slices that score worse than the rest of the log, in any combination of keys.

    Every slice of up to `depth` keys is compared with the rest of the log: with all rows outside
    the slice. A slice may be listed if its p-value is at most 1 - `ci`. Which are listed is a
    stepwise regression of the loss of rows on slices, as columns of 0 and 1. The loss is minus the
    influence of a row on the score of all rows, with to="expected" less the mean of its gold label.
    Rows that have none are left out, as rows of other classes are for the recall of a class.

    - z is the evidence of a slice: the two-sided standard normal deviate of `p_value`. L is the
      same of its losses: Σ e·x over σ√(Σ x²), with e the residuals of the losses from the mean of
      all rows, x the column of the slice less its mean, and σ² the larger of Σ e²x² / Σ x² and
      mean(e²). If Σ x² is 5 or less, L is 0.
    - l is the same, with the same σ, and with residuals e and x of a regression on a constant and
      the listed slices; or, if it is less, with residuals from the means of the rows that are in
      the same listed slices, unless this Σ x² is less than half of the other.
    - Beside the listed slices, z·l/L is left, between 0 and z. If L is 2 or less: z - (L - l), at
      most z, times √(Σ x² of l / Σ x² of L). It is not more than z of the slice in the log of each
      listed slice that contains it.
    - A step takes the slice with the most left. Of the slices with fewer keys that contain it and
      would be sure enough to be taken, the one with the most left is taken instead, if less than 3
      of the first is left beside it and those listed. Then the listed slice with the least left
      beside the others leaves for good, while its p-value is above the bound for a list of this
      length (see `correction`).
    - Once a range of one number, or of times, is listed without other keys, its bins are columns
      of the regression too, for all slices but ranges of it alone. Of a slice that overlaps a
      listed one with the same keys, nothing is left if l is below L/2.
    - The list ends if the p-value of the next slice is above the bound for a list with it. Its
      first slice is taken whenever the p-values of all slices allow a list.

    The keys and labels are read once, into memory, when the answer is collected. What is counted
    next depends on what was found, so the search is no query: it counts what is in memory.

    Args:
        *keys: The columns to search, cut or not, as in `bins(age, 5)`. In Python also expressions
            and selectors.
        metric: The metric that is compared: a name of `metrics()`, or a call such as
            "cost(fn=10, fp=1)". If less is better, as for "fnr", slices with a higher value are
            listed. In Python also a function, as in `by`.
        to: What a slice is compared with. "rest": the score of all other rows. "expected": what the
            slice would score given its labels, which is `expected`. Then slices are listed
            that err more than their mix of gold labels explains.
        depth: The largest number of keys that are crossed. All slices are counted: at depth 2, ten
            keys of 20 values each make about 18,000 slices.
        min_n: The least number of rows, or sum of weights, of a slice. Smaller slices are not
            tested. With sample weights w, the rows are (Σ w)² / Σ w²: so many rows of equal weight
            would be as good. So it is with `nulls="reweight"`, where w is how many rows a labelled
            row stands for.
        max_share: The largest share of the rows, or of the sum of weights, of a slice that is
            tested: beside a larger one, too few rows are left.
        bins: The number of bins. A key of numbers, durations or times of the day with more than
            three times as many values is cut at round numbers near its quantiles. Its slices are
            the bins, all numbers up to a cut, and all numbers above a cut. Dates are cut by day,
            week or month, whichever gives few enough bins. Their slices are the bins, all times
            before a cut, and all times from a cut on. None: each number and each time is a value of
            its own.
        top: The largest number of rows of the answer, for all models together. None: all rows. A
            list has at most 100 slices: those with the most evidence.
        rank: The order of the list. "loss": by how much better the log would score without the
            slice. "gap": by how far the interval of the difference is from 0.
        ci: The confidence level of the intervals. It also limits false slices: on average they are
            at most 1 - ci of the list (see `correction`). The p-values stay the same.
        correction: How false slices are limited: slices that are listed, but are not worse than
            the rest. "bh" (Benjamini and Hochberg) keeps their expected share of the list near
            1 - ci or below: the bound of a list of k slices is (1 - ci)·k/m, of m tests. "by"
            (Benjamini and Yekutieli) allows for any overlap of slices. "holm" and "bonferroni"
            limit the probability of a single false slice.
        verdicts: Return every slice that was tested: the listed slices first, then by verdict, the
            nearest to the list first. Columns that are known only for the listed slices, or for the
            nearest slice if none is listed, are null elsewhere: limits, confusions, expected scores
            that are not compared, and with clusters some p-values.
        long: Leave out the columns of the keys: `slice` says their values.

    Returns:
        A DataFrame, or a LazyFrame if the log is lazy, with one row per listed slice, the worst
        first. There is no row if no slice fails; of several models, no row of a model without a
        failing slice. `verdicts=True` then tells which slices were tested, and which is the
        nearest to the list.

        - `slice` (String): the slice in words, such as "age ≤ 46 and country = DE";
        - `keys` (String): the names of the keys of the slice;
        - the keys, with their dtypes; numbers and times are String, named as in `bins`, unless
          `bins` is None. A key that `keys` does not name is null; in a key that it names, null is
          a value;
        - `model` (String), if the log has several models. Each model is compared only with itself,
          and has a list of its own;
        - `metric` (String);
        - `n`, `score`: of the slice;
        - `reference` (Float64): the score of all other rows. Like the score of the slice, it is as
          in `by`: null without the gold rows that a rate needs, and `zero_division` at 0/0;
        - `expected` (Float64): of the slice given its labels: if its rows were predicted at the
          rates of all rows with their gold label. A slice with `score` below `reference`, but not
          below `expected`, has a mix of labels that is harder;
        - `beside` (Float64): how much is left beside all other listed slices: `diff` times what is
          left of z, over z. `p_beside` is the p-value of what is left;
        - `loss` (Float64): how much better the log would score without the slice, with both scores
          as in `by`. It is below 0 if the log would score worse: MCC over a log is not a mean over
          its slices;
        - `confusion` (String): the confusion with the largest excess of rows, in words, such as
          "40 % of gold 0 predicted 1, 28 % elsewhere". If only one label is predicted, but there
          are several gold labels: the most frequent label that is missed, such as
          "predicts only 'no': 0 of 120 'yes' found";
        - `confused_gold`, `confused_pred` (dtype of the labels): the confusion with the largest
          excess of rows over the rate of the rest; `confused` and `confused_rest` (Float64): its
          share of the rows of that gold label, in the slice and in the rest;
        - `explained_by` (String): the surest listed slice that no key keeps apart from an explained
          one;
        - `n_tested`, `n_untested` (Int64; the same in all rows of a model): the slices tested, and
          the slices counted that have too few rows or no interval. A slice with the same scored
          rows as a coarser slice counts as the coarser one, once;
        - `diff`, `diff_low`, `diff_high` (Float64): the slice minus the rest, or minus `expected`,
          and its interval;
        - `p_value` (Float64): that both scores are equal, two-sided, from the likelihood ratio of
          two proportions with Yates' correction; 1 if the slice is not below the rest. With
          to="expected": that the rates given the gold labels are equal; the variance of the score
          is that of draws without replacement (multivariate hypergeometric). If all rows of a slice
          are predicted as one class, so that the metric is 0/0, and its upper limit is below the
          rest: twice the probability that no row is predicted as another of its gold labels, at the
          rates of all rows;
        - `p_adjusted` (Float64): `p_beside` corrected for `n_tested` tests, also of slices that
          are better than the rest. With `verdicts`, for a slice that is not behind: its value if
          it were listed next;
        - `verdict` (Enum): "listed"; "beyond the list" (behind, and the list is full); "not
          behind"; "explained by those listed" (behind, but not beside the listed slices); "no
          interval"; "too few rows" (outside the slice: it has more than `max_share` of them);
        - `n_null`: the rows of the slice not scored.

        A slice with a single gold label has no interval of MCC, so it is not listed:
        `metric="accuracy"` finds it. The same holds for a slice with a single predicted label if
        `zero_division` is not 0, and for "precision", which may be anything there. For a mean over
        classes, such as "f1_macro", a slice without one of the gold classes is not tested: its
        score is the mean of other classes. If it is the rest that lacks a class, as all its gold
        rows are inside the slice, the slice is tested as with to="expected", and has no interval;
        with sample weights, clusters or `nulls="reweight"` it is not tested. With
        `nulls="reweight"`, a slice and its rest are reweighted apart; a slice is not tested if one
        of its predictions has no labelled row.

    For how many planted slices are found, and how many false ones, see the guide, *Find the slices
    that fail*. Memory: 1 or 2 bytes per row, key and label; numbers and times take the bytes of
    their dtype until they are cut. The guide has what was measured. In a log with clusters, a slice
    is counted by cluster only if it may be listed.

    Raises:
        ValueError: There are no keys, or keys are sets or windows; `depth`, `min_n`, `bins` or
            `top` is too small; an option has an unknown value; the metric is a count, or has no
            derivative; `to` is "expected", and the log has clusters, sample weights or
            `nulls="reweight"`.

    The errors of `by` are raised too.

    References:
        The correction: Y. Benjamini and Y. Hochberg, Journal of the Royal Statistical Society B 57
        (1995) 289-300; Y. Benjamini and D. Yekutieli, Annals of Statistics 29 (2001) 1165-1188.
        The standard errors of the regression: H. White, Econometrica 48 (1980) 817-838. The
        p-value: S. S. Wilks, Annals of Mathematical Statistics 9 (1938) 60-62. The interval: G. Y.
        Zou, Psychological Methods 12 (2007) 399-413.

    Warns:
        PredictionLogWarning: When the answer is collected: a key is probably the id of a row, a
            label, a prediction or a score, or its values differ only in case, spaces or Unicode
            form, such as "Male" and "male". The warnings of `by` about labels come then too.

    Examples:
        >>> import polars as pl
        >>> import polars_mcc
        >>> log = pl.read_parquet("data/digits.parquet").mcc(pred="bayes")
        >>> found = log.worst("ink", "day", "fold")
        >>> [row] = found.to_dicts()
        >>> row["slice"], row["n"], row["verdict"]
        ('ink ≤ 4.73 and day before 2026-03-16', 321, 'listed')
        >>> found.select("score", "reference", "expected", "p_adjusted", "n_tested")
        shape: (1, 5)
        ┌──────────┬───────────┬──────────┬────────────┬──────────┐
        │ score    ┆ reference ┆ expected ┆ p_adjusted ┆ n_tested │
        │ ---      ┆ ---       ┆ ---      ┆ ---        ┆ ---      │
        │ f64      ┆ f64       ┆ f64      ┆ f64        ┆ i64      │
        ╞══════════╪═══════════╪══════════╪════════════╪══════════╡
        │ 0.747107 ┆ 0.856127  ┆ 0.831057 ┆ 0.00838    ┆ 484      │
        └──────────┴───────────┴──────────┴────────────┴──────────┘

    Command line::

        polars-mcc worst logs/ --by country --by device --by browser --top 10
    """
    allowed_values.check_choice("to", to, Reference)
    allowed_values.check_choice("rank", rank, Rank)
    allowed_values.check_at_least("depth", depth, 1)
    IntervalOptions(ci, min_n=min_n, correction=correction)  # An error if one is not allowed.
    if not (isinstance(max_share, (int, float)) and 0 < max_share <= 1):
        msg = f"max_share is the largest share of rows of a slice, between 0 and 1, got {max_share}"
        raise ValueError(msg)
    if top is not None:
        allowed_values.check_at_least("top", top, 1)
    if bins is not None:
        allowed_values.check_at_least("bins", bins, 2)
    check_plain(keys, "worst", "it crosses columns itself, up to depth; pass plain columns")
    if not resolved(log.roles.schema, [*columns_of(log.roles.schema, keys)], "key"):
        labels = log.roles.label_columns
        columns = [name for name in log.roles.schema if name not in labels]
        raise ValueError(
            f"worst looks for slices: name the keys to slice by; the columns are {quoted(columns)}"
        )
    chosen = registry.find_tested_metric(metric, log.roles.label_dtype)
    registry.check_rate(chosen, "large slices")
    if to == "expected":
        needs = "rows must be independent and of equal weight"
        call = Words("worst(..., to='expected')", "worst --to expected")
        log.roles.check_without(call, needs, "cluster", "sample_weight", "reweight")
    # NumPy is loaded for it alone.
    from polars_mcc._worst import search_steps  # noqa: PLC0415
    from polars_mcc._worst.column_codes import coded_log  # noqa: PLC0415
    from polars_mcc._worst.slice_scores import SearchSettings  # noqa: PLC0415
    from polars_mcc._worst.warnings_on_searched_keys import odd_keys  # noqa: PLC0415

    columns = answer_columns("worst", log)
    each_key = KeySets("each", keys, total=False)
    sides = sides_of(log, chosen.role, of_row=chosen.of_row_in(log.roles))
    taken = [*([] if long else [SAID]), *columns]
    sliced = cut(sides, [each_key], taken=taken, clusters=True, long=long)
    settings = SearchSettings(
        metric=chosen,
        columns=columns,
        positive=registry.positive_class([chosen], log.roles.positive, sliced.label_dtype),
        depth=depth,
        min_n=min_n,
        max_share=max_share,
        bins=bins,
        top=top,
        rank=rank,
        ci=ci,
        correction=correction,
        verdicts=verdicts,
        long=long,
        to=to,
    )
    warn = warner(log, of_two_classes=chosen.is_of_two or chosen.is_of_positive)

    def answer() -> pl.DataFrame:
        coded = coded_log(sliced, bins=bins, least=min_n)
        warn_of(odd_keys(coded, log.roles.gold.name, min_n))
        named = Seen(named=registry.named_labels([chosen])).take(coded.labels)
        warn_of(named_in_vain(LogLabels.of(log), named))
        slices = search_steps.searched(settings, coded)
        warn(Seen)
        return slices

    if not log.roles.is_lazy:
        return cast("FrameT", answer())
    check_portable(sliced)
    return cast("FrameT", deferred(answer, search_steps.schema_of(settings, sliced)))
