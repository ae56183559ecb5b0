"""The project of many models: its mix of strategies, and the records that batches bring."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from bench.models import Market
from bench.models_project import KINDS, MIX, UNIT, asking, models, plain
from livemart.plan.plan import Inputs
from livemart.plan.planner import plan_query

_COLUMNS = {
    "raw.shops": ("shop_id", "city", "updated_at"),
    "raw.orders": (
        "order_id", "shop_id", "customer_id", "kind", "amount", "ordered_at", "updated_at",
    ),
    "raw.events": ("event_id", "shop_id", "kind", "amount", "happened_at"),
}  # fmt: skip
_SOURCE = re.compile(r"\{\{ source\('(\w+)', '(\w+)'\) \}\}")
_REF = re.compile(r"\{\{ ref\('(\w+)'\) \}\}")


def test_models_are_refreshed_as_they_are_meant_to_be() -> None:
    columns, unique = dict(_COLUMNS), {"raw.shops": (("shop_id",),), "raw.orders": (("order_id",),)}
    inputs = Inputs(columns, unique, append_only={"raw.events"})
    found = []
    for model in models(UNIT):
        text = _REF.sub(r"mart.\1", _SOURCE.sub(r"\1.\2", model.sql))
        plan = plan_query(text, inputs)
        columns[f"mart.{model.name}"] = plan.names
        found.append((model.name, plan.strategy.name))

    assert found == [(model.name, model.way) for model in models(UNIT)]
    assert Counter(way for _, way in found) == MIX


def test_a_hundred_models_keep_the_mix() -> None:
    ways = Counter(model.way for model in models(100))

    assert ways == {"append": 10, "signed": 20, "region": 55, "full": 15}
    assert len({model.name for model in models(100)}) == 100


def test_a_number_of_models_without_the_mix_is_refused() -> None:
    with pytest.raises(ValueError, match="30 models: give a multiple of 20"):
        list(models(30))


def test_the_edited_model_yields_the_same_rows_of_all_kinds() -> None:
    assert plain() == next(model for model in models(UNIT) if model.name == plain().name)
    assert asking().name == plain().name
    assert asking().sql.endswith("where kind >= 'k00' and kind <= '{{ newest }}'\n")


def test_a_batch_changes_as_many_records_as_it_says_and_corrects_some() -> None:
    market = Market(1_000)

    batch = market.changes(Path(), 3, 200, ("shops", "orders", "events"), newest=KINDS)

    assert {source: rows.num_rows for source, rows in batch.rows.items()} == {
        "shops": 20,
        "orders": 120,
        "events": 60,
    }
    known = set(market.history()["orders"]["order_id"].to_pylist())
    orders = batch.rows["orders"]["order_id"].to_pylist()
    assert [order in known for order in orders] == [True] * 60 + [False] * 60
    assert batch.rows["orders"]["kind"].to_pylist().count(f"k{KINDS:02}") == 1


def test_a_batch_of_one_source_has_all_its_records_there() -> None:
    batch = Market(1_000).changes(Path(), 0, 200, ("shops",))

    assert {source: rows.num_rows for source, rows in batch.rows.items()} == {"shops": 200}


def test_no_two_batches_bring_the_same_new_order() -> None:
    market = Market(100)
    brought = [
        order
        for number in range(3)
        for order in market.changes(Path(), number, 10, ("orders",))
        .rows["orders"]["order_id"]
        .to_pylist()[5:]
    ]

    assert len(set(brought)) == len(brought) == 15
