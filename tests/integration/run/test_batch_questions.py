"""SQL that dbt makes from what the warehouse answers is that of a build at this very moment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from livemart.project.cursors import SparkCursor
from livemart.store.reader import StoreReader
from tests.integration.run.shop import FIRST, ORDERS, THEN, order, shop_project
from tests.project_run import ProjectRun, reasons, strategies
from tests.waits import wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# They ask as the macros of dbt_utils do that have these names.
MACROS = """
{% macro column_values(table, column, default=none) %}
  {% if not execute %}{{ return(default or []) }}{% endif %}
  {% set is_there = load_relation(table) is not none %}
  {% if not is_there and default is none %}
    {{ exceptions.raise_compiler_error("relation " ~ table ~ " does not exist") }}
  {% elif not is_there %}{{ return(default) }}{% endif %}
  {% call statement('column_values', fetch_result=true) %}
    select {{ column }} as value from {{ table }} group by {{ column }}
    order by count(*) desc, value
  {% endcall %}
  {{ return(load_result('column_values')['data'] | map(attribute=0) | list) }}
{% endmacro %}
{% macro pivot(column, values) %}
  {% for value in values %}
  , sum(case when {{ column }} = '{{ value }}' then 1 else 0 end) as {{ value }}
  {% endfor %}
{% endmacro %}
{% macro names_of(relation) %}
  {% if not execute %}{{ return([]) }}{% endif %}
  {{ return(adapter.get_columns_in_relation(relation) | map(attribute='name') | list) }}
{% endmacro %}
{% macro union_relations(relations) %}
  {% set all = [] %}
  {% for relation in relations %}{% for name in names_of(relation) %}
    {% if name not in all %}{% do all.append(name) %}{% endif %}
  {% endfor %}{% endfor %}
  {% for relation in relations %}{% set names = names_of(relation) %}
  select {% for name in all or ['*'] %}
    {{ name if name in names or name == '*' else 'cast(null as string) as ' ~ name }}
    {{- ',' if not loop.last }}{% endfor %} from {{ relation }}
  {{ 'union all' if not loop.last }}{% endfor %}
{% endmacro %}
{% macro star(relation, without=[]) %}
  {{ names_of(relation) | reject('in', without) | join(', ') or '*' }}
{% endmacro %}
{% macro relations_like(schema, pattern) %}
  {% if not execute %}{{ return([]) }}{% endif %}
  {% call statement('like', fetch_result=true) %}
    show table extended in {{ schema }} like '{{ pattern }}'
  {% endcall %}
  {{ return(load_result('like')['data'] | map(attribute=1) | sort) }}
{% endmacro %}
{% macro one_value(sql) %}
  {% if not execute %}{{ return(0) }}{% endif %}
  {% set answer = run_query(sql) %}
  {{ return(answer.columns[0].values()[0]) }}
{% endmacro %}
{% test same_count(model, other) %}
  {% set names = names_of(other) %}
  select a.n from (select count(*) as n from {{ model }}) as a,
    (select count({{ names[0] if names else '*' }}) as n from {{ other }}) as b where a.n <> b.n
{% endtest %}
"""
STAGED = "{{ ref('staged') }}"
MODELS = {
    "staged": f"{{{{ config(materialized='view') }}}} select * from {ORDERS}",
    "a": f"select order_id, amount from {ORDERS} where shop_id = 'a'",
    "b": f"select order_id, method from {ORDERS} where shop_id <> 'a'",
    # A query without an order, whose answers are columns.
    "pivoted": "select shop_id {% if execute %}{% set methods = run_query('select distinct method"
    " from ' ~ ref('staged')).columns[0].values() %}{% else %}{% set methods = [] %}{% endif %}"
    "{{ pivot('method', methods) }} from {{ ref('staged') }} group by shop_id",
    "by_method": "select shop_id {{ pivot('method', column_values(ref('staged'), 'method')) }}"
    " from {{ ref('staged') }} group by shop_id",
    "unioned": "{{ union_relations([ref('a'), ref('b')]) }}",
    "starred": "select {{ star(ref('unioned'), ['amount']) }} from {{ ref('unioned') }}",
    # Its seed is not above it.
    "highest": f"select shop_id, max(amount) as most from (select shop_id, amount from {ORDERS}"
    "{% set old = adapter.get_relation(none, 'mini', 'legacy_orders') if execute %}"
    "{% if old %} union all select shop_id, cast(amount as decimal(10,2)) from {{ old }}"
    "{% endif %}) group by shop_id",
}
MORE = {
    "with_default": "select shop_id {{ pivot('method', column_values(ref('b'), 'method', [])) }}"
    " from {{ ref('staged') }} group by shop_id",
    "parts": "{{ config(materialized='ephemeral') }} select {{ star(ref('unioned')) }}"
    " from {{ ref('unioned') }}",
    "of_parts": "select count(*) as n, count(method) as methods from {{ ref('parts') }}",
    "unpivoted": "{% for name in names_of(ref('a')) if name != 'order_id' %}"
    "select order_id, '{{ name }}' as field, cast({{ name }} as string) as value"
    " from {{ ref('a') }}{{ ' union all ' if not loop.last }}{% else %}"
    "select 0 as order_id, '' as field, '' as value where false{% endfor %}",
    "newest": "select {{ star(ref('staged')) }} from (select *, row_number() over (partition by"
    " shop_id order by updated_at desc, order_id) as place from {{ ref('staged') }})"
    " where place = 1",
    "listed": "{% for name in relations_like('mini', 'pivot*') %}select '{{ name }}' as name"
    "{{ ' union all ' if not loop.last }}{% else %}select '' as name where false{% endfor %}",
    "days": "select explode(sequence(date'2026-03-01', date'{{ one_value("
    '"select coalesce(max(date(ordered_at)), date\'2026-03-01\') from " ~ ref("staged")) }}\','
    " interval 1 day)) as day",
    "numbered": "{% for n in range(one_value('select count(*) from ' ~ ref('a'))) %}"
    "select {{ n }} as n{{ ' union all ' if not loop.last }}"
    "{% else %}select 0 as n where false{% endfor %}",
    "above": "select shop_id, most, (select count(*) from {{ ref('of_parts') }}) as n"
    " from {{ ref('highest') }}",
}
DASHBOARD = """
version: 2
models:
  - name: pivoted
    constraints: [{type: primary_key, columns: [shop_id]}]
    columns: [{name: shop_id, constraints: [{type: not_null}]}]
exposures:
  - name: dashboard
    type: dashboard
    owner: {name: owner}
    depends_on: [ref('pivoted')]
"""


def _project(
    spark: SparkSession, root: Path, models: Mapping[str, str], **flags: object
) -> ProjectRun:
    run = shop_project(spark, root, models, FIRST, **flags)
    (run.project / "macros").mkdir()
    (run.project / "seeds" / "legacy_orders.csv").write_text("shop_id,amount\na,90\nc,4\n")
    run.edit("macros/asking.sql", MACROS)
    return run


def _counted(run: ProjectRun, name: str) -> Counter[Any]:
    return Counter(str(sorted(row.items())) for row in run.rows(f"mini.{name}"))


def _correct(run: ProjectRun) -> None:
    corrected = (2, "a", "cash", "6.00", FIRST[1][4])
    run.deliver("orders", order(*corrected, later=1), order(*FIRST[2], later=1, op="d"))


def test_an_answer_with_times_that_python_does_not_have_is_text(spark: SparkSession) -> None:
    cursor = SparkCursor(lambda: spark, {})
    cursor.execute(
        "select date'+10000-01-01' as d, named_struct('date', 1) as d,"
        " array(timestamp_micros(-62135596800000001)) as t"
    )

    assert cursor.fetchall() == [("+10000-01-01", (1,), "[0000-12-31 23:59:59.999999]")]


# 20 s.
@pytest.mark.extended
def test_a_model_is_compiled_again_when_the_warehouse_answers_otherwise(
    spark: SparkSession, tmp_path: Path
) -> None:
    names = ("staged", "a", "b", "pivoted", "unioned", "highest")
    run = _project(spark, tmp_path, {name: MODELS[name] for name in names})

    run.refresh()

    assert {row["order_id"]: row["method"] for row in run.rows("mini.unioned")} == {
        1: None,
        2: None,
        3: "card",
    }
    assert set(run.rows("mini.pivoted")[0]) == {"shop_id", "card", "cash"}

    run.deliver("orders", *(order(*row) for row in THEN))
    run.restart()
    run.refresh()

    assert {row["shop_id"]: row["voucher"] for row in run.rows("mini.pivoted")} == {"a": 1, "b": 0}
    assert reasons(run.newest)["pivoted"] == "ASKS_THE_WAREHOUSE"
    # The batch began again, behind the commits of some: all of them are reported.
    changed = {key.split(".")[-1]: it.rows_changed for key, it in run.newest.models.items()}
    assert [changed[name] for name in ("a", "b", "pivoted")] == [1, 1, 2]
    assert {row["shop_id"]: str(row["most"]) for row in run.rows("mini.highest")} == {
        "a": "90.00",
        "b": "7.00",
        "c": "4.00",
    }
    assert strategies(run.newest)["unioned"] in ("append", "signed", "region")

    _correct(run)
    run.refresh()

    # Its answer has changed and its text has not.
    assert "full" not in strategies(run.newest).values()
    assert {row["shop_id"]: row["card"] for row in run.rows("mini.pivoted")} == {"a": 1, "b": 1}
    assert run.differing() == []


@pytest.mark.extended
@pytest.mark.parametrize("lane", ["small", "large"])
def test_every_question_is_answered_as_in_a_build(
    spark: SparkSession, tmp_path: Path, lane: str
) -> None:
    models = MODELS | MORE
    tests = (
        "version: 2\nmodels: [{name: a, data_tests: [{same_count: {other: ref('unpivoted')}}]}]\n"
    )
    run = _project(spark, tmp_path / "refreshed", models, lane=lane)
    run.edit("models/_models.yml", tests)
    run.refresh()
    assert run.differing() == []
    run.deliver("orders", *(order(*row) for row in THEN))
    run.refresh()
    run.refresh()
    assert run.differing() == []
    _correct(run)
    run.restart()
    run.refresh()
    run.deliver("orders", order(9, "d", "gift", "1.00", "2026-03-09T01:00:00Z"))
    run.refresh()
    assert run.differing() == []
    stored = {name: _counted(run, name) for name in models if name not in ("staged", "parts")}

    run.build()

    for name, rows in stored.items():
        assert (name, rows) == (name, _counted(run, name))
    assert set(run.newest.tests.values()) == {"pass"}


@pytest.mark.extended
def test_a_new_column_of_a_pivot_is_served_in_the_micro_batch_of_its_first_row(
    spark: SparkSession, tmp_path: Path
) -> None:
    models = {name: MODELS[name] for name in ("staged", "pivoted")}
    run = _project(spark, tmp_path, models, store=f"sqlite:///{tmp_path}/serving.db")
    run.edit("models/_exposures.yml", DASHBOARD)
    reader = StoreReader.open(f"sqlite:///{tmp_path}/serving.db")

    def served() -> list[dict[str, Any]]:
        if reader.newest() is None:
            return []
        with reader.snapshot() as snapshot:
            return snapshot.rows("pivoted", tenants=None)

    with closing(reader), run.streaming():
        first = [{"shop_id": "a", "card": 1, "cash": 1}, {"shop_id": "b", "card": 1, "cash": 0}]
        wait_until(lambda: served() == first)
        run.deliver("orders", *(order(*row) for row in THEN))
        wait_until(lambda: served() != first)

        assert served() == [
            {"shop_id": "a", "card": 1, "cash": 1, "voucher": 1},
            {"shop_id": "b", "card": 2, "cash": 0, "voucher": 0},
        ]


@pytest.mark.extended
def test_a_model_that_cannot_be_compiled_costs_itself_alone(
    spark: SparkSession, tmp_path: Path
) -> None:
    run = _project(spark, tmp_path, MODELS)
    run.build()
    run.edit(
        "models/pivoted.sql",
        "select shop_id {{ pivot('x', column_values(ref('nowhere_to_be'), 'x')) }} from"
        " {{ ref('staged') }}",
    )
    run.edit("models/nowhere_to_be.sql", "select 1 as y")
    run.deliver("orders", *(order(*row) for row in THEN))

    for _ in range(4):
        try:
            run.refresh()
            break
        except Exception as error:
            assert "pivoted" in str(error)

    aside = run.newest.set_aside
    assert [key.rpartition(".")[2] for key in aside] == ["pivoted"]
    assert "`x`" in next(iter(aside.values())).message
    assert "voucher" in run.rows("mini.by_method")[0]

    run.edit("models/nowhere_to_be.sql", "select 'q' as x")
    run.edit(
        "models/pivoted.sql", "select '{{ column_values(ref('nowhere_to_be'), 'x')[0] }}' as q"
    )
    run.refresh()

    assert run.rows("mini.pivoted") == [{"q": "q"}]
    assert run.newest.set_aside == {}

    # A new table, and what asks for its columns, in one edit.
    run.edit("models/wide.sql", "select 1 as secret, 2 as shown")
    run.edit(
        "models/starred.sql", "select {{ star(ref('wide'), ['secret']) }} from {{ ref('wide') }}"
    )
    run.refresh()

    assert run.rows("mini.starred") == [{"shown": 2}]
    assert run.differing() == []
