"""A union is the sum of its branches, whose rows a constant may tell apart."""

from __future__ import annotations

import pytest

from livemart.plan.plan import Inputs
from livemart.plan.planner import plan_query
from livemart.plan.relations.project import Projection
from livemart.plan.relations.relation import Relation
from livemart.plan.relations.union import Union
from livemart.plan.sql.written import sql_of
from tests.unit.plan.relations.scans import expr, sales


def branch(occurrence: int, constant: str) -> Relation:
    return Projection(sales(occurrence), {"hours": expr(constant), "id": expr("id")})


def union(*constants: str) -> Union:
    branches = [branch(index, constant) for index, constant in enumerate(constants)]
    return Union(branches, [("hours", "id")] * len(branches))


def test_columns_meet_by_position() -> None:
    both = Union([sales(0), sales(1)], [("a", "b", "c"), ("id", "shop", "at")])

    assert sql_of(both.over_input(expr("upper(b)"), 1)) == "UPPER(shop)"


def test_a_change_of_one_branch_is_a_change_of_the_sum() -> None:
    assert list(map(str, union("1", "24").affected([expr("id")]))) == [
        "select distinct id as w0 from __touched_0__",
        "select distinct id as w0 from __touched_1__",
    ]


def test_a_key_of_every_branch_is_one_of_the_union_if_a_constant_tells_them_apart() -> None:
    assert union("1", "24").unique_keys() == [frozenset({"hours", "id"})]
    assert union("1", "1").unique_keys() == []


@pytest.mark.parametrize(
    ("kind", "key"), [("number", ("side", "id")), ("double", ()), ("string", ())]
)
def test_branches_of_two_types_have_no_key_for_values_may_become_one(
    kind: str, key: tuple[str, ...]
) -> None:
    # 2^53 and 2^53 + 1 are one double.
    plan = plan_query(
        "select 'a' as side, id from s.a union all select 'b', id from s.b",
        Inputs(
            {"s.a": ("id",), "s.b": ("id",)},
            {"s.a": (("id",),), "s.b": (("id",),)},
            kinds={"s.a": {"id": "number"}, "s.b": {"id": kind}},
        ),
    )

    assert plan.unique_key == key
