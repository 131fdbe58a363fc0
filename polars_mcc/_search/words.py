"""One sentence on the slices that a search has tested, also if no slice is behind."""

from __future__ import annotations

import polars as pl

from polars_mcc._counts.sliced import LONG, SET


def summed_up(answer: pl.DataFrame, metric: str, *, has_models: bool) -> tuple[pl.DataFrame, str]:
    """Take the listed slices from a result with all verdicts, and sum up the search in words."""
    listed = answer.filter(pl.col("verdict") == "listed").drop("verdict")
    models = answer.unique("model") if has_models else answer.head(1)
    if models.is_empty():
        return listed, "No slice was tested: none has enough rows and two labels."
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
    looked = f"{number} tested{small}: {worse}"
    nearest = answer.filter(pl.col("verdict") == "not behind").head(1)
    if listed.height or nearest.is_empty():
        return listed, f"{looked}."
    row = nearest.row(0, named=True)
    scores = f"{metric} {row[metric]:.3f}, rest of the log {row[f'{metric}_rest']:.3f}"
    p = row["p_adjusted"]  # None: with clusters it is not computed for all slices.
    sure = "" if p is None else f", p_adjusted {p:.2g}"
    model = f" ({row['model']})" if has_models else ""
    return listed, f"{looked}. Nearest: {said(row)}{model} (n {count(row['n'])}, {scores}{sure})."


def said(row: dict[str, object]) -> str:
    """The name of a slice, such as `device = pc`, from a row of the result."""
    if LONG[0] in row and SET not in row:
        return f"{text(row[LONG[0]])} = {text(row[LONG[1]])}"
    set_ = f", {row[SET]}, "
    after = [*row][[*row].index(SET) + 1 : [*row].index("n")]
    keys = [name for name in after if f", {name}, " in set_]
    return ", ".join(f"{key} = {text(row[key])}" for key in keys)


def text(value: object) -> str:
    """The text of a value of a key, or of a label."""
    return "null" if value is None else str(value)


def count(n: float) -> str:
    """The text of a number of rows, or of a sum of weights."""
    return f"{n:,}" if isinstance(n, int) else f"{n:,.6g}"
