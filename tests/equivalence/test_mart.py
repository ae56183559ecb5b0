"""The reference mart, refreshed along random histories, equals the batch and plain Python."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest

from tests.equivalence.mart_history import mart_history
from tests.equivalence.oracle import (
    Market,
    order_totals,
    pane_of,
    top_dishes,
    unique_customers,
)
from tests.equivalence.project_run import ProjectRun

PROJECT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
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
    tmp_path: Path, is_nightly: bool, lane: str, seed: int, trials: int, batches: int
) -> None:
    run = ProjectRun(PROJECT, tmp_path / "run", lane=lane)
    market = Market()
    for number, batch in enumerate(mart_history(seed, trials, batches)):
        run.deliver(batch.records)
        _deliver(market, batch.records, batch.now)
        (run.refresh if number else run.build)(batch.now)

        _assert_answers(run, market, f"seed {seed}, batch {number}")
        reasons = {name: state.reason for name, state in run.newest.models.items()}
        assert number == 0 or not any(reasons.values()), reasons
        before = run.newest
        run.replay(batch.now)
        assert run.newest == before, f"seed {seed}, batch {number}"
        if is_nightly or number == batches - 1:
            assert run.differing() == [], f"seed {seed}, batch {number}"


def test_a_pass_with_nothing_new_commits_nothing(tmp_path: Path) -> None:
    run = ProjectRun(PROJECT, tmp_path / "run")
    first, second, *_ = mart_history(3, 2, 2)
    run.deliver(first.records)
    run.build(first.now)
    run.deliver(second.records)
    run.refresh(second.now)
    before = run.newest

    run.refresh(second.now)
    run.forget()
    run.refresh(second.now + timedelta(seconds=1))

    assert run.newest == before


def _deliver(market: Market, records: dict[str, list[dict[str, object]]], now: object) -> None:
    tables = {
        "orders": market.orders,
        "restaurants": market.restaurants,
        "dishes": market.dishes,
    }
    for source, rows in records.items():
        tables[source].deliver([json.dumps(row) for row in rows], now)  # type: ignore[arg-type]


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
