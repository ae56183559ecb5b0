#!/bin/bash
# deltalake 1.6.6 cannot delete by a time that SQL types as a time, and can by one that is a string.
#
# A good engineer writes `t < timestamp '2026-03-01 00:00:00'`, or casts, and takes a bare string for
# the careless form. But such a literal is one of nanoseconds, as the message says, Delta's columns are in
# microseconds, and the kernel that looks for the files to rewrite compares no two units: the delete
# fails for each of them, with a zone and without. A string is made a value of the column's type.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet deltalake==1.6.6 pyarrow==26.0.1
cat > "$folder/times.py" <<'PY'
import datetime as dt
import sys

import deltalake
import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError

CONDITIONS = {
    "timestamp '2026-03-01 00:00:00'": "error",
    "cast('2026-03-01 00:00:00' as timestamp)": "error",
    "'2026-03-01 00:00:00'": 1,
}
print("deltalake", deltalake.__version__, "pyarrow", pa.__version__)
is_same = True
for zone in (None, "UTC"):
    utc = None if zone is None else dt.timezone.utc
    times = [dt.datetime(2026, month, 1, tzinfo=utc) for month in (2, 4)]
    for number, (literal, expected) in enumerate(CONDITIONS.items()):
        table = f"{sys.argv[1]}/{zone}{number}"
        write_deltalake(table, pa.table({"t": pa.array(times, pa.timestamp("us", tz=zone))}))
        try:
            found = DeltaTable(table).delete(f"t < {literal}")["num_deleted_rows"]
            said = ""
        except DeltaError as error:
            found, said = "error", str(error).splitlines()[0]
        print(f"zone {zone}: t < {literal}: {found} {said}")
        is_same = is_same and found == expected
sys.exit(0 if is_same else "the behaviour has changed")
PY
"$folder/venv/bin/python" "$folder/times.py" "$folder"
# deltalake 1.6.6 pyarrow 26.0.1
# zone None: t < timestamp '2026-03-01 00:00:00': error Generic DeltaTable error: External error: Kernel error: Invalid argument error: Invalid comparison operation: Timestamp(µs) < Timestamp(ns)
# zone None: t < cast('2026-03-01 00:00:00' as timestamp): error Generic DeltaTable error: External error: Kernel error: Invalid argument error: Invalid comparison operation: Timestamp(µs) < Timestamp(ns)
# zone None: t < '2026-03-01 00:00:00': 1
# zone UTC: t < timestamp '2026-03-01 00:00:00': error Generic DeltaTable error: External error: Kernel error: Invalid argument error: Invalid comparison operation: Timestamp(µs, "UTC") < Timestamp(ns)
# zone UTC: t < cast('2026-03-01 00:00:00' as timestamp): error Generic DeltaTable error: External error: Kernel error: Invalid argument error: Invalid comparison operation: Timestamp(µs, "UTC") < Timestamp(ns)
# zone UTC: t < '2026-03-01 00:00:00': 1
