"""`worst`: compare its list with a direct search that tests every slice."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from statistics import NormalDist

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import as_proportion, exact
from polars.testing import assert_frame_equal
from scipy.special import xlogy
from scipy.stats import norm, t
from support import ask, first, in_turn, some_slow

from polars_mcc import metrics, sets
from polars_mcc._worst.compared_slices import rest_of

Z = NormalDist().inv_cdf(0.975)
KEYS = ("a", "b", "c")


def log_of(seed: int, rows: int = 3000, wrong: float = 0.35) -> pl.DataFrame:
    """A log with two bad slices, of one key and of two; `wrong` is the error rate of the first."""
    rng = np.random.default_rng(seed)
    keys = {name: rng.integers(0, 4, rows) for name in KEYS}
    gold = rng.choice(3, rows, p=[0.5, 0.3, 0.2])
    misses = np.full(rows, 0.1)
    misses[keys["a"] == 1] = wrong
    misses[(keys["b"] == 2) & (keys["c"] == 3)] = wrong + 0.25
    pred = np.where(rng.random(rows) < misses, (gold + rng.integers(1, 3, rows)) % 3, gold)
    return pl.DataFrame({**keys, "gold": gold, "pred": pred})


def p_of(part: Counter, rest: Counter) -> float | None:
    """The p-value of the likelihood ratio; 1 if the part is not behind, None if unknown."""
    both = part + rest
    if any(len({pair[side] for pair in table}) < 2 for table in (part, rest) for side in (0, 1)):
        return None
    (v, m), (w, k) = (as_proportion(table, both) for table in (part, rest))
    v, w = v + 0.5 / m, w - 0.5 / k
    if v >= w:
        return 1.0
    pooled = (m * v + k * w) / (m + k)
    g = 2 * sum(
        rows * (xlogy(one, one / pooled) + xlogy(1 - one, (1 - one) / (1 - pooled)))
        for one, rows in ((v, m), (w, k))
    )
    return math.erfc(math.sqrt(max(g, 0) / 2))


def name_of(low: float, high: float) -> str:
    """A range of integers, as it is named."""
    if low == -math.inf:
        return f"≤ {high}"
    if high == math.inf:
        return f"> {low}"
    return f"{high}" if low + 1 == high else f"{low + 1} to {high}"


def is_in(part: int, whole: int) -> bool:
    return part & ~whole == 0


class Search:
    """The search by its definition: every slice is a set of rows, and no slice is skipped.

    The bits of an integer are the rows of a set.
    """

    def __init__(
        self, log: pl.DataFrame, method: str, depth: int, min_n: int, cuts: tuple[int, ...] = ()
    ) -> None:
        """`cuts` are those of the last key."""
        self.method = method
        ends = (-math.inf, *cuts, math.inf)
        self.bins = [name_of(*both) for both in itertools.pairwise(ends)] if cuts else []
        ranges = [*itertools.pairwise(ends), *((ends[0], end) for end in cuts)]
        ranges = [*ranges, *((end, ends[-1]) for end in cuts)] if cuts else []

        def values(key: str, value: object) -> list[object]:
            if key != KEYS[-1] or not cuts:
                return [value]
            return [*{name_of(low, high): None for low, high in ranges if low < value <= high}]

        self.known: dict[tuple[int, int], float | None] = {}
        self.cells, slices = Counter(), Counter()
        for place, row in enumerate(log.rows(named=True)):
            self.cells[row["gold"], row["pred"]] |= 1 << place
            for size in range(1, depth + 1):
                for keys in itertools.combinations(KEYS, size):
                    for one in itertools.product(*(values(key, row[key]) for key in keys)):
                        slices[tuple(zip(keys, one, strict=True))] |= 1 << place
        self.every = {one: rows for one, rows in slices.items() if len(one) == 1}
        large = {one: rows for one, rows in slices.items() if rows.bit_count() >= min_n}
        self.slices = {
            one: rows
            for one, rows in large.items()
            if not any({*other} < {*one} and large[other] == rows for other in large)
        }
        self.height, self.everything = log.height, (1 << log.height) - 1
        self.p = {one: self.behind(rows, self.everything) for one, rows in self.slices.items()}
        self.tests = sum(p is not None for p in self.p.values())
        self.untested = len(slices) - len(large) + len(self.slices) - self.tests

    def table(self, rows: int) -> Counter:
        return +Counter({pair: (rows & cell).bit_count() for pair, cell in self.cells.items()})

    def behind(self, part: int, whole: int) -> float | None:
        if (part, whole) not in self.known:
            self.known[part, whole] = p_of(self.table(part), self.table(whole & ~part))
        return self.known[part, whole]

    def bar(self, listed: int) -> float:
        harmonic = sum(1 / k for k in range(1, self.tests + 1)) if self.method == "by" else 1
        return 0.05 * listed / self.tests / harmonic

    def rows(self, bits: int) -> np.ndarray:
        return np.array([bits >> place & 1 for place in range(self.height)], float)

    def losses(self) -> np.ndarray:
        """Minus the influence of each row on R_K, by a complex step."""
        labels = sorted({label for pair in self.cells for label in pair})
        places = {pair: tuple(map(labels.index, pair)) for pair in self.cells}
        table = np.zeros((len(labels), len(labels)), complex)
        for pair, place in places.items():
            table[place] = self.cells[pair].bit_count() / self.height
        slope = {}
        for pair, place in places.items():
            moved = table.copy()
            moved[place] += 1e-30j
            t, p, s = moved.sum(1), moved.sum(0), moved.sum()
            both = (s * s - p @ p) * (s * s - t @ t)
            slope[pair] = ((np.trace(moved) * s - t @ p) / both**0.5).imag / 1e-30
        mean = sum(slope[pair] * table[place].real for pair, place in places.items())
        return sum((mean - slope[pair]) * self.rows(self.cells[pair]) for pair in self.cells)

    def more(self, one, listed) -> tuple[float, float]:
        """How many standard errors a slice loses more than a regression on others explains.

        Then the square of what is left of its column.
        """
        key = KEYS[-1]
        has_bins = any(len(other) == 1 and other[0][0] == key for other in listed)
        bins = self.bins if has_bins and {*dict(one)} != {key} else []
        own = self.rows(self.slices[one])
        alone = [x - x.mean() for x in (self.loss, own)]
        squares = alone[0] ** 2
        error = math.sqrt(max(np.average(squares, weights=alone[1] ** 2), squares.mean()))
        slices = [self.rows(self.slices[other]) for other in listed]
        columns = [*slices, *(self.rows(self.every[(key, name),]) for name in bins)]
        model = np.column_stack([np.ones(self.height), *columns])
        fits = (np.linalg.lstsq(model, x, rcond=None)[0] for x in (self.loss, own))
        left, free = (x - model @ fit for x, fit in zip((self.loss, own), fits, strict=True))
        _, group = np.unique(np.array(slices).reshape(-1, self.height), axis=1, return_inverse=True)
        means = [np.bincount(group, x) / np.bincount(group) for x in (self.loss, own)]
        among = self.loss - means[0][group], own - means[1][group]
        tests = [(left, free), among] if among[1] @ among[1] >= free @ free / 2 else [(left, free)]
        return min(self.evidence(*both) / error for both in tests), free @ free

    @staticmethod
    def evidence(left, free) -> float:
        return left @ free / math.sqrt(free @ free) if free @ free > 5 else 0.0

    def is_second(self, one, listed) -> bool:
        """Whether a slice overlaps a listed one with the same keys."""
        others = [other for other in listed if other != one and {*dict(other)} == {*dict(one)}]
        return any(self.slices[one] & self.slices[other] for other in others)

    def beside(self, one, listed) -> float:
        """The p-value of a slice beside those listed."""
        z, (first, all_) = norm.isf(self.p[one] / 2), self.more(one, [])
        left, free = self.more(one, [other for other in listed if other != one])
        if left < first / 2 and self.is_second(one, listed):
            return 1.0
        share = min(max(left / first, 0), 1)
        z = z * share if first > 2 else (z - max(first - left, 0)) * math.sqrt(free / all_)
        wholes = [
            self.slices[other]
            for other in listed
            if other != one and is_in(self.slices[one], self.slices[other])
        ]
        ps = [self.behind(self.slices[one], whole) for whole in wholes]
        return max([2 * norm.sf(max(z, 0)), *(1.0 if p is None else p for p in ps)])

    def is_whole(self, one, part) -> bool:
        """Whether a slice with fewer keys contains a part."""
        return {*dict(one)} < {*dict(part)} and is_in(self.slices[part], self.slices[one])

    def listed(self) -> dict:
        """Each listed slice, with its p-value beside the others."""
        self.loss = self.losses()
        able = [one for one, p in self.p.items() if p is not None and p <= 0.05]
        if not any(p <= self.bar(k) for k, p in enumerate(sorted(map(self.p.get, able)), 1)):
            return {}
        listed, gone = [], set()
        while True:
            others = [one for one in able if one not in listed and one not in gone]
            p = {one: self.beside(one, listed) for one in others}
            best = min(p, key=p.get, default=None)
            if best is None or (listed and p[best] > self.bar(len(listed) + 1)):
                return {one: self.beside(one, listed) for one in listed}
            bar = self.bar(len(listed) + 1) if listed else 0.05
            while wholes := [one for one in others if self.is_whole(one, best) and p[one] <= bar]:
                whole = min(wholes, key=p.get)
                if norm.isf(self.beside(best, [*listed, whole]) / 2) >= 3:
                    break
                best = whole
            listed.append(best)
            while len(listed) > 1:
                weakest = max(listed, key=lambda one: self.beside(one, listed))
                if self.beside(weakest, listed) <= self.bar(len(listed)):
                    break
                listed.remove(weakest)
                gone.add(weakest)


def worst_of(
    log: pl.DataFrame, method: str, depth: int = 2, min_n: int = 30, cuts: tuple[int, ...] = ()
) -> dict:
    """The listed slices: {slice: numbers}."""
    search = Search(log, method, depth, min_n, cuts)
    found = search.listed()
    overall = float(exact(search.table(search.everything)))
    ranked = sorted(found.values())
    adjusted = {}
    for p in found.values():
        # The least level at which the list holds, cut after the slice or after a later one.
        ranks = [(other, rank) for rank, other in enumerate(ranked, 1) if other >= p]
        adjusted[p] = min(other * 0.05 / search.bar(rank) for other, rank in ranks)
    numbers = {}
    for slice_, beside in found.items():
        part = search.slices[slice_]
        mcc, rest = (float(exact(search.table(rows))) for rows in (part, search.everything & ~part))
        kept = norm.isf(beside / 2) / norm.isf(search.p[slice_] / 2)
        numbers[slice_] = {
            "n": search.table(part).total(),
            "score": mcc,
            "reference": rest,
            "loss": rest - overall,
            "p_value": search.p[slice_],
            "beside": (mcc - rest) * kept,
            "p_beside": beside,
            "p_adjusted": adjusted[beside],
            "n_tested": search.tests,
            "n_untested": search.untested,
        }
    return numbers


def slice_of(row: dict) -> tuple:
    return tuple((key, row[key]) for key in row["keys"].split(", "))


@in_turn(1, method=["bh", "by"], seed=range(2))
def test_it_is_what_looking_at_each_slice_finds(run, seed, method):
    log = log_of(seed, rows=1500)
    answer = run(log, lambda log: log.mcc.worst(*KEYS, correction=method, min_n=60, bins=None))
    wanted = worst_of(log, method, min_n=60)
    assert {(("a", 1),), (("b", 2), ("c", 3))} <= {*wanted}
    found = {slice_of(row): row for row in answer.rows(named=True)}
    assert found.keys() == wanted.keys()
    for slice_, numbers in wanted.items():
        for name, number in numbers.items():
            assert found[slice_][name] == pytest.approx(number, rel=1e-7, abs=1e-14), name
    assert answer["loss"].is_sorted(descending=True)
    assert (answer["verdict"] == "listed").all()


def overlapping(seed: int, rows: int = 3000) -> pl.DataFrame:
    """Three overlapping bad slices of two keys, and a bad slice with a part that is worse."""
    rng = np.random.default_rng(seed)
    keys = {name: rng.integers(0, 4, rows) for name in KEYS}
    a, b, c = keys.values()
    misses = np.full(rows, 0.08)
    for is_in in ((a == 1) & (b == 1), (b == 1) & (c == 1), (a == 1) & (c == 1)):
        misses[is_in] = 0.45
    misses[b == 2] = 0.3
    misses[(b == 2) & (c == 0)] = 0.75
    gold = rng.integers(0, 3, rows)
    pred = np.where(rng.random(rows) < misses, (gold + rng.integers(1, 3, rows)) % 3, gold)
    return pl.DataFrame({**keys, "gold": gold, "pred": pred})


@pytest.mark.parametrize("seed", first(1, range(2)))
def test_a_slice_is_listed_once_by_its_reason(seed):
    """Overlapping bad slices are listed; slices that only contain them or lie in them are not."""
    log = overlapping(seed)
    planted = {
        (("a", 1), ("b", 1)),
        (("a", 1), ("c", 1)),
        (("b", 1), ("c", 1)),
        (("b", 2),),
        (("b", 2), ("c", 0)),
    }
    found = {slice_of(row) for row in log.mcc.worst(*KEYS, bins=None).rows(named=True)}
    assert found == worst_of(log, "bh").keys()
    assert len(found & planted) >= 4
    assert len(found) <= len(planted) + 1


def other_mix(seed: int, rows: int = 3000) -> pl.DataFrame:
    """Few positives if a = 1: its MCC is low, and its losses are not."""
    rng = np.random.default_rng(seed)
    keys = {name: rng.integers(0, 4, rows) for name in KEYS}
    gold = (rng.random(rows) < np.where(keys["a"] == 1, 0.05, 0.5)).astype(int)
    return pl.DataFrame({**keys, "gold": gold, "pred": gold ^ (rng.random(rows) < 0.1)})


@pytest.mark.parametrize("seed", first(1, range(3)))
def test_losses_that_say_little_explain_little(seed):
    log = other_mix(seed)
    found = {slice_of(row) for row in log.mcc.worst(*KEYS, bins=None).rows(named=True)}
    assert found == worst_of(log, "bh").keys()
    assert (("a", 1),) in found


def number_beside(seed: int, rows: int = 2500) -> pl.DataFrame:
    """Misses rise with the number c, with which b goes; and there are more if a = 1."""
    rng = np.random.default_rng(seed)
    a, c = rng.integers(0, 3, rows), rng.integers(0, 40, rows)
    b = np.where(rng.random(rows) < 0.8, c // 10, rng.integers(0, 4, rows))
    misses = 0.05 + 0.012 * c * (seed % 2 == 0) + 0.3 * (c > 24) * (seed % 2) + 0.2 * (a == 1)
    gold = rng.integers(0, 3, rows)
    pred = np.where(rng.random(rows) < misses, (gold + rng.integers(1, 3, rows)) % 3, gold)
    return pl.DataFrame({"a": a, "b": b, "c": c, "gold": gold, "pred": pred})


@pytest.mark.parametrize("seed", first(2, range(4)))
def test_a_number_is_listed_by_its_ranges(seed):
    """Other keys are compared bin by bin, and a second range must keep half of its evidence."""
    log = number_beside(seed)
    keys = [pl.col("a").cast(pl.String), pl.col("b").cast(pl.String), "c"]
    tested = log.mcc.worst("c", bins=5, verdicts=True)["c"]
    cuts = sorted(int(name[2:]) for name in tested if name.startswith("≤ "))
    answer = log.mcc.worst(*keys, bins=5)
    words = log.with_columns(keys[:2])
    wanted = worst_of(words, "bh", cuts=(*cuts,))
    found = {slice_of(row): row for row in answer.rows(named=True)}
    assert found.keys() == wanted.keys()
    assert (("a", "1"),) in found
    assert not any("b" in dict(one) for one in found)
    for slice_, numbers in wanted.items():
        for name, number in numbers.items():
            if name != "n_untested":  # Bins without rows are not counted.
                assert found[slice_][name] == pytest.approx(number, rel=1e-7, abs=1e-14), name


@pytest.mark.slow
def test_three_keys_are_crossed_if_asked_for():
    log = log_of(5, rows=2500)
    answer = log.mcc.worst(*KEYS, depth=3, bins=None)
    assert {slice_of(row) for row in answer.rows(named=True)} == worst_of(log, "bh", 3).keys()


def test_the_difference_is_that_of_by(run):
    """Compare each slice with its rest; `drift` gets both by a filter."""
    log = log_of(1)
    answer = run(log, lambda log: log.mcc.worst(*KEYS, ci=0.9, rank="gap", bins=None))
    assert answer["diff_high"].is_sorted()
    for row in answer.rows(named=True):
        inside = pl.all_horizontal(pl.col(key) == value for key, value in slice_of(row))
        change = log.mcc.drift(ci=0.9, before=~inside, after=inside).rows(named=True)[0]
        for column in ("diff", "diff_low", "diff_high"):
            assert row[column] == pytest.approx(change[column], rel=1e-9), column
        assert (row["score"], row["reference"]) == (change["score"], change["reference"])


@pytest.mark.slow
@pytest.mark.parametrize("engine", some_slow(["streaming", "in-memory"], "in-memory"))
def test_counts_models_and_weights_are_as_rows(engine):
    log = log_of(2).with_columns(other="gold", half=pl.lit(0.5), one=pl.lit(1.0))
    alone = log.mcc.worst(*KEYS)
    assert not alone.is_empty()
    counts = log.lazy().mcc.counts(*KEYS)
    from_counts = counts.mcc(weight="n").worst(*KEYS).collect(engine=engine)
    assert_frame_equal(from_counts, alone, rel_tol=1e-9)
    models = log.lazy().mcc(pred=["other", "pred"]).worst(*KEYS).collect(engine=engine)
    assert {*models["model"]} == {"pred"}
    assert_frame_equal(models.drop("model"), alone)
    weighted = log.lazy().mcc(sample_weight="half").worst(*KEYS).collect(engine=engine)
    same = ["slice", *KEYS, "score", "reference", "diff_low", "p_adjusted", "confusion"]
    in_halves = log.mcc.worst(*KEYS, min_n=60).select(same)
    assert_frame_equal(weighted.select(same), in_halves, rel_tol=1e-9)
    floats = log.lazy().mcc(weight="one").worst(*KEYS).collect(engine=engine)
    assert_frame_equal(floats.select(same), alone.select(same), rel_tol=1e-9)


def test_a_null_is_a_value_and_not_all_values(run):
    log = log_of(3).with_columns(a=pl.when(pl.col("a") != 1).then("a"))
    answer = run(log, lambda log: log.mcc.worst(*KEYS))
    assert answer.filter(pl.col("keys") == "a")["a"].to_list() == [None]
    long = run(log, lambda log: log.mcc.worst(*KEYS, long=True))
    assert {"a = null", "b = 2 and c = 3"} <= {*long["slice"]}
    assert_frame_equal(long, answer.drop(*KEYS))


@pytest.mark.parametrize("most", [20, 10**17])
def test_the_score_of_the_rest_is_that_of_what_is_left(most):
    """The score of the rest decides which slices are tested."""
    rng = np.random.default_rng(3)
    rows = [(key, gold, pred) for key in "xyz" for gold in range(4) for pred in range(4)]
    n = rng.integers(0, most, len(rows)).tolist()
    counts = pl.DataFrame(rows, schema=["key", "gold", "pred"], orient="row").with_columns(
        n=pl.Series(n)
    )
    found = counts.mcc(weight="n").worst("key", min_n=1, verdicts=True)
    assert found.height == 3
    for key, score in found.select("key", "reference").iter_rows():
        left = {}
        for (other, *pair), count in zip(rows, n, strict=True):
            if other != key:
                left[tuple(pair)] = left.get(tuple(pair), 0) + count
        assert score == pytest.approx(float(exact(left)), rel=1e-13)


@pytest.mark.parametrize("taken", [0.1 + 0.2, 0.3 - 5e-17], ids=["more", "less"])
def test_what_rounding_leaves_of_floats_is_nothing(taken):
    """Otherwise the rest of a slice would get labels that do not occur in it."""
    whole = np.array([[0.3, 1e-9]])
    for left in rest_of([np.array([[taken, 0.0]])] * 3, [whole] * 3, 0.3 * 2.0**-40):
        assert left.tolist() == [[0.0, 1e-9]]


def test_top_is_the_head(run):
    log = log_of(1)
    answer = run(log, lambda log: log.mcc.worst(*KEYS, top=2))
    assert_frame_equal(answer, log.mcc.worst(*KEYS).head(2), rel_tol=1e-9)


def test_no_row_if_no_slice_fails(run):
    rng = np.random.default_rng(0)
    log = pl.DataFrame(
        {
            **{key: rng.integers(0, 5, 4000) for key in KEYS},
            **{label: rng.integers(0, 2, 4000) for label in ("gold", "pred")},
        }
    )
    answer = run(log, lambda log: log.mcc.worst(*KEYS, verdicts=True))
    assert verdicts_of(answer) == ["not behind"] * answer["n_tested"][0]
    for top in (None, 1):
        listed = run(log, lambda log, top=top: log.mcc.worst(*KEYS, top=top))
        assert_frame_equal(listed, answer.clear())


def verdicts_of(answer: pl.DataFrame) -> list:
    return answer["verdict"].to_list()


@pytest.mark.parametrize("rows", [0, 1, 2, 40])
def test_small_logs_have_no_bad_slice(run, rows):
    answer = run(log_of(0).head(rows), lambda log: log.mcc.worst(*KEYS))
    assert_frame_equal(answer, log_of(0).mcc.worst(*KEYS).clear())


rows = st.lists(
    st.tuples(*[st.sampled_from([None, "x", "y"])] * 2, *[st.sampled_from([0, 0, 1, None])] * 2),
    max_size=60,
)


@given(rows=rows, times=st.integers(1, 30))
def test_it_holds_on_any_log(rows, times):
    """Every listed slice is behind, and no slice is tested twice."""
    schema = {"a": pl.String, "b": pl.String, "gold": pl.Int8, "pred": pl.Int8}
    log = pl.DataFrame(rows * times, schema=schema, orient="row")
    answer = log.mcc.worst("a", "b", min_n=1, correction="bonferroni", verdicts=True)
    slices = log.mcc.by(sets("a", "b", ("a", "b")))
    behind = answer.filter(pl.col("verdict").is_in(["listed"]))
    for row in behind.rows(named=True):
        assert row["score"] < row["reference"]
        assert row["diff_low"] <= row["diff"] <= row["diff_high"]
        assert row["p_value"] <= row["p_adjusted"] < 0.05
        assert row["n_tested"] + row["n_untested"] <= slices.height


@pytest.mark.parametrize(
    ("keys", "options", "message"),
    [
        ((), {}, "name the keys to slice by"),
        (("a",), {"depth": 0}, "depth must be an integer of at least 1, got 0"),
        (("a",), {"depth": None}, "depth must be an integer of at least 1, got None"),
        (("a",), {"min_n": 0}, "min_n must be an integer of at least 1"),
        (("a",), {"min_n": None}, "min_n must be an integer of at least 1, got None"),
        (("a",), {"bins": 1}, "bins must be an integer of at least 2"),
        (("a",), {"top": 0.5}, "top must be an integer"),
        (("a",), {"rank": "n"}, "rank must be one of 'loss', 'gap'"),
        (("a",), {"ci": 95}, "ci must be a confidence level"),
    ],
)
def test_options_that_make_no_sense(keys, options, message):
    with pytest.raises(ValueError, match=message):
        ask(log_of(0), "worst", *keys, **options)


@pytest.mark.slow
def test_of_a_slice_of_all_rows_no_rest_is_tested_whatever_the_order():
    """Adding floats up and subtracting them again leaves a remainder, which is not a rest."""
    rng = random.Random(3)
    rows = [
        {
            "all": "a",
            "half": half,
            "gold": gold,
            "pred": gold ^ (half == "y" and rng.random() < 0.4),
        }
        for half in "xy"
        for gold in (0, 1) * 100
    ]
    weights = [rng.random() * 10 ** rng.uniform(-3, 3) for _ in rows]
    for _ in range(6):
        rng.shuffle(rows)
        found = pl.DataFrame(rows).with_columns(w=pl.Series(weights))
        answer = found.mcc(sample_weight="w").worst("half", "all", depth=1, min_n=1, verdicts=True)
        verdicts = dict(answer.select("all", "verdict").iter_rows())
        assert verdicts["a"] == "too few rows"
        assert answer.select("n_tested", "n_untested").unique().rows() == [(2, 1)]


@pytest.mark.parametrize("metric", ["accuracy", "f1_macro", "recall", "fnr"])
def test_the_slices_that_fall_behind_in_any_metric(metric):
    """The numbers of a listed slice equal those of `drift` between the rest and the slice."""
    rng = np.random.default_rng(4)
    gold = rng.integers(0, 2, 6000)
    country, device = rng.integers(0, 5, 6000), rng.integers(0, 4, 6000)
    wrong = rng.random(6000) < np.where(country == 3, 0.35, 0.1)
    labels = {"gold": gold, "pred": np.where(wrong, 1 - gold, gold)}
    log = pl.DataFrame({"country": country, "device": device, **labels})
    described = log.mcc(positive=1)
    found = described.worst("country", "device", metric=metric, bins=None)
    [row, *_] = found.to_dicts()
    assert (row["country"], row["device"]) == (3, None)
    is_slice = pl.col("country") == 3
    [expected] = described.drift(before=~is_slice, after=is_slice, metrics=metric).to_dicts()
    for name in ("score", "reference", "diff", "diff_low", "diff_high"):
        assert row[name] == pytest.approx(expected[name], rel=1e-9), name
    overall = described.score(metrics=metric)[metric].item()
    assert row["loss"] == pytest.approx(abs(row["reference"] - overall), rel=1e-9)


def test_metrics_of_pairs_are_refused():
    log = pl.DataFrame({"key": [1], "gold": ["a"], "pred": ["a"]})
    with pytest.raises(ValueError, match="'chi2' has no interval and no test"):
        log.mcc.worst("key", metric="chi2")


def test_rows_of_one_cluster_are_as_good_as_one():
    """A log repeated four times, with each original row as a cluster, has no more evidence."""
    log = overlapping(2, rows=1600).with_row_index("id")
    alone = log.mcc.worst(*KEYS, min_n=25, correction="by")
    copies = pl.concat([log] * 4)
    clustered = copies.mcc(cluster="id").worst(*KEYS, min_n=100, correction="by")
    assert not alone.is_empty()
    same = ["keys", *KEYS, "score", "reference", "confused", "n_tested"]
    assert_frame_equal(clustered.select(same), alone.select(same))
    # With few clusters the p-value is Student's. With four times the rows the limits are closer,
    # and half a row is less.
    for n, of_rows, p in zip(alone["n"], alone["p_value"], clustered["p_value"], strict=True):
        assert 0.6 < p / (2 * t.sf(norm.isf(of_rows / 2), n - 1)) < 1.1
    assert clustered["diff_high"].to_list() == pytest.approx(alone["diff_high"].to_list(), rel=0.02)
    naive = copies.mcc.worst(*KEYS, min_n=100, correction="by", verdicts=True)
    both = clustered.join(naive, on="slice", suffix="_naive")
    assert both.height == clustered.height
    assert (both["p_value_naive"] < both["p_value"] ** 2).all()
    for row in clustered.rows(named=True):
        inside = pl.all_horizontal(pl.col(key).cast(str) == value for key, value in slice_of(row))
        change = copies.mcc(cluster="id").drift(before=~inside, after=inside)
        for column in ("diff", "diff_low", "diff_high"):
            assert row[column] == pytest.approx(change[column].item(), rel=1e-9), column


@pytest.mark.parametrize("metric", ["mcc", "f1_macro"])
def test_clusters_that_are_bad_by_themselves_make_no_bad_slice(metric):
    """A few users are bad. Without clusters, every slice with many of their rows looks bad."""
    rng = np.random.default_rng(7)
    user = rng.integers(0, 60, 6000)
    country = (user * 7) % 11
    gold = rng.integers(0, 2, 6000)
    wrong = rng.random(6000) < np.where(rng.random(60) < 0.25, 0.5, 0.05)[user]
    labels = {"gold": gold, "pred": np.where(wrong, 1 - gold, gold)}
    log = pl.DataFrame({"user": user, "country": country, **labels})
    assert log.mcc.worst("country", metric=metric).height >= 3
    found = log.mcc(cluster="user").worst("country", metric=metric)
    assert verdicts_of(found).count("listed") <= 1


def test_clusters_that_differ_make_no_bad_slice():
    """The list begins by evidence by cluster: by row, some slice of most logs is behind."""
    of_rows = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        user, moved = rng.integers(0, 400, 12_000), rng.normal(size=400)
        keys = {name: rng.integers(0, 5, 400)[user] for name in "ab"}
        gold = rng.integers(0, 2, 12_000)
        wrong = rng.random(12_000) < 1 / (1 + np.exp(2.2 - 0.8 * moved[user]))
        frame = {"user": user, **keys, "c": rng.integers(0, 5, 12_000), "gold": gold}
        log = pl.DataFrame({**frame, "pred": gold ^ wrong})
        of_rows.append(log.mcc.worst("a", "b", "c", bins=None).height)
        assert log.mcc(cluster="user").worst("a", "b", "c", bins=None).is_empty()
    assert sum(n > 0 for n in of_rows) >= 2


def test_every_slice_that_was_looked_at_has_a_verdict(run):
    log = log_of(2)
    answer = run(log, lambda log: log.mcc.worst(*KEYS, verdicts=True, min_n=100))
    listed = log.mcc.worst(*KEYS, min_n=100)
    assert_frame_equal(answer.filter(pl.col("verdict") == "listed"), listed)
    assert answer["verdict"].is_sorted()
    assert answer["verdict"].n_unique() == 3
    [tested] = answer["n_tested"].unique()
    assert answer.filter(pl.col("verdict") != "no interval").height == tested
    assert answer.select("keys", *KEYS).n_unique() == answer.height
    slices = log.mcc.by(sets("a", "b", "c", ("a", "b"), ("a", "c"), ("b", "c")))
    n = {slice_of(row): (row["n"], row["mcc"]) for row in slices.rows(named=True)}
    for row in answer.rows(named=True):
        key = tuple((key, int(value)) for key, value in slice_of(row))
        assert (row["n"], row["score"]) == pytest.approx(n[key])
    bar = 0.05 * listed.height / tested
    others = answer.filter(pl.col("verdict") == "not behind")
    assert others["p_value"].is_sorted()
    assert others["p_value"].min() > bar
    expected = (others["p_value"] * tested / (listed.height + 1)).clip(upper_bound=1)
    assert others["p_adjusted"].to_list() == pytest.approx(expected.to_list())
    told = answer.filter(pl.col("verdict") == "explained by those listed")
    assert told["p_value"].max() <= bar
    assert told["p_adjusted"].null_count() == told.height > 0


def test_numbers_and_times_are_found_without_preparation(run):
    rng = np.random.default_rng(3)
    rows = 8000
    days = rng.integers(0, 100, rows)
    columns = {
        "age": rng.integers(18, 90, rows),
        "income": rng.lognormal(3, 1, rows),
        "at": pl.Series(days).cast(pl.Int32).cast(pl.Date) + pl.duration(days=20_500),
        "country": rng.choice(["DE", "FR", "IT"], rows),
    }
    gold = rng.integers(0, 2, rows)
    is_bad = (columns["age"] > 63) | ((days >= 60) & (columns["country"] == "FR"))
    wrong = rng.random(rows) < np.where(is_bad, 0.3, 0.08)
    frame = {**columns, "gold": gold, "pred": np.where(wrong, 1 - gold, gold)}
    frame["at"] = pl.select(pl.date(2026, 1, 5) + pl.duration(days=pl.Series(days))).to_series()
    log = pl.DataFrame(frame)
    answer = run(log, lambda log: log.mcc.worst("age", "income", "at", "country"))
    found = {row["keys"]: row for row in answer.rows(named=True)}
    assert answer.height <= 3
    above = int(found["age"]["age"].removeprefix("> "))
    assert 58 <= above <= 69  # the deciles next to 63
    assert found["age"]["n"] == (log["age"] > above).sum()
    both = found["at, country"]
    assert (both["at"].split()[0], both["country"]) == ("from", "FR")
    assert "2026-03-02" <= both["at"].split()[1] <= "2026-03-16"
    assert answer.schema["age"] == answer.schema["at"] == pl.String


@in_turn(dtype=[pl.Time(), *(pl.Duration(unit) for unit in ("ms", "us", "ns"))])
def test_durations_and_times_of_the_day_are_cut(dtype):
    """At whole seconds; null is a value of its own, and few values stay as they are."""
    rng = np.random.default_rng(3)
    seconds = rng.integers(0, 7200, 4000)
    unit = 10 ** (9 if dtype == pl.Time else {"ms": 3, "us": 6, "ns": 9}[dtype.time_unit])
    ticks = pl.Series(seconds * unit + rng.integers(0, unit, 4000))
    gold = rng.integers(0, 2, 4000)
    wrong = rng.random(4000) < np.where(seconds > 5400, 0.3, 0.08)
    log = pl.DataFrame({"at": ticks.cast(dtype), "gold": gold, "pred": gold ^ wrong})
    log = log.with_columns(at=pl.when(pl.int_range(4000) % 50 > 0).then("at"))
    answer = log.mcc.worst("at")
    [row] = answer.to_dicts()
    above = row["at"].removeprefix("> ")
    if dtype == pl.Time:
        at = pl.Series([above]).str.to_time("%H:%M:%S").to_physical().item() / unit
    else:
        parts = {part[-1]: int(part[:-1]) for part in above.split()}
        at = sum(parts.get(one, 0) * size for one, size in (("h", 3600), ("m", 60), ("s", 1)))
    assert abs(at - 5400) <= 720
    assert at % 60 == 0
    assert row["n"] == (log["at"].to_physical() > at * unit).sum()
    assert row["slice"] == f"at > {above}"
    every = log.mcc.worst("at", verdicts=True)
    assert None in every["at"]
    assert every["slice"].str.contains(" < at ≤ ").any()
    few = log.with_columns(pl.lit(1).cast(dtype).alias("at")).mcc.worst("at", verdicts=True)
    assert few["at"].n_unique() == few.height == 1
    assert few.schema["at"] == pl.String


def test_the_confusion_that_costs_most():
    rng = np.random.default_rng(0)
    gold = rng.choice(["cat", "dog", "fox"], 3000, p=[0.6, 0.3, 0.1])
    place = rng.choice(["in", "out"], 3000)
    is_wrong = rng.random(3000) < np.where((place == "out") & (gold == "dog"), 0.5, 0.05)
    pred = np.where(is_wrong, np.where(gold == "dog", "fox", "dog"), gold)
    log = pl.DataFrame({"place": place, "gold": gold, "pred": pred})
    [row] = log.mcc.worst("place").rows(named=True)
    assert (row["place"], row["confused_gold"], row["confused_pred"]) == ("out", "dog", "fox")
    for is_out, share in ((True, row["confused"]), (False, row["confused_rest"])):
        dogs = log.filter((pl.col("place") == "out") == is_out, gold="dog")
        assert share == pytest.approx((dogs["pred"] == "fox").mean())


def test_a_label_without_rows_in_a_slice_has_no_confusion_there():
    rng = np.random.default_rng(0)
    place = rng.choice(["in", "out"], 3000)
    gold = np.where(place == "out", rng.choice(["a", "b"], 3000), rng.choice(["a", "b", "z"], 3000))
    is_wrong = rng.random(3000) < np.where(place == "out", 0.4, 0.05)
    pred = np.where(is_wrong, np.where(gold == "a", "b", "a"), gold)
    log = pl.DataFrame({"place": place, "gold": gold, "pred": pred})
    [row, _] = log.mcc.worst("place", verdicts=True).rows(named=True)
    assert (row["place"], row["confused_gold"] in {"a", "b"}) == ("out", True)
    assert 0.3 < row["confused"] < 0.5


def test_a_key_that_another_one_tells_adds_nothing():
    """If one key determines another, as city determines country, each slice is tested once."""
    log = log_of(0).with_columns(half=pl.col("a") // 2, name="v" + pl.col("a").cast(str))
    answer = log.mcc.worst("a", "half", depth=2, bins=None, verdicts=True)
    assert answer.height == answer["n_tested"][0] == 4 + 2
    [row, *_] = log.mcc.worst("a", "half", "name", depth=3).rows(named=True)
    assert row["keys"] in {"a", "name"}
    assert (
        log.mcc.worst("a", "half", "name", depth=3).filter(pl.col("keys") != row["keys"]).is_empty()
    )


@pytest.mark.parametrize(
    "options",
    some_slow([{}, {"long": True}, {"bins": None, "verdicts": True}], {}, {"long": True}),
    ids=str,
)
def test_the_schema_is_known_before_anything_is_read(options):
    log = log_of(0).with_columns(at=pl.date(2026, 1, 1), x=pl.col("a") / 2)
    for described in (log.lazy().mcc, log.lazy().mcc(pred=["pred", "gold"], sample_weight="x")):
        answer = described.worst("a", "x", "at", **options)
        assert answer.collect_schema() == answer.collect().schema


def test_a_log_of_no_labels_has_no_slices():
    log = pl.DataFrame({"key": ["x", "y"], "gold": [None, None], "pred": [None, None]})
    assert log.mcc.worst("key", verdicts=True, min_n=1).height == 0


def noise(rows: int = 2000) -> pl.DataFrame:
    """A log in which no slice is bad."""
    rng = np.random.default_rng(1)
    gold = rng.integers(0, 2, rows)
    return pl.DataFrame(
        {
            "key": rng.integers(0, 20, rows).astype(str),
            "other": rng.integers(0, 4, rows),
            "gold": gold,
            "pred": np.where(rng.random(rows) < 0.15, 1 - gold, gold),
            "two": np.arange(rows) % 2,
            "x": rng.random(rows),
        }
    )


@pytest.mark.parametrize("cluster", ["key", pl.lit(1).alias("one"), "two"], ids=str)
def test_few_clusters_tell_little(cluster):
    """A slice of one cluster has no p-value; a slice of two has Student's t with one degree."""
    assert "listed" not in verdicts_of(noise().mcc(cluster=cluster).worst("key", "other"))


@pytest.mark.parametrize("name", ["slice", "n", "loss", "verdict", "confusion", "n_null"])
def test_a_key_with_the_name_of_a_column_of_the_answer_is_refused(name):
    log = log_of(0).with_columns(pl.col("a").alias(name))
    with pytest.raises(pl.exceptions.DuplicateError, match=f"key '{name}' has the name"):
        log.mcc.worst(name)


def test_a_word_null_is_not_null():
    log = noise(1200).with_columns(
        key=pl.Series(["b"] * 300 + ["a"] * 560 + [None] * 320 + ["null"] * 20)
    )
    n = log.mcc.worst("key", verdicts=True).select("key", "n").rows()
    assert {*n} == {("a", 560), ("b", 300), (None, 320)}


@pytest.mark.parametrize("outlier", [1e9, -1.7e308, math.inf, math.nan])
def test_an_outlier_does_not_hide_a_key_of_numbers(outlier):
    log = noise().with_columns(
        pred=pl.when((pl.col("x") < 0.1) & (pl.int_range(pl.len()) % 2 == 0))
        .then(1 - pl.col("gold"))
        .otherwise("pred")
    )
    wild = log.head(1).with_columns(x=pl.lit(outlier))
    [row] = pl.concat([log, wild]).mcc.worst("x").rows(named=True)
    assert float(row["x"].removeprefix("≤ ")) == pytest.approx(0.1, abs=0.01)


def test_a_counts_table_is_cut_as_its_log_is():
    rng = np.random.default_rng(0)
    log = noise().with_columns(x=np.minimum(rng.geometric(0.05, 2000), 200))
    of_log = log.mcc.worst("x", "other", verdicts=True)
    of_counts = log.mcc.counts("x", "other").mcc(weight="n").worst("x", "other", verdicts=True)
    assert_frame_equal(of_counts, of_log)
    assert of_log["x"].drop_nulls().str.starts_with("≤").any()


@pytest.mark.slow
def test_two_runs_say_the_same():
    """The choice between two equal keys and the order of the other slices are stable too."""
    log = log_of(1).with_columns(twin="a")
    first = log.mcc.worst("a", "twin", "b", verdicts=True)
    assert first.filter(pl.col("verdict") == "listed")["keys"][0] == "a"
    for engine in ("streaming", "in-memory", "streaming"):
        again = log.lazy().mcc.worst("a", "twin", "b", verdicts=True).collect(engine=engine)
        assert_frame_equal(again, first, rel_tol=1e-12)


@pytest.mark.release
def test_a_list_has_an_end():
    rng = np.random.default_rng(1)
    key = rng.integers(0, 260, 39_000)
    gold = rng.integers(0, 2, 39_000)
    wrong = rng.random(39_000) < np.where(key < 110, 0.6, 0.02)
    log = pl.DataFrame(
        {"key": key.astype(str), "gold": gold, "pred": np.where(wrong, 1 - gold, gold)}
    )
    answer = log.mcc.worst("key", verdicts=True)
    verdicts = dict(answer["verdict"].cast(pl.String).value_counts().rows())
    assert verdicts == {"listed": 100, "beyond the list": 10, "not behind": 150}
    assert log.mcc.worst("key", top=200).height == 110
    assert log.mcc.worst("key", top=5).height == 5


@pytest.mark.slow
def test_what_is_not_behind_would_not_be_listed_next():
    for seed in range(12):
        answer = log_of(seed, rows=1200, wrong=0.2).mcc.worst(*KEYS, verdicts=True)
        others = answer.filter(pl.col("verdict") == "not behind")
        assert (others["p_adjusted"] > 0.05).all()
        assert (answer.filter(pl.col("verdict") == "listed")["p_adjusted"] <= 0.05).all()


def test_counts_are_no_rates():
    log = pl.DataFrame({"key": ["x"], "gold": [True], "pred": [True]})
    with pytest.raises(ValueError, match="'tp' counts rows, and large slices have more"):
        log.mcc(positive=True).worst("key", metric="tp")


@pytest.mark.parametrize("columns", some_slow([{}, {"cluster": "cluster"}], {}), ids=str)
def test_rows_that_are_not_scored_change_nothing(columns):
    log = overlapping(1).with_columns(cluster=pl.int_range(pl.len()) // 3)
    none = pl.lit(None, pl.Int64)
    nothing = log.head(600).with_columns(gold=none, cluster=pl.int_range(pl.len()) % 5)
    both = pl.concat([log, nothing, log.head(300).with_columns(pred=none)])
    alone = log.mcc(**columns).worst(*KEYS)
    with_nulls = both.mcc(**columns).worst(*KEYS)
    assert alone.height >= 3
    assert_frame_equal(with_nulls.drop("n_null"), alone.drop("n_null"), rel_tol=1e-9)
    assert with_nulls["n_null"].sum() > 0


def beside(seed: int, rate: float, share: float = 0.2, rows: int = 8000) -> pl.DataFrame:
    """A log in which DE, a share of the rows, errs more; its keys of numbers do not matter."""
    rng = np.random.default_rng(seed)
    others = ["FR", "US", "GB", "IT"]
    p = [share, *[(1 - share) / len(others)] * len(others)]
    country = rng.choice(["DE", *others], rows, p=p)
    numbers = {f"x{place}": rng.normal(size=rows) for place in range(3)}
    gold = rng.integers(0, 3, rows)
    is_wrong = rng.random(rows) < np.where(country == "DE", rate, 0.1)
    pred = np.where(is_wrong, (gold + rng.integers(1, 3, rows)) % 3, gold)
    return pl.DataFrame({"country": country, **numbers, "gold": gold, "pred": pred})


@pytest.mark.parametrize("seed", range(2))
def test_a_slice_is_named_by_its_cause(seed):
    """With many ranges of numbers, some part of DE has more evidence than DE, by chance."""
    log = beside(seed, 0.2)
    found = log.mcc.worst("country", "x0", "x1", "x2", verdicts=True)
    assert found.filter(verdict="listed")["slice"].to_list() == ["country = DE"]
    parts = found.filter(pl.col("slice").str.starts_with("country = DE and "))
    assert "explained by those listed" in parts["verdict"]


def test_a_slice_with_most_rows_is_listed_like_any_other():
    log = beside(1, 0.2, share=0.7)
    [row] = log.mcc.worst("country", depth=1).rows(named=True)
    assert (row["slice"], row["verdict"]) == ("country = DE", "listed")
    assert row["diff_high"] < 0
    assert log.mcc.worst("country", depth=1, max_share=0.6).is_empty()
    found = log.mcc.worst("country", depth=1, max_share=0.6, verdicts=True)
    assert dict(found.select("slice", "verdict").rows())["country = DE"] == "too few rows"
    for share in (0, -1, 1.1, None):
        with pytest.raises(ValueError, match="max_share is the largest share"):
            log.mcc.worst("country", max_share=share)


def test_a_slice_with_most_rows_hides_no_other():
    """Nearly all rows of tv are of DE, and tv is much worse than the rest of DE."""
    rng = np.random.default_rng(5)
    is_de = rng.random(8000) < 0.6
    is_tv = rng.random(8000) < np.where(is_de, 0.15, 0.005)
    gold = rng.integers(0, 3, 8000)
    is_wrong = rng.random(8000) < np.select([is_tv, is_de], [0.5, 0.25], 0.1)
    log = pl.DataFrame(
        {
            "country": np.where(is_de, "DE", "FR"),
            "device": np.where(is_tv, "tv", "web"),
            "gold": gold,
            "pred": np.where(is_wrong, (gold + rng.integers(1, 3, 8000)) % 3, gold),
        }
    )
    answer = log.mcc.worst("country", "device", depth=1, verdicts=True)
    verdicts = dict(answer.select("slice", "verdict").rows())
    assert verdicts["device = tv"] == verdicts["country = DE"] == "listed"


def test_what_explains_a_slice_is_named():
    """Rows of tv fail. Nearly all of them are of DE, which is behind for no other reason."""
    rng = np.random.default_rng(2)
    is_tv, is_de = (rng.random(6000) < share for share in (0.2, 0.4))
    is_de |= is_tv & (rng.random(6000) < 0.9)
    is_old = rng.random(6000) < 0.5
    gold = rng.integers(0, 2, 6000)
    pred = gold ^ (rng.random(6000) < 0.1 + 0.2 * is_tv)
    log = pl.DataFrame({"tv": is_tv, "de": is_de, "old": is_old, "gold": gold, "pred": pred})
    answer = log.mcc.worst("tv", "de", "old", depth=1, verdicts=True)
    by = dict(answer.select("slice", "explained_by").rows())
    assert answer["verdict"].to_list().count("listed") == 1
    assert by["de = true"] == "tv = true"
    assert by["tv = true"] is by["old = true"] is by["de = false"] is None


NAMES = ["by:verdict", "by:order", "order", "verdict_", "said", "first"]


@pytest.mark.parametrize("key", first(3, NAMES))
def test_a_key_of_any_name_is_searched(key):
    log = beside(1, 0.3)
    expected = log.mcc.worst("country", depth=1)
    found = log.rename({"country": key}).mcc.worst(key, depth=1)
    assert_frame_equal(
        found.drop("slice", "keys"),
        expected.drop("slice", "keys").rename({"country": key}),
    )


@pytest.mark.slow
@pytest.mark.parametrize("options", some_slow([{}, {"sample_weight": "w"}], {}))
def test_ties_have_one_order(options):
    """Many small slices have equal p-values, up to the last digits of a sum of floats."""
    rng = np.random.default_rng(713)
    keys = {name: rng.integers(0, 6, 60) for name in "ab"}
    sides = {name: rng.integers(0, 3, 60) for name in ("gold", "pred", "other")}
    log = pl.DataFrame({**keys, **sides, "w": rng.random(60)})
    asked = {"min_n": 1, "verdicts": True, "bins": None}
    first = log.mcc(pred=["pred", "other"], **options).worst("a", "b", **asked)
    lazy = log.lazy().mcc(pred=["pred", "other"], **options).worst("a", "b", **asked)
    for engine in ("streaming", "in-memory"):
        assert_frame_equal(lazy.collect(engine=engine), first, rel_tol=1e-9)


def test_the_nearest_slice_is_described_as_a_listed_one_is():
    log = beside(2, 0.1)
    row, *others = log.mcc.worst("country", depth=1, verdicts=True).rows(named=True)
    assert [other["diff_low"] for other in others] == [None] * len(others)
    assert row["verdict"] == "not behind"
    inside = pl.col("country") == row["country"]
    [change] = log.mcc.drift(before=~inside, after=inside).rows(named=True)
    for name in ("diff", "diff_low", "diff_high"):
        assert row[name] == pytest.approx(change[name])
    [given] = log.mcc.contrast("country", to="expected").filter(inside).rows(named=True)
    assert row["expected"] == pytest.approx(given["expected"], rel=1e-12)
    assert row["confused"] > row["confused_rest"]
    both = log.with_columns(other="gold").mcc(pred=["pred", "other"])
    described = both.worst("country", depth=1, verdicts=True).drop_nulls("diff_low")
    assert described["model"].to_list() == ["pred", "other"]


@pytest.mark.parametrize("metric", some_slow(["mcc", "accuracy", "fnr"], "accuracy"))
def test_given_its_labels(metric):
    """One place has other labels, and one errs more; only one of them is worse than expected."""
    rng = np.random.default_rng(4)
    place = rng.choice(["harder", "worse", "c", "d"], 12_000)
    gold = rng.random(12_000) < np.where(place == "harder", 0.05, 0.5)
    wrong = rng.random(12_000) < np.where(place == "worse", 0.3, 0.15)
    log = pl.DataFrame({"place": place, "gold": gold, "pred": gold ^ wrong})
    found = log.mcc.worst("place", metric=metric, to="expected", verdicts=True)
    assert found.filter(verdict="listed")["place"].to_list() == ["worse"]
    to_rest = log.mcc.worst("place", metric=metric, verdicts=True)
    if metric == "mcc":
        assert {*to_rest.filter(verdict="listed")["place"]} == {"worse", "harder"}
    turn = -1 if metric == "fnr" else 1
    contrast = log.mcc.contrast("place", to="expected", metrics=metric)
    same = ["place", "metric", "score", "expected", "diff", "diff_low", "diff_high"]
    listed = found.filter(verdict="listed").select(same)
    expected = contrast.filter(place="worse").select(same)
    assert_frame_equal(listed, expected, rel_tol=1e-9)
    for row in found.rows(named=True):
        behind = turn * (row["score"] - row["expected"]) < 0
        [p] = contrast.filter(place=row["place"])["p_value"]
        assert row["p_value"] == (pytest.approx(p, rel=1e-6) if behind else 1.0)


@pytest.mark.parametrize("options", [{"cluster": "place"}, {"sample_weight": "w"}], ids=str)
def test_what_given_its_labels_does_not_take(options):
    log = pl.DataFrame({"place": ["a", "b"], "gold": [0, 1], "pred": [0, 1], "w": 1.0})
    with pytest.raises(ValueError, match="does not support"):
        log.mcc(**options).worst("place", to="expected")


I = pl.int_range(600)  # noqa: E741
LACKING = pl.select(  # slice 0 has no positive row, 1 predicts none, 2 has no negative row
    k=I % 4,
    j=(I // 4) % 3,
    gold=((I * 7 % 5 < 2) & (I % 4 != 0)) | (I % 4 == 2),
    pred=(I * 11 % 7 < 3) & (I % 4 != 1),
    s=(I * 13 % 17) / 17,
)
RATES = [
    metric
    for metric, origin, no_interval in metrics().select("metric", "from", "no_interval").rows()
    if not no_interval
    and origin != "pairs"
    and metric not in {"tp", "fp", "fn", "tn", "lr_pos", "lr_neg", "dor"}
]


@in_turn(2, metric=RATES, zero_division=[0.0, None, 1.0])
def test_a_slice_that_cannot_be_tested_has_the_score_of_by(metric, zero_division):
    """A slice without positive rows has no recall: null is not 0, and 0 is not 1."""
    of_scores = metric in {"roc_auc", "average_precision", "brier", "log_loss"}
    given = {"score": "s"} if of_scores else {}
    given = {"positive": True, "zero_division": zero_division, **given}
    asked = {"metric": metric, "min_n": 1, "bins": None}
    found = LACKING.mcc(**given).worst("k", "j", **asked, depth=1, verdicts=True)
    assert {0, 1, 2} <= {*found["k"]}

    def scored(rows: list[pl.DataFrame]) -> list[float | None]:
        """The score of each frame; None if it has no rows."""
        parts = (frame.with_columns(part=place) for place, frame in enumerate(rows))
        scores = pl.concat(parts).mcc(**given).by("part", metrics=metric)
        of_part = dict(scores.select("part", metric).iter_rows())
        return [of_part.get(place) for place in range(len(rows))]

    is_in = [pl.col(row["keys"]) == row[row["keys"]] for row in found.iter_rows(named=True)]
    heres, rests = (
        scored([LACKING.filter(one) for one in some]) for some in (is_in, [~one for one in is_in])
    )
    for row, here, rest in zip(found.iter_rows(named=True), heres, rests, strict=True):
        want = {"score": here, "reference": rest}
        assert {name: row[name] for name in want} == pytest.approx(want, abs=1e-12)
        diff = None if here is None or rest is None else here - rest
        assert row["diff"] == pytest.approx(diff, abs=1e-12)
    nearest = LACKING.filter(pl.col("k") == 0).mcc(**given).worst("j", **asked, verdicts=True)
    for row in nearest.head(1).iter_rows(named=True):
        [want] = scored([LACKING.filter(k=0, j=row["j"])])
        assert row["score"] == pytest.approx(want, abs=1e-12)


def test_a_key_that_looks_like_a_score_is_searched_without_predictions():
    """There is no model whose predictions the key could sort better than."""
    gold = [True, False] * 60
    key = [0.3 if is_true else 0.1 for is_true in gold]
    log = pl.DataFrame({"gold": gold, "key": key, "s": [0.2, 0.4, 0.9] * 40})
    found = log.mcc(score="s").worst("key", metric="brier", verdicts=True)
    assert {*found["slice"]} <= {"key = 0.1", "key = 0.3"}
