"""Reads messages that hold one change record of Debezium each, in Avro.

Used for record logs of the format `avro` with that envelope. A record is read as the one that
JsonConverter would have written: its values as they are encoded, beside their schema.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

from livemart.land.records.debezium.change_record import ChangeRecords, opened_json
from livemart.land.records.debezium.connect_schemas import connect_schema, without_logical_types
from livemart.land.records.debezium.encodings import Schema
from livemart.land.records.exact_values import MalformedError, NoRowError, refuse_characters
from livemart.land.records.judge import Chunk, Group
from livemart.land.records.messages.avro_records import (
    decode_record,
    definitions_of,
    is_numbered,
    parse_definitions,
)
from livemart.land.records.messages.registry import Definitions
from livemart.land.records.one_by_one import read_one_by_one
from livemart.land.records.runs import KeyedLine
from livemart.land.records.typed.typed_records import as_in_json, written_record
from livemart.project.graph import RecordRules

_KEPT = 1_024
NO_CONTENT = b"null"


def read_avro_changes(group: Group, messages: Sequence[tuple[int, bytes]]) -> Chunk:
    """Return the rows of some messages, and the messages that could not become one.

    Args:
        group: columns of the records; its rules say how to read them.
        messages: offset and content of each, a `KeyedLine` if its key is known; `NO_CONTENT` for
            one without.

    Raises:
        RegistryAwayError: a schema cannot be had at present.
    """
    rules = group.record_rules
    keys = group.rules[0].row_rules.keys
    changes = ChangeRecords(group.schema.columns, keys, rules.envelope_options)

    def fields(raw: bytes) -> dict[str, Any]:
        if raw == NO_CONTENT:
            raise NoRowError("a tombstone")
        row = changes.row(*_opened(raw, rules), lambda: _key(raw, rules))
        # As those of JSON are refused before they are read.
        refuse_characters(row)
        return row

    chunk = read_one_by_one(group, messages, fields)
    # A letter is read by people.
    refused = [replace(letter, record=_legible(letter.record, rules)) for letter in chunk.refused]
    return replace(chunk, record=lambda row: _legible(chunk.record(row), rules), refused=refused)


class _Form(NamedTuple):
    """How records of a schema are decoded, and the types that JsonConverter would write."""

    avro: Any
    connect: Schema


@lru_cache(maxsize=_KEPT)
def _form(definitions: Definitions) -> _Form:
    connect = connect_schema(parse_definitions(definitions, expand=True))
    plain = tuple(json.dumps(without_logical_types(json.loads(text))) for text in definitions)
    return _Form(parse_definitions(plain), connect)


def _opened(raw: bytes, rules: RecordRules) -> tuple[Schema, Any]:
    """Return schema and content of a record."""
    definitions, body = definitions_of(raw, rules)
    form = _form(definitions)
    return form.connect, as_in_json(decode_record(body, form.avro))


def _key(raw: bytes, rules: RecordRules) -> tuple[Schema | None, Any]:
    """Return schema and content of a message's key, which may be JSON beside content in Avro."""
    key = raw.key if isinstance(raw, KeyedLine) else None
    if key is not None and rules.schema_registry is not None and is_numbered(key):
        return _opened(key, rules)
    return opened_json(key)


def _legible(raw: bytes, rules: RecordRules) -> bytes:
    try:
        return written_record(_opened(raw, rules)[1])
    except MalformedError:
        return raw
