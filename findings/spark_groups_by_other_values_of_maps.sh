#!/usr/bin/env bash
# Spark 4.2.0: GROUP BY a map counts a row whose map holds NULL in the group of another row. The
# rule that sorts a map's entries (MapSort) reads the slot of a NULL value in generated code. In a
# Parquet file with a dictionary, which is the usual one, that slot holds some value of the
# dictionary; of rows that were made otherwise it holds 0. Numbers, booleans, dates and times are
# hit, texts and decimals are not. The interpreter is right, and so is `group by map_entries(m)`.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pyspark==4.2.0
"$folder/venv/bin/python" - "$folder" <<'PYTHON'
import sys

from pyspark.sql import SparkSession

spark = (
    SparkSession.builder.master("local[1]")
    .config("spark.ui.enabled", "false")
    .config("spark.ui.showConsoleProgress", "false")
    .config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.driver.host", "127.0.0.1")
    .config("spark.sql.warehouse.dir", sys.argv[1])
    .getOrCreate()
)
spark.sparkContext.setLogLevel("ERROR")
print("pyspark", spark.version)


def groups(kind, value, key="m", shown="m"):
    """Return the values of `a` that groups show, and their rows: six rows of nine hold NULL."""
    path = f"{sys.argv[1]}/{kind}"
    made = f"cast(if(id % 3 = 0, {value}, null) as {kind})"
    rows = spark.sql(f"select map('a', {made}) as m from range(9)").coalesce(1)
    rows.write.mode("overwrite").parquet(path)
    query = f"select {shown} as m, count(*) as n from parquet.`{path}` group by {key}"
    found = spark.sql(f"select m['a'] as v, n from ({query})").collect()
    print(kind, key, found)
    return sorted((str(row.v), row.n) for row in found)


right = [("7", 3), ("None", 6)]
assert groups("int", 7) == [("7", 9)]
assert groups("double", 7) == [("7.0", 9)]
assert groups("date", "date'2026-03-01'") == [("2026-03-01", 9)]
assert groups("string", "'7'") == right
assert groups("decimal(38,0)", 7) == right
assert groups("int", 7, "map_entries(m)", "any_value(m)") == right
spark.conf.set("spark.sql.codegen.wholeStage", "false")
spark.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
assert groups("int", 7) == right
spark.stop()
PYTHON
