"""Text beside integers or Booleans: the error shows the labels, and its advice works."""

from __future__ import annotations

import json
from itertools import product

import polars as pl
import pytest
from runner import invoke
from support import first

import polars_mcc

N = 40
CODES = [i % 2 for i in range(N)]
OTHERS = [code if i % 5 else 1 - code for i, code in enumerate(CODES)]
TEXTS = {"words": ["no", "yes"], "digits": ["0", "1"], "booleans": ["false", "True"]}
DTYPES = (pl.String, pl.Categorical, pl.Enum)
SAME = "give both columns the same labels first"


def log_of(words, dtype, side, kind):
    """A log with text on one side, and integers or Booleans on the other."""
    texts = pl.Series([words[code] for code in CODES]).cast(dtype)
    others = pl.Series(OTHERS).cast(kind)
    columns = {"gold": texts, "pred": others} if side == "gold" else {"gold": others, "pred": texts}
    return pl.DataFrame(columns)


@pytest.mark.slow
def test_advice_works_on_every_kind_of_text_side_and_frame():
    expected = pl.DataFrame({"gold": CODES, "pred": OTHERS}).mcc.score()["mcc"].item()
    reached = dict.fromkeys(("cast", "compare", "same"), 0)
    sides, kinds = ("gold", "pred"), (pl.Int64, pl.UInt8, pl.Boolean)
    for name, dtype, side, kind, lazy in product(TEXTS, DTYPES, sides, kinds, (False, True)):
        words = TEXTS[name]
        log = log_of(words, pl.Enum(words) if dtype == pl.Enum else dtype(), side, kind)
        with pytest.raises(pl.exceptions.SchemaError) as raised:
            (log.lazy() if lazy else log).mcc.score()
        told = str(raised.value)
        shown = [f"'{side}' has {a!r}, {b!r}" in told for a, b in (words, words[::-1])]
        assert any(shown) == (not lazy or dtype == pl.Enum), told
        assert told.endswith(SAME) == ("if the text is numbers" in told) == (kind != pl.Boolean)
        if name != "digits" and kind != pl.Boolean:
            reached["same"] += 1
            continue
        advice = told.split("as in ")[1].split("; else", maxsplit=1)[0]
        reached["cast" if ".cast(" in advice else "compare"] += 1
        code = advice.replace("'True'", repr(words[1]))
        found = log.with_columns(eval(code)).mcc.score()  # noqa: S307 - our own words
        assert found["mcc"].item() == pytest.approx(expected), (told, code)
        assert found["n"].item() == N
    assert reached == {"cast": 24, "compare": 36, "same": 48}


def test_many_labels_and_lists():
    log = pl.DataFrame({"gold": [f"c{i}" for i in range(30)], "pred": range(30)})
    with pytest.raises(pl.exceptions.SchemaError, match=r"'gold' has 'c0', .*…; 'pred' has 0, .*…"):
        log.mcc.score()
    lists = log.head(3).select(pl.all().implode())
    with pytest.raises(pl.exceptions.SchemaError, match=SAME):
        lists.mcc.score()
    digits = lists.with_columns(gold=pl.lit(["0", "1", "2"]))
    with pytest.raises(pl.exceptions.SchemaError) as raised:
        digits.mcc.score()
    code = str(raised.value).split("as in ")[1].split("; else")[0]
    mended = digits.with_columns(eval(code))  # noqa: S307 - our own words
    assert mended["pred"].to_list() == [["0", "1", "2"]]
    assert mended.mcc.score()["n"].item() > 0


@pytest.mark.parametrize("ending", first(1, ["csv", "parquet"]))
def test_advice_of_commands_works(ending, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    expected = pl.DataFrame({"gold": CODES, "pred": OTHERS}).mcc.score()["mcc"].item()
    reached = 0
    for words, side, kind in product(TEXTS.values(), ("gold", "pred"), (pl.Int64, pl.Boolean)):
        dtype = pl.Enum(words) if ending == "parquet" else pl.String()
        log = log_of(words, dtype, side, kind)
        getattr(log, f"write_{ending}")(f"log.{ending}")
        told = invoke("score", f"log.{ending}").stderr
        assert "pl." not in told
        if "as in " not in told or "--text" in told or (words[0] != "0" and kind == pl.Int64):
            continue  # Words beside integers are not cast.
        sql = told.split("as in ")[-1].strip().split("; else")[0].split("; if it is text")[0]
        sql = sql.replace("'True'", f"'{words[1]}'")
        column = side if kind == pl.Boolean else {"gold": "pred", "pred": "gold"}[side]
        typed = [f"--{column}", f"{sql} AS {column}"]
        done = invoke("score", f"log.{ending}", *typed, "--format", "json")
        assert done.exit_code == 0, (told, sql, done.stderr)
        assert json.loads(done.stdout)[0]["mcc"] == pytest.approx(expected), (told, sql)
        reached += 1
    assert reached == {"csv": 2, "parquet": 8}[ending]


@pytest.mark.parametrize("word", ["fraud", "it's", "True"])
def test_the_positive_label_is_the_word_for_true(word, tmp_path, monkeypatch):
    """What the message advises is done, in Python and in the shell: 3 of 4 are found."""
    monkeypatch.chdir(tmp_path)
    log = pl.DataFrame({"outcome": [word] * 4 + ["ok"] * 2, "pred": [True] * 3 + [False] * 3})
    log.write_parquet("log.parquet")
    with pytest.raises(pl.exceptions.SchemaError, match="word for true, as in ") as raised:
        log.mcc(gold="outcome", positive=word)
    code, left_out = str(raised.value).split("as in ")[1].split(", and leave out ")
    assert left_out == f"positive={word!r}"
    gold = eval(code)  # noqa: S307 - our own message
    assert log.mcc(gold=gold).score(metrics="recall")["recall"].item() == 0.75
    asked = ("score", "log.parquet", "--metric", "recall", "--format", "csv")
    refused = invoke(*asked, "--gold", "outcome", "--positive", word)
    sql = refused.stderr.split("as in ")[1].split(", and leave out --positive")[0]
    done = invoke("by", *asked[1:], "--gold", sql)
    assert pl.read_csv(done.stdout_bytes)["recall"].item() == 0.75


@pytest.mark.parametrize("metric", ["recall", "specificity", "precision", "f1", "mcc"])
def test_a_log_without_the_positive_class_is_told(metric, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    log = pl.DataFrame({"gold": [False] * 4, "pred": [True, False] * 2})
    said = "all labels of 'gold' are False: with one gold class, MCC and its kin are 0/0"
    for frame in (log, log.lazy()):
        with pytest.warns(polars_mcc.PredictionLogWarning, match=said):
            frame.mcc.by(metrics=metric, ci=0.9).lazy().collect()
    log.write_parquet("log.parquet")
    assert said in invoke("by", "log.parquet", "--metric", metric).stderr
