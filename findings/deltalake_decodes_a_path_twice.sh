#!/usr/bin/env bash
# deltalake 1.6.6: the path of a table is decoded once more inside. Of a folder that is called `a%41`
# the log is listed where it is, but its commits are read from the folder `aA`: the schema and the
# files of another table, or an error where there is none. A URI with the sign encoded (`a%2541`)
# does not help. Exits with another code than 0 if that changes.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet deltalake==1.6.6 pyarrow==26.0.1
"$work/venv/bin/python" - "$work" <<'PYTHON'
import shutil
import sys
from pathlib import Path

import deltalake
import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError

print("deltalake", deltalake.__version__, "pyarrow", pa.__version__)
root = Path(sys.argv[1])
write_deltalake(str(root / "made"), pa.table({"mine": [1, 2, 3]}))
folder = shutil.copytree(root / "made", root / "a%41")
spellings = (str(folder), folder.as_uri())

for spelling in spellings:
    try:
        DeltaTable(spelling)
        raise SystemExit(f"{spelling} is opened now")
    except DeltaError as error:
        print("alone:", str(error).replace(str(root), ".."))
        assert "aA/_delta_log" in str(error)

write_deltalake(str(root / "aA"), pa.table({"other": [7]}))
for spelling in spellings:
    names = [field.name for field in DeltaTable(spelling).schema().fields]
    print("beside aA:", spelling.replace(str(root), ".."), "has the columns", names)
    assert names == ["other"], "the columns are its own now"
PYTHON
# alone: Kernel error: File not found: ../aA/_delta_log/00000000000000000000.json (twice)
# beside aA: ../a%41 has the columns ['other']
# beside aA: file://../a%2541 has the columns ['other']
