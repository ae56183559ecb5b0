"""VARIANT in stored tables: refreshed by every strategy, compared by value, served as JSON."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.integration.mini import Mini
from tests.project_run import NOON, reasons, strategies
from tests.serve.apps import site
from tests.store.stores import fill_store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SOURCES = """
version: 2
sources:
  - name: shop
    schema: bronze
    tables:
      - name: events
        config:
          meta:
            livemart:
              format: json
              path: events/*.jsonl
              keys: [id]
              sequence_by: [step]
              apply_as_deletes: "op = 'd'"
              max_future: 36500 days
        columns:
          - {name: id, data_type: string}
          - {name: shop, data_type: string}
          - {name: body, data_type: string}
          - {name: step, data_type: bigint}
          - {name: op, data_type: string}
"""
MODELS = {
    "parsed": (
        "select id, shop, try_parse_json(body) as v, array(try_parse_json(body), null) as l,"
        " named_struct('x', try_parse_json(body)) as s, map('k', try_parse_json(body)) as m"
        " from {{ source('shop', 'events') }}"
    ),
    # Reads a variant, and stores none.
    "amounts": (
        "select shop, count(*) as events, sum(variant_get(v, '$.n', 'bigint')) as amount"
        " from {{ ref('parsed') }} group by shop"
    ),
    "newest": "select shop, max_by(v, id) as v from {{ ref('parsed') }} group by shop",
    "numbered": (
        "select id, shop, v, s, row_number() over (partition by shop order by id) as place"
        " from {{ ref('parsed') }}"
    ),
    "first": "select id, v, m from {{ ref('parsed') }} order by id limit 3",
}


def event(key: str, shop: str, body: Any, step: int, op: str = "c") -> dict[str, Any]:
    text = body if isinstance(body, str | None) else json.dumps(body)
    return {"id": key, "shop": shop, "body": text, "step": step, "op": op}


# Inserts, updates, deletes; at last the same value with its fields in another order.
BATCHES: tuple[list[dict[str, Any]], ...] = (
    [event("6", "c", {"n": 6}, 2), event("2", "a", {"n": 2.0}, 2)],
    [event("3", "b", None, 3), event("4", "b", "null", 3), event("5", "c", "", 3, "d")],
    [event("1", "a", '{"deep":{"list":[1,2.5,"é",null]},"n":1,"kind":"x"}', 4)],
)
STRATEGIES = {
    "parsed": "signed",
    "amounts": "signed",
    "newest": "region",
    "numbered": "region",
    "first": "full",
}


@pytest.mark.extended
@pytest.mark.parametrize("lane", ["auto", pytest.param("large", marks=pytest.mark.nightly)])
def test_variants_are_refreshed_by_each_strategy_and_served(
    spark: SparkSession, tmp_path: Path, lane: str
) -> None:
    mini = Mini(spark, tmp_path, now=NOON + timedelta(hours=2), flags={"lane": lane})
    mini.replace(SOURCES, **MODELS)
    mini.deliver(
        "events",
        event("1", "a", {"kind": "x", "n": 1, "deep": {"list": [1, 2.50, "é", None]}}, 1),
        event("2", "a", {"n": 2}, 1),
        event("3", "b", "null", 1),
        event("4", "b", None, 1),
        event("5", "c", "[1e3, -0e0, 12345678901234567890]", 1),
    )
    mini.build()
    changed: dict[str, list[int]] = {name: [] for name in MODELS}
    for place, records in enumerate(BATCHES):
        mini.deliver("events", *records)

        mini.refresh()

        assert mini.differing() == [], place
        found = strategies(mini.newest)
        for name, strategy in STRATEGIES.items():
            assert found[name] in (strategy, "unchanged"), (place, name, reasons(mini.newest))
            changed[name].append(mini.newest.models[f"model.mini.{name}"].rows_changed)
    # The last batch gives the fields of a row in another order: no change of a variant.
    assert [name for name, counts in changed.items() if counts[-1]] == []
    assert changed["parsed"][:2] == [3, 5]
    relation = "mini.parsed"
    # The change feed that the lanes write is read by others, too.
    (spark_rows,) = spark.sql(
        f"select count(*), count_if(_change_type = 'insert'), count(v) from"
        f" table_changes('{relation}', 1) where schema_of_variant(v) is not null or v is null"
    ).collect()
    assert spark_rows[0] == sum(changed["parsed"]), spark_rows

    with site(tmp_path / "site") as one:
        fill_store(one.url, {"parsed": mini.warehouse.read(relation)}, {"parsed": ("id",)})
        one.until(lambda: one.shows(1))
        served = one.client.get("/v1/models/parsed").json()["rows"]

    bodies = {row["id"]: row["v"] for row in served}
    assert bodies == {
        "1": {"deep": {"list": [1, 2.5, "é", None]}, "kind": "x", "n": 1},
        "2": {"n": 2},
        "3": None,
        "4": None,
        "6": {"n": 6},
    }
    assert [row["m"] for row in served] == [{"k": body} for body in bodies.values()]
    assert [row["l"] for row in served] == [[body, None] for body in bodies.values()]
    assert [row["s"] for row in served] == [{"x": body} for body in bodies.values()]


@pytest.mark.extended
def test_shredded_variants_are_read_by_spark_alone(spark: SparkSession, tmp_path: Path) -> None:
    """Spark 4.2.0 with Delta 4.4.0 moves fields of a variant into separate columns."""
    mini = Mini(spark, tmp_path)
    table = tmp_path / "warehouse" / "foreign" / "pieces"
    spark.sql(
        f"create table delta.`{table}` tblproperties ('delta.enableVariantShredding' = 'true')"
        ' as select id, parse_json(j) as v from values (1, \'{"a":1}\'), (2, \'{"a":2,"b":"x"}\')'
        " as t(id, j)"
    )
    source = "\n  - name: other\n    schema: foreign\n    tables:\n      - name: pieces\n"
    mini.replace(SOURCES + source, of_pieces="select id, v from {{ source('other', 'pieces') }}")
    mini.deliver("events", event("1", "a", {}, 1))
    mini.build()
    spark.sql(f'insert into delta.`{table}` select 3, parse_json(\'{{"a":5,"b":1}}\')')

    mini.refresh()

    assert reasons(mini.newest) == {"of_pieces": "CDF_UNAVAILABLE"}
    assert mini.newest.models["model.mini.of_pieces"].rows_changed == 1
    assert mini.differing() == []
