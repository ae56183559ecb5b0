"""A generator of several columns in a select list is a lateral view."""

from __future__ import annotations

import pytest

from livemart.plan.sql.generated_columns import move_generators
from livemart.plan.sql.parse import parse


@pytest.mark.parametrize(
    ("text", "moved"),
    [
        (
            "select *, posexplode(b) as (n, d) from t as u where a > 1",
            "SELECT u.*, __generated.n, __generated.d FROM t AS u"
            " LATERAL VIEW POSEXPLODE(b) __generated AS n, d WHERE a > 1",
        ),
        (
            "select a from (select stack(2, 1, 'x', 2, 'y') as (c, d), a from t join s) order by c",
            "SELECT a FROM (SELECT __generated.c, __generated.d, a FROM t JOIN s ON TRUE"
            " LATERAL VIEW STACK(2, 1, 'x', 2, 'y') __generated AS c, d) ORDER BY c",
        ),
    ],
)
def test_the_columns_are_those_of_a_lateral_view(text: str, moved: str) -> None:
    tree = parse(text)

    move_generators(tree)

    assert tree.sql("spark") == moved


@pytest.mark.parametrize(
    "text",
    [
        "select posexplode(b) as (n, d), row_number() over (order by a) as r from t",
        "select posexplode(b) as (n, d), count(*) as r from t group by b",
        # All columns are those of two tables.
        "select *, posexplode(b) as (n, d) from t join s",
        # A column of the table may have the name.
        "select posexplode(b) as (n, a) from t where a > 1",
        "select stack(1, 2, 3) as (n, a)",
    ],
)
def test_a_generator_stays_where_another_place_may_mean_something_else(text: str) -> None:
    tree = parse(text)
    before = tree.sql("spark")

    move_generators(tree)

    assert tree.sql("spark") == before
