"""Records of an Avro file are numbered from 1; what is behind a broken byte is one refusal."""

from __future__ import annotations

from pathlib import Path

import fastavro
import pytest

from livemart.land.records.judge import Chunk
from livemart.land.records.runs import WHOLE
from livemart.land.records.typed import avro_rows
from livemart.land.records.typed.avro_rows import read_avro
from tests.unit.land.records.rows import group_of

GROUP = group_of({"id": "int"}, "avro")
SCHEMA = {"type": "record", "name": "r", "fields": [{"name": "id", "type": "int"}]}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Twelve records in blocks of a few."""
    path = tmp_path / "a.avro"
    with path.open("wb") as file:
        records = [{"id": 7 * number} for number in range(12)]
        fastavro.writer(file, SCHEMA, records, sync_interval=4)
    return path


def numbers(chunks: list[Chunk]) -> list[int]:
    return [number for chunk in chunks for number in chunk.lines]


def test_runs_go_on_counting(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(avro_rows, "_RUN_RECORDS", 5)

    chunks = list(read_avro(GROUP, path, WHOLE))

    assert [chunk.rows.num_rows for chunk in chunks] == [5, 5, 2]
    assert numbers(chunks) == list(range(1, 13))
    values = [value for chunk in chunks for value in chunk.rows.column("id").to_pylist()]
    assert values == [7 * number for number in range(12)]


def test_the_records_before_a_broken_byte_land_and_the_rest_is_one_refusal(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-17])

    *whole, last = read_avro(GROUP, path, WHOLE)

    read = numbers(whole)
    (refused,) = last.refused
    assert read == list(range(1, len(read) + 1)) and 0 < len(read) < 12
    assert (refused.line, refused.code) == (len(read) + 1, "MALFORMED_RECORD")
    assert refused.detail.startswith("from here on the file cannot be read: ")


def test_a_file_of_no_bytes_holds_no_record_and_is_no_fault(tmp_path: Path) -> None:
    empty = tmp_path / "empty.avro"
    empty.touch()

    assert list(read_avro(GROUP, empty, WHOLE)) == []


def test_records_without_fields_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "numbers.avro"
    with path.open("wb") as file:
        fastavro.writer(file, "int", [1, 2])

    (chunk,) = read_avro(GROUP, path, WHOLE)

    assert [it.line for it in chunk.refused] == [1]
    assert "its records have no fields" in chunk.refused[0].detail


@pytest.mark.parametrize(
    ("kind", "value"), [(["null", "r"], {"id": None}), ("null", None)], ids=["depth", "number"]
)
def test_a_file_whose_schema_sets_no_end_is_one_refusal_before_any_record(
    tmp_path: Path, kind: object, value: object
) -> None:
    schema = {"type": "record", "name": "r", "fields": [{"name": "id", "type": kind}]}
    path = tmp_path / "a.avro"
    with path.open("wb") as file:
        fastavro.writer(file, schema, [{"id": value}])

    (chunk,) = read_avro(GROUP, path, WHOLE)

    assert (chunk.rows.num_rows, [refused.line for refused in chunk.refused]) == (0, [1])
    assert "RefusedSchemaError" in chunk.refused[0].detail
