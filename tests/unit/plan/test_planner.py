"""Plans of SQL that has rules, and of SQL that has none."""

from __future__ import annotations

from livemart.plan.plan import Full, Inputs
from livemart.plan.planner import PlannedQueries, plan_query, plan_varying

INPUTS = Inputs(columns={"s.sales": ("shop", "amount", "sold_at")})


def test_text_that_cannot_be_parsed_is_recomputed_with_a_reason() -> None:
    plan = plan_query("select from where", INPUTS)

    assert isinstance(plan.strategy, Full)
    assert [reason.code for reason in plan.reasons] == ["PARSE_UNSUPPORTED"]


def test_sql_that_is_not_deterministic_is_recomputed_in_every_batch() -> None:
    plan = plan_query("select shop, rand() as r from s.sales", INPUTS)

    assert isinstance(plan.strategy, Full)
    assert plan.strategy.is_volatile


def test_a_table_that_is_not_known_is_a_reason() -> None:
    plan = plan_query("select * from s.others", INPUTS)

    assert plan.reasons[0].code == "INPUT_NOT_IN_DELTA"
    assert plan.reasons[0].suggestion == (
        "declare them in YAML, or `plan` again once the table exists"
    )


def test_a_column_that_none_of_two_tables_is_known_to_have_is_named() -> None:
    inputs = Inputs(columns={**INPUTS.columns, "s.shops": ("shop",)})
    sql = "select m.shop, n from s.sales as l join (select shop, city as n from s.shops) as m"

    one = plan_query(f"{sql} on l.shop = m.shop", inputs)
    two = plan_query("select l.shop, city from s.sales as l join s.shops as m", inputs)

    for plan in (one, two):
        (reason,) = plan.reasons
        assert reason.message == "no table that the query reads is known to have the column city"
        assert reason.suggestion is not None


def test_the_run_of_a_query_that_is_cut_stamps_its_sql_as_one() -> None:
    stamped, deciding = (
        [f"select count(distinct shop) as n, '{run}' as run from s.sales {where}" for run in "ab"]
        for where in ("", "where amount > {}")
    )
    deciding = [text.format(number) for number, text in enumerate(deciding)]

    for now, other in (stamped, deciding):
        assert plan_query(now, INPUTS).steps is not None
        plan = plan_varying(now, [(other, {})], INPUTS, PlannedQueries())
        flat = plan.stamped or plan.flat
        assert flat is not None
        assert flat.relations == ("s.sales",)
