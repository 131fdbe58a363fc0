"""Results as tables: the text of cells, and the pictures."""

from __future__ import annotations

import re
import subprocess
import sys

import polars as pl
import pytest
from support import log_of

import polars_mcc

ROWS = [("x", i % 3, (i * i) % 4) for i in range(60)] + [("y", i % 2, i % 2) for i in range(20)]
LOG = log_of([*ROWS, ("empty", None, 0)]).with_columns(year=2026, other=pl.col("gold").reverse())


def cells_of(shown) -> list[list[str]]:
    rows = re.findall(r"<tr>(.*?)</tr>", shown.as_raw_html(), flags=re.DOTALL)
    cells = [re.findall(r"<td[^>]*>(.*?)</td>", row, flags=re.DOTALL) for row in rows]
    return [row for row in cells if row]


def test_numbers_are_rounded_and_counts_grouped():
    answer = LOG.mcc.by("key", "year", ci=0.9).with_columns(n=pl.col("n") * 1000)
    empty, x, y = cells_of(polars_mcc.table(answer))
    assert len(x) == answer.width + 1, "a column with pictures"
    assert x[:4] == ["x", "2026", "60,000", f"{answer['mcc'][1]:.3f}".replace("-", "−")]
    assert empty[2:4] == ["0", "–"]
    assert y[7] == "–", "there is no standard error of a score of 1"
    two = cells_of(polars_mcc.table(answer, decimals=2))
    assert two[2][3] == "1.00"


def test_scores_and_intervals_are_drawn_on_one_scale():
    answer = LOG.mcc.by("key", ci=0.9).drop_nulls("mcc")
    pictures = [row[3] for row in cells_of(polars_mcc.table(answer))]
    points = [float(re.search(r'cx="([\d.]+)"', picture)[1]) for picture in pictures]
    bars = [
        tuple(map(float, re.search(r'x1="([\d.]+)" x2="([\d.]+)" y1="8', picture).groups()))
        for picture in pictures
    ]
    least, most = answer["mcc_low"].min(), answer["mcc_high"].max()
    for row, point, (low, high) in zip(answer.iter_rows(named=True), points, bars, strict=True):
        for value, place in ((row["mcc"], point), (row["mcc_low"], low), (row["mcc_high"], high)):
            assert place == pytest.approx(4 + (value - least) / (most - least) * 152, abs=0.01)


def test_other_answers_and_other_scores():
    compared = polars_mcc.table(
        LOG.mcc(pred="other").compare("key", baseline="pred"), title="A and B"
    )
    assert "A and B" in compared.as_raw_html()
    early, late = pl.col("gold") == "ant", pl.col("gold") != "ant"
    drifted = LOG.mcc.drift("year", before=early, after=late).with_columns(pl.col("n_after") * 1000)
    assert cells_of(polars_mcc.table(drifted))[0][:4] == ["2026", "mcc", "30", "50,000"]
    kappa = LOG.mcc.by("key", metrics=["kappa", "accuracy"])
    assert "<svg" not in polars_mcc.table(kappa).as_raw_html()
    assert polars_mcc.table(kappa, score="kappa").as_raw_html().count("<svg") == 3
    matrix = cells_of(polars_mcc.table(LOG.mcc.confusion()))
    assert [row[0] for row in matrix] == LOG.mcc.confusion()["gold"].to_list()
    assert cells_of(polars_mcc.table(LOG.clear().mcc.by("key"))) == []


def test_labels_are_text():
    log = LOG.with_columns(key=pl.col("key") + "<script>alert(1)</script>")
    page = polars_mcc.table(log.mcc.by("key")).as_raw_html()
    assert "<script" not in page
    assert "x&lt;script&gt;" in page


@pytest.mark.slow
def test_errors():
    with pytest.raises(TypeError, match="got LazyFrame: .*collect"):
        polars_mcc.table(LOG.lazy().mcc.by("key"))
    with pytest.raises(ValueError, match="score='f1' is not a column of the result"):
        polars_mcc.table(LOG.mcc.by("key"), score="f1")
    code = "import sys; sys.modules['great_tables'] = None; import polars as pl, polars_mcc; "
    done = subprocess.run(
        [sys.executable, "-c", code + "polars_mcc.table(pl.DataFrame())"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "pip install 'polars-mcc[tables]'" in done.stderr
