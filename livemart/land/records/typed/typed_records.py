"""Reads records whose values have types already, as files of Parquet and Avro hold them.

Used by the readers of both. A value is written as JSON would write it and then read exactly, so a
column means the same in every format. Its record is written that way in a dead letter, too.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any
from uuid import UUID

from livemart.land.records.exact_values import MalformedError, refuse_characters
from livemart.land.records.judge import Chunk, Group, Refused, convert_fields, to_rows
from livemart.land.records.untyped_values import (
    MisfitError,
    Number,
    PackedInterval,
    RepeatedKeys,
    Rescued,
    Unreadable,
    compact,
)
from livemart.project.spark_types import SparkType

_BINARY = "binary"


def read_typed_records(group: Group, records: Sequence[tuple[int, Mapping[str, Any]]]) -> Chunk:
    """Return the rows of some records, and the records that could not become one.

    Args:
        group: columns of the records.
        records: number and values by name, as Python's own types.
    """
    kinds = dict(group.schema.columns)
    values: list[list[Any]] = []
    rescued: list[Rescued] = []
    accepted: list[tuple[int, Mapping[str, Any]]] = []
    refused: list[Refused] = []
    for number, record in records:
        try:
            fields = {name: as_in_json(value, kinds.get(name)) for name, value in record.items()}
            refuse_characters(fields)
            converted, unknown = convert_fields(group, fields)
        except (MisfitError, MalformedError) as error:
            refused.append(Refused(number, error.code, str(error), written_record(record)))
        else:
            values.append(converted)
            # A field that says nothing is no drift: every record of such a file has all fields.
            rescued.append({name: text for name, text in unknown.items() if text is not None})
            accepted.append((number, record))
    rows = to_rows(group, values, rescued)
    numbers = [number for number, _ in accepted]
    # Only few rows are asked for their record.
    return Chunk(rows, numbers, lambda row: written_record(accepted[row][1]), refused)


def as_in_json(value: Any, kind: SparkType | None = None) -> Any:
    """Return a value as JSON would have it, with numbers as they are written.

    Args:
        value: of Python's own type, or of one by which a reader of files marks it.
        kind: of what takes it: bytes stay bytes then, or are text if it holds no bytes. None if
            nothing is known of it.
    """
    match value:
        # Numbers that are written are texts.
        case None | bool() | str() | Unreadable():
            return value
        case int():
            return Number(value)
        case float():
            # Not a number, and infinity, are texts that fit no number.
            return Number(repr(value)) if value - value == 0 else str(value)
        case Decimal():
            return Number(format(value, "f")) if value.is_finite() else str(value)
        case PackedInterval() | UUID() if kind is None or kind.name != _BINARY:
            return str(value)
        case UUID():
            return value.bytes
        case bytes():
            return base64.b64encode(value).decode() if kind is None else _bytes(value, kind)
        case RepeatedKeys():
            return RepeatedKeys([(name, as_in_json(item)) for name, item in value.items()])
        case dict():
            members = dict(kind.fields) if kind is not None else {}
            inner = kind.element if kind is not None else None
            return {
                name: as_in_json(item, members.get(name, inner)) for name, item in value.items()
            }
        case list():
            inner = kind.element if kind is not None else None
            return [as_in_json(item, inner) for item in value]
        case _:
            return str(value)


def _bytes(value: bytes, kind: SparkType) -> str | bytes:
    """Return bytes for a column that takes them, text for any other; no other takes bytes."""
    if kind.name == _BINARY:
        return value
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return value


def written_record(record: Any) -> bytes:
    """Return a record as JSON text."""
    return (compact(as_in_json(record)) or "").encode("utf-8", errors="backslashreplace")
