"""The error for a column that a log lacks: it names the column and the nearest columns."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import polars as pl

from polars_mcc._log import defaults
from polars_mcc._log.likely import possible
from polars_mcc._log.messages import Words, as_arguments, few, option, quoted, said


class MissingColumn(pl.exceptions.ColumnNotFoundError):
    """A log has no column of this name.

    Attributes:
        problem: What is missing, the nearest name, and the names that there are.
        role: What the column is needed for: `"gold"`, `"pred"`, `"key"` …
        schema: The columns of the log.
        is_default: Whether the name is the default of the role: the user has not named a column.
        options: The options of a call that names the labels.
        frame: How the call begins, `"df.mcc({})"`, with a place for the options.
        question: How the call ends: the verb with its arguments.
    """

    def __init__(self, problem: str, role: str, schema: pl.Schema, is_default: bool) -> None:
        """Say what is missing."""
        super().__init__(problem, role, schema, is_default)
        self.problem, self.role, self.schema, self.is_default = problem, role, schema, is_default
        self.options: Mapping[str, object] = {}
        self.frame, self.question = "df.mcc({})", ""

    @property
    def words(self) -> Words:
        """The message. If the role has its default name, a call names the labels."""
        if not self.is_default:
            return said(self.problem)
        labels = {role: self.options[role] for role in ("gold", "pred") if role in self.options}
        call = self.frame.format(as_arguments(self.options)) + self.question
        typed = " ".join(option(role, name).in_shell for role, name in labels.items())
        return said(self.problem, " Name the labels: ", Words(call, typed))

    def __str__(self) -> str:
        """The message in Python."""
        return self.words


def did_you_mean(name: str, known: Iterable[str], shown: str = "'{}'") -> str:
    """The end of a clause about an unknown name: the nearest known name, or a full stop."""
    nearest = _nearest(name, known)
    is_near = nearest and _likeness(name, nearest[0]) >= 0.6
    return f"; did you mean {shown.format(nearest[0])}?" if is_near else "."


def no_column(name: str, schema: pl.Schema, needed: str = "") -> str:
    """Say that a column is missing, and list the nearest names: ten at most."""
    known = [one for one in schema if not one.startswith("polars_mcc:")]
    nearest = _nearest(name, known)[:10]
    listed = sorted(known, key=lambda one: one not in nearest)
    return f"no column '{name}'{needed}{did_you_mean(name, known)} {_those(listed)}"


def _nearest(name: str, known: Iterable[str]) -> list[str]:
    """Known names, the name most like the unknown one first."""
    return sorted(known, key=lambda other: _likeness(name, other), reverse=True)


def _likeness(name: str, other: str) -> float:
    import difflib  # noqa: PLC0415 - for an error alone

    ratio = difflib.SequenceMatcher(None, name.lower(), other.lower()).ratio()
    is_part = len(name) > 1 and name.lower() in other.lower()
    return max(ratio, 0.6) if is_part else ratio


def _those(names: Collection[str]) -> str:
    return f"The columns are {few(names)}." if names else "There are no columns."


_DEFAULT_NAMES: Mapping[str, str] = {"gold": defaults.GOLD, "pred": defaults.PRED}
_IN_WORDS: Mapping[str, str] = {"gold": "the true label", "pred": "the predicted label"}


def missing_column(name: str, schema: pl.Schema, role: str) -> MissingColumn:
    """The error for a column that a role needs."""
    if _DEFAULT_NAMES.get(role) != name:
        problem = no_column(name, schema, f" for {role}")
        return MissingColumn(problem, role, schema, is_default=False)
    columns = _those(schema)
    if len(schema) > 10 and (labels := possible(schema)[:10]):
        columns = (
            f"Columns that may be labels, by name and dtype, are {quoted(labels)}, and "
            f"{len(schema) - len(labels)} more are left out."
        )
    problem = f"no column '{name}' ({_IN_WORDS[role]}){did_you_mean(name, schema)} {columns}"
    return MissingColumn(problem, role, schema, is_default=True)
