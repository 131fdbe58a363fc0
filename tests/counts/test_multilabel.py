"""Lists of labels: each label against the rest, and averages, from counts."""

from __future__ import annotations

import math
import operator
import re

import numpy as np
import oracles
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from sklearn import metrics as sk
from sklearn.preprocessing import MultiLabelBinarizer
from support import LABELS, NAMES, ask

import polars_mcc
import polars_mcc.metric
from polars_mcc import each, sets

FAMILY = polars_mcc.metrics()
OF_LISTS = FAMILY.filter("multilabel", pl.col("from") != "positive")["metric"].to_list()
OF_SETS = ["exact_match", "jaccard_samples", "f1_samples", "hamming_loss"]

label_lists = st.lists(st.sampled_from(range(6)), max_size=4)
rows = st.lists(st.tuples(st.sampled_from([None, "x", "y"]), label_lists, label_lists), max_size=30)


def log_of(rows: list[tuple], dtype: pl.DataType | None = None) -> pl.DataFrame:
    """Make a log from rows (key, gold, pred). Lists hold codes, which become labels of `dtype`."""
    dtype = pl.String() if dtype is None else dtype

    def column(side: int) -> pl.Series:
        lists = [
            None
            if row[side] is None
            else [None if c is None else LABELS[dtype][c] for c in row[side]]
            for row in rows
        ]
        return pl.Series(lists, dtype=pl.List(dtype))

    keys = pl.Series([row[0] for row in rows], dtype=pl.String)
    return pl.DataFrame({"key": keys, "gold": column(1), "pred": column(2)})


def labels_of(rows: list[tuple]) -> set[int]:
    return {label for _, gold, pred in rows for label in (*gold, *pred)}


def of_sets(rows: list[tuple], labels: int, at_0: float | None = 0.0) -> dict[str, float]:
    """The metrics of whole sets, in loops. `labels` occur in the log."""
    sets = [({*gold}, {*pred}) for _, gold, pred in rows]
    parts = {
        "jaccard_samples": [(len(g & p), len(g | p)) for g, p in sets],
        "f1_samples": [(2 * len(g & p), len(g) + len(p)) for g, p in sets],
    }
    found = {"exact_match": sum(g == p for g, p in sets) / len(sets)}
    for name, ratios in parts.items():
        values = [part / whole if whole else at_0 for part, whole in ratios]
        known = [value for value in values if value is not None]
        found[name] = math.fsum(known) / len(known) if known else None
    wrong = sum(len(g ^ p) for g, p in sets)
    at_0 = None if at_0 is None else 1 - at_0
    found["hamming_loss"] = wrong / (labels * len(sets)) if labels else at_0
    return found


def by_definition(rows: list[tuple]) -> dict[str, float]:
    """The metrics of one slice of rows, by scikit-learn and by one-hot matrices."""
    binarizer = MultiLabelBinarizer(classes=sorted({c for row in rows for c in (*row[1], *row[2])}))
    gold, pred = (binarizer.fit_transform([row[side] for row in rows]) for side in (1, 2))
    found = {}
    classes = range(gold.shape[1])
    # scikit-learn takes one column for a binary label, so there is one more, which is not scored.
    padded = [np.hstack([side, np.zeros((len(rows), 1), dtype=int)]) for side in (gold, pred)]
    for name in ("precision", "recall", "f1", "jaccard"):
        for average in ("macro", "micro", "weighted"):
            score = getattr(sk, f"{name}_score")
            options = {"labels": classes, "average": average, "zero_division": 0}
            found[f"{name}_{average}"] = score(*padded, **options)
    tables = sk.multilabel_confusion_matrix(*padded)[:-1]  # [[tn, fp], [fn, tp]] of each label
    sides = [tuple(map(int, (m[1, 1], m[0, 1], m[1, 0], m[0, 0]))) for m in tables]
    weights = [tp + fn for tp, _, fn, _ in sides]
    informed, marked, recalls = [], [], []
    rates: dict[str, list[float]] = {"specificity": [], "npv": [], "fpr": [], "fnr": []}
    for tp, fp, fn, tn in sides:
        tpr, tnr = (oracles._over(*both) for both in ((tp, tp + fn), (tn, tn + fp)))
        ppv, npv = (oracles._over(*both) for both in ((tp, tp + fp), (tn, tn + fn)))
        informed.append(0 if None in (tpr, tnr) else tpr + tnr - 1)
        marked.append(0 if None in (ppv, npv) else ppv + npv - 1)
        recalls.append(float(tpr or 0))
        for name, rate in (("specificity", tnr), ("npv", npv)):
            rates[name].append(rate or 0)
        for name, rate in (("fpr", tnr), ("fnr", tpr)):
            rates[name].append(1 - (rate or 0))
    tp, fp, fn, tn = map(sum, zip(*sides, strict=True))
    micro = {"specificity": (tn, fp), "npv": (tn, fn), "fpr": (fp, tn), "fnr": (fn, tp)}
    for name, values in rates.items():
        at_0 = float(name in {"fpr", "fnr"})
        part, rest = micro[name]
        found[f"{name}_macro"] = float(sum(values) / len(sides))
        found[f"{name}_micro"] = part / (part + rest) if part + rest else at_0
        weighted = sum(map(operator.mul, values, weights))
        found[f"{name}_weighted"] = float(weighted / sum(weights)) if sum(weights) else at_0
    found["informedness_macro"] = float(sum(informed) / len(sides))
    found["markedness_macro"] = float(sum(marked) / len(sides))
    found["g_mean"] = math.prod(recalls) ** (1 / len(recalls))
    phis = [oracles._phi(*side) or 0.0 for side in sides]
    found["mcc_macro"], found["mcc_min_class"] = sum(phis) / len(phis), min(phis)
    found["mcc_micro"] = oracles._phi(*map(sum, zip(*sides, strict=True))) or 0.0
    x, y = gold - gold.mean(axis=0), pred - pred.mean(axis=0)
    cov, var_gold, var_pred = float((x * y).sum()), float((x * x).sum()), float((y * y).sum())
    has_spread = min(var_gold, var_pred) > 1e-9
    found["mcc"] = cov / math.sqrt(var_gold * var_pred) if has_spread else 0.0
    found["mcc_normalized"] = (found["mcc"] + 1) / 2
    found["informedness"] = cov / var_gold if var_gold > 1e-9 else 0.0
    found["markedness"] = cov / var_pred if var_pred > 1e-9 else 0.0
    # A label has at most min(gold rows, predicted rows) hits. The hits by chance are subtracted.
    most = sum(
        min(g.sum(), p.sum()) - g.sum() * p.sum() / len(rows)
        for g, p in zip(gold.T, pred.T, strict=True)
    )
    found["mcc_max"] = most / math.sqrt(var_gold * var_pred) if has_spread else 0.0
    found["phi_over_max"] = cov / most if most > 1e-9 else 0.0
    return found


@given(rows=rows)
def test_the_family_of_each_slice(rows, run):
    answer = run(log_of(rows), lambda f: f.mcc.by("key", metrics=OF_LISTS))
    assert answer["key"].to_list() == sorted({r[0] for r in rows}, key=lambda k: (k is not None, k))
    for row in answer.iter_rows(named=True):
        of_slice = [other for other in rows if other[0] == row["key"]]
        assert (row["n"], row["n_null"]) == (len(of_slice), 0)
        sets = of_sets(of_slice, len(labels_of(rows)))
        if not any(gold or pred for _, gold, pred in of_slice):
            errors = {name for name in OF_LISTS if name.startswith(("fpr", "fnr"))}
            assert {row[name] for name in errors} == {1.0}, "without labels: 0/0"
            assert {row[name] for name in {*OF_LISTS} - errors - {*sets}} == {0.0, 0.5}
            assert {name: row[name] for name in sets} == sets
            continue
        expected = by_definition(of_slice) | sets
        assert expected.keys() == set(OF_LISTS)
        for name in OF_LISTS:
            assert row[name] == pytest.approx(expected[name], abs=1e-13), name


@pytest.mark.parametrize("zero_division", [0.0, 1.0, None, 0.3])
@given(rows=rows, data=st.data())
def test_how_alike_the_sets_of_rows_are(rows, data, zero_division, run):
    """Of a log, of its counts to the last bit, and with weights; of slices and in all."""
    log = log_of(rows)
    dtype, listed = data.draw(
        st.sampled_from([(pl.Int64, [0, 1, 7]), (pl.Float64, [0.0, 0.1, 2.3])])
    )
    sizes = st.sampled_from(listed)
    weights = data.draw(st.lists(sizes, min_size=len(rows), max_size=len(rows)))
    weighted = log.with_columns(w=pl.Series(weights, dtype=dtype))
    counts = log.mcc.counts("key")
    repeated = [row for row, w in zip(rows, weights, strict=True) for _ in range(round(w * 10))]

    def ask_for(f, **options):
        log = f.mcc(zero_division=zero_division, **options)
        return log.by(each("key", total=True), metrics=OF_SETS)

    plain = run(log, ask_for)
    assert run(counts, lambda f: ask_for(f, weight="n")).equals(plain)
    heavy = run(weighted, lambda f: ask_for(f, weight="w"))
    for answer, of_rows in ((plain, rows), (heavy, repeated)):
        for row in answer.iter_rows(named=True):
            chosen = [one for one in of_rows if row["keys"] == "" or one[0] == row["key"]]
            want = (
                of_sets(chosen, len(labels_of(of_rows)), zero_division)
                if chosen
                else dict.fromkeys(OF_SETS)
            )
            for name in OF_SETS:
                assert row[name] == pytest.approx(want[name], rel=1e-14, abs=1e-15), name


@given(rows=rows.filter(lambda rows: any(gold or pred for _, gold, pred in rows)))
def test_sets_of_labels_score_as_in_scikit_learn(rows):
    binarizer = MultiLabelBinarizer(classes=range(6))
    occurring = sorted(labels_of(rows))
    sides = [binarizer.fit_transform([row[side] for row in rows]) for side in (1, 2)]
    gold, pred = (side[:, occurring] for side in sides)
    padded = [np.hstack([side, np.zeros((len(rows), 1), dtype=int)]) for side in (gold, pred)]
    for at_0 in (0.0, 1.0):
        options = {"average": "samples", "zero_division": at_0}
        [found] = log_of(rows).mcc(zero_division=at_0).score(metrics=OF_SETS).to_dicts()
        assert found["exact_match"] == pytest.approx(sk.accuracy_score(*padded), rel=1e-15)
        for name, score in (("jaccard_samples", sk.jaccard_score), ("f1_samples", sk.f1_score)):
            assert found[name] == pytest.approx(score(*padded, **options), rel=1e-14), name
        loss = sk.hamming_loss(*padded) * (len(occurring) + 1) / len(occurring)
        assert found["hamming_loss"] == pytest.approx(loss, rel=1e-14)


def test_equal_sets_of_any_weight_score_exactly_1(run):
    """Thirds add up to no round number, and 0/0 that counts as 1 is as good as a hit."""
    rows = [("x", labels, labels) for labels in ([0, 1, 2], [3], [], [4, 5], [])]
    log = log_of(rows).with_columns(w=pl.Series([0.1, 1 / 3, 0.7, 1e-9, 3e5]))
    answer = run(log, lambda f: f.mcc(weight="w", zero_division=1).score(metrics=OF_SETS))
    assert answer.select(OF_SETS).row(0) == (1.0, 1.0, 1.0, 0.0)


def test_rows_without_a_set_are_not_scored(run):
    log = log_of([("x", None, [0]), ("x", [0, None], [0]), ("x", [0, 0, 1], [1, 0, 1])])
    answer = run(log, lambda f: f.mcc.score(metrics=OF_SETS))
    assert answer.rows() == [(1, 1.0, 1.0, 1.0, 0.0, 2)]
    answer = run(log, lambda f: f.mcc(nulls="label").score(metrics=OF_SETS))
    assert answer.rows() == [
        (3, pytest.approx(1 / 3), pytest.approx(0.5), pytest.approx(5 / 9), pytest.approx(3 / 9), 0)
    ]


def test_models_share_the_labels_of_the_log(run):
    log = pl.DataFrame({"gold": [["a"], ["b"]], "a": [["a"], ["a"]], "b": [["c", "d"], ["b"]]})
    answer = run(log, lambda f: f.mcc(pred=["a", "b"]).score(metrics="hamming_loss"))
    assert answer["hamming_loss"].to_list() == [2 / 8, 3 / 8]


def test_metrics_of_sets_cost_nothing_where_nobody_asks():
    log = log_of([("x", [0], [1])]).lazy()
    others = [name for name in OF_LISTS if name not in OF_SETS]
    assert "sets:" not in log.mcc.by("key", metrics=others).explain()
    assert "sets:" not in log.mcc.by("key").explain()
    assert "sets:" in log.mcc.by("key", metrics="f1_samples").explain()


@pytest.mark.parametrize("zero", [0.0, 1.0, None])
@pytest.mark.parametrize("average", ["macro", "micro", "weighted"])
def test_f_beta_without_gold_labels_or_any_is_that_of_f1(average, zero):
    asked = {"metrics": [polars_mcc.metric.f_beta(1, average).alias("f_beta"), f"f1_{average}"]}
    for pred in ([[0], []], [[], []]):
        log = log_of([("x", [], row) for row in pred] + [("y", [1], [1])])
        for frame in (log, log.filter(key="x")):
            found = frame.mcc(zero_division=zero).by("key", **asked)
            assert found["f_beta"].to_list() == found[f"f1_{average}"].to_list()


@given(rows=rows)
def test_each_label_against_the_rest(rows, run):
    answer = run(log_of(rows), lambda f: f.mcc.classes("key"))
    occurring = {(key, NAMES[code]) for key, *sides in rows for side in sides for code in side}
    assert set(answer.select("key", "label").rows()) == occurring
    assert answer.height == len(occurring)
    for row in answer.iter_rows(named=True):
        of_slice = [other for other in rows if other[0] == row["key"]]
        sides = [[row["label"] in {NAMES[c] for c in r[side]} for r in of_slice] for side in (1, 2)]
        gold, pred = sides
        hits = sum(g and p for g, p in zip(gold, pred, strict=True))
        assert (row["support"], row["predicted"], row["hits"]) == (sum(gold), sum(pred), hits)
        assert (row["n"], row["n_null"]) == (len(of_slice), 0)
        assert row["mcc"] == pytest.approx(sk.matthews_corrcoef(gold, pred), abs=1e-14)
        specificity = sk.recall_score(gold, pred, pos_label=False, zero_division=0)
        expected = None if all(gold) else pytest.approx(specificity, rel=1e-15)
        assert row["specificity"] == expected


@given(rows=rows)
def test_lists_of_one_label_are_rows_of_one_label(rows, run):
    """MCC is equal to the last digit. Means add up hashed labels in another order than lists."""
    single = [(key, [*gold, 0][:1], [*pred, 1][:1]) for key, gold, pred in rows]
    lists = log_of(single)
    plain = lists.with_columns(pl.col("gold", "pred").list.first())
    hamming = (
        pl.col("hamming_loss") * 2 / max(1, len(labels_of(single)))
    )  # A miss is two of so many labels.
    answer = run(lists, lambda f: f.mcc.by("key", metrics=OF_LISTS))
    expected = plain.mcc.by("key", metrics=OF_LISTS).with_columns(hamming)
    assert_frame_equal(answer, expected, rel_tol=1e-15, abs_tol=1e-15)
    assert answer["mcc"].equals(expected["mcc"])
    classes = run(lists, lambda f: f.mcc.classes("key"))
    assert classes.equals(plain.mcc.classes("key"))


@pytest.mark.slow
@example(rows=[("x", [0, 1, 0], [2]), ("x", [1, 0], [2, 2])])
@example(rows=[("x", [0], [0, 1, 2])])  # No true negatives: 3/3 - 1/3 - 2/3 is not 0 as floats.
@settings(max_examples=settings.default.max_examples // 2)  # Six queries each.
@given(rows=rows)
def test_counts_of_lists_are_their_log(rows, run):
    log = log_of(rows)
    counts = run(log, lambda f: f.mcc.counts("key"))
    assert counts["n"].sum() == len(rows)
    sets = {(key, tuple(sorted({*gold})), tuple(sorted({*pred}))) for key, gold, pred in rows}
    assert counts.height == len(sets)
    query = {"metrics": OF_LISTS}
    direct = run(log, lambda f: ask(f, "by", "key", **query))  # Engines differ in last bits.
    from_counts = run(counts, lambda f: ask(f, "by", "key", weight="n", **query))
    assert from_counts.equals(direct)
    thirds = counts.with_columns(pl.col("n") / 3)
    weighted = run(thirds, lambda f: ask(f, "by", "key", weight="n", **query))
    assert_frame_equal(weighted.drop("n", "n_null"), direct.drop("n", "n_null"), abs_tol=1e-14)
    of_all = run(log, lambda f: f.mcc.by(each("key", total=True)))
    plain = log.mcc.score()
    assert of_all.filter(keys="").drop("keys", "key").equals(plain)


@pytest.mark.parametrize("dtype", [d for d in LABELS if d != pl.Boolean()], ids=str)
def test_labels_of_any_dtype(run, dtype):
    log = log_of([("x", [0, 1], [1, 2]), ("x", [2], [2, 2]), ("x", [], [0])], dtype)
    answer = run(log, lambda f: f.mcc.classes())
    assert answer["label"].to_list() == LABELS[dtype][:3]
    assert answer.select("support", "predicted", "hits").rows() == [(1, 1, 0), (1, 1, 1), (1, 2, 1)]


def test_nulls(run):
    log = log_of([("x", None, [0]), ("x", [0, None], [0]), ("x", [0], [0]), ("y", [1], None)])
    answer = run(log, lambda f: f.mcc.by("key", metrics="f1_micro"))
    assert answer.rows() == [("x", 1, 1.0, 2), ("y", 0, None, 1)]
    classes = run(log, lambda f: f.mcc(nulls="label").classes())
    columns = ["label", "support", "predicted", "hits", "n", "n_null"]
    assert classes.select(columns).rows() == [
        (None, 2, 1, 0, 4, 0),
        ("ant", 2, 3, 2, 4, 0),
        ("bee", 1, 0, 0, 4, 0),
    ]


def test_sets_of_keys_are_the_keys_one_by_one(run):
    log = pl.DataFrame(
        {
            "country": ["x", "y"] * 3,
            "device": ["p", "q", "q"] * 2,
            "day": [1, 2, 3] * 2,
            "gold": [["a"], ["b"], ["a", "b"]] * 2,
            "pred": [["a"], ["b"], []] * 2,
        }
    )
    of_sets = sets(("country", "day"), ("country", "device"), "day")
    for keys, asked in (
        (["country"], each("country", "day", "device")),
        (["country", "day"], of_sets),
        (["day"], of_sets),
    ):
        together = run(log, lambda f, asked=asked: f.mcc.by(asked))
        one = together.filter(keys=", ".join(keys)).select(*keys, "n", "mcc", "n_null")
        assert_frame_equal(one, run(log, lambda f, keys=keys: f.mcc.by(*keys)))


def test_empty_lists_are_rows_without_labels(run):
    log = log_of([("x", [], []), ("x", [], []), ("x", [0], [0])])
    answer = run(log, lambda f: f.mcc(positive="ant").by("key", metrics=["mcc", "tn"]))
    assert answer.rows() == [("x", 3, 1.0, 2, 0)]
    none = pl.DataFrame({"gold": [[], []], "pred": [[], []]})
    assert none.schema["gold"] == pl.List(pl.Null)
    assert run(none, lambda f: f.mcc.score()).rows() == [(2, 0.0, 0)]
    assert run(none, lambda f: f.mcc.classes()).height == 0
    assert run(log.clear(), lambda f: f.mcc.score()).rows() == [(0, None, 0)]


def test_labels_that_cannot_be_counted_exactly_are_an_error(run):
    counts = log_of([("x", [0, 1, 2], [0])]).with_columns(n=pl.lit(2**62))
    for metric in ("mcc", "mcc_micro"):
        with pytest.raises(pl.exceptions.InvalidOperationError, match="add up to at least"):
            run(counts, lambda f, m=metric: f.mcc(weight="n").score(metrics=m).select(m))
    fine = counts.with_columns(n=pl.lit(2**61))
    answer = run(fine, lambda f: f.mcc(weight="n").score(metrics="f1_micro"))
    assert answer.row(0) == (2**61, 0.5, 0)


@pytest.mark.parametrize("size", [1e-200, 1e-3, 1e200])
def test_float_weights_of_many_labels(run, size):
    """Many labels a row, with weights of any size, score as without weights."""
    rows = [("x", list(range(k, k + 900)), list(range(k // 2, k // 2 + 800))) for k in range(7)]
    log = pl.DataFrame(rows, schema=["key", "gold", "pred"], orient="row")
    expected = log.mcc.by("key", metrics=OF_LISTS)
    weighted = log.with_columns(w=pl.lit(size))
    answer = run(weighted, lambda f: f.mcc(weight="w").by("key", metrics=OF_LISTS))
    assert_frame_equal(answer.drop("n", "n_null"), expected.drop("n", "n_null"), rel_tol=1e-13)


def test_several_models_arrays_and_mixed_integers(run):
    log = pl.DataFrame(
        {"gold": [[1, 2], [2, 3]], "a": [[1, 2], [3, 3]], "b": [[2], [3]]},
        schema={"gold": pl.Array(pl.Int8, 2), "a": pl.List(pl.UInt16), "b": pl.List(pl.Int64)},
    )
    answer = run(log, lambda f: f.mcc(pred=["b", "a"]).score(metrics="recall_micro"))
    assert answer.rows() == [("b", 2, 0.5, 0), ("a", 2, 0.75, 0)]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda f: f.mcc.score(metrics="kappa"),
            ValueError,
            "needs one label a row.*'mcc'",
        ),
        (
            lambda f: f.mcc.score(metrics=pl.col("gold").n_unique()),
            ValueError,
            "metric 'gold' needs one label a row",
        ),
        (lambda f: f.mcc.score(ci=0.9), pl.exceptions.SchemaError, "without intervals"),
        *(
            (
                lambda f, asked=asked: f.mcc.check(**asked),
                pl.exceptions.SchemaError,
                "labels must be plain values here, but 'gold' is List",
            )
            for asked in (
                {"min": 0.5},
                {"min": 0.5, "ci": 0.9},
                {"min": {"f1_macro": 0.5, "mcc": 0.1}},
                {"metric": "tp", "max": 1},
            )
        ),
        (
            lambda f: f.mcc.confusion(),
            pl.exceptions.SchemaError,
            r"lists of labels work in by\(\), score\(\), classes",
        ),
        (lambda f: f.mcc(pred="key").score(), pl.exceptions.SchemaError, "'key' is String"),
        (
            lambda f: f.with_columns(
                pl.col("gold").list.eval(pl.element() == "x"),
                pl.col("pred").list.eval(pl.element() == "x"),
            ).mcc.score(),
            pl.exceptions.SchemaError,
            "lists of Booleans",
        ),
        (
            lambda f: f.with_columns(pl.col("gold").list.eval(pl.lit(1))).mcc.score(),
            pl.exceptions.SchemaError,
            "labels cannot be compared",
        ),
    ],
)
def test_errors(run, call, error, message):
    with pytest.raises(error, match=message):
        run(log_of([("x", [0], [1])]), call)


@pytest.mark.parametrize(
    "verb",
    [
        lambda f: f.mcc.by("key"),
        lambda f: f.mcc.classes(),
        lambda f: f.mcc.by("key", metrics=OF_SETS),
    ],
)
def test_it_streams(verb, tmp_path):
    """Lists are exploded batch by batch: no node of the plan falls back to memory."""
    log_of([("x", [0], [1])]).write_parquet(tmp_path / "log.parquet")
    query = verb(pl.scan_parquet(tmp_path / "log.parquet"))
    assert query.explain().count("Parquet SCAN") == 1
    physical = query.show_graph(
        engine="streaming", plan_stage="physical", raw_output=True, show=False
    )
    nodes = set(re.findall(r'label="([a-z-]+)', physical))
    assert "map" in nodes, "explode"
    assert not {node for node in nodes if "in-memory" in node}
