"""The explorer computes the scores of `by` in the browser, and works with the keyboard."""

from __future__ import annotations

import random
import time
from importlib.resources import files

import polars as pl
import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select
from support import in_browser

from polars_mcc import plot
from polars_mcc._display.explorer_scores import LABEL_METRICS, POSITIVE_METRICS

KEYS = ["ink_band", "fold", "day"]
MODELS = ["logistic", "knn", "bayes"]
SHOWN = """
const done = arguments[0];
views.then(async (all) => {
  const view = all.at(-1);
  await view.runAsync();
  const names = Object.keys(view.getState({data: () => true, signals: () => false}).data);
  const rows = names.map((name) => view.data(name)).find((rows) => {
    return Array.isArray(rows) && rows.length > 0 && "pairs" in rows[0] && "score" in rows[0];
  });
  const shown = ["line", "slice", "score", "s"];
  const picked = (row) => Object.fromEntries(shown.map((name) => [name, row[name]]));
  done((rows ?? []).map(picked).sort((one, other) => one.line - other.line));
});
"""


def digits() -> pl.DataFrame:
    return pl.read_parquet("data/digits.parquet").with_columns(pl.col("day").cast(pl.String))


def opened(browser, folder, log):
    """The report of a log, in the browser."""
    path = folder / "report.html"
    path.write_text(log.report(*KEYS), encoding="utf-8")
    browser.get(path.as_uri())
    return path


@pytest.fixture(scope="module")
def report(libraries, tmp_path_factory):  # noqa: ARG001 - a browser draws
    path = tmp_path_factory.mktemp("explore") / "report.html"
    path.write_text(digits().mcc(pred=MODELS).report(*KEYS), encoding="utf-8")
    return path


@pytest.fixture
def page(browser, report):
    """The report, freshly opened."""
    browser.get(report.as_uri())
    return browser


def ask(page, /, **signals) -> None:
    """Set the signals that the controls set, as a reader does."""
    set_ = ".".join(f"signal({name!r}, {value!r})" for name, value in signals.items())
    set_ = set_.replace("True", "true").replace("False", "false")
    page.execute_async_script(
        f"const done = arguments[0]; views.then((all) => all.at(-1).{set_}.runAsync())"
        ".then(() => done())"
    )


@in_browser
def test_scores_are_those_of_by_for_twenty_cuts(page):
    rng = random.Random(3)
    log = digits()
    cuts = 0
    for cut in range(20):
        keys = [key for key in KEYS if rng.random() < 0.5]
        metric = LABEL_METRICS[cut % len(LABEL_METRICS)]
        model = rng.randrange(len(MODELS))
        chosen, asked = log, {}
        for place, key in enumerate(KEYS):
            values = log[key].unique().sort()
            code = rng.randrange(len(values)) if rng.random() < 0.3 else -1
            asked |= {f"by_{place}": key in keys, f"only_{place}": code}
            chosen = chosen if code < 0 else chosen.filter(pl.col(key) == values[code])
        ask(page, **asked, metric=metric, model=model, page=1, least=1)
        shown = page.execute_async_script(SHOWN)
        answer = chosen.mcc(pred=MODELS[model]).by(*keys, metrics=metric).sort(metric)
        found = sorted((row["score"], row["s"]) for row in shown)
        expected = answer.filter(pl.col("n") > 0).select(metric, "n").rows()
        assert len(found) == min(25, len(expected))
        assert [score for score, _ in found] == pytest.approx(
            [score for score, _ in expected[:25]], rel=1e-12, abs=1e-12
        )
        names = {
            ", ".join("null" if value is None else str(value) for value in row[:-2])
            for row in answer.select(*keys, metric, "n").rows()
        }
        assert {row["slice"] for row in shown} <= (names if keys else {"all rows"})
        cuts += len(shown) > 1
    assert cuts > 5, "cuts of one slice alone show little"


@in_browser
@pytest.mark.parametrize("metric", POSITIVE_METRICS)
def test_metrics_of_the_positive_label(browser, tmp_path, metric):
    log = digits().mcc(pred="logistic", positive=8)
    path = tmp_path / "report.html"
    path.write_text(log.report(*KEYS, metric=metric, min_n=1), encoding="utf-8")
    browser.get(path.as_uri())
    ask(browser, by_0=True, by_1=True)
    answer = log.by("ink_band", "fold", metrics=metric).drop_nulls(metric)
    expected = {f"{row[0]}, {row[1]}": (row[-2], row[2]) for row in answer.iter_rows()}
    shown = browser.execute_async_script(SHOWN)
    assert {row["slice"] for row in shown} == {*expected}
    for row in shown:
        assert (row["score"], row["s"]) == pytest.approx(expected[row["slice"]], rel=1e-12)


@in_browser
def test_slices_of_few_rows_are_left_out_and_pages_go_on(page):
    ask(page, by_0=True, by_1=True, by_2=True, metric="mcc", model=0, least=1, page=1)
    first = page.execute_async_script(SHOWN)
    ask(page, page=2)
    second = page.execute_async_script(SHOWN)
    assert [row["line"] for row in first] == [row["line"] for row in second] == [*range(1, 26)]
    assert first[-1]["score"] <= second[0]["score"]
    ask(page, page=1, least=6)
    assert min(row["s"] for row in page.execute_async_script(SHOWN)) >= 6


@in_browser
def test_keyboard_and_labels_reach_every_control(page):
    ask(page, by_0=True, by_1=False, by_2=False, least=1, page=1, metric="mcc", model=0)
    form = page.find_element(By.ID, "controls")
    named = {}
    for label in form.find_elements(By.TAG_NAME, "label"):
        [control] = label.find_elements(By.CSS_SELECTOR, "input, select")
        named[label.text.split("\\n")[0].strip()] = control
    inputs = [*form.find_elements(By.CSS_SELECTOR, "input, select")]
    assert len(inputs) == len(named) == 2 * len(KEYS) + 5
    box = next(control for name, control in named.items() if name.startswith("slice by fold"))
    box.send_keys(Keys.SPACE)
    assert "," in page.execute_async_script(SHOWN)[0]["slice"]
    box.send_keys(Keys.SPACE)
    model = next(control for name, control in named.items() if name.startswith("model"))
    Select(model).select_by_visible_text("bayes")
    expected = digits().mcc(pred="bayes").by("ink_band")["mcc"].min()
    assert page.execute_async_script(SHOWN)[0]["score"] == pytest.approx(expected, rel=1e-12)
    line = next(control for name, control in named.items() if name.startswith("slice shown"))
    before = page.find_element(By.CSS_SELECTOR, ".explorer svg").text
    line.send_keys(Keys.ARROW_RIGHT)
    time.sleep(0.3)
    assert page.find_element(By.CSS_SELECTOR, ".explorer svg").text != before


@in_browser
def test_a_checker_of_accessibility_finds_nothing_serious(page):
    axe = files("axe_core_python").joinpath("axe.min.js").read_text("utf-8")
    page.execute_script(axe)
    found = page.execute_async_script(
        "const done = arguments[0]; axe.run().then((found) => done(found.violations))"
    )
    serious = [
        (one["id"], [node["html"][:200] for node in one["nodes"]])
        for one in found
        if one["impact"] in {"serious", "critical"}
    ]
    assert serious == []


def test_intervals_are_left_to_the_report():
    page = digits().mcc.report("ink_band")
    assert "This chart has no intervals: the tables above have them." in page
    chart = str(plot.explore(digits().mcc.counts("ink_band")).to_dict())
    assert "variance" not in chart
    assert "high" not in chart


def test_what_cannot_be_explored_is_said():
    counts = digits().mcc.counts("ink_band")
    with pytest.raises(ValueError, match="metric must be one of 'mcc'"):
        plot.explore(counts, metric="tpr")
    assert plot.explore(counts, metric="recall", positive=8)
    with pytest.raises(ValueError, match="needs a column 'pred'"):
        plot.explore(counts.drop("pred"))
    with pytest.raises(ValueError, match="no row with two labels"):
        plot.explore(counts.with_columns(gold=pl.lit(None, counts.schema["gold"])))
    with pytest.raises(TypeError, match="collect"):
        plot.explore(counts.lazy())


@pytest.mark.slow
def test_keys_of_many_values_are_left_out_and_named():
    counts = digits().mcc.counts("ink_band", "day")
    chart = plot.explore(counts, rows=300).to_dict()
    assert chart["title"]["text"] == "left out, as they have too many values: day"
    names = {param["name"] for param in chart["params"]}
    assert {"by_0", "only_0"} <= names
    assert "by_1" not in names
    [columns] = chart["datasets"][chart["data"]["name"]]
    by_ink = digits().mcc.counts("ink_band")
    assert sum(columns["n"]) == by_ink["n"].sum() == 1797
    everything = plot.explore(counts).to_dict()
    assert everything["title"]["text"] == ""


@in_browser
def test_a_null_label_is_a_class_if_asked(browser, tmp_path):
    log = digits().with_columns(
        pred=pl.when(pl.int_range(pl.len()) % 9 > 0).then("logistic"), day=pl.lit("x")
    )
    for nulls in ("drop", "label"):
        opened(browser, tmp_path, log.mcc(nulls=nulls))
        shown = browser.execute_async_script(SHOWN)
        answer = log.mcc(nulls=nulls).by("ink_band").sort("mcc")
        assert [row["score"] for row in shown] == pytest.approx(answer["mcc"].to_list(), rel=1e-12)


@in_browser
def test_fifty_thousand_counts_answer_within_seconds(browser, tmp_path):
    """A click takes less than 1 s on a quiet machine. The bound here allows for a busy one."""
    rows = pl.int_range(150_000)
    log = pl.select(
        ink_band=(rows * 7 % 97).cast(pl.String),
        fold=rows * 13 % 17,
        day=rows.hash() % 2,
        gold=rows % 7,
        pred=pl.when(rows % 11 < 9).then(rows % 7).otherwise(rows // 3 % 7),
    )
    path = opened(browser, tmp_path, log.mcc)
    assert path.stat().st_size < 5_000_000
    [columns] = browser.execute_script(
        "const specs = JSON.parse(document.getElementById('specs').textContent);"
        "const spec = specs[document.querySelector('[data-controls]').dataset.spec];"
        "return spec.data.values ?? spec.datasets[spec.data.name]"
    )
    assert 25_000 < len(columns["n"]) < 110_000
    took = []
    for signals in ({"by_1": True}, {"only_2": 1}, {"metric": "kappa"}):
        start = time.perf_counter()
        ask(browser, **signals)
        took.append(time.perf_counter() - start)
    assert max(took) < 10


OUTSIDE = """
const svg = document.querySelector('.explorer svg.marks');
const room = svg.getBoundingClientRect();
return [...svg.querySelectorAll('text')].filter((text) => text.textContent).filter((text) => {
  const box = text.getBoundingClientRect();
  return box.left < room.left - 1 || box.right > room.right + 1
    || box.top < room.top - 1 || box.bottom > room.bottom + 1;
}).map((text) => text.textContent);
"""


@in_browser
def test_the_chart_has_room_for_what_it_shows(page):
    ask(page, least=1)
    boxes = page.find_elements(By.CSS_SELECTOR, "#controls input[type=checkbox]")
    assert len(boxes) == len(KEYS)
    for box in boxes:
        box.click()
        time.sleep(0.5)
        assert page.execute_script(OUTSIDE) == []
        matrix = page.find_elements(By.CSS_SELECTOR, ".explorer svg .mark-rect path")
        assert len(matrix) > 5, "the matrix is drawn, also of the only slice"
    assert page.get_log("browser") == []


POINTS = """
const done = arguments[0];
views.then((all) => {
  const marks = [...document.querySelectorAll(".explorer svg .mark-symbol.role-mark path")];
  const shown = marks.map((mark) => [
    mark.getAttribute("aria-label").match(/slice: (.*?);/)[1],
    mark.getAttribute("d").match(/[MA]/g).join(""),
    mark.getBoundingClientRect().width,
  ]);
  done(Object.fromEntries(shown.map(([slice, ...shape]) => [slice, shape])));
});
"""


@in_browser
def test_one_predicted_and_one_gold_label_are_marked_apart(browser, tmp_path):
    i = pl.int_range(120)
    gold = pl.when(i % 3 == 1).then(0).otherwise(i // 3 % 2)
    pred = pl.when(i % 3 == 0).then(0).otherwise((i // 3 % 2) * (i % 7 > 0).cast(int))
    names = pl.Series(["collapsed", "one gold", "scored"])
    log = pl.select(gold=gold, pred=pred, key=pl.lit(names).gather(i % 3))
    path = tmp_path / "report.html"
    path.write_text(log.mcc.report("key"), encoding="utf-8")
    browser.get(path.as_uri())
    points = browser.execute_async_script(POINTS)
    assert {*points} == {*names}
    shapes = [shape for shape, _ in points.values()]
    assert len({*shapes}) == 3
    assert points["collapsed"][0] == "M", "a cross has no arcs"
    assert points["one gold"][0].count("M") == 2, "a ring has two"
    assert all(width > 5 for _, width in points.values())
    ask(browser, metric="accuracy")
    shapes = [shape for shape, _ in browser.execute_async_script(POINTS).values()]
    assert len({*shapes}) == 1, "an accuracy is never 0/0"


@in_browser
def test_pages_beyond_the_last_and_lines_beyond_the_last_show_the_last(page):
    ask(page, by_0=True, by_1=True, least=1, metric="mcc", model=0, page="9")
    assert [row["line"] for row in page.execute_async_script(SHOWN)] == [*range(1, 16)]
    line = page.find_elements(By.CSS_SELECTOR, "#controls input[type=range]")[-1]
    line.send_keys(Keys.END)
    ask(page, by_1=False)
    time.sleep(0.5)
    shown = page.execute_async_script(SHOWN)
    assert len(shown) == 3
    title = [text.text for text in page.find_elements(By.CSS_SELECTOR, ".explorer svg text")]
    assert title.count(shown[-1]["slice"]) == 2, "in the list, and above its matrix"


@in_browser
def test_many_labels_are_told_by_their_misses(browser, tmp_path):
    rows = pl.int_range(4_000)
    log = pl.select(
        ink_band=pl.lit("all"),
        fold=rows % 3,
        day=pl.lit("x"),
        gold=rows % 40,
        pred=pl.when(rows % 9 > 0).then(rows % 40).otherwise((rows % 40) // 2),
    )
    opened(browser, tmp_path, log.mcc)
    browser.execute_async_script("const done = arguments[0]; views.then(() => done())")
    misses = log.filter(pl.col("gold") != pl.col("pred")).group_by("gold", "pred").len()
    texts = [text.text for text in browser.find_elements(By.CSS_SELECTOR, ".explorer svg text")]
    told = [text for text in texts if " taken for " in text]
    assert len(told) == min(25, misses.height) == 25
    assert browser.get_log("browser") == []


def test_a_report_is_made_also_where_its_page_has_little_to_explore():
    false = pl.DataFrame({"a": ["x", "y"] * 40, "gold": False, "pred": False})
    page = false.mcc.report("a", metric="recall")
    assert "This chart cannot compute the metric recall." in page
    labels = pl.select(gold=pl.int_range(200), pred=pl.int_range(200) * 7 % 200)
    assert "there are too many labels" in labels.mcc.report(explored=300)
    with pytest.raises(ValueError, match="the labels alone make more than rows=300 counts"):
        plot.explore(labels.mcc.counts(), rows=300)
