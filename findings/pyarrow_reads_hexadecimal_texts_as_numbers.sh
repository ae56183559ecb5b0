#!/usr/bin/env bash
# pyarrow 26.0.1 takes a text such as 0x10 for an integer: its reader of CSV infers int64 for a
# column of such codes and holds 16, and `cast` of texts to int64 gives 16, too. As int8, 0xFF is
# -1. A plus sign or a blank before digits, which people do write, is refused by the same cast, and
# a cast to double refuses 0x10. DuckDB 2.0.0 infers a number from such a column, too, while
# pandas 3.0.5 and polars 2.1.0 read texts: one file of codes is 16 here and 0x10 there.
#
# Exits 1 if the behaviour changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q pyarrow==26.0.1 pandas==3.0.5 polars==2.1.0 duckdb==2.0.0
cd "$folder"
printf 'code,name\n0x10,tea\n0xFF,coffee\n' > codes.csv
"$folder/venv/bin/python" - <<'PY'
import duckdb
import pandas
import polars
import pyarrow as pa
import pyarrow.csv as pacsv

print("pyarrow", pa.__version__, "pandas", pandas.__version__, "polars", polars.__version__)
codes = {
    "pyarrow": pacsv.read_csv("codes.csv")["code"].to_pylist(),
    "pandas": pandas.read_csv("codes.csv")["code"].to_list(),
    "polars": polars.read_csv("codes.csv")["code"].to_list(),
    "duckdb": [code for (code,) in duckdb.sql("select code from 'codes.csv'").fetchall()],
}
for name, read in codes.items():
    print(name, read)
assert codes["pyarrow"] == codes["duckdb"] == [16, 255]
assert codes["pandas"] == codes["polars"] == ["0x10", "0xFF"]


def cast(text, kind):
    try:
        return pa.array([text]).cast(kind).to_pylist()[0]
    except pa.ArrowInvalid:
        return "refused"


cases = [("0x10", pa.int64()), ("0xFF", pa.int8()), ("+16", pa.int64()), ("0x10", pa.float64())]
casts = [cast(text, kind) for text, kind in cases]
for (text, kind), result in zip(cases, casts):
    print(f"{text!r} cast to {kind}:", result)
assert casts == [16, -1, "refused", "refused"]
PY
