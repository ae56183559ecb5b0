"""Which grouping sets are known, and which may be two sets that Spark takes for one."""

from __future__ import annotations

import pytest
from sqlglot import exp

from livemart.plan.reading.grouping_sets import grouping_sets
from livemart.plan.sql.parse import parse
from livemart.plan.sql.written import sql_of


def sets_of(keys: str) -> list[str] | None:
    group = parse(f"select 1 as one from t group by {keys}").args["group"]
    assert isinstance(group, exp.Group)
    found = grouping_sets(group)
    return None if found is None else [" ".join(map(sql_of, keys)) for keys in found]


@pytest.mark.parametrize(
    ("keys", "sets"),
    [
        ("rollup (a, b)", ["a b", "a", ""]),
        ("rollup ((a, b), c)", ["a b c", "a b", ""]),
        ("a, b with rollup", ["a b", "a", ""]),
        ("cube (a, b)", ["a b", "a", "b", ""]),
        ("rollup (a), cube (b)", ["a b", "a", "b", ""]),
        ("grouping sets ((a, b), a, (b), ())", ["a b", "a", "b", ""]),
        ("rollup (a), b, lower(c)", ["a b lower(c)", "b lower(c)"]),
    ],
)
def test_sets_are_listed_as_spark_multiplies_them(keys: str, sets: list[str]) -> None:
    assert sets_of(keys) == sets


@pytest.mark.parametrize(
    "keys",
    [
        # The same set twice: Spark has its groups twice.
        "grouping sets ((a, b), (b, a))",
        "grouping sets (a, a)",
        "a, rollup (a, b)",
        "grouping sets ((), ())",
        # Spark finds that these keys mean the same.
        "cube (a + b, b + a)",
        "cube (a, b, a + b)",
        "rollup (a, (a))",
        "rollup (nvl(a, b), ifnull(a, b))",
        # A total of no rows is a row, as without GROUP BY.
        "grouping sets (())",
        # The places of output columns, and constants.
        "rollup (1, 2)",
        "rollup ('a', b)",
        "a, (b, c), rollup (d)",
        "rollup (((a, b)), c)",
        "grouping sets (rollup (a, b), c)",
        "rollup (a), b with cube",
        "a, b grouping sets ((a, b), a)",
        "rollup (session_window(a, '5 minutes'))",
        "rollup (window(a, '5 minutes', '1 minute'))",
        "rollup (a, (select max(b) from u))",
        "cube (a, b, c, d, e, f, g, h, i, j, k)",
        "cube (a, b, c, d, e, f), cube (g, h, i, j, k)",
    ],
)
def test_sets_that_may_not_be_what_they_look_like_are_not_known(keys: str) -> None:
    assert sets_of(keys) is None
