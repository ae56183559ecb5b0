"""Reads the messages of a record log to judged rows.

Used for each range of a record log, by the driver as by Spark's workers.

A change record of Debezium in Avro is read as the one that JsonConverter would have written: its
values as they are encoded, beside their schema.
"""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from operator import attrgetter
from typing import Any, NamedTuple

import pyarrow as pa

from livemart.epoch import epoch_moment, timestamp_text
from livemart.land.reasons import LetterReason
from livemart.land.records.by_columns import read_one_by_one, require_size
from livemart.land.records.csv_rows import read_csv_rows, split_records
from livemart.land.records.debezium.change_record import ChangeRecords, opened_json
from livemart.land.records.debezium.connect_schemas import connect_schema, without_logical_types
from livemart.land.records.debezium.encodings import Schema
from livemart.land.records.exact_values import (
    MalformedError,
    NoRowError,
    decode_text,
    refuse_characters,
)
from livemart.land.records.judge import (
    Chunk,
    Group,
    Refused,
    all_refused,
    judge,
    malformed,
    unrescued,
)
from livemart.land.records.messages.message import Message, Record
from livemart.land.records.messages.registry import (
    Definitions,
    RegistryAwayError,
    fetch_definitions,
)
from livemart.land.records.origin import Place
from livemart.land.records.parse import typed_chunks
from livemart.land.records.runs import KeyedLine, Lines
from livemart.land.records.typed.avro_values import with_own_types
from livemart.land.records.typed.typed_records import as_in_json, read_typed_records, written_record
from livemart.land.records.untyped_values import DOES_NOT_FIT, MisfitError
from livemart.project.graph import RecordRules
from livemart.project.landing_columns import RESCUED
from livemart.project.record_logs.avro_types import RefusedSchemaError, parse_schemas
from livemart.project.record_logs.message_parts import TOMBSTONE

_ENDS = b"\r\n"
_NO_CONTENT = (
    "the message has no content: if that deletes its key, map `message: {key: ..., tombstone: ...}`"
)
_KEPT = 1_024
NO_CONTENT = b"null"
_MAGIC = 0
_HEAD = struct.Struct(">bI")
_SHOWN = 200

# The errors that fastavro raises for a broken byte.
_REFUSALS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    EOFError,
    LookupError,
    MemoryError,
    RecursionError,
    TypeError,
    ValueError,
    struct.error,
)


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


class PartColumns:
    """The columns that hold parts of some messages beside their content: key, headers, time, place.

    Args:
        group: its `message` says which part is which column.
        run: the messages; a record that is none has an offset and no other part.

    Attributes:
        names: of the columns.
        takes_tombstones: whether a message without content is a row.
        refused: why a message's parts fit no column, by its offset.
    """

    def __init__(self, group: Group, run: Sequence[Record]) -> None:
        self._group = group
        self.takes_tombstones = TOMBSTONE in dict(group.record_rules.message)
        self.names = frozenset(column for _, column in group.record_rules.message)
        self.refused: dict[int, Refused] = {}
        self._values: dict[str, dict[int, Any]] = {}
        messages = [item if isinstance(item, Message) else Message(*item) for item in run]
        for part, column in group.record_rules.message:
            read = _reader(part, group.schema.arrow.field(column).type)
            values: dict[int, Any] = {}
            for message in messages:
                try:
                    values[message.offset] = read(message)
                except (MalformedError, MisfitError) as error:
                    detail = f"{part} of the message: {error}"
                    self.refused[message.offset] = Refused(
                        message.offset, error.code, detail, message.content or b""
                    )
            self._values[column] = values

    def refused_chunk(self) -> Chunk:
        """Return the messages that are refused for their parts."""
        return all_refused(self._group, list(self.refused.values()))

    def beside(self, chunk: Chunk) -> Chunk:
        """Return the rows of contents with the columns that hold parts of the same messages."""
        arrays = [
            pa.array(map(self._values[field.name].__getitem__, chunk.lines), field.type)
            if field.name in self.names
            else chunk.rows.column(field.name)
            for field in self._group.schema.arrow
        ]
        arrays.append(chunk.rows.column(RESCUED))
        return replace(chunk, rows=pa.table(arrays, schema=self._group.typed))


def _reader(part: str, kind: pa.DataType) -> Callable[[Message], Any]:
    """Return the function that reads a part for a column of a type.

    It raises MalformedError or MisfitError.
    """
    match part:
        case "key":
            return _key_text if pa.types.is_string(kind) else attrgetter("key")
        case "headers":
            if pa.types.is_map(kind):
                return _header_map
            is_text = pa.types.is_string(kind.value_type.field("value").type)
            return partial(_header_list, is_text)
        case _:
            return _PLAIN[part]


_PLAIN: Mapping[str, Callable[[Message], Any]] = {
    "timestamp": lambda message: _moment(message.timestamp_us),
    "topic": attrgetter("topic"),
    "partition": attrgetter("partition"),
    "offset": attrgetter("offset"),
    TOMBSTONE: lambda message: message.content is None,
}


def _moment(micros: int | None) -> int | None:
    if micros is None:
        return None
    try:
        epoch_moment(micros)
    except OverflowError:
        # A producer may name any time.
        text = timestamp_text(micros * 1_000)
        raise MisfitError(f'"{text}"{DOES_NOT_FIT}timestamp') from None
    return micros


def _text(raw: bytes | None, prefix: str = "") -> str | None:
    return None if raw is None else decode_text(raw, prefix)


def _key_text(message: Message) -> str | None:
    return _text(message.key)


def _header_map(message: Message) -> list[tuple[str, str | None]]:
    """Return the headers; the last value of a repeated name holds, as in brokers' own clients."""
    headers = {name: _text(value, f"{name}: ") for name, value in message.headers}
    refuse_characters(list(headers))
    # Sorted: two maps that are equal are then equal rows.
    return sorted(headers.items())


def _header_list(is_text: bool, message: Message) -> list[dict[str, Any]]:
    refuse_characters([name for name, _ in message.headers])
    return [
        {"key": name, "value": _text(value, f"{name}: ") if is_text else value}
        for name, value in message.headers
    ]


def is_numbered(raw: bytes) -> bool:
    """Return whether a text begins as one with the number of its schema does."""
    return len(raw) >= _HEAD.size and raw[0] == _MAGIC


def definitions_of(raw: bytes, rules: RecordRules) -> tuple[Definitions, bytes]:
    """Return the schemas of a message, and its record.

    A message is the bare record, or begins with a zero byte and the number of its schema in four
    bytes, as serializers write it that use a schema registry.

    Args:
        raw: the content of the message.
        rules: their `avro_schema` or `schema_registry` says how to read it.

    Raises:
        MalformedError: it has no number of a schema, or one that the registry does not know.
        RegistryAwayError: a schema cannot be had at present.
    """
    if rules.schema_registry is None:
        return (str(rules.avro_schema),), raw
    if not is_numbered(raw):
        raise MalformedError("it does not begin with a zero byte and the number of a schema")
    (_, number), body = _HEAD.unpack_from(raw), raw[_HEAD.size :]
    return fetch_definitions(rules.schema_registry, rules.registry_secrets, number), body


def decode_record(body: bytes, schema: Any) -> Mapping[str, Any]:
    """Return the fields of a record as fastavro gives them.

    Raises:
        MalformedError: it is no record of the schema.
    """
    import fastavro

    file = io.BytesIO(body)
    try:
        # A text that is no UTF-8 is refused later, by its place.
        record: Any = fastavro.schemaless_reader(
            file, schema, None, handle_unicode_errors="surrogateescape"
        )
    except _REFUSALS as error:
        raise MalformedError(
            f"does not match its schema: {type(error).__name__}: {error}"
        ) from error
    if file.tell() != len(body):
        raise MalformedError(f"{len(body) - file.tell()} bytes remain after its record")
    if not isinstance(record, dict):
        raise MalformedError("its record has no fields")
    return record


def parse_definitions(definitions: Definitions, *, expand: bool = False) -> Any:
    """Return the schema that is meant, by which records are read.

    With `expand` no record is read: named types are in their places, and logical types as declared.

    Raises:
        MalformedError: it sets no end to a record.
        RegistryAwayError: it cannot be read; another one may be put there.
    """
    schema = _parse(definitions, expand)
    if isinstance(schema, RefusedSchemaError):
        raise MalformedError(f"its schema is refused: {schema}")
    return schema


@lru_cache(maxsize=_KEPT)
def _parse(definitions: Definitions, expand: bool) -> Any:
    """Return a schema, or the error for one that is refused: no message of it is parsed again."""
    try:
        return parse_schemas(
            definitions if expand else [with_own_types(text) for text in definitions],
            expand=expand,
        )
    except RefusedSchemaError as error:
        return error.with_traceback(None)
    # fastavro raises whatever a wrong schema leads to.
    except Exception as error:
        begin = definitions[-1][:_SHOWN]
        raise RegistryAwayError(
            f"schema {begin}: cannot be read: {type(error).__name__}: {error}"
        ) from error
