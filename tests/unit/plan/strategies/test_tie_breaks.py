"""What is added to the end of an order that may tie, and where nothing is."""

from __future__ import annotations

import pytest

from livemart.plan.strategies.tie_breaks import ORDERLY_WAYS, with_ties_broken

SCHEMA: dict[str, object] = {"t": {"k": "", "x": "", "at": ""}, "u": {"k": "", "y": ""}}
ROW = "to_json(struct(t.k as c0, t.x as c1, t.at as c2))"


def ways(text: str, count: int = 1) -> list[str]:
    return [" ".join(way.split()) for way in with_ties_broken(text, SCHEMA, count)]


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
            f"select lag(x) over w as n from t window w as (partition by k order by at, {ROW} )",
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
            "select max_by(t.x, if(t.at is null, null,"
            " struct(t.at as o, xxhash64(to_json(struct(t.x as c)), 0) as t))) as n"
            " from t group by k",
        ),
        (
            "select any_value(x) as n from t group by k",
            "select max_by(t.x, xxhash64(to_json(struct(t.x as c)), 0)) as n from t group by k",
        ),
        (
            "select k, lag(max(x)) over (order by max(at)) as n from t group by k",
            "select k, lag(max(x)) over (order by max(at), to_json(struct(t.k as c0)) ) as n"
            " from t group by k",
        ),
        (
            "select row_number() over (partition by v.k order by at) as n"
            " from (select k, at from t) as v join u on v.k = u.k",
            "select row_number() over (partition by v.k order by at,"
            " to_json(struct(v.k as c0, v.at as c1, u.k as c2, u.y as c3)) ) as n"
            " from (select k, at from t) as v join u on v.k = u.k",
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
        # A distance is from the value of one column.
        "select first_value(x) over (partition by k order by x range 2 preceding) as n from t",
        "select max(x) as n from t group by k",
    ],
)
def test_other_sql_has_no_other_way(text: str) -> None:
    assert ways(text) == []


def test_the_first_ways_are_orderly_and_all_differ() -> None:
    texts = ways("select lag(x) over (order by at) as n from t", ORDERLY_WAYS + 3)

    assert len(set(texts)) == ORDERLY_WAYS + 3
    assert [ROW in text and "xxhash64" not in text for text in texts] == [True] * 4 + [False] * 3
    assert f"order by at, {ROW} desc )" in texts[1]
    assert f"order by at, t.x desc, {ROW} )" in texts[3]
