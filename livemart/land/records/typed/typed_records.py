"""Reads records whose values have types already, as files of Parquet and Avro hold them.

Used by the readers of both. A value is written as JSON would write it and then read exactly, so a
column means the same in every format. Its record is written that way in a dead letter, too.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from types import MappingProxyType
from typing import Any
from uuid import UUID

import pyarrow as pa

from livemart.land.records.by_columns import convert_columns
from livemart.land.records.exact_values import TEXT, MalformedError, refuse_characters
from livemart.land.records.judge import Chunk, Group, Refused
from livemart.land.records.untyped_values import (
    MisfitError,
    Number,
    PackedInterval,
    RepeatedKeys,
    Unreadable,
    compact,
)
from livemart.project.spark_types import SparkType

_BINARY = "binary"
# As Spark and Debezium write them.
_NAMES_OF_FLOATS = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


def read_typed_records(
    group: Group,
    records: Sequence[tuple[int, Mapping[str, Any]]],
    whole: Callable[[int], bytes] | None = None,
    ready: Mapping[str, pa.Array] = MappingProxyType({}),
) -> Chunk:
    """Return the rows of some records, and the records that could not become one.

    Args:
        group: columns of the records.
        records: number and values by name, as Python's own types.
        whole: returns the n-th record as JSON text, if `records` have a part of its fields.
        ready: the columns that are read already, by name; `records` have none of them.
    """
    kinds = dict(group.schema.columns)
    written = whole or (lambda position: written_record(records[position][1]))
    parsed: list[dict[str, Any]] = []
    readable: list[int] = []
    refusals: dict[int, MisfitError | MalformedError] = {}
    for position, (_, record) in enumerate(records):
        try:
            fields = {name: as_in_json(value, kinds.get(name)) for name, value in record.items()}
            refuse_characters(fields)
        except (MisfitError, MalformedError) as error:
            refusals[position] = error
        else:
            parsed.append(fields)
            readable.append(position)
    if refusals:
        ready = {
            name: column.take(pa.array(readable, pa.int64())) for name, column in ready.items()
        }
    # A field that says nothing is no drift: every record of such a file has all fields.
    rows, misfits = convert_columns(group, parsed, ready=ready, keeps_null=False)
    refusals |= {readable[place]: error for place, error in misfits.items()}
    refused = [
        Refused(records[position][0], error.code, str(error), written(position))
        for position, error in sorted(refusals.items())
    ]
    accepted = [position for position in readable if position not in refusals]
    numbers = [records[position][0] for position in accepted]
    # Only few rows are asked for their record.
    return Chunk(rows, numbers, lambda row: written(accepted[row]), refused)


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
            return Number(repr(value)) if math.isfinite(value) else _NAMES_OF_FLOATS[str(value)]
        case Decimal():
            return Number(format(value, "f")) if value.is_finite() else str(value)
        case PackedInterval() | UUID() if kind is None or kind.name != _BINARY:
            return str(value)
        case UUID():
            return value.bytes
        case bytes():
            if kind is None or kind.name == TEXT:
                # As it was rescued with the batch that brought the column.
                return base64.b64encode(value).decode()
            return _bytes(value, kind)
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
