"""A search in words: its slices, their confusions, and what was tested."""

from __future__ import annotations

import polars as pl

from polars_mcc._counts.sliced import SAID


def shortened(answer: pl.DataFrame, *, has_models: bool) -> pl.DataFrame:
    """The listed slices of each model of a result with all verdicts; without any, the nearest."""
    place = pl.int_range(pl.len())
    place = place.over("model") if has_models else place
    return answer.filter((pl.col("verdict") == "listed") | (place == 0))


def summed_up(answer: pl.DataFrame, metric: str, *, has_models: bool) -> str:
    """Sum up a search in words, from a result with all verdicts."""
    listed = answer.filter(pl.col("verdict") == "listed")
    models = answer.unique("model") if has_models else answer.head(1)
    if models.is_empty():
        return "No slice was tested: none has enough rows and two labels."
    tested = models["n_tested"].to_list()
    number = f"{tested[0]:,} slices of each of {len(tested)} models"
    if len(tested) == 1:
        number = f"{tested[0]:,} slices"
    elif len({*tested}) > 1:
        number = f"{sum(tested):,} slices of {len(tested)} models"
    untested = max(models["n_untested"].to_list())
    more = "1 more has" if untested == 1 else f"{untested:,} more have"
    small = f" ({more} too few rows, or no interval)" if untested else ""
    verb = "are" if listed.height > 1 else "is"
    worse = f"{listed.height or 'none'} {verb} worse than the rest of the log"
    if beyond := (answer["verdict"] == "beyond the list").sum():
        worse += f", and {beyond:,} more that are not listed"
    if explained := (answer["verdict"] == "explained by those listed").sum():
        these = "it" if listed.height == 1 else "these"
        worse += f"; {explained:,} more only because they share rows with {these}"
    sentences = [f"{number} tested{small}: {worse}."]
    most = answer.filter(pl.col("verdict") == "the rest is better").head(1)
    for row in most.iter_rows(named=True):
        model = f" ({row['model']})" if has_models else ""
        here, rest = (f"{row[name]:.3f}" for name in (metric, f"{metric}_rest"))
        sentences.append(
            f"The rest of the log stands out, as most rows are in {row[SAID]}{model}: {metric} is "
            f"{rest} outside, {here} inside (n {count(row['n'])})."
        )
    nearest = answer.filter(pl.col("verdict") == "not behind").head(1)
    if not listed.height and not most.height and nearest.height:
        row = nearest.row(0, named=True)
        scores = f"{metric} {row[metric]:.3f}, rest of the log {row[f'{metric}_rest']:.3f}"
        p = row["p_adjusted"]  # None: with clusters it is not computed for all slices.
        sure = "" if p is None else f", p_adjusted {p:.2g}"
        model = f" ({row['model']})" if has_models else ""
        sentences.append(f"Nearest: {row[SAID]}{model} (n {count(row['n'])}, {scores}{sure}).")
    return " ".join(sentences)


def confused(gold: object, pred: object, share: float | None, rest: float | None) -> str | None:
    """A confusion in words, such as `40 % of gold 0 predicted 1, 28 % elsewhere`."""
    if share is None:
        return None
    elsewhere = "none elsewhere" if rest is None else f"{percent(rest)} elsewhere"
    return f"{percent(share)} of gold {text(gold)} predicted {text(pred)}, {elsewhere}"


def percent(share: float) -> str:
    """A share in percent, with one decimal below 10 %. The space does not break the line."""
    digits = 0 if share >= 0.1 or share == 0 else 1
    return f"{100 * share:.{digits}f}\u00a0%"


def text(value: object) -> str:
    """The text of a value of a key, or of a label."""
    return "null" if value is None else str(value)


def rows_in_words(n: float) -> str:
    """A number of rows in words."""
    return f"{count(n)} {'row' if n == 1 else 'rows'}"


def count(n: float) -> str:
    """The text of a number of rows, or of a sum of weights."""
    return f"{n:,}" if isinstance(n, int) else f"{n:,.6g}"
