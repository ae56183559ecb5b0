#!/usr/bin/env bash
# deltalake 1.6.6 spells a negative decimal of a partition column with the sign in its fraction: -1.50
# is "-1.-50", -0.01 is "0.-1". A write of such a row fails, and leaves a table that cannot be opened
# any more. Of a table that Spark or another writer made there is no Arrow dataset, and no frame of
# pandas, whatever columns are asked for. Its own SQL (QueryBuilder) reads the value, and a negative
# decimal without a fraction is read by all.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet deltalake==1.6.6 pyarrow==26.0.1 pandas==2.3.3
"$folder/venv/bin/python" - "$folder/table" <<'PYTHON'
import sys
from decimal import Decimal
from pathlib import Path

import deltalake
import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder, write_deltalake

print("deltalake", deltalake.__version__, "pyarrow", pa.__version__)


def rows(value):
    return pa.table({"id": [1], "p": pa.array([Decimal(value)], pa.decimal128(10, 2))})


def error_of(action):
    try:
        return f"none: {action()}"
    except Exception as error:
        return f"{type(error).__name__}: {error}".splitlines()[0]


path = Path(sys.argv[1])
torn = path.with_name("torn")
written = error_of(lambda: write_deltalake(torn, rows("-1.50"), partition_by=["p"]))
opened = error_of(lambda: DeltaTable(torn))
print("write:", written, "| open:", opened)
assert "'-1.-50'" in written and "'-1.-50'" in opened
write_deltalake(path, rows("7.77"), partition_by=["p"])
# As any other writer spells it in the log (the protocol: the value as text).
(entry,) = (path / "_delta_log").glob("*.json")
for value, spelled in (("-1.50", "-1.-50"), ("-0.01", "0.-1"), ("-1.00", None), ("1.50", None)):
    text = entry.read_text()
    entry.write_text(text.replace('"p":"7.77"', f'"p":"{value}"'))
    table = DeltaTable(path)
    dataset = error_of(lambda: table.to_pyarrow_dataset().to_table(columns=["id"])["id"][0])
    frame = error_of(lambda: table.to_pandas(columns=["id"])["id"][0])
    sql = QueryBuilder().register("t", table).execute("select p from t").read_all()
    print(value, "| dataset:", dataset, "| pandas:", frame, "| SQL:", pa.table(sql)["p"].to_pylist())
    assert pa.table(sql)["p"].to_pylist() == [Decimal(value)]
    for found in (dataset, frame):
        assert (f"'{spelled}'" in found) if spelled else found == "none: 1"
    entry.write_text(text)
PYTHON
