"""Where a SELECT is cut between its groups and its windows, or between windows."""

from __future__ import annotations

import pytest

from livemart.plan.block_part import BlockPart
from livemart.plan.cut import Cut
from livemart.plan.cut_gates import cut_groups, cut_keys, cut_sets, cut_windows, partitions
from tests.unit.plan.test_cut_blocks import steps


def first_windows(part: BlockPart) -> Cut | None:
    """Return the cut below the windows of the first partition."""
    by = partitions(part)
    return cut_windows(part, by[0]) if by else None


@pytest.mark.parametrize(
    ("text", "stage", "rest"),
    [
        (
            "select k, sum(x) as x, rank() over (order by sum(x) desc, k) as place"
            " from a.t as t where y > 1 group by k having sum(x) > 3 order by place",
            "select k as __livemart_key_1, sum(x) as __livemart_total_2 from a.t as t"
            " where y > 1 group by k having sum(x) > 3",
            "select __livemart_key_1 as k, __livemart_total_2 as x,"
            " rank() over (order by __livemart_total_2 desc, __livemart_key_1) as place"
            " from stage order by place",
        ),
        # An output of the condition is one of the stage as well.
        (
            "select upper(t.k) as code, count(*) as n, sum(count(*)) over () as every"
            " from a.t as t group by 1 having n > 1 qualify every > n",
            "select upper(t.k) as __livemart_key_1, count(*) as __livemart_total_2,"
            " count(*) as `n` from a.t as t group by upper(t.k) having n > 1",
            "select __livemart_key_1 as code, __livemart_total_2 as n,"
            " sum(__livemart_total_2) over () as every from stage qualify every > n",
        ),
        (
            "select 'all' as kind, k, sum(x) / sum(sum(x)) over () as share from a.t as t"
            " group by 1, k",
            "select k as __livemart_key_1, sum(x) as __livemart_total_2 from a.t as t group by k",
            "select 'all' as kind, __livemart_key_1 as k, __livemart_total_2"
            " / sum(__livemart_total_2) over () as share from stage",
        ),
        # An output without a total is a key.
        (
            "select t.k + 1 as k, 'a' as a, sum(x) as s, rank() over (order by sum(x)) as p"
            " from a.t as t group by all having s > 1",
            "select t.k + 1 as __livemart_key_1, sum(x) as __livemart_total_2, sum(x) as `s`"
            " from a.t as t group by t.k + 1 having s > 1",
            "select __livemart_key_1 as k, 'a' as a, __livemart_total_2 as s,"
            " rank() over (order by __livemart_total_2) as p from stage",
        ),
        # By the SQL of outputs the rest orders by their names.
        (
            "select t.k + 1 as `K`, upper(y) as U, COUNT(*) as n, rank() over (order by count(*))"
            " as p from a.t as t where x > 1 group by k, upper(y) order by count(*) desc, UPPER(y),"
            " rank() over (order by count(*)), 2, max(x)",
            "select t.k as __livemart_key_1, upper(y) as __livemart_key_2, COUNT(*) as"
            " __livemart_total_3, max(x) as __livemart_total_4 from a.t as t where x > 1"
            " group by k, upper(y)",
            "select __livemart_key_1 + 1 as `K`, __livemart_key_2 as U, __livemart_total_3 as n,"
            " rank() over (order by __livemart_total_3) as p from stage"
            " order by `n` desc, `u`, `p`, 2, __livemart_total_4",
        ),
        # A column of a stage that is read has another name than those of this one.
        (
            "select __livemart_key_4, min(x) as m, avg(min(x)) over w as a from (select k as"
            " __livemart_key_4, x from a.t) as q group by __livemart_key_4"
            " window w as (partition by __livemart_key_4 + 1)",
            "select __livemart_key_4 as __livemart_key_5, min(x) as __livemart_total_6 from"
            " (select k as __livemart_key_4, x from a.t as `t`) as q group by __livemart_key_4",
            "select __livemart_key_5 as __livemart_key_4, __livemart_total_6 as m,"
            " avg(__livemart_total_6) over w as a from stage"
            " window w as (partition by __livemart_key_5 + 1)",
        ),
    ],
)
def test_groups_are_a_stage_below_their_windows(text: str, stage: str, rest: str) -> None:
    assert steps(cut_groups, text) == (stage, rest)


@pytest.mark.parametrize(
    "text",
    [
        "select k, sum(x) as s from a.t as t group by k",
        "select k, rank() over (order by k) as place from a.t as t",
        # Not all that is selected is a key or a total.
        "select k, sum(x) as s, s + 1 as o, rank() over (order by k) as p from a.t group by all",
        "select k, 1 as b, b as c, rank() over (order by sum(x)) as p from a.t as t group by all",
        "select k, rank() over (order by k) as p, sum(x) as s from a.t as t group by all",
        "select k as `all`, sum(x) as s, rank() over (order by sum(x)) as p from a.t group by all",
        "select sum(x) as s, rank() over (order by sum(x)) as p from a.t as t group by all",
        "select y + sum(x) as s, k, rank() over (order by k, sum(x)) as p from a.t group by all",
        "select k, sum(x) as s, rank() over (order by sum(x)) as p from a.t group by rollup (k)",
        "select 1 as k, sum(x) as s, rank() over (order by sum(x)) as p from a.t group by 1",
        # Neither a key nor a total.
        "select k, sum(x) as s, rank() over (order by y) as p from a.t as t group by k",
        # The order may mean the output or the column.
        "select k, sum(x) as x, rank() over (order by k) as p from a.t group by k order by x",
        "select k, rank() over (order by k) as p, (select max(z) from a.u) o from a.t group by k",
        "select k, rank() over (order by k) as p from a.t group by k having p > 1",
        "select k + 1 as b, b * 2 as c, rank() over (order by k + 1) as p from a.t group by 1, 2",
        # The windows are computed before the rows of a group are made.
        "select k, explode(array(1)) as i, rank() over (order by sum(x)) as p from a.t group by k",
        # The stage has neither this column nor a column of that name.
        "select k as c, rank() over (order by k) as p from a.t as t group by k order by k",
        "select k, max(x) as `m m`, rank() over (order by k) as p from a.t group by k"
        " having `m m` > 3",
        # To the parser, the last order is by the output, which is written otherwise.
        "select k, max(x) as m, rank() over (order by max(x)) as p from a.t as t group by k"
        " order by max(t.x) desc",
        # Spark names fields after columns.
        "select k, to_json(struct(k, sum(x))) as s, rank() over (order by k) as p from a.t as t"
        " group by k",
        "select arrays_zip(k, y) as z, rank() over (order by k) as p from a.t as t group by k, y",
        # The name may be that of the output in the order of a named window.
        "select k + 1 as k, rank() over w as p from a.t group by k window w as (order by k)",
    ],
)
def test_groups_that_the_rest_may_read_otherwise_are_not_cut(text: str) -> None:
    assert steps(cut_groups, text) is None


@pytest.mark.parametrize(
    ("text", "stage", "rest"),
    [
        (
            "select t.k, Dup as d, sum(x) / count(*) as mean, rank() over (partition by"
            " grouping(t.k) order by sum(x)) as place from a.t as t where y > 1"
            " group by cube (k, DUP) -- all\n having d > 2 or sum(x) > 3 order by place",
            "select t.k as __livemart_key_1, Dup as __livemart_key_2, sum(x) as"
            " __livemart_total_3, count(*) as __livemart_total_4, grouping(t.k) as"
            " __livemart_total_5, grouping_id() as __livemart_set_6 from a.t as t where y > 1"
            " group by cube (k, DUP) -- all",
            "select __livemart_key_1 as k, __livemart_key_2 as d, __livemart_total_3 /"
            " __livemart_total_4 as mean, rank() over (partition by __livemart_total_5 order by"
            " __livemart_total_3) as place from stage where __livemart_key_2 > 2 or"
            " __livemart_total_3 > 3 order by place",
        ),
        # An output of totals is computed again where it is named.
        (
            "select k, sum(x) - 1 as s from a.t as t group by rollup (k) having s * 2 > 1 or k > 1",
            "select k as __livemart_key_1, sum(x) as __livemart_total_2, grouping_id() as"
            " __livemart_set_3, count(*) as __livemart_rows from a.t as t group by rollup (k)",
            "select __livemart_key_1 as k, __livemart_total_2 - 1 as s from stage"
            " where (__livemart_total_2 - 1) * 2 > 1 or __livemart_key_1 > 1",
        ),
        # A text is no name.
        (
            "select trunc(y, 'month') as month, count(*) as n from a.t as t"
            " group by rollup (trunc(y, 'month')) having n > 1 and month <> 'k'",
            "select trunc(y, 'month') as __livemart_key_1, count(*) as __livemart_total_2,"
            " grouping_id() as __livemart_set_3 from a.t as t group by rollup (trunc(y, 'month'))",
            "select __livemart_key_1 as month, __livemart_total_2 as n from stage"
            " where __livemart_total_2 > 1 and __livemart_key_1 <> 'k'",
        ),
        # A key that is an output's expression, by the output's name.
        (
            "select upper(y) as code, sum(x) as s from a.t as t group by code with rollup",
            "select upper(y) as __livemart_key_1, sum(x) as __livemart_total_2, upper(y) as"
            " `code`, grouping_id() as __livemart_set_3, count(*) as __livemart_rows"
            " from a.t as t group by code with rollup",
            "select __livemart_key_1 as code, __livemart_total_2 as s from stage",
        ),
        # The place of an output that the stage has at another one.
        (
            "select count(*) as n, upper(t.k) as u, round(y, 2) as r from a.t as t"
            " group by cube (round(y, 2)), 2 having n > 1",
            "select count(*) as __livemart_total_3, upper(t.k) as __livemart_key_2, round(y, 2) as"
            " __livemart_key_1, grouping_id() as __livemart_set_4 from a.t as t"
            " group by cube (round(y, 2)), upper(t.k)",
            "select __livemart_total_3 as n, __livemart_key_2 as u, __livemart_key_1 as r"
            " from stage where __livemart_total_3 > 1",
        ),
        (
            "select k, upper(y) as u, count(*) as n from a.t as t group by 1, 2 with rollup",
            "select k as __livemart_key_1, upper(y) as __livemart_key_2, count(*) as"
            " __livemart_total_3, grouping_id() as __livemart_set_4 from a.t as t"
            " group by k, upper(y) with rollup",
            "select __livemart_key_1 as k, __livemart_key_2 as u, __livemart_total_3 as n"
            " from stage",
        ),
        # Among the keys a name is that of a column, above them it is that of an output.
        (
            "select coalesce(k, 'all') as k, grouping(k) as g, max(x) as x from a.t as t"
            " group by rollup (k) having max(x) > 1 order by grouping(k), max(x)",
            "select k as __livemart_key_1, grouping(k) as __livemart_total_2, max(x) as"
            " __livemart_total_3, grouping_id() as __livemart_set_4, count(*) as __livemart_rows"
            " from a.t as t group by rollup (k)",
            "select coalesce(__livemart_key_1, 'all') as k, __livemart_total_2 as g,"
            " __livemart_total_3 as x from stage where __livemart_total_3 > 1 order by `g`, `x`",
        ),
        # In an aggregate a key has the value of its row.
        (
            "select k, sum(k) as s, k + 1 as more from a.t as t group by rollup (k)",
            "select k as __livemart_key_1, sum(k) as __livemart_total_2, grouping_id() as"
            " __livemart_set_3, count(*) as __livemart_rows from a.t as t group by rollup (k)",
            "select __livemart_key_1 as k, __livemart_total_2 as s, __livemart_key_1 + 1 as more"
            " from stage",
        ),
    ],
)
def test_groups_of_sets_are_a_stage_with_the_number_of_their_set(
    text: str, stage: str, rest: str
) -> None:
    assert steps(cut_sets, text) == (stage, rest)


@pytest.mark.parametrize(
    "text",
    [
        "select k, sum(x) as s from a.t as t group by k",
        "select k, sum(x) as s from a.t as t group by grouping sets (k, k)",
        "select k, sum(x) from a.t as t group by rollup (k)",
        "select k, sum(x) as s, explode(array(1)) as i from a.t as t group by rollup (k)",
        "select k, sum(x) as s from a.t as t group by rollup (k) having sum(x) >"
        " (select max(z) from a.u)",
        "select k, sum(x) as s, (select max(z) from a.u) as m from a.t group by rollup (k)",
        # Neither a key nor a total.
        "select k, sum(x) as s, rank() over (order by y) as p from a.t as t group by rollup (k)",
        "select upper(k) as u, sum(x) as s from a.t as t group by rollup (upper(k)) having k > 1",
        # Spark names the fields after the columns.
        "select k, (k, sum(x)) as s from a.t as t group by rollup (k)",
        # Spark takes these for places of outputs, and the parser does not.
        "select k, y, sum(x) as s from a.t as t group by rollup (1, y)",
        "select k, y, sum(x) as s from a.t as t group by grouping sets ((k), 2)",
        # A name of an output or of a column.
        "select k + 1 as k, sum(x) as s from a.t as t group by rollup (k) having k > 1",
        "select k + 1 as k, sum(x) as s from a.t as t group by rollup (k) order by k",
        "select k, sum(x) as x from a.t as t group by rollup (k) having x > 1",
        # An output of an output, which the rest has not where it keeps groups.
        "select k, sum(x) * 2 as s, s + 1 as m from a.t as t group by rollup (k) having m > 1",
        "select upper(k) as u, sum(x) as s from a.t group by rollup (u) having grouping(u) > 0",
        # A unit of time, and no output.
        "select to_date(y) as day, count(*) as n from a.t as t group by rollup (to_date(y))"
        " having day < date'2026-01-01' + interval 1 day",
        "select trunc(y, 'MM') as month, count(*) as n from a.t as t group by rollup (trunc(y,"
        " 'MM')) having timestampadd(month, 1, n) > 3",
        # To the parser, the order is by the output, which is written otherwise.
        "select k, grouping(k) as g, count(*) as n from a.t as t group by rollup (k)"
        " order by grouping(t.k), k",
    ],
)
def test_groups_of_sets_that_the_rest_may_read_otherwise_are_not_cut(text: str) -> None:
    assert steps(cut_sets, text) is None


@pytest.mark.parametrize(
    ("text", "stage", "rest"),
    [
        (
            "select t.k, max(x) over (partition by k) - x as below,"
            " rank() over (partition by upper(y) order by dup) as place from a.t as t where x > 1",
            "select t.k as __livemart_column_2, max(x) over (partition by k) as"
            " __livemart_window_1, x as __livemart_column_3, y as __livemart_column_4,"
            " dup as __livemart_column_5 from a.t as t where x > 1",
            "select __livemart_column_2 as k, __livemart_window_1 - __livemart_column_3 as below,"
            " rank() over (partition by upper(__livemart_column_4) order by __livemart_column_5)"
            " as place from stage",
        ),
        # The keys of the stage confine a change of it.
        (
            "select x, count(*) over (partition by t.k, upper(y)) as n, sum(z) over (partition by"
            " u.dup) as s from a.t as t join a.u as u on t.k = u.k",
            "select x as __livemart_column_2, count(*) over (partition by t.k, upper(y)) as"
            " __livemart_window_1, z as __livemart_column_3, u.dup as __livemart_column_4, t.k as"
            " __livemart_key_5, upper(y) as __livemart_key_6 from a.t as t join a.u as u"
            " on t.k = u.k",
            "select __livemart_column_2 as x, __livemart_window_1 as n, sum(__livemart_column_3)"
            " over (partition by __livemart_column_4) as s from stage",
        ),
        (
            "select *, lag(x) over (partition by upper(k) order by y) as l from a.t as t"
            " qualify count(*) over (partition by dup) > 1",
            "select *, lag(x) over (partition by upper(k) order by y) as __livemart_window_1,"
            " upper(k) as __livemart_key_2 from a.t as t",
            "select * except (__livemart_window_1, __livemart_key_2), __livemart_window_1 as l"
            " from stage as `t` qualify count(*) over (partition by dup) > 1",
        ),
        (
            "select t.* except (y), sum(x) over (partition by k) as y,"
            " min(x) over (partition by dup) as m from a.t as t",
            "select *, sum(x) over (partition by k) as __livemart_window_1 from a.t as t",
            "select t.* except (__livemart_window_1, y), __livemart_window_1 as y,"
            " min(x) over (partition by dup) as m from stage as `t`",
        ),
        # Both steps have the names of windows.
        (
            "select k, max(x) over v as m, min(x) over (w) as n from a.t as t where x > 1"
            " window w as (partition by y order by dup), v as (partition by upper(k)) order by m",
            "select k as __livemart_column_2, max(x) over v as __livemart_window_1,"
            " x as __livemart_column_3, y as __livemart_column_4, dup as __livemart_column_5,"
            " upper(k) as __livemart_key_6 from a.t as t where x > 1"
            " window w as (partition by y order by dup), v as (partition by upper(k))",
            "select __livemart_column_2 as k, __livemart_window_1 as m,"
            " min(__livemart_column_3) over (w) as n from stage window w as (partition by"
            " __livemart_column_4 order by __livemart_column_5),"
            " v as (partition by upper(__livemart_column_2)) order by m",
        ),
        (
            "select *, max(x) over w as m, min(x) over (partition by y) as n from a.t as t"
            " window w as (partition by k)",
            "select *, max(x) over w as __livemart_window_1 from a.t as t"
            " window w as (partition by k)",
            "select * except (__livemart_window_1), __livemart_window_1 as m, min(x) over"
            " (partition by y) as n from stage as `t` window w as (partition by k)",
        ),
    ],
)
def test_windows_of_one_partition_are_a_stage_below_the_others(
    text: str, stage: str, rest: str
) -> None:
    assert steps(first_windows, text) == (stage, rest)


@pytest.mark.parametrize(
    "text",
    [
        "select k, max(x) over (partition by k) as m, min(x) over (partition by k) as n from a.t",
        # A stage below would have all rows, and the last step would read them.
        "select k, max(x) over (partition by k) as m, min(x) over () as n from a.t",
        "select max(x) over (partition by k) as m, min(x) over w as n from a.t as t"
        " window w as (order by y)",
        # The order of the stage would read a column named as the clause.
        "select k, max(x) over w as m, min(x) over (partition by y) as n from a.t as t"
        " window w as (partition by k) order by `window`",
        "select k, max(x) over (partition by k), min(x) over (partition by y) from a.t as t",
        "select *, max(x) over (partition by t.k) as m, min(z) over (partition by y) as n"
        " from a.t as t join a.u as u on t.k = u.k",
        "select *, t.*, max(x) over (partition by k) as m, min(x) over (partition by y) as n"
        " from a.t as t",
        # The windows are computed after the rows are made.
        "select k, explode(y) as i, max(x) over (partition by k) as m, min(x) over (partition by y)"
        " as n from a.t as t",
        # The subquery has no name, and the columns of a pivot have no table.
        "select *, max(x) over (partition by k) as m, min(x) over (partition by y) as n"
        " from (select k, x, y from a.t)",
        "select *, max(k) over (partition by k) as m, min(k) over (partition by dup) as n"
        " from a.t pivot (max(x) for y in (1 as one))",
        # A field of a struct has the name of a column.
        "select s.x, max(k) over (partition by k) as m, min(k) over (partition by y) as n"
        " from (select *, named_struct('x', 1) as s from a.t) as t qualify x > 1",
        "select upper(k) as u, max(x) over (partition by u) as m, min(x) over (partition by y) as n"
        " from a.t as t",
        "select max(x) over (partition by k) as m, min(x) over (partition by y) as n,"
        " (select max(z) from a.u) as o from a.t as t",
        "select struct(t.*, max(x) over (partition by k)) as m, min(x) over (partition by y) as n,"
        " struct(x) as o from a.t as t",
    ],
)
def test_windows_that_gain_nothing_or_may_mean_something_else_are_not_cut(text: str) -> None:
    assert steps(first_windows, text) is None


@pytest.mark.parametrize(
    ("kind", "text", "stage", "rest"),
    [
        (
            "top",
            "select max(x) as m from a.t as t group by upper(k), y order by m",
            "select max(x) as m, upper(k) as `__livemart_key_1`, y as `__livemart_key_2`"
            " from a.t as t group by upper(k), y order by m",
            "select * except (`__livemart_key_1`, `__livemart_key_2`) from stage",
        ),
        (
            "cte",
            "with c as (select y, rank() over (partition by k, y order by x) as place from a.t)"
            " select y from c where place = 1",
            "select y, rank() over (partition by k, y order by x) as place,"
            " k as `__livemart_key_1` from a.t as `t`",
            "with c as (select * except (`__livemart_key_1`) from stage)"
            " select y from c where place = 1",
        ),
        (
            "top",
            "select y, rank() over w as place from a.t as t"
            " window w as (partition by k order by x)",
            "select y, rank() over w as place, k as `__livemart_key_1` from a.t as t"
            " window w as (partition by k order by x)",
            "select * except (`__livemart_key_1`) from stage",
        ),
        (
            "top",
            "select Distinct max(x) as m, count(distinct y) as n from a.t as t group by k"
            " order by m",
            "select max(x) as m, count(distinct y) as n, k as `__livemart_key_1` from a.t as t"
            " group by k order by m",
            "select distinct * except (`__livemart_key_1`) from stage",
        ),
        (
            "cte",
            "with c as (select distinct sum(x) as s from a.t group by k, y) select s from c",
            "select sum(x) as s, k as `__livemart_key_1`, y as `__livemart_key_2` from a.t as `t`"
            " group by k, y",
            "with c as (select distinct * except (`__livemart_key_1`, `__livemart_key_2`)"
            " from stage) select s from c",
        ),
        (
            "value",
            "select k from a.t as t where x > (select max(z) from a.u as u where k = 1 group by k)",
            "select max(z) as __livemart_value, k as `__livemart_key_1` from a.u as u where k = 1"
            " group by k",
            "select k from a.t as t where x > (select * except (`__livemart_key_1`) from stage)",
        ),
    ],
)
def test_keys_that_are_not_selected_are_columns_of_a_stage(
    kind: str, text: str, stage: str, rest: str
) -> None:
    assert steps(cut_keys, text, kind) == (stage, rest)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("top", "select k, max(x) as m from a.t as t group by k"),
        ("top", "select max(x) as m from a.t as t group by 'all'"),
        ("top", "select max(x) as m from a.t as t group by rollup (k)"),
        ("top", "select max(x) from a.t as t group by k"),
        ("top", "select max(x) as m from a.t as t group by k limit 3"),
        # The stage would have all rows, and the keys of DISTINCT ON are not all of its columns.
        ("top", "select distinct rank() over (partition by k order by x) as m from a.t as t"),
        ("top", "select distinct on (m) max(x) as m from a.t as t group by k"),
        ("top", "select x, max(x) over (partition by k) as m, 1 as n from a.t as t group by k, x"),
        ("top", "select x, max(x) over (order by k) as m from a.t as t"),
    ],
)
def test_keys_that_confine_nothing_more_are_no_columns_of_a_stage(kind: str, text: str) -> None:
    assert steps(cut_keys, text, kind) is None
