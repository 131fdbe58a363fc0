"""Text for Python in the words of a shell; the messages of commands."""

from __future__ import annotations

import re
import shlex

import polars as pl
import pytest
from runner import invoke

from polars_mcc._shell.spoken import as_help, in_shell

SPOKEN = {
    "pass ci=0.95 too": "pass --ci 0.95 too",
    "such as min=0.6, or no_worse_than=, the counts": (
        "such as --min 0.6, or --no-worse-than, the counts"
    ),
    "as in frame.mcc(positive='fraud'); the labels": "as in --positive fraud; the labels",
    "in Polars as trailing(pl.col('ts').str.to_datetime(), '7d')": (
        "as in trailing('ts::TIMESTAMP', '7d')"
    ),
    "in Polars as trailing(pl.col('my ts').str.to_datetime(), '7d')": (
        """as in trailing('"my ts"::TIMESTAMP', '7d')"""
    ),
    "frame.mcc(pred=['old', 'a b'])": "--pred old --pred 'a b'",
    "frame.mcc(pred=pl.col('score') >= 0.5), or": "--pred 'score >= 0.5', or",
    "long=True shows keys, as in by('country')": "--long shows keys, as in --by country",
    "as in pl.col('mcc').alias('mcc_key')": "as in --by 'mcc AS mcc_key'",
    "a slice, as {'country': 'US'}, got": "a slice, as country=US, got",
    'as `pl.col("day") < date(2026, 3, 5)`.': "as `day < DATE '2026-03-05'`.",
    "see `min_n` and `best_threshold`": "see --min-n and `polars-mcc best-threshold`",
    "cast one, as in pl.col('k').cast(pl.Float64)": "cast one, as in k::DOUBLE",
    "work in by(), score() and counts()": "work in by, score and counts",
    "use counts('k')": "use counts --by k",
    "rename one with .alias(...)": "rename one with AS",
    "leave it out, as in log(cluster=None).contrast(...)": "leave it out",
    "'gold' is Struct({'k': String, 'v': Int64}) in 'a/{'x': y}'": (
        "'gold' is Struct({'k': String, 'v': Int64}) in 'a/{'x': y}'"
    ),
    "pass labels=[...], or metrics=['a', 'b']": "pass --labels …, or --metric a --metric b",
    "no file 'top=3/a' in 'logs/top=3/'": "no file 'top=3/a' in 'logs/top=3/'",
    r"got {'a': '\x'}": r"got {'a': '\x'}",
    "n=3, mcc=0.5 and name=value stay": "n=3, mcc=0.5 and name=value stay",
}


@pytest.mark.parametrize("text", SPOKEN)
def test_text_for_python_is_said_as_it_is_typed(text):
    assert in_shell(text) == SPOKEN[text]


def test_a_mapping_repeats_its_option():
    text = 'one number per metric, as `{"mcc": 0.5, "f1_macro": 0.6}`'
    expected = "one number per metric, as `--min mcc=0.5 --min f1_macro=0.6`"
    assert as_help(text, "--min") == expected


def test_help_has_no_sentence_on_python():
    text = 'A name of `metrics()`. In Python also `pl.col("a").min()`, or `f()`. More.'
    assert as_help(text) == "A name of `polars-mcc metrics`. More."
    assert as_help("In Python also an expression.") == ""
    assert in_shell("filter 'In Python. X' is not SQL") == "filter 'In Python. X' is not SQL"


def test_what_the_user_typed_is_not_translated():
    typed = "k=1 AND gold=1 AND"
    message = f"filter '{typed}' is not SQL; pass ci=0.95"
    expected = f"filter '{typed}' is not SQL; pass --ci 0.95"
    assert in_shell(message, typed=[typed]) == expected
    assert in_shell(message) != expected


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
    "by --filter 'k=1 AND gold=1 AND'": "filter 'k=1 AND gold=1 AND'",
    "drift --before 'k < 1' --after 'k >= 1'": "--before must be true for some rows",
    "by --by k --by k": "rename one with AS",
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
