"""Columns that are one of a few constants."""

from __future__ import annotations

from livemart.plan.relations.constants import constants_of
from livemart.plan.relations.project import Projection
from livemart.plan.relations.union import Union
from tests.unit.plan.relations.scans import expr, sales


def test_each_branch_may_have_a_constant_of_its_own() -> None:
    branches = [
        Projection(sales(index), {"hours": expr(hours), "id": expr("id")})
        for index, hours in enumerate(("1", "24"))
    ]
    union = Union(branches, [("hours", "id")] * 2)

    assert constants_of(union, expr("hours")) == frozenset({"1", "24"})
    assert constants_of(union, expr("id")) is None
