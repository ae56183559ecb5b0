"""A schema by which a few bytes are a record without end is refused before any is read."""

from __future__ import annotations

import json
from typing import Any

import fastavro
import pytest

from livemart.limits import MAX_NESTING
from livemart.project.record_logs.avro_types import RefusedSchemaError, parse_schemas


def record(name: str, **fields: Any) -> dict[str, Any]:
    pairs = [{"name": field, "type": kind} for field, kind in fields.items()]
    return {"type": "record", "name": name, "fields": pairs}


def array(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


def parsed(*schemas: Any, **how: bool) -> Any:
    return parse_schemas([json.dumps(schema) for schema in schemas], **how)


PLACE = record("place", id="string")
NODE = record("node", next=["null", "node"])
EMPTY = record("empty", a="null", b=record("inner", c={"type": "fixed", "name": "f", "size": 0}))


@pytest.mark.parametrize(
    "schemas",
    [
        [NODE],
        [record("node", parts=array("node"))],
        [record("node", parts={"type": "map", "values": ["null", "node"]})],
        [{**NODE, "type": "error"}],
        [{**NODE, "namespace": "shop"}],
        [record("order", item=record("item", of=["null", "order"]))],
        [record("order", tree=["null", NODE])],
        [["null", NODE]],
        [record("node", parts={**array("node"), "fields": [], "values": "int"})],
        # The recursive type is of an earlier schema, or becomes recursive by a later one.
        [NODE, record("order", tree="node")],
        [record("A", x="int"), record("B", a=["null", "A"]), record("A", b=["null", "B"])],
    ],
)
def test_a_type_that_holds_itself_is_refused_wherever_it_does(schemas: list[Any]) -> None:
    with pytest.raises(RefusedSchemaError, match="more than 64 levels deep"):
        parsed(*schemas)


@pytest.mark.parametrize(
    "schemas",
    [
        # A type that is used again beside its definition, or behind it, ends somewhere.
        [record("order", start=PLACE, end=["null", "place"])],
        [record("order", start=PLACE, stop=record("stop", at="place"))],
        [PLACE, record("order", start="place", stops=array("place"))],
        [record("a", x={**PLACE, "namespace": "one"}, y=record("place", of="one.place"))],
        # Nothing of it is used.
        [record("order", parts=array(NODE)), PLACE],
        [record("record", error=record("error", map="int")), record("string", x="string")],
        # A default holds a value, not a type.
        [{**record("order", x="int"), "default": {"type": "record", "name": "order"}}],
        [record("order", no="null", none=record("nothing"), some=array(["null"]))],
        ["string"],
        [["null", {"type": "map", "values": "long"}]],
    ],
)
def test_a_schema_that_ends_is_parsed_as_fastavro_does(schemas: list[Any]) -> None:
    table: dict[str, Any] = {}

    assert parsed(*schemas) == [fastavro.parse_schema(each, table) for each in schemas][-1]


def test_records_are_as_deep_as_those_of_json_may_be() -> None:
    def nested(levels: int) -> Any:
        schema: Any = "int"
        for number in range(levels):
            schema = array(schema) if number % 2 else record(f"r{number}", x=schema)
        return schema

    parsed(nested(MAX_NESTING))
    with pytest.raises(RefusedSchemaError):
        parsed(nested(MAX_NESTING + 1))
    chain = [record("r0", x="int")]
    chain += [record(f"r{n}", a=f"r{n - 1}") for n in range(1, MAX_NESTING)]
    parsed(*chain)
    with pytest.raises(RefusedSchemaError):
        parsed(*chain, record("top", a=f"r{MAX_NESTING - 1}"))


@pytest.mark.parametrize("first", ["null", "int"])
def test_records_that_double_with_each_level_are_refused_and_not_counted_one_by_one(
    first: str,
) -> None:
    chain = [record("r0", x=first)]
    chain += [record(f"r{n}", a=f"r{n - 1}", b=f"r{n - 1}") for n in range(1, MAX_NESTING)]

    parsed(*chain[:9])
    with pytest.raises(RefusedSchemaError, match="more than 1,000 nulls or records"):
        parsed(record("top", **{f"d{number}": each for number, each in enumerate(chain[:-1])}))
    for how in ({}, {"expand": True}, {"are_items": True}):
        with pytest.raises(RefusedSchemaError, match="more than 1,000 nulls or records"):
            parsed(*chain, **how)


def test_large_records_are_no_reason() -> None:
    wide = record("wide", **{f"c{n}": ["null", "long"] for n in range(5_000)})

    parsed(record("order", one=["null", wide], more=array(["null", "wide"])), are_items=True)


@pytest.mark.parametrize("name", ["union", "error_union"])
def test_a_type_that_fastavro_would_take_for_another_is_refused(name: str) -> None:
    """Read as a union, the letters of the name would be its members."""
    schema = record("top", d=record(name, x="int"), e=record("u", z=name))

    with pytest.raises(RefusedSchemaError, match=f"the name {name}, which Avro reserves"):
        parsed(schema)


@pytest.mark.parametrize(
    "items", ["null", EMPTY, record("nothing"), {"type": "fixed", "name": "f", "size": 0}]
)
def test_items_that_take_no_bytes_are_refused_where_they_are_counted(items: Any) -> None:
    with pytest.raises(RefusedSchemaError, match="take no bytes"):
        parsed(array(items))
    with pytest.raises(RefusedSchemaError, match="take no bytes"):
        parsed(record("order", x=record("line", y=array(items))))
    with pytest.raises(RefusedSchemaError, match="take no bytes"):
        parsed(record("line", y=array(items)), record("order", of=["null", "line"]))
    many = record("many", number="int", **{f"x{number}": "null" for number in range(1_001)})
    with pytest.raises(RefusedSchemaError, match="more than 1,000 nulls or records"):
        parsed(record("order", x=items, y=array(many)))
    # One of them is well, and so are those of a map, each behind its key.
    parsed(record("order", x=items, y={"type": "map", "values": "null"}))
    with pytest.raises(RefusedSchemaError, match="take no bytes"):
        parsed(record("order", x=items), are_items=True)


def test_a_schema_that_says_it_is_parsed_is_parsed_again() -> None:
    """fastavro would believe it, and look at nothing; its writer leaves such words in files."""
    hidden = record("a", x=["null", "hidden"])
    hidden |= {"__fastavro_parsed": True, "__named_schemas": {"hidden": NODE}}
    child: Any = fastavro.parse_schema(PLACE)

    for schema in (hidden, record("order", tree=hidden)):
        with pytest.raises(fastavro.schema.UnknownType, match="hidden"):
            parsed(schema)
    assert parsed(record("order", at=child)) == parsed(record("order", at=PLACE))


def test_named_types_are_put_in_their_places() -> None:
    (field,) = parsed(PLACE, record("order", at="place"), expand=True)["fields"]

    assert field["type"]["fields"] == [{"name": "id", "type": "string"}]
