#!/bin/bash
# The key of `map(d, 1)` for a d of -0.0 depends on how Spark 4.2.0 happens to run the expression.
#
# A good engineer expects one SQL expression over one value to give one result. Since Spark 4.0 the
# builder of maps makes 0.0 of a key -0.0 (ArrayBasedMapBuilder.put), and `map(..)` that is folded
# before the query runs, or interpreted, puts its keys one by one. The code that is generated for it,
# and `map_from_arrays`, call `from`, which gives back the array of keys it was given, unless one came
# twice. So a column and a literal of one value give maps of different text, and a query says
# something else once code generation is off, or falls back.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pyspark==4.2.0
cat > "$folder/zero.py" <<'PY'
import sys

import pyspark
from pyspark.sql import SparkSession

spark = (
    SparkSession.builder.master("local[1]")
    .config("spark.ui.enabled", "false")
    .config("spark.sql.warehouse.dir", sys.argv[1])
    .getOrCreate()
)
spark.sparkContext.setLogLevel("ERROR")
spark.range(1).selectExpr("-0D as d").write.parquet(sys.argv[1] + "/rows")
spark.read.parquet(sys.argv[1] + "/rows").createOrReplaceTempView("rows")


def text(expression: str) -> str:
    return spark.sql(f"select cast({expression} as string) as t from rows").first().t


print("pyspark", pyspark.__version__)
seen = {expression: text(expression) for expression in (
    "map(d, 1)", "map(-0D, 1)", "map_from_arrays(array(d), array(1))",
)}
spark.conf.set("spark.sql.codegen.wholeStage", "false")
spark.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
seen["map(d, 1) without generated code"] = text("map(d, 1)")
for expression, found in seen.items():
    print(f"{expression:40} {found}")
expected = ["{-0.0 -> 1}", "{0.0 -> 1}", "{-0.0 -> 1}", "{0.0 -> 1}"]
sys.exit(list(seen.values()) != expected)
PY
"$folder/venv/bin/python" "$folder/zero.py" "$folder/warehouse"
