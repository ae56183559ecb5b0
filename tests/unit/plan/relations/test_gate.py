"""Rows influence each other only within the key of a gate."""

from __future__ import annotations

import pytest

from livemart.plan.reasons import Inapplicable
from livemart.plan.relations.gate import Aggregate, Distinct, Frame, WindowGate
from livemart.plan.relations.relation import Restrictions, Want
from tests.unit.plan.relations.scans import expr, sales


@pytest.mark.parametrize(
    ("text", "passes"),
    [("shop", True), ("upper(shop)", True), ("id", False), ("concat(shop, id)", False)],
)
def test_what_is_made_of_the_keys_passes(text: str, passes: bool) -> None:
    gate = Aggregate(sales(), [expr("shop")])

    assert gate.is_local(expr(text), anchored=True) is passes


def test_a_change_of_anything_else_cannot_be_confined() -> None:
    with pytest.raises(Inapplicable) as caught:
        Aggregate(sales(), [expr("shop")]).affected([expr("id")])

    assert caught.value.reason.code == "KEY_NOT_IN_OUTPUT"


def test_a_session_may_grow_into_its_neighbours() -> None:
    session = expr("session_window(at, '5 minutes')")

    assert not Aggregate(sales(), [expr("shop"), session]).passes(session)


def test_groups_are_unique_by_their_keys() -> None:
    assert Aggregate(sales(), [expr("shop"), expr("1")]).unique_keys() == [frozenset({"shop"})]
    assert Distinct(sales(), [expr("shop")]).unique_keys() == [
        *(frozenset({"shop"}), frozenset({"id"}))
    ]


def test_a_frame_widens_what_is_read_by_its_margins() -> None:
    gate = WindowGate(sales(), [expr("shop")], Frame(expr("at"), 10, 3))
    restrictions = Restrictions()

    gate.restrict(Want((expr("shop"), expr("id")), expr("at"), 1, 1), restrictions)

    assert restrictions.scans == {0: [Want((expr("shop"), None), expr("at"), 11, 4)]}
