"""Pairs of two models on the same rows → the difference of their scores: b minus a."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl

from polars_mcc._counts.counted import added_up
from polars_mcc._counts.sliced import SlicedLog
from polars_mcc._inference.arrays import NUMBER, Draws, beside_pairs, numbered
from polars_mcc._inference.differences import Side, difference, with_adjusted
from polars_mcc._inference.estimate import estimate
from polars_mcc._inference.influence import NOTHING
from polars_mcc._inference.options import IntervalOptions
from polars_mcc._inference.pool import Pool
from polars_mcc._inference.quantiles import normal_critical
from polars_mcc._log.choices import Correction
from polars_mcc._scores.segments import Floats

_MODELS = ("baseline", "pred")
_IS_B = "of:pred"  # no metric has this name


def of_models(
    log: SlicedLog, cells: pl.DataFrame, asked: IntervalOptions, correction: Correction
) -> pl.DataFrame:
    """Both scores of each slice, and their difference: b minus a."""
    [metric] = asked.metrics
    if log.nulls == "drop":  # A row without a label of one model is scored for neither.
        is_scored = pl.all_horizontal(pl.col("gold", "baseline", "pred").is_not_null())
        cells = cells.with_columns(gold=pl.when(is_scored).then("gold"))
    cluster = {"cluster": pl.col("cluster")} if log.has_clusters else {}
    counted = [
        added_up(log, cells.lazy(), gold=pl.col("gold"), pred=pl.col(pred), **cluster)
        for pred in _MODELS
    ]
    both = pl.concat(
        one.with_columns(pl.lit(pred == "pred").alias(_IS_B))
        for one, pred in zip(counted, _MODELS, strict=True)
    ).collect()
    asked = replace(asked, pool=Pool.of(log, both))
    found = estimate(log.split_by(_IS_B), both, asked)
    of_pairs = found.influences(metric.name).with_row_index("pair").drop(NUMBER)
    sides, rows = [], cells
    for pred in _MODELS:
        is_model = pl.col(_IS_B) == (pred == "pred")
        scores = found.scores.filter(is_model).drop(_IS_B)
        sides.append(scores.sort(log.slice) if log.slice else scores)
        of_pair = (
            of_pairs.filter(is_model)
            .drop(_IS_B)
            .rename({name: f"{name}_{pred}" for name in ("phi", "pair")})
        )
        rows = beside_pairs(log, rows, of_pair, pred)
    if cells.is_empty():  # The total slice is there, also without rows.
        sides = [estimate(log, both.drop(_IS_B), asked).scores] * 2
    scores_a, scores_b = sides
    a, b = (Side.of(scores, metric.name) for scores in sides)
    rows = numbered(log, rows.lazy(), scores_b).collect()
    draws = Draws.of(log, rows, scores_b.height, order=["pair_baseline", "pair_pred"])
    phi = draws.cells["phi_pred"].to_numpy() - draws.cells["phi_baseline"].to_numpy()
    with np.errstate(all="ignore"):
        moved = draws.products(phi, phi) / draws.size / draws.size
        correlation = _correlation(a, b, moved, draws.effective, asked)
        se = np.where(moved * draws.effective > NOTHING, np.sqrt(moved), np.nan)
    df = None if draws.n_clusters is None else draws.n_clusters - 1
    change = difference(a, b, asked.ci, se=se, correlation=correlation, df=df)
    scores = scores_b.with_columns(
        pl.Series("score_a", scores_a[metric.name]), pl.col(metric.name).alias("score_b")
    )
    return with_adjusted(change.beside(scores), correction)


def _correlation(a: Side, b: Side, moved: Floats, draws: Floats, asked: IntervalOptions) -> Floats:
    """The correlation of both scores. Each row moves both, and these influences are correlated.

    For the "score" interval, the correlation is multiplied by n / (n + z²): two models that agree
    on 5 rows need not agree on the next.
    """
    z = normal_critical(asked.ci)
    shared = (a.se**2 + b.se**2 - moved) / (2 * a.se * b.se)
    known = draws / (draws + z**2) if asked.method == "score" else 1.0
    return np.nan_to_num(np.clip(shared, -1, 1) * known, nan=0.0)
