#!/usr/bin/env bash
# A Delta log that escapes the character U+20BB7 (a Japanese family name) as JSON allows, as
# "\ud842\udfb7", is read by deltalake 1.6.6 as U+10BB7, in partition values and in bounds alike;
# the same log with the character as it is, is read rightly. A filter on the right name finds
# nothing. Characters of the planes 2, 4, 6 .. 16 are concerned: emoji, of plane 1, are not.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet deltalake==1.6.6 pyarrow==26.0.1
"$folder/venv/bin/python" - "$folder" <<'PYTHON'
import json
import sys
from pathlib import Path

import deltalake
import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

NAMES = ["\U00020bb7", "\U0001f355"]
print("deltalake", deltalake.__version__, "pyarrow", pa.__version__)


def read(folder, is_escaped, by):
    write_deltalake(folder, pa.table({"name": NAMES, "n": [1, 2]}), partition_by=by)
    log = Path(folder, "_delta_log", f"{0:020}.json")
    lines = [json.loads(line) for line in log.read_text(encoding="utf-8").split("\n") if line]
    text = "\n".join(json.dumps(line, ensure_ascii=is_escaped) for line in lines)
    log.write_text(text, encoding="utf-8")
    table = DeltaTable(folder)
    names = sorted(table.to_pyarrow_table()["name"].to_pylist())
    found = table.to_pyarrow_table(filters=[("name", "=", NAMES[0])]).num_rows
    bounds = pa.table(table.get_add_actions(flatten=True))
    highest = bounds["max.name"].to_pylist() if "max.name" in bounds.column_names else []
    return [ascii(name) for name in names], found, [ascii(it) for it in highest]


seen = {}
for by in (None, ["name"]):
    for is_escaped in (False, True):
        place = f"{sys.argv[1]}/{by is None}-{is_escaped}"
        seen[by is None, is_escaped] = read(place, is_escaped, by)
        how = "bounds" if by is None else "partition values"
        print(how, "escaped" if is_escaped else "as they are", *seen[by is None, is_escaped])
right = [ascii(name) for name in sorted(NAMES)]
wrong = [ascii(name) for name in sorted(["\U00010bb7", NAMES[1]])]
assert seen[False, False] == (right, 1, [])
assert seen[False, True] == (wrong, 0, [])
assert seen[True, False] == (right, 1, [ascii(NAMES[0])])
assert seen[True, True] == (right, 0, [ascii("\U00010bb7")])
PYTHON
