"""Reads messages that hold one record of Avro each, by a schema that is told or numbered.

Used for record logs of the format `avro`. A message is the bare record, or begins with a zero byte
and the number of its schema in four bytes, as serializers write it that use a schema registry.
"""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from livemart.land.reasons import LetterReason
from livemart.land.records.exact_values import MalformedError
from livemart.land.records.judge import Chunk, Group, Refused
from livemart.land.records.messages.registry import fetch_schema
from livemart.land.records.one_by_one import require_size
from livemart.land.records.typed_records import read_typed_records

_MAGIC = 0
_HEAD = struct.Struct(">bI")


def read_avro_messages(group: Group, messages: Sequence[tuple[int, bytes]]) -> Chunk:
    """Return the rows of some messages and what could not become one.

    Args:
        group: columns of the records; its `avro_schema` or `schema_registry` says how to read them.
        messages: offset and content of each.

    Raises:
        RegistryAwayError: a schema cannot be had at present.
    """
    import fastavro

    rules = group.record_rules
    told = fastavro.parse_schema(json.loads(rules.avro_schema)) if rules.avro_schema else None
    records: list[tuple[int, Mapping[str, Any]]] = []
    refused: list[Refused] = []
    for number, raw in messages:
        try:
            require_size(raw)
            records.append((number, _record(raw, told, rules.schema_registry)))
        except MalformedError as error:
            refused.append(Refused(number, error.code, str(error), raw))
        except _REFUSALS as error:
            detail = f"no record of its schema: {type(error).__name__}: {error}"
            refused.append(Refused(number, LetterReason.MALFORMED_RECORD, detail, raw))
    chunk = read_typed_records(group, records)
    return replace(chunk, refused=[*chunk.refused, *refused])


# What a broken byte leads fastavro to.
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


def _record(raw: bytes, told: Any, registry: str | None) -> Mapping[str, Any]:
    import fastavro

    body, schema = raw, told
    if registry is not None:
        if len(raw) < _HEAD.size or raw[0] != _MAGIC:
            raise MalformedError("it does not begin with a zero byte and the number of a schema")
        schema, body = fetch_schema(registry, _HEAD.unpack_from(raw)[1]), raw[_HEAD.size :]
    file = io.BytesIO(body)
    record: Any = fastavro.schemaless_reader(file, schema, None)
    if file.tell() != len(body):
        raise MalformedError(f"{len(body) - file.tell()} bytes are left behind its record")
    if not isinstance(record, dict):
        raise MalformedError("its record has no fields")
    return record
