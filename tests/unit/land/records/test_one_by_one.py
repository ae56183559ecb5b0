"""Each record becomes a row or is refused with its reason, and takes no other with it."""

from __future__ import annotations

import pytest

from livemart.land.records.exact_values import TooLargeError
from livemart.land.records.judge import MAX_RECORD_BYTES
from livemart.land.records.one_by_one import read_one_by_one, require_size
from livemart.land.records.parse import parse_object
from livemart.land.records.runs import CutLine
from tests.unit.land.records.rows import group_of


def test_a_record_that_is_refused_leaves_the_others_in_their_places() -> None:
    records = [
        (3, b'{"id": "a", "n": 1}'),
        (4, b"{"),
        (7, b'{"id": "b", "n": "x"}'),
        (8, b" " * (MAX_RECORD_BYTES + 1)),
        (9, b'{"id": "c", "tip": 2}'),
    ]

    chunk = read_one_by_one(group_of({"id": "string", "n": "int"}), records, parse_object)

    assert list(chunk.lines) == [3, 9]
    assert [chunk.record(row) for row in (0, 1)] == [records[0][1], records[4][1]]
    assert chunk.rows.to_pylist() == [
        {"id": "a", "n": 1, "_rescued_data": None},
        {"id": "c", "n": None, "_rescued_data": [("tip", "2")]},
    ]
    assert [(it.line, it.code, it.record) for it in chunk.refused] == [
        (4, "MALFORMED_RECORD", b"{"),
        (7, "TYPE_MISMATCH", records[2][1]),
        (8, "RECORD_TOO_LARGE", records[3][1]),
    ]


def test_the_size_of_a_line_that_is_cut_is_that_of_it_all() -> None:
    require_size(b" " * MAX_RECORD_BYTES)
    with pytest.raises(TooLargeError, match="5000000 bytes"):
        require_size(CutLine.of(b" " * (MAX_RECORD_BYTES + 1), 5_000_000))
