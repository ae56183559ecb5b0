"""A query of keys knows what it reads, whether it repeats rows, and whether it is plain."""

from __future__ import annotations

import pytest

from livemart.plan.relations.key_query import RowsOf, key_query
from tests.unit.plan.relations.scans import expr

TOUCHED, KNOWN = RowsOf("touched", 0), RowsOf("known", 1)


def test_rows_come_more_than_once_at_every_depth_if_they_may() -> None:
    inner = key_query([expr("shop")], TOUCHED)
    query = key_query([expr("c.w0")], "(", inner, ") as c cross join ", KNOWN)

    assert query.sql.holes == (TOUCHED, KNOWN)
    assert query.occurrence == 0
    assert str(query).count("select distinct") == 2
    assert str(query.repeating) == (
        "select c.w0 as w0 from (select shop as w0 from __touched_0__) as c cross join __known_1__"
    )


@pytest.mark.parametrize(
    ("values", "columns"),
    [
        (["shop", "1", "-7"], ("shop", 1, -7)),
        ([], (1,)),
        (["`größe`"], ("größe",)),
        (["upper(shop)"], None),
        (["t.shop"], None),
        (["1.5"], None),
        # A bigint.
        (["3000000000"], None),
    ],
)
def test_values_that_are_columns_and_integers_need_no_statement(
    values: list[str], columns: tuple[object, ...] | None
) -> None:
    assert key_query([expr(value) for value in values], TOUCHED).columns == columns


def test_some_of_the_values_are_numbered_anew() -> None:
    query = key_query([expr("shop"), expr("day"), expr("2")], TOUCHED).only([2, 0])

    assert str(query) == "select distinct 2 as w0, shop as w1 from __touched_0__"
    assert query.columns == (2, "shop")


def test_what_is_read_through_another_query_needs_a_statement() -> None:
    inner = key_query([expr("shop")], TOUCHED)

    assert key_query([expr("w0")], "(", inner, ")").columns is None
