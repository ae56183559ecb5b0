"""Values that Delta stores otherwise in a partition column: a stream holds what a build would."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.integration.mini import Mini
from tests.project_run import NOON

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SOURCES = """
version: 2
sources:
  - name: shop
    schema: bronze
    tables:
      - name: items
        config:
          event_time: sold_at
          meta:
            livemart:
              format: json
              path: items/*.jsonl
              keys: [id]
              sequence_by: [step]
              apply_as_deletes: "op = 'd'"
              max_future: 36500 days
        columns:
          - {name: id, data_type: string}
          - {name: k, data_type: string}
          - {name: qty, data_type: int}
          - {name: price, data_type: "decimal(38,18)"}
          - {name: real, data_type: double}
          - {name: sold_at, data_type: timestamp}
          - {name: step, data_type: bigint}
          - {name: op, data_type: string}
"""
ITEMS = "{{ source('shop', 'items') }}"
BY_K = "{{ config(partition_by=['k']) }} "
OVER = (
    "over (partition by k order by sold_at range between interval 1 hour preceding and current row)"
)
MODELS = {
    "rows_of_k": f"{BY_K} select id, k, qty from {ITEMS}",
    "totals": f"{BY_K} select k, count(*) as n, sum(qty) as total from {ITEMS} group by k",
    "highest": f"{BY_K} select k, max(qty) as most from {ITEMS} group by k",
    "pairs": f"{BY_K} select distinct k, qty from {ITEMS}",
    "frames": f"{BY_K} select id, k, sold_at, sum(qty) {OVER} as total from {ITEMS}",
    "windows": f"{BY_K} select id, k, sold_at, max(qty) {OVER} as most from {ITEMS}",
    "above": "select k, n, total from {{ ref('totals') }}",
    "totals_above": "select k, count(*) as keys, sum(n) as n from {{ ref('totals') }} group by k",
    "joined": "select r.id, t.n from {{ ref('rows_of_k') }} as r"
    " left join {{ ref('highest') }} as h on r.k <=> h.k"
    " left join {{ ref('totals_above') }} as t on r.k <=> t.k",
    "by_time": "{{ config(partition_by=['sold_at', 'real']) }}"
    f" select sold_at, real, count(*) as n from {ITEMS} group by sold_at, real",
    "by_price": "{{ config(partition_by=['price']) }}"
    f" select price, max(qty) as most from {ITEMS} group by price",
}
TEXTS = ("", None, "__HIVE_DEFAULT_PARTITION__", "a", " ", "null", "A=b/c%")
REALS = (0.0, -0.0, 1e-7, 1e300, 0.1, 123456789.0, None)
PRICES = ("0", "0.0000001", "-0.000000000000000001", "1.5", None)


def item(
    number: int, k: str | None, qty: int | None = 1, *, step: int = 0, op: str = "c"
) -> dict[str, Any]:
    return {
        "id": str(number),
        "k": k,
        "qty": qty,
        "price": PRICES[number % len(PRICES)],
        "real": REALS[number % len(REALS)],
        "sold_at": (NOON + timedelta(minutes=number, microseconds=number % 3)).isoformat(),
        "step": step,
        "op": op,
    }


BATCHES: tuple[list[dict[str, Any]], ...] = (
    [item(20 + place, k, 5) for place, k in enumerate(TEXTS)],
    [item(0, None, 1, step=1), item(1, "", 1, step=1), item(3, "", 1, step=1), item(40, "", 9)],
    [item(number, "", step=4, op="d") for number in (0, 1, 3, 20, 21, 40, 22, 41)],
)


@pytest.mark.parametrize(
    ("lane", "models"),
    [
        pytest.param("small", ("highest", "by_time"), id="the fewest models"),
        pytest.param("small", tuple(MODELS), id="small lane", marks=pytest.mark.extended),
        pytest.param("large", tuple(MODELS), id="large lane", marks=pytest.mark.nightly),
    ],
)
def test_batches_store_what_a_build_would(
    spark: SparkSession, tmp_path: Path, lane: str, models: tuple[str, ...]
) -> None:
    mini = Mini(spark, tmp_path, now=NOON + timedelta(hours=2))
    mini.replace(SOURCES, **{name: MODELS[name] for name in models})
    mini.deliver("items", *(item(place, k) for place, k in enumerate(TEXTS)))
    mini.pipeline(lane=lane)
    mini.build()
    assert mini.differing() == []
    keys = Counter(each["k"] for each in mini.rows("mini.highest"))
    assert keys == {None: 3, "a": 1, " ": 1, "null": 1, "A=b/c%": 1}

    for place, items in enumerate(BATCHES):
        mini.deliver("items", *items)

        mini.refresh()

        assert mini.differing() == [], place
