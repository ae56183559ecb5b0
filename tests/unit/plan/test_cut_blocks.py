"""Where a query is cut at one of the queries that it is written of, and where it is not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from livemart.plan.block_part import BlockPart, block_part
from livemart.plan.blocks import Block, Blocks
from livemart.plan.cut import Cut
from livemart.plan.cut_blocks import cut_rows, cut_totals, cut_whole, cuts_of_blocks
from livemart.plan.sql.flatten import Occurrence, flatten
from livemart.plan.sql.template import Template

COLUMNS = {"a.t": ("k", "x", "y", "dup"), "a.u": ("k", "z", "dup")}
Way = Callable[[BlockPart], Cut | None]


def steps(way: Way, text: str, kind: str = "top") -> tuple[str, str] | None:
    """Return the SQL of stage and rest of the first block of a kind; the stage is `stage`."""
    blocks = Blocks(flatten(text, {}))
    block = next(it for it in blocks if it.kind == kind)
    alone = blocks.standing_alone(block)
    part = None if alone is None else block_part(blocks, block, alone, COLUMNS)
    cut = None if part is None else way(part)
    return None if cut is None else texts(cut)


def texts(cut: Cut) -> tuple[str, str]:
    names = {cut.stage.stage_relation: "stage"}
    stage, rest = (
        it.render(lambda mention: names.get(mention.relation, mention.relation))
        for it in (cut.stage, cut.rest)
    )
    return " ".join(stage.split()), " ".join(rest.split())


@pytest.mark.parametrize(
    ("text", "stage", "rest"),
    [
        (
            "select sum(x) / 7.0 as s, 'all' as of_it, count(distinct y) + sum(x) as c"
            " from a.t as t where k > 1",
            "select sum(x) as __livemart_total_1, sum(x) as __livemart_total_2,"
            " count(*) as __livemart_rows from a.t as t where k > 1",
            "select __livemart_total_1 / 7.0 as s, 'all' as of_it,"
            " (select count(distinct y) from a.t as t where k > 1) + __livemart_total_2 as c"
            " from stage",
        ),
        (
            "select count( DISTINCT (upper(y)) ) filter (where x = ')' or k > 1) * 2 as n,"
            " count(distinct t.k) as m from a.t as t, a.u as u",
            "select case when x = ')' or k > 1 then (upper(y)) end as __livemart_counted,"
            " count(*) as __livemart_rows from a.t as t, a.u as u group by"
            " case when x = ')' or k > 1 then (upper(y)) end",
            "select count(__livemart_counted) * 2 as n,"
            " (select count(distinct t.k) from a.t as t, a.u as u) as m from stage",
        ),
        (
            "select sum(x) as s, (select max(z) from a.u as u) + 1 as m from a.t as t",
            "select sum(x) as __livemart_total_1, count(*) as __livemart_rows from a.t as t",
            "select __livemart_total_1 as s, (select max(z) from a.u as u) + 1 as m from stage",
        ),
        (
            "select sum(x) filter (where y = 'a b') as s from a.t as t, a.u as u -- the end",
            "select sum(x) filter (where y = 'a b') as __livemart_total_1,"
            " count(*) as __livemart_rows from a.t as t, a.u as u",
            "select __livemart_total_1 as s from stage",
        ),
    ],
)
def test_totals_become_one_row_of_plain_aggregates(text: str, stage: str, rest: str) -> None:
    found = steps(cut_totals, text)

    assert found is not None
    assert (found[0], found[1].removesuffix(" -- the end")) == (stage, rest)


@pytest.mark.parametrize(
    "text",
    [
        "select k, sum(x) as s from a.t as t group by k",
        "select sum(x) as s from a.t as t having sum(x) > 1",
        "select distinct sum(x) as s from a.t as t",
        "select sum(x) from a.t as t",
        "select sum(x) over () as s, count(*) as n from a.t as t",
        "select sum(x) + (select max(z) from a.u) as s from a.t as t",
        "select sum(x) as k, k as s from a.t as t",
        "select 1 as one from a.t as t",
        "select sum(x) as s",
        "select sum(x) as s from a.t as t union all select 1",
        "select sum(x) as s, (select max(z) from a.u as u where u.k = t.k) as m from a.t as t",
        # A window leaves out rows without a time, which the other total counts.
        "select count(*) as n, count(distinct window(x, '1 hour')) as s from a.t as t",
    ],
)
def test_what_is_no_plain_total_is_not_cut_as_one(text: str) -> None:
    assert steps(cut_totals, text) is None


@pytest.mark.parametrize(
    "call",
    ["count(distinct k, x)", "count(distinct (k, x))", "count(distinct 1)", "sum(distinct x)",
     "count(distinct s)"],
)  # fmt: skip
def test_values_that_no_stage_can_have_are_counted_where_they_are(call: str) -> None:
    stage, rest = steps(cut_totals, f"select {call} as n, sum(x) as s from a.t as t") or ("", "")

    assert "(select" not in rest
    assert f"{call} as __livemart_total_1" in stage


@pytest.mark.parametrize(
    ("text", "stage", "rest"),
    [
        (
            "select t.y, u.z as Other, count(*) as n, max(t.x) as most, grouping(t.y) as g"
            " from a.t as t join a.u as u on t.k = u.k where x = 'from'"
            " group by rollup (t.y, z) having max(t.x) > 3 order by Other",
            "select t.y as __livemart_column_1, u.z as __livemart_column_2,"
            " t.x as __livemart_column_3 from a.t as t join a.u as u on t.k = u.k where x = 'from'",
            "select __livemart_column_1 as y, __livemart_column_2 as Other, count(*) as n,"
            " max(__livemart_column_3) as most, grouping(__livemart_column_1) as g from stage"
            " group by rollup (__livemart_column_1, __livemart_column_2)"
            " having max(__livemart_column_3) > 3 order by Other",
        ),
        (
            "select upper(t.dup) as dup, max(x) as m from a.t as t join a.u as u on t.k = u.k"
            " group by cube (t.dup) order by max(x)",
            "select t.dup as __livemart_column_1, x as __livemart_column_2 from a.t as t"
            " join a.u as u on t.k = u.k",
            "select upper(__livemart_column_1) as dup, max(__livemart_column_2) as m from stage"
            " group by cube (__livemart_column_1) order by `m`",
        ),
        (
            "select count(*) as n from a.t as t, a.u where t.k = u.k",
            "select 1 as __livemart_rows from a.t as t, a.u as `u` where t.k = u.k",
            "select count(*) as n from stage",
        ),
        (
            "select `T`.`x` as v, count(distinct `T`.y) as n from a.t as `T`"
            " group by cube (`T`.`x`)",
            "select `T`.`x` as __livemart_column_1, `T`.y as __livemart_column_2 from a.t as `T`",
            "select __livemart_column_1 as v, count(distinct __livemart_column_2) as n from stage"
            " group by cube (__livemart_column_1)",
        ),
        # Fields that have names already.
        (
            "select max(struct(y as y, x as other)).y as m from a.t as t",
            "select y as __livemart_column_1, x as __livemart_column_2 from a.t as t",
            "select max(struct(__livemart_column_1 as y, __livemart_column_2 as other)).y as m"
            " from stage",
        ),
        (
            "with c as (select k, x from a.t), d as (select 1 as one)"
            " select avg(c.x) as s from c where k is distinct from 2",
            "with c as (select k, x from a.t as `t`) select c.x as __livemart_column_1"
            " from c where k is distinct from 2",
            "select avg(__livemart_column_1) as s from stage",
        ),
    ],
)
def test_rows_below_totals_keep_the_columns_that_are_used_above(
    text: str, stage: str, rest: str
) -> None:
    assert steps(cut_rows, text) == (stage, rest)


@pytest.mark.parametrize(
    "text",
    [
        "select k, max(x) as m from a.t as t group by k",
        "select x as m from a.t as t",
        # In the rest these names would mean something else, or nothing.
        "select upper(t.k) as k, max(x) as m from a.t as t group by rollup (t.k) order by k",
        "select t.dup, max(x) as m from a.t as t join a.u as u on t.k = u.k group by cube (t.dup)"
        " having dup > 1",
        "select max(unknown) as m from a.t as t",
        "select max(x) as m, (select max(z) from a.u) as o from a.t as t",
        "select count(t.*) as m from a.t as t",
        "select max(x) from a.t as t",
        "select k, max(x) as m from a.t join a.u using (k) group by rollup (k)",
        "select max(i) as m from a.t as t lateral view explode(y) e as i",
        "select max(b) as m from a.t as t (b, c, d, e)",
        "select max(k) as m from a.t as t pivot (max(x), min(x) for y in (1, 2))",
        "select max(struct(t.x, t.y)).y as m from a.t as t",
    ],
)
def test_rows_whose_columns_may_mean_something_else_are_not_cut(text: str) -> None:
    assert steps(cut_rows, text) is None


@pytest.mark.parametrize(
    ("kind", "text", "stage", "rest"),
    [
        (
            "table",
            "with c as (select k from a.t) select q.n from (select k, count(*) as n from c"
            " group by k) as q join c on c.k = q.k",
            "with c as (select k from a.t as `t`) select k, count(*) as n from c group by k",
            "with c as (select k from a.t as `t`) select q.n from (select * from stage) as q"
            " join c on c.k = q.k",
        ),
        (
            "cte",
            "with c as (select k from a.t), d as (select max(k) as m from c) select m from d",
            "with c as (select k from a.t as `t`) select max(k) as m from c",
            "with d as (select * from stage) select m from d",
        ),
        (
            "value",
            "select k from a.t where x > (select 0.5 * max(z) from a.u)",
            "select 0.5 * max(z) as __livemart_value from a.u as `u`",
            "select k from a.t as `t` where x > (select * from stage)",
        ),
        (
            "asked",
            "select k from a.t where k in (select k from a.u where z > 1)",
            "select k from a.u as `u` where z > 1",
            "select k from a.t as `t` where k in (select * from stage)",
        ),
    ],
)
def test_a_subquery_becomes_a_stage_as_it_is_written(
    kind: str, text: str, stage: str, rest: str
) -> None:
    assert steps(cut_whole, text, kind) == (stage, rest)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("top", "select k from a.t"),
        ("value", "select k from a.t as t where x > (select max(z) from a.u as u where u.k = t.k)"),
        ("asked", "select k from a.t as t where exists (select 1 from a.u as u where u.k = t.k)"),
        ("asked", "select k from a.t as t where exists (select z, 1 + 1 from a.u as u)"),
        # A table cannot have these columns.
        ("table", "select * from (select k, count(*) from a.t as t group by k) as q"),
        ("table", "select * from (select k as `a b` from a.t as t) as q"),
        ("table", "select * from (select k, 1 from a.t as t) as q"),
        ("table", "select q.one from (select k, x as k from a.t as t) as q (one, two)"),
    ],
)
def test_a_subquery_that_no_table_can_stand_for_is_not_cut(kind: str, text: str) -> None:
    assert steps(cut_whole, text, kind) is None


def test_the_largest_stages_are_tried_first() -> None:
    text = "with c as (select k, max(x) as m from a.t group by k) select count(*) as n from c"

    found = [texts(cut)[0] for cut in cuts_of_blocks(flatten(text, {}), COLUMNS, lambda _: False)]

    assert [stage.partition(" from c")[0].rpartition("select ")[2] for stage in found[:2]] == [
        "count(*) as __livemart_total_1, count(*) as __livemart_rows",
        "1 as __livemart_rows",
    ]
    assert found[2] == "select k, max(x) as m from a.t as `t` group by k"


def test_a_subquery_whose_cuts_gained_nothing_is_not_cut_again() -> None:
    total = "select sum(m) as s from (select k, max(x) as m from a.t as t group by k) as q"

    def stages(hopeless: str) -> list[str]:
        flat = flatten(total, {})
        cuts = cuts_of_blocks(flat, COLUMNS, lambda part: part.text.startswith(hopeless))
        return [texts(cut)[0] for cut in cuts]

    every = stages("nothing")
    assert [stage for stage in every if stage.startswith("select k, max(x)")] != []
    assert stages("select k") == [it for it in every if not it.startswith("select k, max(x)")]
    assert stages("select") == []


def test_a_subquery_that_is_not_understood_leaves_the_cuts_of_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = "select count(*) as n from (select k, max(x) as m from a.t as t group by k) as q"
    alone = Blocks.standing_alone

    def standing_alone(blocks: Blocks, block: Block) -> Template[Occurrence] | None:
        if block.kind == "table":
            raise AssertionError("a shape that no code expects")
        return alone(blocks, block)

    monkeypatch.setattr(Blocks, "standing_alone", standing_alone)
    cuts = [*cuts_of_blocks(flatten(text, {}), COLUMNS, lambda _: False)]

    assert texts(cuts[0])[0].startswith("select count(*) as __livemart_total_1")
