"""Make data/: out-of-fold predictions of three scikit-learn models on two real data sets.

    python examples/make_data.py --out data

The folds have a fixed seed, and the models are not random. The same versions of scikit-learn,
NumPy and Polars write the same bytes. See data/README.md.
"""

from __future__ import annotations

import argparse
import datetime as dt
import hashlib
from pathlib import Path

import numpy as np
import polars as pl
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

FOLDS = StratifiedKFold(n_splits=5, shuffle=True, random_state=0)
MODELS = {
    "logistic": make_pipeline(StandardScaler(), LogisticRegression(C=0.01, max_iter=1000)),
    "knn": make_pipeline(StandardScaler(), KNeighborsClassifier(n_neighbors=5)),
    "bayes": GaussianNB(),
}
ROWS_PER_DAY = 60
FIRST_DAY = dt.date(2026, 3, 2)


def predictions(features: np.ndarray, gold: np.ndarray) -> pl.DataFrame:
    """Predict each row by models that were not trained on it. Rows keep their order."""
    fold = np.empty(len(gold), dtype=np.int8)
    for number, (_, held_out) in enumerate(FOLDS.split(features, gold)):
        fold[held_out] = number
    row = np.arange(len(gold))
    confidence = cross_val_predict(
        MODELS["logistic"], features, gold, cv=FOLDS, method="predict_proba"
    ).max(axis=1)
    log = pl.DataFrame(
        {
            "row": row.astype(np.int32),
            "day": [FIRST_DAY + dt.timedelta(days=int(r) // ROWS_PER_DAY) for r in row],
            "fold": fold,
            "gold": gold,
            **{
                name: cross_val_predict(model, features, gold, cv=FOLDS)
                for name, model in MODELS.items()
            },
            "confidence": confidence.round(3),
        }
    )
    bands = pl.Enum(["low", "medium", "high"])
    return log.with_columns(
        pred=pl.col("logistic"),
        confidence_band=pl.when(pl.col("confidence") < 0.5)
        .then(pl.lit("low", bands))
        .when(pl.col("confidence") < 0.9)
        .then(pl.lit("medium", bands))
        .otherwise(pl.lit("high", bands)),
    )


def thirds(values: np.ndarray, labels: list[str]) -> pl.Series:
    """Label each value by the third of the data set that it is in."""
    breaks = np.quantile(values, [1 / 3, 2 / 3])
    return pl.Series(np.searchsorted(breaks, values)).replace_strict(
        [0, 1, 2], labels, return_dtype=pl.Enum(labels)
    )


def digits() -> pl.DataFrame:
    data = load_digits()
    ink = data.data.mean(axis=1)
    return predictions(data.data, data.target.astype(np.int8)).with_columns(
        ink=ink.round(3), ink_band=thirds(ink, ["light", "medium", "heavy"])
    )


def breast_cancer() -> pl.DataFrame:
    data = load_breast_cancer()
    malignant = data.target == list(data.target_names).index("malignant")
    radius = data.data[:, list(data.feature_names).index("mean radius")]
    return predictions(data.data, malignant).with_columns(
        radius=radius, radius_band=thirds(radius, ["small", "medium", "large"])
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--out", type=Path, required=True, help="the folder to write to")
    out: Path = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    for name, log in {"digits": digits(), "breast_cancer": breast_cancer()}.items():
        file = out / f"{name}.parquet"
        log.write_parquet(file, compression="zstd", statistics=True)
        print(hashlib.sha256(file.read_bytes()).hexdigest(), file.name, log.height, "rows")


if __name__ == "__main__":
    main()
