"""A report is for somebody who was not there: short, in words, light, and about what is asked."""

from __future__ import annotations

import html
import json
import re

import numpy as np
import polars as pl
import pytest
from runner import invoke
from selenium.webdriver.common.by import By
from selenium.webdriver.common.print_page_options import PrintOptions
from support import in_browser
from test_verdict import said

from polars_mcc import each, metric

KEYS = ["race", "sex", "age", "priors", "charge", "fel", "misd"]
RACES = ["Asian", "African-American", "Caucasian", "Hispanic", "Native American", "Other"]


def court_log(rows: int = 6000) -> pl.DataFrame:
    """Seven keys and two models. The second finds few of the positive rows of one race."""
    rng = np.random.default_rng(71)
    race, gold = rng.integers(0, 6, rows), rng.integers(0, 2, rows)
    errs = np.where((race == 1) & (gold == 1), 0.6, 0.2)
    log = pl.DataFrame({name: rng.integers(0, 9 - at, rows) for at, name in enumerate(KEYS)})
    return log.with_columns(
        race=pl.lit(pl.Series(RACES)).gather(pl.Series(race)),
        sex=pl.col("sex") % 2,
        gold=pl.Series(gold),
        old=pl.Series(np.where(rng.random(rows) < 0.3, 1 - gold, gold)),
        new=pl.Series(np.where(rng.random(rows) < errs, 1 - gold, gold)),
        day=pl.date(2026, 1, 1) + pl.duration(days=pl.int_range(rows) * 60 // rows),
    )


LOG = court_log()
COURT = LOG.mcc(pred=["old", "new"], positive=1, time="day")
COST = {"metrics": "cost(fn=5, fp=1)"}


@pytest.fixture(scope="module")
def written() -> dict:
    return json.loads(COURT.report(*KEYS, sensitive="race", **COST, format="json"))


@pytest.fixture(scope="module")
def page() -> str:
    return COURT.report(*KEYS, sensitive="race", **COST)


def test_the_verdict_is_short_and_every_section_says_what_it_shows(written):
    """Each sentence ends with its only point."""
    texts = [one["text"] for one in written["verdict"]]
    assert 5 <= len(texts) <= 8
    assert all(re.fullmatch(r"(?:[^.]|\.\d|\.(?=\w))+\.", text) for text in texts), texts
    kinds = [one["kind"] for one in written["verdict"]]
    assert kinds == ["score", "comparison", "gaps", "slices", "changes", "unscored"]
    assert all(one["notes"] for one in written["sections"])
    words = " ".join(texts)
    for jargon in ("gold", "given its", "behind", "share rows"):
        assert jargon not in words


def test_many_models_metrics_and_reasons_stay_one_sentence():
    log = LOG.with_columns(pl.col("new").alias(f"m{at}") for at in range(6))
    log = log.with_columns(gold=pl.when(pl.int_range(pl.len()) > 9).then("gold"))
    models = log.with_columns(m1=pl.when(pl.int_range(pl.len()) % 9 > 0).then("m1"))
    models = models.mcc(pred=["old", *(f"m{at}" for at in range(6))], positive=1)
    texts = said(models, "race", "sex", "age", metrics=["fnr", "fpr"], sensitive=["race", "sex"])
    assert "; and 11 more." in texts[0]
    assert "; and 9 more." in texts[1]
    assert texts[-1].endswith("; and 6 more.")


def test_a_sensitive_key_is_first_and_in_the_verdict(written):
    [text] = [one["text"] for one in written["verdict"] if one["kind"] == "gaps"]
    sections = [one["id"] for one in written["sections"]]
    assert sections[:3] == ["total", "gaps", "by:race"]
    assert written["sensitive"] == ["race"]
    rows = next(one["rows"] for one in written["sections"] if one["id"] == "gaps")
    assert {row["keys"] for row in rows[:6]} == {"race"}
    of_race = {
        race: part.filter(gold=1, new=0).height / part.filter(gold=1).height
        for (race,), part in LOG.group_by("race")
    }
    lowest = min(of_race, key=of_race.__getitem__)
    low, high = of_race[lowest], of_race["African-American"]
    row = next(row for row in rows if (row["model"], row["metric"]) == ("new", "fnr"))
    limits = f"{row['diff_low']:.3f} to {row['diff_high']:.3f}"
    fnr = next(one for one in COURT.gaps("race", metrics="fnr").to_dicts() if one["model"] == "new")
    assert limits == f"{fnr['diff_low']:.3f} to {fnr['diff_high']:.3f}"
    found = text.replace("\u00a0", " ")
    assert found.startswith(
        f"new: fnr (label 1, predicted 0) is {low:.3f} in race = {lowest} and {high:.3f} in "
        f"race = African-American: a ratio of {low / high:.3f}"
    )
    assert found.endswith(
        f", a gap of {high - low:.3f} (95 % confidence interval {limits}; p < 0.001)."
    )
    assert row["ratio"] == pytest.approx(low / high)


def test_each_sensitive_key_has_its_answer_in_two_sentences_at_most():
    keys = ["race", "sex", "age", "charge"]
    gaps = [
        text
        for text in said(COURT, sensitive=keys, **COST)
        if "slices of" in text or "gap of" in text
    ]
    assert len(gaps) == 2
    assert gaps[0].startswith("new: fnr")
    assert gaps[1].count("; No gap") + gaps[1].startswith("No gap") == 3
    clusters = LOG.with_columns(user=pl.int_range(pl.len()) // 2).mcc(pred="new", cluster="user")
    why = "Gaps between slices are not measured: the rows of a cluster may be in several slices."
    assert why in said(clusters, sensitive=["race"])
    few = "No gap between slices of race is measured: fewer than two of a key have enough rows."
    assert few in said(LOG.mcc(pred="new"), sensitive="race", min_n=5000)
    with pytest.raises(ValueError, match="sensitive takes columns, each for itself"):
        COURT.report(sensitive=each("race", "sex"))


def test_a_sensitive_key_is_a_key_once_also_in_the_shell(tmp_path):
    LOG.write_parquet(tmp_path / "log.parquet")
    out = tmp_path / "report.json"
    options = ["--pred", "old", "--pred", "new", "--positive", "1", "--metric", "cost(fn=5, fp=1)"]
    given = [
        "--by",
        "sex",
        "--by",
        "race",
        "--sensitive",
        "race",
        "--sensitive",
        "age / 3 AS third",
    ]
    done = invoke("report", str(tmp_path / "log.parquet"), *options, *given, "--out", str(out))
    assert done.exit_code == 0, done.output
    found = json.loads(out.read_text("utf-8"))
    by = [one["id"] for one in found["sections"] if one["id"].startswith("by:")]
    assert by == ["by:race", "by:third", "by:sex"]
    python = COURT.report(
        "sex", sensitive=["race", (pl.col("age") / 3).alias("third")], **COST, format="json"
    )
    assert json.loads(python)["sensitive"] == found["sensitive"] == ["race", "third"]


def test_metrics_costs_and_directions_are_told_in_words_once(written, page):
    words = written["words"]
    assert words["cost"] == (
        "what errors cost, on average over all rows: 5 for each labelled 1 and not predicted 1 and "
        "1 for each predicted 1 and not labelled 1; less is better"
    )
    assert (
        words["fnr"] == "of the rows labelled 1, the share that is not predicted 1; less is better"
    )
    assert words["mcc"].endswith("; more is better")
    for name, text in words.items():
        assert (
            page.count(
                html.escape(f"{name}</dt><dd>{text}.", quote=False)
                .replace("&lt;", "<")
                .replace("&gt;", ">")
            )
            == 1
        )
    labels = LOG.select(
        *(pl.col(name).replace_strict({0: "ok", 1: "bad"}) for name in ("gold", "new"))
    )
    asked = {
        "metrics": ["selection_rate", "kappa", metric.cost({("bad", "ok"): 3})],
        "format": "json",
    }
    words = json.loads(labels.mcc(pred="new", positive="bad").report(**asked))["words"]
    assert (
        words["selection_rate"] == "the share of the rows that is predicted bad; neither is better"
    )
    assert words["kappa"].endswith("more is better")
    assert words["cost"].endswith("less is better")


def test_numbers_have_three_digits_and_p_values_an_end(page):
    """In every table, also of columns that follow hidden ones."""
    cells = [html.unescape(text) for text in re.findall(r"<td.*?>(.*?)</td>", page)]
    numbers = [
        text for text in cells if re.fullmatch(r"[\d.,]+(?: to [\d.,]+)?|<\u00a00\.001", text)
    ]
    assert len(numbers) > 500
    assert "<\u00a00.001" in numbers
    for text in numbers:
        for number in text.split(" to "):
            assert len(number.partition(".")[2]) <= 3 or float(number) < 0.1, text


def test_a_review_of_seven_keys_and_two_models_is_light(page):
    assert len(page.encode()) < 500_000
    assert page.count("<svg") > 15
    [script] = re.findall(r"<script.*?>(.*?)</script>", page, re.DOTALL)
    assert len(script) < 3000
    assert not re.search(r"(?:href|src)=\"(?!#|data:)|url\((?!#)", page)


def test_pairs_of_keys_are_slices_in_words():
    rows = told_rows("compared:pairs of keys")
    assert {"slice", "model", "score", "reference"} <= rows[0].keys()
    assert not {*KEYS} & rows[0].keys()
    compared = COURT.compare(each("race"), **COST)
    assert "race = African-American" in {row["slice"].partition(" and ")[0] for row in rows}
    assert compared.height == 6


def told_rows(section: str) -> list[dict]:
    found = json.loads(COURT.report(*KEYS[:3], **COST, format="json"))
    return next(one["rows"] for one in found["sections"] if one["id"] == section)


READ = """
const at = (selector) => [...document.querySelectorAll(selector)];
const lines = (one) => {
  const range = document.createRange();
  range.selectNodeContents(one);
  return new Set([...range.getClientRects()].map((box) => Math.round(box.top))).size;
};
return {
  page: document.documentElement.scrollWidth - window.innerWidth,
  numbers: Math.max(...at("td.number").map(lines)),
  texts: Math.min(...at(".chart svg").map((svg) => svg.clientWidth / svg.viewBox.baseVal.width)),
  drawn: at(".chart svg").filter((svg) => svg.getBoundingClientRect().right > innerWidth).length,
};
"""


@in_browser
@pytest.mark.parametrize("width", [1200, 400])
def test_a_page_is_read_on_a_screen_and_on_a_phone(browser, tmp_path, page, width):
    """Numbers are on one line, charts are not cut, and their texts of 12 pixels stay legible."""
    path = tmp_path / "report.html"
    path.write_text(page, encoding="utf-8")
    before = browser.get_window_size()
    browser.set_window_size(width, 1000)
    browser.get(path.as_uri())
    found = browser.execute_script(READ)
    browser.set_window_size(before["width"], before["height"])
    assert found["page"] <= 0
    assert found["numbers"] == 1
    assert found["texts"] > 0.7
    assert found["drawn"] == 0
    assert browser.get_log("browser") == []


@in_browser
def test_no_column_is_cut_on_paper(browser, tmp_path, page):
    """A4 is 718 pixels wide between its margins."""
    path = tmp_path / "report.html"
    path.write_text(page, encoding="utf-8")
    device = {"width": 718, "height": 1000, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", device)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    browser.get(path.as_uri())
    tables = browser.find_elements(By.TAG_NAME, "table")
    rights = [table.rect["x"] + table.rect["width"] for table in tables]
    pdf = browser.print_page(PrintOptions())
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert len(rights) > 15
    assert max(rights) <= 718
    assert len(pdf) > 100_000


def test_what_is_asked_is_told_of_a_sensitive_key_and_no_direction_of_metrics_that_have_several():
    log = LOG.mcc(pred=["old", "new"])
    log = log(positive=1)
    texts = said(log, sensitive="race", metrics="selection_rate")
    [told] = [text for text in texts if " a gap of " in text]
    assert "selection_rate is " in told
    mixed, one = (
        log.report("race", metrics=names, format="md") for names in (["mcc", "fnr"], ["fnr"])
    )
    assert "Whether that is better, the verdict says." in mixed
    assert "A difference below 0 means that the model is better than old." in one
