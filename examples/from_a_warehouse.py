"""Count the predictions of two models in a warehouse, and compare the models from the counts.

python examples/from_a_warehouse.py
"""

import tempfile

import duckdb
import polars as pl

import polars_mcc

# A warehouse with three tables. Yours is duckdb.connect("warehouse.duckdb"), or another engine.
db = duckdb.connect()
db.execute("""
    CREATE TABLE customers AS SELECT i AS customer, ['BR', 'DE', 'US'][1 + i % 3] AS country
        FROM range(900) t(i);
    CREATE TABLE labels AS SELECT i AS payment, hash(i, 'gold') % 5 = 0 AS fraud
        FROM range(30_000) t(i);
    CREATE TABLE predictions AS SELECT payment, payment % 900 AS customer, model, fraud <> (hash(
        payment, model) % 100 < if(model = 'v1', 8, if(payment % 3 = 0, 16, 4))) AS pred
        FROM labels, (VALUES ('v1'), ('v2')) t(model);
    DELETE FROM labels WHERE payment >= 29_000;
""")
# Put your tables and columns here. LEFT JOIN keeps payments without a label: n_null counts them.
counts = db.sql("""
    SELECT country, fraud, a.pred AS v1, b.pred AS v2, count(*) AS n
    FROM predictions a JOIN predictions b USING (payment, customer) JOIN customers USING (customer)
    LEFT JOIN labels USING (payment) WHERE a.model = 'v1' AND b.model = 'v2' GROUP BY ALL
""")
with tempfile.TemporaryDirectory() as folder:
    counts.write_parquet(f"{folder}/counts.parquet")  # COPY (SELECT ...) TO 'counts.parquet'
    frame = pl.read_parquet(f"{folder}/counts.parquet")
log = frame.mcc(gold="fraud", pred=["v1", "v2"], weight="n")
# With pip install 'polars-mcc[engines]' no file is needed, and DuckDB counts the rows of a query:
# polars_mcc.PredictionLog(db.sql("SELECT ..."), gold="fraud", pred=["v1", "v2"]).by("country").

print("The counts: a row stands for n payments.", frame.sort("n").tail(3), sep="\n")
print("MCC of each country, with a 95 % interval:", log.by("country", ci=0.95), sep="\n")
compared = log.compare("country").select("country", "reference", "score", "diff_low", "diff_high")
print("v2 (b) beats v1 (a) where diff_low is above 0:", compared, sep="\n")
try:  # A gate. Without the try, a job stops here if an interval lies below 0.7.
    log.check("country", min=0.7, ci=0.95)
except polars_mcc.CheckError as error:
    print("Do not release v2:", error)
