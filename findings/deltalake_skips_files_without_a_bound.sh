#!/usr/bin/env bash
# deltalake 1.6.6: after `alter.add_columns` a filter `is null` on the new column finds none of the
# rows that were there before, and `is not null` finds them all; without a filter they are NULL.
# The old files' statistics do not name the column; its Arrow dataset takes that for bounds of NULL.
# pandas by way of `to_pandas(filters=...)` and DuckDB over the dataset see the same; DataFusion, in
# the same package, counts rightly.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet deltalake==1.6.6 pyarrow==26.0.1
"$work/venv/bin/python" - "$work/table" <<'PYTHON'
import sys
from importlib.metadata import version

import pyarrow as pa
import pyarrow.dataset as pds
from deltalake import DeltaTable, QueryBuilder, write_deltalake
from deltalake.schema import Schema

print("deltalake", version("deltalake"), "pyarrow", version("pyarrow"))
path = sys.argv[1]
write_deltalake(path, pa.table({"n": [1, 2]}))
added = Schema.from_arrow(pa.schema([("later", pa.int64())])).fields
DeltaTable(path).alter.add_columns(list(added))

dataset = DeltaTable(path).to_pyarrow_dataset()
whole = dataset.to_table().column("later").to_pylist()
is_null = dataset.to_table(filter=pds.field("later").is_null()).num_rows
is_valid = dataset.to_table(filter=pds.field("later").is_valid()).num_rows
builder = QueryBuilder().register("t", DeltaTable(path))
sql = pa.table(builder.execute("select count(*) as n from t where later is null").read_all())
counted = sql.column("n").to_pylist()[0]
print("all rows:", whole)
print("is null:", is_null, "rows; is not null:", is_valid, "rows; DataFusion, is null:", counted)
assert (whole, is_null, is_valid, counted) == ([None, None], 0, 2, 2), "the behaviour has changed"
PYTHON
# Output seen:
# deltalake 1.6.6 pyarrow 26.0.1
# all rows: [None, None]
# is null: 0 rows; is not null: 2 rows; DataFusion, is null: 2
