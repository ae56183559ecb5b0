"""Names that differ by letter case alone are one table, and are refused when they are read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from livemart.land.letters.dead_letters import relation_of
from livemart.land.letters.redriven import marks_relation
from livemart.land.upsert.deletes import deletes_relation
from livemart.project.declared.name_clashes import table_mistakes
from livemart.project.graph import Model, SourceTable
from tests.models import make_model, stream_spec

_LANDED = stream_spec()


def _source(name: str, file: str = "s.yml", **other: Any) -> SourceTable:
    values: dict[str, Any] = {
        "unique_id": f"source.p.shop.{name}",
        "source_name": "shop",
        "name": name,
        "schema": "raw",
        "identifier": name,
        "columns": (),
        "event_time": None,
        "loaded_at_field": None,
        "stream": _LANDED,
        "file": file,
    }
    return SourceTable(**(values | other))


def _codes(models: list[Model], sources: list[SourceTable]) -> list[str]:
    return [mistake.code for mistake in table_mistakes(models, sources)]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({}, {"identifier": "ORDERS"}),
        ({}, {"schema": "Mart"}),
        ({"identifier": "daily"}, {"identifier": "Daily"}),
        ({}, {"materialized": "seed", "identifier": "Orders"}),
        ({"materialized": "view"}, {"materialized": "snapshot", "identifier": "oRDERS"}),
        ({"materialized": "view"}, {"materialized": "view", "identifier": "Orders"}),
    ],
)
def test_two_models_of_one_table_are_refused(first: dict[str, Any], second: dict[str, Any]) -> None:
    here = make_model("model.p.orders", **({"schema": "mart"} | first))
    there = make_model(
        "model.p.others", **({"schema": "mart", "identifier": here.identifier} | second)
    )

    (mistake,) = table_mistakes([here, there], [])

    assert mistake.code == "NAMES_CLASH"
    assert mistake.message.startswith("models/others.sql: model others: found table ")
    assert "model orders (models/orders.sql)" in mistake.message


@pytest.mark.parametrize(
    "other",
    [
        {"schema": "staging"},
        {"materialized": "ephemeral"},
        {"identifier": "orders_v2"},
    ],
)
def test_names_that_are_two_tables_are_legal(other: dict[str, Any]) -> None:
    here = make_model("model.p.orders", schema="mart")
    there = make_model("model.p.Orders", **({"schema": "mart"} | other))

    assert _codes([here, there], []) == []


def test_all_that_clash_are_named_at_once() -> None:
    models = [make_model(f"model.mart.{name}") for name in ("a", "A", "b", "B", "c")]

    assert _codes(models, []) == ["NAMES_CLASH", "NAMES_CLASH"]


def test_a_source_that_lands_where_a_model_is_stored_is_refused() -> None:
    model = make_model("model.raw.Orders")

    (mistake,) = table_mistakes([model], [_source("orders")])

    assert mistake.code == "NAMES_CLASH"
    assert mistake.message.startswith("s.yml: source shop.orders: found table raw.orders")
    assert "models/Orders.sql" in mistake.message
    # Models read seeds and other models as sources, too.
    assert _codes([model], [_source("orders", stream=None)]) == []


def test_two_sources_that_land_in_one_table_are_refused() -> None:
    orders = _source("orders")

    assert _codes([], [orders, _source("Orders", "t.yml")]) == ["NAMES_CLASH"]
    assert _codes([], [orders, _source("others", identifier="ORDERS")]) == ["NAMES_CLASH"]
    assert _codes([], [orders, _source("others", identifier="orders")]) == ["NAMES_CLASH"]
    assert _codes([], [orders, _source("Orders", schema="other")]) == []


def test_tables_of_one_source_that_is_only_read_may_not_differ_by_case_alone() -> None:
    orders = _source("orders", stream=None)

    assert _codes([], [orders, _source("Orders", stream=None)]) == ["NAMES_CLASH"]
    # One table under two names, as it is written, is what dbt allows.
    assert _codes([], [orders, _source("again", stream=None, identifier="orders")]) == []
    assert _codes([], [orders, _source("Orders", stream=None, source_name="b")]) == []


def test_two_sources_of_one_watermark_are_refused() -> None:
    late = stream_spec(lateness="measured")
    first = _source("b__c", source_name="a", stream=late)
    second = _source("c", source_name="A__b", stream=late, schema="other")

    (mistake,) = table_mistakes([], [first, second])

    assert mistake.code == "NAMES_CLASH"
    assert "a__b__c" in mistake.message
    assert _codes([], [first, replace(second, stream=_LANDED)]) == []


@pytest.mark.parametrize(
    ("schema", "identifier"),
    [
        ("livemart", "Clock"),
        ("LiveMart", "watermarks"),
        ("livemart", "lateness"),
        ("_livemart", "snapshots"),
        (".hidden", "orders"),
        *(tuple(it.split(".")) for it in (relation_of("raw"), marks_relation("raw._dead_letters"))),
        tuple(deletes_relation(_source("Orders")).split(".")),
    ],
)
def test_a_table_of_livemarts_own_is_refused(schema: str, identifier: str) -> None:
    model = make_model("model.p.mine", schema=schema, identifier=identifier)
    source = _source("mine", schema=schema, identifier=identifier)
    lands = _source("orders")

    assert _codes([model], [lands]) == ["NAME_RESERVED"]
    assert _codes([], [lands, source]) == ["NAME_RESERVED"]
    assert _codes([], [lands, replace(source, stream=None)]) == []
    assert _codes([replace(model, materialized="ephemeral")], [lands]) == []


def test_tables_that_livemart_provides_are_its_own_wherever_they_are() -> None:
    clock = _source("clock", source_name="livemart", schema="times", stream=None, is_clock=True)
    model = make_model("model.times.CLOCK")

    assert _codes([], [clock]) == []
    assert _codes([model], [clock]) == ["NAME_RESERVED"]


def test_names_of_landings_tables_are_free_where_nothing_lands() -> None:
    assert _codes([make_model("model.mart._dead_letters")], [_source("orders")]) == []
