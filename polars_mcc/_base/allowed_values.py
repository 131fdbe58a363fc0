"""Checks of the values of options."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, Literal, NoReturn, TypeAlias, get_args

from polars_mcc._base import defaults
from polars_mcc._base.message_parts import option, refused

Nulls: TypeAlias = Literal["drop", "label", "reweight"]
NullsOfRows: TypeAlias = Literal["drop", "label"]  # without counts of slices
Role: TypeAlias = Literal["pred", "score"]  # what a metric scores: predicted labels, or scores
Method: TypeAlias = Literal["score", "fisher", "wald"]
Correction: TypeAlias = Literal["bh", "by", "holm", "bonferroni"]
Normalize: TypeAlias = Literal["gold", "pred", "all"]
ReportFormat: TypeAlias = Literal["html", "md", "json"]
Rank: TypeAlias = Literal["loss", "gap"]
Reference: TypeAlias = Literal["rest", "expected"]
Align: TypeAlias = Literal["data", "calendar"]
Alternative: TypeAlias = Literal["worse", "better", "two-sided"]
Strategy: TypeAlias = Literal["uniform", "quantile"]  # how scores are cut into bins


def check_choice(name: str, value: object, choices: Any, *forms: str) -> None:  # noqa: ANN401
    """Raise a ValueError unless a value is in a Literal. The message lists other forms too."""
    allowed = get_args(choices)
    if value not in allowed:
        listed = ", ".join([*map(repr, allowed), *forms])
        raise ValueError(f"{name} must be one of {listed}, got {value!r}")


def check_number(name: str, value: float | None) -> None:
    """Raise a TypeError unless a value is a number or None."""
    if isinstance(value, bool) or not (value is None or isinstance(value, Real)):
        raise TypeError(f"{name} must be a number or None, got {value!r}")


def check_level(ci: float) -> None:
    """Raise a ValueError unless a confidence level is between 0 and 1."""
    if not (isinstance(ci, Real) and 0 < ci < 1):
        raise ValueError(f"ci must be a confidence level between 0 and 1, such as 0.95, got {ci!r}")


def check_interval(ci: float | None, method: object) -> None:
    """Raise a ValueError if a confidence level is invalid, or a method is given without a level."""
    if ci is not None:
        check_level(ci)
    elif method != defaults.METHOD:
        needs_level("method", method)


def needs_level(name: str, value: object) -> NoReturn:
    """Raise a ValueError: an option has a value, but there is no confidence level."""
    level = option("ci", defaults.LEVEL)
    raise refused(option(name, value), " needs a confidence level: pass ", level, " too")


def check_at_least(name: str, value: object, least: int) -> None:
    """Raise a ValueError unless a value is an integer of at least `least`."""
    if isinstance(value, bool) or not (isinstance(value, Integral) and int(value) >= least):
        raise ValueError(f"{name} must be an integer of at least {least}, got {value!r}")
