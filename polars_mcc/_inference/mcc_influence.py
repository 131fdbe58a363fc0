"""Pairs → influences: how far one row of a pair moves the score of its slice.

p_ij is the share of the pair (gold i, pred j) in a slice. T_i and P_j are the margins. With

    A = Σ p_kk - Σ T_k P_k,    B = 1 - Σ P_k²,    C = 1 - Σ T_k²,    R = A / √(BC),

the derivative of R by p_ij, minus its mean, is the influence φ_ij = X_ij - R·Y_ij, where

    X_ij = ([i = j] - P_i - T_j + Σ T_k P_k) / √(BC)       has the mean R, and
    Y_ij = (1 - P_j) / B + (1 - T_i) / C - 1               has the mean 1.

P_i is the share of rows that predict label i, the gold label of the pair. T_j is the share of rows
with gold label j, the prediction of the pair. So the variance of R in n rows is Σ p_ij φ_ij² / n
(the delta method). A table with the same margins and the score ρ has the mean of (X_ij - ρ·Y_ij)²
in place of the mean of φ².

|X| is at most 2 / √(BC), and |Y| at most 1/B + 1/C. Sums over pairs and classes are added up as
integers, in units of these bounds. So a sum does not depend on the order of the pairs, which come
from files, days or machines.
"""

from __future__ import annotations

import polars as pl

from polars_mcc._counts.classes import beside_class, is_scored
from polars_mcc._counts.exact import power_of_two, sum_in_any_order
from polars_mcc._counts.sliced import SlicedLog
from polars_mcc._inference.variance import of_rows, sum_of, total, variances, with_influence
from polars_mcc._scores.r_k import Summed, r_k, sums_over_classes


def margins(log: SlicedLog, classes: pl.LazyFrame, summed: Summed) -> pl.LazyFrame:
    """The terms of X and Y of each label, as gold label and as prediction: a row per class.

    X_ij = gold_x_i + pred_x_j - miss·[i ≠ j], and Y_ij = gold_y_i + pred_y_j. These terms, the
    shares `t` and `p`, and the `score` of the slice are Float64. Where R is 0/0, the score and the
    terms of X are null. `phi_unit` and `y_unit` are upper bounds of |φ| and |Y|.
    """
    gold_n, pred_n = pl.col("gold_n"), pl.col("pred_n")
    sums = summed.sums
    squared = log.numbers.product(sums.s, sums.s)

    def share_of_square(part: pl.Expr) -> pl.Expr:
        return part / squared.to_float()

    def share(units: pl.Expr) -> pl.Expr:
        return units.cast(pl.Float64) / pl.col("s").cast(pl.Float64)

    # 1 - T and 1 - P from differences of integers: exact even if one class has nearly all rows.
    not_gold, not_pred = share(pl.col("s") - gold_n), share(pl.col("s") - pred_n)
    b, c, score, miss = (pl.col(name) for name in ("b", "c", "score", "miss"))
    most_y = 1 / b + 1 / c

    def with_terms(slices: pl.LazyFrame) -> pl.LazyFrame:
        return (
            slices.with_columns(
                score=r_k(sums, log.numbers, None),
                b=share_of_square((squared - sums.pp).to_float()),
                c=share_of_square((squared - sums.tt).to_float()),
                apart=share_of_square((squared - sums.tp).to_float()),  # 1 - Σ T_k P_k
            )
            .with_columns(miss=pl.when(score.is_not_null()).then(1 / (b * c).sqrt()))
            .with_columns(
                phi_unit=power_of_two(2 * miss + score.abs() * most_y),
                y_unit=power_of_two(pl.when(score.is_not_null()).then(most_y)),
            )
        )

    scored = classes.filter(gold_n + pred_n > 0)
    if log.slice:  # A join would put the classes into the plan twice; windows do not.
        columns = sums_over_classes(log).columns()
        windows = {name: log.within_slice(sum_) for name, sum_ in columns.items()}
        beside = with_terms(scored.with_columns(**windows))
    else:  # A window over all rows is a scalar, and division by a scalar rounds differently.
        terms = ("s", "score", "b", "c", "apart", "miss", "phi_unit", "y_unit")
        beside = log.beside(scored, with_terms(summed.slices).select(terms))
    return beside.select(
        *log.slice,
        "label",
        "score",
        "miss",
        "phi_unit",
        "y_unit",
        t=share(gold_n),
        p=share(pred_n),
        gold_x=miss * (not_pred - pl.col("apart")),
        pred_x=miss * not_gold,
        gold_y=not_gold / c - 1,
        pred_y=not_pred / b,
    )


def influences(log: SlicedLog, pairs: pl.LazyFrame, margins: pl.LazyFrame) -> pl.LazyFrame:
    """The scored pairs, with φ and Y of one row of each, and the units of both.

    The columns are `phi:mcc`, `phi:y`, `unit:mcc` and `unit:y`.
    """

    def joined(frame: pl.LazyFrame, side: str, *others: str) -> pl.LazyFrame:
        x, y = pl.col(f"{side}_x"), pl.col(f"{side}_y")
        phi = (x - pl.col("score") * y).alias(f"{side}_phi")
        return beside_class(log, frame, side, margins, phi, y, *others)

    gold, pred = pl.col("gold"), pl.col("pred")
    scored = pairs.filter(is_scored(log))
    missed = pl.when(gold.ne_missing(pred)).then("miss").otherwise(0.0)
    units = "phi_unit", "y_unit"
    return joined(joined(scored, "gold", "miss", *units), "pred").select(
        pl.col(scored.collect_schema().names()),
        (pl.col("gold_phi") + pl.col("pred_phi") - missed).alias("phi:mcc"),
        (pl.col("gold_y") + pl.col("pred_y")).alias("phi:y"),
        **{"unit:mcc": pl.col("phi_unit"), "unit:y": pl.col("y_unit")},
    )


def observed(log: SlicedLog, influences: pl.LazyFrame, cells: pl.LazyFrame) -> pl.LazyFrame:
    """The means of φ², φ·Y and Y² over the rows of each slice, and the variance of its score.

    `cells` are the pairs of `influences`, split by cluster if the log has clusters.
    """
    n = pl.col("n")
    of_phi, of_y = ((pl.col(f"phi:{name}"), pl.col(f"unit:{name}")) for name in ("mcc", "y"))
    products = {"phi_phi": (of_phi, of_phi), "phi_y": (of_phi, of_y), "y_y": (of_y, of_y)}
    means = {
        name: sum_of(log, n * one * other, unit * other_unit) / total(n)
        for name, ((one, unit), (other, other_unit)) in products.items()
    }
    score = {"mcc": of_phi}
    if not log.has_clusters:  # In one pass.
        return log.per_slice(influences, **means, **of_rows(log, score))
    rows = with_influence(log, cells, influences, ["mcc"])
    return log.beside(log.per_slice(influences, **means), variances(log, rows, score))


def ends(log: SlicedLog, margins: pl.LazyFrame) -> pl.LazyFrame:
    """The mean of (X - ρ·Y)² over the rows of two tables made from the margins of a slice.

    At the independent table, p_ij = T_i P_j, it is `guess_0` + ρ²·`guess_2`. At the table of
    agreement, p_kk = (T_k + P_k) / 2, it is `agree_0`, `agree_score` and `agree_1` if ρ is 0,
    the score of the slice, or 1. `meet` is Σ T_k P_k.
    """
    t, p, score = pl.col("t"), pl.col("p"), pl.col("score")
    x, y = pl.col("gold_x") + pl.col("pred_x"), pl.col("gold_y") + pl.col("pred_y")
    both, one, y_unit = t * p, pl.lit(1.0), pl.col("y_unit")
    most = 4 * pl.max_horizontal("phi_unit", y_unit)

    def agree(rho: pl.Expr | float) -> pl.Expr:
        return sum_in_any_order((t + p) / 2 * (x - rho * y).pow(2), most.pow(2))

    # At the independent table, X and Y are uncorrelated. Y is a sum of two independent terms.
    meet = sum_in_any_order(both, one)
    x_x = sum_in_any_order(both * ((1 - t) * (1 - p) + meet - both), one)
    x_x *= pl.col("miss").max().pow(2)
    spread = t * (pl.col("gold_y") + 1).pow(2) + p * pl.col("pred_y").pow(2)
    y_y = sum_in_any_order(spread, y_unit.pow(2)) - 1
    return log.per_slice(
        margins,
        score=score.max(),
        meet=meet,
        guess_0=x_x.clip(0),
        guess_2=y_y,
        agree_0=agree(0.0),
        agree_score=agree(score),
        agree_1=agree(1.0),
    )
