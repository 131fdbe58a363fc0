"""Windows of time, and the lengths of their steps."""

from __future__ import annotations

from dataclasses import dataclass

from polars_mcc._log.choices import Align
from polars_mcc._log.columns import Columns

_SECOND = 10**9
UNITS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": _SECOND, "m": 60 * _SECOND, "h": 3600 * _SECOND}
UNITS |= {"d": 86_400 * _SECOND, "w": 7 * 86_400 * _SECOND}
MONTHS = {"mo": 1, "q": 3, "y": 12}


@dataclass(frozen=True)
class Windows:
    """Trailing windows of an index, resolved against the schema."""

    index: Columns
    number: int
    unit: str  # a step is `number` of this unit of Polars durations
    per_window: int  # steps in a window
    align: Align

    @property
    def is_clock(self) -> bool:
        """Whether steps are hours or less: their length does not depend on the calendar."""
        return self.unit not in {"d", "w", *MONTHS}

    @property
    def is_months(self) -> bool:
        """Whether steps are months, whose lengths differ."""
        return self.unit in MONTHS

    @property
    def size(self) -> int:
        """The length of a step in months, in days, or in nanoseconds if `is_clock`."""
        length, _ = length_of(self.number, self.unit)
        return length if self.is_months or self.is_clock else length // UNITS["d"]


def length_of(number: int, unit: str) -> tuple[int, bool]:
    """A length in months or in nanoseconds, and whether it is in months."""
    return number * (UNITS | MONTHS)[unit], unit in MONTHS
