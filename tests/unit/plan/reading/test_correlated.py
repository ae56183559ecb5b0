"""A row with a subquery depends on the rows that share its keys, and on no others."""

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
        # Columns two levels up have no rule.
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
        # A total alone shares its group with any row.
        (
            "select d.dish_id from bronze.dishes as d where (d.dish_id, d.restaurant_id) in"
            " (select max(r.restaurant_id), count(*) from bronze.restaurants as r)",
            "SUBQUERY",
        ),
    ],
)
def test_what_has_no_rule_is_recomputed_in_full(query: str, code: str) -> None:
    plan = plan_query(query, INPUTS)

    assert plan.strategy.name == "full"
    assert plan.reasons[0].code.startswith(code)


_CLOCK = "livemart.clock as c"
_ASKED = "bronze.orders as o where o.restaurant_id = d.restaurant_id"
_LOWEST = "(select min(r.restaurant_id) from bronze.restaurants as r)"


@pytest.mark.parametrize(
    "query",
    [
        # Other reads in a clause without keys.
        f"select dish_id, (select sum(o.amount + {_LOWEST}) from {_ASKED}) as m"
        " from bronze.dishes as d",
        f"select dish_id, (select max(o.amount) from {_ASKED} having count(*) > {_LOWEST}) as m"
        " from bronze.dishes as d",
        f"select dish_id, (select max(o.amount) filter (where 1 > {_LOWEST}) from {_ASKED}) as m"
        " from bronze.dishes as d",
        f"select dish_id from bronze.dishes as d where exists (select 1 from {_ASKED}"
        f" group by o.customer_id having count(*) > {_LOWEST})",
        # Values that are compared with the answers.
        f"select dish_id from bronze.dishes as d where {_LOWEST} in"
        f" (select o.amount from {_ASKED})",
        f"select dish_id from bronze.dishes as d where dish_id + {_LOWEST} in"
        f" (select o.order_id from {_ASKED})",
        # The clock of the query around, and one that is joined.
        f"select dish_id from bronze.dishes as d cross join {_CLOCK} where exists (select 1 from"
        f" {_ASKED} and o.ordered_at > c.as_of - interval 1 hour)",
        "select dish_id from bronze.dishes as d where exists (select 1 from bronze.orders as o"
        f" cross join {_CLOCK} where o.restaurant_id = d.restaurant_id and o.ordered_at > c.as_of)",
        f"select dish_id, p.amount from bronze.dishes as d cross join {_CLOCK} left join lateral"
        f" (select o.amount, o.ordered_at from {_ASKED}) as p on p.ordered_at > c.as_of",
        f"select dish_id, p.amount from bronze.dishes as d left join lateral (select o.amount from"
        f" {_ASKED}) as p on p.amount > {_LOWEST}",
        # Values that windows and QUALIFY compare.
        f"select dish_id, (select o.amount from {_ASKED} qualify row_number() over ("
        "order by o.ordered_at) = 1) as m from bronze.dishes as d",
        "select dish_id from bronze.dishes as d qualify row_number() over (partition by dish_id"
        f" order by dish_name) = 1 and exists (select 1 from {_ASKED})",
    ],
)
def test_what_would_be_read_and_not_seen_is_recomputed_in_full(query: str) -> None:
    assert plan_query(query, INPUTS).strategy.name == "full"


def test_a_limit_that_chooses_nothing_does_not_tie() -> None:
    for asked in ("exists (select 1", "0 < (select max(o.amount)"):
        query = f"select dish_id from bronze.dishes as d where {asked} from {_ASKED} limit 1)"

        assert plan_query(query, INPUTS).ties == ()


@pytest.mark.parametrize("groups", ["rollup (o.status)", "o.status with cube"])
def test_grouping_sets_of_a_lateral_subquery_are_recomputed_in_full(groups: str) -> None:
    plan = plan_query(
        "select r.restaurant_id, s.status, s.n from bronze.restaurants as r, lateral (select"
        " o.status, count(*) as n from bronze.orders as o where o.restaurant_id = r.restaurant_id"
        f" group by {groups}) as s",
        INPUTS,
    )

    assert [reason.code for reason in plan.reasons] == ["PARSE_UNSUPPORTED"]
    assert "grouping sets in a lateral subquery" in plan.reasons[0].message


@pytest.mark.parametrize("groups", ["rollup(r.restaurant_id)", "cube(r.restaurant_id)"])
def test_a_total_of_all_groups_is_found_by_no_key_of_in(groups: str) -> None:
    inside = "select coalesce(r.restaurant_id, 'all'){} from bronze.restaurants as r group by {}"
    for value, more in (("d.restaurant_id", ""), ("(d.restaurant_id, d.dish_name)", ", max(r.x)")):
        query = inside.format(more.replace("r.x", "r.restaurant_name"), groups)
        plan = plan_query(
            f"select dish_id from bronze.dishes as d where {value} in ({query})", INPUTS
        )

        assert plan.strategy.name == "full"
