#!/usr/bin/env bash
# Spark 4.2.0 shuffles both sides of a join although each is in one partition, as by `coalesce(1)`,
# if their rows came from Python. It shuffles no aggregate and no window over the same rows. The
# size of an RDD is `spark.sql.defaultSizeInBytes`, 8 EiB, and a single partition of more than
# `spark.sql.maxSinglePartitionBytes` (128 MiB) is shuffled before a join, even into one partition.
# A frame that was made of an Arrow table of less than 48 MB has its true size. So does `range`.
# Another limit does not help above a second join: the size of a join is the product of both sides,
# larger than any limit. With `spark.sql.defaultSizeInBytes=1` nothing is shuffled, and a join of a
# thousand rows takes about half the time.
#
# Needs Java 17 or newer. Exits 1 if the behaviour changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q pyspark==4.2.0
cd "$folder"
venv/bin/python - <<'PY'
import pyspark
from pyspark.sql import SparkSession

spark = (
    SparkSession.builder.master("local[1]")
    .config("spark.ui.enabled", "false")
    .config("spark.sql.autoBroadcastJoinThreshold", "-1")
    .config("spark.sql.adaptive.enabled", "false")
    .getOrCreate()
)
spark.sparkContext.setLogLevel("OFF")
print("pyspark", pyspark.__version__)
for name in ("a", "b", "c"):
    rows = spark.sparkContext.parallelize([(1, 2), (3, 4)])
    spark.createDataFrame(rows, "k int, v int").coalesce(1).createOrReplaceTempView(name)
QUERIES = {
    "aggregate": "select k, sum(v) from a group by k",
    "window": "select k, sum(v) over (partition by k) from a",
    "join": "select * from a join b using (k)",
    "two left joins": "select * from a left join b using (k) left join c using (k)",
}


def shuffles() -> dict[str, int]:
    plans = {name: spark.sql(text)._jdf.queryExecution() for name, text in QUERIES.items()}
    return {name: plan.executedPlan().toString().count("Exchange") for name, plan in plans.items()}


counts = {"by default": shuffles()}
spark.conf.set("spark.sql.maxSinglePartitionBytes", str(2**63 - 1))
counts["largest maxSinglePartitionBytes"] = shuffles()
spark.conf.set("spark.sql.maxSinglePartitionBytes", "128m")
spark.conf.set("spark.sql.defaultSizeInBytes", "1")
counts["defaultSizeInBytes=1"] = shuffles()
for setting, found in counts.items():
    print(f"shuffles, {setting}:", found)
assert counts["by default"] == {"aggregate": 0, "window": 0, "join": 2, "two left joins": 3}
assert counts["largest maxSinglePartitionBytes"]["join"] == 0
assert counts["largest maxSinglePartitionBytes"]["two left joins"] > 0
assert set(counts["defaultSizeInBytes=1"].values()) == {0}
PY
