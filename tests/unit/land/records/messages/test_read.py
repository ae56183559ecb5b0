"""Messages of a log become rows: content by its format, key, headers and place as columns."""

from __future__ import annotations

import base64
import io
import json
import random
import struct
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

import fastavro
import pyarrow as pa
import pytest

from livemart.land.records.exact_values import MalformedError
from livemart.land.records.judge import Chunk, Group, unrescued
from livemart.land.records.messages.message import Message, Record
from livemart.land.records.messages.read import (
    PartColumns,
    decode_record,
    definitions_of,
    is_numbered,
    parse_definitions,
    read_avro_messages,
    read_csv_messages,
    read_messages,
)
from livemart.land.records.messages.registry import RegistryAwayError
from livemart.land.records.origin import Place
from livemart.land.records.schema import RecordSchema
from livemart.project.graph import Column, EnvelopeOptions, RecordRules, SourceTable
from livemart.project.spark_types import parse_type
from tests.change_records import (
    AVRO_DECIMAL,
    SCHEMA,
    Row,
    Table,
    change,
    changes,
    mysql,
    postgres,
    row,
)
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
NAME = "shop.public.orders"
CONNECT = "org.apache.kafka.connect.data"
NUMBER, KEY_NUMBER = 7, 8
MICROS = {"type": "long", "connect.version": 1, "connect.name": "io.debezium.time.MicroTimestamp"}
ITEM = {
    "type": "record",
    "name": "item",
    "namespace": "shop",
    "fields": [{"name": "dish", "type": "string"}],
}
PLAIN_ORDER = {
    "type": "record",
    "name": "order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "note", "type": "string"},
        {"name": "paid", "type": ["null", "boolean"]},
        {"name": "by", "type": {"type": "enum", "name": "way", "symbols": ["cash", "card"]}},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
    ],
}
VALUES = {"id": 7, "note": "größe", "paid": True, "by": "card", "tags": ["a", "b"]}


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


def optional(kind: Any) -> list[Any]:
    return ["null", kind]


def envelope(fields: dict[str, Any], source: Row) -> Any:
    """The schema of changes as AvroConverter writes it; `before` defines the type of `after`."""
    value = {
        "type": "record",
        "name": "Value",
        "fields": [{"name": name, "type": kind} for name, kind in fields.items()],
        "connect.name": f"{NAME}.Value",
    }
    kinds = {int: "long", str: "string", type(None): "null"}
    place = {
        "type": "record",
        "name": "Source",
        "namespace": f"io.debezium.connector.{source['connector']}",
        "fields": [
            {"name": name, "type": optional(kinds[type(it)]) if it is not None else "null"}
            for name, it in source.items()
        ],
    }
    return {
        "type": "record",
        "name": "Envelope",
        "namespace": NAME,
        "fields": [
            {"name": "before", "type": optional(value), "default": None},
            {"name": "after", "type": optional("Value"), "default": None},
            {"name": "source", "type": place},
            {"name": "op", "type": "string"},
            {"name": "ts_ms", "type": optional("long")},
        ],
        "connect.name": f"{NAME}.Envelope",
    }


ORDER = {
    "id": "long",
    "status": optional("string"),
    "total": optional(AVRO_DECIMAL),
    "placed_at": optional(MICROS),
    "note": optional("string"),
}


def encoded(record: Any, schema: Any, number: int | None = NUMBER) -> bytes:
    file = io.BytesIO()
    fastavro.schemaless_writer(file, fastavro.parse_schema(schema), record)
    return (b"" if number is None else struct.pack(">bI", 0, number)) + file.getvalue()


def of_avro(image: Row | None) -> Row | None:
    """Return a row of JSON as a writer of Avro takes it."""
    if image is None or image.get("total") is None:
        return image
    digits = int.from_bytes(base64.b64decode(image["total"]), "big", signed=True)
    return image | {"total": Decimal(digits).scaleb(-2)}


def judged(each: SourceTable, *messages: Message) -> list[dict[str, Any]]:
    group = Group.of([each], RecordSchema.of(each), NOON)
    tables = list(read_messages(group, Place("orders/0", "@"), messages))
    rows = pa.concat_tables(tables).to_pylist()
    return sorted(rows, key=lambda it: int(it["_origin"].split("@")[1]))


def avro_source(folder: Path, schema: Any, **spec: Any) -> SourceTable:
    (folder / f"{NUMBER}.avsc").write_text(json.dumps(schema))
    given: dict[str, Any] = {
        "format": "avro",
        "schema_registry": str(folder),
        "envelope_options": OPTIONS,
    }
    columns = spec.pop("columns", None)
    each = changes(**given | spec)
    return each if columns is None else replace(each, columns=columns)


OPTIONS = EnvelopeOptions()


@pytest.mark.parametrize("connector", ["postgresql", "mysql"])
def test_changes_of_a_table_are_the_rows_that_they_are_in_json(
    tmp_path: Path, connector: Literal["postgresql", "mysql"]
) -> None:
    table = Table(random.Random(7), connector)
    table.run(200)
    place = postgres(1) if connector == "postgresql" else mysql("bin.000001", 4)
    schema = envelope(ORDER, place)
    in_json, in_avro = [], []
    for number, record in enumerate(table.log):
        record = record | {"source": {name: record["source"].get(name) for name in place}}
        images = {side: of_avro(record[side]) for side in ("before", "after")}
        # A delete tells the key alone, but all fields are there.
        if images["before"] is not None:
            images["before"] = dict.fromkeys(ORDER) | images["before"]
        content = {"schema": SCHEMA, "payload": record}
        in_json.append(Message(number, json.dumps(content).encode()))
        in_avro.append(Message(number, encoded(record | images, schema)))

    expected = judged(changes(envelope_options=EnvelopeOptions(schemas=True)), *in_json)
    actual = judged(avro_source(tmp_path, schema), *in_avro)

    assert len(actual) == len(table.log) > 200
    assert actual == expected
    assert {it["_code_0"] for it in actual} == {None}


VARIABLE = {
    "type": "record",
    "name": "VariableScaleDecimal",
    "namespace": "io.debezium.data",
    "fields": [{"name": "scale", "type": "int"}, {"name": "value", "type": "bytes"}],
    "connect.name": "io.debezium.data.VariableScaleDecimal",
}
NOON_MICROS = 1_772_366_400_000_000


def named(name: str, kind: str = "long") -> dict[str, Any]:
    return {"type": kind, "connect.name": name}


@pytest.mark.parametrize(
    ("kind", "value", "declared", "expected"),
    [
        (AVRO_DECIMAL, Decimal("12.50"), "decimal(10,2)", Decimal("12.50")),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 1},
            *(Decimal("12.5"), "decimal(10,2)", Decimal("12.50")),
        ),
        (VARIABLE, {"scale": 3, "value": b"\x30\xd4"}, "decimal(10,2)", Decimal("12.50")),
        (named("io.debezium.time.Date", "int"), 20_513, "date", date(2026, 3, 1)),
        ({"type": "int", "logicalType": "date"}, date(2026, 3, 1), "date", date(2026, 3, 1)),
        (MICROS, NOON_MICROS, "timestamp", NOON),
        (named("io.debezium.time.NanoTimestamp"), NOON_MICROS * 1000, "timestamp", NOON),
        (
            {"type": "long", "logicalType": "timestamp-millis"},
            *(datetime(2026, 3, 1, 12, tzinfo=UTC), "timestamp", NOON),
        ),
        (
            {**named(f"{CONNECT}.Timestamp"), "logicalType": "timestamp-millis"},
            *(datetime(2026, 3, 1, 12, tzinfo=UTC), "timestamp", NOON),
        ),
        (named("io.debezium.time.MicroTime"), 45_296_789_000, "string", "12:34:56.789"),
        (
            named("io.debezium.time.ZonedTimestamp", "string"),
            *("2026-03-01T13:00:00+01:00", "timestamp", NOON),
        ),
        ("bytes", b"\0\xff", "binary", b"\0\xff"),
        (named("io.debezium.data.Json", "string"), '{"a": 1}', "string", '{"a": 1}'),
        (
            {"type": "array", "items": optional(AVRO_DECIMAL)},
            *([Decimal("1.5"), None], "array<double>", [1.5, None]),
        ),
        (
            {"type": "map", "values": optional("string")},
            *({"a": "b"}, "map<string,string>", [("a", "b")]),
        ),
        ({"type": "enum", "name": "e", "symbols": ["a", "b"]}, "b", "string", "b"),
        (["null", "string", "long"], 5, "bigint", 5),
        ("double", 0.1, "double", 0.1),
        ("long", 2**62 + 1, "bigint", 2**62 + 1),
        ("boolean", True, "boolean", True),
    ],
)
def test_each_encoding_is_the_value_that_the_database_holds(
    tmp_path: Path, kind: Any, value: Any, declared: str, expected: Any
) -> None:
    schema = envelope({"id": "long", "x": kind}, postgres(1))
    columns = (Column("id", "bigint"), Column("x", declared))
    each = avro_source(tmp_path, schema, columns=columns)

    (read,) = judged(each, Message(0, encoded(change("c", 1, {"id": 1, "x": value}), schema)))

    assert (read["_detail_0"], read["x"]) == (None, expected)


def test_large_bytes_that_a_change_left_as_they_were_are_known(tmp_path: Path) -> None:
    schema = envelope({"id": "long", "x": optional("bytes")}, postgres(1))
    columns = (Column("id", "bigint"), Column("x", "binary"))
    after = {"id": 1, "x": b"__debezium_unavailable_value"}

    (read,) = judged(
        avro_source(tmp_path, schema, columns=columns),
        Message(0, encoded(change("u", 1, after), schema)),
    )

    assert (read["x"], read["_kept_values"]) == (None, [("x", None)])


@pytest.mark.parametrize("is_key_avro", [True, False])
def test_a_delete_is_told_by_the_key_of_its_message(tmp_path: Path, is_key_avro: bool) -> None:
    schema = envelope(ORDER, postgres(1))
    of_key = {"type": "record", "name": "Key", "fields": [{"name": "id", "type": "long"}]}
    (tmp_path / f"{KEY_NUMBER}.avsc").write_text(json.dumps(of_key))
    key = encoded({"id": 5}, of_key, KEY_NUMBER) if is_key_avro else b'{"id": 5}'

    deleted, tombstone = judged(
        avro_source(tmp_path, schema),
        Message(0, encoded(change("d", 1), schema), key),
        Message(1, None, key),
    )

    assert (deleted["id"], deleted["_operation"]) == (5, "d")
    assert tombstone["_code_0"] == "PASSED_OVER"


def test_what_is_no_row_is_a_letter_that_can_be_read(tmp_path: Path) -> None:
    wide = json.loads(json.dumps(AVRO_DECIMAL).replace("10", "20"))
    schema = envelope(ORDER | {"total": optional(wide)}, postgres(1))
    too_large = encoded(change("c", 1, row(1) | {"total": Decimal("1e15")}), schema)

    misfit, cut, plain = judged(
        avro_source(tmp_path, schema),
        Message(0, too_large),
        Message(1, too_large[:-4]),
        Message(2, b'{"op": "c"}'),
    )

    assert misfit["_code_0"] == "TYPE_MISMATCH"
    assert json.loads(misfit["_record"])["after"]["status"] == "placed"
    assert (cut["_code_0"], plain["_code_0"]) == ("MALFORMED_RECORD", "MALFORMED_RECORD")
    assert "does not match its schema" in cut["_detail_0"]


def test_bare_records_are_read_by_the_schema_that_is_told() -> None:
    schema = envelope(ORDER, postgres(1))
    each = changes(format="avro", avro_schema=json.dumps(schema), envelope_options=OPTIONS)
    content = encoded(change("c", 1, of_avro(row(1))), schema, None)

    created, tombstone = judged(each, Message(0, content, b"k"), Message(1, None, b"k"))

    assert (created["id"], created["total"]) == (1, Decimal("12.50"))
    assert tombstone["_code_0"] == "PASSED_OVER"


@pytest.mark.parametrize(
    ("content", "detail"), [(b"a\0c", "a NUL character"), (b"a\xffc", "invalid UTF-8")]
)
def test_a_text_that_no_table_takes_is_a_letter_as_in_json(
    tmp_path: Path, content: bytes, detail: str
) -> None:
    place = postgres(1)
    schema = envelope(ORDER, place)
    image = row(1, "abc")
    raw = encoded(change("c", place, of_avro(image)), schema)

    bad, good = judged(
        avro_source(tmp_path, schema),
        Message(0, raw.replace(b"abc", content), None),
        Message(1, raw, None),
    )

    assert (bad["_code_0"], good["_code_0"]) == ("MALFORMED_RECORD", None)
    assert bad["_detail_0"].startswith(detail)


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


def plainly_encoded(record: object, schema: Any) -> bytes:
    file = io.BytesIO()
    fastavro.schemaless_writer(file, fastavro.parse_schema(schema), record)
    return file.getvalue()


def parsed(*definitions: object) -> Any:
    return parse_definitions(tuple(map(json.dumps, definitions)))


def rules(**spec: Any) -> RecordRules:
    return source("orders", format="avro", **spec).record_rules


def test_every_end_and_every_byte_that_is_wrong_is_a_refusal_or_a_record() -> None:
    """Never another error: that would stop the stream, and not only this message."""
    whole, schema = plainly_encoded(VALUES, PLAIN_ORDER), parsed(PLAIN_ORDER)

    assert decode_record(whole, schema) == VALUES
    for end in range(len(whole)):
        with pytest.raises(MalformedError):
            decode_record(whole[:end], schema)
    decoded = 0
    for place in range(len(whole)):
        for byte in range(256):
            try:
                decode_record(whole[:place] + bytes([byte]) + whole[place + 1 :], schema)
            except MalformedError:
                continue
            decoded += 1
    # Another letter is another record; most of the bytes are letters.
    assert 0 < decoded < len(whole) * 256


def test_bytes_behind_a_record_and_a_record_without_fields_are_refused() -> None:
    with pytest.raises(MalformedError, match="2 bytes remain after its record"):
        decode_record(plainly_encoded(VALUES, PLAIN_ORDER) + b"\0\0", parsed(PLAIN_ORDER))
    with pytest.raises(MalformedError, match="its record has no fields"):
        decode_record(plainly_encoded("text", "string"), parsed("string"))


@pytest.mark.parametrize(
    ("content", "is_one"),
    [
        (b"\0\0\0\0\7", True),
        (b"\0\0\0\0\7record", True),
        (b"\0\0\0\0", False),
        (b"\1\0\0\0\7record", False),
        (b"", False),
    ],
)
def test_a_number_of_a_schema_is_a_zero_byte_and_four_more(content: bytes, is_one: bool) -> None:
    assert is_numbered(content) == is_one


def test_a_schema_that_is_told_reads_the_whole_content_whatever_it_begins_with() -> None:
    content = struct.pack(">bI", 0, 7) + b"record"

    assert definitions_of(content, rules(avro_schema=json.dumps(PLAIN_ORDER))) == (
        (json.dumps(PLAIN_ORDER),),
        content,
    )


def test_a_type_that_another_schema_defines_is_found_and_expanded_into_its_place() -> None:
    order = {**PLAIN_ORDER, "fields": [{"name": "item", "type": "shop.item"}]}
    body = plainly_encoded(
        {"item": {"dish": "ramen"}}, {**PLAIN_ORDER, "fields": [{"name": "item", "type": ITEM}]}
    )

    assert decode_record(body, parsed(ITEM, order)) == {"item": {"dish": "ramen"}}
    expanded = parse_definitions((json.dumps(ITEM), json.dumps(order)), expand=True)
    (field,) = expanded["fields"]
    assert (field["type"]["type"], field["type"]["fields"][0]["name"]) == ("record", "dish")


@pytest.mark.parametrize(
    "definitions",
    [
        ["{broken"],
        ['{"type": "nothing"}'],
        [json.dumps({**PLAIN_ORDER, "fields": [{"name": "item", "type": "shop.item"}]})],
        ["[" * 100_000],
    ],
    ids=["no JSON", "no type", "what it refers to is not there", "deep"],
)
def test_a_schema_that_cannot_be_read_is_waited_for_and_its_begin_is_told(
    definitions: Sequence[str],
) -> None:
    """The messages are well: who mends the schema finds them still there."""
    with pytest.raises(RegistryAwayError) as raised:
        parse_definitions(tuple(definitions))

    assert definitions[-1][:20] in str(raised.value)
    assert len(str(raised.value)) < 1_000


def test_a_schema_that_sets_no_end_to_its_records_makes_each_of_them_a_letter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is not waited for: under its number there will never be another."""
    node = {"type": "record", "name": "tree", "fields": [{"name": "of", "type": ["null", "tree"]}]}

    with pytest.raises(MalformedError, match=r"its schema is refused: .* 64 levels"):
        parsed(node)
    # Nor is it parsed for each of its messages.
    monkeypatch.setattr("fastavro.parse_schema", None)
    with pytest.raises(MalformedError, match=r"its schema is refused: .* 64 levels"):
        parsed(node)
