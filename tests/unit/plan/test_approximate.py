"""Which output columns come from a sketch or an estimate, through CTEs, unions and other models."""

from __future__ import annotations

import pytest

from livemart.plan.approximate import (
    ByOrder,
    approximate_columns,
    columns_by_order,
    lists_decide_rows,
)
from livemart.plan.sql.flatten import Flat, flatten

COLUMNS = {"m.orders": ("shop_id", "customer_id", "amount"), "m.sketches": ("shop_id", "sketch")}


def approximate(sql: str, **upstream: dict[str, str]) -> dict[str, str]:
    known = {name.replace("__", "."): found for name, found in upstream.items()}
    return approximate_columns(flatten(sql, {}), COLUMNS, known)


def test_a_sketch_is_approximate_and_its_neighbours_are_not() -> None:
    sql = (
        "select shop_id, hll_sketch_agg(customer_id, 12) as sketch, sum(amount) as s"
        " from m.orders group by 1"
    )

    assert approximate(sql) == {"sketch": "hll_sketch_agg"}


def test_what_is_computed_from_an_approximate_column_is_approximate() -> None:
    sql = (
        "with a as (select shop_id, approx_percentile(amount, 0.5) as median"
        " from m.orders group by 1),"
        " b as (select * from a) select shop_id, round(b.median, 2) as rounded from b"
    )

    assert list(approximate(sql)) == ["rounded"]


def test_an_approximate_column_of_another_model_is_inherited() -> None:
    sql = (
        "select shop_id, hll_sketch_estimate(hll_union_agg(sketch)) as customers"
        " from m.sketches group by 1"
    )

    assert "customers" in approximate(sql)
    assert approximate(
        "select shop_id, sketch as s from m.sketches", m__sketches={"sketch": "x"}
    ) == {"s": "x"}


def test_one_branch_of_a_union_is_enough() -> None:
    sql = (
        "select shop_id, 1 as n from m.orders"
        " union all select shop_id, approx_percentile(amount, 0.5) from m.orders"
    )

    assert list(approximate(sql)) == ["n"]


def test_exact_functions_are_exact() -> None:
    sql = (
        "select approx_count_distinct(customer_id) as a, avg(amount) as b, count(*) as c"
        " from m.orders"
    )

    assert approximate(sql) == {}


def test_a_list_depends_on_the_order_of_rows_and_a_picked_value_does_not() -> None:
    sql = (
        "with a as (select shop_id, collect_list(amount) as amounts, max(amount) as most,"
        " max_by(amount, customer_id) as newest, size(collect_list(amount)) as orders"
        " from m.orders group by 1)"
        " select shop_id, array_join(amounts, ',') as joined, most, newest, orders,"
        " size(amounts) as n, amounts[0] as some, transform(amounts, (x, i) -> x * i) as moved,"
        " concat_ws(' ', amounts, amounts) as twice, concat_ws(' ', amounts) as once,"
        " coalesce(amounts, array()) as all, array_sort(slice(amounts, 1, 2)) as two,"
        " cast(array_join(amounts, '.') as int) as number from a"
    )

    assert columns_by_order(flatten(sql, {}), COLUMNS) == {
        "joined": ByOrder(True, ","),
        "once": ByOrder(True, " "),
        "all": ByOrder(True),
        **dict.fromkeys(("some", "moved", "twice", "two", "number"), ByOrder()),
    }


@pytest.mark.parametrize(
    ("listed", "expected"),
    [
        ("listagg(amount, ', ')", ByOrder(True, ", ")),
        ("string_agg(distinct amount, '|')", ByOrder(True, "|")),
        ("listagg(amount)", ByOrder()),
        # The order that is written down counts.
        ("listagg(amount, ',') within group (order by customer_id)", ByOrder()),
        ("array_join(collect_list(amount), '')", ByOrder()),
        ("array_join(collect_list(amount), ',', 'none')", ByOrder()),
        ("flatten(collect_list(array(amount, 1)))", ByOrder()),
        ("struct(collect_list(amount))", ByOrder()),
        ("mode(amount)", ByOrder()),
    ],
)
def test_a_list_is_known_by_its_pieces_or_not_at_all(listed: str, expected: ByOrder) -> None:
    sql = f"select shop_id, {listed} as x from m.orders group by 1"

    assert columns_by_order(flatten(sql, {}), COLUMNS) == {"x": expected}


def test_both_branches_of_a_union_must_list() -> None:
    listed = "select shop_id, collect_list(amount) as x from m.orders group by 1"
    other = "select shop_id, array(1) as x from m.orders"

    def words(*branches: str) -> dict[str, ByOrder]:
        return columns_by_order(flatten(" union all ".join(branches), {}), COLUMNS)

    assert words(listed, listed) == {"x": ByOrder(True)}
    assert words(listed, other) == words(other, listed) == {"x": ByOrder()}


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("select shop_id, x from a", False),
        ("select shop_id, x from a where size(x) > 2", False),
        ("select shop_id, x from a where x[0] > 2", True),
        ("select shop_id, pos from a lateral view posexplode(x) as pos, v", True),
        ("select a.shop_id from a join m.orders as o on o.amount = a.x[0]", True),
        ("select shop_id from a order by x limit 3", True),
        ("select distinct x from a", True),
        ("select x from a union select x from a", True),
        ("select x from a union all select x from a", False),
        ("select shop_id from m.orders group by 1 having first(amount) > 1", False),
    ],
)
def test_a_list_may_decide_which_rows_there_are(sql: str, expected: bool) -> None:
    text = f"with a as (select shop_id, collect_list(amount) as x from m.orders group by 1) {sql}"

    assert lists_decide_rows(flatten(text, {}), COLUMNS) is expected


def test_sql_that_only_spark_can_take_apart_has_no_list_that_decides() -> None:
    flat = Flat(("from m.orders |> aggregate count(*) as n group by shop_id",))

    assert not lists_decide_rows(flat, COLUMNS)
