"""What a row that asks a subquery depends on: the rows that share its keys, and no others."""

from __future__ import annotations

import pytest

from livemart.plan.planner import plan_query
from livemart.plan.relations.relation import Restriction
from tests.unit.plan.golden import INPUTS

_EXISTS = "select dish_id from bronze.dishes as d where {} exists (select 1 from {} as r where {})"


@pytest.mark.parametrize("negated", ["", "not"])
def test_what_is_asked_is_read_by_its_keys_alone(negated: str) -> None:
    query = _EXISTS.format(negated, "bronze.restaurants", "r.restaurant_id = d.restaurant_id")

    plan = plan_query(query.replace("dish_id", "dish_id, restaurant_id"), INPUTS)

    assert plan.region is not None
    assert plan.region.keys == ("dish_id", "restaurant_id")
    assert plan.region.restrictions[1] == (Restriction(((1, "restaurant_id", 0),)),)
    assert [item.occurrence for item in plan.region.affected] == [0, 1]


@pytest.mark.parametrize(
    "condition",
    [
        # Another condition on both sides only narrows what matches.
        "r.restaurant_id = d.restaurant_id and r.restaurant_name > d.dish_name",
        "r.restaurant_id <=> d.restaurant_id and (r.currency_code = 'EUR' or r.restaurant_id = 1)",
        "d.restaurant_id = r.restaurant_id and r.restaurant_name like 'A%'",
    ],
)
def test_one_equality_is_enough(condition: str) -> None:
    plan = plan_query(_EXISTS.format("", "bronze.restaurants", condition), INPUTS)

    assert (plan.strategy.name, plan.unique_key) == ("region", ("dish_id",))


@pytest.mark.parametrize(
    ("query", "code"),
    [
        (_EXISTS.format("", "bronze.restaurants", "r.restaurant_id > d.restaurant_id"), "SUBQUERY"),
        (_EXISTS.format("", "bronze.restaurants", "r.restaurant_name is null"), "SUBQUERY"),
        # What stands two levels up has no rule.
        (
            _EXISTS.format(
                "",
                "bronze.restaurants",
                "r.restaurant_id = d.restaurant_id and exists (select 1 from bronze.orders as o"
                " where o.restaurant_id = d.restaurant_id)",
            ),
            "PARSE_UNSUPPORTED",
        ),
        (
            "select d.dish_id, r.n from bronze.dishes as d, lateral (select row_number() over ("
            "order by r.restaurant_name) as n from bronze.restaurants as r"
            " where r.restaurant_id = d.restaurant_id) as r",
            "PARSE_UNSUPPORTED",
        ),
        (
            "select d.dish_id from bronze.dishes as d where (d.dish_id, d.restaurant_id) in"
            " (select r.restaurant_id, r.restaurant_id from bronze.restaurants as r)",
            "SUBQUERY",
        ),
    ],
)
def test_what_has_no_rule_is_recomputed_in_full(query: str, code: str) -> None:
    plan = plan_query(query, INPUTS)

    assert plan.strategy.name == "full"
    assert plan.reasons[0].code.startswith(code)
