#!/usr/bin/env bash
# deltalake 1.6.6: transaction_version(app_id) of an open DeltaTable does not answer from the
# snapshot that the table holds. Each call reads every commit since the last checkpoint again, so
# in a bucket it is one request for each of them. An entry that was written again since the table was
# opened gives another answer at the same version, and one that was removed an error. The version and
# the schema of the same table still answer.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet deltalake==1.6.6 pyarrow==26.0.1
"$folder/venv/bin/python" - "$folder" <<'PYTHON'
import pathlib
import sys

import deltalake
import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

print("deltalake", deltalake.__version__)
path = f"{sys.argv[1]}/table"
for number in range(4):
    mark = CommitProperties(app_transactions=[Transaction("stream", number)])
    write_deltalake(path, pa.table({"n": [number]}), mode="append", commit_properties=mark)
table = DeltaTable(path)
assert table.transaction_version("stream") == 3

entries = sorted(pathlib.Path(path, "_delta_log").glob("*.json"))
entries[3].write_text(entries[3].read_text().replace('"version":3', '"version":7'))
answer = table.transaction_version("stream")
print("after another entry 3:", answer, "at version", table.version())
assert (answer, table.version()) == (7, 3)

for entry in entries:
    entry.unlink()
try:
    table.transaction_version("stream")
except deltalake.exceptions.DeltaError as error:
    print("after its entries are gone:", str(error).partition(": /")[0])
    assert "File not found" in str(error)
else:
    raise SystemExit("it answered")
assert (table.version(), len(table.schema().fields)) == (3, 1)
PYTHON
