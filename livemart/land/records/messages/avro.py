"""Reads messages that hold one record of Avro each.

Used for record logs of the format `avro`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from livemart.land.records.exact_values import MalformedError
from livemart.land.records.judge import Chunk, Group, Refused
from livemart.land.records.messages.avro_records import (
    decode_record,
    definitions_of,
    parse_definitions,
)
from livemart.land.records.one_by_one import require_size
from livemart.land.records.typed.typed_records import read_typed_records


def read_avro_messages(group: Group, messages: Sequence[tuple[int, bytes]]) -> Chunk:
    """Return the rows of some messages and what could not become one.

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
