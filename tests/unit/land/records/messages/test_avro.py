"""A message of Avro is one record and nothing behind it; a broken one takes no other with it."""

from __future__ import annotations

import io
import json
import struct
from pathlib import Path
from typing import Any

import fastavro

from livemart.land.records.judge import Group
from livemart.land.records.messages.avro import read_avro_messages
from livemart.land.records.schema import RecordSchema
from tests.deliveries import NOON, source

SCHEMA = {
    "type": "record",
    "name": "order",
    "fields": [{"name": "id", "type": "string"}, {"name": "n", "type": "int"}],
}


def group(**spec: object) -> Group:
    each = source("orders", {"id": "string", "n": "int"}, format="avro", **spec)
    return Group.of([each], RecordSchema.of(each), NOON)


def content(record: object, schema: Any = SCHEMA) -> bytes:
    file = io.BytesIO()
    fastavro.schemaless_writer(file, schema, record)
    return file.getvalue()


def test_a_broken_message_is_refused_with_its_offset_and_the_others_are_rows() -> None:
    good = content({"id": "a", "n": 1})
    messages = [(7, good), (8, good[:-1]), (9, good + b"\0"), (12, content({"id": "b", "n": 2}))]

    chunk = read_avro_messages(group(avro_schema=json.dumps(SCHEMA)), messages)

    assert list(chunk.lines) == [7, 12]
    assert chunk.rows.select(["id", "n"]).to_pylist() == [
        {"id": "a", "n": 1},
        {"id": "b", "n": 2},
    ]
    assert [(it.line, it.code, it.record) for it in chunk.refused] == [
        (8, "MALFORMED_RECORD", messages[1][1]),
        (9, "MALFORMED_RECORD", messages[2][1]),
    ]
    assert chunk.refused[1].detail == "1 bytes are left behind its record"


def test_the_number_in_the_head_says_by_which_schema_a_message_was_written(tmp_path: Path) -> None:
    older = {**SCHEMA, "fields": SCHEMA["fields"][:1]}
    for number, schema in {1: older, 2: SCHEMA}.items():
        (tmp_path / f"{number}.avsc").write_text(json.dumps(schema))
    messages = [
        (0, struct.pack(">bI", 0, 1) + content({"id": "a"}, older)),
        (1, struct.pack(">bI", 0, 2) + content({"id": "b", "n": 2})),
        (2, b"\1" + struct.pack(">I", 2) + content({"id": "c", "n": 3})),
    ]

    chunk = read_avro_messages(group(schema_registry=str(tmp_path)), messages)

    assert chunk.rows.select(["id", "n"]).to_pylist() == [
        {"id": "a", "n": None},
        {"id": "b", "n": 2},
    ]
    assert [it.line for it in chunk.refused] == [2]
