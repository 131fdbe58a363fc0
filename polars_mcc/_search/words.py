"""What a search has looked at, in a sentence: an answer of no rows is an answer too."""

from __future__ import annotations

import polars as pl

from polars_mcc._counts.sliced import LONG, SET


def summed_up(answer: pl.DataFrame, metric: str, *, has_models: bool) -> tuple[pl.DataFrame, str]:
    """The slices that are listed, of an answer with all verdicts; and what was looked at."""
    listed = answer.filter(pl.col("verdict") == "listed").drop("verdict")
    models = answer.unique("model") if has_models else answer.head(1)
    if models.is_empty():
        return listed, "No slice has enough rows and two labels: none was looked at."
    tested = models["n_tested"].to_list()
    number = f"{tested[0]:,} slices of each of {len(tested)} models"
    if len(tested) == 1:
        number = f"{tested[0]:,} slices"
    elif len({*tested}) > 1:
        number = f"{sum(tested):,} slices of {len(tested)} models"
    untested = max(models["n_untested"].to_list())
    small = f" ({untested:,} more have too few rows, or no interval)" if untested else ""
    behind = f"{listed.height or 'none'} behind"
    if beyond := (answer["verdict"] == "beyond the list").sum():
        behind += f", and {beyond:,} more that are not listed"
    looked = f"{number} looked at{small}, {behind}"
    nearest = answer.filter(pl.col("verdict") == "not behind").head(1)
    if listed.height or nearest.is_empty():
        return listed, f"{looked}."
    row = nearest.row(0, named=True)
    scores = f"{metric} {row[metric]:.3f} beside {row[f'{metric}_rest']:.3f}"
    p = row["p_adjusted"]  # With clusters it is not known of all.
    sure = "" if p is None else f", p_adjusted {p:.2g}"
    model = f" ({row['model']})" if has_models else ""
    return listed, f"{looked}. Nearest: {said(row)}{model} (n {count(row['n'])}, {scores}{sure})."


def said(row: dict[str, object]) -> str:
    """A slice as one would say it, from a row of the answer."""
    if LONG[0] in row and SET not in row:
        return f"{text(row[LONG[0]])} = {text(row[LONG[1]])}"
    set_ = f", {row[SET]}, "
    after = [*row][[*row].index(SET) + 1 : [*row].index("n")]
    keys = [name for name in after if f", {name}, " in set_]
    return ", ".join(f"{key} = {text(row[key])}" for key in keys)


def text(value: object) -> str:
    """A value of a key, or a label."""
    return "null" if value is None else str(value)


def count(n: float) -> str:
    """A number of rows, or a sum of weights."""
    return f"{n:,}" if isinstance(n, int) else f"{n:,.6g}"
