#!/usr/bin/env bash
# DuckDB 2.0.0: count_if, which counts the rows of a condition, is NULL and not 0 if its FILTER
# leaves no row, or if the whole query has none. It is a macro over sum. count(*) FILTER gives 0 for
# the same rows, and so does count_if of Spark 4.2.0. Totals that were 0 on one engine are missing
# on the other, and so is everything that is added to them.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet duckdb==2.0.0
"$folder/venv/bin/python" <<'PYTHON'
import duckdb

print("duckdb", duckdb.__version__)


def answer(sql):
    (found,) = duckdb.sql(sql).fetchall()
    print(found, "of", sql)
    return found


rows = "from (values (1), (2)) as t(x)"
assert answer(f"select count_if(x > 0) filter (where x > 5) {rows}") == (None,)
assert answer(f"select count_if(x > 0) {rows} where x > 5") == (None,)
assert answer(f"select count(*) filter (where x > 0 and x > 5) {rows}") == (0,)
assert answer(f"select count_if(x > 5) {rows}") == (0,)
PYTHON
