"""Which output columns come from a sketch or an estimate, through CTEs, unions and other models."""

from __future__ import annotations

from livemart.plan.approximate import approximate_columns, columns_by_order
from livemart.plan.sql.flatten import flatten

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
        " concat_ws(' ', amounts, amounts) as twice, struct(amounts as all) as held from a"
    )

    assert columns_by_order(flatten(sql, {}), COLUMNS) == {
        "joined": "listed",
        "some": "ordered",
        "moved": "ordered",
        "twice": "ordered",
        "held": "listed",
    }
