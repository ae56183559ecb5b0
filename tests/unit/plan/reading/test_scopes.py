"""SQL as relations: inputs, and the expression of each column."""

from __future__ import annotations

import pytest

from livemart.plan.plan import Inputs
from livemart.plan.planner import plan_query

INPUTS = Inputs(columns={"s.sales": ("id", "shop", "amount")}, unique={"s.sales": (("id",),)})


def test_a_common_table_expression_is_read_through() -> None:
    plan = plan_query(
        "with big as (select id, shop as seller from s.sales where amount > 9)"
        " select seller, id from big",
        INPUTS,
    )

    assert plan.names == ("seller", "id")
    assert plan.unique_key == ("id",)


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("select shop from s.sales limit 3", "LIMIT_WITHOUT_ORDER"),
        ("select max(amount) as n from s.sales", "GLOBAL_AGG"),
        ("select id from s.sales where id not in (select id from s.sales)", "NULL_AWARE_ANTI"),
    ],
)
def test_a_shape_without_a_rule_has_its_own_reason(sql: str, code: str) -> None:
    plan = plan_query(sql, INPUTS)

    assert (plan.strategy.name, plan.reasons[0].code) == ("full", code)


@pytest.mark.parametrize(
    ("sql", "message", "suggestion"),
    [
        (
            "select id from s.sales as a where shop not in (select shop from s.sales as b)",
            "subquery in a.shop IN (SELECT b.shop AS shop FROM s.sales AS b)",
            "if no NULL is selected, write `a.shop is not null and not exists (...)`",
        ),
        (
            "select id, shop in (select shop from s.sales where amount > 9) as is_big from s.sales",
            "subquery in sales.shop in (select sales.shop AS shop from s.sales as `sales` where sa",
            "write `exists (...)` with an equality",
        ),
        (
            "select a.id, b.amount from s.sales as a left join s.sales as b on b.shop = a.shop"
            " and b.amount = (select max(amount) from s.sales)",
            "subquery in b.amount = (SELECT max(sales.amount) AS _col_0 FROM s.sales AS sales)",
            "compare with it in a subquery, and join that",
        ),
        (
            "select shop, mode(amount) as m from s.sales group by shop",
            "mode(sales.amount) depends on the order of rows",
            "write mode() within group (order by sales.amount)",
        ),
        (
            "select shop, collect_list(amount) over (partition by shop order by amount) as m"
            " from s.sales",
            "COLLECT_LIST(sales.amount) depends on the order of rows",
            "sort what is collected: sort_array(...)",
        ),
        (
            "select shop, histogram_numeric(amount, 3) as h from s.sales group by shop",
            "histogram_numeric(sales.amount, 3) depends on the order of rows",
            None,
        ),
        (
            "select shop, sum(sum(amount)) over (order by shop) as n,"
            " rank() over (order by shop) as p from s.sales group by all",
            "sum(sum(sales.amount)) over (order by sales.shop): without a partition, its frame is "
            "found among all rows",
            "partition by a key, if a value of each key alone is meant; else group in a subquery, "
            "and compute it over its rows",
        ),
        (
            "select id, avg(amount) over (order by id rows 6 preceding) as n from s.sales",
            "avg(sales.amount) over (order by sales.id rows 6 preceding): without a partition, its "
            "frame is found among all rows",
            "partition by a key, if a value of each key alone is meant; else keep it in a model of "
            "few rows, such as totals by day: its full refresh is cheap",
        ),
        (
            "select shop, id, max(amount) as n from s.sales group by cube(shop, id)",
            "grouping sets hold a total over all rows",
            "group by all of their columns in a subquery, and add up its groups",
        ),
        (
            "select 'sold' as kind, sum(amount) as n from s.sales"
            " union all (select 'shops', count(distinct shop, id) from s.sales)",
            "a total over all rows is a row beside others",
            "group by hour or by key in a subquery, and total its groups",
        ),
    ],
)
def test_a_reason_names_tables_and_advises_what_keeps_the_rows(
    sql: str, message: str, suggestion: str | None
) -> None:
    (reason,) = plan_query(sql, INPUTS).reasons

    assert (reason.message, reason.suggestion) == (message, suggestion)


def test_a_reason_names_the_clock_as_models_do() -> None:
    inputs = Inputs({**INPUTS.columns, "s.c": ("as_of",)}, clocks=frozenset({"s.c"}))
    newer = "if(amount > (select c.as_of from s.c as c), 1, 0)"

    plan = plan_query(f"select max(id) as id from s.sales group by {newer}", inputs)

    assert "GROUP BY if(sales.amount > as_of(), 1, 0)" in plan.reasons[0].message


def test_what_a_reason_advises_is_incremental() -> None:
    for sql in (
        "select id from s.sales as a where a.shop is not null"
        " and not exists (select 1 from s.sales as b where b.shop = a.shop and b.amount > 9)",
        "select id, exists (select 1 from s.sales as b where b.amount > 9 and b.shop = a.shop)"
        " as is_big from s.sales as a",
        "select a.id, b.amount from s.sales as a left join (select * from s.sales"
        " qualify amount = max(amount) over (partition by shop)) as b on b.shop = a.shop",
        "select shop, mode() within group (order by amount) as m from s.sales group by shop",
        "select shop, sort_array(collect_set(amount)) as m from s.sales group by shop",
        "select shop, sum(amount) over (order by shop) as n"
        " from (select shop, sum(amount) as amount from s.sales group by shop)",
        "select shop, id, sum(n) as n from (select shop, id, count(*) as n from s.sales"
        " group by shop, id) group by cube(shop, id)",
        "with sold as (select sum(amount) as n from s.sales), shops as (select count(distinct shop)"
        " as n from s.sales) select 'sold' as kind, n from sold union all select 'shops', n"
        " from shops",
    ):
        assert plan_query(sql, INPUTS).strategy.name != "full"


@pytest.mark.parametrize(
    "sql",
    [
        "select id, shop from s.sales limit 0",
        "select id, shop from s.sales order by shop limit 0 offset 3",
        "select id, shop from s.sales limit all",
        "select id, shop from s.sales offset 0",
        "select id from (select * from s.sales limit 0) union all select id from s.sales",
        "(select id, shop from s.sales) limit 0",
    ],
)
def test_a_limit_that_chooses_no_row_before_another_is_no_reason(sql: str) -> None:
    """Packages write `limit 0` for the columns of a table that is not there."""
    plan = plan_query(sql, INPUTS)

    assert (plan.strategy.name, plan.reasons) == ("signed", ())


def test_no_group_is_added_to_below_a_limit_of_no_row() -> None:
    totals = "select shop, sum(amount) as amount, count(*) as n from s.sales group by shop"

    assert plan_query(totals, INPUTS).strategy.name == "signed"
    assert plan_query(f"{totals} limit 0", INPUTS).strategy.name == "region"
