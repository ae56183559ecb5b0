"""An Avro record is decoded completely or refused; its schema is configured or numbered."""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Sequence
from typing import Any

import fastavro
import pytest

from livemart.land.records.exact_values import MalformedError
from livemart.land.records.messages.avro_records import (
    decode_record,
    definitions_of,
    is_numbered,
    parse_definitions,
)
from livemart.land.records.messages.registry import RegistryAwayError
from livemart.project.graph import RecordRules
from tests.deliveries import source

ITEM = {
    "type": "record",
    "name": "item",
    "namespace": "shop",
    "fields": [{"name": "dish", "type": "string"}],
}
ORDER = {
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


def encoded(record: object, schema: Any) -> bytes:
    file = io.BytesIO()
    fastavro.schemaless_writer(file, fastavro.parse_schema(schema), record)
    return file.getvalue()


def parsed(*definitions: object) -> Any:
    return parse_definitions(tuple(map(json.dumps, definitions)))


def rules(**spec: Any) -> RecordRules:
    return source("orders", format="avro", **spec).record_rules


def test_every_end_and_every_byte_that_is_wrong_is_a_refusal_or_a_record() -> None:
    """Never another error: that would stop the stream, and not only this message."""
    whole, schema = encoded(VALUES, ORDER), parsed(ORDER)

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
        decode_record(encoded(VALUES, ORDER) + b"\0\0", parsed(ORDER))
    with pytest.raises(MalformedError, match="its record has no fields"):
        decode_record(encoded("text", "string"), parsed("string"))


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

    assert definitions_of(content, rules(avro_schema=json.dumps(ORDER))) == (
        (json.dumps(ORDER),),
        content,
    )


def test_a_type_that_another_schema_defines_is_found_and_expanded_into_its_place() -> None:
    order = {**ORDER, "fields": [{"name": "item", "type": "shop.item"}]}
    body = encoded(
        {"item": {"dish": "ramen"}}, {**ORDER, "fields": [{"name": "item", "type": ITEM}]}
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
        [json.dumps({**ORDER, "fields": [{"name": "item", "type": "shop.item"}]})],
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
