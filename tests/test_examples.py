"""The examples run, and the shipped data are what the script makes."""

from __future__ import annotations

import copy
import hashlib
import re
import runpy
import subprocess
import sys
from pathlib import Path

import nbformat
import polars as pl
import pytest
from nbclient import NotebookClient
from polars.testing import assert_frame_equal
from sklearn.metrics import matthews_corrcoef

import polars_mcc

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"


def run(name: str, *arguments: str, monkeypatch) -> None:
    monkeypatch.setattr(sys, "argv", [name, *arguments])
    monkeypatch.syspath_prepend(EXAMPLES)
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")


@pytest.mark.parametrize(
    "name", sorted(f.name for f in EXAMPLES.glob("*.py") if "make" not in f.name)
)
def test_an_example_runs_and_shows_scores(name, monkeypatch, capsys):
    run(name, monkeypatch=monkeypatch)
    assert "mcc" in capsys.readouterr().out


def test_charts_are_drawn_where_asked(monkeypatch, tmp_path):
    run("draw_charts.py", str(tmp_path / "charts"), monkeypatch=monkeypatch)
    drawn = {path.name: path.read_text() for path in (tmp_path / "charts").iterdir()}
    assert len(drawn) == 7
    shown = (EXAMPLES / "slices.svg").read_text()
    texts = re.compile(r"<text[^>]*>([^<]+)</text>")
    assert texts.findall(shown) == texts.findall(drawn["slices.svg"]), "the README's picture"


def test_the_documentation_is_built(tmp_path):
    """Every verb has an entry, and every link and picture is there."""
    # In a process of its own: pdoc changes the signatures of what it documents.
    command = [sys.executable, str(EXAMPLES / "build_docs.py"), str(tmp_path / "site")]
    subprocess.run(command, check=True)
    pages = {path: path.read_text("utf-8") for path in (tmp_path / "site").rglob("*.html")}
    verbs = re.findall(r'<section id="(\w+)">', pages[tmp_path / "site/polars_mcc.html"])
    assert set(polars_mcc.__all__) - {"plot"} <= set(verbs)
    links = [
        (path.parent / target).resolve()
        for path, page in pages.items()
        for target in re.findall(r'(?:href|src)="(?!https?:|#|data:|\$)([^"#]+)', page)
    ]
    assert len(links) > 20
    assert [link for link in links if not link.exists()] == []


@pytest.mark.filterwarnings("ignore")  # those of Jupyter
def test_the_notebook_runs_and_shows_what_it_showed():
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


def test_what_is_planted_is_found(monkeypatch, capsys):
    with pl.Config(tbl_width_chars=200):
        run("find_bad_slices.py", monkeypatch=monkeypatch)
    _, ranked, digits, looked = capsys.readouterr().out.split("shape:")[1:]
    assert "┆ BR, tablet ┆" in ranked
    assert "│ version         ┆ 1.9 " in ranked
    assert "(2, 7)" in ranked, "and no other slice"
    assert "│ ink, day ┆ up to 4.17, week of 2026-03-23 " in digits
    assert looked.count("not behind") == 3


def test_the_data_are_what_the_script_makes(tmp_path, monkeypatch, capsys):
    run("make_data.py", "--out", str(tmp_path), monkeypatch=monkeypatch)
    assert "1797 rows" in capsys.readouterr().out
    for name in ("digits.parquet", "breast_cancer.parquet"):
        shipped = ROOT / "data" / name
        assert_frame_equal(pl.read_parquet(tmp_path / name), pl.read_parquet(shipped))
        digest = hashlib.sha256(shipped.read_bytes()).hexdigest()
        assert f"{digest}  {name}" in (ROOT / "data/README.md").read_text()


@pytest.mark.parametrize("name", ["digits", "breast_cancer"])
@pytest.mark.parametrize("model", ["pred", "logistic", "knn", "bayes"])
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
