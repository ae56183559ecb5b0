#!/usr/bin/env bash
# pyarrow 26.0.1 gives a number the places of decimal128(p, s) before it asks whether it fits: the
# digits wrap in 128 bits, and whatever is left may fit. So a number that is too large for the type
# becomes another number, in silence, in four ways: the readers of CSV and of JSON with a declared
# type, a safe cast of texts, and a safe cast from a type of fewer places. Other numbers of the same
# size are refused, so a test with one value may pass. Types with p + s > 38 are concerned.
# DuckDB 2.0.0 refuses these numbers.
#
# Exits 1 if the behaviour changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q pyarrow==26.0.1 duckdb==2.0.0
"$folder/venv/bin/python" - <<'PY'
import io
from decimal import Decimal

import duckdb
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.json as pajson

NUMBER, KIND = "744725468780829334838", pa.decimal128(38, 18)
OTHER = Decimal("64160734938952407911.250785136463577088")


def of_csv(kind):
    options = pacsv.ConvertOptions(column_types={"n": kind})
    return pacsv.read_csv(io.BytesIO(f"n\n{NUMBER}\n".encode()), convert_options=options)["n"]


def of_json(kind):
    options = pajson.ParseOptions(explicit_schema=pa.schema([("n", kind)]))
    return pajson.read_json(io.BytesIO(b'{"n":%s}\n' % NUMBER.encode()), parse_options=options)["n"]


def of_text(kind):
    return pa.array([NUMBER]).cast(kind)


def of_decimal(kind, number=NUMBER):
    return pa.array([Decimal(number)]).cast(kind)


def outcome(convert, *given):
    try:
        return convert(*given).to_pylist()[0]
    except pa.ArrowInvalid as error:
        return f"refused: {str(error)[:60]}"


print("pyarrow", pa.__version__, "duckdb", duckdb.__version__)
for convert in (of_csv, of_json, of_text):
    found = outcome(convert, KIND)
    print(f"{convert.__name__}: {NUMBER} in {KIND}: {found}")
    assert found == OTHER
numbers = ("3784612169780.5", "12345678901.5")
kind = pa.decimal128(38, 28)
found = [outcome(of_decimal, kind, number) for number in numbers]
for number, result in zip(numbers, found):
    print(f"of_decimal: {number} in {kind}: {result}")
assert found[0] == Decimal("7477896958.0830555565418575073728528384")
assert str(found[1]).startswith("refused")
try:
    duckdb.sql(f"select cast('{NUMBER}' as decimal(38, 18))").fetchall()
except duckdb.ConversionException as error:
    print("DuckDB:", str(error).splitlines()[0])
else:
    raise AssertionError("DuckDB took it")
PY
