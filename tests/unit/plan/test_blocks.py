"""Which queries a text is written of, and what each of them can see."""

from __future__ import annotations

import pytest

from livemart.plan.blocks import Blocks
from livemart.plan.sql.flatten import Flat, flatten


def blocks(text: str) -> Blocks:
    return Blocks(flatten(text, {}))


def listed(text: str) -> list[tuple[str, str]]:
    found = blocks(text)
    shown = found.flat.text
    return [(it.kind, " ".join(shown[it.start : it.end].split())) for it in found]


def alone(text: str, kind: str) -> list[str | None]:
    """Return the blocks of a kind as separate queries."""
    found = blocks(text)
    parts = [found.standing_alone(it) for it in found if it.kind == kind]
    return [
        None if it is None else " ".join(it.render(lambda hole: hole.relation).split())
        for it in parts
    ]


def test_the_outermost_come_first_and_the_last_of_each_depth() -> None:
    text = (
        "with c as (select 1 as x)"
        " select (select 2) as v from (select 3 as y where y in (select 4)) as t,"
        " (select 5 as z) as u where exists (select 6) and t.y in (1, (select 7))"
    )

    assert [kind for kind, _ in listed(text)] == [
        *("top", "value", "asked", "table", "table", "value", "cte", "asked"),
    ]
    assert listed(text)[0][1].startswith("select (select 2) as v from")
    assert listed(text)[1:3] == [("value", "select 7"), ("asked", "select 6")]
    assert listed(text)[-1] == ("asked", "select 4")


@pytest.mark.parametrize(
    "text",
    [
        "select x from a.t as t, lateral (select 1 as y)",
        "select x from a.t where x > all (select y from a.u)",
        "with recursive c as (select 1 as x) select x from c",
    ],
)
def test_branches_and_queries_that_may_see_more_are_none(text: str) -> None:
    assert {kind for kind, _ in listed(text)} <= {"top", "value"}


def test_branches_of_a_union_are_queries_without_its_order() -> None:
    text = (
        "with c as (select 1 as x union select * except (y) from a.t) select x, 1 as y from c"
        " union all select 2, 3 union distinct (select 4, (5)) order by x limit 3"
    )

    assert [it for it in listed(text) if it[0] in ("first", "branch")] == [
        ("branch", "select 4, (5)"),
        ("branch", "select 2, 3"),
        ("first", "select x, 1 as y from c"),
        ("branch", "select * except (y) from __livemart_0__ as `t`"),
        ("first", "select 1 as x"),
    ]
    assert alone(text, "branch")[1] == "select 2, 3"


def test_a_set_operation_may_begin_with_a_bracket() -> None:
    text = (
        "with c as (((select 1 as x) except select 2) except (select 3))"
        " select x from ((select 1 as x) union all select 2) as t where x in ((select 3))"
    )

    assert [it for it in listed(text) if it[0] != "top"] == [
        ("value", "select 3"),
        ("table", "(select 1 as x) union all select 2"),
        ("cte", "((select 1 as x) except select 2) except (select 3)"),
        ("branch", "select 2"),
        ("first", "select 1 as x"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "select 1 as x intersect select 2",
        "select 1 as x union all select 2 except select 3",
        "select * except (y) from a.t",
        # Its branches see names that others do not.
        "with recursive c as (select 1 as x) select x from c union all select 2",
    ],
)
def test_branches_of_other_operations_are_none(text: str) -> None:
    assert {kind for kind, _ in listed(text)} == {"top"}


def test_a_query_stands_alone_with_what_it_sees() -> None:
    text = (
        "with a as (select k from s.t), `b c` as (select k from a), d (n) as (select 1)"
        " select * from (select k from `b c`) as q, (select n from D) as r, (select 1 as x) as p"
    )

    assert alone(text, "table") == [
        "select 1 as x",
        "with d (n) as (select 1) select n from D",
        "with a as (select k from s.t as `t`), `b c` as (select k from a) select k from `b c`",
    ]
    assert alone(text, "cte")[0] == "select 1"


def test_a_query_with_names_of_its_own_stands_behind_those_that_it_sees() -> None:
    text = (
        "with a as (select k from s.t), b as (with c as (select k from a) select k from c"
        " union all select 1), d as (with a as (select 1 as k) select k from a) select * from b, d"
    )

    assert alone(text, "cte") == [
        None,
        "with a as (select k from s.t as `t`), c as (select k from a) select k from c"
        " union all select 1",
        "select k from s.t as `t`",
    ]


def test_names_that_a_query_within_gives_are_not_confused_with_others() -> None:
    text = (
        "with a as (select 1 as x) select * from"
        " (with a as (select 2 as x) select * from (select x from a) as q) as r"
    )

    assert alone(text, "table") == [None]
    assert ("table", "select x from a") not in listed(text)


def test_common_tables_that_nothing_reads_are_left_out() -> None:
    found = blocks(
        "with a as (select k from s.t), b as (select k from a), c as (select 1 as x)"
        " select x from c"
    )

    kept = found.without_unread()

    assert isinstance(kept, Flat)
    assert " ".join(kept.text.split()) == "with c as (select 1 as x) select x from c"
    assert kept.occurrences == ()
    assert blocks("select x from s.t").without_unread().relations == ("s.t",)


def test_a_long_chain_of_common_table_expressions_is_followed_once() -> None:
    """Each reads those before it: to follow every way to the first one would take hours."""
    names = [f"c{number}" for number in range(60)]
    chain = "".join(
        f", {name} as (select * from {', '.join(names[:n])})" for n, name in enumerate(names) if n
    )
    text = f"with c0 as (select 1 as x){chain} select * from (select * from c59) as t"

    [found] = alone(text, "table")

    assert found is not None
    assert [name for name in names if f"{name} as" not in found] == []
