"""Messages of a log become rows: content by its format, key, headers and place as columns."""

from __future__ import annotations

import io
import json
import struct
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from livemart.land.records.judge import Group
from livemart.land.records.messages.message import Message, Record
from livemart.land.records.messages.read import (
    read_avro_messages,
    read_csv_messages,
    read_messages,
)
from livemart.land.records.origin import Place
from livemart.land.records.schema import RecordSchema
from livemart.project.spark_types import parse_type
from tests.change_records import change, changes, row
from tests.deliveries import NOON, source

COLUMNS = {
    "order_id": "string",
    "amount": "int",
    "order_key": "string",
    "headers": "map<string,string>",
    "sent_at": "timestamp",
    "topic": "string",
    "part": "int",
    "position": "bigint",
    "is_gone": "boolean",
}
PARTS = {
    "key": "order_key",
    "headers": "headers",
    "timestamp": "sent_at",
    "topic": "topic",
    "partition": "part",
    "offset": "position",
    "tombstone": "is_gone",
}


def read(*records: Record, columns: dict[str, str] = COLUMNS, **spec: Any) -> list[dict[str, Any]]:
    """Return what some records are judged as, in the order of their offsets."""
    each = source("orders", columns, **{"message": tuple(PARTS.items())} | spec)
    group = Group.of([each], RecordSchema.of(each), NOON)
    tables = list(read_messages(group, Place("orders/0", "@"), records))
    assert all(table.schema == group.judged for table in tables)
    rows = pa.concat_tables([group.judged.empty_table(), *tables]).to_pylist()
    return sorted(rows, key=lambda judged: int(judged["_origin"].split("@")[1]))


def message(offset: int, content: object = None, **parts: Any) -> Message:
    raw = None if content is None else json.dumps(content).encode()
    return Message(offset, raw, topic="orders", partition=0)._replace(**parts)


def test_parts_stand_beside_the_content_on_both_ways_of_reading() -> None:
    sent = datetime(2026, 3, 1, 12, 0, 0, 5_000, tzinfo=UTC)
    parts = {
        "key": b"k",
        "headers": [("b", b"2"), ("a", None), ("b", b"3")],
        "timestamp_us": round(sent.timestamp() * 1e6),
    }
    # The second one has a field that only the exact reader knows what to do with.
    judged = read(
        message(7, {"order_id": "x", "amount": 1}, **parts),
        message(9, {"order_id": "y", "order_key": "from the content"}, partition=None),
    )

    first, second = ({name: it[name] for name in [*COLUMNS, "_rescued_data"]} for it in judged)
    assert first == {
        "order_id": "x",
        "amount": 1,
        "order_key": "k",
        "headers": [("a", None), ("b", "3")],
        "sent_at": sent,
        "topic": "orders",
        "part": 0,
        "position": 7,
        "is_gone": False,
        "_rescued_data": None,
    }
    # The content's field of that name is not the message's key, and is not lost.
    assert second == dict.fromkeys(COLUMNS) | {
        "order_id": "y",
        "headers": [],
        "topic": "orders",
        "position": 9,
        "is_gone": False,
        "_rescued_data": [("order_key", "from the content")],
    }


def test_fast_and_exact_readers_give_the_same_for_many_messages() -> None:
    many = [message(it, {"order_id": f"o{it}", "amount": it}, key=b"%d" % it) for it in range(100)]
    slow = [it._replace(content=b" " + (it.content or b"").replace(b"{", b"{ ")) for it in many]

    assert read(*many) == read(*slow)
    assert [(it["order_id"], it["order_key"], it["position"]) for it in read(*many)] == [
        (f"o{it}", str(it), it) for it in range(100)
    ]


def test_a_record_without_more_has_no_parts_but_its_offset() -> None:
    (judged,) = read((3, b'{"order_id": "x"}'))

    assert (judged["order_id"], judged["position"], judged["order_key"]) == ("x", 3, None)


@pytest.mark.parametrize(
    ("parts", "detail"),
    [
        ({"key": b"\xff"}, "key of the message: invalid UTF-8 at byte 0"),
        ({"key": b"a\0"}, "key of the message: a NUL character"),
        ({"headers": [("h", b"\xff")]}, "headers of the message: h: invalid UTF-8 at byte 0"),
    ],
)
def test_a_part_that_fits_no_column_is_one_dead_letter(parts: dict[str, Any], detail: str) -> None:
    judged = read(message(1, {"order_id": "x"}, **parts), message(2, {"order_id": "y"}))

    assert [(it["_code_0"], it["_detail_0"]) for it in judged] == [
        ("MALFORMED_RECORD", detail),
        (None, None),
    ]
    assert judged[0]["_record"] == '{"order_id": "x"}'


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("array<struct<key:string,value:string>>", [("b", "2"), ("a", None), ("b", "3")]),
        ("array<struct<key:string,value:binary>>", [("b", b"2"), ("a", None), ("b", b"3")]),
    ],
)
def test_headers_may_be_kept_in_their_order(kind: str, expected: list[tuple[str, Any]]) -> None:
    columns = {"order_id": "string", "headers": kind, "order_key": "binary"}
    each = message(
        1, {"order_id": "x"}, headers=[("b", b"2"), ("a", None), ("b", b"3")], key=b"\xff"
    )

    (judged,) = read(each, columns=columns, message=(("headers", "headers"), ("key", "order_key")))

    assert [(it["key"], it["value"]) for it in judged["headers"]] == expected
    assert judged["order_key"] == b"\xff"


def test_a_message_without_content_is_a_row_where_it_is_asked_for_and_else_a_letter() -> None:
    (taken,) = read(message(1, key=b"k"))
    (refused,) = read(message(1, key=b"k"), message=(("key", "order_key"),))

    assert (taken["order_key"], taken["is_gone"], taken["order_id"]) == ("k", True, None)
    assert taken["_code_0"] is None
    assert refused["_code_0"] == "MALFORMED_RECORD"
    assert "the message has no content" in refused["_detail_0"]


def test_blank_content_is_a_dead_letter_whatever_is_around_it() -> None:
    table = changes()
    group = Group.of([table], RecordSchema.of(table), NOON)

    (judged,) = read_messages(group, Place("orders/0", "@"), [Message(1, b"  ", b"{}")])

    assert judged.column("_code_0").to_pylist() == ["MALFORMED_RECORD"]
    assert [it["_code_0"] for it in read(message(2)._replace(content=b""))] == ["MALFORMED_RECORD"]


def test_the_key_of_a_message_is_enough_for_a_delete_of_an_envelope() -> None:
    table = changes()
    group = Group.of([table], RecordSchema.of(table), NOON)
    messages = [
        Message(1, json.dumps(change("c", 100, row(1))).encode(), b'{"id": 1}'),
        Message(
            2, json.dumps(change("d", 200)).encode(), b'{"schema": null, "payload": {"id": 1}}'
        ),
        Message(3, None, b'{"id": 1}'),
        Message(4, json.dumps(change("d", 300)).encode(), b"no JSON"),
        Message(5, json.dumps(change("d", 400)).encode()),
    ]

    tables = list(read_messages(group, Place("orders/0", "@"), messages))

    rows = {it["_origin"]: it for table in tables for it in table.to_pylist()}
    assert [rows[f"orders/0@{it}"]["id"] for it in (1, 2)] == [1, 1]
    assert [rows[f"orders/0@{it}"]["_code_0"] for it in range(1, 6)] == [
        *(None, None, "PASSED_OVER", "MALFORMED_RECORD", "MALFORMED_RECORD")
    ]


OF_CSV = source("orders", {"id": "string", "note": "string", "n": "int"}, format="csv")
AVRO = {
    "type": "record",
    "name": "order",
    "fields": [{"name": "id", "type": "string"}, {"name": "n", "type": "int"}],
}


def test_fields_stand_in_the_order_of_the_columns_and_a_line_end_is_no_part_of_them() -> None:
    group = Group.of([OF_CSV], RecordSchema.of(OF_CSV), NOON)
    messages = [(5, b'a,"one\ntwo",1\r\n'), (6, b"b,,2"), (7, b"c,,3\nd,,4\n")]

    chunk = read_csv_messages(group, messages)

    rows = zip(chunk.lines, chunk.rows.select(["id", "note", "n"]).to_pylist(), strict=True)
    assert dict(rows) == {
        5: {"id": "a", "note": "one\ntwo", "n": 1},
        6: {"id": "b", "note": None, "n": 2},
    }
    (refused,) = chunk.refused
    assert (refused.line, refused.record) == (7, messages[2][1])
    assert refused.detail == "2 records of CSV: a message holds one"


def test_a_column_that_drift_brought_is_no_field_of_a_message() -> None:
    schema = RecordSchema.of(OF_CSV, [("coupon", parse_type("string"))])

    chunk = read_csv_messages(Group.of([OF_CSV], schema, NOON), [(1, b"a,x,1")])

    assert chunk.rows.select(["id", "n", "coupon"]).to_pylist() == [
        {"id": "a", "n": 1, "coupon": None}
    ]


def avro_group(**spec: object) -> Group:
    each = source("orders", {"id": "string", "n": "int"}, format="avro", **spec)
    return Group.of([each], RecordSchema.of(each), NOON)


def avro_content(record: object, schema: Any = AVRO) -> bytes:
    file = io.BytesIO()
    fastavro.schemaless_writer(file, schema, record)
    return file.getvalue()


def test_a_broken_message_is_refused_with_its_offset_and_the_others_are_rows() -> None:
    good = avro_content({"id": "a", "n": 1})
    messages = [
        (7, good),
        (8, good[:-1]),
        (9, good + b"\0"),
        (12, avro_content({"id": "b", "n": 2})),
    ]

    chunk = read_avro_messages(avro_group(avro_schema=json.dumps(AVRO)), messages)

    assert list(chunk.lines) == [7, 12]
    assert chunk.rows.select(["id", "n"]).to_pylist() == [
        {"id": "a", "n": 1},
        {"id": "b", "n": 2},
    ]
    assert [(it.line, it.code, it.record) for it in chunk.refused] == [
        (8, "MALFORMED_RECORD", messages[1][1]),
        (9, "MALFORMED_RECORD", messages[2][1]),
    ]
    assert chunk.refused[1].detail == "1 bytes remain after its record"


def test_the_number_in_the_head_says_by_which_schema_a_message_was_written(tmp_path: Path) -> None:
    older = {**AVRO, "fields": AVRO["fields"][:1]}
    for number, schema in {1: older, 2: AVRO}.items():
        (tmp_path / f"{number}.avsc").write_text(json.dumps(schema))
    messages = [
        (0, struct.pack(">bI", 0, 1) + avro_content({"id": "a"}, older)),
        (1, struct.pack(">bI", 0, 2) + avro_content({"id": "b", "n": 2})),
        (2, b"\1" + struct.pack(">I", 2) + avro_content({"id": "c", "n": 3})),
    ]

    chunk = read_avro_messages(avro_group(schema_registry=str(tmp_path)), messages)

    assert chunk.rows.select(["id", "n"]).to_pylist() == [
        {"id": "a", "n": None},
        {"id": "b", "n": 2},
    ]
    assert [it.line for it in chunk.refused] == [2]
