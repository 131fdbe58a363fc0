"""Slices in words, such as `age ≤ 25 and country = DE`: one wording for tables, charts and text."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import polars as pl

from polars_mcc._base.values_as_text_or_markdown import in_quotes

ALL_ROWS = "all rows"
"""The slice of no keys."""


SET_COLUMN = "keys"  # names the set of keys of a slice, if there are several sets


def value_in_words(text: pl.Expr) -> pl.Expr:
    """The text of the value of a key; in quotes if it could be read as null, or as two clauses."""
    is_unclear = text.str.contains(r'^null$|^"| and ')
    return pl.when(is_unclear).then(in_quotes(text)).otherwise(text).fill_null("null")


def clause(key: str, text: pl.Expr) -> pl.Expr:
    """What the name of a slice says about one key, from the text of its value: `country = DE`.

    `bins` and the search name ranges. A name has the key in place of x: `x ≤ 25`, `25 < x ≤ 45.5`,
    `x 26 to 45`, `1m 30s < x ≤ 2m`, `x before 2026-03-16`.
    """
    text = value_in_words(text)
    name = pl.lit(key)
    is_range = text.str.contains(r"^(?:[≤>] |before \d|from \d.* on$|in the week |-?\d+ to -?\d+$)")
    is_between = text.str.contains(r"^-?\d[^<≤]* < x ≤ -?\d[^<≤]*$")
    between = text.str.replace(" x ", pl.lit(f" {key} "), literal=True)
    return (
        pl.when(is_range)
        .then(pl.format("{} {}", name, text))
        .when(is_between)
        .then(between)
        .otherwise(pl.format("{} = {}", name, text))
    )


def slice_name(
    keys: Mapping[str, pl.Expr], sets: Mapping[str, Collection[str]] | None = None
) -> pl.Expr:
    """The name of a slice, from the text of each key.

    `sets` are the keys of each set, by its name in the column `keys`; None: all keys.
    """
    clauses = []
    for key, text in keys.items():
        is_here: pl.Expr | bool = True
        if sets is not None:
            names = [name for name, own in sets.items() if key in own]
            is_here = pl.col(SET_COLUMN).cast(pl.String).is_in(names)
        clauses.append(pl.when(is_here).then(clause(key, text)))
    if not clauses:
        return pl.lit(ALL_ROWS)
    is_any = pl.any_horizontal(clause.is_not_null() for clause in clauses)
    return pl.when(is_any).then(crossed_name(clauses)).otherwise(pl.lit(ALL_ROWS))


def crossed_name(clauses: Iterable[pl.Expr]) -> pl.Expr:
    """The name of a slice from its clauses; null for a key that its set lacks."""
    return pl.concat_str(clauses, separator=" and ", ignore_nulls=True)
