"""PIVOT is groups, UNPIVOT a generator."""

from __future__ import annotations

import pytest
from sqlglot import exp

from livemart.plan.plan import Inputs
from livemart.plan.planner import plan_query
from livemart.plan.sql.parse import parse
from livemart.plan.sql.pivots import write_pivots

SCHEMA = {"t": {"a": "", "b": "", "c": "", "d": ""}}


def written(text: str) -> str | None:
    """Return the subquery that replaces the only pivot of a query, None if it stays."""
    tree = parse(text)
    write_pivots(tree, SCHEMA)
    if any(item.args.get("pivots") for item in tree.find_all(exp.Table, exp.Subquery)):
        return None
    replaced: str = tree.args["from_"].this.sql("spark")
    return replaced


@pytest.mark.parametrize(
    ("text", "subquery"),
    [
        (
            "select * from (select a, b as B, c from t) pivot (max(a) for c in ('x', 2 as two)) p",
            "(SELECT b, MAX(a) FILTER(WHERE c = 'x') AS x, MAX(a) FILTER(WHERE c = 2) AS two"
            " FROM (SELECT a, b AS B, c FROM t) GROUP BY b HAVING COUNT(*) > 0) AS p",
        ),
        (
            "with q as (select c, d from t) select * from q"
            " pivot (count(*) as n, min(d) as m for c in (1 as one)) as p (u, v)",
            "(SELECT COUNT(*) FILTER(WHERE c = 1) AS one_n, MIN(d) FILTER(WHERE c = 1) AS one_m"
            " FROM q HAVING COUNT(*) > 0) AS p(u, v)",
        ),
        (
            "select * from t pivot (sum(a) for (b, c) in ((1, 2) as x)) where x > 1",
            "(SELECT d, SUM(a) FILTER(WHERE (b, c) = (1, 2)) AS x FROM t GROUP BY d"
            " HAVING COUNT(*) > 0) AS t",
        ),
        (
            "select k from t as q unpivot include nulls (v for k in (a, b as `B b`))",
            "(SELECT c, d, __unpivoted.k, __unpivoted.v FROM t AS q"
            " LATERAL VIEW STACK(2, 'a', a, 'B b', b) __unpivoted AS k, v) AS q",
        ),
    ],
)
def test_a_pivot_is_a_subquery_with_its_columns(text: str, subquery: str) -> None:
    assert written(text) == subquery


@pytest.mark.parametrize(
    "text",
    [
        # Spark makes up a name, or the columns of the table are not known.
        "select * from t pivot (sum(a) for b in (date'2026-01-01'))",
        "select * from t pivot (sum(a), max(c) for b in (1 as x))",
        "select * from (select * from t) pivot (sum(a) for b in (1 as x))",
        "select * from elsewhere.t pivot (sum(a) for b in (1 as x))",
        "select * from t unpivot ((v, w) for k in ((a, b), (c, d)))",
        "with q (x, y) as (select a, b from t) select * from q pivot (sum(x) for y in (1 as one))",
    ],
)
def test_a_pivot_whose_columns_are_not_known_stays(text: str) -> None:
    assert written(text) is None


def test_a_name_means_the_nearest_common_table_expression_before_it() -> None:
    tree = parse(
        "with q as (select a, b from t), r as (with q as (select a, b, c from q) select 1 as one"
        " union all select * from q pivot (sum(a) for b in (1 as x))) select * from r"
    )
    write_pivots(tree, SCHEMA)

    assert "GROUP BY c" in tree.sql("spark")


def test_a_pivot_of_joined_tables_is_not_left_out() -> None:
    inputs = Inputs({"s.t": ("a", "b", "c"), "s.u": ("b", "d")})
    plan = plan_query(
        "select c, count(*) as n from s.t join s.u on t.b = u.b"
        " pivot (sum(a) for d in (1 as one)) group by c",
        inputs,
    )

    assert [reason.code for reason in plan.reasons] == ["PARSE_UNSUPPORTED"]


def test_the_column_whose_values_are_columns_is_read() -> None:
    plan = plan_query(
        "select * from s.t pivot (sum(a) for b in (1 as one))", Inputs({"s.t": ("a", "b", "c")})
    )

    assert plan.strategy.name == "region"
    assert plan.used[0] == {"a", "b", "c"}
