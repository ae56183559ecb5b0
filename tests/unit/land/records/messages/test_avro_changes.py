"""Changes in Avro give the same rows as those of JsonConverter."""

from __future__ import annotations

import base64
import io
import json
import random
import struct
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

import fastavro
import pyarrow as pa
import pytest

from livemart.land.records.judge import Group
from livemart.land.records.messages.message import Message
from livemart.land.records.messages.read import read_messages
from livemart.land.records.origin import Place
from livemart.land.records.schema import RecordSchema
from livemart.project.graph import Column, EnvelopeOptions, SourceTable
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
from tests.deliveries import NOON

NAME = "shop.public.orders"
CONNECT = "org.apache.kafka.connect.data"
NUMBER, KEY_NUMBER = 7, 8
MICROS = {"type": "long", "connect.version": 1, "connect.name": "io.debezium.time.MicroTimestamp"}


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
