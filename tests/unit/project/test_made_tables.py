"""The tables that a test makes while it is compiled are known by the statements that it sends."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import yaml

from livemart.project.cursors import MakingCursor, made_relation
from livemart.project.dbt import Dbt
from livemart.project.run_values import CANONICAL, OTHER


@pytest.mark.parametrize(
    ("statement", "relation"),
    [
        ("create or replace table watch.n using delta as select 1 as n", "watch.n"),
        ("/* dbt */ CREATE TABLE `Watch`.`n__tmp_7`(n int);", "watch.n__tmp_7"),
        ("create table spark_catalog . watch . n as select 1 as n", "watch.n"),
        # Made to stay, or not in a schema of the warehouse.
        ("create table if not exists watch.log (n int)", None),
        ("create table n as select 1 as n", None),
        ("create table one.two.three.four (n int)", None),
        ("create table `../watch`.`n` (n int)", None),
        # They make no table.
        ("create or replace temporary view watch_n as select 1 as n", None),
        ("insert into watch.n values (1)", None),
        ("select 'create table watch.n' as n", None),
    ],
)
def test_a_table_is_made_by_the_statement_that_names_it(
    statement: str, relation: str | None
) -> None:
    assert made_relation(statement) == relation


def test_a_cursor_notes_each_table_once_and_none_that_spark_refuses() -> None:
    class Session:
        def sql(self, statement: str) -> object:
            if "refused" in statement:
                raise ValueError(statement)
            return object()

    made: list[str] = []
    cursor = MakingCursor(lambda: cast("Any", Session()), {}, made)

    for statement in ("create table a.b (n int)", "create or replace table a.b (n int)"):
        cursor.execute(statement)
    with pytest.raises(ValueError, match="refused"):
        cursor.execute("create table a.refused (n int)")

    assert made == ["a.b"]


class _Spark:
    """A session in which every statement has no rows; keeps what it was sent."""

    def __init__(self) -> None:
        self.statements: list[str] = []
        self.conf = SimpleNamespace(get=lambda name, default: default, set=lambda name, value: None)

    def newSession(self) -> _Spark:
        return self

    def sql(self, statement: str) -> SimpleNamespace:
        self.statements.append(statement)
        schema = SimpleNamespace(fields=[])
        return SimpleNamespace(schema=schema, collect=list, take=lambda count: [])


def test_the_tables_of_a_test_are_made_and_known_each_time_that_a_batch_compiles_it(
    tmp_path: Path,
) -> None:
    output = {"type": "spark", "method": "session", "schema": "mart", "host": "NA"}
    for name, content in (
        ("dbt_project.yml", {"name": "till", "profile": "till", "macro-paths": ["macros"]}),
        ("profiles.yml", {"till": {"target": "local", "outputs": {"local": output}}}),
        ("models/a.yml", {"models": [{"name": "a", "data_tests": ["watched", "plain"]}]}),
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(yaml.safe_dump(content))
    (tmp_path / "models" / "a.sql").write_text("select 1 as n")
    (tmp_path / "macros").mkdir()
    (tmp_path / "macros" / "tests.sql").write_text(
        "{% test watched(model) %}{% if execute %}"
        "{% do run_query('create table watch.t_' ~ invocation_id[:2] ~ ' as select 1 as n') %}"
        "{% endif %} select * from {{ model }} where false {% endtest %}"
        "{% test plain(model) %} select * from {{ model }} where false {% endtest %}"
    )
    spark = _Spark()
    dbt = Dbt(tmp_path, tmp_path, warehouse=tmp_path, session=lambda: cast("Any", spark))

    project = dbt.load()
    assert spark.statements == []
    watched, plain = (
        next(key for key in project.tests if kind in key) for kind in ("watched", "plain")
    )
    assert dbt.writing == {watched}
    for run in (CANONICAL, OTHER):
        dbt.run = run
        dbt.compile_again([watched, plain])

        assert dbt.made_tables == {watched: [f"watch.t_{run.invocation_id[:2]}"]}
        assert "create table watch.t_" in spark.statements[-1]
    assert len(spark.statements) == 2
    dbt.compile_again([plain])
    assert dbt.made_tables == {}
