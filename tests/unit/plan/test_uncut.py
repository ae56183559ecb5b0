"""The strategy and the facts of a query that is planned as it is written."""

from __future__ import annotations

import pytest

from livemart.plan.plan import Full, Inputs
from livemart.plan.planner import plan_query
from livemart.plan.sql.flatten import flatten
from livemart.plan.strategies.signed import Append, Signed
from livemart.plan.uncut import plan_uncut

INPUTS = Inputs(columns={"s.sales": ("shop", "amount", "sold_at")})


def test_rows_of_tables_that_only_grow_are_only_added() -> None:
    sql = "select shop, amount from s.sales where amount > 0"

    changing = plan_query(sql, INPUTS)
    growing = plan_query(sql, Inputs(INPUTS.columns, append_only={"s.sales"}))

    assert type(changing.strategy) is Signed
    assert type(growing.strategy) is Append


@pytest.mark.parametrize(
    ("sql", "is_read_whole"),
    [
        ("select sum(amount) / max(amount) as share from s.sales", True),
        ("select sum(amount) + rand() as share from s.sales", False),
        ("select sum(others) as share from s.sales", False),
    ],
)
def test_a_query_may_be_read_whole_if_its_rows_alone_decide(sql: str, is_read_whole: bool) -> None:
    plan = plan_uncut(flatten(sql, {}), INPUTS)

    assert isinstance(plan.strategy, Full)
    assert plan.reads_rows_alone is is_read_whole


@pytest.mark.parametrize(
    ("select", "flag"),
    [
        ("at <= (select m.upto from s.marks as m) as is_over, at", ("is_over", "at")),
        ("coalesce(at <= (select m.upto from s.marks as m), false) as over", ("over", None)),
        ("at, not (at > (select m.upto from s.marks as m)) as is_over", None),
        ("at, at <= (select m.upto from s.marks as m) and id > 1 as is_over", None),
        ("at, id > 1 as is_over", None),
        ("at, at > (select m.upto from s.marks as m) as is_open", None),
    ],
)
def test_a_column_that_is_one_comparison_with_a_value_says_which_rows_are_final(
    select: str, flag: tuple[str, str | None] | None
) -> None:
    inputs = Inputs(columns={"s.t": ("id", "at"), "s.marks": ("upto",)})

    found = plan_query(f"with t as (select id, {select} from s.t) select * from t", inputs)

    known = found.final_flag
    assert (known and (known.column, known.time)) == flag
    assert known is None or (known.relation, known.watermark) == ("s.marks", "upto")


def test_a_table_where_no_rule_looks_makes_the_query_full() -> None:
    inputs = Inputs({**INPUTS.columns, "s.returns": ("shop",)})

    plan = plan_query("select shop from s.sales order by (select 1 from s.returns)", inputs)

    assert [reason.message for reason in plan.reasons] == [
        "s.returns is read in a place that has no rule"
    ]
    unused = plan_query("with other as (select * from s.returns) select shop from s.sales", inputs)
    assert unused.strategy.name == "signed"
