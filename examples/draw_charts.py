"""Draw one chart of each kind from the shipped data.

python examples/draw_charts.py FOLDER

Without FOLDER, the script builds the charts and saves none.
"""

import sys
from pathlib import Path

import altair as alt
import polars as pl

from polars_mcc import each, plot, trailing

DATA = Path(__file__).parent.parent / "data"
digits = pl.read_parquet(DATA / "digits.parquet")
tumours = pl.read_parquet(DATA / "breast_cancer.parquet")

slices = digits.mcc.by(each("confidence_band", "ink_band", total=True), ci=0.95)
compared = digits.mcc(pred=["logistic", "knn", "bayes"]).compare("ink_band")
windows = digits.mcc.by("ink_band", trailing("day", "14d", every="7d"), ci=0.95)
timed = digits.mcc(pred="bayes", time="day")
changed = timed.changes("ink_band", alternative="two-sided").head(1)
days = timed.contrast("day", within="ink_band", to="expected")
charts: dict[str, alt.LayerChart | alt.FacetChart] = {
    "slices": plot.slices(slices),
    "models": plot.slices(digits.mcc(pred=["logistic", "knn", "bayes"]).by("ink_band", ci=0.95)),
    "differences": plot.differences(compared),
    "over_time": plot.over_time(windows),
    "changes": plot.changes(changed, days),
    "funnel": plot.funnel(digits.mcc.by(each("day", total=True), ci=0.95)),
    "curve": plot.curve(tumours.mcc(score="radius").curve(thresholds=100)),
    "confusion": plot.confusion(digits.mcc.confusion()),
}
for name, chart in charts.items():
    print(f"{name}: {len(chart.to_dict()['layer'])} layers")
    if len(sys.argv) > 1:
        folder = Path(sys.argv[1])
        folder.mkdir(exist_ok=True)
        chart.save(folder / f"{name}.svg")
print(slices)
