"""Values that differ only in spelling, such as "Yes" and "yes ", and the expression that mends it.

Two texts are one spelling if they are equal after NFKC, case folding, and without spaces and
punctuation. Characters that tell labels apart are kept: `+`, `#`, `%`, `?` and other symbols, signs
("a-", "-1"), and what stands between digits ("1.5", "10-20") or before one (".5").
"""

from __future__ import annotations

import itertools
import re
import shlex
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from polars_mcc._base.message_parts import Words, as_sql, as_sql_text, column, said

_SHOWN = 10  # spellings of a column that a sentence shows, at most
_FEW = 4  # spellings that are named one by one in an expression, though a function would do
_POWERS = re.compile("(?<=\\d)(?=[\u00b2\u00b3\u00b9\u2070-\u2079\u2080-\u2089])")
_ENDS = re.compile(r"\s*[.,;:!]+\s*$")
_MARKS = re.compile("(?<!\\d)[.,;:/\\\\|'\"`\u00b4\u2018\u2019\u201c\u201d\u00ab\u00bb](?!\\d)")
_DASH = "[-\u2010-\u2015]"
_DASHES = re.compile(
    rf"(?<=[^\W\d_])\s*{_DASH}+\s*(?=[^\W\d_])|(?<=\d){_DASH}(?=[^\W\d_])|(?<=[^\W\d_]){_DASH}(?=\d)"
)
_UNDERSCORES = re.compile(r"(?<![\d_])_+|_+(?![\d_])")
_SPACES = re.compile(r"(?<!\d) | (?!\d)")


_KINDS = ("Unicode form", "punctuation", "spaces", "case")
"""In what spellings of a text may differ."""


def _normal(text: str, kinds: Collection[str]) -> str:
    """What spellings of a text have in common that differ in these kinds."""
    if "Unicode form" in kinds:  # 10² stays apart from 102. Invisible characters go.
        composed = unicodedata.normalize("NFKC", _POWERS.sub("^", text))
        is_seen = (unicodedata.category(char) != "Cf" and char != "\ufe0f" for char in composed)
        text = "".join(itertools.compress(composed, is_seen))
    if "punctuation" in kinds:
        for marks in (_ENDS, _MARKS, _DASHES, _UNDERSCORES):
            text = marks.sub("", text)
    if "spaces" in kinds:
        text = _SPACES.sub("", " ".join(text.split()))
    return text.casefold() if "case" in kinds else text


def alike(texts: Iterable[str]) -> list[list[str]]:
    """The texts that differ only in spelling, in groups of two or more."""
    groups: dict[str, list[str]] = {}
    for text in sorted(texts):
        normal = _normal(text, _KINDS)
        if not any(map(str.isalnum, normal)):  # Of marks alone, each is a text of its own.
            normal = _normal(text, ["Unicode form"]).strip()
        groups.setdefault(normal, []).append(text)
    return [group for group in groups.values() if len(group) > 1]


def _kinds(changes: Iterable[tuple[str, str]]) -> str:
    """In what pairs of spellings differ, in words."""
    sizes = range(1, len(_KINDS) + 1)
    fewest_first = [kinds for size in sizes for kinds in itertools.combinations(_KINDS, size)]
    needed: set[str] = set()
    for old, new in changes:
        enough = (kinds for kinds in fewest_first if _normal(old, kinds) == _normal(new, kinds))
        needed.update(next(enough, ()))
    *first, last = (kind for kind in reversed(_KINDS) if kind in needed)
    return f"{', '.join(first)} and {last}" if first else last


@dataclass(frozen=True)
class Spelled:
    """A column of texts."""

    name: str
    code: Words
    dtype: pl.DataType
    flag: str
    """The option of the command line that takes the column."""
    rows: Mapping[str, float]
    """The rows of each spelling that another one should replace."""

    def in_words(self, chosen: Mapping[str, str]) -> str:
        """Each spelling with its number of rows, and the spelling that replaces it."""
        left_out = f" and {len(self.rows) - _SHOWN} more" if len(self.rows) > _SHOWN else ""
        replaced: dict[str, list[str]] = {}
        for text, n in [*self.rows.items()][:_SHOWN]:
            replaced.setdefault(chosen[text], []).append(f"{text!r} ({_in_rows(n)})")
        listed = (f"{' and '.join(olds)} beside {new!r}" for new, olds in replaced.items())
        return f"'{self.name}' has {', '.join(listed)}{left_out}"

    def mended(self, function: Words | None, chosen: Mapping[str, str]) -> Words:
        """The column with one spelling: by a function, or by replacing spellings one by one.

        A column without spellings to replace needs no code; a command still has to name it.
        """
        is_list = isinstance(self.dtype, (pl.List, pl.Array))
        code = "pl.element()" if is_list else str(self.code)
        inner = self.dtype.inner if isinstance(self.dtype, (pl.List, pl.Array)) else self.dtype
        code += "" if inner == pl.String else ".cast(pl.String)"
        sql = self.code.in_shell
        if function is None and not self.rows:
            code = ""
        elif function is None:
            changes = {text: chosen[text] for text in self.rows}
            code += f".replace({changes!r})"
            cases = (
                f"WHEN {as_sql_text(old)} THEN {as_sql_text(new)}" for old, new in changes.items()
            )
            sql = f"CASE {sql} {' '.join(cases)} ELSE {sql} END"
            if not all(map(str.isprintable, (*changes, *changes.values()))):
                sql = ""  # Nobody can type it.
        else:
            code, sql = f"{code}{function}", function.in_shell.format(sql)
        if is_list and code:
            code, sql = f"{self.code}.list.eval({code})", ""
        named = as_sql(self.name)
        typed = sql if sql == named else f"{sql} AS {named}"
        return Words(code, f"{self.flag} {_typed(typed)}" if sql else "")


def code_of(given: str | pl.Expr | None, computed: Collection[str] = ()) -> Words:
    """The code of a column as a user gave it; `computed`: columns that are called by their SQL."""
    if isinstance(given, pl.Expr):
        plain = given.meta.undo_aliases()
        given = plain.meta.output_name() if plain.meta.is_column() else None
    if given is None:
        return Words("(...)", "(...)")
    return Words(column(given), f"({given})") if given in computed else column(given)


def remark(
    what: str,
    so: str,
    columns: Sequence[Spelled],
    chosen: Mapping[str, str],
    *,
    texts: Sequence[str],
    kept: Iterable[object] = (),
) -> Words:
    """A sentence on the spellings of some columns, and the expressions that make them one.

    Args:
        what: What is spelled in several ways.
        so: What follows from it.
        columns: All columns with such texts.
        chosen: The text that replaces another spelling.
        texts: All texts of the columns.
        kept: The texts that must stay as they are.
    """
    changed = [column for column in columns if column.rows]
    spellings = "; ".join(column.in_words(chosen) for column in changed)
    function = None
    if sum(len(column.rows) for column in changed) > _FEW:
        function = _function(chosen, texts, kept)
    flags = {column.flag for column in (changed if function is None else columns)}
    mended = [column.mended(function, chosen) for column in columns if column.flag in flags]
    typed = [code.in_shell for code in mended]
    way_out = Words(
        f"use {' and '.join(filter(None, mended))}",
        f"use {' '.join(typed)}" if all(typed) else "mend the column in the log",
    )
    return said(f"{what} differ only in {_kinds(chosen.items())}: {spellings}; {so}, ", way_out)


_FUNCTIONS = {
    "Unicode form": Words(".str.normalize('NFKC')", "NORMALIZE({}, NFKC)"),
    "spaces": Words(".str.strip_chars()", "TRIM({})"),
    "case": Words(".str.to_lowercase()", "LOWER({})"),
}


def _function(
    chosen: Mapping[str, str], texts: Sequence[str], kept: Iterable[object]
) -> Words | None:
    """Functions of Polars that make the spellings equal, and only them. None: they do not exist."""
    kinds = _kinds(chosen.items())
    code, sql, made = "", "{}", pl.Series(texts, dtype=pl.String)
    for kind, function in _FUNCTIONS.items():
        if kind in kinds:
            code, sql = code + function, function.in_shell.format(sql)
            step = {"Unicode form": made.str.normalize("NFKC"), "spaces": made.str.strip_chars()}
            made = step.get(kind, made.str.to_lowercase())
    of_text = dict(zip(texts, made, strict=True))
    are_one = all(of_text[old] == of_text[new] for old, new in chosen.items())
    are_others = made.n_unique() == len(of_text) - len(chosen)
    is_kept = all(of_text.get(text, text) == text for text in kept if isinstance(text, str))
    return Words(code, sql) if are_one and are_others and is_kept else None


def _typed(sql: str) -> str:
    """SQL as an argument of a command, in double quotes if nothing in it is special there."""
    return f'"{sql}"' if "'" in sql and not re.search(r'["$`\\!]', sql) else shlex.quote(sql)


def _in_rows(n: float) -> str:
    return "1 row" if n == 1 else f"{n:,.10g} rows"
