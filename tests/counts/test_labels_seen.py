"""Labels that a query counts, and labels that are looked for among them."""

from __future__ import annotations

import polars as pl
import pytest

from polars_mcc._counts.label_hashes import Seen
from polars_mcc._counts.warnings_on_labels_and_keys import named_in_vain


@pytest.mark.parametrize(
    ("named", "counted"),
    [
        (["b", None, "a"], pl.Series(["a", "b", "c", None])),
        (["b"], pl.Series(["a", "b"], dtype=pl.Categorical)),
        ([0, 1], pl.Series([1, 0], dtype=pl.Int128)),
        ([True], pl.Series([False])),
        ([0.1], pl.Series([0.5])),
    ],
    ids=str,
)
def test_the_log_is_not_looked_at_if_all_labels_were_counted(named, counted):
    """Nor for Booleans and floats, which nobody misspells."""
    seen = Seen(named={"cost": named}).take(counted)
    assert [*named_in_vain(None, seen)] == []


def test_integers_are_taken_only_if_some_are_looked_for():
    assert Seen().take(pl.Series([1])).hashes is None
    assert Seen(named={"cost": [2]}).take(pl.Series([1])).hashes is not None
