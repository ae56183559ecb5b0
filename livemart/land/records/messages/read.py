"""Reads the messages of a record log to judged rows.

Used for each range of a record log, by the driver as by Spark's workers.

A change record of Debezium in Avro is read as the one that JsonConverter would have written: its
values as they are encoded, beside their schema.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import pyarrow as pa

from livemart.land.reasons import LetterReason
from livemart.land.records.csv_rows import read_csv_rows, split_records
from livemart.land.records.debezium.change_record import ChangeRecords, opened_json
from livemart.land.records.debezium.connect_schemas import connect_schema, without_logical_types
from livemart.land.records.debezium.encodings import Schema
from livemart.land.records.exact_values import MalformedError, NoRowError, refuse_characters
from livemart.land.records.judge import Chunk, Group, Refused, judge, malformed, unrescued
from livemart.land.records.messages.avro_records import (
    decode_record,
    definitions_of,
    is_numbered,
    parse_definitions,
)
from livemart.land.records.messages.message import Message, Record
from livemart.land.records.messages.parts import PartColumns
from livemart.land.records.messages.registry import Definitions
from livemart.land.records.one_by_one import read_one_by_one, require_size
from livemart.land.records.origin import Place
from livemart.land.records.parse import typed_chunks
from livemart.land.records.runs import KeyedLine, Lines
from livemart.land.records.typed.typed_records import as_in_json, read_typed_records, written_record
from livemart.project.graph import RecordRules

_ENDS = b"\r\n"
_NO_CONTENT = (
    "the message has no content: if that deletes its key, map `message: {key: ..., tombstone: ...}`"
)
_KEPT = 1_024
NO_CONTENT = b"null"


def read_messages(group: Group, place: Place, run: Sequence[Record]) -> Iterator[pa.Table]:
    """Yield some records of a log as tables of `group.judged`: good and refused ones."""
    parts = PartColumns(group, run) if group.record_rules.message else None
    if parts is not None and parts.refused:
        yield judge(group, place, parts.refused_chunk())
        run = [record for record in run if record[0] not in parts.refused]
    contents: list[tuple[int, bytes]] = []
    blank: list[tuple[int, bytes]] = []
    tombstones: list[int] = []
    for record in run:
        number, content = record[0], record[1]
        key = record.key if isinstance(record, Message) else None
        if content is None and group.record_rules.envelope is None:
            tombstones.append(number)
        elif content is None:
            # Says nothing of a row that the change before it has not said.
            contents.append((number, NO_CONTENT))
        elif not content.strip():
            # A blank line of a file is no record; a message without content is one.
            blank.append((number, content))
        else:
            contents.append(
                (number, KeyedLine.of(content, key) if group.record_rules.envelope else content)
            )
    if blank:
        yield judge(group, place, malformed(group, blank, "the record is empty"))
    if tombstones and (parts is None or not parts.takes_tombstones):
        bare = [(number, b"") for number in tombstones]
        yield judge(group, place, malformed(group, bare, _NO_CONTENT))
    elif tombstones and parts is not None:
        yield judge(group, place, parts.beside(_without_content(group.of_contents, tombstones)))
    if contents:
        for chunk in _read_contents(group.of_contents, contents):
            yield judge(group, place, chunk if parts is None else parts.beside(chunk))


def _read_contents(group: Group, contents: list[tuple[int, bytes]]) -> Iterator[Chunk]:
    rules = group.record_rules
    if rules.format == "avro" and rules.envelope is not None:
        yield read_avro_changes(group, contents)
    elif (read := _OF_MESSAGES.get(rules.format)) is not None:
        yield read(group, contents)
    else:
        yield from typed_chunks(group, [Lines(contents)])


def read_csv_messages(group: Group, messages: Sequence[tuple[int, bytes]]) -> Chunk:
    """Return the rows of some messages, and the messages that could not become one.

    Args:
        group: columns of the records, in the order of the fields.
        messages: offset and content of each; a line end behind it is no part of the record.
    """
    header = tuple(name for name in group.schema.names if name not in group.schema.undeclared)
    records: list[tuple[int, bytes]] = []
    refused: list[Refused] = []
    for number, raw in messages:
        content = raw.rstrip(_ENDS)
        count = 1
        if b"\n" in content:
            lines = [(number, line) for line in content.split(b"\n")]
            count = sum(1 for _ in split_records(lines))
        if count == 1:
            records.append((number, content))
        else:
            detail = f"{count} records of CSV: a message holds one"
            refused.append(Refused(number, LetterReason.MALFORMED_RECORD, detail, raw))
    chunk = read_csv_rows(group, header, records)
    return replace(chunk, refused=[*chunk.refused, *refused])


def read_avro_messages(group: Group, messages: Sequence[tuple[int, bytes]]) -> Chunk:
    """Return the rows of some messages, and the messages that could not become one.

    Args:
        group: columns of the records; its `avro_schema` or `schema_registry` says how to read them.
        messages: offset and content of each.

    Raises:
        RegistryAwayError: a schema cannot be had at present.
    """
    records: list[tuple[int, Mapping[str, Any]]] = []
    refused: list[Refused] = []
    for number, raw in messages:
        try:
            require_size(raw)
            definitions, body = definitions_of(raw, group.record_rules)
            records.append((number, decode_record(body, parse_definitions(definitions))))
        except MalformedError as error:
            refused.append(Refused(number, error.code, str(error), raw))
    chunk = read_typed_records(group, records)
    return replace(chunk, refused=[*chunk.refused, *refused])


# A file of these formats says at its beginning what its records hold; a message does not.
_OF_MESSAGES: Mapping[str, Callable[[Group, Sequence[tuple[int, bytes]]], Chunk]] = {
    "csv": read_csv_messages,
    "avro": read_avro_messages,
}


def _without_content(group: Group, numbers: Sequence[int]) -> Chunk:
    """Return messages without content as rows: all NULL but for the columns of other parts."""
    columns = [pa.nulls(len(numbers), field.type) for field in group.schema.arrow]
    return Chunk(unrescued(group, columns, len(numbers)), numbers, lambda row: b"", [])


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
