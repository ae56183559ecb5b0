"""Totals that overflowed, wrapped or were cast to less change as if Spark computed them again."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from livemart.arrow.exact_numbers import Whole
from livemart.arrow.sum_limits import SumLimits
from tests.integration.mini import Mini
from tests.project_run import NOON, strategies

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
          - {name: wide, data_type: "decimal(38,0)"}
          - {name: big, data_type: bigint}
          - {name: qty, data_type: int}
          - {name: money, data_type: "decimal(10,2)"}
          - {name: sold_at, data_type: timestamp}
          - {name: step, data_type: bigint}
          - {name: op, data_type: string}
"""
DAILY = {
    "wide": "sum(wide)",
    "wide_or_zero": "coalesce(sum(wide), 0)",
    "big_as_decimal": "cast(sum(big) as decimal(38, 0))",
    "tried": "try_cast(sum(qty) as int)",
    "wrapped_twice": "cast(cast(sum(qty) as int) as bigint)",
    "zero_and_narrow": "cast(coalesce(sum(money), 0) as decimal(4, 2))",
    "counted_or_zero": "coalesce(cast(count(*) as decimal(1, 0)), 0)",
    "running_wide": "sum(wide) {over}",
    "running_decimal": "cast(sum(big) {over} as decimal(38, 0))",
}
NIGHTLY = {
    "wide_as_long": "cast(sum(wide) as bigint)",
    "big": "sum(big)",
    "big_or_zero": "coalesce(sum(big), 0)",
    "tried_sum": "try_sum(big)",
    "wrapped": "cast(sum(qty) as int)",
    "narrow": "cast(sum(money) as decimal(4, 2))",
    "narrow_or_zero": "coalesce(cast(sum(money) as decimal(4, 2)), 0)",
    "rounded": "cast(cast(sum(money) as decimal(12, 0)) as decimal(20, 2))",
    "by_way_of_double": "cast(coalesce(sum(wide), 0e0) as decimal(38, 0))",
    "counted": "cast(count(*) as decimal(1, 0))",
    "mean": "avg(wide)",
    "running_big": "sum(big) {over}",
    "running_int": "cast(sum(qty) {over} as int)",
    "running_tried": "try_cast(sum(qty) {over} as int)",
    "running_narrow": "cast(sum(money) {over} as decimal(4, 2))",
    "running_count": "cast(count(*) {over} as decimal(1, 0))",
    "running_or_zero": "coalesce(sum(wide) {over}, 0)",
}
ITEMS = "{{ source('shop', 'items') }}"
OVER = (
    "over (partition by k order by sold_at"
    " range between interval 30 minutes preceding and current row)"
)
LARGE = str(9 * 10**37)


def model(total: str) -> str:
    if "{over}" in total:
        return f"select id, k, sold_at, {total.format(over=OVER)} as total from {ITEMS}"
    return f"select k, count(*) as n, {total} as total from {ITEMS} group by k"


def item(
    number: int,
    k: str = "a",
    *,
    wide: str | None = "1",
    big: int | None = 1,
    qty: int | None = 1,
    money: str | None = "1.00",
    step: int = 0,
    op: str = "c",
) -> dict[str, Any]:
    return {
        "id": str(number),
        "k": k,
        "wide": wide,
        "big": big,
        "qty": qty,
        "money": money,
        "sold_at": (NOON + timedelta(minutes=number)).isoformat(),
        "step": step,
        "op": op,
    }


def large(number: int, **changes: Any) -> dict[str, Any]:
    return item(number, wide=LARGE, big=2**63 - 1, qty=2**31 - 1, money="60.00", **changes)


BATCHES: tuple[tuple[str, list[dict[str, Any]]], ...] = (
    ("what was lost is added to", [item(3), item(4, "b"), item(6, "c", wide=None, qty=None)]),
    ("one of what was too large goes", [large(2, step=1, op="d"), item(7, "c", money=None)]),
    ("what was lost comes back", [large(5), *(item(number) for number in range(10, 18))]),
    ("only what is small stays", [large(number, step=3, op="d") for number in (1, 5)]),
    ("what is small is added to", [item(20), item(21, "b")]),
)


@pytest.fixture
def mini(spark: SparkSession, tmp_path: Path) -> Mini:
    return Mini(spark, tmp_path, now=NOON + timedelta(hours=2))


@pytest.mark.extended
@pytest.mark.parametrize("totals", [DAILY, pytest.param(NIGHTLY, marks=pytest.mark.nightly)])
def test_totals_that_were_lost_are_those_of_a_build(mini: Mini, totals: dict[str, str]) -> None:
    mini.replace(SOURCES, **{name: model(total) for name, total in totals.items()})
    mini.deliver("items", large(1), large(2))
    mini.build()
    signed = set()
    for title, items in BATCHES:
        mini.deliver("items", *items)

        mini.refresh()

        assert mini.differing() == [], title
        names = strategies(mini.newest)
        assert "full" not in names.values(), title
        signed |= {name for name, strategy in names.items() if strategy == "signed"}
    assert signed >= {"wide", "big_as_decimal", "wrapped_twice"} & totals.keys()
    assert not signed & {"rounded", "by_way_of_double", "counted_or_zero", "mean", "tried_sum"}


def test_a_sum_of_several_types_is_as_exact_as_the_worst_of_them(mini: Mini) -> None:
    mini.replace(
        SOURCES,
        summed="select k, count(*) as n, cast(sum(x) as decimal(38, 2)) as total from ("
        f"select k, qty as x from {ITEMS} union all select k, cast(money as double) from {ITEMS}"
        ") group by k",
        stacked=f"select 1 as branch, k, count(*) as n, sum(qty) as total from {ITEMS} group by k"
        " union all select 2, k, count(*), cast(sum(cast(money as double) / 3) as bigint)"
        f" from {ITEMS} group by k",
    )
    mini.deliver("items", item(1, money="0.10"), item(2, money="0.20"))
    mini.build()

    for number in range(3, 5):
        mini.deliver("items", item(number, money=f"0.{number}"), item(9 + number, money="1.99"))
        mini.refresh()

        assert mini.differing() == []


def never_lost(patch: pytest.MonkeyPatch) -> None:
    """A NULL, or the 0 of a COALESCE, is taken for nothing."""
    patch.setattr(SumLimits, "may_be_lost", lambda self, rows: np.zeros(len(rows), dtype=bool))


def always_known(patch: pytest.MonkeyPatch) -> None:
    """A total is added to whatever it wrapped to."""

    def is_known(self: SumLimits, values: Whole, rows: Whole | int) -> Any:
        return np.ones(len(values), dtype=bool)

    patch.setattr(SumLimits, "is_known", is_known)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("mutant", "total"),
    [
        (never_lost, "wide_or_zero"),
        (never_lost, "tried"),
        (always_known, "big_as_decimal"),
        (always_known, "running_decimal"),
    ],
)
def test_a_total_that_is_trusted_blindly_is_seen(
    mini: Mini,
    monkeypatch: pytest.MonkeyPatch,
    mutant: Callable[[pytest.MonkeyPatch], None],
    total: str,
) -> None:
    mutant(monkeypatch)
    mini.replace(SOURCES, **{total: model(DAILY[total])})
    mini.deliver("items", large(1), *([] if mutant is always_known else [large(2)]))
    mini.build()

    mini.deliver("items", item(3))
    mini.refresh()

    assert mini.differing() == [total]
