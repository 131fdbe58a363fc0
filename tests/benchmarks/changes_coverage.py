"""How often `changes` finds a change, where nothing changes and where a model gets worse.

    python tests/benchmarks/changes_coverage.py [--samples 2000]

Logs are simulated as counts by day: a Poisson number of rows of each label in each day, which are
predicted at the rates of the day. Most tables call the arrays of the product, of many logs at once;
first, they are compared with the verb.

1. Nothing changes. How many times as often as it should a p-value is below 0.05, 0.01, 1/365, and
   1/365/50, the level of one night and one of 50 slices. The last is too rare to be counted, so
   samples are weighted (importance sampling, see `Tilts`).
2. Nights: each night, `changes` of the last 90 days of 50 slices, for 20 years, at the level 1/365
   with Holm's correction.
3. Recall falls from 0.70 to 0.55, beside a comparison of the last 30 days with the days before.
4. Recall wanders from day to day.
5. Coverage of the limits of the difference.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from typing import NamedTuple

import numpy as np
import polars as pl
from measuring import print_head, print_row
from numpy.typing import NDArray

import polars_mcc  # noqa: F401 - registers the namespace
from polars_mcc._comparisons.change_point import RowsInTime, Steps

Array = NDArray[np.float64]
LEVELS = {"0.05": 0.05, "0.01": 0.01, "1/365": 1 / 365, "1/365/50": 1 / 365 / 50}
TILTS = (2.5, 3.5, 4.5)
MIN_N = 30
FIRST = date(2026, 1, 5)  # a Monday
CELLS = 1_000_000  # of a batch of samples
AT_ONCE = 500  # logs
SLICES, SEEN = 50, 90  # of a night: slices, and days that it looks at


@dataclass(frozen=True)
class Setting:
    """Rates of predictions, gold by prediction, and the mean rows of each label in each day."""

    rates: Array
    rows: Array


def rng_of(*labels: object) -> np.random.Generator:
    """Numbers of a row of a table: a part of the rows is as in the whole table."""
    return np.random.default_rng([*"|".join(map(str, labels)).encode()])


def two(found: float = 0.7, false: float = 0.05) -> Array:
    return np.array([[1 - false, false], [1 - found, found]])


def many(found: float, classes: int) -> Array:
    return np.where(np.eye(classes, dtype=bool), found, (1 - found) / (classes - 1))


def of_two(positive: Array) -> Array:
    """The shares of both labels in each day."""
    return np.stack([1 - positive, positive], -1)


def weekend(days: int) -> NDArray[np.bool_]:
    return np.arange(days) % 7 >= 5


def mixes(days: int, rows: int) -> dict[str, Setting]:
    """Logs in which nothing changes but, perhaps, the labels."""
    even, rare = np.full(days, 0.5), np.full(days, 0.05)
    rising = np.linspace(0.05, 0.3, days)
    weekly = of_two(np.where(weekend(days), 0.3, 0.05))
    busy = rows * np.where(weekend(days), 0.3, 1.28)[:, None]
    five = np.tile([0.4, 0.3, 0.15, 0.1, 0.05], (days, 1))
    ten = np.tile([0.5, 0.2, 0.1, 0.05, 0.05, 0.04, 0.03, 0.01, 0.01, 0.01], (days, 1))
    return {
        "50:50": Setting(two(), rows * of_two(even)),
        "95:5": Setting(two(), rows * of_two(rare)),
        "95:5, few errors": Setting(two(0.95, 0.005), rows * of_two(rare)),
        "90:10, few predictions": Setting(two(0.05, 0.005), rows * of_two(2 * rare)),
        "95:5, few rows on weekends": Setting(two(), busy * of_two(rare)),
        "5 % positives, 30 % on weekends": Setting(two(), rows * weekly),
        "positives rise from 5 to 30 %": Setting(two(), rows * of_two(rising)),
        "positives fall from 30 to 5 %": Setting(two(), rows * of_two(rising[::-1])),
        "five classes": Setting(many(0.8, 5), rows * five),
        "ten classes, rates 0.97": Setting(many(0.97, 10), rows * ten),
    }


def influence(tables: Array) -> Array:
    """How far a row moves the MCC of its table, less the mean; 0 if there is no MCC."""
    with np.errstate(all="ignore"):
        p = tables / tables.sum((-2, -1), keepdims=True)
        gold, pred = p.sum(-1)[..., :, None], p.sum(-2)[..., None, :]
        of_gold, of_pred = (1 - (side**2).sum((-2, -1), keepdims=True) for side in (gold, pred))
        root = np.sqrt(of_gold * of_pred)
        hits = np.einsum("...kk->...", p)[..., None, None]
        mcc = (hits - (p.sum(-1) * p.sum(-2)).sum(-1)[..., None, None]) / root
        slopes = (np.eye(p.shape[-1]) - pred.swapaxes(-1, -2) - gold.swapaxes(-1, -2)) / root
        slopes += mcc * (pred / of_pred + gold / of_gold)
        moved = slopes - (p * slopes).sum((-2, -1), keepdims=True)
    return np.nan_to_num(moved, posinf=0, neginf=0)


def steps_of(counts: Array) -> Steps:
    """The steps of logs, from counts: samples × days × gold × prediction."""
    samples, days, k, _ = counts.shape
    flat = counts.reshape(samples, days, k * k)
    sample, day, pair = np.nonzero(flat)
    rows = RowsInTime(sample, day, sample * k * k + pair, flat[sample, day, pair].astype(float))
    gold = np.tile(np.repeat(np.arange(k), k), samples)
    return Steps.of(samples, rows, gold, influence(counts.sum(1)).ravel())


def parts_of(number: int, size: int) -> Iterator[slice]:
    """Batches of so many samples."""
    return (slice(start, min(start + size, number)) for start in range(0, number, size))


class Found(NamedTuple):
    """The largest change of each log: its p-value, and the first day after."""

    p: Array
    since: NDArray[np.int64]


def largest(counts: Array, max_changes: int = 3) -> Found:
    """The largest changes as `changes` finds them; with 0, without dispersion."""
    parts = [(np.zeros(0), np.zeros(0, np.int64))]
    for part in parts_of(len(counts), AT_ONCE):
        steps = steps_of(counts[part])
        dispersion = np.ones(part.stop - part.start)
        if max_changes:
            dispersion = steps.dispersion(max_changes, np.arange(counts.shape[1]) // 7)
        split = steps.split(MIN_N, 0.01, dispersion, falls=True, rises=False)
        parts.append((np.nan_to_num(split.p_value, nan=1.0), split.since))
    return Found(*map(np.concatenate, zip(*parts, strict=True)))


def tilted(rates: Array, theta: Array, x: Array) -> Array:
    return rates * np.exp(np.clip(theta[..., None] * x, -600, 600))


class Tilts:
    """Logs in which large changes are frequent, and the weight of each as one of a setting.

    A log gets worse on a random day, by a random amount, or not at all. It does so by exponential
    tilting: a row has a rate that is larger by exp(θ · what it adds to U). If K(θ) are the
    cumulants of U in the setting, θ is such that √(2 (θ K' - K)), about the number of standard
    errors, is one of `TILTS`. The weight is the likelihood of the setting over the mean likelihood
    of all days and amounts, so it is at most 4.

    D. Q. Naiman and C. E. Priebe, Computing scan statistic p values using importance sampling,
    Journal of Computational and Graphical Statistics 10 (2001) 296-328.
    """

    def __init__(self, setting: Setting) -> None:
        rates, rows = setting.rates, setting.rows
        n = rows.cumsum(0)
        is_split = (n.sum(1) >= MIN_N) & (rows.sum() - n.sum(1) >= MIN_N)
        self.last = np.flatnonzero(is_split[:-1])
        size, n = n[-1], n[self.last, None]
        phi = influence(rates * size[:, None])
        x = phi - (rates * phi).sum(-1, keepdims=True)
        left = (size - n) / size
        low = np.zeros((len(self.last), len(TILTS)))
        high = low + 1e3 / np.abs(x).max()
        for _ in range(50):
            theta = (low + high) / 2
            k, slope = np.zeros((2, *theta.shape))
            for of_side, share in ((n, left), (size - n, left - 1)):
                raised = tilted(rates, theta[..., None] * share, x)
                mean = raised.sum(-1)
                k += (of_side * np.log(mean)).sum(-1)
                slope += (of_side * share * (raised * x).sum(-1) / mean).sum(-1)
            is_more = 2 * (theta * slope - k) > np.square(TILTS)
            low, high = np.where(is_more, low, theta), np.where(is_more, theta, high)
        sides = [tilted(rates, theta[..., None] * share, x) for share in (left, left - 1)]
        self.setting = setting
        self.rates = [raised / raised.sum(-1, keepdims=True) for raised in sides]

    def drawn(self, samples: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Counts of so many logs, and their weights."""
        rates, rows = self.setting.rates, self.setting.rows
        gold = rng.poisson(rows, (samples, *rows.shape))
        split = rng.integers(len(self.last), size=samples)
        amount = rng.integers(len(TILTS) + 1, size=samples)
        is_before = np.arange(len(rows)) <= self.last[split][:, None]
        plain = np.broadcast_to(rates, (len(self.last), 1, *rates.shape))
        before, after = (np.append(side, plain, 1)[split, amount][:, None] for side in self.rates)
        own = np.where(is_before[..., None, None], before, after)
        counts = rng.multinomial(gold, own)
        flat = counts.reshape(*counts.shape[:2], -1)
        parts = flat.cumsum(1)
        early, late = (np.log(side / rates).reshape(*side.shape[:2], -1) for side in self.rates)
        log = np.einsum("stc,tzc->stz", parts[:, self.last], early - late, optimize=True)
        log += np.einsum("sc,tzc->stz", parts[:, -1], late, optimize=True)
        of_tilts = np.exp(log).mean((1, 2))
        return counts, (len(TILTS) + 1) / (1 + len(TILTS) * of_tilts)


def times_too_often(setting: Setting, samples: int, rng: np.random.Generator) -> Array:
    """How many times as often as it should p is below each level. Fewer samples of large logs."""
    tilts, size = Tilts(setting), CELLS // (len(setting.rows) * setting.rates.size)
    samples = max(samples // 5, min(samples, 20 * size))
    found = np.zeros(len(LEVELS))
    for part in parts_of(samples, size):
        counts, weights = tilts.drawn(part.stop - part.start, rng)
        p = largest(counts).p
        found += [weights[p < level].sum() / level for level in LEVELS.values()]
    return found / samples


def print_none(samples: int) -> None:
    print_head(["nothing changes", "rows a day"], [f"times p < {level}" for level in LEVELS])
    for name, rows in itertools.product(mixes(14, 1), (5, 60, 1000)):
        of_days = [
            times_too_often(mixes(days, rows)[name], samples, rng_of(name, rows, days))
            for days in (14, 60, 365)
        ]
        print_row(name, rows, *(f"{most:.2f}" for most in np.max(of_days, 0)))
    print()


def drawn(setting: Setting, samples: int, rng: np.random.Generator) -> Array:
    """Counts of logs: samples × days × gold × prediction."""
    return rng.multinomial(rng.poisson(setting.rows, (samples, *setting.rows.shape)), setting.rates)


def print_nights(years: int) -> None:
    """False nights of slices of 5 to 200 rows a day with 5 to 50 % positives."""
    level, rng = 1 / 365 / SLICES, rng_of("nights")
    ends = ((5, 200), (0.05, 0.5))
    rows, positive = (rng.permutation(np.geomspace(*each, SLICES)) for each in ends)
    of_day = rows[:, None, None] * of_two(positive)[:, None]
    found: dict[str, list[NDArray[np.bool_]]] = {"with dispersion": [], "without": []}
    for _ in range(years):
        gold = rng.poisson(np.broadcast_to(of_day, (SLICES, 364 + SEEN, 2)))
        counts = rng.multinomial(gold, two())
        seen = np.lib.stride_tricks.sliding_window_view(counts, SEEN, axis=1)
        seen = np.moveaxis(seen, -1, 2).reshape(-1, SEEN, 2, 2)
        is_false = largest(seen, 0).p < level
        found["without"].append(is_false.reshape(SLICES, 365).any(0))
        # With dispersion, no p-value is smaller.
        is_false[is_false] = largest(seen[is_false]).p < level
        found["with dispersion"].append(is_false.reshape(SLICES, 365).any(0))
    figures = ["years", "false nights a year", "in a row as one", "most in a year"]
    print_head(["the test"], figures)
    for name, of_years in found.items():
        nights = np.stack(of_years)
        is_first = nights & ~np.pad(nights, ((0, 0), (1, 0)))[:, :-1]
        means = (f"{flags.sum(1).mean():.2f}" for flags in (nights, is_first))
        print_row(name, years, *means, nights.sum(1).max())
    print()


def frame_of(counts: Array) -> pl.DataFrame:
    where = np.nonzero(counts)
    columns = dict(zip(("sample", "day", "gold", "pred"), where, strict=True))
    frame = pl.DataFrame({**columns, "n": counts[where]})
    return frame.with_columns(day=pl.lit(FIRST) + pl.duration(days="day"))


def worse(setting: Setting, first: int, last: int | None = None, found: float = 0.55) -> Setting:
    """A setting in which recall is lower in some days."""
    rates = np.broadcast_to(setting.rates, (*setting.rows.shape, 2)).copy()
    rates[first:last, 1] = 1 - found, found
    return Setting(rates, setting.rows)


def fixed_alarms(counts: Array) -> float:
    """How often a comparison of the last 30 days with the days before finds that it is worse."""
    day, start = pl.col("day"), FIRST + timedelta(counts.shape[1] - 30)
    log = frame_of(counts).mcc(weight="n", positive=1)
    found = log.drift("sample", before=day < start, after=day >= start, min_n=1)
    is_worse = (pl.col("p_value") < 0.02) & (pl.col("diff") < 0)  # half of it is in this direction
    return found.select(is_worse.mean()).item()


def print_found(samples: int) -> None:
    days, change = 60, 40
    names = ["50:50", "95:5", "5 % positives, 30 % on weekends"]
    names += ["positives rise from 5 to 30 %", "positives fall from 30 to 5 %"]
    columns = ["found", "days off, median", "days off, 90 %", "false alarms"]
    fixed = ["the last 30 days: found", "the last 30 days: false alarms"]
    print_head(["labels", "rows a day"], [*(f"`changes`: {column}" for column in columns), *fixed])
    for name, rows in itertools.product(names, (60, 200, 1000)):
        setting, rng = mixes(days, rows)[name], rng_of(name, rows)
        healthy, fell = (drawn(one, samples, rng) for one in (setting, worse(setting, change)))
        found = largest(fell)
        is_found = found.p < 0.01
        off = np.abs(found.since - change)[is_found]
        cells = [is_found.mean(), (largest(healthy).p < 0.01).mean()]
        cells += [fixed_alarms(fell), fixed_alarms(healthy)]
        shares = [f"{share:.3f}" for share in cells]
        days_off = (f"{np.quantile(off, q):.0f}" if len(off) else "" for q in (0.5, 0.9))
        print_row(name, rows, shares[0], *days_off, *shares[1:])
    print()


def print_recovered(samples: int) -> None:
    """A fall at day 30 and a recovery at day 60, of 90. `changes` of one log at once."""
    print_head(["`max_changes`", "rows a day"], ["something found", "both found", "days off, mean"])
    for most, rows in itertools.product((1, 3), (60, 200, 1000)):
        setting = Setting(two(), rows * of_two(np.full(90, 0.3)))
        any_found, both, off = 0, 0, []
        for counts in drawn(worse(setting, 30, 60), samples, rng_of(rows)):
            log = frame_of(counts[None]).mcc(weight="n", time="day", positive=1)
            answer = log.changes(ci=0.99, alternative="two-sided", max_changes=most)
            found = answer.filter(pl.col("verdict").is_in(["worse", "better"])).sort("since")
            any_found += found.height > 0
            if found["verdict"].to_list() == ["worse", "better"]:
                both += 1
                since = (found["since"] - FIRST).dt.total_days().to_numpy()
                off += np.abs(since - [30, 60]).tolist()
        print_row(
            most,
            rows,
            f"{any_found / samples:.2f}",
            f"{both / samples:.2f}",
            f"{np.mean(off):.1f}" if off else "",
        )
    print()


def wandering(
    days: int, rows: int, sd: float, fall: float, samples: int, rng: np.random.Generator
) -> Array:
    """Logs of which recall wanders around 0.70, with 30 % positives, and falls at two thirds."""
    moved = np.zeros((samples, days))
    for day in range(days):
        more = rng.normal(0, sd * (0.6 if day else 1), samples)
        moved[:, day] = (0.8 * moved[:, day - 1] if day else 0) + more
    found = np.clip(0.7 + moved - fall * (np.arange(days) >= days * 2 // 3), 0.01, 0.99)
    gold = rng.poisson(rows * np.array([0.7, 0.3]), (samples, days, 2))
    hits, false = rng.binomial(gold[..., 1], found), rng.binomial(gold[..., 0], 0.05)
    rest = gold - np.stack([false, hits], -1)
    return np.stack([np.stack([rest[..., 0], false], -1), np.stack([rest[..., 1], hits], -1)], -2)


def weeks(counts: Array) -> Array:
    return counts.reshape(counts.shape[0], -1, 7, 2, 2).sum(2)


def print_wandering(samples: int) -> None:
    """Dispersion from blocks of days, with one cut or three, and of weeks."""
    ways = {
        "no dispersion": (0, False),
        "`max_changes=1`": (1, False),
        "`max_changes=3`": (3, False),
        "weeks, `max_changes=1`": (1, True),
        "weeks, `max_changes=3`": (3, True),
    }
    falls = [*ways][1:3]
    figures = [*(f"times, {way}" for way in ways), *(f"found, {way}" for way in falls)]
    print_head(["sd of recall", "days", "rows a day"], figures)
    sizes = ((63, 200), (63, 1000), (182, 200), (182, 1000))
    for sd, (days, rows) in itertools.product((0.0, 0.02, 0.05), sizes):
        rng = rng_of(sd, days, rows)
        healthy, fell = (wandering(days, rows, sd, fall, samples, rng) for fall in (0.0, 0.15))
        shares = [
            (largest(weeks(healthy) if is_weekly else healthy, changes).p < 0.01).mean() / 0.01
            for changes, is_weekly in ways.values()
        ]
        shares += [(largest(fell, ways[way][0]).p < 0.01).mean() for way in falls]
        print_row(sd, days, rows, *(f"{share:.2f}" for share in shares))
    print()


def mcc_of(positive: float, rates: Array) -> float:
    table = rates * np.array([[1 - positive], [positive]])
    gold, pred = table.sum(1), table.sum(0)
    root = np.sqrt((1 - (gold**2).sum()) * (1 - (pred**2).sum()))
    return float((np.trace(table) - gold @ pred) / root)


def print_limits(samples: int) -> None:
    """How often 95 % limits hold the true difference, where the mix of labels does not change."""
    figures = ["nothing changes: covers", "it falls: covers", "it falls, and is found: covers"]
    print_head(["positives", "rows a day"], figures)
    days, change = 60, 40
    for positive, rows in itertools.product((0.05, 0.3, 0.5), (60, 200, 1000)):
        setting = Setting(two(), rows * of_two(np.full(days, positive)))
        rng = rng_of(positive, rows)
        truth = mcc_of(positive, two(0.55)) - mcc_of(positive, two())
        cells = []
        for true, one in ((0.0, setting), (truth, worse(setting, change))):
            log = frame_of(drawn(one, samples, rng)).mcc(weight="n", time="day", positive=1)
            answer = log.changes("sample", alternative="two-sided", max_changes=1)
            covers = (pl.col("diff_low") <= true) & (pl.col("diff_high") >= true)
            cells.append(answer.select(covers.mean()).item())
        cells.append(answer.filter(pl.col("p_value") < 0.05).select(covers.mean()).item() or np.nan)
        print_row(positive, rows, *(f"{cell:.3f}" for cell in cells))
    print()


def check_arrays() -> None:
    """The arrays that most tables call are those of the verb."""
    for name in ("95:5", "five classes"):
        counts = drawn(mixes(40, 60)[name], 20, rng_of(name))
        verb = frame_of(counts).mcc(weight="n", time="day").changes("sample").sort("sample")
        arrays = largest(counts)
        np.testing.assert_allclose(verb["p_value"], arrays.p, rtol=1e-9)
        days = (verb["since"] - FIRST).dt.total_days()
        np.testing.assert_array_equal(days, arrays.since)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--samples", type=int, default=2000)
    args = parser.parse_args()
    samples = args.samples
    check_arrays()
    print_none(samples)
    print_nights(-(-samples // 100))
    print_found(samples)
    print_recovered(-(-samples // 20))
    print_wandering(samples)
    print_limits(samples)


if __name__ == "__main__":
    main()
