"""Plans of SQL that has rules, and of SQL that has none."""

from __future__ import annotations

import pytest

from livemart.plan.planner import Full, Inputs, plan_query
from livemart.plan.strategies.signed import Append, Signed

INPUTS = Inputs(columns={"s.sales": ("shop", "amount", "sold_at")})


def test_text_that_cannot_be_parsed_is_recomputed_with_a_reason() -> None:
    plan = plan_query("select from where", INPUTS)

    assert isinstance(plan.strategy, Full)
    assert [reason.code for reason in plan.reasons] == ["PARSE_UNSUPPORTED"]


def test_sql_that_is_not_deterministic_is_recomputed_in_every_batch() -> None:
    plan = plan_query("select shop, rand() as r from s.sales", INPUTS)

    assert isinstance(plan.strategy, Full)
    assert plan.strategy.is_volatile


def test_rows_of_tables_that_only_grow_are_only_added() -> None:
    sql = "select shop, amount from s.sales where amount > 0"

    changing = plan_query(sql, INPUTS)
    growing = plan_query(sql, Inputs(INPUTS.columns, append_only={"s.sales"}))

    assert type(changing.strategy) is Signed
    assert type(growing.strategy) is Append


def test_a_table_that_is_not_known_is_a_reason() -> None:
    plan = plan_query("select * from s.others", INPUTS)

    assert plan.reasons[0].code == "INPUT_NOT_IN_DELTA"


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


def test_a_part_that_is_read_twice_is_one_stage_before_its_readers() -> None:
    groups = "select k, count(*) as n from s.t group by k"
    plan = plan_query(
        f"with g as ({groups}) select n, count(*) as times from ({groups}\n) as h"
        " where n > (select avg(n) from g) group by n",
        Inputs({"s.t": ("k", "x")}),
    )

    before: list[str] = ["s.t"]
    for stage in plan.stages:
        assert stage.plan.flat is not None
        assert set(stage.plan.flat.relations) <= set(before)
        before.append(stage.relation)
    assert len(before) == len(set(before)) == 3
    assert plan.flat is not None
    assert set(plan.flat.relations) == set(before[1:])
