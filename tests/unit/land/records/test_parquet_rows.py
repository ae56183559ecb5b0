"""The parts of a Parquet file together are its rows, with their numbers."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from livemart.land.records import parquet_rows
from livemart.land.records.parquet_rows import parquet_spans
from livemart.land.records.runs import WHOLE
from livemart.land.sources.files.parts import FilePart
from tests.unit.land.records.rows import group_of


def test_parts_are_runs_of_row_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_rows, "_PART_ROWS", 25)
    monkeypatch.setattr(parquet_rows, "_RUN_RECORDS", 4)
    path = tmp_path / "a"
    pq.write_table(pa.table({"n": range(97)}), path, row_group_size=10)
    group = group_of({"n": "bigint"}, "parquet")

    spans = parquet_spans(path)
    tables = [FilePart("a", path, span).read(group) for span in spans]
    parts = [pa.concat_tables(part) for part in tables]

    assert [part.num_rows for part in parts] == [30, 30, 30, 7]
    whole = pa.concat_tables(FilePart("a", path).read(group))
    assert pa.concat_tables(parts).equals(whole)
    assert whole.column("_origin").to_pylist() == [f"a:{number}" for number in range(1, 98)]


def test_a_broken_file_is_one_part(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"PAR1")

    assert parquet_spans(path) == [WHOLE]


def test_a_column_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a"
    pq.write_table(pa.Table.from_arrays([pa.array([1]), pa.array([2])], ["n", "n"]), path)

    (table,) = FilePart("a", path).read(group_of({"n": "bigint"}, "parquet"))

    assert table.column("_detail_0").to_pylist() == ["the file has column n twice"]


def test_rows_without_columns_are_refused_however_many_they_are_said_to_be(tmp_path: Path) -> None:
    path = tmp_path / "a"
    rows = 2**40
    # The footer in Thrift's compact form: version, a root without children, and one row group.
    count = b"".join(bytes([(2 * rows >> 7 * n) & 0x7F | 0x80]) for n in range(5)) + b"\x40"
    root = b"\x48\x01r\x15\x00\x00"
    row_group = b"\x19\x0c\x16\x00\x16" + count + b"\x00"
    footer = b"\x15\x02\x19\x1c" + root + b"\x16" + count + b"\x19\x1c" + row_group + b"\x00"
    path.write_bytes(b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1")
    assert pq.read_metadata(path).num_rows == rows

    (table,) = FilePart("a", path).read(group_of({"n": "bigint"}, "parquet"))

    assert table.column("_detail_0").to_pylist() == ["the file has no columns"]
