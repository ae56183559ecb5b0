#!/usr/bin/env bash
# pyarrow 26.0.1: use_dictionary, column_encoding and write_statistics of write_table name columns
# by paths whose steps are joined by dots. A column whose own name is `a.b` and field b of a struct
# `a` have the same path: a list with one of them is about both. No spelling tells them apart, and
# nothing is refused.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pyarrow==26.0.1
"$folder/venv/bin/python" - "$folder" <<'PYTHON'
import sys

import pyarrow as pa
import pyarrow.parquet as pq

print("pyarrow", pa.__version__)
rows = pa.table({"a.b": ["x", "x"], "a": [{"b": "y", "c": "z"}] * 2, "d": ["w", "w"]})
path = f"{sys.argv[1]}/rows.parquet"


def encoded(**options):
    """Return by column of the file whether it has a dictionary, and whether it has bounds."""
    pq.write_table(rows, path, **options)
    group = pq.ParquetFile(path).metadata.row_group(0)
    columns = [group.column(number) for number in range(group.num_columns)]
    found = [
        (it.path_in_schema, it.has_dictionary_page, it.statistics is not None) for it in columns
    ]
    print(options, found)
    return found


both = [("a.b", True, True), ("a.b", True, True), ("a.c", False, True), ("d", False, True)]
assert encoded(use_dictionary=["a.b"]) == both
for spelling in ("`a.b`", '"a.b"', "a\\.b"):
    assert not any(has for _, has, _ in encoded(use_dictionary=[spelling]))
assert [has for _, _, has in encoded(write_statistics=["a.b"])] == [True, True, False, False]
PYTHON
