#!/usr/bin/env bash
# Spark 4.2.0 with `datetimeRebaseModeInWrite=LEGACY` (a common setting after a move from Spark 2)
# counts days before 1582-10-15 by the Julian calendar, as Spark 2 did, and says so by a key in the
# footer alone. Spark reads the day that was written. pyarrow 26.0.1 and DuckDB 2.0.0 do not know
# the key: 1000-01-01 is 1000-01-06 for them, 0001-01-01 is a day of the year before, and a filter
# by the day that was written finds nothing. So does every reader of a Delta table with such a file
# that reads by them, while the bounds in its log, which Spark writes, name the right day.
#
# Needs Java 17 or newer. Exits 1 if the behaviour changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q pyspark==4.2.0 pyarrow==26.0.1 duckdb==2.0.0
cd "$folder"
venv/bin/python - <<'PY'
import glob

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
from pyspark.sql import SparkSession

spark = (
    SparkSession.builder.master("local[1]")
    .config("spark.ui.enabled", "false")
    .config("spark.sql.parquet.datetimeRebaseModeInWrite", "LEGACY")
    .getOrCreate()
)
spark.sparkContext.setLogLevel("OFF")
days = ["0001-01-01", "1000-01-01", "1582-10-15"]
rows = spark.createDataFrame([(day,) for day in days], "day string")
rows.selectExpr("cast(day as date) as day").coalesce(1).write.parquet("days")
(file,) = glob.glob("days/*.parquet")
print("pyspark", pyspark.__version__, "pyarrow", pa.__version__, "duckdb", duckdb.__version__)
found = {
    "Spark": [str(row.day) for row in spark.read.parquet("days").orderBy("day").collect()],
    "pyarrow": pq.read_table(file).column("day").cast(pa.string()).to_pylist(),
    "DuckDB": [text for (text,) in duckdb.sql(f"select day::varchar from '{file}'").fetchall()],
}
for reader, texts in found.items():
    print(f"{reader}:", texts)
equal = duckdb.sql(f"select count(*) from '{file}' where day = date '1000-01-01'").fetchall()
print("DuckDB, where day = date '1000-01-01':", equal)
print("footer:", sorted(key for key in pq.read_metadata(file).metadata if b"legacy" in key))
assert found["Spark"] == days
assert found["pyarrow"][1:] == ["1000-01-06", "1582-10-15"]
assert found["DuckDB"][1:] == ["1000-01-06", "1582-10-15"]
assert equal == [(0,)]
PY
