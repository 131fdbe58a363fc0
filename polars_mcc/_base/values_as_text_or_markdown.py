"""Values as text: of any dtype, in sentences, in Markdown, in JSON."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import polars as pl
from polars.datatypes import DataType, DataTypeClass


def as_text(value: pl.Expr, dtype: DataType | DataTypeClass) -> pl.Expr:
    """A String for each value, and one that no other value has; null stays null.

    A list or a struct is JSON. What JSON lacks, such as a time or NaN, is text in it.
    """
    if isinstance(dtype, pl.Array):
        return as_text(value.arr.to_list(), pl.List(dtype.inner))
    if isinstance(dtype, pl.List):
        texts = value.list.eval(_json_text(pl.element(), dtype.inner))
        return pl.concat_str(pl.lit("["), texts.list.join(", "), pl.lit("]"))
    if isinstance(dtype, pl.Struct):
        parts = [pl.lit("{")]
        for place, field in enumerate(dtype.fields):
            name = f"{', ' if place else ''}{json.dumps(field.name, ensure_ascii=False)}: "
            parts += [pl.lit(name), _json_text(value.struct.field(field.name), field.dtype)]
        return pl.when(value.is_not_null()).then(pl.concat_str(*parts, pl.lit("}")))
    if isinstance(dtype, (pl.Duration, pl.Time)):  # A cast of a time has no fractions of a second.
        return value.dt.to_string("polars" if dtype == pl.Duration else "iso")
    if isinstance(dtype, pl.Binary):
        return value.bin.encode("hex")
    return value.cast(pl.String)


def in_quotes(text: pl.Expr) -> pl.Expr:
    """A text in double quotes, escaped as in JSON; null is `null`."""
    return pl.struct(a=text).struct.json_encode().str.slice(len('{"a":')).str.head(-1)


def _json_text(value: pl.Expr, dtype: DataType | DataTypeClass) -> pl.Expr:
    text = as_text(value, dtype)
    if dtype.is_float():
        return pl.when(value.is_finite()).then(text).otherwise(in_quotes(text))
    is_json = dtype.is_nested() or dtype.is_integer() or dtype == pl.Boolean
    return text.fill_null("null") if is_json else in_quotes(text)


BOOLEANS = {"true": True, "false": False, "1": True, "0": False}
_ZONE = r"(?:Z|[+-]\d\d:?\d\d)$"
_DURATION = r"^-?(?:\d+(?:d|h|m|s|ms|us|ns))+$"


def read_as(value: pl.Expr, read: Any, dtype: Any) -> pl.Expr:  # noqa: ANN401 - as `inner` of a dtype
    """What was read in the dtype that was written; null for a text that is no such value.

    It reads what `as_text` writes. What was read as another dtype than text stays as it is.
    """
    if dtype.is_nested() and read == pl.String:
        read = _of_texts(dtype)
        value = value.str.json_decode(read)
    if isinstance(dtype, (pl.List, pl.Array)) and isinstance(read, (pl.List, pl.Array)):
        inner = read_as(pl.element(), read.inner, dtype.inner)
        return value.cast(pl.List(read.inner)).list.eval(inner).cast(dtype)
    if isinstance(dtype, pl.Struct) and isinstance(read, pl.Struct):
        known = dict(read)
        fields = [
            read_as(value.struct.field(name), known.get(name), inner).alias(name)
            for name, inner in dtype
            if name in known
        ]
        return pl.when(value.is_not_null()).then(pl.struct(fields).cast(dtype))
    return _read_text(value, dtype) if read == pl.String else value


def _read_text(text: pl.Expr, dtype: Any) -> pl.Expr:  # noqa: ANN401 - as above
    if isinstance(dtype, (pl.String, pl.Categorical, pl.Enum)):
        return text
    if dtype == pl.Boolean:
        lower = text.str.to_lowercase()
        return lower.replace_strict(BOOLEANS, default=None, return_dtype=dtype)
    if isinstance(dtype, pl.Duration):
        text = text.str.replace_all(" -?", "").str.replace_all("µ", "u")
        start = pl.lit(0).cast(pl.Datetime(dtype.time_unit))
        return start.dt.offset_by(pl.when(text.str.contains(_DURATION)).then(text)) - start
    if dtype == pl.Binary:
        return text.str.decode("hex", strict=False)
    if not dtype.is_temporal():
        return text.cast(dtype, strict=False)
    if dtype != pl.Time:  # Dates begin with the year: other orders can be read in two ways.
        text = pl.when(text.str.contains(r"^\d{4}\D")).then(text).str.replace("T", " ")
    is_day, has_zone = text.str.contains(r"^\S+$"), text.str.contains(_ZONE)
    # Polars takes the form of the first text for that of all.
    forms = (is_day, has_zone & ~is_day, ~has_zone & ~is_day)
    return pl.coalesce(pl.when(form).then(text).str.strptime(dtype, strict=False) for form in forms)


def _of_texts(dtype: Any) -> Any:  # noqa: ANN401 - as `inner` of a dtype
    """A nested dtype with text in place of all values."""
    if isinstance(dtype, (pl.List, pl.Array)):
        return pl.List(_of_texts(dtype.inner))
    if isinstance(dtype, pl.Struct):
        return pl.Struct({field.name: _of_texts(field.dtype) for field in dtype.fields})
    return pl.String()


def label_text(value: object) -> str:
    """The text of a label."""
    return "null" if value is None else str(value)


def count_as_text(n: float) -> str:
    """The text of a number of rows, or of a sum of weights."""
    return f"{n:,}" if isinstance(n, int) else f"{n:,.6g}"


def rows_in_words(n: float) -> str:
    """A number of rows in words."""
    return f"{count_as_text(n)} {'row' if n == 1 else 'rows'}"


def percent(share: float) -> str:
    """A share in percent, with one decimal below 10 %. The space does not break the line."""
    digits = 0 if share >= 0.1 or share == 0 else 1
    return f"{100 * share:.{digits}f}\u00a0%"


# A `_` inside a word, as in `n_null`, is no mark-up.
_MARKDOWN_MARKS = re.compile(r"[\\`*\[\]<>|~#]|(?<![^\W_])_|_(?![^\W_])")


def in_markdown(text: str) -> str:
    """Escape text for Markdown, so that it cannot be HTML or mark-up, nor end a cell or a line."""
    escaped = _MARKDOWN_MARKS.sub(r"\\\g<0>", text.replace("&", "&amp;"))
    # GitHub would notify a person who is named after an @.
    return re.sub("\r\n?|\n", "<br>", escaped.replace("@", "@<!-- -->"))


def json_rows(rows: pl.DataFrame) -> list[dict[str, Any]]:
    """The rows for JSON: as Polars writes them, but NaN and infinities are text and not null.

    The texts are "NaN", "Infinity" and "-Infinity": `float` of Python reads them.
    """
    written: list[dict[str, Any]] = json.loads(rows.write_json())
    for name, dtype in rows.schema.items():
        if dtype.is_nested() or dtype.is_float():
            for row, value in zip(written, rows[name].to_list(), strict=True):
                row[name] = _in_json(row[name], value)
    return written


def _in_json(written: Any, value: Any) -> Any:  # noqa: ANN401 - of any dtype
    if isinstance(value, float) and not math.isfinite(value):
        return json.dumps(value)
    if value is None:
        return None
    if isinstance(written, dict):
        return {name: _in_json(field, value[name]) for name, field in written.items()}
    if isinstance(written, list):
        return [_in_json(*pair) for pair in zip(written, value, strict=True)]
    return written
