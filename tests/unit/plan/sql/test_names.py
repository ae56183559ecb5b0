"""Names are spelled in one way, and Spark reads them as those names."""

from __future__ import annotations

import pytest
from sqlglot import exp

from livemart.plan.plan import Inputs
from livemart.plan.planner import plan_query
from livemart.plan.sql.names import column, even_out, is_plain, note_names
from livemart.plan.sql.parse import parse
from livemart.plan.sql.written import sql_of
from livemart.spark_sql import unquoted

ODD = [
    "größe",
    "a`b",
    "a.b",
    "a b",
    'a"b',
    "it's",
    "日本",
    "null",
    "true",
    "select",
    "1a",
    "a%{b}",
    "current_path",
]


@pytest.mark.parametrize("name", ODD)
def test_an_odd_name_is_quoted_and_read_back(name: str) -> None:
    text = sql_of(column(name))

    assert text == "`" + name.replace("`", "``") + "`"
    assert unquoted(text) == name


@pytest.mark.parametrize("name", ["order_id", "CustomerKey", "_x", "n"])
def test_a_plain_name_is_not_quoted(name: str) -> None:
    assert sql_of(column(name, "t")) == f"t.{name}"
    assert unquoted(name) == name


def test_quotes_of_the_analyst_make_no_other_name() -> None:
    tree = parse("select `n`, t.`größe`, null, `null` from t")
    assert isinstance(tree, exp.Select)
    note_names(tree)
    even_out(tree)

    assert [sql_of(item) for item in tree.selects] == ["n", "t.`größe`", "null", "`null`"]
    assert not is_plain("null")


def test_the_key_of_a_map_keeps_its_letter_case() -> None:
    plan = plan_query(
        "select m.Key as k, count(distinct v) as n from raw.t group by m.Key",
        Inputs({"raw.t": ("m", "v")}),
    )

    assert plan.region is not None
    assert str(plan.region.affected[0]) == "select distinct m.Key as w0 from __touched_0__"


def test_a_table_and_a_column_may_have_the_names_of_our_own_subqueries() -> None:
    plan = plan_query(
        "select t.z, count(distinct c.v) as n from raw.a as a join raw.b as c on a.id = c.id"
        " join raw.t as t on t.x = a.x and t.y = c.w1 group by 1",
        Inputs(
            {"raw.a": ("id", "x"), "raw.b": ("id", "w1", "v"), "raw.t": ("x", "y", "z")},
        ),
    )

    assert plan.region is not None
    assert (
        "select distinct c.w1 as w0, p.w1 as w1 from (select distinct id as w0, x as w1 from"
        " __touched_0__) as c inner join (select distinct id as w0, w1 as w1 from __known_1__) as p"
    ) in str(plan.region.affected[0])
