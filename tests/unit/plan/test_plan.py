"""The plan of a query, with and without its stages."""

from __future__ import annotations

from livemart.plan.plan import Full, Inputs
from livemart.plan.planner import plan_query
from livemart.plan.reasons import Reason

SALES = Inputs(columns={"s.sales": ("shop", "amount")}, clocks=frozenset({"s.clock"}))
CUT = "select shop, sum(amount) as total from s.sales group by shop order by total limit 3"
REASON = Reason("POLICY_FULL", "the model's policy is full", None)


def test_a_plan_without_its_stages_reads_the_tables_of_the_whole_query() -> None:
    cut = plan_query(CUT, SALES)
    assert cut.flat is not None and cut.flat.relations != ("s.sales",)

    whole = cut.uncut((REASON,))

    assert whole.strategy == Full((REASON,))
    assert whole.flat is not None and whole.flat.relations == ("s.sales",)
    assert (whole.stages, whole.unique_key, whole.names) == ((), (), cut.names)


def test_a_plan_that_is_not_cut_keeps_its_facts() -> None:
    plan = plan_query("select shop, count(*) as n from s.sales group by shop", SALES)

    whole = plan.uncut((REASON,))

    assert (whole.strategy, whole.unique_key) == (Full((REASON,)), ("shop",))
    assert whole.flat == plan.flat


def test_facts_of_relations_that_a_query_does_not_read_are_left_out() -> None:
    assert SALES.of(("s.other",)) == Inputs({})
    assert SALES.of(("s.sales",)) == Inputs(SALES.columns)
