"""Which columns only say which run wrote a row."""

from __future__ import annotations

import pytest

from livemart.plan.reasons import Inapplicable
from livemart.plan.sql.stamps import stamps_of, without_stamps

SCHEMA = {"t": {name: "unknown" for name in ("id", "shop", "amount", "at")}}


@pytest.mark.parametrize(
    ("sql", "names", "expected"),
    [
        (
            "select shop, count(*) as n, '{run}' as run from t group by 1",
            "shop n run",
            {"run": "'a'"},
        ),
        (
            "select shop, count(*) as n, '{run}' as run from t group by 1, 3",
            "shop n run",
            {"run": "'a'"},
        ),
        (
            "with f as (select shop, cast('{day}' as date) as day from t) select * from f",
            "shop day",
            {"day": "cast('2026-01-02' as date)"},
        ),
        (
            "select q.shop, q.run from (select shop, '{run}' as run from t) as q",
            "shop run",
            {"run": "'a'"},
        ),
        (
            "select shop, '{run}' as run from t union all select shop, '{run}' from t",
            "shop run",
            None,
        ),
        ("select distinct shop, '{run}' as run from t", "shop run", None),
        ("select shop from t where at >= timestamp'{day}'", "shop", None),
        ("select shop, '{run}' as run from t where at >= timestamp'{day}'", "shop run", None),
        ("select shop, concat(shop, '{run}') as run from t", "shop run", None),
        ("select '{run}' as run from t", "run", None),
        (
            "select t.shop, q.run from t left join (select shop, '{run}' as run from t) as q"
            " on q.shop = t.shop",
            "shop run",
            None,
        ),
        (
            "with f as (select shop, '{run}' as run from t) select shop, max(run) as run"
            " from f group by shop",
            "shop run",
            None,
        ),
        (
            "with f as (select shop, explode(array('{run}', 'b')) as e from t)"
            " select shop, '{run}' as run from f",
            "shop run",
            None,
        ),
        ("select shop, '{run}' as run from t group by shop, '{run}' with rollup", "shop run", None),
        (
            "select shop, to_json(struct('{run}' as A)) as run from t",
            "shop run",
            {"run": "to_json(struct('a' as A))"},
        ),
        (
            "select shop, row_number() over (partition by shop order by at) as n, '{run}' as run"
            " from t",
            "shop n run",
            {"run": "'a'"},
        ),
    ],
)
def test_a_column_that_no_row_depends_on_is_a_stamp(
    sql: str, names: str, expected: dict[str, str] | None
) -> None:
    text = sql.format(run="a", day="2026-01-02")
    other = sql.format(run="b", day="2001-02-03")

    assert stamps_of([text, other], SCHEMA) == (tuple(names.split()), expected)


def test_what_differs_in_one_of_the_runs_alone_is_known() -> None:
    texts = ["select shop, 'am' as half from t", "select shop, 'am' as half from t where id > 1"]
    halves = [f"select shop, '{half}' as half from t" for half in ("am", "am", "pm")]

    assert stamps_of(texts, SCHEMA)[1] is None
    assert stamps_of(halves, SCHEMA)[1] == {"half": "'am'"}


def test_what_nobody_selects_is_no_stamp_and_decides_nothing() -> None:
    texts = [f"select shop from (select shop, '{run}' as run from t) as q" for run in "ab"]

    assert stamps_of(texts, SCHEMA) == (("shop",), {})


def test_columns_that_spark_names_are_not_taken_apart() -> None:
    texts = [f"select explode(array(1)), '{run}' as run from t" for run in "ab"]

    with pytest.raises(Inapplicable):
        stamps_of(texts, SCHEMA)


def test_what_is_planned_has_the_other_columns() -> None:
    sql = without_stamps("select shop, 1 as `n m` -- of a shop\n;", ["shop", "n m"])

    assert sql == (
        "select `shop`, `n m` from (select shop, 1 as `n m` -- of a shop\n) as __unstamped__"
    )
