"""The reference mart, refreshed along random histories, equals the batch and plain Python."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.conftest import IS_NIGHTLY
from tests.equivalence.mart_history import MartBatch, mart_history
from tests.equivalence.oracle import (
    PANE,
    Market,
    order_totals,
    pane_of,
    top_dishes,
    unique_customers,
)
from tests.project_run import ROOT, ProjectRun, reasons

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.equivalence.conftest import BuiltMart


# The large lane of the gate is where each strategy is met by few rows, among odd names.
@pytest.mark.parametrize(
    ("lane", "batches"), [("small", 3), pytest.param("large", 2, marks=pytest.mark.extended)]
)
def test_a_built_mart_refreshed_equals_batch_and_oracle(
    built_mart: BuiltMart, lane: str, batches: int
) -> None:
    run = replace(built_mart.run, flags={"lane": lane}, _runtime=None)
    assert run.runtime.settings.lane == lane
    first, *later = built_mart.batches[:batches]
    market = Market()
    _deliver(market, first)
    _assert_answers(run, market, "built")

    _refresh_and_compare(run, market, later)
    if lane == "small":
        _assert_nothing_new_is_committed(run)


@pytest.mark.extended
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    ("lane", "seed", "trials", "batches"),
    [
        pytest.param("small", 1, 20, 5, id="small lane, 20 histories"),
        pytest.param("large", 2, 20, 3, id="large lane, 20 histories", marks=pytest.mark.nightly),
        *(
            pytest.param(
                lane, seed, 20, 10, id=f"{lane} lane, seed {seed}", marks=pytest.mark.nightly
            )
            for seed, lane in enumerate(["small", "large"] * 5, start=10)
        ),
    ],
)
def test_refreshed_histories_equal_batch_and_oracle(
    spark: SparkSession, tmp_path: Path, lane: str, seed: int, trials: int, batches: int
) -> None:
    run = ProjectRun(spark, tmp_path / "run", ROOT, flags={"lane": lane})
    market = Market()
    first, *later = mart_history(seed, trials, batches)
    first.arrive(run)
    _deliver(market, first)
    run.build()
    _assert_answers(run, market, f"seed {seed}, built")

    _refresh_and_compare(run, market, later)
    _assert_nothing_new_is_committed(run)


def _refresh_and_compare(run: ProjectRun, market: Market, batches: Sequence[MartBatch]) -> None:
    """Refresh batch by batch, each run again as well; compare all models at the end, or always."""
    for number, batch in enumerate(batches, start=1):
        batch.arrive(run)
        _deliver(market, batch)
        run.refresh()

        _assert_answers(run, market, f"batch {number}")
        assert not any(reasons(run.newest).values()), reasons(run.newest)
        before = run.newest
        run.replay()
        assert run.newest == before, f"batch {number}"
        if IS_NIGHTLY or number == len(batches):
            assert run.differing() == [], f"batch {number}"


def _assert_nothing_new_is_committed(run: ProjectRun) -> None:
    """Refresh once more in the warm process, and once in a new one."""
    before = run.newest
    run.refresh()
    run.restart()
    run.now += timedelta(seconds=1)
    run.refresh()
    assert run.newest == before


def _deliver(market: Market, batch: MartBatch) -> None:
    tables = {
        "orders": market.orders,
        "restaurants": market.restaurants,
        "dishes": market.dishes,
    }
    for source, rows in batch.records.items():
        tables[source].deliver([json.dumps(row) for row in rows], batch.now)


def _assert_answers(run: ProjectRun, market: Market, where: str) -> None:
    """Compare the owner's three answers with plain Python."""
    as_of = run.newest.as_of
    assert as_of is not None
    assert as_of == pane_of(as_of), where
    metrics = {
        (row["restaurant_id"], row["window_hours"]): row
        for row in run.rows("mart.restaurant_order_metrics")
    }
    expected = order_totals(market, as_of)
    before = order_totals(market, as_of, windows_back=1)
    customers = unique_customers(market, as_of)
    assert metrics.keys() == expected.keys(), where
    for key, row in metrics.items():
        found = (row["order_count"], row["sales_amount"], row["average_order_value"])
        totals = expected[key]
        assert found == (totals.order_count, totals.sales_amount, totals.average), (where, key)
        assert row["unique_customers"] == customers[key], (where, key)
        previous = (row["previous_order_count"], row["previous_sales_amount"])
        assert previous == (before[key].order_count, before[key].sales_amount), (where, key)
    _assert_compared(metrics, market, as_of, where)
    dishes = {
        (row["restaurant_id"], row["window_hours"], row["dish_rank"]): (
            row["dish_id"],
            row["dish_name"],
            row["quantity_sold"],
            row["sales_amount"],
        )
        for row in run.rows("mart.restaurant_top_dishes")
    }
    assert dishes == top_dishes(market, as_of), where


def _assert_compared(
    metrics: Mapping[tuple[str, int], Mapping[str, object]],
    market: Market,
    as_of: datetime,
    where: str,
) -> None:
    """Compare what ends with the last whole pane, and the same a week before, with plain Python."""
    for prefix, end in (("compared", as_of), ("last_week", as_of - timedelta(days=7))):
        totals = order_totals(market, end, cut=PANE)
        customers = unique_customers(market, end, cut=PANE)
        for key, row in metrics.items():
            names = ("order_count", "sales_amount", "average_order_value", "unique_customers")
            found = tuple(row[f"{prefix}_{name}"] for name in names)
            expected = totals[key]
            assert found == (
                expected.order_count,
                expected.sales_amount,
                expected.average,
                customers[key],
            ), (where, prefix, key)
