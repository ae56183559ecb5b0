"""The oracle itself, on cases small enough to be worked out by hand."""

from __future__ import annotations

import itertools
import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from tests.equivalence import oracle
from tests.equivalence.oracle import Market, Totals

AS_OF = datetime(2026, 3, 29, 12, tzinfo=UTC)
NOON = AS_OF.replace(hour=11, minute=30)


def _order(order_id: str | None = "o1", **changes: object) -> str:
    record: dict[str, object] = {
        "order_id": order_id,
        "restaurant_id": "r1",
        "customer_id": "c1",
        "ordered_at": NOON.isoformat(),
        "status": "placed",
        "currency_code": "EUR",
        "items": [{"dish_id": "d1", "quantity": 2, "unit_price": 3.05}],
        "updated_at": NOON.isoformat(),
        "op": "c",
    }
    return json.dumps(record | changes)


def _market(*orders: str) -> Market:
    market = Market()
    at = NOON.isoformat()
    market.restaurants.deliver(
        [
            json.dumps({"restaurant_id": name, "currency_code": "EUR", "updated_at": at, "op": "c"})
            for name in ("r1", "r2")
        ],
        AS_OF,
    )
    market.dishes.deliver(
        [json.dumps({"dish_id": "d1", "dish_name": "Joe's Burger", "updated_at": at, "op": "c"})],
        AS_OF,
    )
    market.orders.deliver(orders, AS_OF)
    return market


def _later(minutes: int) -> str:
    return (NOON + timedelta(minutes=minutes)).isoformat()


def test_an_order_counts_in_every_window_that_holds_it() -> None:
    totals = oracle.order_totals(_market(_order()), AS_OF)

    assert totals["r1", 1] == Totals(1, Decimal("6.10"))
    assert totals["r1", 168] == Totals(1, Decimal("6.10"))
    assert totals["r2", 168] == Totals()


def test_a_window_holds_its_start_and_not_its_end() -> None:
    start = AS_OF - timedelta(hours=1)
    market = _market(
        _order("end", ordered_at=AS_OF.isoformat()),
        _order("last", ordered_at=(AS_OF - timedelta(microseconds=1)).isoformat()),
        _order("first", ordered_at=start.isoformat()),
        _order("before", ordered_at=(start - timedelta(microseconds=1)).isoformat()),
    )

    assert oracle.order_totals(market, AS_OF)["r1", 1].order_count == 2
    assert oracle.order_totals(market, AS_OF, windows_back=1)["r1", 1].order_count == 1


def test_any_order_of_delivery_gives_the_same_rows() -> None:
    versions = (
        _order(),
        _order(restaurant_id="r2", updated_at=_later(1)),
        _order(op="d", updated_at=_later(2)),
        _order(status="delivered", updated_at=_later(3)),
        _order(),
    )
    expected = _market(*versions).orders.rows

    for permutation in itertools.permutations(versions):
        assert _market(*permutation).orders.rows == expected


def test_a_delete_is_remembered_for_older_versions() -> None:
    market = _market(_order(op="d", updated_at=_later(2)), _order(updated_at=_later(1)))

    assert market.orders.rows == {}


def test_a_newer_version_brings_a_deleted_order_back() -> None:
    market = _market(_order(op="d", updated_at=_later(2)), _order(updated_at=_later(3)))

    assert list(market.orders.rows) == ["o1"]


def test_a_delete_wins_at_an_equal_sequence() -> None:
    assert _market(_order(op="d"), _order()).orders.rows == {}
    assert _market(_order(), _order(op="d")).orders.rows == {}


def test_different_rows_at_one_sequence_are_refused() -> None:
    with pytest.raises(oracle.Ambiguous):
        _market(_order(customer_id="c1"), _order(customer_id="c2"))


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (_order()[:-9], "MALFORMED_RECORD"),
        ("[]", "MALFORMED_RECORD"),
        (_order(None), "NULL_KEY"),
        (_order(updated_at=None), "NULL_SEQUENCE"),
        (_order(updated_at="yesterday"), "TYPE_MISMATCH"),
        (_order(items=[{"dish_id": "d1", "quantity": "two", "unit_price": 1}]), "TYPE_MISMATCH"),
        (_order(items=[{"dish_id": "d1", "quantity": 1, "unit_price": 1.005}]), "TYPE_MISMATCH"),
        (_order(ordered_at=(AS_OF + timedelta(hours=2)).isoformat()), "FUTURE_EVENT_TIME"),
    ],
)
def test_a_broken_record_is_a_dead_letter(line: str, reason: str) -> None:
    market = _market(line)

    assert (market.orders.rows, market.orders.rejected) == ({}, [reason])


def test_cancelled_and_foreign_orders_do_not_count() -> None:
    market = _market(
        _order("own"),
        _order("cancelled", status="cancelled"),
        _order("foreign", currency_code="USD"),
        _order("nowhere", restaurant_id="r9"),
    )

    assert oracle.order_totals(market, AS_OF)["r1", 24].order_count == 1


def test_a_correction_moves_an_order() -> None:
    market = _market(
        _order(),
        _order(
            restaurant_id="r2",
            ordered_at=(NOON - timedelta(hours=2)).isoformat(),
            updated_at=_later(1),
            op="u",
        ),
    )

    totals = oracle.order_totals(market, AS_OF)
    assert (totals["r1", 24].order_count, totals["r2", 24].order_count) == (0, 1)
    assert totals["r2", 1].order_count == 0


def test_an_average_is_rounded_half_up_and_none_without_orders() -> None:
    assert Totals(8, Decimal("10.04")).average == Decimal("1.26")
    assert Totals().average is None


def test_a_customer_who_orders_twice_counts_once() -> None:
    market = _market(_order("o1"), _order("o2"), _order("o3", customer_id=None))

    assert oracle.unique_customers(market, AS_OF)["r1", 24] == 1


def test_ties_of_dishes_are_broken_by_sales_then_by_id() -> None:
    def item(dish_id: str, price: float) -> dict[str, object]:
        return {"dish_id": dish_id, "quantity": 2, "unit_price": price}

    items = [item("d4", 1), item("d3", 1), item("d2", 5), item("d1", 2)]

    ranked = oracle.top_dishes(_market(_order(items=items)), AS_OF)

    assert [ranked["r1", 1, rank] for rank in (1, 2, 3)] == [
        ("d2", "d2", 2, Decimal(10)),
        ("d1", "Joe's Burger", 2, Decimal(4)),
        ("d3", "d3", 2, Decimal(2)),
    ]


def test_a_running_total_is_the_window_that_ends_with_its_pane() -> None:
    market = _market(
        _order("first", ordered_at="2026-03-28T11:00:00Z"),
        _order("second", ordered_at="2026-03-28T11:55:00Z"),
        _order("third", ordered_at="2026-03-28T12:04:59.999999Z"),
    )

    own, running = oracle.sales_trend(market)["r1", datetime(2026, 3, 28, 12, tzinfo=UTC)]

    assert own.order_count == 1
    assert {hours: totals.order_count for hours, totals in running.items()} == {1: 2, 24: 3, 168: 3}


def test_only_whole_hours_are_estimated() -> None:
    market = _market(
        _order("o1", customer_id="c1", ordered_at="2026-03-29T12:10:00Z"),
        _order("o2", customer_id="c2", ordered_at="2026-03-29T11:59:59.999999Z"),
        _order("o3", customer_id="c3", ordered_at="2026-03-28T12:00:00Z"),
        _order("o4", customer_id="c4", ordered_at="2026-03-28T11:59:59.999999Z"),
    )

    found = oracle.customers_of_whole_hours(market, AS_OF + timedelta(minutes=30))

    assert found == {("r1", 24): 2, ("r1", 168): 3}
