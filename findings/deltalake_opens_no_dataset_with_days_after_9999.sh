#!/usr/bin/env bash
# A table that deltalake 1.6.6 has written, it may not open: a date after the year 9999 (the open end
# of some databases, one day late by a time zone) gets the bound '+10000-01-01' in the log, and one
# before the year 1 gets '0000-12-31'. `to_pandas`, `to_pyarrow_table` and `to_pyarrow_dataset`,
# by which DuckDB and others read, then raise ValueError for the whole table, also if another column
# or another file is asked for: each bound becomes a date of Python's. QueryBuilder, the SQL of the
# same package, reads the row. So does all of it if the column is a timestamp of the same moment.
# Spark writes the same bounds, so it may be a table that never met deltalake before.
#
# Exits 1 if the behaviour changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q deltalake==1.6.6 pyarrow==26.0.1
cd "$folder"
venv/bin/python - <<'PY'
import deltalake
import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder, write_deltalake

DAYS = {"+10000-01-01": 2_932_897, "0000-12-31": -719_163}
IDS = {"id": [1, 2]}


def outcome(table: DeltaTable) -> str:
    try:
        return f"{table.to_pyarrow_dataset().to_table(columns=['id']).num_rows} rows"
    except ValueError as error:
        return f"ValueError: {error}"


print("deltalake", deltalake.__version__, "pyarrow", pa.__version__)
found = []
for text, number in DAYS.items():
    days = pa.array([number, 0], pa.int32()).cast(pa.date32())
    write_deltalake(text, pa.table({**IDS, "day": days}))
    table = DeltaTable(text)
    by_sql = QueryBuilder().register("t", table).execute("select id from t").read_all().num_rows
    found += [outcome(table), f"{by_sql} rows by SQL"]
    print(text, found[-2:])
moments = pa.array([DAYS["+10000-01-01"] * 86_400_000_000, 0], pa.int64())
write_deltalake("moments", pa.table({**IDS, "at": moments.cast(pa.timestamp("us", "UTC"))}))
found.append(outcome(DeltaTable("moments")))
print("a timestamp of that day", found[-1])
expected = [
    "ValueError: Invalid isoformat string: '+10000-01-01'",
    "2 rows by SQL",
    "ValueError: year 0 is out of range",
    "2 rows by SQL",
    "2 rows",
]
if found != expected:
    raise SystemExit(f"changed: {found}")
PY
