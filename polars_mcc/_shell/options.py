"""Options of the command line, made from the signature and the docstring of a verb."""

from __future__ import annotations

import inspect
import re
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args, get_origin

import polars as pl

from polars_mcc._shell.spoken import as_help, flag_of

if TYPE_CHECKING:
    from docstring_parser import Docstring

NONE = Literal["none"]
"""The word for None, in the type of an option whose default is another value."""

Role: TypeAlias = Literal[
    "column", "key", "metric", "label", "frame", "thresholds", "bar", "slice", "value"
]


@dataclass(frozen=True)
class Option:
    """A parameter of a verb, as an option of its command."""

    verb: Callable[..., Any]
    name: str  # the name of the parameter
    hint: Any  # the type of the typed value: str, a number, a Literal, or a list of these
    default: Any
    role: Role
    """What the typed text means. For some roles, only the log can tell the value."""

    @property
    def default_in_shell(self) -> Any:  # noqa: ANN401 - of any option
        """The default as cyclopts needs it: a list if the option can be repeated."""
        if isinstance(self.default, tuple):
            return list(self.default)
        return [self.default] if self.is_list and self.default is not None else self.default

    @property
    def is_list(self) -> bool:
        """Whether the option can be repeated."""
        return any(get_origin(member) is list for member in _members(self.hint))

    @property
    def flag(self) -> str:
        """The option as it is typed, such as `--by`."""
        return flag_of(self.name)

    @property
    def words(self) -> str:
        """The text of the parameter in the docstring, in the words of a shell."""
        params = docstring_of(self.verb).params
        [text] = [one.description for one in params if one.arg_name.lstrip("*") == self.name]
        words = as_help(" ".join((text or "").split()), self.flag)
        if self.default is None:  # None is the option that is left out.
            return re.sub(r"\bNone: ", "Without it: ", words)
        return re.sub(r"\bNone\b", "none", words)  # See `_in_shell`.


@lru_cache
def options_of(verb: Callable[..., Any]) -> list[Option]:
    """The options of a verb, or of a constructor: all parameters after the log or the frame."""
    hints = typing.get_type_hints(verb)
    return [
        Option(
            verb,
            name,
            _in_shell(hints[name], parameter),
            None if parameter.kind is parameter.VAR_POSITIONAL else parameter.default,
            _role(name, hints[name]),
        )
        for name, parameter in inspect.signature(verb).parameters.items()
        if parameter.kind in {parameter.KEYWORD_ONLY, parameter.VAR_POSITIONAL}
    ]


@lru_cache
def docstring_of(verb: Callable[..., Any]) -> Docstring:
    """The parsed docstring of a verb."""
    from docstring_parser import DocstringStyle, parse  # noqa: PLC0415 - it is optional

    return parse(verb.__doc__ or "", DocstringStyle.GOOGLE)


def examples_of(verb: Callable[..., Any]) -> list[str]:
    """The command lines that a docstring shows as examples."""
    _, _, block = inspect.cleandoc(verb.__doc__ or "").partition("Command line:\n")
    return [line.strip() for line in block.splitlines() if line.strip()]


def _role(
    name: str,
    hint: Any,  # noqa: ANN401 - any type
) -> Role:
    members = {*_members(hint)}
    if name in {"keys", "metrics", "metric"}:
        return "key" if name == "keys" else "metric"
    if pl.Expr in members:
        return "column"
    mappings = [member for member in members if _is_mapping(member)]
    if mappings:
        return "bar" if float in get_args(mappings[0]) else "slice"
    if pl.DataFrame in members:
        return "frame"
    if int in members and float in {*_listed(members)}:
        return "thresholds"
    return "label" if object in members or object in {*_listed(members)} else "value"


def _in_shell(hint: Any, parameter: inspect.Parameter) -> Any:  # noqa: ANN401 - any type
    """The type of an option for a parameter of this type: text, unless it is a number or a choice.

    An option that is not typed is None. If the default is another value, the word `none` is None.
    """
    members = _members(hint)
    if any(map(_is_mapping, members)):  # One word or number, or several name=value.
        return list[str] | None if type(None) in members else list[str]
    is_list = parameter.kind is parameter.VAR_POSITIONAL
    listed = [*_listed(members)]
    words = [member for member in members if get_origin(member) is Literal]
    plain = [one for one in (str, float, int, bool) if one in (listed or members)]
    typed: Any = next(iter([*words, *plain]), str)
    if is_list or listed:
        typed = list[typed]
    if type(None) in members and parameter.default is not None:
        return typed | NONE
    is_optional = is_list or not {type(None), object}.isdisjoint(members)
    return typed | None if is_optional else typed


def _members(hint: Any) -> Sequence[Any]:  # noqa: ANN401 - any type
    if get_origin(hint) in {typing.Union, types.UnionType}:
        return [one for member in get_args(hint) for one in _members(member)]
    return [hint]


def _is_mapping(
    hint: Any,  # noqa: ANN401 - any type
) -> bool:
    return isinstance(get_origin(hint), type) and issubclass(get_origin(hint), Mapping)


def _listed(members: Iterable[Any]) -> Iterator[Any]:
    """The types of the elements of the members that are sequences."""
    for member in members:
        if isinstance(get_origin(member), type) and issubclass(get_origin(member), Sequence):
            yield from (one for inner in get_args(member) for one in _members(inner))
