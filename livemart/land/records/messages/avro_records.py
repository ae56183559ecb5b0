"""Decodes records of Avro by schemas that are declared or numbered.

Used by the readers of Avro messages. A message is the bare record, or begins with a zero byte and
the number of its schema in four bytes, as serializers write it that use a schema registry.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from livemart.land.records.exact_values import MalformedError
from livemart.land.records.messages.registry import (
    Definitions,
    RegistryAwayError,
    fetch_definitions,
)
from livemart.land.records.typed.avro_values import with_own_types
from livemart.project.graph import RecordRules
from livemart.project.record_logs.avro_types import RefusedSchemaError, parse_schemas

_MAGIC = 0
_HEAD = struct.Struct(">bI")
_KEPT = 1_024
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


def is_numbered(raw: bytes) -> bool:
    """Return whether a text begins as one with the number of its schema does."""
    return len(raw) >= _HEAD.size and raw[0] == _MAGIC


def definitions_of(raw: bytes, rules: RecordRules) -> tuple[Definitions, bytes]:
    """Return the schemas of a message, and its record.

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
