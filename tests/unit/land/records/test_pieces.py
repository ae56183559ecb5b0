"""Runs that the fast reader refuses are split, and some read exactly; order stays."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest

from livemart.land.records.columns import UnlikeError
from livemart.land.records.judge import Chunk, unrescued
from livemart.land.records.pieces import ReadColumns, Records, read_in_pieces
from tests.unit.land.records.rows import group_of

GROUP = group_of({"id": "string"})
RECORDS = [(number, f"r{number}".encode()) for number in range(1, 5_001)]
STRANGE = 700


def rows_of(records: Records) -> pa.Table:
    ids = pa.array([raw.decode() for _, raw in records], pa.string())
    return unrescued(GROUP, [ids], len(records))


def test_one_strange_record_costs_few_others_the_fast_reader() -> None:
    read_exactly: list[int] = []

    def fast(contents: Sequence[bytes], data: bytes) -> list[pa.Array]:
        assert data == b"\n".join(contents)
        if f"r{STRANGE}".encode() in contents:
            raise UnlikeError
        return [pa.array([raw.decode() for raw in contents])]

    def exactly(records: Records) -> Chunk:
        numbers = [number for number, _ in records]
        read_exactly.extend(numbers)
        return Chunk(rows_of(records), numbers, lambda row: records[row][1], [])

    chunk = read_in_pieces(GROUP, RECORDS, fast, exactly)

    assert STRANGE in read_exactly and len(read_exactly) <= 1_024
    assert list(chunk.lines) == [number for number, _ in RECORDS]
    assert list(map(chunk.record, range(5_000))) == [raw for _, raw in RECORDS]
    assert chunk.rows.column("id").to_pylist() == [raw.decode() for _, raw in RECORDS]


def refuse(contents: Sequence[bytes], data: bytes) -> list[pa.Array]:
    raise UnlikeError


@pytest.mark.parametrize("fast", [None, refuse, lambda contents, data: [pa.array(["one"])]])
def test_without_fast_rows_every_record_is_read_exactly_once(
    fast: ReadColumns | None,
) -> None:
    numbers: list[int] = []

    def exactly(records: Records) -> Chunk:
        numbers.extend(number for number, _ in records)
        return Chunk(rows_of(records), numbers[-len(records) :], lambda row: b"", [])

    read_in_pieces(GROUP, RECORDS, fast, exactly)

    assert numbers == [number for number, _ in RECORDS]
