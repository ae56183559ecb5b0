"""A dead letter names source, origin, reason and batch, and keeps the record."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa

from livemart.land.letters import dead_letters
from livemart.land.records.schema import Stamp

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
STAMP = Stamp(7, NOON)
BATCH = {"batch_id": 7, "landed_at": NOON}
RECORDS = pa.table(
    {
        "_origin": ["a.jsonl:1", "a.jsonl:2"],
        "_record": ["{", "[]"],
        "_record_bytes": [1, 2],
        "_code_1": ["MALFORMED_RECORD", "NULL_KEY"],
        "_detail_1": ["cut off", "id is NULL"],
    }
)


def test_the_verdict_of_one_source_is_the_reason() -> None:
    letters = dead_letters.from_judged(RECORDS, 1, "bronze.orders", STAMP)

    assert letters.to_pylist() == [
        {
            "source": "bronze.orders",
            "origin": "a.jsonl:1",
            "reason": "MALFORMED_RECORD",
            "detail": "cut off",
            "record": "{",
            "record_bytes": 1,
            **BATCH,
        },
        {
            "source": "bronze.orders",
            "origin": "a.jsonl:2",
            "reason": "NULL_KEY",
            "detail": "id is NULL",
            "record": "[]",
            "record_bytes": 2,
            **BATCH,
        },
    ]


def test_one_reason_may_stand_for_all_records() -> None:
    letters = dead_letters.of_records(RECORDS, "bronze.orders", "TOO_LATE", "late", STAMP)

    assert letters.column("reason").to_pylist() == ["TOO_LATE"] * 2
    assert letters.column("detail").to_pylist() == ["late"] * 2


def test_a_letter_for_a_file_has_no_record() -> None:
    letters = dead_letters.of_file("bronze.orders", "a.jsonl", "SOURCE_FILE_CHANGED", "x", STAMP)

    assert letters.select(["origin", "record", "record_bytes"]).to_pylist() == [
        {"origin": "a.jsonl", "record": None, "record_bytes": None}
    ]
