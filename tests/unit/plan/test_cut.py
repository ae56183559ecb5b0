"""Where a query with ORDER BY and LIMIT is cut in two steps, and where it is not."""

from __future__ import annotations

import pytest

from livemart.plan.cut import cut_limit, with_row_count
from livemart.plan.sql.flatten import flatten


def steps(text: str, *names: str) -> tuple[str, str] | None:
    """Return the SQL of stage and last step; the stage is called `stage`."""
    cut = cut_limit(flatten(text, {}), names)
    if cut is None:
        return None
    stage, rest = cut.stage.render(lambda it: it.relation), cut.rest.render(lambda _: "stage")
    return " ".join(stage.split()), " ".join(rest.split())


TOTALS = "select k, sum(x) as total from a.t as t group by k"


@pytest.mark.parametrize(
    ("text", "names", "stage", "last_step"),
    [
        (
            f"{TOTALS} order by total desc nulls last, 1 limit 10 offset 5 -- the end",
            ("k", "total"),
            TOTALS,
            "select * from stage order by total desc nulls last, 1 limit 10 offset 5 -- the end",
        ),
        (
            f"{TOTALS} order by greatest(max(y), 2) desc, t.k asc nulls first limit 3",
            ("k", "total"),
            "select k, sum(x) as total, greatest(max(y), 2) as `__livemart_order_1`, "
            "t.k as `__livemart_order_2` from a.t as t group by k",
            "select * except (`__livemart_order_1`, `__livemart_order_2`) from stage order by "
            "`__livemart_order_1` desc, `__livemart_order_2` asc nulls first limit 3",
        ),
        (
            "with c as (select k from a.t as t order by z limit 9) "
            "select -k as k from c where k is distinct from 1 order by k + 1 LIMIT 2",
            ("k",),
            "with c as (select k from a.t as t order by z limit 9) "
            "select -k as k from c where k is distinct from 1",
            "select * from stage order by k + 1 LIMIT 2",
        ),
        (
            "select k, x is distinct from y as d from a.t as t order by z limit 2",
            ("k", "d"),
            "select k, x is distinct from y as d, z as `__livemart_order_1` from a.t as t",
            "select * except (`__livemart_order_1`) from stage order by `__livemart_order_1` "
            "limit 2",
        ),
        (
            "select k from a.t as t union all select k from a.u as u order by k limit 2",
            ("k",),
            "select k from a.t as t union all select k from a.u as u",
            "select * from stage order by k limit 2",
        ),
        (
            "select k, count(*) as n from a.t as t group by k limit 3 offset 2",
            ("k", "n"),
            "select k, count(*) as n from a.t as t group by k",
            "select * from stage limit 3 offset 2",
        ),
        (
            "select distinct k from a.t as t order by case when k > 1 then 0 end, k limit 2",
            ("k",),
            "select distinct k from a.t as t",
            "select * from stage order by case when k > 1 then 0 end, k limit 2",
        ),
    ],
)
def test_the_order_moves_to_the_last_step_with_hidden_columns_for_what_it_alone_reads(
    text: str, names: tuple[str, ...], stage: str, last_step: str
) -> None:
    assert steps(text, *names) == (stage, last_step)


@pytest.mark.parametrize(
    "text",
    [
        "select k from a.t order by k",
        "select k from a.t order by k limit all",
        "select k from a.t order by k limit 1 + 2",
        "select k from a.t order by all limit 3",
        "select k from a.t order by k sort by x limit 3",
        "(select k from a.t order by k limit 3)",
        # The name is an output in one place, and a column in the other.
        "select k from a.t order by k + x limit 3",
        "select sum(x) as k from a.t group by y order by sum(k) limit 3",
        "select k from a.t as k order by k.x limit 3",
        # With the hidden column these would have other rows.
        "select distinct k from a.t order by x limit 3",
        "select k, count(*) from a.t group by all order by x limit 3",
        "select k from a.t union all select k from a.u order by u.x limit 3",
        "select k from a.t order by (select max(x) from a.u) limit 3",
        "select k, grouping_id() from a.t group by cube (k, x) order by grouping(k) limit 3",
    ],
)
def test_what_may_mean_something_else_in_two_steps_is_not_cut(text: str) -> None:
    assert steps(text, "k") is None


def counted(text: str, *names: str) -> tuple[str, str] | None:
    """Return the SQL of stage and last step of a query whose stage counts its rows."""
    cut = cut_limit(flatten(text, {}), names)
    assert cut is not None
    if (with_count := with_row_count(cut)) is None:
        return None
    stage, rest = (it.render(lambda it: it.relation) for it in (with_count.stage, with_count.rest))
    return stage, rest.replace(with_count.stage.stage_relation, "stage")


def test_groups_are_counted_in_a_column_that_the_last_step_does_not_see() -> None:
    assert counted(f"{TOTALS} order by max(y) limit 2", "k", "total") == (
        "select k, sum(x) as total, max(y) as `__livemart_order_1`, count(*) as `__livemart_rows`"
        " from a.t as t group by k ",
        "select * except (`__livemart_order_1`) from"
        " (select * except (`__livemart_rows`) from stage)"
        "\norder by `__livemart_order_1` limit 2\n",
    )


@pytest.mark.parametrize(
    "text",
    [
        "select k from a.t as t limit 2",
        "select k, sum(x) as total from a.t as t group by all limit 2",
        "select distinct k, sum(x) as total from a.t as t group by k limit 2",
        "select k, sum(x) as total from a.t as t group by k union all select 1, 2 limit 2",
    ],
)
def test_rows_without_plain_groups_are_not_counted(text: str) -> None:
    assert counted(text, "k", "total") is None
