"""Labels in other files, from the command line."""

from __future__ import annotations

import datetime as dt
import itertools
import json
import random
import re
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from runner import invoke

from polars_mcc import PredictionLogWarning

PREDICTIONS = pl.DataFrame(
    {
        "id": ["007", "a", "b", "c", "d", None],
        "country": ["DE", "DE", "FR", "FR", "FR", "DE"],
        "day": [dt.date(2026, 3, day) for day in range(1, 7)],
        "pred": ["x", "y", "x", "y", "x", "x"],
    }
)
LABELS = pl.DataFrame(
    {"id": ["007", "a", "a", "b", "d"], "y": ["x", "x", "y", "y", "x"], "at": [1, 1, 2, 3, 4]}
)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, frame in {"predictions": PREDICTIONS, "labels": LABELS}.items():
        (tmp_path / name).mkdir()
        for place in range(2):
            frame.gather_every(2, place).write_parquet(tmp_path / name / f"{place}.parquet")
    return tmp_path


OF_LABELS = ("--outcomes", "labels", "--on", "id", "--gold", "y", "--latest", "at")


def answer_of(command: str, *arguments: str) -> pl.DataFrame:
    done = invoke(command, "predictions", *OF_LABELS, *arguments, "--format", "parquet")
    assert done.exit_code == 0, done.stderr
    return pl.read_parquet(done.stdout_bytes)


def test_it_is_the_answer_of_python():
    log = PREDICTIONS.mcc(outcomes=LABELS, on="id", gold="y", latest="at")
    assert_frame_equal(answer_of("by", "--by", "country"), log.by("country"))
    assert_frame_equal(answer_of("score", "--ci", "0.95"), log.score(ci=0.95))
    assert answer_of("check", "--min", "-1")["n_waiting"].item() == 2


def test_sql_and_filters_are_of_the_frame_that_has_the_columns():
    typed = (
        "--outcomes",
        "labels",
        "--on",
        "id || '!'",
        "--gold",
        "upper(y)",
        "--latest",
        "at + 1",
    )
    done = invoke(
        *("by", "predictions", *typed, "--pred", "upper(pred)", "--filter", "country = 'DE'"),
        *("--format", "csv"),
    )
    assert done.stdout.splitlines()[-1].split(",")[0] == "2", done.output


def test_rows_of_some_age():
    young = answer_of("by", "--time", "day", "--min-age", "2d")
    assert young.select("n", "n_null").rows() == [(3, 1)]
    until = answer_of("by", "--time", "day", "--min-age", "2d", "--now", "2026-03-04")
    assert until.select("n", "n_null").rows() == [(2, 0)]


def test_a_report_tells_what_waits():
    asked = (*OF_LABELS, "--by", "country", "--time", "day", "--out", "page.md")
    done = invoke("report", "predictions", *asked)
    assert done.exit_code == 0, done.stderr
    page = Path("page.md").read_text("utf-8")
    assert "2 rows are not scored: the label y has not come." in page


def test_two_labels_are_an_error():
    done = invoke("by", "predictions", "--outcomes", "labels", "--on", "id", "--gold", "y")
    assert done.exit_code == 2
    assert "id a has two labels in 'y', 'x' and 'y'" in done.stderr


def test_files_of_text():
    PREDICTIONS.write_csv("predictions.csv")
    LABELS.write_csv("labels.csv")
    of_text = ("--outcomes", "labels.csv", *OF_LABELS[2:])
    done = invoke("by", "predictions.csv", *of_text, "--format", "csv")
    assert done.stdout.splitlines()[-1] == "4,0.5773502691896258,2,2", done.output
    PREDICTIONS[:1].write_csv("predictions.csv")
    alone = invoke("by", "predictions.csv", *of_text, "--format", "csv")
    assert alone.stdout.splitlines()[-1].split(",")[0] == "1", "007 is text in both"


IDS = ["7", "007", "70", "x7", "8"]
OTHERS = {
    "text": pl.Series(["7", "007", "x7"]),
    "integers": pl.Series([7, 70, 8], dtype=pl.Int16),
    "decimals": pl.Series(["7", "70", "8"]).cast(pl.Decimal(38, 0)),
    "categories": pl.Series(["7", "007", "x7"], dtype=pl.Categorical),
}


@pytest.mark.parametrize("kind", OTHERS)
@pytest.mark.parametrize("is_log", [True, False])
def test_ids_of_csv_are_text_or_as_they_are_beside(kind, is_log):
    """CSV beside CSV and beside Parquet, on either side: by the text of each id."""
    other = OTHERS[kind]
    for ids in ([*IDS], [id_ for id_ in IDS if id_ not in {"007", "x7"}]):
        frames = {"csv": pl.Series(ids), "parquet": other}
        texts = [{*series.cast(pl.String)} for series in frames.values()]
        for suffix, series in frames.items():
            label = "pred" if (suffix == "csv") == is_log else "y"
            frame = pl.DataFrame({"id": series, label: 1})
            (frame.write_csv if suffix == "csv" else frame.write_parquet)(f"{label}.{suffix}")
            frame.cast({"id": pl.String}).write_csv(f"{label}.csv")
        log, labels = ("pred.csv", "y.parquet") if is_log else ("pred.parquet", "y.csv")
        asked = ("--on", "id", "--gold", "y", "--metric", "accuracy", "--format", "csv")
        for typed in ((), ("--text", "id")):
            done = invoke("by", log, "--outcomes", labels, *asked, *typed)
            if "007" in ids and kind in {"integers", "decimals"}:
                assert done.exit_code == 2
                csv = log if is_log else labels
                assert f"polars-mcc: '{csv}': 'id' is '007', but no" in done.stderr
                assert ("use --on 'id::BIGINT'" in done.stderr) == (kind == "integers")
                continue
            n, both = done.stdout.splitlines()[-1].split(",")[0], len(texts[0] & texts[1])
            assert int(n) == both, done.output
            plain = invoke("by", "pred.csv", "--outcomes", "y.csv", *asked, *typed)
            assert int(plain.stdout.splitlines()[-1].split(",")[0]) == both


def test_numbers_of_csv_may_be_asked_for():
    pl.DataFrame({"id": ["007", "8"], "pred": [1, 0]}).write_csv("log.csv")
    pl.DataFrame({"id": [7, 8], "y": [1, 0]}).write_parquet("labels.parquet")
    asked = ("--outcomes", "labels.parquet", "--on", "id::BIGINT", "--gold", "y", "--format", "csv")
    assert invoke("by", "log.csv", *asked).stdout.splitlines()[-1].split(",")[0] == "2"


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_spellings_of_labels_are_told(suffix):
    """As of labels in a CSV log: 1.10 beside 1.1, NA; and the options that are advised work."""
    ids = [str(i) for i in range(6)]
    log = pl.DataFrame({"id": ids, "word": [*"abab"] * 1 + ["a", "b"], "number": ["1.1", "2"] * 3})
    log = log if suffix == "csv" else log.cast({"number": pl.Float64})
    (log.write_csv if suffix == "csv" else log.write_parquet)(f"log.{suffix}")
    pl.DataFrame(
        {
            "id": ids,
            "y": ["a", "b", "NA", "b", "a", "b"],
            "z": ["1.1", "2", "1.10", "2", "1.1", "2"],
        }
    ).write_csv("labels.csv")
    asked = ("by", f"log.{suffix}", "--outcomes", "labels.csv", "--on", "id", "--format", "csv")
    words = ("--gold", "y", "--pred", "word")
    assert "'y' has the label 'NA' in 1 row, a class like others" in invoke(*asked, *words).stderr
    done = invoke(*asked, *words, "--null", "NA")
    assert (done.stderr, done.stdout.splitlines()[-1]) == ("", "5,1.0,1,1")
    numbers = ("--gold", "z", "--pred", "number")
    told = invoke(*asked, *numbers).stderr
    assert "'z': read as Float64, which spells '1.1', '1.10' as 1.1; to keep the text" in told
    kept = invoke(*asked, *numbers, "--text", "z")
    assert "which spells" not in kept.stderr


def test_labels_that_are_known_unevenly_are_told():
    rows = {"id": [*range(400)], "pred": ["fraud", "ok"] * 200}
    pl.DataFrame(rows).write_parquet("log.parquet")
    labels = {"id": [*range(0, 400, 2), *range(1, 100, 2)], "y": [*["fraud"] * 200, *["ok"] * 50]}
    pl.DataFrame(labels).write_parquet("outcomes.parquet")
    for command in ("by", "check"):
        asked = ("--on", "id", "--gold", "y", *(["--min", "0"] if command == "check" else []))
        done = invoke(command, "log.parquet", "--outcomes", "outcomes.parquet", *asked)
        assert "known for 100 % of the rows predicted 'fraud', and for 25 % of" in done.stderr
        assert "use --nulls reweight; if" in done.stderr


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_predictions_that_share_an_id_are_told(suffix):
    """With the number that a DataFrame tells; of rows that are old enough."""
    twice = pl.concat([PREDICTIONS, PREDICTIONS[1:4], PREDICTIONS[2:3], PREDICTIONS[-1:]])
    for name, frame in {"twice": twice, "once": PREDICTIONS}.items():
        (frame.write_csv if suffix == "csv" else frame.write_parquet)(f"{name}.{suffix}")
    of_day = ("--time", "day" if suffix == "parquet" else "day::DATE", "--now", "2026-03-06")
    for age, n in {"0d": 7, "3d": 5, "5d": 0}.items():
        told = f"{n} predictions share their id ('id') with another"
        for command in (("by",), ("check", "--min", "-1")):
            asked = (*OF_LABELS, *of_day, "--min-age", age)
            done = invoke(command[0], f"twice.{suffix}", *command[1:], *asked)
            assert (told in done.stderr) == (n > 0), done.output
            assert "share" not in invoke(command[0], f"once.{suffix}", *command[1:], *asked).stderr
    with pytest.warns(PredictionLogWarning, match="7 predictions share their id"):
        twice.mcc(outcomes=LABELS, on="id", gold="y", latest="at")


def test_a_store_tells_of_which_day_its_newest_row_is():
    asked = (
        "counts",
        "predictions",
        *OF_LABELS,
        "--time",
        "day",
        "--by",
        "country",
        "--out",
        "store",
    )
    for recount in ("2d", "all"):
        done = invoke(*asked, "--recount", recount)
        assert "store: the newest row is of 2026-03-06\n" in done.stderr


WRONG_LABELS = {
    "two labels": ("id,y\na,x\na,y\n", (), "id a has two labels in 'y', 'x' and 'y'"),
    "quotes": ('id,y\n"x"", ""y",x\n"x"", ""y",y\n', (), 'id x", "y has two labels'),
    "a date": ("id,y,at\na,x,2026-01-01\nb,y,soon\n", ("--latest", "at::DATE"), '["soon"]'),
    "text": ("id,y,at\na,x,soon\n", ("--latest", "at"), "latest must be a date"),
    "UTF-8": ("id,y\na,\udcff\n", (), "cannot be read as CSV (invalid utf-8"),
    "no gold": ("id,z\na,x\n", (), "the outcomes have no column 'y'"),
    "no id": ("nr,y\na,x\n", (), "the outcomes have no column 'id'"),
    "no file": (None, (), "no file 'wrong.csv'"),
}


@pytest.mark.parametrize("what", WRONG_LABELS)
def test_an_error_of_labels_names_their_file(what):
    text, typed, told = WRONG_LABELS[what]
    if text is not None:
        Path("wrong.csv").write_bytes(text.encode("utf-8", "surrogateescape"))
    for suffix in ("csv", "parquet"):
        log = f"log.{suffix}"
        getattr(PREDICTIONS, f"write_{suffix}")(log)
        asked = ("--outcomes", "wrong.csv", "--on", "id", "--gold", "y", *typed)
        into_store = ("--recount", "all", "--out", f"store of {suffix}")
        for done in (invoke("by", log, *asked), invoke("counts", log, *asked, *into_store)):
            assert done.exit_code == 2
            assert done.stderr.startswith("polars-mcc: 'wrong.csv'"), done.stderr
            assert told in done.stderr
            assert log not in done.stderr
    of_log = invoke("by", "log.csv", "--outcomes", "labels", "--on", "nr", "--gold", "y")
    assert "log.csv: the predictions have no column 'nr'" in of_log.stderr


def test_an_error_of_costs_names_their_file():
    pl.DataFrame({"gold": [*"abab"], "pred": [*"abbb"]}).write_csv("log.csv")
    tables = {
        "gold;pred;cost\na;b;5\n": "['gold;pred;cost']",
        "gold,pred,cost,note\na,b,5,x\n": "'note'",
        'gold,pred,cost\na,b,"10,5"\n': '["10,5"]',
        "gold,pred,cost\na,b,5\na,b,6\n": "twice",
        "gold,pred,cost\na,b,\n": "finite number",
        "": "got []",
        None: "No such file",
    }
    for text, told in tables.items():
        Path("costs.csv").unlink(missing_ok=True)
        if text is not None:
            Path("costs.csv").write_text(text, "utf-8")
        done = invoke("by", "log.csv", "--metric", "cost('costs.csv')")
        assert done.exit_code == 2
        assert done.stderr.startswith("polars-mcc: 'costs.csv': "), done.stderr
        assert told in done.stderr
        assert "log.csv" not in done.stderr


def test_labels_that_stop_coming_are_told_by_the_gate():
    start, rows = dt.date(2026, 3, 1), range(1200)
    log = pl.DataFrame({"id": rows, "day": [start + dt.timedelta(i // 20) for i in rows]})
    log = log.with_columns(pred=pl.col("id") % 2)
    labels = log.filter(pl.col("day") < dt.date(2026, 4, 23)).select("id", y="pred", at="day")
    log.write_parquet("log.parquet")
    labels.write_parquet("come.parquet")
    late = ("--outcomes", "come.parquet", "--on", "id", "--gold", "y", "--latest", "at")
    of_store = ("--time", "day", "--recount", "all", "--by", "day", "--out", "store")
    assert invoke("counts", "log.parquet", *late, *of_store).exit_code == 0
    told = (
        "a label 'y' has not come for 100 % of the rows since 2026-04-23, and for 0 % of the rows"
    )
    aged = ("--time", "day", "--min-age", "0d")
    of_log = ("check", "log.parquet", *late, "--min", "-1")
    for asked in (of_log, ("check", "store", "--min", "-1"), ("changes", "store")):
        done = invoke(*asked, *aged)
        assert done.stderr.count(told) == 1, done.stderr
        assert "use a longer --min-age" in done.stderr
        young = invoke(*asked, *aged[:2], *(("--min-age", "8d") if asked[0] == "changes" else ()))
        assert told not in young.stderr


def test_a_report_advises_an_age_in_the_words_of_the_shell():
    rows = range(400)
    days = [dt.date(2026, 3, 1 + i % 20) for i in rows]
    log = pl.DataFrame({"id": rows, "day": days, "pred": [i % 2 for i in rows]})
    log.write_parquet("log.parquet")
    at = [day + dt.timedelta(2 if i % 2 else 12) for i, day in enumerate(days)]
    log.select("id", y="pred", at=pl.Series(at)).write_parquet("come.parquet")
    late = ("--outcomes", "come.parquet", "--on", "id", "--gold", "y", "--latest", "at")
    asked = ("report", "log.parquet", *late, "--time", "day", "--by", "day", "--out", "page.json")
    assert invoke(*asked).exit_code == 0
    assert "old enough for 99 % of each, as with --min-age 12d" in Path("page.json").read_text(
        "utf-8"
    )
    assert invoke(*asked, "--min-age", "12d", "--now", "2026-04-01").exit_code == 0
    assert "old enough for 99 %" not in Path("page.json").read_text("utf-8")


@pytest.mark.parametrize("age", [None, "1d"])
def test_labels_that_miss_are_told(age):
    """Half of the ids of labels are spelled otherwise: their predictions would wait in silence."""
    days = pl.date_range(dt.date(2026, 3, 1), dt.date(2026, 3, 10), eager=True)
    log = pl.DataFrame({"id": [*range(100)], "day": [*days] * 10, "pred": ["u", "v"] * 50})
    log = log.with_columns(pl.format("r{}", "id").alias("id"))
    labels = log.select("id", y="pred")
    odd = pl.when(pl.int_range(100) % 2 == 1).then(pl.col("id").str.to_uppercase()).otherwise("id")
    log.write_parquet("log.parquet")
    labels.with_columns(odd.alias("id")).write_parquet("odd.parquet")
    labels.write_parquet("all.parquet")
    labels[:60].write_parquet("some.parquet")
    asked = ["--on", "id", "--gold", "y", *(["--time", "day", "--min-age", age] if age else [])]
    told = "50 of 100 labels have an id ('id') that no prediction has, and 50 of 100 predictions"
    for name in ("odd", "all", "some"):
        done = invoke("by", "log.parquet", "--outcomes", f"{name}.parquet", *asked)
        assert (told in done.stderr) == (name == "odd"), done.stderr
        assert ("that no prediction has" in done.stderr) == (name == "odd"), done.stderr
    if age is None:
        with pytest.warns(PredictionLogWarning, match=re.escape(told)):
            log.mcc(outcomes=labels.with_columns(odd.alias("id")), on="id", gold="y")


def test_ids_that_are_shared_or_missed_are_told_as_a_loop_counts_them():
    draw, told = random.Random(0), 0
    for alphabet, overlap, share in itertools.product((30, 3000), (0, 40, 60), (0, 0.3, 1)):
        ids = [draw.choice([None, *range(alphabet)]) for _ in range(60)]
        pl.DataFrame({"id": ids, "pred": ["x", "y"] * 30}).write_parquet("log.parquet")
        strangers = [5000 + i for i in range(60 - overlap)]
        known = [*(i for i in {*ids[:overlap]} if i is not None and draw.random() < share)]
        rows = [(i, draw.choice("xy"), at) for i in known + strangers for at in range(2)]
        rows += [(None, "x", 0)] + [(i, None, 2) for i in known[:3]]
        labels = pl.DataFrame(rows, ["id", "gold", "at"], orient="row")
        labels.write_parquet("labels.parquet")
        late = ("--outcomes", "labels.parquet", "--on", "id", "--latest", "at")
        done = invoke("by", "log.parquet", *late)
        assert done.exit_code == 0, done.stderr
        predictions, of_labels = [i for i in ids if i is not None], {*known, *strangers}
        shared = sum(predictions.count(i) > 1 for i in predictions)
        lonely, waiting = of_labels - {*predictions}, [i for i in predictions if i not in of_labels]
        is_told = len(predictions) > len(waiting) > len(predictions) / 10
        is_told &= len(lonely) > len(of_labels) / 10
        sharing = f"{shared} predictions share their id ('id')"
        missing = (
            f"{len(lonely)} of {len(of_labels)} labels have an id ('id') that no prediction has, "
            f"and {len(waiting)} of {len(predictions)} predictions wait"
        )
        assert (sharing in done.stderr, "share their id" in done.stderr) == (shared > 0,) * 2
        assert (missing in done.stderr, "that no pred" in done.stderr) == (is_told,) * 2
        told += is_told
    assert 0 < told < 18


def test_labels_are_joined_once(monkeypatch):
    """Also if labels are text that the first rows lack, and are known for some more often."""
    n = 4000
    pred = ["rare" if i > 3500 else "often" for i in range(n)]
    log = pl.DataFrame({"id": [str(i) for i in range(n)], "pred": pred, "key": ["k"] * n})
    log.write_parquet("log.parquet")
    has_label = (pl.col("pred") == "rare") | (pl.int_range(n) % 2 == 0)
    labels = log.filter(has_label).select("id", gold="pred").reverse()
    labels.write_parquet("come.parquet")
    plans = []
    collect = pl.LazyFrame.collect

    def collected(rows, **options):
        plans.append(rows.explain())
        return collect(rows, **options)

    monkeypatch.setattr(pl.LazyFrame, "collect", collected)
    for command in (("by", "--by", "key"), ("score", "--ci", "0.95"), ("check", "--min", "0")):
        plans.clear()
        asked = (*command[1:], "--outcomes", "come.parquet", "--on", "id")
        done = invoke(command[0], "log.parquet", *asked)
        assert "100 % of the rows predicted 'rare', and for 50 % of those" in done.stderr
        assert sum('ON: [col("polars_mcc:id:id")]' in plan for plan in plans) == 1, command


def test_columns_in_an_sql_id_of_csv_are_text():
    Path("log.csv").write_text("id,pred\n7,1\n8,0\n")
    Path("labels.csv").write_text("id,gold\n007,1\n8,0\n")
    for sql, waits in {
        "id": 1,
        "id::VARCHAR": 1,
        "id || ''": 1,
        "upper(id)": 1,
        "id::INT": 0,
    }.items():
        on = sql if sql == "id" else f"{sql} AS i"
        done = invoke("by", "log.csv", "--outcomes", "labels.csv", "--on", on, "--format", "ndjson")
        assert json.loads(done.stdout)["n_waiting"] == waits, done.stderr


def test_a_file_that_a_command_reads_is_not_written():
    log = "id,gold,pred\n1,a,a\n2,b,a\n3,a,a\n4,b,b\n"
    files = {"log.csv": log, "late/l.csv": "id,y\n1,a\n2,b\n3,a\n4,b\n"}
    files |= {"costs.csv": "gold,pred,cost\na,b,5\nb,a,1\n", "seen.csv": "gold,since\n"}
    Path("late").mkdir()
    for name, text in files.items():
        Path(name).write_text(text)
    assert invoke("counts", "log.csv", "--out", "base.csv").exit_code == 0
    late = ("--outcomes", "late", "--on", "id", "--gold", "y")
    asked = {
        "late/l.csv": ("by", *late),
        "late/new.csv": ("by", *late),
        "costs.csv": ("by", "--metric", "cost('costs.csv')"),
        "base.csv": ("check", "--no-worse-than", "base.csv"),
        "seen.csv": ("changes", "--time", "id::DATE", "--known", "seen.csv"),
    }
    kept = {name: Path(name).read_text("utf-8") for name in (*files, "base.csv")}
    for out, (verb, *options) in asked.items():
        done = invoke(verb, "log.csv", *options, "--out", out)
        assert done.exit_code == 2, done.output
        assert f"cannot write '{out}'" in done.stderr
        assert {name: Path(name).read_text("utf-8") for name in kept} == kept
    page = invoke("report", "log.csv", *late, "--out", "late/page.html")
    assert "cannot write 'late/page.html'" in page.stderr
    assert invoke("by", "log.csv", *late, "--out", "new.csv").exit_code == 0


@pytest.mark.parametrize("command", ["score", "confusion"])
def test_bad_labels_in_csv_name_their_file(command):
    Path("p.csv").write_text("id,pred\n1,a\n2,b\n")
    for text, why in (("1,a\n1,b\n", "id 1 has two labels"), ('1,"a\n2,b\n', "cannot be read")):
        Path("l.csv").write_text(f"id,gold\n{text}")
        done = invoke(command, "p.csv", "--outcomes", "l.csv", "--on", "id")
        assert done.exit_code == 2
        assert done.stderr.startswith("polars-mcc: 'l.csv'"), done.stderr
        assert why in done.stderr
