"""The page of a report: its content, and that a browser opens it from the disk."""

from __future__ import annotations

import html
import json
import re
import subprocess
import sys
from importlib.resources import files

import narwhals as nw
import polars as pl
import pytest
from runner import invoke
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.common.print_page_options import PrintOptions
from support import first, in_browser, log_of, some_slow

import polars_mcc
from polars_mcc import bins, each, rollup, sets, trailing
from polars_mcc._report import html_page, sections

SCRIPT = "<script>document.title = 'run'</script>"
HOSTILE = [SCRIPT, '"><img src=x onerror="document.title = 1">', "{{ 7 * 7 }} & 'c'"]


def hostile_log(n: int = 900) -> pl.DataFrame:
    """A log whose labels, keys and names are HTML and scripts. One slice is bad."""
    i = pl.int_range(n)
    names = pl.Series(HOSTILE)
    slice_ = pl.lit(names).gather(i % 3)
    pred = pl.when((slice_ == SCRIPT) & (i % 2 == 0)).then(i // 7 % 3).otherwise(i // 3 % 3)
    return pl.select(
        gold=pl.when(i % 100 > 0).then(pl.lit(names).gather(i // 3 % 3)),
        pred=pl.lit(names).gather(pred),
        **{"<b>country</b>": slice_},
        year=2020 + i % 7,
        day=pl.date(2026, 3, 1) + pl.duration(days=i % 10),
    )


def rows_of(page: str, section: str) -> list[list[str]]:
    """The cells of the table of a section, by row."""
    [body] = re.findall(
        rf"<h2>{re.escape(html.escape(section))}</h2>(.*?)</section>", page, re.DOTALL
    )
    rows = re.findall(r"<tr>(.*?)</tr>", body, re.DOTALL)[1:]
    return [[html.unescape(cell) for cell in re.findall(r"<td.*?>(.*?)</td>", row)] for row in rows]


def specs_of(monkeypatch, report, *keys) -> list[dict]:
    """The charts of a report in Vega-Lite, before they are drawn."""
    specs = []
    monkeypatch.setattr(html_page, "_svg", lambda spec: specs.append(spec) or ("<svg></svg>", ""))
    report(*keys)
    return specs


def queries_of(page: str) -> list[str]:
    return [html.unescape(text) for text in re.findall(r"<code>(.*?)</code>", page, re.DOTALL)]


def test_what_is_shown_is_what_the_queries_give():
    log = pl.scan_parquet("data/digits.parquet")
    models = ["logistic", "knn", "bayes"]
    page = log.mcc(pred=models).report("confidence_band", "fold")
    queries = dict.fromkeys(queries_of(page))
    names = {"log": log, "each": each, "sets": sets}
    answers = {query: eval(query, names).collect() for query in queries}  # noqa: S307
    verbs = [re.match(r"log\.mcc\(pred=\[.*?\]\)\.(\w+)\(", query)[1] for query in queries]
    assert verbs == ["by", "worst", "gaps", "compare", "by", "by", *["compare"] * 3, "confusion"]
    total, worst, gaps, compared, _, folds, *_, confusions = answers.values()
    assert [row[2] for row in rows_of(page, "All rows")] == [f"{mcc:.3f}" for mcc in total["mcc"]]
    assert len(rows_of(page, "Worst slices")) == worst.height > 0
    widest = gaps.sort("diff_low", "diff", descending=True, maintain_order=True)
    columns = ["keys", "model", "metric", "lowest"]
    assert [row[:4] for row in rows_of(page, "Gaps between slices")] == [
        [str(one) for one in row] for row in widest.select(columns).rows()
    ]
    by_worst = folds.sort(pl.col("mcc").min().over("fold"), maintain_order=True)
    assert [row[:4] for row in rows_of(page, "By fold")] == [
        [str(fold), model, str(n), f"{mcc:.3f}"]
        for fold, model, n, mcc in by_worst.select("fold", "model", "n", "mcc").rows()
    ]
    shown = rows_of(page, "Confusions that cost most")
    assert [row[:4] for row in shown] == [
        [model, str(gold), str(pred), str(n)] for model, gold, pred, n, *_ in confusions.iter_rows()
    ]
    assert len(shown) == 15
    assert rows_of(page, "Rows not scored") == []
    beside = rows_of(page, "Models compared with logistic")
    assert [row[0] for row in beside] == compared["model"].to_list() == ["knn", "bayes"]


@pytest.mark.slow
@pytest.mark.parametrize("keys", some_slow([["fold", "radius_band"], []], []), ids=str)
def test_a_report_says_how_good_the_scores_are(keys):
    log = pl.read_parquet("data/breast_cancer.parquet")
    log = log.with_columns(p=pl.col("radius").rank() / log.height, q=pl.col("radius") > 15)
    log = log.with_columns(pl.col("q").cast(pl.Float64))
    described = log.mcc(pred=["knn", "logistic"], score=["p", "q"], positive=True)
    page = described.report(*keys)
    [scores] = [query for query in queries_of(page) if "roc_auc" in query]
    of_scores = eval(scores, {"log": log, "each": each})  # noqa: S307
    shown = rows_of(page, "How good are the scores?")
    columns = ["model", "n", "roc_auc", "roc_auc_low", "roc_auc_high", "brier"]
    texts = of_scores.select(*(["slice"] if keys else []), *columns).rows()
    texts = [[f"{one:.3f}" if isinstance(one, float) else str(one) for one in row] for row in texts]
    texts = [[*row[:-3], f"{row[-3]} to {row[-2]}", row[-1]] for row in texts]
    assert sorted(row[: len(texts[0])] for row in shown) == sorted(texts)
    assert [row[:2] for row in shown[:2]] == [row[:2] for row in sorted(texts)[:2]]
    table = rows_of(page, "Are the scores calibrated?")
    rows = described.calibration().select("model", "bin", "score_min").rows()
    assert [row[:3] for row in table] == [[one, str(bin_), f"{p:.3f}"] for one, bin_, p in rows]
    assert 'aria-label="Are the scores calibrated?"' in page


@pytest.mark.parametrize(
    ("about", "title"),
    first(
        1,
        [
            ({"score": "radius"}, "How good are the scores?"),
            ({"score": "p", "nulls": "label"}, None),
            ({"score": "p", "gold": "radius_band", "pred": "radius_band"}, None),
            ({}, None),
        ],
        of_several=True,
    ),
    ids=str,
)
def test_scores_that_are_no_probabilities_are_not_called_calibrated(about, title):
    log = pl.read_parquet("data/breast_cancer.parquet")
    log = log.with_columns(p=pl.col("radius").rank() / log.height)
    page = log.mcc(**{"pred": "knn", **about}).report("fold")
    assert "Are the scores calibrated?" not in page
    assert ("How good are the scores?" in page) == (title is not None)
    assert ("so they are no probabilities." in page) == (title is not None)
    assert len(rows_of(page, title)) == 6 if title else "roc_auc" not in page


@pytest.mark.slow
def test_rows_that_are_not_scored_are_told_with_their_reason():
    log = log_of([("x", 0, None), ("x", None, 0), ("y", None, None), ("y", 1, 1)])
    log = log.with_columns(n=pl.Series([2, 3, 4, 5]), other="gold")
    page = log.mcc(pred=["pred", "other"], weight="n").report("key")
    assert rows_of(page, "Rows not scored") == [
        ["pred", "gold is null", "3"],
        ["pred", "gold is null, pred is null", "4"],
        ["pred", "pred is null", "2"],
        ["other", "gold is null, other is null", "7"],
    ]
    page = log.mcc(nulls="label").report()
    assert "All rows are scored." in page


def test_edges():
    empty = log_of([])
    assert rows_of(empty.mcc.report("key"), "All rows") == [["0", *"––––", "0"]]
    one = log_of([("x", 0, 0)]).mcc.report("key", "key")
    assert rows_of(one, "By key")[0][:3] == ["x", "1", "0.000"]
    with pytest.raises(pl.exceptions.ColumnNotFoundError, match="no column 'kye' for key"):
        empty.mcc.report("kye")
    with pytest.raises(ValueError, match="ci must be"):
        empty.mcc.report(ci=2)


KEYS = {
    "duration": pl.duration(hours=pl.int_range(pl.len()) % 3),
    "time": pl.time(pl.int_range(pl.len()) % 3),
    "zone": pl.datetime(2026, 3, 1, pl.int_range(pl.len()) % 3, time_zone="Europe/Berlin"),
    "list": pl.concat_list(pl.int_range(pl.len()) % 3),
    "float": pl.when(pl.int_range(pl.len()) % 3 > 0).then(pl.lit(float("nan"))),
    "slice": pl.lit(None, pl.String),
}


@pytest.mark.slow
def test_keys_of_any_dtype_and_name():
    """Most keys have three values, "float" has two (NaN and null), and "slice" has one (null)."""
    page = hostile_log(60).with_columns(**KEYS).mcc.report(*KEYS, depth=1)
    for name in KEYS:
        shown = [row[0] for row in rows_of(page, f"By {name}")]
        assert len(shown) == {"float": 2, "slice": 1}.get(name, 3)
        assert f'aria-label="mcc by {name}"' in page


@pytest.mark.slow
def test_keys_that_are_expressions_sets_and_windows():
    """Each key has a section. Columns share one query; a set or a window has its own query."""
    log = pl.scan_parquet("data/digits.parquet").mcc
    early = (pl.col("fold") < 2).alias("is_early")
    keys = [early, early, rollup("ink_band", "fold"), trailing("day", "14d", every="7d")]
    page = log.report(*keys)
    titles = [html.unescape(title) for title in re.findall(r"<h2>(.*?)</h2>", page)]
    of_keys = ["By is_early", "By rollup(ink_band, fold)", "By day, 14d"]
    assert [title for title in titles if title.startswith("By ")] == of_keys
    answers = [log.by(key).collect() for key in keys[1:]]
    for title, answer in zip(of_keys, answers, strict=True):
        shown = [[cell.lower() for cell in row[: answer.width - 3]] for row in rows_of(page, title)]
        slices = answer.select(pl.exclude("n", "mcc", "n_null").cast(pl.String)).fill_null("null")
        assert sorted(shown) == sorted([*row] for row in slices.rows()), title
    assert 'log.mcc.by(trailing("day", "14d", every="7d", align="data")' in html.unescape(page)
    assert '[(col("fold")) < (dyn int: 2)].alias("is_early")' in html.unescape(page)


@pytest.mark.slow
def test_a_frame_of_polars_in_another_coat():
    log = pl.read_parquet("data/digits.parquet")
    page = polars_mcc.PredictionLog(nw.from_native(log)).report("fold")
    assert rows_of(page, "By fold") == rows_of(log.mcc.report("fold"), "By fold")


@pytest.mark.slow
def test_what_is_too_long_is_cut_and_said(monkeypatch):
    for name, limit in {
        "MAX_TABLE_ROWS": 3,
        "MAX_LINES": 2,
        "_MAX_MATRIX_LABELS": 2,
        "_MAX_TIMES": 4,
    }.items():
        monkeypatch.setattr(sections, name, limit)
    log = hostile_log().with_columns(other=pl.col("pred").shift(1))
    page = log.mcc.report("year", "day")
    assert "Among 7 slices, some look bad by chance alone." in page
    assert "The chart shows the last 4 of 10 slices." in page
    assert "The table holds 3 of 7 rows, the lowest by mcc." in page
    assert "The confusion matrix of pred is not drawn, because it has 3 labels." in page
    scores = log.mcc.by("year").sort("mcc").head(3)
    assert [row[0] for row in rows_of(page, "By year")] == scores["year"].cast(pl.String).to_list()
    both = log.mcc(pred=["pred", "other"]).report("year")
    assert "The chart shows the lowest 2 of 7 slices." in both
    assert all(f'aria-label="mcc by year, {model}"' in both for model in ("pred", "other"))


@pytest.mark.slow
def test_a_chart_that_is_not_drawn_is_not_spoken_of():
    """Each slice has one gold class, so no score, and there are too many slices for one chart."""
    log = pl.DataFrame({"key": map(str, range(70)), "gold": 0, "pred": 0, "other": 0})
    page = log.mcc(pred=["pred", "other"], zero_division=None).report("key")
    assert rows_of(page, "Models compared with pred, by key")[0][3] == "–"
    assert 'aria-label="Models compared with pred, by key"' not in page
    assert "The chart shows" not in page


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """The report of the hostile log, written by the command line."""
    folder = tmp_path_factory.mktemp("report")
    (folder / "logs").mkdir()
    (folder / "logs/_notes.csv").write_text("not a log")
    hostile_log().write_parquet(folder / "logs/log.parquet")
    command = ["report", str(folder / "logs")]
    keys = ["--by", "<b>country</b>", "--by", "year", "--by", "day"]
    options = ["--title", SCRIPT, "--filter", "year > 2020 AND gold IS NOT DISTINCT FROM gold"]
    out = ["--out", str(folder / "report.html")]
    words = [*command, *keys, *options, *out]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sys, "argv", ["polars-mcc", *words])
        done = invoke(*words)
    assert done.exit_code == 0
    said = f"polars-mcc: report written to {folder / 'report.html'}\n"
    assert done.stderr.endswith(said)
    return folder / "report.html"


@pytest.fixture
def page(browser, report):
    """The report, open in a browser."""
    browser.get(report.as_uri())
    return browser


def table_of(page, title: str):
    return page.find_element(By.XPATH, f'//section[h2[text()="{title}"]]//table')


def column(table, place: int) -> list[str]:
    rows = table.find_elements(By.CSS_SELECTOR, "tbody tr:not([hidden])")
    return [row.find_elements(By.TAG_NAME, "td")[place].text for row in rows]


@in_browser
def test_the_page_opens_from_the_disk_without_an_error_or_a_request(page):
    assert page.get_log("browser") == []
    sent = [line["message"] for line in page.get_log("performance")]
    urls = re.findall(r'"Network.requestWillBeSent".*?"url":"([^"]*)"', "\n".join(sent))
    assert urls
    assert {url.split(":")[0] for url in urls} <= {"file", "data"}


@in_browser
def test_text_of_the_log_is_text(page):
    assert page.title == SCRIPT
    assert page.find_element(By.TAG_NAME, "h1").text == SCRIPT
    assert len(page.find_elements(By.TAG_NAME, "script")) == 1
    assert page.find_elements(By.TAG_NAME, "img") == []
    in_words = {json.dumps(text) if text.startswith('"') else text for text in HOSTILE}
    assert set(column(table_of(page, "By <b>country</b>"), 0)) == in_words
    assert column(table_of(page, "Worst slices"), 0)[0].startswith(f"<b>country</b> = {SCRIPT}")
    texts = [text.text for text in page.find_elements(By.CSS_SELECTOR, "svg text")]
    assert any(SCRIPT in text for text in texts)


@in_browser
def test_a_script_that_is_not_the_page_s_own_does_not_run(page):
    page.execute_script(
        "const script = document.createElement('script');"
        "script.textContent = 'window.injected = 1'; document.body.append(script)"
    )
    assert page.execute_script("return window.injected") is None
    [line] = page.get_log("browser")
    assert "Content Security Policy" in line["message"]


@in_browser
def test_pictures_are_drawn(page):
    sizes = page.execute_script(
        "const drawn = document.querySelectorAll('.chart svg');"
        "return [...drawn].map((svg) => [svg.clientWidth, svg.clientHeight])"
    )
    assert len(sizes) == 5
    assert all(width > 100 and height > 50 for width, height in sizes)


@in_browser
@pytest.mark.parametrize(
    "text",
    [
        pytest.param("constructor", marks=pytest.mark.slow),
        "\u2028\u2029\n\0\x01\u202e\u200f'\"`</script>\\",
    ],
)
def test_every_chart_is_drawn_whatever_the_names(browser, tmp_path, text):
    """Vega-Lite makes code of some texts, and its parser ends a line at U+2028."""
    names = {name: name + text for name in ("pred", "other", "day", "<b>country</b>")}
    log = hostile_log(300).with_columns(
        pl.col("gold", "pred", "<b>country</b>").replace({SCRIPT: text, HOSTILE[1]: f"x{text}"})
    )
    log = log.with_columns(other=pl.col("pred").shift(1)).rename(names)
    pred, other, day, country = names.values()
    path = tmp_path / "report.html"
    path.write_text(log.mcc(pred=[pred, other]).report(country, day), encoding="utf-8")
    browser.get(path.as_uri())
    assert browser.get_log("browser") == []
    charts = browser.find_elements(By.CSS_SELECTOR, ".chart")
    assert len(browser.find_elements(By.CSS_SELECTOR, ".chart svg")) == len(charts) >= 8
    drawn = [text.text for text in browser.find_elements(By.CSS_SELECTOR, "svg text")]
    shown = "<U+2028><U+2029>" if text.startswith("\u2028") else text
    assert any(f"x{shown}" in text for text in drawn)


@in_browser
def test_a_column_is_sorted_by_value(page):
    table = table_of(page, "By year")
    heads = table.find_elements(By.CSS_SELECTOR, "th button")
    place = [head.text for head in heads].index("mcc")
    expected = sorted(column(table, place), key=float)
    assert column(table, place) == expected, "the worst slice is first"
    heads[place].click()
    assert column(table, place) == expected
    assert table.find_elements(By.TAG_NAME, "th")[place].get_attribute("aria-sort") == "ascending"
    heads[place].click()
    assert column(table, place) == expected[::-1]
    heads[0].click()
    assert column(table, 0) == ["2021", "2022", "2023", "2024", "2025", "2026"]


@in_browser
def test_rows_are_searched(page):
    section = page.find_element(By.XPATH, '//section[h2[text()="By day"]]')
    search = section.find_element(By.CSS_SELECTOR, "input[type=search]")
    search.send_keys("03-0")
    table = section.find_element(By.TAG_NAME, "table")
    assert len(column(table, 0)) == 9
    assert section.find_element(By.TAG_NAME, "output").text == "9 of 10 rows"
    search.send_keys(" no such day")
    assert column(table, 0) == []
    search.send_keys(Keys.CONTROL, "a", Keys.BACKSPACE)
    assert len(column(table, 0)) == 10


@in_browser
def test_a_checker_of_accessibility_finds_nothing_serious(page):
    page.execute_script(files("axe_core_python").joinpath("axe.min.js").read_text("utf-8"))
    found = page.execute_async_script(
        "const done = arguments[0]; axe.run().then((found) => done(found.violations))"
    )
    serious = [
        (one["id"], [node["html"][:200] for node in one["nodes"]])
        for one in found
        if one["impact"] in {"serious", "critical"}
    ]
    assert serious == []


@in_browser
def test_what_made_it_is_told(page):
    made = page.find_element(By.ID, "made").text
    assert "polars-mcc report" in made
    assert "--title '<script>" in made
    assert "log.parquet" in made
    assert "year > 2020" in made
    assert "not read" in made
    assert "_notes.csv" in made
    assert f"polars_mcc {polars_mcc.__version__}, Polars {pl.__version__}" in made


@in_browser
def test_the_page_is_seen_and_printed(page):
    shot = page.get_screenshot_as_png()
    assert len(shot) > 20_000, "a blank page is a few kB"
    pdf = page.print_page(PrintOptions())
    assert len(pdf) > 100_000


@pytest.mark.slow
def test_refusals(tmp_path):
    (tmp_path / "out").mkdir()
    hostile_log(30).write_parquet(tmp_path / "log.parquet")
    command = [sys.executable, "-m", "polars_mcc", "report", str(tmp_path / "log.parquet")]

    def refusal(*options: str) -> str:
        done = subprocess.run([*command, *options], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (2, "")
        assert not list((tmp_path / "out").iterdir())
        return done.stderr

    out = ["--out", str(tmp_path / "out/r.html")]
    assert "the name of a report must end in one of .html, .md, .json" in refusal(
        "--out", str(tmp_path / "out/r.pdf")
    )
    assert "there is no folder" in refusal("--out", str(tmp_path / "away/r.html"))
    assert "no column 'yaer' for key; did you mean 'year'?" in refusal("--by", "yaer", *out)


@pytest.mark.slow
@pytest.mark.parametrize("metric", some_slow(["f1_macro", "fnr"], "f1_macro"))
def test_a_report_of_another_metric(metric):
    log = pl.read_parquet("data/digits.parquet").mcc(pred=["logistic", "knn"], positive=8)
    page = log.report("ink_band", "confidence_band", metrics=metric)
    total, *_ = rows_of(page, "All rows")
    expected = log.score(metrics=metric)[metric].to_list()
    assert total[2] == f"{expected[0]:.3f}"
    assert re.search(rf"worst\(.*metric=\S+{metric}", page)
    above = "below" if metric == "fnr" else "above"
    assert f"A difference {above} 0 means that the model is better than logistic." in page


@pytest.mark.slow
def test_names_of_slices_are_whole_but_for_the_key_that_they_share(monkeypatch):
    log = pl.DataFrame({"a": ["x", "xy", "xyz"] * 40, "gold": [0, 1] * 60, "pred": [0, 1, 1] * 40})
    log = log.with_columns(other="gold").mcc(pred=["pred", "other"])
    specs = specs_of(monkeypatch, log.report, "a")
    told = [
        layer["encoding"]["y"]
        for spec in specs
        for layer in spec.get("layer", ())
        if "labelExpr" in layer["encoding"].get("y", {}).get("axis", {})
    ]
    names = {(*channel["scale"]["domain"],): channel["axis"]["labelExpr"] for channel in told}
    whole = "split(datum.label, ' and ')"
    for name, shown in names.items():
        if len(name) == 3 and all(text.startswith("a = ") for text in name):
            assert shown == "substring(datum.label, 4, length(datum.label))"
        else:
            assert shown == whole
    assert ("x", "xy", "xyz") in {tuple(sorted(name)) for name in names}


@pytest.mark.slow
def test_all_charts_of_a_metric_have_one_axis(monkeypatch):
    log = pl.read_parquet("data/digits.parquet")
    axes: dict[str, list] = {"x": [], "y": []}
    for spec in specs_of(monkeypatch, log.mcc(pred="bayes").report, "ink_band", "fold", "day"):
        for layer in spec.get("layer", ()):
            for side, found in axes.items():
                channel = layer["encoding"].get(side, {})
                if channel.get("title") == "mcc" and channel.get("field") in {"score", "low"}:
                    found.append(channel["scale"]["domain"])
    answers = [log.mcc(pred="bayes").by(key, ci=0.95) for key in ("ink_band", "fold", "day")]
    for found, parts in ((axes["x"], answers[:2]), (axes["y"], answers[2:])):
        assert len(found) > 1
        assert [*map(tuple, found)] == [tuple(found[0])] * len(found)
        low = min(part["mcc_low"].min() for part in parts)
        assert found[0][0] <= low < found[0][1] <= 1


@pytest.mark.slow
def test_numbers_are_binned_and_stay_in_order():
    log = pl.read_parquet("data/digits.parquet").mcc
    page = log.report("ink", "fold")
    shown = [row[0] for row in rows_of(page, "By ink")]
    names = log.by(bins("ink", 10))["ink"].to_list()
    assert [html.unescape(one) for one in shown] == names
    assert len(names) == 10
    assert len(rows_of(page, "By fold")) == 5, "few values are not binned"
    assert 'bins("ink", [' in html.unescape(page)
    own = log.report(bins("ink", [4, 5]))
    assert [html.unescape(row[0]) for row in rows_of(own, "By ink")] == ["≤ 4", "4 < x ≤ 5", "> 5"]


@pytest.mark.slow
def test_a_rate_says_its_own_rows():
    log = pl.DataFrame({"gold": [1, 1, 1, 0, 0], "pred": [1, 1, 0, 0, 1]}).mcc(positive=1)
    for metric, base in {
        "tpr": "3 rows labelled 1",
        "fpr": "2 rows labelled 0",
        "ppv": "3 rows predicted 1",
        "npv": "2 rows predicted 0",
        "accuracy": "5 rows",
    }.items():
        told = json.loads(log.report(metrics=metric, format="json"))["verdict"][0]["text"]
        assert told.endswith(f" over {base}."), told
    three = pl.DataFrame({"gold": list("abc"), "pred": list("aba")}).mcc(positive="a")
    told = json.loads(three.report(metrics="fpr", format="json"))["verdict"][0]["text"]
    assert told.endswith(" over 2 rows labelled not a.")
