"""Values of any dtype as text, even of dtypes that Polars does not cast to String; Markdown."""

from __future__ import annotations

import re

import polars as pl
from polars.datatypes import DataType, DataTypeClass


def as_text(value: pl.Expr, dtype: DataType | DataTypeClass) -> pl.Expr:
    """A String for each value; null stays null."""
    if isinstance(dtype, pl.Array):
        return as_text(value.arr.to_list(), pl.List(dtype.inner))
    if isinstance(dtype, pl.List):
        texts = value.list.eval(_or_null(pl.element(), dtype.inner))
        return pl.concat_str(pl.lit("["), texts.list.join(", "), pl.lit("]"))
    if isinstance(dtype, pl.Struct):
        parts = [pl.lit("{")]
        for place, field in enumerate(dtype.fields):
            name = f"{', ' if place else ''}{field.name}: "
            parts += [pl.lit(name), _or_null(value.struct.field(field.name), field.dtype)]
        return pl.when(value.is_not_null()).then(pl.concat_str(*parts, pl.lit("}")))
    if isinstance(dtype, pl.Duration):
        return value.dt.to_string("polars")
    if isinstance(dtype, pl.Binary):
        return value.bin.encode("hex")
    return value.cast(pl.String)


def _or_null(value: pl.Expr, dtype: DataType | DataTypeClass) -> pl.Expr:
    return as_text(value, dtype).fill_null("null")


# A `_` inside a word, as in `n_null`, is no mark-up.
_MARKS = re.compile(r"[\\`*\[\]<>|~#]|(?<![^\W_])_|_(?![^\W_])")


def in_markdown(text: str) -> str:
    """Escape text for Markdown, so that it cannot be HTML or mark-up, nor end a cell or a line."""
    escaped = _MARKS.sub(r"\\\g<0>", text.replace("&", "&amp;"))
    # GitHub would notify a person who is named after an @.
    return re.sub("\r\n?|\n", "<br>", escaped.replace("@", "@<!-- -->"))
