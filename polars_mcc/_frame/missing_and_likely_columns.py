"""The error for a column that a log lacks: it names the column and the nearest columns."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

import polars as pl

from polars_mcc._base import defaults
from polars_mcc._base.message_parts import Words, as_arguments, few, option, said
from polars_mcc._frame.labels import dtype_of_labels


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
    first = next(iter(nearest(name, known)), "")
    return f"; did you mean {shown.format(first)}?" if _likeness(name, first) >= 0.6 else "."


def no_column(name: str, schema: pl.Schema, needed: str = "") -> str:
    """Say that a column is missing, and list the nearest names: ten at most."""
    known = [column for column in schema if not column.startswith("polars_mcc:")]
    near = nearest(name, known)[:10]
    listed = sorted(known, key=lambda column: column not in near)
    columns = f"The columns are {few(listed)}." if listed else "There are no columns."
    return f"no column '{name}'{needed}{did_you_mean(name, known)} {columns}"


def nearest(name: str, known: Iterable[str]) -> list[str]:
    """Known names, the name most like the unknown one first."""
    return sorted(known, key=lambda other: _likeness(name, other), reverse=True)


def _likeness(name: str, other: str) -> float:
    import difflib  # noqa: PLC0415 - for an error alone

    ratio = difflib.SequenceMatcher(None, name.lower(), other.lower()).ratio()
    is_part = len(name) > 1 and name.lower() in other.lower()
    return max(ratio, 0.6) if is_part else ratio


_DEFAULT_NAMES: Mapping[str, str] = {"gold": defaults.GOLD, "pred": defaults.PRED}
_IN_WORDS: Mapping[str, str] = {"gold": "the true label", "pred": "the predicted label"}


def missing_column(name: str, schema: pl.Schema, role: str) -> MissingColumn:
    """The error for a column that a role needs."""
    if _DEFAULT_NAMES.get(role) != name:
        problem = no_column(name, schema, f" for {role}")
        return MissingColumn(problem, role, schema, is_default=False)
    problem = no_column(name, schema, f" ({_IN_WORDS[role]})")
    return MissingColumn(problem, role, schema, is_default=True)


# Words in the name of a column, the surest first.
_GOLD = (
    {"gold", "true", "truth", "groundtruth", "ytrue", "actual", "actuals", "expected"},
    {"label", "labels", "target", "targets"},
    {"y", "class", "category", "reference", "annotation", "answer", "outcome", "ytest"},
)
_PRED = (
    {"pred", "preds", "prediction", "predictions", "predicted", "predict", "ypred"},
    {"yhat", "hat", "output", "guess", "estimate"},
)
# Last words of columns that describe a prediction and are no label.
_NO_LABEL = {"id", "score", "scores", "prob", "probs", "proba", "probability", "probabilities"}
_NO_LABEL |= {"confidence", "logit", "logits", "time", "timestamp", "ts", "at", "date", "version"}
# Options that name columns.
_COLUMNS = ("gold", "pred", "score", "weight", "sample_weight", "cluster")
_UNKNOWN = "..."


def likely(schema: pl.Schema, **known: object) -> dict[str, str | list[str]]:
    """The columns that are probably `gold` and `pred`. Roles that are `known` are left out.

    A role without a likely column has "...". `pred` is a list if several columns look alike.
    """
    taken: set[str] = set()
    for role in _COLUMNS:
        columns = known.get(role)
        listed = columns if isinstance(columns, (list, tuple)) else [columns]
        taken.update(column for column in listed if isinstance(column, str))
    free = [name for name in schema if name not in taken]
    golds, preds = _golds(free), _preds(free)
    first = next(iter(golds), _UNKNOWN)
    if "pred" in known or "score" in known or defaults.PRED in schema:
        return {"gold": first}
    if "gold" in known or defaults.GOLD in schema:
        gold = known.get("gold", defaults.GOLD)
        return {"pred": _option(name for name in preds if _are_comparable(schema, gold, name))}
    for gold in golds:
        if fitting := [name for name in preds if _are_comparable(schema, gold, name)]:
            return {"gold": gold, "pred": _option(fitting)}
    return {"gold": first, "pred": _UNKNOWN if golds else _option(preds)}


def role_like(name: str) -> str:
    """The option that an unknown one is probably meant for, or "" for none."""
    if name.startswith("pos") or re.search("score|prob", name):
        return "positive" if name.startswith("pos") else "score"
    return "gold" if _golds([name]) else "pred" if _preds([name]) else ""


def _golds(names: Sequence[str]) -> list[str]:
    """The names that look like gold, the likeliest first. `true_pred` is gold, `pred_label` not."""
    surest = _with_words(names, _GOLD[0])
    guesses = {name for words in _PRED for name in _with_words(names, words)}.difference(surest)
    return [name for words in _GOLD for name in _with_words(names, words) if name not in guesses]


def _preds(names: Sequence[str]) -> list[str]:
    """The names that look like predictions: those with the surest words that occur."""
    surest_gold = _with_words(names, _GOLD[0])  # such as "expected_output"
    preds = next(filter(None, (_with_words(names, words) for words in _PRED)), [])
    return [name for name in preds if name not in surest_gold]


def _with_words(names: Sequence[str], wanted: set[str]) -> list[str]:
    """The names with one of the wanted words. Names that end in a wanted word come first."""
    having = [name for name in names if wanted.intersection(_words(name))]
    return sorted(having, key=lambda name: [*_words(name)][-1] not in wanted)


def _words(name: str) -> Iterator[str]:
    """The words of a name, in `snake_case` or `camelCase`, and all of them as one."""
    words = [word.lower() for word in re.findall(r"[A-Z]?[^\W\d_A-Z]+|[A-Z]+", name)]
    if words and words[-1] not in _NO_LABEL:
        yield from [*words, "".join(words)]


def _option(names: Iterable[str]) -> str | list[str]:
    """The option of a call for these columns: a name, or a list of several."""
    listed = [*names] or [_UNKNOWN]
    return listed[0] if len(listed) == 1 else listed


def _are_comparable(schema: pl.Schema, gold: object, pred: str) -> bool:
    """Whether the labels of two columns can be equal: unknown, and so true, for an expression."""
    if not isinstance(gold, str):
        return True
    try:
        dtype_of_labels([(name, schema[name]) for name in (gold, pred)])
    except pl.exceptions.SchemaError:
        return False
    return True
