"""The columns added to an order that may tie, and orders without an addition."""

from __future__ import annotations

import pytest

from livemart.plan.sql.flatten import Flat
from livemart.plan.strategies import tie_breaks
from livemart.plan.strategies.tie_breaks import CANDIDATES, ORDERLY_WAYS, with_ties_broken

SCHEMA: dict[str, object] = {"t": {"k": "", "x": "", "at": ""}, "u": {"k": "", "y": ""}}
ROW = "to_json(struct(`t`.`k` as c0, `t`.`x` as c1, `t`.`at` as c2))"


def ways(text: str, *numbers: int) -> list[str]:
    """Return the text in some ways, without the blanks and the formats of times."""
    formats = f", {tie_breaks._MICROSECONDS}"
    return [
        " ".join(way.text.replace(formats, "").split())
        for way in with_ties_broken(Flat((text,)), SCHEMA, numbers or (0,))
    ]


@pytest.mark.parametrize(
    ("written", "broken"),
    [
        (
            "select row_number() over (partition by k order by at desc) as n from t",
            f"select row_number() over (partition by k order by at desc, {ROW} ) as n from t",
        ),
        (
            "select sum(x) over (partition by k order by at rows 1 preceding) as n from t",
            f"select sum(x) over (partition by k order by at , {ROW} rows 1 preceding) as n from t",
        ),
        (
            "select lag(x) over w as n from t window w as (partition by k order by at)",
            f"select lag(x) over (partition by k order by at, {ROW} ) as n"
            " from t window w as (partition by k order by at)",
        ),
        (
            "select sum(x) over w as s, lead(x) over w as n, 1 as w from t"
            " window v as (order by k), w as (partition by k order by at)",
            f"select sum(x) over w as s, lead(x) over (partition by k order by at, {ROW} ) as n,"
            " 1 as w from t window v as (order by k), w as (partition by k order by at)",
        ),
        (
            "select k from t qualify row_number() over (partition by k order by (at)) = 1",
            f"select k from t qualify row_number() over (partition by k order by (at), {ROW} ) = 1",
        ),
        (
            "select first_value(x) over (partition by k) as n from t",
            f"select first_value(x) over (partition by k order by {ROW}"
            " rows between unbounded preceding and unbounded following ) as n from t",
        ),
        (
            "select max_by(x, at) as n from t group by k",
            "select max_by(t.x, if((t.at) is not null,"
            " struct(t.at as o, xxhash64(to_json(struct(t.x as c0)), 0) as t), null)) as n"
            " from t group by k",
        ),
        (
            "select any_value(x) as n, first(x, true) as f from t group by k",
            "select max_by(t.x, xxhash64(to_json(struct(t.x as c0)), 0)) as n, max_by(t.x,"
            " if((t.x is not null), xxhash64(to_json(struct(t.x as c0)), 0), null)) as f"
            " from t group by k",
        ),
        (
            "select min_by(x, at) filter (where x > 1) as n from (select * from t) group by k",
            "select min_by(x, if((x > 1) and (at) is not null,"
            " struct(at as o, xxhash64(to_json(struct(x as c0)), 0) as t), null)) as n"
            " from (select * from t) group by k",
        ),
        (
            "select k, lag(max(x)) over (order by max(at)) as n from t group by k",
            "select k, lag(max(x)) over (order by max(at), to_json(struct(t.k as c0)) ) as n"
            " from t group by k",
        ),
        (
            "select u.k, p.x from u join lateral (select t.x from t where t.k = u.k order by t.at"
            " limit 1) as p",
            "select u.k, p.x from u join lateral (select t.x from t where t.k = u.k order by t.at ,"
            f" {ROW} limit 1) as p",
        ),
        (
            "select u.k, (select t.x from t where t.k = u.k order by t.at limit 1) as x from u",
            "select u.k, (select t.x from t where t.k = u.k order by t.at ,"
            f" {ROW} limit 1) as x from u",
        ),
        (
            "select row_number() over (partition by v.k order by at) as n"
            " from (select k, at from t) as v join u on v.k = u.k",
            "select row_number() over (partition by v.k order by at, to_json(struct("
            "`v`.`k` as c0, `v`.`at` as c1, `u`.`k` as c2, `u`.`y` as c3)) ) as n"
            " from (select k, at from t) as v join u on v.k = u.k",
        ),
        (
            "select a, lag(b) over (order by rows) as n"
            " from t as v (a, b, rows) lateral view explode(b) w as c",
            "select a, lag(b) over (order by rows, to_json(struct("
            "`v`.`a` as c0, `v`.`b` as c1, `v`.`rows` as c2, `w`.`c` as c3)) ) as n"
            " from t as v (a, b, rows) lateral view explode(b) w as c",
        ),
    ],
)
def test_an_order_that_may_tie_ends_in_all_that_tells_rows_apart(written: str, broken: str) -> None:
    assert ways(written) == [broken]


@pytest.mark.parametrize(
    "text",
    [
        "select rank() over (partition by k order by at) as n from t",
        "select sum(x) over (partition by k order by at) as n from t",
        # The rows that tie with the last one determine its result.
        "select last_value(x) over (partition by k order by at) as n from t",
        # A distance is from the value of one column.
        "select first_value(x) over (partition by k order by x range 2 preceding) as n from t",
        "select max(x) as n from t group by k",
    ],
)
def test_other_sql_has_no_other_way(text: str) -> None:
    assert ways(text) == []


def test_the_first_ways_are_orderly_and_all_differ() -> None:
    texts = ways("select lag(x) over (order by at) as n from t", *range(ORDERLY_WAYS + 3))

    assert len(set(texts)) == ORDERLY_WAYS + 3
    assert [ROW in text and "xxhash64" not in text for text in texts] == [True] * 4 + [False] * 3
    assert f"order by at, {ROW} desc )" in texts[1]
    assert f"order by at, t.x desc, {ROW} )" in texts[3]


def test_without_an_argument_that_has_an_order_the_rows_have() -> None:
    text = "select count(*) over (order by at rows 1 preceding) as n from t"

    assert ways(text, 2) == [text.replace("at rows", f"at , {ROW}, {ROW} rows")]


def test_a_candidate_is_what_has_the_rank_that_is_asked_for() -> None:
    text = "select k from t qualify row_number() over (partition by k order by at) = 1"

    assert ways(text, CANDIDATES) == [text.replace("row_number", "rank")]
