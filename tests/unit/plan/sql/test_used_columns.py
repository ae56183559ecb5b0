"""Which stored columns a query needs."""

from __future__ import annotations

import pytest

from livemart.plan.plan import Inputs
from livemart.plan.planner import plan_query
from livemart.plan.sql.flatten import Flat, flatten
from livemart.plan.sql.used_columns import named_columns, open_names

INPUTS = Inputs(columns={"s.sales": ("sale_id", "shop", "amount", "note")})


def used(sql: str) -> object:
    return plan_query(sql, INPUTS).used


def test_columns_that_no_result_depends_on_are_not_read() -> None:
    inner = "select shop, amount, note from s.sales where sale_id is not null"

    assert used(f"select shop, sum(amount) as total from ({inner}) group by 1") == {
        0: frozenset({"sale_id", "shop", "amount"})
    }


def test_all_columns_are_read_where_a_name_says_nothing() -> None:
    assert used("select a from s.sales as t (a, b, c, d)") == {}


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("select t.* from mart.totals as t", None),
        ("select * except (id) from mart.totals", None),
        ("with t as (select * from mart.totals) select id from t", None),
        ("select t.id from mart.totals as t natural join mart.others as o", None),
        ("select a from mart.totals as t (a, b)", None),
        ("select hash(*) as code from mart.totals", None),
        ("select id, count(*) as n from mart.totals group by id", {"id"}),
        ("select t.id, 2 * t.id as Twice from mart.totals as t order by twice", {"t", "twice"}),
        (
            "select o.id from mart.orders as o"
            " where exists (select 1 from mart.prices as p where p.id = o.id and p.kind = Tier)",
            {"o", "p", "tier"},
        ),
    ],
)
def test_names_that_a_new_column_may_take_over(sql: str, expected: set[str] | None) -> None:
    """None: the query has all columns, or names them by place."""
    assert open_names(flatten(sql, {})) == expected


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("select shop, note from s.sales", {"shop", "note"}),
        ("select * from s.sales", set()),
        ("select t.*, t.NOTE as remark from s.sales as t", {"note"}),
        ("select count(*) as n from s.sales where note is null", {"note"}),
        ("with t as (select * from s.sales) select note from t", {"note"}),
        (
            "with t as (select * from s.sales), u as (select t.* from t) select u.note from u",
            {"note"},
        ),
        ("with t as (select * except (note) from s.sales) select note from t", set()),
        ("with t as (select shop as note from s.sales) select note from t", {"shop"}),
        ("select shop from s.sales union all select note from s.sales", {"shop", "note"}),
        (
            "with t as (select * from s.sales union all select * from s.sales) select note from t",
            {"note"},
        ),
        ("select word from s.sales lateral view explode(split(note, ' ')) w as word", {"note"}),
        ("select shop as note, note as n from (select shop, 1 as note from s.sales)", {"shop"}),
        (
            "select o.shop from s.others as o where exists (select 1 from s.sales as t where "
            "t.note = o.note)",
            {"note"},
        ),
        ("select o.note from s.others as o join s.sales as t on t.shop = o.shop", {"shop"}),
        ("select nonsense(", set()),
    ],
)
def test_a_column_is_named_where_its_name_is_written_and_not_by_a_star(
    sql: str, expected: set[str]
) -> None:
    columns = INPUTS.columns
    flat = flatten(sql, {}) if "nonsense" not in sql else Flat((sql,))

    assert named_columns(flat, columns) == {("s.sales", name) for name in expected}
