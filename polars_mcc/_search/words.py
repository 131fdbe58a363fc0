"""What a search has looked at, in a sentence: an answer of no rows is an answer too."""

from __future__ import annotations

import polars as pl

from polars_mcc._counts.sliced import LONG, SET


def summed_up(answer: pl.DataFrame, metric: str) -> tuple[pl.DataFrame, str]:
    """The slices that are listed, of an answer with verdicts; and what was looked at."""
    listed = answer.filter(pl.col("verdict") == "listed").drop("verdict")
    models = answer.unique("model") if "model" in answer.columns else answer.head(1)
    if models.is_empty():
        return listed, "No slice has enough rows and two labels: none was looked at."
    tested, untested = models.select(pl.col("n_tested", "n_untested").sum()).row(0)
    of_models = f" of {models.height} models" if models.height > 1 else ""
    small = f" ({untested:,} more have too few rows, or no interval)" if untested else ""
    looked = f"{tested:,} slices{of_models} looked at{small}, {listed.height or 'none'} behind"
    nearest = answer.filter(pl.col("verdict") == "not behind").head(1)
    if listed.height or nearest.is_empty():
        return listed, f"{looked}."
    row = nearest.row(0, named=True)
    what = f"n {row['n']:,}, {metric} {row[metric]:.3f} beside {row[f'{metric}_rest']:.3f}"
    p = row["p_adjusted"]  # With clusters it is not known of all.
    sure = "" if p is None else f", p_adjusted {p:.2g}"
    return listed, f"{looked}. Nearest: {said(row)} ({what}{sure})."


def said(row: dict[str, object], *, with_model: bool = True) -> str:
    """A slice as one would say it, from a row of the answer."""
    model = [f"{row['model']}, "] if "model" in row and with_model else []
    if LONG[0] in row and SET not in row:
        return "".join([*model, f"{row[LONG[0]]} = {row[LONG[1]]}"])
    set_ = f", {row[SET]}, "
    after = [*row][[*row].index(SET) + 1 : [*row].index("n")]
    keys = [name for name in after if f", {name}, " in set_]
    return "".join([*model, ", ".join(f"{key} = {row[key]}" for key in keys)])
