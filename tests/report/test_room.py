"""The page of a report has enough room: no text is cut off, and no text covers another."""

from __future__ import annotations

import datetime as dt
import json

import polars as pl
import pytest
from selenium.webdriver.common.by import By
from support import in_browser
from test_page import specs_of
from test_verdict import said

from polars_mcc import bins

JOBS = ["Executive, managerial", "Professional specialty", "Craft and repair", "Sales"]
LABELS = ["at most 50K", "more than 50K"]


def income_log(n: int = 6_000) -> pl.DataFrame:
    """Two models over nine weeks. The first predicts one class only for a job from week 6 on."""
    i = pl.int_range(n)
    job, week, gold = i.hash(1) % len(JOBS), i * 9 // n, i.hash(2) % 2
    right = {name: i.hash(seed) % 10 < most for seed, (name, most) in enumerate(MODELS.items(), 3)}
    pred = {name: pl.when(is_hit).then(gold).otherwise(1 - gold) for name, is_hit in right.items()}
    first, *_ = pred
    pred[first] = pl.when((job == 1) & (week >= 6)).then(0).otherwise(pred[first])
    labels = pl.lit(pl.Series(LABELS))
    return pl.select(
        occupation=pl.lit(pl.Series(JOBS)).gather(job),
        sex=pl.lit(pl.Series(["F", "M"])).gather(i.hash(9) % 2),
        ts=dt.datetime(2026, 1, 5, 3) + pl.duration(weeks=week),
        gold=labels.gather(gold),
        **{
            name: pl.when(i % step > 0).then(labels.gather(code))
            for step, (name, code) in zip((7, 11), pred.items(), strict=True)
        },
    )


MODELS = {"forest_with_all_features": 8, "logistic": 9}


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    log = income_log().mcc(pred=[*MODELS])
    path = tmp_path_factory.mktemp("room") / "report.html"
    path.write_text(log.report("occupation", "sex", bins("ts", "1w")), encoding="utf-8")
    return path


@pytest.fixture(params=[1280, 800, pytest.param(400, marks=pytest.mark.slow)])
def page(browser, report, request):
    """The report in a window of some width, as wide as a phone or a screen."""
    before = browser.get_window_size()
    browser.set_window_size(request.param, 1000)
    browser.get(report.as_uri())
    yield browser
    browser.set_window_size(before["width"], before["height"])


TABLES = """
return [...document.querySelectorAll(".wide:has(table)")].map((region) => {
  region.scrollLeft = 1e6;
  const last = [...region.querySelectorAll("th")].at(-1).getBoundingClientRect();
  const box = region.getBoundingClientRect();
  return {
    name: region.ariaLabel,
    hidden: last.right - box.right,
    isCut: region.scrollWidth > region.clientWidth,
    shadow: getComputedStyle(region).backgroundAttachment,
    page: document.documentElement.scrollWidth - window.innerWidth,
  };
});
"""


@in_browser
def test_a_wide_table_scrolls_to_its_last_column_and_the_page_does_not(page):
    tables = page.execute_script(TABLES)
    assert len(tables) > 8
    for table in tables:
        assert table["hidden"] < 1, table
        assert table["page"] <= 0, table
        assert "local" in table["shadow"], table
    width = page.execute_script("return window.innerWidth")
    cut = {table["name"] for table in tables if table["isCut"]}
    if width >= 1280:  # The others fit beside or below their chart.
        assert cut <= {"Table: Worst slices", "Table: Gaps between slices"}
    else:
        assert "Table: Worst slices" in cut


CELLS = """
const heads = [...document.querySelectorAll("th")].filter((one) => one.textContent === "confusion");
return heads.flatMap((head) => {
  const rows = head.closest("table").tBodies[0].rows;
  return [...rows].map((row) => {
    const cell = row.cells[head.cellIndex];
    const range = document.createRange();
    range.selectNodeContents(cell);
    const tops = new Set([...range.getClientRects()].map((box) => Math.round(box.top)));
    return [cell.textContent, tops.size];
  });
});
"""


@in_browser
def test_a_confusion_takes_at_most_three_lines(page):
    cells = page.execute_script(CELLS)
    assert cells
    assert max(len(text) for text, _ in cells) > 40
    assert all(lines <= 3 for _, lines in cells), cells


TICKS = """
const groups = [...document.querySelectorAll("svg g:has(> text + text)")];
return groups.filter((one) => !one.querySelector(":not(text, tspan)")).map((axis) => {
  const texts = [...axis.querySelectorAll("text")].filter((one) => {
    return one.textContent && one.getAttribute("opacity") !== "0";
  });
  return texts.map((one) => {
    const {left, right, top, bottom} = one.getBoundingClientRect();
    return [one.textContent, left, right, top, bottom];
  });
});
"""


@in_browser
def test_labels_of_an_axis_stay_apart(page):
    axes = page.execute_script(TICKS)
    assert len(axes) > 20
    for labels in axes:
        for at, (text, left, right, top, bottom) in enumerate(labels):
            for other, left_2, right_2, top_2, bottom_2 in labels[at + 1 :]:
                apart_x = max(left, left_2) - min(right, right_2)
                apart_y = max(top, top_2) - min(bottom, bottom_2)
                assert apart_x > 3 or apart_y > -3, (text, other)


@in_browser
def test_a_matrix_of_two_labels_is_no_thumbnail(page):
    sizes = page.execute_script(
        'const cells = document.querySelectorAll(\'[aria-label^="confusion"] path[fill^="rgb("]\');'
        "const marks = [...new Set([...cells].map((one) => one.parentElement))];"
        "return marks.filter((one) => !one.closest('details')).map((one) => {"
        "  const box = one.getBoundingClientRect(); return [box.width, box.height];"
        "})"
    )
    matrices = [size for size in sizes if max(size) > 0]
    assert len(matrices) == len(MODELS)
    assert all(min(size) >= 115 for size in matrices), matrices


@pytest.mark.slow
def test_rows_that_are_not_scored_are_told_per_model_and_not_added_up():
    log = income_log(770)
    lost = {name: log[name].null_count() for name in MODELS}
    assert lost == {"forest_with_all_features": 110, "logistic": 70}
    forest, _ = MODELS
    assert said(log.mcc(pred=[*MODELS]))[-1] == (
        f"110 rows are not scored for model {forest}: {forest} is null; 70 rows are not scored for "
        "model logistic: logistic is null."
    )
    assert said(log.mcc(pred="logistic"))[-1] == "70 rows are not scored: logistic is null."


@pytest.mark.slow
def test_bins_of_times_are_a_section_over_time(monkeypatch):
    log = income_log(900).mcc(pred=[*MODELS])
    specs = specs_of(monkeypatch, log.report, bins("ts", "1w"))
    encodings = [
        layer["encoding"]
        for spec in specs
        for layer in spec.get("layer", ())
        if layer["mark"]["type"] == "line"
    ]
    assert {(one["x"]["title"], one["x"]["type"]) for one in encodings} == {("ts", "temporal")}
    scales = {one["y"]["title"]: one["color"]["scale"] for one in encodings}
    of_models = dict(zip(scales["mcc"]["domain"], scales["mcc"]["range"], strict=True))
    second = [*MODELS][1]
    assert scales["diff"]["domain"] == [second]
    assert scales["diff"]["range"] == [of_models[second]]
    assert len({*of_models.values()}) == len(MODELS)
    told = json.loads(log.report(bins("ts", "1w"), format="json"))
    [rows] = [section["rows"] for section in told["sections"] if section["id"] == "by:ts"]
    weeks = [row["ts"] for row in rows]
    assert weeks == sorted(weeks)
    assert len({*weeks}) == 9


@in_browser
def test_more_models_than_colours_are_drawn_in_facets(browser, tmp_path):
    log = income_log(900)
    models = [f"model {at}" for at in range(9)]
    log = log.with_columns(pl.col("logistic").alias(name) for name in models)
    path = tmp_path / "report.html"
    path.write_text(log.mcc(pred=models).report(bins("ts", "1w")), encoding="utf-8")
    browser.get(path.as_uri())
    assert browser.get_log("browser") == []
    section = browser.find_element(By.XPATH, '//section[h2[text()="By ts"]]')
    texts = [text.text for text in section.find_elements(By.CSS_SELECTOR, "svg text")]
    assert [text for text in texts if text.startswith("model")] == models
