"""A SELECT without FROM that reads the clock is one from the clock."""

from __future__ import annotations

import pytest

from livemart.plan.sql.clock_rows import select_from_clock
from livemart.plan.sql.parse import parse

CLOCK = "(select k.as_of from c as k)"


def written(text: str) -> str:
    """Return a query in which the clock is read from."""
    tree = parse(text.replace("@", CLOCK))
    select_from_clock(tree, {"c": "livemart.clock", "e": "livemart.clock", "f": "livemart.marks"})
    return tree.sql("spark")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "with p as (select date(@) - 1 as day, 7 as days) select a from t, p",
            "WITH p AS (SELECT CAST(__clock.as_of AS DATE) - 1 AS day, 7 AS days"
            " FROM c AS __clock) SELECT a FROM t CROSS JOIN p",
        ),
        (
            "select a from t cross join (select @ as now) as p",
            "SELECT a FROM t CROSS JOIN (SELECT __clock.as_of AS now FROM c AS __clock) AS p",
        ),
        # Both mentions are the same row.
        (
            "with p as (select @ as now, date((select as_of from e)) as day) select a from t, p",
            "WITH p AS (SELECT __clock.as_of AS now, CAST(__clock.as_of AS DATE) AS day"
            " FROM c AS __clock, e AS __clock_2) SELECT a FROM t CROSS JOIN p",
        ),
    ],
)
def test_the_clock_is_read_from(text: str, expected: str) -> None:
    assert written(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        # The query itself has one row whatever the clock has.
        "select @ as now",
        "select a from t where b > (select @ as now)",
        "with p as (select @ as now from t) select now from p",
        "with p as (select @ as now where 1 = 1) select now from p",
        "with p as (select @ as now, (select complete_to from f) as mark) select now from p",
        "with p as (select @ as now, exists (select k.as_of from c as k) as i) select now from p",
        # The name of another item.
        "with p as (select @ - interval 1 day as as_of, as_of as since) select since from p",
        "with p as (select (select max(k.as_of) from c as k) as now) select now from p",
        "with p as (select (select k.as_of from d as k) as now) select now from p",
    ],
)
def test_other_queries_stay(text: str) -> None:
    assert "__clock" not in written(text)
