"""Rows influence each other only within the key of a gate."""

from __future__ import annotations

import pytest

from livemart.plan.plan import Inputs
from livemart.plan.reasons import Inapplicable, Reason
from livemart.plan.relations.gate import Aggregate, Distinct, Frame, GroupsOfSets, WindowGate
from livemart.plan.relations.relation import Restrictions, Want
from livemart.plan.sql.flatten import flatten
from livemart.plan.uncut import plan_uncut
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


def test_groups_of_sets_are_confined_by_what_all_sets_have_and_unique_by_all() -> None:
    sets = [[expr("shop"), expr("id")], [expr("shop")]]
    gate = GroupsOfSets(sales(), sets, Reason("GLOBAL_AGG", "a total", None))

    assert [gate.passes(expr(name)) for name in ("shop", "id", "grouping_id()")] == [
        *(True, False, False)
    ]
    assert gate.unique_keys() == [frozenset({"shop", "id", "grouping_id()"})]
    assert gate.reason is None
    assert all(map(gate.is_of_group, map(expr, ("id", "grouping(id) + 1", "concat(shop, id)"))))
    assert not gate.is_of_group(expr("at"))


def test_groups_of_sets_without_a_common_key_are_confined_by_none() -> None:
    reason = Reason("GLOBAL_AGG", "a total", None)
    gate = GroupsOfSets(sales(), [[expr("shop")], [expr("id")]], reason)

    assert (gate.keys, gate.reason) == ((), reason)


def test_a_frame_widens_what_is_read_by_its_margins() -> None:
    gate = WindowGate(sales(), [expr("shop")], Frame(expr("at"), 10, 3))
    restrictions = Restrictions()

    gate.restrict(Want((expr("shop"), expr("id")), expr("at"), 1, 1), restrictions)

    assert restrictions.scans == {0: [Want((expr("shop"), None), expr("at"), 11, 4)]}


_GROUPED = "select {} as k, max(id) as last from (select id, {} as v from s.t) group by v"


@pytest.mark.parametrize(
    ("text", "key", "kind", "strategy"),
    [
        # Equal arrays and maps may be different texts, and so may two zeros.
        ("cast(v as string)", "w", "list<element: double>", "full"),
        ("map_keys(v)[0]", "w", "map<string, int32>", "full"),
        ("to_json(v)", "w", "struct<x: float>", "full"),
        ("cast(v as string)", "round(w)", "double", "full"),
        ("cast(v as string)", "w / 3", "number", "full"),
        ("cast(v as string)", "cast(w as double)", "string", "full"),
        ("v", "round(w)", "double", "region"),
        # Both zeros of a stored number are looked up.
        ("cast(v as string)", "w", "double", "region"),
        ("cast(v as string)", "w", "list<element: int32>", "region"),
        ("upper(v)", "w", "string", "region"),
    ],
)
def test_a_text_of_a_key_confines_only_if_equal_keys_have_one_text(
    text: str, key: str, kind: str, strategy: str
) -> None:
    inputs = Inputs({"s.t": ("id", "w")}, {"s.t": (("id",),)}, kinds={"s.t": {"w": kind}})

    plan = plan_uncut(flatten(_GROUPED.format(text, key), {}), inputs)

    assert plan.strategy.name == strategy


def test_a_text_of_a_number_confines_no_change_of_a_joined_table() -> None:
    inputs = Inputs(
        {"s.t": ("id", "w"), "s.u": ("id", "n")}, kinds={"s.t": {"w": "double", "id": "string"}}
    )

    text = (
        "select cast(t.w as string) as k, max(u.n) as most from s.t join s.u on t.id = u.id"
        " group by t.w"
    )
    plan = plan_uncut(flatten(text, {}), inputs)

    assert plan.strategy.name == "full"
