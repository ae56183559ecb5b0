"""A body is made once, when it is asked for, and never of what was not read."""

from __future__ import annotations

import json
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from livemart.serve.http.problems import ProblemError
from livemart.serve.owner import bodies
from livemart.serve.owner.facts import Facts
from livemart.serve.owner.panes import Panes
from livemart.serve.owner.restaurant import PARTS, RestaurantBodies
from livemart.store.served import Published
from tests.store.stores import NOON

ROW = {
    "restaurant_id": "r1",
    "restaurant_name": "Taverna Azul",
    "time_zone": "Europe/Lisbon",
    "currency_code": "EUR",
    "window_hours": 24,
    "order_count": 2,
    "sales_amount": Decimal("19.00"),
    "average_order_value": Decimal("9.50"),
    "unique_customers": 2,
    "previous_order_count": None,
    "previous_sales_amount": None,
    "previous_average_order_value": None,
}
NONE = Panes(NOON - timedelta(hours=1), (), (), (), frozenset(), 2)


def restaurant() -> RestaurantBodies:
    published = Published(7, NOON, NOON, "epoch", NOON)
    return RestaurantBodies(Facts(published, "r1", {24: ROW}, {}, NONE, None))


def test_a_body_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    metrics_of = bodies.metrics_of

    def counted(facts: Facts, hours: int) -> Any:
        asked.append(hours)
        return metrics_of(facts, hours)

    monkeypatch.setattr(bodies, "metrics_of", counted)
    known = restaurant()

    first, second = known.get("metrics", 24), known.get("metrics", 24)

    assert first is second and asked == [24]
    assert json.loads(first)["metrics"]["sales_amount"]["value"] == "19.00"


def test_a_window_of_which_there_are_no_figures_is_refused() -> None:
    known = restaurant()

    known.facts.of_window(24)
    assert known.has(24) and not known.has(1)
    with pytest.raises(ProblemError, match="windows here are 24h; found 1h") as caught:
        known.facts.of_window(1)
    assert (caught.value.code, caught.value.status) == ("WINDOW_UNKNOWN", 422)


@pytest.mark.parametrize("kind", ["trend", "state"])
def test_a_body_of_parts_that_were_not_read_is_a_fault_and_no_empty_answer(kind: str) -> None:
    known = restaurant()

    assert known.parts == frozenset() and PARTS[kind]  # type: ignore[index]
    with pytest.raises(ValueError, match=r"r1: its .* were not read"):
        known.get(kind, 24)  # type: ignore[arg-type]
    known.panes = NONE
    assert known.parts == {"panes"} and json.loads(known.get("trend", 24))
