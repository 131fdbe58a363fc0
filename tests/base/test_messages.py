"""A message has the words of Python, and the words of the command line beside them."""

from __future__ import annotations

import itertools
import pickle

import polars as pl
import pytest

from polars_mcc._base.errors_and_warnings import Failure, in_own_words, unless
from polars_mcc._base.message_parts import (
    Words,
    cast,
    column,
    in_shell,
    of_error,
    option,
    renamed,
    said,
)

WORDS = {
    option("min", 0.6): ("min=0.6", "--min 0.6"),
    option("min_n", 3): ("min_n=3", "--min-n 3"),
    option("long", value=True): ("long=True", "--long"),
    option("weight", None): ("weight=None", "no --weight"),
    option("keys", ["a", "b c"]): ("keys=['a', 'b c']", "--by a --by 'b c'"),
    option("to", {"k": "DE"}): ("to={'k': 'DE'}", "--to k=DE"),
    option("positive", "fraud", of="log"): ("log(positive='fraud')", "--positive fraud"),
    renamed("mcc", "mcc_key"): ("pl.col('mcc').alias('mcc_key')", "--by 'mcc AS mcc_key'"),
    cast(column("k"), "Float64"): ("pl.col('k').cast(pl.Float64)", "k::DOUBLE"),
    cast(column("a b"), "Float64"): ("pl.col('a b').cast(pl.Float64)", '"a b"::DOUBLE'),
    column("temp-c"): ("pl.col('temp-c')", '"temp-c"'),
    Words(", as in log(...)"): (", as in log(...)", ""),
}


@pytest.mark.parametrize("words", WORDS)
def test_each_part_has_both_words(words):
    assert (str(words), in_shell(words)) == WORDS[words]


def test_a_text_of_the_user_is_never_taken_for_words():
    message = said("column 'temp min=3' needs ", option("ci", 0.95), ", not {'ci': 1}")
    assert message == "column 'temp min=3' needs ci=0.95, not {'ci': 1}"
    assert message.in_shell == "column 'temp min=3' needs --ci 0.95, not {'ci': 1}"


@pytest.mark.parametrize("kind", [ValueError, pl.exceptions.SchemaError])
def test_an_error_carries_both(kind):
    error = pickle.loads(pickle.dumps(kind(option("ci", 0.95))))  # noqa: S301 - our own
    assert str(error) == "ci=0.95"
    assert in_shell(of_error(error)) == "--ci 0.95"
    assert in_shell(of_error(kind("plain"))) == "plain"


def test_a_message_about_a_value_is_whole_whatever_the_value():
    """Polars writes several values, without escapes: they look like the end of one."""
    values = ['x", "y', 'a"]b', "line\nbreak", "back\\slash", '"', "…"]
    for value, engine in itertools.product(values, ("in-memory", "streaming")):
        rows = pl.LazyFrame({"id": [value, value, "other"]})
        message = ("id '", pl.col("id"), "' is there twice")
        query = rows.select(unless(pl.col("id"), Failure(pl.col("id") == value, message)))
        with pytest.raises(pl.exceptions.InvalidOperationError) as raised, in_own_words():
            query.collect(engine=engine)
        assert str(raised.value) == f"id '{value}' is there twice"
