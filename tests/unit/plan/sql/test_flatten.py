"""Flat SQL: only table names are replaced, the rest stays to the letter."""

from __future__ import annotations

import pytest

from livemart.plan.reasons import Inapplicable
from livemart.plan.sql.flatten import flatten
from livemart.plan.sql.template import template


def test_only_table_names_are_replaced() -> None:
    text = "select  o.order_id -- why\nfrom bronze.orders o"

    flat = flatten(text, {})

    assert flat.render(lambda occurrence: "x") == "select  o.order_id -- why\nfrom x o\n"
    assert flat.relations == ("bronze.orders",)


def test_a_table_without_an_alias_keeps_its_name() -> None:
    flat = flatten("select orders.order_id from `bronze`.`orders`", {})

    assert flat.render(lambda occurrence: "x") == "select orders.order_id from x as `orders`\n"


@pytest.mark.parametrize(
    ("written", "rendered"),
    [
        (
            "bronze.orders TABLESAMPLE (100 percent) where true",
            "x TABLESAMPLE (100 percent) as `orders` where true",
        ),
        ("bronze.orders tablesample(1000 rows) as o", "x tablesample(1000 rows) as o"),
        (
            "bronze.orders tablesample (bucket 1 out of 2 on hash(a)) repeatable (7)",
            "x tablesample (bucket 1 out of 2 on hash(a)) repeatable (7) as `orders`",
        ),
    ],
)
def test_a_name_stands_behind_a_sample(written: str, rendered: str) -> None:
    flat = flatten(f"select a from {written}", {})

    assert flat.render(lambda occurrence: "x") == f"select a from {rendered}\n"


def test_views_are_inlined_under_their_own_name() -> None:
    views = {"mart.stg": "with o as (select * from bronze.orders) select * from o"}

    flat = flatten("select stg.order_id from mart.stg", views)

    assert flat.render(lambda occurrence: "x") == (
        "select stg.order_id from (\nwith o as (select * from x as `orders`) select * from o\n\n)"
        " as `stg`\n"
    )


def test_a_common_table_expression_may_be_named_as_a_table() -> None:
    text = "with orders as (select * from bronze.orders) select * from orders"

    flat = flatten(text, {})

    assert [occurrence.relation for occurrence in flat.occurrences] == ["bronze.orders"]


def test_each_mention_is_an_occurrence_of_its_own() -> None:
    flat = flatten("select 1 from bronze.a join bronze.a as b on true", {})

    assert flat.render(lambda occurrence: f"v{occurrence.index}") == (
        "select 1 from v0 as `a` join v1 as b on true\n"
    )


def test_a_semicolon_and_a_trailing_comment_do_no_harm() -> None:
    flat = flatten("select 1 from bronze.a -- last words", {"mart.v": "select 2 from bronze.b;"})

    assert flat.render(lambda occurrence: "x").endswith("-- last words\n")


@pytest.mark.parametrize(
    "text",
    ["select from where", "select a.b.c from a.b", "select * from nameless", "drop table a.b"],
)
def test_what_cannot_be_replaced_safely_is_refused(text: str) -> None:
    with pytest.raises(Inapplicable) as caught:
        flatten(text, {})

    assert caught.value.reason.code == "PARSE_UNSUPPORTED"


def test_a_query_that_is_cut_and_put_together_has_no_more_pieces_than_before() -> None:
    flat = flatten("select a.x from s.a as a join s.b as b on a.x = b.x where a.y > 1", {})
    middle = flat.text.index("join")

    parts = (flat.cut(0, middle), flat.cut(middle, len(flat.text)))

    assert [len(part.pieces) for part in parts] == [3, 3]
    assert template(*parts).pieces == template(flat).pieces
