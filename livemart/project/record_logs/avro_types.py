"""Parses schemas of Avro, and refuses those by which a few bytes are a record without end.

Used for the schema that a source names, those of a registry, and those of files. fastavro's reader
descends as deep as a record says until the stack ends, and with it the process; values that take no
bytes it makes until memory ends.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from livemart.limits import MAX_NESTING

# Values that take no bytes, as null does and a record of such: so many a record may hold.
_MOST_EMPTY = 1_000
_SHOWN = 100
# By these fastavro takes a schema for one that it has parsed, and looks at nothing in it.
_HINTS = ("__fastavro_parsed", "__named_schemas")
# fastavro reads a name like these as a union, and takes its letters for the members.
_WORDS = frozenset({"union", "error_union"})
_PRIMITIVES = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})

# The logical type of a map that is spelled out as the array of its entries. Not `map`: Iceberg
# calls an array of any keys and values so, which lands as an array.
ENTRIES = "livemart-entries"

_Named = Mapping[str, Sequence[Any]]


class RefusedSchemaError(ValueError):
    """A schema by which no record is read, since it sets no end to one."""


def parse_schemas(texts: Sequence[str], *, expand: bool = False, are_items: bool = False) -> Any:
    """Return the last of some schemas as fastavro reads by it.

    Args:
        texts: schemas as JSON; a later one may name types of those before it.
        expand: put named types in their places.
        are_items: the records of a file, of which each block says how many it holds.

    Raises:
        RefusedSchemaError: its records may nest deeper than JSON may, or hold values without number
            that take no bytes.
        Exception: whatever a wrong schema leads fastavro to.
    """
    import fastavro

    raw = [json.loads(text) for text in texts]
    for content in objects_in(raw):
        for hint in _HINTS:
            content.pop(hint, None)
    table: dict[str, Any] = {}
    schemas = [fastavro.parse_schema(schema, table) for schema in raw]
    named: dict[str, list[Any]] = {}
    for definition in chain.from_iterable(_levels(schemas, {})):
        name = definition.get("name")
        if name is not None and name not in _PRIMITIVES:
            named.setdefault(name, []).append(definition)
    if words := sorted(_WORDS & named.keys()):
        raise RefusedSchemaError(f"a type of it has the name {words[0]}, which Avro reserves")
    types = list(chain.from_iterable(_levels(schemas[-1:], named)))
    items = [array["items"] for array in types if array["type"] == "array"]
    _require_bytes(schemas[-1], items + schemas[-1:] if are_items else items, named)
    if not expand:
        return schemas[-1]
    table = {}
    return [fastavro.parse_schema(schema, table, expand=True) for schema in raw][-1]


def objects_in(value: Any) -> Iterator[dict[str, Any]]:
    """Yield the objects of a JSON value, at any depth."""
    waiting = [value]
    while waiting:
        match waiting.pop():
            case dict() as content:
                yield content
                waiting += content.values()
            case list() as members:
                waiting += members


def _levels(schemas: Sequence[Any], named: _Named) -> Iterator[list[dict[str, Any]]]:
    """Yield the types of parsed schemas, then the types in these, and so on.

    Raises:
        RefusedSchemaError: it has too many levels, such as when a type contains itself.
    """
    for _ in range(MAX_NESTING + 1):
        types = _spelled_out(schemas, named)
        yield types
        schemas = [held for schema in types for held in _held(schema)]
        if not schemas:
            return
    raise RefusedSchemaError(
        f"its records may be more than {MAX_NESTING} levels deep, such as when a type contains "
        "itself"
    )


def _spelled_out(schemas: Sequence[Any], named: _Named) -> list[dict[str, Any]]:
    """Return some types in full, the members of a union one by one; each of them once."""
    waiting, asked, types = list(schemas), set[object](), list[dict[str, Any]]()
    while waiting:
        schema = waiting.pop()
        identity = schema if isinstance(schema, str) else id(schema)
        if identity in asked:
            continue
        asked.add(identity)
        match schema:
            case str():
                waiting += named.get(schema, ())
            case list():
                waiting += schema
            case dict():
                types.append(schema)
    return types


def _held(schema: Mapping[str, Any]) -> list[Any]:
    """Return the types within a record, an array or a map."""
    match schema:
        case {"type": "record" | "error", "fields": fields}:
            return [field["type"] for field in fields]
        case {"type": "array", "logicalType": kind, "items": {"fields": _} as entry} if (
            kind == ENTRIES
        ):
            # The value has no level for the record of an entry.
            return _held(entry)
        case {"type": "array", "items": held} | {"type": "map", "values": held}:
            return [held]
        case _:
            return []


def _require_bytes(schema: Any, items: Sequence[Any], named: _Named) -> None:
    """Refuse records and counted items of too many values that take no bytes."""
    sizes: dict[str, tuple[int, int]] = {}
    for part in (schema, *items):
        if _size(part, named, sizes)[0] > _MOST_EMPTY:
            raise RefusedSchemaError(
                f"it has more than {_MOST_EMPTY:,} nulls or records in each other, which take no "
                "bytes themselves"
            )
    for item in items:
        if _size(item, named, sizes)[1] < 1:
            shown = json.dumps(item, default=str)[:_SHOWN]
            raise RefusedSchemaError(f"it counts items that take no bytes: {shown}")


def _size(schema: Any, named: _Named, sizes: dict[str, tuple[int, int]]) -> tuple[int, int]:
    """Return how many values beyond its bytes one of a type holds at most, and its least bytes.

    Args:
        schema: a type that has an end.
        sizes: of the names that were met before.
    """
    match schema:
        case "null" | {"type": "null"}:
            return 1, 0
        case {"type": "fixed", "size": size}:
            return int(not size), size
        case {"type": "record" | "error", "fields": fields}:
            parts = [_size(field["type"], named, sizes) for field in fields]
            return 1 + sum(beyond for beyond, _ in parts), sum(least for _, least in parts)
        case list():
            # The number of the member is a byte.
            return max((_size(member, named, sizes)[0] - 1 for member in schema), default=0), 1
        case str() if schema in named:
            if schema not in sizes:
                parts = [_size(definition, named, sizes) for definition in named[schema]]
                sizes[schema] = max(beyond for beyond, _ in parts), min(size for _, size in parts)
            return sizes[schema]
        case _:
            return 0, 1
