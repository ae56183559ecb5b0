"""Every choice of a model's page is in its address."""

from __future__ import annotations

import pytest

from livemart.serve.page.charts import ChartWish
from livemart.serve.page.model_address import ModelAddress, quoted_item
from livemart.store.served import ServedModel

SHOPS = ServedModel("shops/2", (("id", "int"), ("a,b", "string"), ("limit", "int")), ("id",), None)


def address(*pairs: tuple[str, str]) -> ModelAddress:
    return ModelAddress.of(SHOPS, pairs)


def test_what_is_unknown_or_empty_is_left_out() -> None:
    here = address(("utm_source", "x"), ("id", "gte.5"), ("from", ""), ("limit", "5"))

    assert here.here == "/models/shops%2F2?id=gte.5&limit=5"
    # A column that is named like a parameter is out of reach, as at the API.
    assert here.conditions == [("id", "gte.5")]


def test_a_sort_goes_up_then_down_then_away_and_begins_at_the_first_page() -> None:
    here = address(("id", "gte.5"), ("after", "cursor"))

    state, up = here.sorted_by("a,b")
    assert (state, up) == ("none", "/models/shops%2F2?id=gte.5&order=%22a,b%22.asc")
    state, down = address(("order", '"a,b".asc')).sorted_by("a,b")
    assert (state, down) == ("ascending", "/models/shops%2F2?order=%22a,b%22.desc")
    state, away = address(("order", '"a,b".desc')).sorted_by("a,b")
    assert (state, away) == ("descending", "/models/shops%2F2")
    assert address(("order", "id")).sorted_by("id")[0] == "ascending"


@pytest.mark.parametrize(
    ("column", "operator", "value", "query"),
    [
        ("id", "gte", "5", "?id=gte.5"),
        ("id", "in", "5,6", "?id=in.(5,6)"),
        ("a,b", "in", "(x)", "?a%2Cb=in.(x)"),
        ("a,b", "is.null", "ignored", "?a%2Cb=is.null"),
        ("a,b", "eq", "", "?a%2Cb=eq."),
        ("a,b", "", "x&y=1", "?a%2Cb=eq.x%26y%3D1"),
        ("nothing", "eq", "5", ""),
        ("id", "like", "5", ""),
    ],
)
def test_the_form_becomes_a_condition(column: str, operator: str, value: str, query: str) -> None:
    form = (("page.where", column), ("page.is", operator), ("page.value", value), ("after", "c"))

    filtered = address(*form).filtered()

    assert filtered is not None
    assert filtered.replace("%2C", ",") == f"/models/shops%2F2{query}".replace("%2C", ",")


def test_without_the_form_nothing_is_led_elsewhere() -> None:
    assert address(("id", "gte.5")).filtered() is None


def test_a_condition_is_removed_alone() -> None:
    here = address(("id", "gte.5"), ("id", "lt.9"), ("after", "c"))

    assert here.without(("id", "gte.5")) == "/models/shops%2F2?id=lt.9"


def test_pages_follow_each_other() -> None:
    here = address(("id", "gte.5"), ("after", "one"))

    assert here.next_page("two") == "/models/shops%2F2?id=gte.5&after=two"
    assert here.first_page == "/models/shops%2F2?id=gte.5"


def test_columns_are_shown_by_select_and_all_of_them_without() -> None:
    assert address().showing(["a,b"]) == "/models/shops%2F2?select=%22a,b%22"
    assert address(("select", "id")).showing(["id", "a,b", "limit"]) == "/models/shops%2F2"


def test_a_download_has_the_rows_of_all_pages_and_nothing_of_the_page() -> None:
    here = address(
        ("id", "gte.5"), ("order", "id.desc"), ("select", "id"), ("after", "c"),
        ("limit", "5"), ("page.chart", "bars"), ("key", "id:7"),
    )  # fmt: skip

    assert here.download("csv", 100) == (
        "/v1/models/shops%2F2?id=gte.5&order=id.desc&select=id&key=id:7&limit=100&format=csv"
    )


def test_the_wish_for_a_chart_is_read() -> None:
    here = address(
        ("page.chart", "lines"), ("page.x", "at"), ("page.number", "n"), ("page.number", "m")
    )

    assert here.chart_wish == ChartWish("lines", "at", ("n", "m"), ())
    assert here.hidden("page.number") == [("page.chart", "lines"), ("page.x", "at")]


def test_items_with_signs_of_lists_are_quoted() -> None:
    assert [quoted_item(name) for name in ("a", "a b", 'a"b', "a\\b", "(a)")] == [
        "a",
        "a b",
        '"a\\"b"',
        '"a\\\\b"',
        '"(a)"',
    ]
