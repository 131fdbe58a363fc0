"""Typed columns and keys mean what SQL says: double quotes are of names, single quotes of texts."""

from __future__ import annotations

from collections import Counter

import polars as pl
import pytest
from runner import invoke

from polars_mcc._inputs.sql_columns import check_row_by_row

ROWS = [("de", 1, "Country"), ("fr", 2, "Country"), ("fr", 2, "q")]
NAMES = ["Country", "q x", "text"]


@pytest.fixture(autouse=True)
def _in_a_new_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [(*row, 0, 1) for row in ROWS]
    pl.DataFrame(rows, [*NAMES, "gold", "pred"], orient="row").write_parquet("log.parquet")


QUOTED = {
    'upper("Country")': lambda country, _, __: country.upper(),
    "upper('Country')": lambda *_: "COUNTRY",
    "upper(Country)": lambda country, _, __: country.upper(),
    'concat(upper("text"), \'"é"\', "q x")': lambda _, number, text: f'{text.upper()}"é"{number}',
    '"q x"': lambda _, number, __: number,
    '"Country"': lambda country, _, __: country,
}


@pytest.mark.parametrize("form", ["{}", "each({})", "sets(({}, text))", "each({}, total=True)"])
def test_quotes_are_those_of_sql_in_every_key(form):
    reached = 0
    for sql, value in QUOTED.items():
        done = invoke("by", "log.parquet", "--by", form.format(sql), "--format", "json")
        assert done.exit_code == 0, done.stderr
        name = sql if "(" in sql else sql.strip('"')
        found, counted = Counter(), Counter(value(*row) for row in ROWS)
        for row in pl.read_json(done.stdout_bytes).iter_rows(named=True):
            if row.get("keys") != "":
                found[row[name]] += row["n"]
        assert found == counted, (sql, form)
        reached += 1
    assert reached == len(QUOTED)


@pytest.mark.parametrize("option", ["--gold", "--pred", "--weight", "--cluster"])
def test_a_name_in_quotes_is_the_column(option):
    typed = [invoke("by", "log.parquet", option, name, "--ci", "0.9") for name in ("q x", '"q x"')]
    assert typed[0] == typed[1]
    assert "'q y'; did you mean 'q x'?" in invoke("by", "log.parquet", option, '"q y"').stderr


OF_ONE_ROW = ["a + 1", "1", "upper(b) || 'x'", "CASE WHEN a > 1 THEN b END", "a IN (1, 2)"]
OF_ONE_ROW += ["b LIKE 'x%'", "greatest(a, 2)", "a::VARCHAR", "string_to_array(b, ',')"]
OF_ONE_ROW += ["b::DATE", "substr(b, 1, 10)::TIMESTAMP", "strptime(b, '%Y')", "b <> ') over'"]
OF_SEVERAL = ["row_number() over (order by a)", "sum(a) OVER (partition by b)", "max(a)"]
OF_SEVERAL += ["lag(a) over(order by b)", "a = first_value(a)", "string_agg(b, ',') = 'x'"]
OF_SEVERAL += ["count(*) > 1", "a > avg(a)", "coalesce(a, min(a))", "array_agg(a)"]


@pytest.mark.parametrize("sql", OF_ONE_ROW + OF_SEVERAL)
def test_sql_of_several_rows_is_known(sql):
    schema = pl.Schema({"a": pl.Int64(), "b": pl.String(), "max(a)": pl.Int64()})
    if sql in OF_ONE_ROW:
        check_row_by_row(sql, schema)
    else:
        with pytest.raises(ValueError, match="uses several rows at once"):
            check_row_by_row(sql, schema)
