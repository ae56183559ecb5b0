#!/usr/bin/env bash
# pyarrow 26.0.1 casts a decimal to a double in two roundings: 0.35 as decimal128(10, 2) becomes
# 0.35000000000000003, the double beside the one that "0.35" is read as. So it is for one in seven
# of the amounts from 0.00 to 9,999.99. `pc.equal` of a decimal and a double casts in the same way:
# 0.35 is not equal to 0.35. Nothing is refused, the cast is a safe one.
# DuckDB 2.0.0 and polars 2.1.0 give the nearest double for each of these amounts.
#
# Exits 1 if the behaviour changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q pyarrow==26.0.1 duckdb==2.0.0 polars==2.1.0
"$folder/venv/bin/python" - <<'PY'
from decimal import Decimal

import duckdb
import polars
import pyarrow as pa
import pyarrow.compute as pc

amounts = [Decimal(cents).scaleb(-2) for cents in range(1_000_000)]
nearest = [float(amount) for amount in amounts]
money = pa.table({"amount": pa.array(amounts, pa.decimal128(10, 2))})
doubles = {
    "pyarrow": money["amount"].cast(pa.float64()).to_pylist(),
    "duckdb": [row[0] for row in duckdb.sql("select amount::double from money").fetchall()],
    "polars": polars.from_arrow(money)["amount"].cast(polars.Float64).to_list(),
}
print("pyarrow", pa.__version__, "duckdb", duckdb.__version__, "polars", polars.__version__)
others = {name: sum(a != b for a, b in zip(nearest, found)) for name, found in doubles.items()}
print("amounts of a million that are another double than the nearest:", others)
assert others == {"pyarrow": 134_844, "duckdb": 0, "polars": 0}
print("0.35 is", doubles["pyarrow"][35])
assert doubles["pyarrow"][35] == 0.35000000000000003
is_equal = pc.equal(pa.array([Decimal("0.35")]), pa.array([0.35])).to_pylist()
print("pc.equal of 0.35 and 0.35:", is_equal)
assert is_equal == [False]
PY
