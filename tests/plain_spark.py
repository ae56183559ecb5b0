"""Asks a Spark that has nothing of livemart's, but the jars of Delta, for rows of tables.

Run as a program: it takes questions as JSON on standard input, conditions by folder. It writes
answers as JSON on standard output: by way of reading and folder, for each condition the values of
`n`.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence

_WAYS = {"vectorized": "true", "row by row": "false"}
# Each statement has a fixed cost.
_TOGETHER = 25


def main(jars: str) -> None:
    """Answer the questions on standard input."""
    asked = json.load(sys.stdin)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_SUBMIT_ARGS"] = (
        f'--master local[1] --conf "spark.driver.extraClassPath={jars}" pyspark-shell'
    )
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName("plain")
    for name, value in {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.enabled": "false",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.shuffle.partitions": "1",
        # To compile each statement takes longer than to run it.
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.databricks.delta.snapshotPartitions": "1",
    }.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    answers: dict[str, dict[str, list[list[int]]]] = {}
    for way, is_vectorized in _WAYS.items():
        spark.conf.set("spark.sql.parquet.enableVectorizedReader", is_vectorized)
        answers[way] = {}
        for folder, conditions in asked.items():
            found: list[list[int]] = [[] for _ in conditions]
            numbered = list(enumerate(conditions))
            for start in range(0, len(numbered), _TOGETHER):
                statement = " union all ".join(
                    f"select {number}, n from delta.`{folder}` where {condition}"
                    for number, condition in numbered[start : start + _TOGETHER]
                )
                for number, n in spark.sql(statement).collect():
                    found[number].append(n)
            answers[way][folder] = [sorted(rows) for rows in found]
    spark.stop()
    print(json.dumps(answers))


def ask_plain_spark(
    jars: Sequence[str], conditions: Mapping[str, Sequence[str]]
) -> Mapping[str, Mapping[str, list[list[int]]]]:
    """Return the values of `n` that each condition leaves, by way of reading and folder."""
    import subprocess

    done = subprocess.run(
        [sys.executable, __file__, os.pathsep.join(jars)],
        input=json.dumps(conditions),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4_000:]
    answers: Mapping[str, Mapping[str, list[list[int]]]] = json.loads(done.stdout.splitlines()[-1])
    return answers


if __name__ == "__main__":
    main(sys.argv[1])
