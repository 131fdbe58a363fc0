"""Text beside integers or Booleans: the error shows the labels, and its advice works."""

from __future__ import annotations

import json
import re
from ast import literal_eval
from itertools import product

import polars as pl
import pytest
from runner import invoke
from support import first

N = 40
CODES = [i % 2 for i in range(N)]
OTHERS = [code if i % 5 else 1 - code for i, code in enumerate(CODES)]
TEXTS = {
    "words": (["no", "yes"], {0: "no", 1: "yes"}),
    "digits": (["0", "1"], {0: "0", 1: "1"}),
    "booleans": (["false", "True"], {0: "false", 1: "True"}),
}
DTYPES = (pl.String, pl.Categorical, pl.Enum)
SIGNS = {"cast": ".cast(", "compare": " == "}


def log_of(words, dtype, side, kind):
    """A log with text on one side, and integers or Booleans on the other."""
    texts = pl.Series([words[code] for code in CODES]).cast(dtype)
    others = pl.Series(OTHERS).cast(kind)
    columns = {"gold": texts, "pred": others} if side == "gold" else {"gold": others, "pred": texts}
    return pl.DataFrame(columns)


def filled(advice, answers):
    """The advice with its blanks filled in, as a user would."""
    return re.sub(
        r"('?\w+'?): …", lambda found: f"{found[1]}: {answers[literal_eval(found[1])]!r}", advice
    )


@pytest.mark.slow
def test_advice_works_on_every_kind_of_text_side_and_frame():
    expected = pl.DataFrame({"gold": CODES, "pred": OTHERS}).mcc.score()["mcc"].item()
    reached = dict.fromkeys(("cast", "compare", "blank", "filled"), 0)
    sides, kinds = ("gold", "pred"), (pl.Int64, pl.UInt8, pl.Boolean)
    for name, dtype, side, kind, lazy in product(TEXTS, DTYPES, sides, kinds, (False, True)):
        words, of_code = TEXTS[name]
        log = log_of(words, pl.Enum(words) if dtype == pl.Enum else dtype(), side, kind)
        with pytest.raises(pl.exceptions.SchemaError) as raised:
            (log.lazy() if lazy else log).mcc.score()
        told = str(raised.value)
        is_known = not lazy or dtype == pl.Enum
        shown = [f"'{side}' has {a!r}, {b!r}" in told for a, b in (words, words[::-1])]
        assert any(shown) == is_known, told
        last = told.rsplit("as in ", 1)[1]
        is_either = "if the text is numbers" in told
        assert is_either == (lazy and kind != pl.Boolean and (not is_known or name == "digits"))
        advice = (
            told.split("as in ")[1].split("; else", maxsplit=1)[0] if name == "digits" else last
        )
        how = "filled" if "…" not in advice else "blank"
        how = next((one for one, sign in SIGNS.items() if sign in advice), how)
        reached[how] += 1
        advice = advice.replace("'True'", repr(words[1])) if how == "compare" else advice
        of_word = {word: bool(code) for code, word in of_code.items()}
        code = filled(advice, of_word if kind == pl.Boolean else of_code)
        found = log.with_columns(eval(code)).mcc.score()  # noqa: S307 - our own words
        assert found["mcc"].item() == pytest.approx(expected), (told, code)
        assert found["n"].item() == N
    # Digits beside integers are cast; "True" and "false" beside Booleans are filled in.
    assert reached == {"cast": 24, "compare": 12, "blank": 64, "filled": 8}


@pytest.mark.parametrize(
    ("texts", "others", "advice"),
    [
        (["0", "1", "x"], [0, 1, 2], ".replace_strict({0: '0', 1: '1', 2: …})"),
        (["1", "2"], [0, 1], ".replace_strict({0: …, 1: '1'})"),
        (["True", "true", "no"], [True, False, None], ".replace_strict({False: …, True: …})"),
        (["True", "False", "?"], [True, False, None], "({False: 'False', True: 'True'})"),
        (["TRUE", "FALSE"], [True, False], ".replace_strict({'FALSE': …, 'TRUE': …})"),
        (["01", "1"], [1, 0], ".replace_strict({0: …, 1: '1'})"),
        ([None, None], [0, 1], ".replace_strict({0: …, 1: …})"),
    ],
)
def test_only_what_cannot_be_mistaken_is_filled_in(texts, others, advice):
    log = pl.DataFrame({"gold": pl.Series(texts, dtype=pl.String), "pred": others})
    with pytest.raises(pl.exceptions.SchemaError, match=re.escape(advice)):
        log.mcc.score()


def test_many_labels_and_lists():
    log = pl.DataFrame({"gold": [f"c{i}" for i in range(30)], "pred": range(30)})
    with pytest.raises(pl.exceptions.SchemaError, match=r"'gold' has 'c0', .*…; 'pred' has 0, .*…"):
        log.mcc.score()
    digits = log.with_columns(gold=pl.col("pred").cast(pl.String).replace({"7": "8"}))
    with pytest.raises(pl.exceptions.SchemaError, match=r"as in pl.col\('pred'\).cast\(pl.String"):
        digits.mcc.score()
    for lists, followed in (
        (log.head(3).select(pl.all().implode()), ["c0", "c1", "c2"]),
        (digits.head(3).select(pl.all().implode()), ["0", "1", "2"]),
    ):
        with pytest.raises(pl.exceptions.SchemaError) as raised:
            lists.mcc.score()
        code = filled(str(raised.value).split("as in ")[1], dict(enumerate(followed)))
        mended = lists.with_columns(eval(code))  # noqa: S307 - our own words
        assert mended["pred"].to_list() == [followed]
        assert mended.mcc.score()["n"].item() > 0


@pytest.mark.parametrize("ending", first(1, ["csv", "parquet"]))
def test_advice_of_commands_works(ending, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    expected = pl.DataFrame({"gold": CODES, "pred": OTHERS}).mcc.score()["mcc"].item()
    reached = 0
    for name, (words, of_code) in TEXTS.items():
        for side, other in (("gold", "pred"), ("pred", "gold")):
            for kind in (pl.Int64, pl.Boolean):
                dtype = pl.Enum(words) if ending == "parquet" else pl.String()
                log = log_of(words, dtype, side, kind)
                getattr(log, f"write_{ending}")(f"log.{ending}")
                told = invoke("score", f"log.{ending}").stderr
                if not told.startswith("polars-mcc: "):  # Digits of a CSV file are numbers.
                    assert (name, ending) in {("digits", "csv"), ("booleans", "csv")}
                    continue
                if "as in " not in told:
                    continue
                assert not re.search(r"pl\.|\{|replace", told)
                sql = told.split("as in ")[-1].strip().split("; if it is text")[0]
                if name == "digits" and ending == "csv":
                    continue
                is_number = kind == pl.Int64
                for code, word in of_code.items():
                    old, new = (code, word) if is_number else (repr(word), str(bool(code)).upper())
                    blank = f"WHEN {old} THEN {chr(39) + '…' + chr(39) if is_number else '…'}"
                    sql = sql.replace(blank, f"WHEN {old} THEN {repr(new) if is_number else new}")
                sql = sql.replace("= 'True'", f"= '{words[1]}'")
                column = other if is_number else side
                done = invoke(
                    "score",
                    f"log.{ending}",
                    f"--{column}",
                    f"{sql} AS {column}",
                    "--format",
                    "json",
                )
                assert done.exit_code == 0, (told, sql, done.stderr)
                [row] = json.loads(done.stdout)
                assert row["mcc"] == pytest.approx(expected), (told, sql)
                reached += 1
    assert reached == {"csv": 4, "parquet": 12}[ending]
