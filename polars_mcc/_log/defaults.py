"""What an option is if it is not given: each default stands here, once."""

from __future__ import annotations

from typing import Final

GOLD: Final = "gold"
PRED: Final = "pred"
NULLS: Final = "drop"
ZERO_DIVISION: Final = 0.0

METRICS: Final = "mcc"
METRIC: Final = "mcc"
CURVE_METRICS: Final = ("mcc", "f1")
LEVEL: Final = 0.95  # the confidence level, where there must be one
METHOD: Final = "score"
CORRECTION: Final = "bh"

TO: Final = "rest"  # what a slice is compared with
DEPTH: Final = 2
BINS: Final = 10  # parts that a key of numbers is cut into
MIN_N: Final = 30  # rows that a slice has to be tested
CHECKED_N: Final = 1  # rows that a slice has to be judged
RANK: Final = "loss"
REPLICATES: Final = 2000
TITLE: Final = "How good is each slice?"
EXPLORED: Final = 50_000  # counts that a page holds, at most
REPORT: Final = "html"
