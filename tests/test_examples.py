"""The examples run, and the shipped data are what the script makes."""

from __future__ import annotations

import copy
import hashlib
import json
import re
import runpy
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import nbformat
import polars as pl
import pytest
from nbclient import NotebookClient
from polars.testing import assert_frame_equal
from sklearn.metrics import matthews_corrcoef
from support import in_turn, some_slow

import polars_mcc

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"


def run(name: str, *arguments: str, monkeypatch) -> None:
    monkeypatch.setattr(sys, "argv", [name, *arguments])
    monkeypatch.syspath_prepend(EXAMPLES)
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")


RUN_BELOW = {
    *("find_bad_slices.py", "from_a_warehouse.py", "from_hugging_face.py", "from_scikit_learn.py"),
    *("make_data.py", "make_logs.py", "merge_counts.py"),
}


@pytest.mark.parametrize(
    "name",
    some_slow(
        sorted(file.name for file in EXAMPLES.glob("*.py") if file.name not in RUN_BELOW),
        "draw_charts.py",
    ),
)
def test_an_example_runs_and_shows_scores(name, monkeypatch, capsys):
    run(name, monkeypatch=monkeypatch)
    assert "mcc" in capsys.readouterr().out


@pytest.mark.slow
def test_charts_are_drawn_where_asked(monkeypatch, tmp_path):
    run("draw_charts.py", str(tmp_path / "charts"), monkeypatch=monkeypatch)
    drawn = {path.name: path.read_text("utf-8") for path in (tmp_path / "charts").iterdir()}
    assert len(drawn) == 8
    shown = (EXAMPLES / "slices.svg").read_text("utf-8")
    texts = re.compile(r"<text[^>]*>([^<]+)</text>")
    assert texts.findall(shown) == texts.findall(drawn["slices.svg"]), "the README's picture"


class Page(HTMLParser):
    """What a page of the site has: ids, links, and what a browser loads for it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids, self.links, self.loaded = {""}, [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.ids.add(found.get("id"))
        if tag in {"script", "link", "img", "iframe"}:
            self.loaded.append(found.get("src") or found.get("href") or "")
        elif "href" in found:
            self.links.append(found["href"])


@pytest.mark.slow
def test_the_documentation_is_built(tmp_path):
    """Every public name has an entry, every guide a place, and every link leads somewhere.

    What does not is an error: two dead links of a copy, and a page without a place; no others.
    """
    for path in ROOT.iterdir():
        if path != EXAMPLES:
            (tmp_path / path.name).symlink_to(path)
    examples, sites = tmp_path / "examples", tmp_path / "site"
    site = sites / polars_mcc.__version__
    shutil.copytree(EXAMPLES, examples)
    with (examples / "glossary.md").open("a", encoding="utf-8") as page:
        page.write("\n[A page](nowhere.md), [a heading](metrics.md#no-heading).\n")
    (examples / "guide/lost.md").write_text("# In no navigation\n", "utf-8")
    command = [sys.executable, str(examples / "build_docs.py"), str(sites)]
    built = subprocess.run(command, check=False, capture_output=True, text=True)
    assert built.returncode == 1
    assert re.search(r"glossary.md:\d+: .*nowhere.md", built.stderr)
    assert re.search(r"glossary.md:\d+: .*no-heading", built.stderr)
    assert re.search(r"lost.md: .*isn't included", built.stderr)
    assert len(re.findall("WARNING|ERROR", built.stderr)) == 3, built.stderr
    texts = {path: path.read_text("utf-8") for path in site.rglob("*.html")}
    pages = {path: Page(text) for path, text in texts.items()}

    verbs = [name for name in vars(polars_mcc.PredictionLog) if not name.startswith("_")]
    names = [*polars_mcc.__all__]
    names += [f"PredictionLog.{name}" for name in verbs]
    names += [f"plot.{name}" for name in polars_mcc.plot.__all__]
    names += [f"metric.{name}" for name in polars_mcc.metric.__all__]
    ids = {name for page in pages.values() for name in page.ids}
    assert {f"polars_mcc.{name}" for name in names} - ids == set()

    assert [path for path, text in texts.items() if "–by" in text] == [], "a dash for two"
    typed = [path for path, text in texts.items() if "Return type" in text]
    assert typed == [], "a colon in the first line of Returns: napoleon takes a type"
    tree = texts[site / "index.html"].split('class="sidebar-tree"')[1].split("</aside>")[0]
    guides = {f"examples/guide/{path.stem}" for path in EXAMPLES.glob("guide/*.md")}
    assert {f"{guide}.html" for guide in guides} - set(Page(tree).links) == set()

    inside = [
        (path, link)
        for path, page in pages.items()
        for link in [*page.links, *page.loaded]
        if not re.match(r"\w+:", link) and not re.search("nowhere|no-heading", link)
    ]
    assert len(inside) > 1000
    for path, link in inside:
        to = urlsplit(unquote(link))
        target = (path.parent / to.path).resolve() if to.path else path
        assert target.exists(), (path, link)
        assert to.fragment in pages[target].ids if to.fragment else True, (path, link)

    loaded = [link for page in pages.values() for link in page.loaded]
    styles = "".join(path.read_text("utf-8") for path in site.rglob("*.css"))
    loaded += re.findall(r"""(?:url\(|@import)\s*["']?([^"')]+)""", styles)
    assert [link for link in loaded if re.match(r"(?:https?:)?//", link)] == []

    index = (site / "searchindex.js").read_text("utf-8")
    index = json.loads(index.removeprefix("Search.setIndex(").removesuffix(")"))
    found = {
        index["docnames"][page]
        for at in index["terms"].values()
        for page in ([at] if isinstance(at, int) else at)
    }
    assert {*guides, "index", "reference/functions", *(f"reference/{v}" for v in verbs)} <= found


def test_the_site_leads_to_the_newest_version_that_is_no_candidate(tmp_path):
    lead = runpy.run_path(str(EXAMPLES / "build_docs.py"))["lead_to_newest"]
    shown = []
    for version in ("1.0.0rc1", "1.9.0", "1.10.0", "2.0.0rc1", "1.8.1"):
        (tmp_path / version).mkdir()
        (tmp_path / version / "objects.inv").touch()
        (tmp_path / version / "index.html").write_text(version, "utf-8")
        lead(tmp_path)
        [link] = Page((tmp_path / "index.html").read_text("utf-8")).links
        shown.append((tmp_path / link).read_text("utf-8"))
    assert shown == ["1.0.0rc1", "1.9.0", "1.10.0", "1.10.0", "1.10.0"]


@pytest.mark.filterwarnings("ignore")  # those of Jupyter
@pytest.mark.slow
def test_the_notebook_runs_and_shows_what_it_showed(monkeypatch):
    monkeypatch.setenv("POLARS_WARN_UNSTABLE", "0")  # a user's kernel, not conftest's
    stored = nbformat.read(EXAMPLES / "tour.ipynb", as_version=4)
    executed = copy.deepcopy(stored)
    resources = {"metadata": {"path": str(EXAMPLES)}}
    NotebookClient(executed, resources=resources, timeout=120).execute()

    def frames(notebook: nbformat.NotebookNode) -> list[str]:
        code = [cell for cell in notebook.cells if cell.cell_type == "code"]
        shown = [cell.outputs[0].data["text/plain"] for cell in code]
        return [text for text in shown if text.startswith("shape:")]

    assert len(frames(executed)) == 4
    assert frames(executed) == frames(stored)


def test_stored_and_new_counts_give_the_scores_of_the_rows(monkeypatch, capsys):
    run("merge_counts.py", monkeypatch=monkeypatch)
    tables = capsys.readouterr().out.split("shape:")[1:]
    assert len(tables) == 2
    assert tables[0] == tables[1]


@pytest.mark.slow
def test_what_is_planted_is_found(monkeypatch, capsys):
    with pl.Config(tbl_width_chars=200):
        run("find_bad_slices.py", monkeypatch=monkeypatch)
    _, ranked, digits, looked = capsys.readouterr().out.split("shape:")[1:]
    listed = re.findall(r"│ (\w+ = [^┆]*?) +┆", ranked)
    assert listed == ["version = 1.9", "country = BR and device = tablet"]
    assert "│ ink ≤ 4.73 and day before 2026-03-16 ┆" in digits
    assert looked.count("not behind") == 3


@pytest.mark.slow
def test_scores_are_those_of_scikit_learn_and_planted_slices_fail(monkeypatch, capsys):
    run("from_scikit_learn.py", monkeypatch=monkeypatch)
    first, table, *_ = capsys.readouterr().out.split("shape:")
    assert f"{float(first.split()[5]):.6f}".rstrip("0") in table, "our score is scikit-learn's"
    run("from_hugging_face.py", monkeypatch=monkeypatch)
    _, _, failing, _ = capsys.readouterr().out.split("shape:")
    listed = re.findall(r"│ (\w+ [=≤] [^┆]*?) +┆", failing)
    assert listed == ["language = de", "words ≤ 7"]
    run("from_a_warehouse.py", monkeypatch=monkeypatch)
    _, closed = capsys.readouterr().out.split("Do not release v2:")
    assert "│ BR      ┆ v2    ┆" in closed


@pytest.mark.slow
def test_the_data_are_what_the_script_makes(tmp_path, monkeypatch, capsys):
    run("make_data.py", "--out", str(tmp_path), monkeypatch=monkeypatch)
    assert "1797 rows" in capsys.readouterr().out
    for name in ("digits.parquet", "breast_cancer.parquet"):
        shipped = ROOT / "data" / name
        assert_frame_equal(pl.read_parquet(tmp_path / name), pl.read_parquet(shipped))
        digest = hashlib.sha256(shipped.read_bytes()).hexdigest()
        assert f"{digest}  {name}" in (ROOT / "data/README.md").read_text("utf-8")


@in_turn(model=["pred", "logistic", "knn", "bayes"], name=["digits", "breast_cancer"])
def test_the_data_score_as_scikit_learn_says(name, model):
    log = pl.read_parquet(ROOT / f"data/{name}.parquet")
    for (fold,), rows in log.group_by("fold"):
        found = log.mcc(pred=model).by("fold").filter(pl.col("fold") == fold)
        truth = matthews_corrcoef(rows["gold"].to_numpy(), rows[model].to_numpy())
        assert found["mcc"].item() == pytest.approx(truth, rel=1e-12)


@pytest.mark.parametrize("labels", ["string", "enum", "integer", "boolean"])
def test_generated_logs(labels, tmp_path, monkeypatch, capsys):
    arguments = ("--rows", "40_000", "--days", "2", "--labels", labels)
    run("make_logs.py", *arguments, "--out", str(tmp_path / "a"), monkeypatch=monkeypatch)
    assert "40000 rows in" in capsys.readouterr().out
    log = pl.scan_parquet(tmp_path / "a")
    dtype = {"string": pl.String, "enum": pl.Enum, "integer": pl.Int16, "boolean": pl.Boolean}
    assert log.collect_schema()["gold"] == dtype[labels]
    assert log.collect_schema()["day"] == pl.Date

    is_bad = (pl.col("country") == "BR") & (pl.col("device") == "tablet")
    good, bad = log.mcc.by(is_bad.alias("is_bad")).collect()["mcc"]
    assert bad < 0.65 < good

    run("make_logs.py", *arguments, "--out", str(tmp_path / "b"), monkeypatch=monkeypatch)
    assert_frame_equal(pl.read_parquet(tmp_path / "b"), log.collect())
    with pytest.raises(SystemExit):
        run("make_logs.py", *arguments, "--out", str(tmp_path / "b"), monkeypatch=monkeypatch)
    assert "is not an empty folder; name a new one" in capsys.readouterr().err
