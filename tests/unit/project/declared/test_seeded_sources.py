"""A source whose table a seed fills: its readers wait for the seed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from livemart.project.declared.seeded_sources import order_behind_seeds, seeds_by_source


def _node(kind: str, *parents: str, alias: str = "x", **other: Any) -> SimpleNamespace:
    depends_on = SimpleNamespace(macros=[]) if kind == "seed" else SimpleNamespace(nodes=[*parents])
    return SimpleNamespace(
        resource_type=kind, schema="Raw", alias=alias, depends_on=depends_on, **other
    )


def _source(identifier: str, schema: str = "raw", **meta: Any) -> SimpleNamespace:
    return SimpleNamespace(
        schema=schema, identifier=identifier, meta=meta, config=SimpleNamespace(meta={})
    )


def test_a_seed_fills_the_source_that_names_its_table_unless_it_is_landed() -> None:
    nodes = {"seed.p.orders": _node("seed", alias="orders"), "model.p.shops": _node("model")}
    sources = {
        "source.p.raw.orders": _source("ORDERS"),
        "source.p.old.orders": _source("orders", schema="old"),
        "source.p.raw.landed": _source("orders", livemart={"path": "orders/*.csv"}),
        # A model fills it.
        "source.p.raw.x": _source("x"),
    }

    assert seeds_by_source(nodes, sources) == {"source.p.raw.orders": "seed.p.orders"}


def test_readers_come_after_the_seed_once_however_often_it_is_asked_for() -> None:
    source, seed = "source.p.raw.orders", "seed.p.orders"
    nodes = {
        seed: _node("seed"),
        "model.p.reads": _node("model", "model.p.other", source),
        "test.p.both": _node("test", source, seed),
        "model.p.other": _node("model"),
    }

    for _ in range(2):
        order_behind_seeds(nodes, {source: seed})

    assert nodes["model.p.reads"].depends_on.nodes == ["model.p.other", source, seed]
    assert nodes["test.p.both"].depends_on.nodes == [source, seed]
    assert nodes["model.p.other"].depends_on.nodes == []
