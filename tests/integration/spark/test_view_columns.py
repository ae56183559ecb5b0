"""A view that is entered with the columns of an earlier session is the one that SQL would make.

8 s.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from livemart.spark.catalog import register
from livemart.state.places import StateFolder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.shared_spark import SharedSpark

NEW_YORK = {"session": {"settings": [["spark.sql.session.timeZone", "America/New_York"]]}}
VIEWS: dict[str, Any] = {
    "mart.stg": "select id, `größe`, code, at, items from raw.orders -- joe's",
    "mart.every": "select * from raw.orders",
    "mart.above": "with s as (select * from mart.stg) select s.*, hour(s.at) as hr from s",
    "mart.days": NEW_YORK | {"sql": "select id, cast(at as date) as day from raw.orders"},
    "mart.both": "select a.id, d.day from mart.above as a join mart.days as d on a.id = d.id",
    "mart.by_path": "select id from delta.`{orders}`",
    "mart.early": "select n from raw.not_built_yet",
}
KNOWN = {"mart.stg", "mart.every", "mart.above", "mart.days", "mart.both"}


class Warehouse:
    """A table and views over it, for sessions that begin one after the other."""

    def __init__(self, spark: SparkSession, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.spark, self.root = spark, root
        self.orders = root / "raw" / "orders"
        self.views = json.loads(json.dumps(VIEWS).replace("{orders}", str(self.orders)))
        self.statements: list[str] = []
        spark.sql(
            f"create table delta.`{self.orders}` (id int not null comment 'the key', "
            "`größe` decimal(10, 2), code varchar(3), at timestamp, items array<struct<n: int>>)"
        )
        spark.sql(
            f"insert into delta.`{self.orders}` values"
            " (1, 2.50, 'abc', timestamp'2026-03-01 03:00:00Z', array(named_struct('n', 7)))"
        )
        self.write()
        run: Callable[..., Any] = type(spark).sql

        def note(session: SparkSession, text: str, *given: Any, **named: Any) -> Any:
            self.statements.append(text)
            return run(session, text, *given, **named)

        monkeypatch.setattr(type(spark), "sql", note)

    @property
    def columns(self) -> Path:
        return StateFolder(self.root).view_columns

    def write(self, views: Mapping[str, Any] | None = None) -> None:
        """Keep views as a session before did that knew the project."""
        path = StateFolder(self.root).views
        path.parent.mkdir(parents=True, exist_ok=True)
        stored = {
            relation: {"sql": view} if isinstance(view, str) else view
            for relation, view in (self.views | dict(views or {})).items()
        }
        path.write_text(json.dumps(stored))

    def begin(self) -> set[str]:
        """Begin a session on an empty catalog; return the views that Spark had to analyse."""
        external = self.catalog
        for schema in ("raw", "mart"):
            if external.databaseExists(schema):
                for name in external.listTables(schema).mkString("\n").split():
                    external.dropTable(schema, name, True, False)
        return self._analysed_by(lambda: register(self.spark, self.root))

    def remake(self) -> set[str]:
        """Let the session make its views again; return those that Spark had to analyse."""
        return self._analysed_by(lambda: register(self.spark, self.root, remakes_views=True))

    def _analysed_by(self, action: Callable[[], object]) -> set[str]:
        self.statements.clear()
        action()
        return {
            text.split(" as ")[0].split()[-1].replace("`", "")
            for text in self.statements
            if text.startswith("create or replace view")
        }

    @property
    def catalog(self) -> Any:
        jvm_session: Any = self.spark._jsparkSession
        return jvm_session.sessionState().catalog().externalCatalog()

    def entries(self) -> dict[str, object]:
        """Return all that the catalog, its readers and the views themselves say."""
        said: dict[str, object] = {}
        for relation in sorted([*KNOWN, "mart.by_path"]):
            text = self.catalog.getTable(*relation.split(".")).toString()
            described = self.spark.sql(f"describe extended {relation}").collect()
            said[relation] = (
                [line for line in text.splitlines() if "Created Time" not in line],
                [row for row in described if row.col_name != "Created Time"],
                self.spark.table(relation).schema.json(),
                self.spark.table(relation).collect(),
                self.spark.sql(f"show create table {relation}").collect(),
            )
        return said


@pytest.fixture
def warehouse(
    shared_spark: SharedSpark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Warehouse:
    return Warehouse(shared_spark.emptied(), tmp_path / "joe's ware house", monkeypatch)


def test_an_entry_is_the_one_that_create_view_makes(warehouse: Warehouse) -> None:
    # Once for views that are not there yet, and again for those that are.
    assert warehouse.begin() == {*VIEWS}
    made = warehouse.entries()

    assert warehouse.begin() == {"mart.by_path", "mart.early"}

    assert warehouse.entries() == made
    assert str(warehouse.spark.table("mart.days").collect()[0].day) == "2026-02-28"
    warehouse.spark.sql("create or replace view mart.stg as select 1 as n")
    warehouse.spark.sql("drop view mart.every")


def test_a_session_makes_views_again_whose_columns_may_be_others(warehouse: Warehouse) -> None:
    warehouse.begin()
    others = {"mart.by_path", "mart.early"}
    assert warehouse.remake() == others

    warehouse.spark.sql(f"alter table delta.`{warehouse.orders}` add columns (extra int)")
    assert warehouse.remake() == {*VIEWS}
    assert warehouse.spark.table("mart.every").columns[-1] == "extra"
    assert warehouse.remake() == others

    # dbt beside the session.
    warehouse.spark.sql("create or replace view mart.stg as select 1 as id, current_date as at")
    assert warehouse.remake() == {"mart.stg", *others}
    assert warehouse.spark.table("mart.above").columns[-1] == "hr"


def test_what_has_changed_is_analysed_again(warehouse: Warehouse) -> None:
    warehouse.begin()
    others = {"mart.by_path", "mart.early"}

    warehouse.write({"mart.stg": "select id, at, 'x' as code from raw.orders"})
    assert warehouse.begin() == {"mart.stg", "mart.above", "mart.both"} | others
    assert warehouse.spark.table("mart.above").columns == ["id", "at", "code", "hr"]
    assert warehouse.begin() == others

    zone = {"session": {"settings": [["spark.sql.session.timeZone", "Asia/Tokyo"]]}}
    warehouse.write({"mart.days": warehouse.views["mart.days"] | zone})
    assert warehouse.begin() == {"mart.stg", "mart.above", "mart.days", "mart.both"} | others

    warehouse.spark.sql(f"alter table delta.`{warehouse.orders}` add column more double")
    assert warehouse.begin() == {*VIEWS}
    assert warehouse.spark.table("mart.every").columns[-1] == "more"

    # A session that has begun beside it has kept its own settings.
    warehouse.spark.conf.set("spark.sql.legacy.sizeOfNull", "true")
    assert warehouse.begin() == {*VIEWS} - {"mart.days"}
    assert warehouse.begin() == others

    # Not in this one: Delta keeps there, as a setting, which version it has committed last.
    builder = warehouse.spark.newSession()
    builder.sql(f"create table delta.`{warehouse.root}/raw/not_built_yet` (n int)")
    assert warehouse.begin() == others
    assert warehouse.begin() == {"mart.by_path"}


def test_a_file_that_is_not_ours_is_written_anew(warehouse: Warehouse) -> None:
    for text in ("", "[1]", '{"mart.stg": 1}', '{"mart.stg": {"reads": []}}'):
        warehouse.columns.write_text(text)

        assert warehouse.begin() == {*VIEWS}, text
        assert json.loads(warehouse.columns.read_text()).keys() == KNOWN, text
