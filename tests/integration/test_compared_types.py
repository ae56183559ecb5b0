"""Keys of two types meet as they do in Spark: as doubles, as text, rounded or exact."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.integration.mini import Mini
from tests.project_run import NOON

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TABLE = """
      - name: {name}
        config:
          meta:
            livemart:
              format: json
              path: {name}/*.jsonl
              keys: [id]
              sequence_by: [step]
              apply_as_deletes: "op = 'd'"
              max_future: 36500 days
        columns:
          - {{name: id, data_type: string}}
          - {{name: big, data_type: bigint}}
          - {{name: small, data_type: int}}
          - {{name: exact, data_type: "decimal(38,18)"}}
          - {{name: finer, data_type: "decimal(38,30)"}}
          - {{name: real, data_type: double}}
          - {{name: half, data_type: float}}
          - {{name: word, data_type: string}}
          - {{name: day, data_type: date}}
          - {{name: at, data_type: timestamp}}
          - {{name: step, data_type: bigint}}
          - {{name: op, data_type: string}}
"""
SOURCES = (
    "version: 2\nsources:\n  - name: shop\n    schema: bronze\n    tables:"
    + _TABLE.format(name="items")
    + _TABLE.format(name="rates")
)
# Column of `items`, column of `rates`.
DAILY = (("big", "real"), ("exact", "real"), ("day", "at"))
NIGHTLY = (
    ("small", "half"),
    ("big", "exact"),
    ("exact", "finer"),
    ("big", "word"),
    ("half", "real"),
    ("real", "real"),
    ("word", "day"),
)
ROWS: tuple[dict[str, Any], ...] = (
    {"big": 2**53 + 1, "small": 2**24 + 1, "exact": "0.1", "finer": "0.1", "real": float(2**53)},
    {"big": 2**53, "small": 2**24, "exact": "0.3", "real": 0.1, "half": float(2**24)},
    {"big": 7, "small": 7, "exact": "7", "finer": "7", "real": 7.0, "half": 7.0, "word": "07"},
    {"exact": "0", "finer": "0.0000000000000000001", "real": -0.0, "half": -0.0, "big": 0},
    {"exact": "0.000000000000000001", "real": 0.0, "half": 0.1, "word": "2026-03-01"},
    {"day": "2026-03-01", "at": "2026-03-01T00:00:00Z", "word": "7", "half": 0.5, "real": 0.5},
    {},
)


def row(number: int, values: dict[str, Any], *, step: int = 0, op: str = "c") -> dict[str, Any]:
    return {"id": str(number), **values, "step": step, "op": op}


@pytest.mark.extended
@pytest.mark.parametrize("pairs", [DAILY, pytest.param(NIGHTLY, marks=pytest.mark.nightly)])
def test_rows_whose_keys_are_equal_in_spark_are_found(
    spark: SparkSession, tmp_path: Path, pairs: tuple[tuple[str, str], ...]
) -> None:
    mini = Mini(spark, tmp_path, now=NOON + timedelta(hours=2))
    items, rates = "{{ source('shop', 'items') }}", "{{ source('shop', 'rates') }}"
    models = {}
    for left, right in pairs:
        models[f"looked_up_{left}_{right}"] = (
            f"select i.id, i.{left} as k, r.id as rate from {items} as i"
            f" left join {rates} as r on i.{left} = r.{right}"
        )
        models[f"grouped_{left}_{right}"] = (
            f"select i.{left} as k, max(r.step) as newest, min(r.id) as first from {items} as i"
            f" join {rates} as r on i.{left} = r.{right} group by i.{left}"
        )
        models[f"united_{left}_{right}"] = (
            f"select k, count(*) as n, max(id) as last from (select {left} as k, id from {items}"
            f" union all select {right}, id from {rates}) group by k"
        )
    # -0.0 and 0.0 are one key, of which a build shows 0.0.
    models["zeros"] = (
        f"select cast(real as string) as k, max(id) as last from {items} group by real"
    )
    mini.replace(SOURCES, **models)
    for number, values in enumerate(ROWS):
        mini.deliver("items", row(number, values))
        mini.deliver("rates", row(number, values))
    mini.build()
    batches = (
        ("rates", [row(0, ROWS[0], step=1), row(9, ROWS[1])]),
        ("items", [row(10 + number, values) for number, values in enumerate(ROWS)]),
        ("rates", [row(number, ROWS[number], step=2, op="d") for number in (0, 1, 4)]),
    )
    for place, (source, rows) in enumerate(batches):
        mini.deliver(source, *rows)

        mini.refresh()

        assert mini.differing() == [], place


@pytest.mark.extended
def test_a_unique_test_sees_a_number_that_finds_two_texts(
    spark: SparkSession, tmp_path: Path
) -> None:
    mini = Mini(spark, tmp_path, now=NOON + timedelta(hours=2))
    tests = "models: [{name: named, columns: [{name: id, data_tests: [unique]}]}]"
    named = (
        "select i.id, r.word from {{ source('shop', 'items') }} as i"
        " left join {{ source('shop', 'rates') }} as r on i.small = r.id"
    )
    mini.replace(f"{SOURCES}\n{tests}\n", named=named)
    mini.deliver("items", row(1, {"small": 7}))
    mini.deliver("rates", row(7, {"word": "seven"}))
    mini.build()
    statuses = [mini.newest.status]
    for other in (row(7, {"word": "seven"}), row(7, {}, step=1, op="d")):
        mini.deliver("rates", {**other, "id": "07"})
        mini.refresh()
        statuses.append(mini.newest.status)

    assert statuses == ["published", "held", "published"]
    assert mini.rows("mini.named") == [{"id": "1", "word": "seven"}]
