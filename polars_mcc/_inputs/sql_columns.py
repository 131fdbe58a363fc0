"""Typed columns and keys: a name, SQL, or a call such as `each(a, b)`."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import polars as pl

from polars_mcc._base.errors_and_warnings import reason
from polars_mcc._base.message_parts import as_sql, as_time, in_shell, sql_text
from polars_mcc._base.unstable_polars import by_sql
from polars_mcc._frame.columns import IntoColumn, as_expr
from polars_mcc._frame.missing_and_likely_columns import no_column
from polars_mcc._keys.any_key import WORDS, IntoKey

UseOfSql: TypeAlias = Callable[[pl.LazyFrame, str], pl.LazyFrame]
"""The rows of a log, with or by an SQL expression."""

_NAME = re.compile(r"[^\W\d]\w*")
_QUOTED_NAME = re.compile(r'"((?:[^"]|"")+)"')
_QUOTED = re.compile(r"""'(?:[^']|'')*'|"[^"]*\"""")
_ALIAS = re.compile(r"""^(.*)\s+AS\s+(?:"([^"]+)"|([^\W\d]\w*))\s*$""", re.IGNORECASE | re.DOTALL)


class TypedColumns:
    """Typed columns of one log: each SQL expression becomes an additional column."""

    def __init__(
        self,
        log: pl.LazyFrame,
        keys: Iterable[str],
        columns: Mapping[str, str | Sequence[str] | None],
    ) -> None:
        """Read all keys, and all columns by the name of the option that they are typed after."""
        self.schema = log.collect_schema()
        self.computed: set[str] = set()
        """SQL expressions to compute. The text of each is the name of its column."""
        self.read: set[str] = set()
        """Columns of the log that the command uses."""
        self.keys = [self._key(text) for text in keys]
        self.columns: dict[str, IntoColumn | list[IntoColumn] | None] = {}
        for name, typed in columns.items():
            flag = f"--{name.replace('_', '-')}"
            texts = [typed] if isinstance(typed, str) else typed or ()
            listed = [self._column(flag, text) for text in texts]
            self.columns[name] = listed[0] if len(listed) == 1 else listed or None
        self.rows = _with_computed(log, sorted(self.computed))
        """The rows of the log, with the computed columns."""

    def _column(self, option: str, text: str) -> IntoColumn:
        """The column of this name; if there is none, the column that this SQL computes.

        A name wins even if it looks like SQL. A computed column is called by its AS name, or else
        by its SQL text.
        """
        schema = self.schema
        if (quoted := _QUOTED_NAME.fullmatch(text)) and text not in schema:
            name = quoted[1].replace('""', '"')
            text = name if name in schema else text
        if text in schema or _NAME.fullmatch(text):
            self.read.add(text)
            return text
        if renamed := _ALIAS.match(text):
            return as_expr(self._column(option, renamed[1])).alias(renamed[2] or renamed[3])
        is_several = "(" not in text and "," in text
        hint = f"repeat {option} for several columns: {option} a {option} b" if is_several else ""
        what = f"{option} {text!r} is neither a column nor SQL"
        _check_sql(lambda rows, sql: _with_computed(rows, [sql]), schema, text, what, hint)
        self.read.update(columns_in(text, schema))
        self.computed.add(text)
        return text

    def _key(self, text: str) -> IntoKey:
        """A column, or a call of a function that makes a key, such as `each(a, b)`."""
        word = text.split("(", 1)[0].strip()
        if text in self.schema or word not in WORDS or "(" not in text:
            return self._column("--by", text)
        try:
            call = ast.parse(text := text.strip(), mode="eval").body
            if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name)):
                raise TypeError  # noqa: TRY301 - handled like text that cannot be parsed
            columns = call.args[:1] if WORDS[word].of_one else call.args
            of_log = (self._argument(text, word, node) for node in columns)
            lengths = map(_literal, call.args[len(columns) :])
            named = {keyword.arg or "": _literal(keyword.value) for keyword in call.keywords}
            return WORDS[word].make(*of_log, *lengths, **named)  # type: ignore[no-any-return]
        except (SyntaxError, TypeError) as error:
            raise ValueError(
                f"--by {text!r} is not valid: write it as in Python, with quotes around SQL "
                f"and names that are not plain words, such as {WORDS[word].example}"
            ) from error

    def _argument(self, text: str, word: str, node: ast.expr) -> Any:  # noqa: ANN401 - of any of the words
        if isinstance(node, ast.Name):
            return self._column("--by", node.id)
        if isinstance(node, ast.Call):
            # As it is typed: in SQL, double quotes are of names, and single quotes of texts.
            return self._key(ast.get_source_segment(text, node) or "")
        if isinstance(node, (ast.Tuple, ast.List)) and word == "sets":
            return tuple(self._argument(text, word, item) for item in node.elts)
        if not isinstance(value := _literal(node), str):
            raise TypeError
        return self._column("--by", value)


def _with_computed(rows: pl.LazyFrame, computed: Sequence[str]) -> pl.LazyFrame:
    if not computed:
        return rows
    named = ((_one_expression(sql), sql.replace('"', '""')) for sql in computed)
    columns = ", ".join(f'{expression} AS "{name}"' for expression, name in named)
    return by_sql(rows, f"SELECT *, {columns} FROM self")  # noqa: S608 - see `_one_expression`


def _literal(node: ast.expr) -> Any:  # noqa: ANN401 - of any of the words
    try:
        return ast.literal_eval(node)
    except ValueError as error:
        raise SyntaxError from error


def columns_in(sql: str, schema: pl.Schema) -> list[str]:
    """The columns of a schema whose names occur in the SQL outside texts, so it may read them."""
    sql = _QUOTED.sub(lambda quoted: "''" if quoted[0].startswith("'") else quoted[0], sql)
    named = (name for name in schema if name in sql)
    return [name for name in named if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", sql)]


_OVER = re.compile(r"\)\s*over\b", re.IGNORECASE)


def check_row_by_row(sql: str, schema: pl.Schema) -> None:
    """Raise a ValueError if SQL uses several rows at once, such as an aggregation or OVER.

    WHERE takes aggregations. Beside all columns, SELECT does not, so Polars tells which they are.
    """
    is_of_several = _OVER.search(_QUOTED.sub("''", sql)) is not None
    try:
        _with_computed(pl.LazyFrame(schema=schema), [sql]).collect_schema()
    except pl.exceptions.SQLSyntaxError:
        is_of_several = True
    if is_of_several:
        raise ValueError(
            f"{sql!r} uses several rows at once; a store counts files one by one, so use SQL of "
            "single rows"
        )


def filtered(rows: pl.LazyFrame, condition: str | None) -> pl.LazyFrame:
    """The rows where a condition in SQL is true."""
    if condition is None:
        return rows
    return by_sql(rows, f"SELECT * FROM self WHERE {_one_expression(condition)}")  # noqa: S608 - see `_one_expression`


# A query begins with one of these words, so a subquery does after its parenthesis. Before an
# operator the word is a column: no table is called so. `$` begins a parameter or a string.
_START_OF_QUERY = re.compile(
    r"""(?:^|\()\s*(?:(?:select|with)\b|values?\s*(?:row\s*)?\(|
    (?:from|table)\b(?=\s*[\w"'`(])(?!\s*(?:in|between|is|not|i?like|and|or)\b))|
    --|/\*|(?<!\w)\$""",
    re.IGNORECASE | re.VERBOSE,
)


def _one_expression(sql: str) -> str:
    """SQL in parentheses; an SQLInterfaceError if it is not one expression of the log's columns.

    Polars parses it as one expression, so that it cannot leave the parentheses. It would read the
    files of a subquery while it parses. So each beginning of a subquery or a comment becomes `;`:
    a character in a quoted text, an error elsewhere.
    """
    parsed = _START_OF_QUERY.sub(";", sql)
    # DATE_TRUNC needs the dtype of the column. The query itself knows it.
    parsed = re.sub("date_trunc", "coalesce", parsed, flags=re.IGNORECASE)
    try:
        pl.sql_expr(f"CASE WHEN {parsed} THEN 1 END")  # Alone, a column `values` is no expression.
    except pl.exceptions.SQLInterfaceError as error:
        if not str(error).startswith("invalid expression"):
            raise
        msg = "it must be one expression, without a subquery, a comment or ';'"
        raise pl.exceptions.SQLInterfaceError(msg) from None
    return f"({sql})"


def check_condition(condition: str, schema: pl.Schema) -> None:
    """Raise an error unless rows of a schema can be filtered by a condition."""
    _check_sql(filtered, schema, condition, f"filter {condition!r} is not SQL")


def _check_sql(query: UseOfSql, schema: pl.Schema, sql: str, what: str, hint: str = "") -> None:
    """Raise an error that says `what` is wrong, unless a query accepts rows of this schema."""
    error = _sql_error(query, schema, sql) or _error_of_text(query, schema, sql)
    if error is not None:
        why = hint or _advice(error, query, schema, sql)
        raise type(error)(f"{what} that Polars accepts: {why}")


def _sql_error(
    query: UseOfSql, schema: Mapping[str, pl.DataType], sql: str
) -> pl.exceptions.PolarsError | None:
    """The error of SQL on one row of nulls: of the SQL, or of the dtypes. No data are read."""
    try:
        query(pl.LazyFrame({name: [None] for name in schema}, schema=schema), sql).collect()
    except pl.exceptions.PolarsError as error:
        return error
    return None


_IN_LIST = re.compile(r"\bIN\s*\([^()]*\)", re.IGNORECASE)
_INTEGER_IN_LIST = re.compile(r"(?<=[(,])(\s*[-+]?\d+\s*)(?=[,)])")
_DECIMAL = re.compile(rf"{_QUOTED.pattern}|(?<![\w.])(\d+\.\d*|\.\d+|\d{{19,}})(?![\w.])")


def _with_floats(sql: str) -> str:
    """SQL with floats for its decimal numbers, and for the integers of IN."""
    sql = _IN_LIST.sub(lambda items: _INTEGER_IN_LIST.sub(r"\1.0", items[0]), sql)
    return _DECIMAL.sub(lambda number: f"{number[1]}e0" if number[1] else number[0], sql)


def _error_of_text(
    query: UseOfSql, schema: Mapping[str, pl.DataType], sql: str
) -> pl.exceptions.PolarsError | None:
    """The error of SQL that compares text with a number.

    Polars refuses to compare text with floats. With decimals, such as 0.5, and in IN, it compares
    texts: "3e-05" >= "0.5" is true. So all numbers are floats here.
    """
    floats = {
        name: pl.Float64() if dtype == pl.Decimal else dtype for name, dtype in schema.items()
    }
    error = _sql_error(query, floats, _with_floats(sql))
    is_of_text = error is not None and re.search(r"\bstring\b", str(error), re.IGNORECASE)
    return error if is_of_text else None


_COLUMN_IN_ERROR = re.compile(r'(?:column |col\()"([^"]*)"')
_ERRORS_OF_NAMES = (pl.exceptions.ColumnNotFoundError, pl.exceptions.SQLInterfaceError)


def _advice(error: pl.exceptions.PolarsError, query: UseOfSql, schema: pl.Schema, sql: str) -> str:
    """Why Polars refuses SQL, with the way out: the nearest column, or another dtype of text."""
    message = str(error)
    missing = [name for name in _COLUMN_IN_ERROR.findall(message) if name not in schema]
    if missing and isinstance(error, _ERRORS_OF_NAMES):
        is_quoted = f'"{missing[0]}"' in sql
        text = f" A text is in single quotes: {sql_text(missing[0])}." if is_quoted else ""
        return no_column(missing[0], schema) + text
    is_time = ".dt." in message or "date/datetime" in message
    dtype = pl.Datetime() if is_time else pl.Float64()
    for name in columns_in(sql, schema):
        as_other = {**schema, name: dtype}
        if schema[name] != pl.String or _sql_error(query, as_other, _with_floats(sql)) is not None:
            continue
        if is_time:
            way_out = in_shell(as_time(name))
            return f"'{name}' is text, not a time; convert it, as in {way_out}"
        return (
            f"'{name}' is text, not a number; convert it, as in {as_sql(name)}::DOUBLE, or add "
            "--null NA if it is text in a CSV file because NA stands for no value"
        )
    return reason(error)
