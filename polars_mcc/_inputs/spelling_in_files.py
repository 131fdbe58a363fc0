"""Remarks on labels and keys that are spelled otherwise in a CSV file, or in names of folders."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

import polars as pl

from polars_mcc._base.message_parts import in_shell, option, quoted
from polars_mcc._base.values_as_text_or_markdown import rows_in_words
from polars_mcc._frame.columns import IntoColumn, as_expr
from polars_mcc._inputs import read_files
from polars_mcc._inputs.find_files import absolute
from polars_mcc._inputs.log_from_files import TypedLog
from polars_mcc._inputs.paths_and_settings import partitions

_TEXT_PREFIX = "polars_mcc:text of "
_WORDS_FOR_MISSING = ("", "na", "n/a", "#n/a", "<na>", "nan", "none", "null")  # in any case


def spelling_warnings(log: TypedLog) -> Iterator[str]:
    """Sentences on labels and keys that a CSV file spells otherwise. The file is read again."""
    if log.of_labels is not None:
        yield from spelling_warnings(log.of_labels)
    if log.inputs.partitions:
        yield from _spellings_of_folders(log)
    if not log.is_csv:
        return
    schema = read_files.scan_logs(log.inputs).collect_schema()
    columns = (_plain_columns(group, schema) for group in log.compared_columns)
    labels, *other_groups = ([*dict.fromkeys(group)] for group in columns)
    of_values = [labels, *other_groups]
    if any(schema[name] == pl.Boolean for name in labels):
        of_values = other_groups  # Beside Booleans, 01 is 1, and text is refused.
    numbers = [[name for name in group if schema[name].is_numeric()] for group in of_values]
    numbers = [group for group in numbers if group]
    texts = [name for name in labels if schema[name] == pl.String]
    rows = _rows_with_texts(log, schema, {*itertools.chain(*numbers)})
    spelled = [_spellings_of_numbers(rows, group, schema) for group in numbers]
    queries = [*spelled, *(_missing_labels(rows, name) for name in texts)]
    with read_files.named_if_corrupt(log.inputs, [*itertools.chain(texts, *numbers)]):
        collected = pl.collect_all(queries)
    for group, several in zip(numbers, collected, strict=False):
        if several.height:
            spelling, number = several.row(0)
            and_more = f" (and {several.height - 1:,} more)" if several.height > 1 else ""
            yield (
                f"{quoted(group)}: read as {schema[group[0]]}, which spells {quoted(spelling)} as "
                f"{number}{and_more}; to keep the text, add {in_shell(option('text', group))}"
            )
    for name, words in zip(texts, collected[len(numbers) :], strict=True):
        if words.height:
            counted = (f"'{word}' in {rows_in_words(n)}" for word, n in words.iter_rows())
            yield (
                f"'{name}' has the label {' and '.join(counted)}, a class like others; if it means "
                f"that there is no label, add {in_shell(option('null', [*words['label']]))}"
            )


def _spellings_of_folders(log: TypedLog) -> Iterator[str]:
    """Sentences on folders `name=value` whose values are one number of several spellings."""
    schema = read_files.scan_logs(log.inputs).collect_schema()
    names = itertools.chain(*(_plain_columns(group, schema) for group in log.compared_columns))
    parts = {part for file in log.inputs.files for part in partitions(absolute(file))}
    for name in dict.fromkeys(names):
        if name in log.inputs.partitions and schema[name].is_numeric():
            texts = sorted(part.partition("=")[2] for part in parts if part.startswith(f"{name}="))
            number = pl.Series(texts, dtype=pl.String).cast(schema[name], strict=False)
            read = pl.DataFrame({"text": texts, "number": number}).drop_nulls()
            of_number = read.group_by("number", maintain_order=True).agg("text")
            for first, *further in of_number["text"]:
                if further:
                    same = quoted(f"{name}={text}" for text in (first, *further))
                    yield (
                        f"the folders {same} have one value, as a number; if these are several "
                        f"values, rename the folders, as in '{name}=v{first}'"
                    )


def _plain_columns(columns: list[IntoColumn], schema: pl.Schema) -> Iterator[str]:
    """The columns of the file that are used as they are, perhaps as text or with another name."""
    for column in columns:
        plain = column if isinstance(column, str) else column.meta.undo_aliases()
        if isinstance(plain, pl.Expr):
            plain = plain.meta.output_name() if plain.meta.is_column() else ""
        plain = plain if plain in schema else _read_by(plain)
        if plain in schema:
            yield plain


def _read_by(sql: str) -> str:
    """The column that SQL takes as it is, or casts to text; "" if it computes something else."""
    try:
        column = pl.sql_expr(sql)
    except pl.exceptions.PolarsError:
        return ""
    own = [pl.col(name) for name in column.meta.root_names()]
    same = (col for col in own for text in (col, col.cast(pl.String)) if text.meta.eq(column))
    return next((col.meta.output_name() for col in same), "")


def _rows_with_texts(log: TypedLog, schema: pl.Schema, numbers: set[str]) -> pl.LazyFrame:
    """The rows that are scored, with the text of each number beside it."""
    text = [*(log.options.text or ()), *numbers]
    as_text = replace(log, options=replace(log.options, text=text), source=None)
    columns = {name: as_expr(name) for name in numbers}
    texts = {_TEXT_PREFIX + name: column for name, column in columns.items()}
    read = {name: column.cast(schema[name], strict=False) for name, column in columns.items()}
    rows = read_files.scan_logs(as_text.inputs).with_columns(**texts).with_columns(**read)
    return replace(as_text, source=rows).rows


def _spellings_of_numbers(rows: pl.LazyFrame, names: list[str], schema: pl.Schema) -> pl.LazyFrame:
    """The texts of each number that has several, or for integers one with zeros before it."""
    each = (rows.select(number=as_expr(name), text=as_expr(_TEXT_PREFIX + name)) for name in names)
    pairs = pl.concat(each, how="vertical_relaxed")
    is_integer = schema[names[0]].is_integer()
    if is_integer:
        pairs = pairs.filter(pl.col("text") != pl.col("number").cast(pl.String()))
    of_number = pairs.group_by("number").agg(pl.col("text").drop_nulls().unique().sort())
    several = of_number.filter(pl.col("text").list.len() > (0 if is_integer else 1))
    return several.sort("number").select("text", "number")


def _missing_labels(rows: pl.LazyFrame, name: str) -> pl.LazyFrame:
    """The labels of a column that may mean that there is no label, and their rows."""
    label = as_expr(name)
    words = rows.filter(label.str.strip_chars().str.to_lowercase().is_in(_WORDS_FOR_MISSING))
    return words.group_by(label=label).agg(pl.len()).sort("label")
