#!/usr/bin/env bash
# pyarrow 26.0.1 gives an average of decimals the type of its input: the average of 1.0 and 2.1 is
# 1.6, by `pc.mean` and by `group_by(...).aggregate`, where SQL engines give 1.55 (DuckDB 2.0.0).
# `pc.sum` has no more than 38 digits, and wraps beyond: the sum of two large positive amounts is a
# negative one of decimal128(38, 0), without an error (`pc.add` refuses the same amounts). Both are
# aggregates of one type, so a test with amounts that divide well shows neither.
#
# Exits 1 if the behaviour changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q pyarrow==26.0.1 duckdb==2.0.0
"$folder/venv/bin/python" - <<'PY'
from decimal import Decimal

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

print("pyarrow", pa.__version__, "duckdb", duckdb.__version__)
prices = pa.table({"shop": [1, 1], "price": [Decimal("1.0"), Decimal("2.1")]})
mean = pc.mean(prices["price"])
grouped = prices.group_by("shop").aggregate([("price", "mean")])["price_mean"]
duck = duckdb.sql("select avg(price) from prices").fetchall()[0][0]
print("average of 1.0 and 2.1:", mean, mean.type, "grouped:", grouped[0], "DuckDB:", duck)
assert (mean.as_py(), mean.type) == (Decimal("1.6"), pa.decimal128(2, 1))
assert (grouped[0].as_py(), duck) == (Decimal("1.6"), 1.55)

large = Decimal(9 * 10**37)
amounts = pa.table({"shop": [1, 1], "amount": pa.array([large, large], pa.decimal128(38, 0))})
total = pc.sum(amounts["amount"]).as_py()
grouped = amounts.group_by("shop").aggregate([("amount", "sum")])["amount_sum"][0].as_py()
print("sum of 9e37 and 9e37:", total, "grouped:", grouped)
assert total == grouped == Decimal(18 * 10**37 - 2**128)
for name, call in {
    "pc.add": lambda: pc.add(amounts["amount"], amounts["amount"]),
    "DuckDB": lambda: duckdb.sql("select sum(amount) from amounts").fetchall()[0][0],
}.items():
    try:
        print(name, "->", call())
    except (pa.ArrowInvalid, duckdb.Error) as error:
        print(name, "refuses:", str(error)[:80])
    else:
        assert name == "DuckDB"
PY
