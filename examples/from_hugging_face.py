"""Score a Hugging Face text classifier by slice, find the slices that fail, and pick thresholds.

python examples/from_hugging_face.py
"""

import numpy as np
import polars as pl

import polars_mcc  # noqa: F401 - registers the namespace

# Texts, integer labels, columns to slice by. Yours: load_dataset(NAME, split="test").to_polars().
rng = np.random.default_rng(0)
label, words = rng.integers(0, 2, 5_000), rng.integers(2, 60, 5_000)
text = [" ".join(["word"] * n) for n in words]
language = rng.choice(["de", "en", "fr"], 5_000)
dataset = pl.DataFrame({"text": text, "label": label, "language": language})

# The names of the labels, as in pipe.model.config.id2label. The data set may have other names, such
# as "pos". Use the names of the model for both: labels with different names are never equal.
names = ["NEGATIVE", "POSITIVE"]

# The predictions. Yours are outputs = pipe(dataset["text"].to_list()), a dict per text, with
# pipe = pipeline("text-classification", ...). Ours are bad for short texts and for German texts.
noise = rng.normal(0, np.where(words < 8, 4, 1.5))
logit = np.where(label == 1, 2.5, -2.5) - np.where(language == "de", 2, 0) + noise
probabilities = 1 / (1 + np.exp(-logit))
outputs = [{"label": names[p >= 0.5], "score": max(p, 1 - p)} for p in probabilities.tolist()]

# One row per text. "score" is the probability of the predicted label, but a threshold needs the
# probability of POSITIVE. With more labels than two, pipe(..., top_k=None) gives all probabilities.
pred = pl.DataFrame(outputs).rename({"label": "pred"})
score, is_positive = pl.col("score"), pl.col("pred") == "POSITIVE"
frame = pl.concat([dataset, pred], how="horizontal").with_columns(
    pl.col("label").replace_strict(dict(enumerate(names)), return_dtype=pl.Enum(names)),
    pl.col("pred").cast(pl.Enum(names)),  # an error if the model has another label
    pl.col("text").str.split(" ").list.len().alias("words"),
    pl.when(is_positive).then(score).otherwise(1 - score).alias("p_positive"),
)
log = frame.mcc(gold="label", pred="pred", score="p_positive", positive="POSITIVE")

print("MCC of each language, with a 95 % interval:", log.by("language", ci=0.95), sep="\n")
failing = log.worst("language", "words", long=True).select("slice", "n", "score", "reference")
print("Slices that fail:", failing, sep="\n")
# A threshold looks too good on the rows it was chosen on. Score it on other rows.
print("Best threshold of each language:", log.best_threshold("language"), sep="\n")
