"""Parts of messages fill the columns that a source maps them to; what fits none is refused."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from livemart.land.records.judge import Chunk, Group, unrescued
from livemart.land.records.messages.message import Message, Record
from livemart.land.records.messages.parts import PartColumns
from livemart.land.records.schema import RecordSchema
from tests.deliveries import NOON, source


def group(columns: dict[str, str], **parts: str) -> Group:
    each = source("orders", {"id": "string"} | columns, message=tuple(parts.items()))
    return Group.of([each], RecordSchema.of(each), NOON)


def values(kind: str, part: str, *records: Record) -> tuple[list[Any], PartColumns]:
    """Return what a part is in a column of a type, and all that is known of the messages."""
    whole = group({"part": kind}, **{part: "part"})
    columns = PartColumns(whole, records)
    offsets = [it[0] for it in records if it[0] not in columns.refused]
    ids = pa.array(["x"] * len(offsets), pa.string())
    contents = unrescued(whole.of_contents, [ids], len(offsets))
    rows = columns.beside(Chunk(contents, offsets, lambda row: b"", [])).rows
    assert rows.column("id").to_pylist() == ["x"] * len(offsets)
    return rows.column("part").to_pylist(), columns


@pytest.mark.parametrize(
    ("kind", "part", "expected"),
    [
        ("string", "key", ["k", None]),
        ("binary", "key", [b"k", None]),
        ("timestamp", "timestamp", [NOON, None]),
        ("string", "topic", ["orders", None]),
        ("int", "partition", [3, None]),
        ("bigint", "offset", [7, 9]),
        ("boolean", "tombstone", [True, False]),
    ],
)
def test_a_part_has_its_column_and_what_a_log_does_not_have_is_null(
    kind: str, part: str, expected: list[Any]
) -> None:
    sent = round(NOON.timestamp() * 1e6)
    message = Message(7, None, b"k", (), sent, "orders", 3)

    filled, columns = values(kind, part, message, (9, b"{}"))

    assert filled == expected
    assert columns.takes_tombstones == (part == "tombstone")


def test_of_a_header_that_comes_twice_the_map_has_the_last_and_the_list_has_both() -> None:
    message = Message(1, b"", None, [("b", b"1"), ("a", None), ("b", b"2")])
    array = "array<struct<key:string,value:{}>>"

    assert values("map<string,string>", "headers", message)[0] == [[("a", None), ("b", "2")]]
    texts, _ = values(array.format("string"), "headers", message)
    assert [(it["key"], it["value"]) for it in texts[0]] == [("b", "1"), ("a", None), ("b", "2")]
    plain, _ = values(array.format("binary"), "headers", message)
    assert [it["value"] for it in plain[0]] == [b"1", None, b"2"]


@pytest.mark.parametrize(
    ("part", "message", "detail"),
    [
        ("key", Message(1, b"c", b"a\xff"), "key of the message: invalid UTF-8 at byte 1"),
        ("key", Message(1, b"c", b"a\0"), "key of the message: a NUL character"),
        (
            "headers",
            Message(1, b"c", None, [("h", b"\xff")]),
            "headers of the message: h: invalid UTF-8 at byte 0",
        ),
    ],
)
def test_a_part_that_is_no_text_refuses_its_own_message_alone(
    part: str, message: Message, detail: str
) -> None:
    kind = "string" if part == "key" else "map<string,string>"

    filled, columns = values(kind, part, message, Message(2, b"d"))

    assert len(filled) == 1
    (refused,) = columns.refused_chunk().refused
    assert (refused.line, refused.record, refused.detail) == (1, b"c", detail)


@pytest.mark.parametrize(
    ("milliseconds", "shown"),
    [
        (2**63 - 1, "+292278994-08-17T07:12:55.807000"),
        (253_402_300_800_000, "+10000-01-01T00:00:00"),
        (-62_135_596_800_001, "0000-12-31T23:59:59.999000"),
    ],
)
def test_a_time_beyond_the_calendar_refuses_its_own_message_alone(
    milliseconds: int, shown: str
) -> None:
    last = Message(2, b"d", timestamp_us=253_402_300_799_999_999)

    filled, columns = values(
        "timestamp", "timestamp", Message(1, b"c", timestamp_us=milliseconds * 1000), last
    )

    assert filled == [datetime.max.replace(tzinfo=UTC)]
    (refused,) = columns.refused_chunk().refused
    assert (refused.line, refused.code) == (1, "TYPE_MISMATCH")
    assert refused.detail == f'timestamp of the message: "{shown}" does not fit timestamp'
