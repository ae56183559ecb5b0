#!/usr/bin/env bash
# Spark's documentation names `spark.pyspark.python` as the Python executable of driver and
# executors. In PySpark 4.2.0 only `spark-submit` reads it. A program that Python starts, and that
# sets it through `SparkSession.builder.config`, has its workers run the `python3` of the PATH: here
# the property names a file that does not exist, the session shows it, and a function of Python runs
# all the same. Only the environment variable PYSPARK_PYTHON decides, and it must be set before the
# context starts. On a cluster whose machines have another `python3`, or packages in an archive,
# the property alone gives "No module named ..." or the wrong versions.
#
# Needs Java 17 or newer. Exits 1 if the behaviour changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q pyspark==4.2.0
cd "$folder"
cat >workers.py <<'PY'
import sys

import pyspark
from pyspark.sql import SparkSession

named = "/nowhere/python"
spark = (
    SparkSession.builder.master("local[1]")
    .config("spark.ui.enabled", "false")
    .config("spark.pyspark.python", named)
    .getOrCreate()
)
spark.sparkContext.setLogLevel("OFF")
shown = spark.sparkContext.getConf().get("spark.pyspark.python")
try:
    (used,) = spark.sparkContext.parallelize([0], 1).map(lambda _: sys.executable).collect()
except Exception as error:
    used = "none: " + next(line for line in str(error).splitlines() if "Cannot run" in line)
print("pyspark", pyspark.__version__, "| the session shows", shown, "| its workers ran", used)
PY
export PATH="$folder/venv/bin:$PATH"
by_property=$(env -u PYSPARK_PYTHON python3 workers.py 2>/dev/null)
by_variable=$(PYSPARK_PYTHON=/nowhere/python python3 workers.py 2>/dev/null)
printf '%s\n' "by the property: $by_property" "by the variable: $by_variable"
grep -q "shows /nowhere/python | its workers ran .*/bin/python3" <<<"$by_property"
grep -q 'none: .*Cannot run program "/nowhere/python"' <<<"$by_variable"
