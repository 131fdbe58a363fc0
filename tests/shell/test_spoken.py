"""Text for Python in the words of a shell; the messages of commands."""

from __future__ import annotations

import re
import shlex

import polars as pl
import pytest
from runner import invoke

from polars_mcc._shell.spoken import in_shell

SPOKEN = {
    "pass ci=0.95 too": "pass --ci 0.95 too",
    "such as min=0.6, or no_worse_than=, the counts": (
        "such as --min 0.6, or --no-worse-than, the counts"
    ),
    "as in frame.mcc(positive='fraud'); the labels": "as in --positive fraud; the labels",
    "frame.mcc(pred=['old', 'a b'])": "--pred old --pred 'a b'",
    "frame.mcc(pred=pl.col('score') >= 0.5), or": "--pred 'score >= 0.5', or",
    "long=True shows keys, as in by('country')": "--long shows keys, as in --by country",
    "as in pl.col('mcc').alias('mcc_key')": "as in --by 'mcc AS mcc_key'",
    "a slice, as {'country': 'US'}, got": "a slice, as country=US, got",
    'as `pl.col("day") < date(2026, 3, 5)`.': "as `day < DATE '2026-03-05'`.",
    'a name of `metrics()`. In Python also `pl.col("a").min()`. More.': (
        "a name of `polars-mcc metrics`. More."
    ),
    "In Python also an expression.": "",
    "see `min_n` and `by`": "see --min-n and `by`",
    "pass labels=[...], or metrics=['a', 'b']": "pass --labels …, or --metric a --metric b",
    "n=3, mcc=0.5 and name=value stay": "n=3, mcc=0.5 and name=value stay",
}


@pytest.mark.parametrize("text", SPOKEN)
def test_text_for_python_is_said_as_it_is_typed(text):
    assert in_shell(text) == SPOKEN[text]


def test_a_mapping_repeats_its_option():
    text = 'one number per metric, as `{"mcc": 0.5, "f1_macro": 0.6}`'
    expected = "one number per metric, as `--min mcc=0.5 --min f1_macro=0.6`"
    assert in_shell(text, flag="--min") == expected


def test_what_the_user_typed_is_not_translated():
    message = "filter 'gold=1 AND' is not SQL; pass ci=0.95"
    expected = "filter 'gold=1 AND' is not SQL; pass --ci 0.95"
    assert in_shell(message, typed=["gold=1 AND"]) == expected


REFUSED = {
    "contrast": "--by country",
    "by --long": "--by country",
    "by --method wald": "--ci 0.95",
    "by --metric ppv": "--positive fraud",
    "by --pred no --score k": None,
    "by --by 'k AS mcc'": "--by 'mcc AS mcc_key'",
    "check --by k": "--min 0.6",
    "check --by k --min 0.1 --metric fnr --positive 1": "--max 0.1",
    "compare": "--pred old --pred new",
    "contrast --by k --to nothing": "country=US",
    "curve --score k": "--positive 1",
    "confusion --by 'k AS gold'": None,
    "by --filter 'gold=1 AND'": "filter 'gold=1 AND'",
}
"""Commands that are refused, with what their message says to type."""


@pytest.mark.parametrize("line", REFUSED)
def test_a_message_says_what_to_type(line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    log = pl.DataFrame({"k": [1, 2, 3], "gold": [0, 1, 0], "pred": [0, 1, 1]})
    log.write_parquet("log.parquet")
    verb, *typed = shlex.split(line)
    done = invoke(verb, "log.parquet", *typed)
    assert (done.exit_code, done.stdout) == (2, "")
    assert (REFUSED[line] or "") in done.stderr
    assert not re.search(r"pl\.|\.mcc|=True|\{|\(\)|\bci=|min=", done.stderr)
