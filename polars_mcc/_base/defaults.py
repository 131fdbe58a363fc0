"""The default value of every option, each written once."""

from __future__ import annotations

from typing import Final

GOLD: Final = "gold"
PRED: Final = "pred"
NULLS: Final = "drop"
ZERO_DIVISION: Final = 0.0

METRICS: Final = "mcc"
METRIC: Final = "mcc"
CURVE_METRICS: Final = ("mcc", "f1")
LEVEL: Final = 0.95  # the confidence level of verbs that always give an interval
METHOD: Final = "score"
CORRECTION: Final = "bh"

TO: Final = "rest"  # what a slice is compared with
DEPTH: Final = 2
BINS: Final = 10  # bins of a numeric key, or of scores
MIN_N: Final = 30  # rows that a slice needs to be tested
COMPARED_N: Final = 15  # rows that a slice needs to be compared
MAX_SHARE: Final = 0.9  # of the rows, in a slice that is listed
CHECKED_N: Final = 1  # rows that a slice needs to be checked
CHECK_CORRECTION: Final = "holm"  # a healthy log must fail nowhere
MAX_CHANGES: Final = 3  # of a slice: it fell, recovered, and fell again
RANK: Final = "loss"
REPLICATES: Final = 2000
TITLE: Final = "How good is each slice?"
REPORT: Final = "html"
