"""Errors about values, raised by the query itself.

A plan of native expressions cannot call Python to raise. A strict cast can fail, and its
error shows the value that it could not convert: so the message is made the value.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl


@dataclass(frozen=True)
class Failure:
    """A condition under which there is no answer, and what to say then."""

    when: pl.Expr
    message: pl.Expr


def told(*parts: str | pl.Expr) -> pl.Expr:
    """A message of words and values, without `pl.format`, which panics in Polars 2.0 at times."""
    texts = (pl.lit(one) if isinstance(one, str) else one.cast(pl.String) for one in parts)
    return pl.concat_str(*texts)


def unless(value: pl.Expr, *failures: Failure) -> pl.Expr:
    """`value`, or an error that shows the message of the first failure that holds."""
    if not failures:
        return value
    messages = [pl.when(failure.when).then(failure.message) for failure in failures]
    stop = pl.coalesce(messages).cast(pl.Int64)
    return pl.when(stop.is_null()).then(value)


def reason(error: BaseException) -> str:
    """The message given to `unless`, or what Polars says first of another error."""
    text = str(error)
    if text.startswith("conversion from `str` to `i64` failed") and '["' in text:
        return text.split('["', 1)[1].split('"]', 1)[0].split('", "', 1)[0]
    return text.split("\n\n", 1)[0].strip()
