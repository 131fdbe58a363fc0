"""Score two scikit-learn models by slice, find the slices that fail, and compare the models.

python examples/from_scikit_learn.py
"""

import numpy as np
import polars as pl
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import matthews_corrcoef
from sklearn.model_selection import cross_val_predict
from sklearn.tree import DecisionTreeClassifier

import polars_mcc  # noqa: F401 - registers the namespace

X, y = load_breast_cancer(return_X_y=True)
tree = DecisionTreeClassifier(random_state=0)
forest = RandomForestClassifier(random_state=0)

# One row per prediction. Put your own labels here, and the columns you want to slice by. After
# train_test_split, use y_test, model.predict(X_test) and columns of X_test.
frame = pl.DataFrame(
    {
        "y_true": y,
        "y_pred": cross_val_predict(tree, X, y),
        "y_pred_new": cross_val_predict(forest, X, y),
        "size": np.array(["small", "medium", "large"])[np.digitize(X[:, 0], [13, 16])],
        "radius": X[:, 0],
        "texture": X[:, 1],
    }
)
# Put the names of your columns here. A pandas frame works too, with pip install
# 'polars-mcc[engines]': log = polars_mcc.PredictionLog(df, gold="y_true", pred="y_pred").
log = frame.mcc(gold="y_true", pred=["y_pred", "y_pred_new"])

print("MCC of y_pred by scikit-learn:", matthews_corrcoef(frame["y_true"], frame["y_pred"]))
print("MCC of both models, with a 95 % interval:", log.score(ci=0.95), sep="\n")
print("MCC of each slice:", log.by("size", ci=0.95).drop("mcc_se", "n_null"), sep="\n")

# worst cuts numbers into bins, and tries single columns and pairs of columns.
failing = log.worst("radius", "texture", long=True)
with pl.Config(fmt_str_lengths=60):
    print("Slices that fail:", failing.select("model", "slice", "n", "score"), sep="\n")

compared = log.compare("size").select("size", "reference", "score", "diff_low", "diff_high")
print("y_pred_new (b) beats y_pred (a) where diff_low is above 0:", compared, sep="\n")
