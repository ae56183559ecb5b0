#!/usr/bin/env bash
# deltalake 1.6.6: `vacuum(full=True)` removes deletion vectors that the newest version of a table
# still names, whatever the retention of the table says of files in use. Afterwards the table cannot
# be read as a whole, and rows that were deleted can no longer be told from rows that were not.
# `vacuum()` without `full` keeps them. A deletion vector is no data file, but as much a part of the
# version: PROTOCOL.md of Delta wants it kept with its file.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet deltalake==1.6.6 pyarrow==26.0.1
"$folder/venv/bin/python" - "$folder/table" <<'PY'
import binascii, json, pathlib, struct, sys, uuid

import deltalake
import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder, write_deltalake

Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"


def z85(data):
    """Encode Z85, which Python has from 3.13 on."""
    return "".join(Z85[number // 85 ** (4 - i) % 85]
                   for (number,) in struct.iter_unpack(">I", data) for i in range(5))


def live_rows():
    answer = QueryBuilder().register("t", DeltaTable(path)).execute("select count(*) as n from t")
    return pa.table(answer.read_all())["n"][0].as_py()


path = sys.argv[1]
print("deltalake", deltalake.__version__)
write_deltalake(path, pa.table({"id": list(range(30))}))
log = pathlib.Path(path, "_delta_log")
lines = [json.loads(line) for line in (log / f"{0:020d}.json").read_text().splitlines()]
add = next(line["add"] for line in lines if "add" in line)
deleted = [3, 4, 7, 11, 18, 29]
# One bitmap of 64-bit row numbers, of one container of Roaring's portable form.
bitmap = struct.pack("<IQIIIHHI", 1681511377, 1, 0, 12346, 1, 0, len(deleted) - 1, 16)
bitmap += struct.pack(f"<{len(deleted)}H", *deleted)
name = uuid.uuid4()
vector = pathlib.Path(path, f"deletion_vector_{name}.bin")
body = struct.pack(">I", len(bitmap)) + bitmap + struct.pack(">I", binascii.crc32(bitmap))
vector.write_bytes(b"\x01" + body)
named = {"storageType": "u", "pathOrInlineDv": z85(name.bytes), "offset": 1,
         "sizeInBytes": len(bitmap), "cardinality": len(deleted)}
remove = {"path": add["path"], "dataChange": True, "partitionValues": {}, "size": add["size"]}
protocol = {"minReaderVersion": 3, "minWriterVersion": 7,
            "readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]}
actions = [{"protocol": protocol}, {"remove": remove}, {"add": {**add, "deletionVector": named}}]
(log / f"{1:020d}.json").write_text("\n".join(map(json.dumps, actions)))

before = live_rows()
print("rows that are not deleted:", before)
arguments = dict(retention_hours=0, enforce_retention_duration=False)
lite = DeltaTable(path).vacuum(dry_run=True, **arguments)
print("vacuum() would remove:", lite)
DeltaTable(path).vacuum(dry_run=False, full=True, **arguments)
print("after vacuum(full=True) the vector is there:", vector.exists())
try:
    after = live_rows()
    print("rows that are not deleted:", after)
except Exception as error:
    after = None
    print("reading the newest version:", type(error).__name__, str(error)[:90])
sys.exit(not (before == 24 and vector.name not in lite and not vector.exists() and after is None))
PY
