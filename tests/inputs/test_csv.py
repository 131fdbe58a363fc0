"""CSV files as people write them: separators, endings, compression, text, words for nothing."""

from __future__ import annotations

import datetime as dt
import gzip
import io
import shlex
import sys
from fractions import Fraction
from pathlib import Path

import polars as pl
import pytest
from runner import invoke
from support import first, in_turn

import polars_mcc

ROWS = "key,gold,pred\nDE,u,u\nDE,v,v\nFR,u,v\nFR,v,v\nFR,u,u\n"
HITS = {"DE": (2, 1.0), "FR": (3, 2 / 3)}
"""The rows and the accuracy of each key, counted by hand."""


@pytest.fixture(autouse=True)
def _in_a_new_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def write(file: str, text: str) -> None:
    """Write a file, compressed if its ending says so."""
    data = text.encode()
    Path(file).write_bytes(gzip.compress(data) if file.lower().endswith(".gz") else data)


def done_by(*arguments: str) -> tuple[pl.DataFrame, list[str]]:
    """The answer of `by`, and the lines on the standard error."""
    done = invoke("by", *arguments, "--format", "parquet")
    assert done.exit_code == 0, done.stderr
    said = done.stderr.replace("polars-mcc: ", "").splitlines()
    return pl.read_parquet(done.stdout_bytes), said


def accuracy_of(*arguments: str) -> dict[str, tuple[int, float]]:
    found, said = done_by(*arguments, "--by", "key", "--metric", "accuracy")
    assert said == []
    return {key: (n, accuracy) for key, n, accuracy, _ in found.iter_rows()}


@in_turn(
    2, ending=["csv", "CSV", "csv.gz", "Csv.GZ", "tsv", "TSV.gz"], separator=[",", ";", "\t", "|"]
)
def test_separators_and_endings(ending, separator):
    if "tsv" in ending.lower():
        separator = "\t"
    write(f"log.{ending}", ROWS.replace(",", separator))
    assert accuracy_of(f"log.{ending}") == HITS
    assert accuracy_of(".") == HITS, "in a folder"
    assert accuracy_of("*") == HITS, "by a glob"


@pytest.mark.parametrize("ending", ["PARQUET", "Feather", "NDJSON", "ndjson.gz", "JsonL.gz"])
def test_endings_of_other_formats(ending):
    log, data = pl.read_csv(ROWS.encode()), io.BytesIO()
    {"p": log.write_parquet, "f": log.write_ipc}.get(ending[0].lower(), log.write_ndjson)(data)
    is_gz = ending.endswith(".gz")
    Path(f"log.{ending}").write_bytes(gzip.compress(data.getvalue()) if is_gz else data.getvalue())
    assert accuracy_of(f"log.{ending}") == accuracy_of(".") == HITS


@pytest.mark.parametrize("name", ["log.txt", "log.json", "log.csv.bz2", "log"])
def test_endings_that_tell_no_format(name):
    write(name, ROWS)
    refused = invoke("by", name)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "; the end of its name must tell its format: .parquet, .arrow, .ipc" in refused.stderr


@pytest.mark.parametrize("ending", ["CSV", "Csv", "jsonl", "NDJSON", "Parquet"])
def test_endings_of_answers(ending):
    write("log.csv", ROWS)
    assert invoke("by", "log.csv", "--by", "key", "--out", f"out.{ending}").exit_code == 0
    read = {"c": pl.read_csv, "p": pl.read_parquet}.get(ending[0].lower(), pl.read_ndjson)
    assert read(f"out.{ending}")["key", "n"].rows() == [("DE", 2), ("FR", 3)]


@pytest.mark.parametrize(("option", "value"), [("--filter", "-n < 0"), ("--positive", "-a")])
def test_values_that_begin_like_an_option(option, value):
    write("log.csv", "gold,pred,n\n-a,-a,1\nb,b,1\nb,-a,0\n")
    refused = invoke("by", "log.csv", option, value)
    assert refused.exit_code == 2
    told = f"requires an argument. If its value begins with -, write {option}=VALUE.\n"
    assert refused.stderr.endswith(told)
    assert invoke("by", "log.csv", f"{option}={value}").exit_code == 0


def test_zstd():
    pl.read_csv(ROWS.encode()).lazy().sink_csv("log.csv.zst", compression="zstd")
    assert accuracy_of("log.csv.zst") == accuracy_of(".") == HITS


@in_turn(pack=[bytes, gzip.compress], separator=[";", "\t"])
def test_the_standard_input(separator, pack, monkeypatch):
    data = pack(ROWS.replace(",", separator).encode())
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    done = invoke("by", "-", "--by", "key", "--format", "csv", "--text", "gold")
    assert pl.read_csv(done.stdout_bytes)["key", "n"].rows() == [("DE", 2), ("FR", 3)]
    assert done.stderr == ""


def zstd(data: bytes) -> bytes:
    pl.read_csv(data, has_header=False, separator="\x1f", quote_char=None).lazy().sink_csv(
        file := io.BytesIO(), include_header=False, compression="zstd", quote_style="never"
    )
    return file.getvalue()


@in_turn(
    form=["csv", "ndjson"], pack=[bytes, gzip.compress, zstd, lambda data: b"\xef\xbb\xbf" + data]
)
def test_the_standard_input_is_known_by_its_first_bytes(form, pack, monkeypatch):
    log = pl.read_csv(ROWS.encode())
    data = pack(ROWS.encode() if form == "csv" else log.write_ndjson().encode())
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    assert accuracy_of("-") == HITS


def test_an_arrow_stream_is_refused(monkeypatch):
    pl.read_csv(ROWS.encode()).write_ipc_stream(file := io.BytesIO())
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(file.getvalue())))
    refused = invoke("by", "-")
    assert refused.exit_code == 2
    assert "the standard input is an Arrow stream; write an Arrow file" in refused.stderr


def test_a_header_that_misleads_is_an_error_and_the_separator_can_be_said():
    write("log.csv", '"key";gold;pred,(a,b,c)\nx;1;1\n')
    refused = invoke("by", "log.csv")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "no column 'gold'" in refused.stderr
    assert refused.stderr.endswith(" If ';' separates the columns, add --separator ';'\n")
    found, _ = done_by("log.csv", "--separator", ";", "--pred", "pred,(a,b,c)", "--by", "key")
    assert found["key", "n"].rows() == [("x", 1)]
    write("tabs.csv", ROWS.replace(",", "\t"))
    for typed in ("\t", r"\t", "tab"):
        assert accuracy_of("tabs.csv", "--separator", typed) == HITS
    write("quoted.csv", '"a;b;c;d",gold,pred\n1,1,1\n')
    assert done_by("quoted.csv", "--by", "a;b;c;d")[0]["n"].to_list() == [1]
    for wrong in (";;", "é", ""):
        refused = invoke("by", "log.csv", "--separator", wrong)
        assert refused.exit_code == 2
        assert f"--separator is one character, such as ';' or tab, got {wrong!r}" in refused.stderr


@pytest.mark.parametrize("option", [("--text", "gold"), ("--null", "NA"), ("--separator", ";")])
def test_options_of_csv_are_refused_for_other_formats(option):
    pl.read_csv(ROWS.encode()).write_parquet("log.parquet")
    pl.read_csv(ROWS.encode()).write_ndjson("log.ndjson")
    for file, kind in {"log.parquet": "Parquet", "log.ndjson": "NDJSON"}.items():
        refused = invoke("by", file, *option)
        assert (refused.exit_code, refused.stdout) == (2, "")
        assert f"{option[0]} is for CSV files, but the log is {kind}" in refused.stderr


VERSIONS = "version,zip,gold,pred\n1.1,01,u,u\n1.10,1,u,u\n1.2,2,v,v\n1.1,01,v,u\n3,10,v,v\n"


class TestText:
    """Numbers of several spellings: said, and apart with `--text`."""

    @pytest.fixture(autouse=True)
    def _log(self):
        write("log.csv", VERSIONS)

    @in_turn(
        typed=["{}", "{} AS k", "each({})", "rollup({})"],
        **{
            "key, merged, apart, spelling": [
                (
                    "version",
                    [(1.1, 3), (1.2, 1), (3.0, 1)],
                    [("1.1", 2), ("1.10", 1), ("1.2", 1), ("3", 1)],
                    "'version': read as Float64, which spells '1.1', '1.10' as 1.1; ",
                ),
                (
                    "zip",
                    [(1, 3), (2, 1), (10, 1)],
                    [("01", 2), ("1", 1), ("10", 1), ("2", 1)],
                    "'zip': read as Int64, which spells '01' as 1; ",
                ),
            ]
        },
    )
    def test_keys(self, key, merged, apart, spelling, typed):
        by = ["log.csv", "--by", typed.format(key)]
        name = "k" if " AS " in typed else key
        found, said = done_by(*by)
        assert found.drop_nulls(name)[name, "n"].rows() == merged
        assert said == [f"{spelling}to keep the text, add --text {key}"]
        found, said = done_by(*by, "--text", key)
        assert found.drop_nulls(name)[name, "n"].rows() == apart
        assert said == []

    @pytest.mark.parametrize(("one", "other"), [("01", "1"), ("1.10", "1.1"), ("007", "7")])
    def test_labels_of_both_sides(self, one, other):
        write("labels.csv", f"gold,pred\n{one},{other}\n{other},{other}\n2,2\n")
        accuracy = ["labels.csv", "--metric", "accuracy"]
        found, [said] = done_by(*accuracy)
        assert found["accuracy"].item() == 1
        assert said.startswith("'gold', 'pred': read as ")
        assert said.endswith("add --text gold --text pred")
        found, said = done_by(*accuracy, "--text", "gold", "--text", "pred")
        assert found["accuracy"].item() == float(Fraction(2, 3))
        assert said == []

    @pytest.mark.parametrize(
        "typed", first(1, ['"{}"', "({})", "{}::VARCHAR AS k", "CAST({} AS VARCHAR)"])
    )
    def test_columns_that_sql_reads(self, typed):
        for key, others in {"version": "'1.1', '1.10' as 1.1", "zip": "'01' as 1"}.items():
            _, [said] = done_by("log.csv", "--by", typed.format(key))
            assert said.startswith(f"'{key}': read as ")
            assert f"{others}; to keep the text, add --text {key}" in said
        assert done_by("log.csv", "--by", "zip + 1 AS zip", "--by", "UPPER(gold)")[1] == []
        write("na.csv", NOTHING.format("NA"))
        assert (
            "'gold' has the label 'NA'" in done_by("na.csv", "--gold", typed.format("gold"))[1][0]
        )

    def test_beside_booleans_there_is_no_spelling_to_keep(self):
        write("is.csv", "gold,pred\ntrue,01\nfalse,00\n")
        found, said = done_by("is.csv", "--metric", "accuracy")
        assert (found["accuracy"].to_list(), said) == ([1.0], [])

    def test_the_advice_for_text_beside_numbers_keeps_the_text(self):
        write("na.csv", "gold,pred,p,is\n01,01,n/a,true\n02,02,0.5,false\nNA,01,0.7,NA\n")
        hint = "; if it is text because a word such as NA stands for no value, add --null NA\n"
        refused = invoke("by", "na.csv")
        assert refused.exit_code == 2
        assert "as in --text pred; else give both columns the same labels first" in refused.stderr
        assert refused.stderr.endswith(hint)
        accuracy = ["na.csv", "--metric", "accuracy"]
        assert done_by(*accuracy, "--text", "pred")[0]["n", "accuracy"].row(0) == (3, 2 / 3)
        assert done_by(*accuracy, "--null", "NA")[0]["n", "accuracy"].row(0) == (2, 1.0)
        for options in (
            ["--score", "p", "--positive", "01", "--metric", "roc_auc"],
            ["--weight", "p", "--text", "pred"],
            ["--pred", "pred = 1", "--gold", "is"],
        ):
            assert invoke("by", "na.csv", *options).stderr.endswith(hint), options
        pl.read_csv("na.csv").write_parquet("na.parquet")
        assert "--null" not in invoke("by", "na.parquet").stderr

    def test_clusters_and_columns_within(self):
        _, [said] = done_by("log.csv", "--ci", "0.9", "--cluster", "zip")
        assert said.startswith("'zip': read as Int64")
        done = invoke("contrast", "log.csv", "--by", "gold", "--within", "zip", "--text", "gold")
        assert "'zip': read as Int64" in done.stderr

    def test_only_rows_that_are_scored_and_columns_that_are_compared(self):
        assert done_by("log.csv", "--by", "bins(version, 2)", "--by", "zip > 1 AS many")[1] == []
        accuracy = ["--metric", "accuracy"]
        assert done_by("log.csv", "--by", "zip", "--filter", "zip > 1", *accuracy)[1] == []
        assert done_by("log.csv", "--weight", "zip")[1] == []

    def test_how_many_more(self):
        write("log.csv", "k,gold,pred\n" + "".join(f"{n}.10,u,u\n{n}.1,u,u\n" for n in range(4)))
        _, [said, *_] = done_by("log.csv", "--by", "k")
        assert "spells '0.1', '0.10' as 0.1 (and 3 more); to keep the text, add --text k" in said

    def test_a_column_that_is_not_there(self):
        refused = invoke("by", "log.csv", "--text", "versoin")
        assert (refused.exit_code, refused.stdout) == (2, "")
        assert "no column 'versoin' for --text; did you mean 'version'?" in refused.stderr

    def test_files_in_which_a_column_is_text_or_a_number(self):
        write("other.csv", "version,zip,gold,pred\nv2,1,u,u\n")
        refused = invoke("by", "log.csv", "other.csv", "--by", "version")
        told = "; add --null NA if a word such as NA stands for no value, read it as text with "
        assert f"{told}--text version, or score them apart" in refused.stderr
        found, _ = done_by("log.csv", "other.csv", "--by", "version", "--text", "version")
        assert found["version", "n"].rows()[-1] == ("v2", 1)


NOTHING = "gold,pred,key\nu,u,NA\nv,v,NA\n{0},u,x\nu,{0},x\n{0},{0},x\n"


class TestNull:
    """Labels such as NA are labels, and are said; with `--null` they are none."""

    @pytest.mark.parametrize(
        "word",
        first(
            4,
            [
                "NA",
                "None",
                "NULL",
                "nan",
                "NaN",
                "null",
                "N/A",
                "#N/A",
                "<NA>",
                "n/a",
                "none",
                "",
                "  ",
            ],
        ),
    )
    def test_words_for_nothing(self, word):
        """An empty field in quotes is a text; pandas writes nothing so, with QUOTE_ALL."""
        write("log.csv", NOTHING.format(f'"{word}"'))
        f1 = ["log.csv", "--metric", "f1_macro"]
        found, said = done_by(*f1)
        # u: 1 hit, 1 missed, 1 wrong; v: 1 hit; the word: 1 hit, 1 missed, 1 wrong
        of_three = (Fraction(1, 2) + 1 + Fraction(1, 2)) / 3
        assert found["n", "f1_macro", "n_null"].row(0) == (5, pytest.approx(float(of_three)), 0)
        typed = shlex.quote(word)
        assert said == [
            f"'{name}' has the label '{word}' in 2 rows, a class like others; if it means that "
            f"there is no label, add --null {typed}"
            for name in ("gold", "pred")
        ]
        found, said = done_by(*f1, "--null", word)
        assert found["n", "f1_macro", "n_null"].row(0) == (2, 1.0, 3)
        assert said == []
        found, _ = done_by(*f1, "--null", word, "--nulls", "label")
        assert found["n", "f1_macro"].row(0) == (5, pytest.approx(float(of_three)))

    def test_keys_and_other_labels_are_left_alone(self):
        write("log.csv", "key,gold,pred\nNA,nanny,u\nNone,u,u\n,v,v\n")
        found, said = done_by("log.csv", "--by", "key")
        assert found["key"].to_list() == [None, "NA", "None"]
        assert said == []

    def test_several_words_and_models(self):
        write("log.csv", "gold,a,b\nu,u,NA\nNULL,None,u\nNA,u,u\n")
        models = ["log.csv", "--pred", "a", "--pred", "b"]
        told = {
            "gold": ("'NA' in 1 row and 'NULL' in 1 row", "--null NA --null NULL"),
            "a": ("'None' in 1 row", "--null None"),
            "b": ("'NA' in 1 row", "--null NA"),
        }
        assert done_by(*models)[1] == [
            f"'{name}' has the label {counted}, a class like others; if it means that there is no "
            f"label, add {typed}"
            for name, (counted, typed) in told.items()
        ]

    def test_a_word_among_numbers(self):
        """The first rows tell that a column has numbers."""
        write("log.csv", "gold,pred\n" + "1,1\n0,0\n" * 6000 + "NA,0\n")
        refused = invoke("by", "log.csv")
        assert (refused.exit_code, refused.stdout) == (2, "")
        assert "add --null NA if that is no value, or --text gold to read text" in refused.stderr
        assert done_by("log.csv", "--null", "NA")[0]["n", "n_null"].row(0) == (12_000, 1)

    def test_a_fraction_among_whole_numbers(self):
        write("log.csv", "gold,pred\n" + "1,1\n0,0\n" * 6000 + "0.5,0\n")
        refused = invoke("by", "log.csv").stderr
        assert refused.endswith(
            "; write all numbers with a decimal point, or --text gold to read text\n"
        )

    def test_a_gate_says_it_whether_it_passes_or_not(self):
        write("log.csv", NOTHING.format("NA"))
        for least, code in {"0": 0, "0.99": 1}.items():
            done = invoke("check", "log.csv", "--min", least)
            assert done.exit_code == code
            assert "'gold' has the label 'NA' in 2 rows" in done.stderr

    def test_a_baseline_is_read_alike(self):
        write("log.csv", "key,gold,pred\n01,u,u\n01,v,v\n01,v,u\n01,NA,u\n")
        typed = ["--by", "key", "--text", "key", "--null", "NA"]
        done = invoke("counts", "log.csv", *typed, "--out", "counts.csv")
        assert done.exit_code == 0, done.stderr
        done = invoke("check", "log.csv", *typed, "--no-worse-than", "counts.csv", "--min-n", "1")
        assert (done.exit_code, done.stderr) == (0, "")
        assert done.stdout == "mcc minus the baseline 0.000, at least 0: passes, 1 slice, 3 rows\n"


@pytest.mark.parametrize("ending", ["csv", "ndjson"])
def test_numbers_may_be_whole_in_one_file(ending):
    """Polars guesses Int64 and Float64. The area under the curve is counted by hand: 4.5 of 8."""
    for name, scores in {"a": [0.5, 1.0, 1.0], "b": [1, 0, 0]}.items():
        log = pl.DataFrame({"gold": [1, 0, 1], "p": scores, "w": scores, "pred": [1, 0, 1]})
        getattr(log, f"write_{ending}")(f"{name}.{ending}")
    asked = ["by", ".", "--score", "p", "--positive", "1", "--metric", "roc_auc", "--format", "csv"]
    assert pl.read_csv(invoke(*asked).stdout_bytes).row(0) == (6, 4.5 / 8, 0)
    found, _ = done_by(".", "--filter", "p >= 0.5", "--weight", "w")
    assert found["n"].to_list() == [3.5]
    assert done_by(".", "--by", "p")[0]["p", "n"].rows() == [(0.0, 2), (0.5, 1), (1.0, 3)]


@pytest.mark.parametrize("rows", [150, 9_000, 11_000])
def test_dtypes_of_json_lines_may_show_late(rows):
    first = pl.DataFrame({"gold": pl.Series([None] * rows, dtype=pl.String), "pred": 1, "p": 1})
    later = pl.DataFrame({"gold": ["1"] * 10, "pred": 1, "p": 0.75, "key": "late"})
    Path("log.ndjson").write_text(first.write_ndjson() + later.write_ndjson())
    Path("nulls.ndjson").write_text(first.head(5).write_ndjson())
    for logs, missing in ((["log.ndjson"], rows), (["log.ndjson", "nulls.ndjson"], rows + 5)):
        found, _ = done_by(*logs, "--pred", "pred::VARCHAR", "--by", "p")
        assert found["p", "n", "n_null"].rows() == [(0.75, 10, 0), (1.0, 0, missing)]
    assert done_by("log.ndjson", "--pred", "gold", "--by", "key")[0]["key"].to_list() == [
        None,
        "late",
    ]


TIMES = ["2026-03-01T12:00:00Z", "2026-03-02T12:00+02:00", "2026-03-03T12:00:00.5+0000"]
OTHER_TIMES = {"::TIMESTAMP": "2026-03-0{} 12:00:00", "::TIMESTAMPTZ": "2026-03-0{}T14:00+02:00"}


@pytest.mark.parametrize("way_out", [*OTHER_TIMES, "strptime"])
def test_each_way_out_for_texts_that_are_times_works(way_out):
    """A format that Polars would guess is said: 1/12 is no day of December in a US log."""
    form = OTHER_TIMES.get(way_out, "3/{}/2026")
    lines = [f"{form.format(day)},1,{day % 2}" for day in range(1, 9)]
    write("log.csv", "\n".join(["t,gold,pred", *lines]))
    told = invoke("by", "log.csv", "--time", "t", "--min-age", "2d").stderr
    assert (f"t{way_out} if " if "::" in way_out else "strptime(t, '%d/%m/%Y') with") in told
    time = f"t{way_out}" if "::" in way_out else "strptime(t, '%m/%d/%Y')"
    found, _ = done_by("log.csv", "--time", time, "--min-age", "2d")
    assert found["n"].item() == 6
    windows, _ = done_by("log.csv", "--by", f'trailing("{time}", "2d")')
    assert windows["n"].to_list() == [2] * 4


def test_now_may_have_a_zone_where_the_column_has_one():
    write("log.csv", "\n".join(["t,gold,pred", *(f"{time},1,1" for time in TIMES)]))
    asked = ["log.csv", "--time", "t::TIMESTAMPTZ", "--min-age", "1d", "--now"]
    for now, n in {
        "2026-03-03T11:59:59Z": 2,
        "2026-03-03T09:59:59Z": 1,
        "2026-03-03T12:00:00+02:00": 2,
        "2026-03-03 12:00:00+0200": 2,
        "2026-03-03 09:59:59": 1,
        "2026-03-04": 2,
    }.items():
        assert done_by(*asked, now)[0]["n"].item() == n, now
    refused = invoke("by", *asked, "2026-99-03T11:59:59Z").stderr
    assert "column 't::TIMESTAMPTZ' (Datetime(time_unit='us', time_zone='UTC')), got" in refused


def test_what_the_first_json_lines_do_not_tell_is_said():
    """No value is lost: labels in lists come, and other dtypes and columns are an error."""
    first = '{"gold": [], "pred": ["u"], "p": 1}\n' * 10_001
    Path("log.ndjson").write_text(first + '{"gold": ["u"], "pred": ["u"], "p": 1}\n')
    found, _ = done_by("log.ndjson", "--metric", "exact_match")
    assert found.row(0) == (10_002, 1 / 10_002, 0)
    first = '{"gold": 1, "pred": 1, "p": 1}\n' * 10_001
    Path("log.ndjson").write_text(first + '{"gold": 1, "pred": 1, "p": 12.5, "key": "u"}\n')
    told = "the first 10,000 rows of JSON lines tell the columns and dtypes; let all rows tell them"
    refused = invoke("by", "log.ndjson", "--weight", "p").stderr
    assert "(cannot parse '12.5' (f64) as Int64)" in refused
    assert told in refused
    assert told in invoke("by", "log.ndjson", "--by", "key").stderr
    assert done_by("log.ndjson")[0]["n"].item() == 10_002
    # A field of a struct that comes late makes slices.
    rows = '{"gold": 1, "pred": 1, "k": {"a": 1}}\n' * 10_001
    late = '{"gold": 2, "pred": 2, "k": {"a": 2, "b": 3}}\n'
    Path("log.ndjson").write_text(rows + late + late.replace("3", "4"))
    assert done_by("log.ndjson", "--by", "k")[0]["n"].to_list() == [10_001, 1, 1]


KEYS = {
    "text": pl.Series(["1.1", "1.10", "01234", "1234"]),
    "enum": pl.Series(["1", "01", "001", None], dtype=pl.Enum(["1", "01", "001"])),
    "day": pl.Series([dt.date(2026, 1, day) for day in (1, 2, 3)] + [None]),
    "time": pl.Series([dt.time(day) for day in (1, 2, 3, 4)]),
    "moment": pl.Series([dt.datetime(2026, 1, 1, hour) for hour in (1, 2, 3, 4)]),
    "number": pl.Series([1.0, 2.5, -3.0, 1e300]),
    "is": pl.Series([True, False, None, True]),
}
KEYS["zoned"] = KEYS["moment"].dt.cast_time_unit("ms").dt.replace_time_zone("Europe/Berlin")


@pytest.mark.parametrize("name", first(3, KEYS))
def test_a_baseline_has_the_keys_of_the_log(name):
    """Polars would guess other dtypes: 1.1 and 1.10 would be one slice."""
    labels = {"gold": ["1", "0", "01", "0"] * 4, "pred": ["1", "0", "01", "1"] * 4}
    log = pl.DataFrame({"key": KEYS[name], "i": 0}).join(pl.DataFrame(labels), how="cross")
    log.write_parquet("log.parquet")
    asked = ["log.parquet", "--by", "key"]
    assert invoke("counts", *asked, "--out", "counts.csv").exit_code == 0
    done = invoke("check", *asked, "--no-worse-than", "counts.csv", "--format", "ndjson")
    assert (done.exit_code, done.stderr) == (0, "")
    judged = pl.read_ndjson(done.stdout_bytes)
    assert judged.height == KEYS[name].n_unique()
    assert judged["n_before"].to_list() == judged["n_after"].to_list()
    assert judged["n_before"].sum() == log.height


def test_a_baseline_of_another_kind_is_refused():
    write("log.csv", "key,gold,pred\n01,u,u\n01,v,v\n1,v,u\n")
    asked = ["log.csv", "--by", "key"]
    assert invoke("counts", *asked, "--text", "key", "--out", "counts.parquet").exit_code == 0
    done = invoke("check", *asked, "--no-worse-than", "counts.parquet")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "key 'key' is Int64 in the log but String in no_worse_than; cast one" in done.stderr


def test_a_store_keeps_how_files_are_read():
    Path("logs").mkdir()
    write("logs/a.csv", VERSIONS.replace("u,u", "u,NA"))
    typed = ["--by", "version", "--text", "version", "--null", "NA"]
    done = invoke("counts", "logs", *typed, "--out", "store")
    assert (done.exit_code, done.stdout) == (0, "")
    assert done.stderr.endswith("store: 1 counted, 0 replaced, 0 unchanged\n")
    write("logs/b.csv", VERSIONS.replace("v,u", "v,None"))
    done = invoke("counts", "logs", *typed, "--out", "store")
    assert "'pred' has the label 'None' in 1 row, a class like others" in done.stderr
    assert done.stderr.endswith("store: 1 counted, 0 replaced, 1 unchanged\n")
    kept = polars_mcc.PredictionLog.from_store("store").by("version").collect()
    assert kept["version", "n", "n_null"].rows() == [
        *(("1.1", 3, 1), ("1.10", 1, 1), ("1.2", 2, 0), ("3", 2, 0)),
    ]
    for other in (typed[:4], typed[:2], [*typed, "--null", "None"], [*typed, "--separator", ","]):
        refused = invoke("counts", "logs", *other, "--out", "store")
        assert refused.exit_code == 2
        assert "pass the same words in the same order, or use another store" in refused.stderr


ENCODINGS = ["utf-16", "utf-16-le", "utf-16-be", "utf-32"]


@in_turn(encoding=ENCODINGS, ending=["csv", "ndjson", "csv.gz"], by=["by", "counts"])
def test_text_that_is_not_utf_8_is_said(encoding, ending, by):
    log = pl.read_csv(ROWS.encode())
    text = log.write_ndjson() if ending == "ndjson" else ROWS
    data = text.encode(encoding)
    Path(f"log.{ending}").write_bytes(gzip.compress(data) if ending.endswith("gz") else data)
    refused = invoke(by, f"log.{ending}", "--out", "out.csv" if by == "by" else "store")
    assert refused.exit_code == 2
    assert "its text has bytes of 0, as UTF-16 has: write it as UTF-8" in refused.stderr


def test_a_byte_order_mark():
    Path("log.csv").write_bytes(ROWS.encode("utf-8-sig"))
    assert accuracy_of("log.csv") == HITS
    Path("log.ndjson").write_bytes(pl.read_csv(ROWS.encode()).write_ndjson().encode("utf-8-sig"))
    assert "(it begins with a byte order mark: write it as" in invoke("by", "log.ndjson").stderr


@pytest.mark.parametrize("separator", [",", "\t"])
def test_two_columns_of_one_name_are_refused(separator):
    """Polars reads the first. Columns without a name come from separators at the ends of lines."""
    file = "log.tsv" if separator == "\t" else "log.csv"
    for names in ("gold,pred,gold", "gold,pred,x,x", '"gold",pred,gold,gold'):
        lines = f"{names}\n{','.join('1' * len(names.split(',')))}\n"
        write(file, lines.replace(",", separator))
        for command in (
            ["by", file],
            ["by", ".", "--portable"],
            ["counts", file, "--out", "store"],
        ):
            refused = invoke(*command)
            assert refused.exit_code == 2
            assert f"two columns are called '{names[-4:].split(',')[-1]}'" in refused.stderr
    for names in ("gold,pred,,", "gold,pred,gold_duplicated_0,Gold", '"gold",pred,"a\nb",x'):
        write(file, f"{names}\n1,1,1,1\n".replace(",", separator))
        assert invoke("by", file).exit_code == 0
