from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from livemart.project.graph import Project
from livemart.project.hooks.dbt_hooks import NO_HOOKS, NOT_RENDERED, Hooks
from livemart.project.hooks.filled_tables import with_filled_tables, yields_nothing
from tests.models import make_model

EMPTY = "select cast(null as string) as run where 1 = 0"
ROWS = "select 'began' as run"
KEPT: dict[str, Any] = {"materialized": "incremental", "config": {"full_refresh": False}}
LOG, ORDERS = "model.m.run_log", "model.m.orders"


def test_a_custom_materialization_is_a_table_once_the_warehouse_has_it() -> None:
    own = {LOG: make_model(LOG, compiled_code=ROWS, materialized="other")}
    project = Project("m", ".", "m", {}, own, {}, {})

    made = with_filled_tables(project, NO_HOOKS, is_table="m.run_log".__eq__).models[LOG]

    assert (made.filled, made.is_stored, made.is_of_dbt) == ("partly", True, True)
    said = replace(project, models={LOG: replace(own[LOG], filled_by="sql")})
    for known in (
        with_filled_tables(project, NO_HOOKS),
        with_filled_tables(said, NO_HOOKS, is_table="m.run_log".__eq__),
    ):
        assert (known.models[LOG].is_stored, known.models[LOG].is_of_dbt) == (False, False)


def filled(sql: str, hooks: Hooks = NO_HOOKS, **other: Any) -> str:
    models = {
        ORDERS: make_model(ORDERS, compiled_code="select * from raw.orders"),
        LOG: make_model(LOG, compiled_code=sql, **other),
    }
    project = with_filled_tables(Project("m", ".", "m", {}, models, {}, {}), hooks)
    assert project.models[ORDERS].filled == "no"
    return project.models[LOG].filled


@pytest.mark.parametrize(
    "sql",
    [
        EMPTY,
        "with one as (select 1 as n) select n from one where 1 = 0",
        "select * from (select cast(null as int) as n) as empty_table where 1 = 0",
        "select n from m.orders where false and n > 3",
        "select n from m.orders limit 0",
        "select n from (select 1 as n where false) as q",
        "with none as (select 1 as n limit 0) select n + 1 as n from none",
        "select 1 as n where false union all select 2 where 1 > 2",
        "select n, count(*) as c from m.orders where false group by n",
    ],
)
def test_an_empty_select_yields_nothing_whatever_its_tables_hold(sql: str) -> None:
    assert yields_nothing(sql)


@pytest.mark.parametrize(
    "sql",
    [
        ROWS,
        "select count(*) as n from m.orders where false",
        "select 1 as n from m.orders where false having true",
        "select n, count(*) as c from m.orders where false group by n with rollup",
        "select 1 as n where false union all select 2",
        "select 1 as n where false except select 2 where 1 = 1 union all select 3",
        "select b.n from (select 1 as n where false) as a right join m.orders as b using (n)",
        "select n from m.orders where n = 0 limit 10",
        "select n from m.none where 1 = 1",
        "select case when false then 1 end as n from m.orders",
    ],
)
def test_a_query_that_may_have_rows_does_not(sql: str) -> None:
    assert not yields_nothing(sql)


def test_an_empty_table_that_dbt_never_makes_anew_is_filled_by_hooks() -> None:
    assert filled(EMPTY, **KEPT) == "wholly"
    assert filled("select * from m.orders limit 0", depends_on=(ORDERS,), **KEPT) == "wholly"


def test_what_dbt_adds_to_without_reading_anything_is_filled_partly() -> None:
    assert filled(ROWS, **KEPT) == "partly"
    assert filled("with r as (select 1 as n) select n from r", **KEPT) == "partly"


def test_an_incremental_model_that_reads_tables_is_what_its_sql_says() -> None:
    assert filled("select * from m.orders", depends_on=(ORDERS,), **KEPT) == "no"
    assert filled("select * from m.orders", **KEPT) == "no"
    assert filled(ROWS, materialized="incremental") == "no"


def test_an_empty_table_that_nothing_is_known_to_fill_is_what_its_sql_says() -> None:
    assert filled(EMPTY) == "no"
    assert filled(EMPTY, Hooks(on_run_end=("grant select on m.run_log to x",))) == "no"


def test_a_macro_of_a_hook_may_fill_an_empty_table_that_reads_nothing() -> None:
    hooks = Hooks(on_run_end=(f"{NOT_RENDERED} {{{{ keep_results(results) }}}}",))

    assert filled(EMPTY, hooks) == "wholly"
    assert filled(ROWS, hooks) == "no"
    assert filled("select * from m.orders limit 0", hooks, depends_on=(ORDERS,)) == "no"


@pytest.mark.parametrize(
    "statement",
    [
        "insert into m.run_log values ('x')",
        "INSERT OVERWRITE TABLE `m`.`run_log` select 'x'",
        "/* dbt */ delete from m.run_log where run is null;",
        "update m.run_log set run = 'y'",
        "merge into spark_catalog.m.run_log as t using s on t.run = s.run when matched then delete",
        "with s as (select 1) insert into m.run_log select * from s",
        "truncate table m.run_log",
        f"{NOT_RENDERED} insert into {{{{ ref('run_log') }}}} select '{{{{ invocation_id }}}}'",
        f"{NOT_RENDERED} delete from {{{{ ref('shop', 'run_log') }}}}",
        f"{NOT_RENDERED} insert into {{{{ target.schema }}}}.run_log select 1",
        "from s insert into m.run_log select *",
        "execute immediate 'insert into m.run_log select ?' using 'x'",
        f"{NOT_RENDERED} EXECUTE  IMMEDIATE \"insert into {{{{ ref('run_log') }}}} values (1)\"",
        f"{NOT_RENDERED} -- it's a log\ninsert into {{{{ ref('run_log') }}}} values (1)",
        f"{NOT_RENDERED} {{# a log #}} insert into {{{{ ref('run_log') }}}} values (1)",
        f"{NOT_RENDERED} {{% if execute %}}\n  insert into m.run_log values (1)\n{{% endif %}}",
    ],
)
def test_a_statement_of_any_hook_that_writes_into_a_table_fills_it(statement: str) -> None:
    for hooks in (
        Hooks(on_run_start=(statement,)),
        Hooks(on_run_end=(statement,)),
        Hooks(before={ORDERS: (statement,)}),
        Hooks(after={ORDERS: (statement,)}),
        Hooks(after={LOG: (statement,)}),
    ):
        assert filled(ROWS, hooks) == "partly"
        assert filled(EMPTY, hooks) == "wholly"


def test_a_post_hook_that_only_a_build_renders_fills_its_own_table() -> None:
    statement = f"{NOT_RENDERED} insert into {{{{ this }}}} select '{{{{ results_of() }}}}'"

    assert filled(ROWS, Hooks(after={LOG: (statement,)})) == "partly"


@pytest.mark.parametrize(
    "statement",
    [
        "optimize m.run_log",
        "grant select on table m.run_log to x",
        "alter table m.run_log set tblproperties ('a' = 'b')",
        "insert into m.other select * from m.run_log",
        "insert into other.run_log values ('x')",
    ],
)
def test_a_hook_that_writes_no_row_of_a_table_does_not(statement: str) -> None:
    assert filled(ROWS, Hooks(after={LOG: (statement,)})) == "no"


def test_what_its_pre_hook_writes_is_gone_when_a_table_is_made() -> None:
    assert filled(ROWS, Hooks(before={LOG: ("delete from m.run_log",)})) == "no"


def test_its_author_has_the_last_word() -> None:
    assert filled(ROWS, filled_by="hooks") == "partly"
    assert filled(EMPTY, filled_by="hooks") == "wholly"
    assert filled(EMPTY, filled_by="sql", **KEPT) == "no"


def test_a_view_holds_no_rows_of_hooks() -> None:
    assert filled(EMPTY, filled_by="hooks", materialized="view") == "no"
