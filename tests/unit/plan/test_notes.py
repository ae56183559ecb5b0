"""Notes: what is incremental and dear all the same, and what bounds it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from livemart.plan.planner import plan_query
from tests.unit.plan.golden import INPUTS

KNOWN = replace(
    INPUTS,
    columns={
        **INPUTS.columns,
        "bronze.payments": ("payment_id", "order_id", "paid_at", "amount"),
        "bronze.my_clock": ("clock_id", "as_of", "updated_at"),
        "bronze.periods": ("name", "starts_at", "ends_at"),
    },
    unique={
        **INPUTS.unique,
        "bronze.payments": (("payment_id",),),
        "bronze.my_clock": (("clock_id",),),
    },
    growing={"bronze.orders": "ordered_at", "bronze.payments": "paid_at"},
)
PAID = (
    "select o.order_id, p.payment_id, p.amount from bronze.orders as o"
    " join bronze.payments as p on o.order_id = p.order_id"
)


def codes(sql: str) -> list[str]:
    return [reason.code for reason in plan_query(sql, KNOWN).reasons]


@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        ("", ["WINDOW_UNBOUNDED"]),
        ("range between unbounded preceding and current row", ["WINDOW_UNBOUNDED"]),
        ("range between current row and unbounded following", ["WINDOW_UNBOUNDED"]),
        ("range between unbounded preceding and unbounded following", []),
        ("range between interval 1 hour preceding and current row", []),
    ],
)
def test_a_frame_that_reaches_to_one_end_is_noted(frame: str, expected: list[str]) -> None:
    sql = (
        "select restaurant_id, pane_started_at, sum(order_count) over (partition by restaurant_id"
        f" order by pane_started_at {frame}) as n from mart.order_panes"
    )

    assert codes(sql) == expected


def test_a_named_frame_is_noted_and_a_rank_is_not() -> None:
    named = (
        "select restaurant_id, pane_started_at, sum(order_count) over w as n from mart.order_panes"
        " window w as (partition by restaurant_id order by pane_started_at)"
    )
    rank = (
        "select restaurant_id, dish_id, rank() over (partition by restaurant_id"
        " order by quantity_sold desc) as place from mart.dish_totals"
    )

    assert (codes(named), codes(rank)) == (["WINDOW_UNBOUNDED"], [])


@pytest.mark.parametrize(
    ("band", "expected"),
    [
        ("", ["JOIN_UNBOUNDED_TIME"]),
        (" and p.amount > 3", ["JOIN_UNBOUNDED_TIME"]),
        (" and p.paid_at between o.ordered_at and o.ordered_at + interval 24 hours", []),
        (" where p.paid_at < o.ordered_at + interval 24 hours", []),
        (" and date(p.paid_at) = date(o.ordered_at)", []),
    ],
)
def test_two_growing_tables_want_a_band(band: str, expected: list[str]) -> None:
    assert codes(PAID + band) == expected


def test_growing_tables_are_seen_through_common_table_expressions() -> None:
    sql = (
        "with o as (select * from bronze.orders), p as (select * from bronze.payments)"
        " select o.order_id, p.payment_id from o join p on o.order_id = p.order_id"
    )

    assert codes(sql) == ["JOIN_UNBOUNDED_TIME"]


def test_a_dimension_needs_no_band() -> None:
    beside = (
        "with o as (select * from bronze.orders), r as (select * from bronze.restaurants)"
        " select o.order_id, r.restaurant_name from o join r on o.restaurant_id = r.restaurant_id"
    )
    sql = (
        "select o.order_id, r.restaurant_name from bronze.orders as o"
        " join bronze.restaurants as r on o.restaurant_id = r.restaurant_id"
    )

    assert (codes(sql), codes(beside)) == ([], [])


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (
            "select restaurant_id, max(amount) as most from bronze.orders group by 1",
            ["GROWTH_UNBOUNDED"],
        ),
        (
            "select restaurant_id, date_trunc('hour', ordered_at) as hour, max(amount) as most"
            " from bronze.orders group by 1, 2",
            [],
        ),
        (
            "select restaurant_id, max(amount) as most from bronze.orders where ordered_at >="
            " (select c.as_of from livemart.clock as c) - interval 24 hours group by 1",
            [],
        ),
        ("select restaurant_id, max(order_count) as n from mart.order_panes group by 1", []),
        ("select restaurant_id, count(*) as n from bronze.orders group by 1", []),
        # A key of the source has one row, in whatever frame its elements are compared.
        (
            "select order_id, pos, max(item) over (partition by order_id order by pos rows between"
            " 2 preceding and current row) as m from bronze.orders"
            " lateral view posexplode(items) as pos, item",
            [],
        ),
        (
            "select restaurant_id, order_id, max(amount) as most from bronze.orders group by 1, 2",
            [],
        ),
        (
            "select payment_id % 10 as part, max(amount) as most from bronze.payments group by 1",
            ["GROWTH_UNBOUNDED"],
        ),
    ],
)
def test_a_region_that_reads_a_growing_history_is_noted(sql: str, expected: list[str]) -> None:
    assert codes(sql) == expected


def test_a_source_without_keys_may_have_a_key_that_nobody_declared() -> None:
    sql = "select order_id, max(amount) as most from bronze.orders group by 1"
    without = replace(KNOWN, unique={})
    over_all = "select amount * 2 as twice, max(order_id) as last from bronze.orders group by 1"
    notes = [plan_query(text, without).reasons for text in (sql, over_all)]

    assert [reason.message for each in notes for reason in each] == [
        "a refresh reads all that bronze.orders has ever had of its order_id",
        "a refresh reads all rows that bronze.orders has ever had",
    ]
    assert [[reason.suggestion for reason in each] for each in notes] == [
        [
            "group by hour or day in a model below, or bound the time; if order_id is the key of"
            " its rows, declare it"
        ],
        ["group by hour or day in a model below, or bound the time"],
    ]


def test_a_clock_of_the_project_is_a_window_as_a_value_and_noted_as_a_join() -> None:
    head = "select o.restaurant_id, count(*) as n from bronze.orders as o"
    value = plan_query(
        f"{head} where o.ordered_at >= (select c.as_of from bronze.my_clock as c)"
        " - interval 24 hours group by 1",
        KNOWN,
    )
    joined = plan_query(
        f"{head} cross join bronze.my_clock as c"
        " where o.ordered_at >= c.as_of - interval 24 hours group by 1",
        KNOWN,
    )

    assert (value.strategy.name, [each.column for each in value.slices]) == (
        "signed",
        ["ordered_at"],
    )
    assert value.reasons == ()
    assert [(each.code, each.suggestion) for each in joined.reasons] == [
        (
            "CLOCK_NOT_ONE_ROW",
            "read it as a value: (select c.as_of from bronze.my_clock as c)",
        )
    ]


def test_a_table_of_periods_is_no_clock() -> None:
    sql = (
        "select p.name, count(*) as n from bronze.orders as o cross join bronze.periods as p"
        " where o.ordered_at >= p.starts_at - interval 1 hour and o.ordered_at < p.ends_at"
        " group by 1"
    )

    assert "CLOCK_NOT_ONE_ROW" not in codes(sql)
