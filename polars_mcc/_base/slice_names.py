"""Slices in words, such as `age ≤ 25 and country = DE`: one wording for tables, charts and text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import polars as pl

ALL_ROWS = "all rows"
"""The slice of no keys."""


def clause(key: str, text: pl.Expr) -> pl.Expr:
    """What the name of a slice says about one key, from the text of its value: `country = DE`.

    `bins` and the search name ranges. A name has the key in place of x: `x ≤ 25`, `25 < x ≤ 45.5`,
    `x 26 to 45`, `x before 2026-03-16`.
    """
    text = text.fill_null("null")
    name = pl.lit(key)
    is_range = text.str.contains(r"^(?:[≤>] |before \d|from \d.* on$|in the week |-?\d+ to -?\d+$)")
    is_between = text.str.contains(" < x ≤ ", literal=True)
    between = text.str.replace(" x ", pl.lit(f" {key} "), literal=True)
    return (
        pl.when(is_range)
        .then(pl.format("{} {}", name, text))
        .when(is_between)
        .then(between)
        .otherwise(pl.format("{} = {}", name, text))
    )


def slice_name(keys: Mapping[str, pl.Expr], active: pl.Expr | None = None) -> pl.Expr:
    """The name of a slice, from the text of each key.

    `active` is the set of keys of the slice, as in the column `keys`; None: all keys.
    """
    clauses = []
    listed = None if active is None else pl.format(", {}, ", active)
    for key, text in keys.items():
        is_here = True if listed is None else listed.str.contains(f", {key}, ", literal=True)
        clauses.append(pl.when(is_here).then(clause(key, text)))
    if not clauses:
        return pl.lit(ALL_ROWS)
    is_any = pl.any_horizontal(clause.is_not_null() for clause in clauses)
    return pl.when(is_any).then(crossed_name(clauses)).otherwise(pl.lit(ALL_ROWS))


def crossed_name(clauses: Iterable[pl.Expr]) -> pl.Expr:
    """The name of a slice from its clauses; null for a key that its set lacks."""
    return pl.concat_str(clauses, separator=" and ", ignore_nulls=True)
