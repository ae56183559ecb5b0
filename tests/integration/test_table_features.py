"""Effects of Delta's properties and features on rows of models, foreign sources and partitions.

Engines: Spark 4.2.0 with Delta 4.4.0, deltalake 1.6.6.
"""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from livemart.arrow.bags import NEW_COUNT, OLD_COUNT
from livemart.arrow.python_rows import python_rows
from livemart.arrow.types import plain_table
from livemart.delta.tags import Tag
from livemart.delta.warehouse import Warehouse
from livemart.errors import LivemartError, RefreshError
from livemart.inspect.verify import render_comparison
from livemart.spark.large_lane import LargeLane
from tests.integration.mini import Mini, sale
from tests.project_run import NOON, reasons

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SALES = "{{ source('shop', 'sales') }}"
SOURCES = (Path(__file__).parents[1] / "projects/mini/models/_sources.yml").read_text()
# The second of them is behind the change of New York's clock, at 06:00 UTC.
FIRST, SECOND = "2025-11-02T05:30:00+00:00", "2025-11-02T06:30:00+00:00"

PARTITIONS = {
    "date": ("'-0005-01-01'", "'0001-01-01'", "'1582-10-04'", "'9999-12-31'", "'+10000-01-01'"),
    "timestamp_ntz": (
        *("'-0001-12-31 23:59:59.999999'", "'0001-01-01 00:00:00'", "'1600-01-01 00:00:00.1'"),
        *("'2024-03-10 02:30:00'", "'+10000-01-01 00:00:00.00001'"),
    ),
    "timestamp": (
        *("'0001-01-01 00:00:00Z'", "'1883-11-18 17:01:00Z'", "'+10000-01-01 00:00:00Z'"),
        "'2024-11-03 06:30:00.5Z'",
    ),
    "decimal(38,18)": ("0", "1.5", "'-1E-18'", "'99999999999999999999.999999999999999999'"),
    "double": ("0", "'-0.0'", "'NaN'", "'-Infinity'", "1e300", "4.9E-324", "123456789"),
    "float": ("'NaN'", "0.1", "1e-7", "1e10", "16777216", "'3.4028235E38'"),
    "boolean": ("true", "false"),
    "bigint": ("'-9223372036854775808'", "7"),
    "string": ("''", "' '", "'a=b/c%'", "'ä'", "'null'", "'__HIVE_DEFAULT_PARTITION__'"),
}


@pytest.mark.extended
@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_a_build_and_a_refresh_store_the_same_partitions(
    spark: SparkSession, tmp_path: Path, zone: str
) -> None:
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", zone)
    for kind, texts in PARTITIONS.items():
        warehouse = Warehouse(tmp_path / kind)
        if kind == "timestamp" and zone != "UTC":
            texts = texts[::2]
        values = ", ".join(f"({place}, cast({text} as {kind}))" for place, text in enumerate(texts))
        query = f"select * from values {values}, (99, null) as v(id, p)"
        LargeLane(session, warehouse).overwrite("t.built", query, _tag(), partition_by=["p"])
        warehouse.create("t.moved", warehouse.arrow_schema("t.built"), partition_by=["p"])

        warehouse.overwrite("t.moved", plain_table(session.sql(query).toArrow()), _tag())

        built, moved = (
            {row["id"]: repr(row["p"]) for row in python_rows(warehouse.read(name))}
            for name in ("t.built", "t.moved")
        )
        assert built == moved
        # Java before 19 rounds the least double in another way.
        texts_of = [_partition_texts(warehouse, name) for name in ("t.built", "t.moved")]
        assert texts_of[0] - {"4.9E-324"} == texts_of[1] - {"5.0E-324", "4.9E-324"}


@pytest.mark.extended
def test_an_hour_that_comes_twice_is_stored_right_or_not_at_all(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Spark stores 06:30Z of New York's doubled hour as 05:30Z, by CTAS and by insert."""
    mini = Mini(spark, tmp_path)
    by_time = (
        "{{ config(partition_by=['at'], pre_hook=\"set time zone 'America/New_York'\") }}"
        f" select sold_at as at, count(*) as n from {SALES} group by 1"
    )
    mini.replace(SOURCES, by_time=by_time)
    mini.deliver("sales", {**sale("1"), "sold_at": FIRST})
    mini.build()
    mini.deliver("sales", {**sale("2"), "sold_at": SECOND})

    mini.refresh()

    assert [row["at"].isoformat() for row in mini.rows("mini.by_time")] == [FIRST, SECOND]
    assert _differing(mini) == []
    version = mini.warehouse.version("mini.by_time")
    with pytest.raises(
        LivemartError, match=r"PARTITION_VALUES_LOST.*by_time.*found at = .*New_York"
    ):
        mini.build()
    assert mini.warehouse.version("mini.by_time") == version
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "America/New_York")
    lane = LargeLane(session, mini.warehouse)
    query = f"select 1 as id, cast('{SECOND}' as timestamp) as at, X'FF' as k"
    with pytest.raises(Exception, match=r"PARTITION_VALUES_LOST: mini\.two: .*found at"):
        lane.overwrite("mini.two", query, _tag(), partition_by=["at"])
    # Nor does Spark write them in MERGE and INSERT.
    kinds = pa.schema([("id", pa.int64()), ("at", pa.timestamp("us", tz="UTC"))])
    mini.warehouse.create("mini.three", kinds, partition_by=["at"])
    moments = (FIRST, SECOND, "-0001-12-31T00:00:00Z")
    for number, moment in enumerate(moments):
        added = f"{number}L as id, timestamp'{moment}' as at, 0L as {OLD_COUNT}, 1L as {NEW_COUNT}"
        session.sql(f"select {added}").createOrReplaceTempView("diff")
        lane.commit("mini.three", "diff", Tag("e1/three/0", number + 1, {}))
    stored = mini.warehouse.read("mini.three").sort_by("id").column("at").cast(pa.int64())
    assert stored.to_pylist() == [
        1_762_061_400_000_000,
        1_762_065_000_000_000,
        -62_167_305_600_000_000,
    ]
    # Spark writes years before 1 without an era.
    for lost in ("timestamp'-0001-12-31 00:00:00Z'", "make_date(300000, 1, 1)"):
        with pytest.raises(Exception, match=r"PARTITION_VALUES_LOST: mini\.two: .*found d = "):
            lane.overwrite("mini.two", f"select 1 as id, {lost} as d", _tag(), partition_by=["d"])
    with pytest.raises(
        RefreshError, match=r"PARTITION_VALUES_LOST: mini\.two: .*found k, a binary"
    ):
        lane.overwrite("mini.two", query, _tag(), partition_by=["k"])


@pytest.mark.extended
def test_a_dbt_snapshot_stores_no_hour_that_comes_twice_as_the_first(
    spark: SparkSession, tmp_path: Path
) -> None:
    """From its second run on dbt adds to a snapshot by MERGE, which writes whole files again."""
    mini = Mini(spark, tmp_path)
    mini.replace(SOURCES, one="select 1 as n")
    (mini.project / "snapshots").mkdir()
    config = "unique_key='sale_id', strategy='check', check_cols='all', partition_by=['sold_at']"
    mini.edit(
        "snapshots/history.sql",
        f"{{% snapshot history %}} {{{{ config({config}) }}}}"
        f" select sale_id, amount, sold_at from {SALES} {{% endsnapshot %}}",
    )
    mini.set_zone("America/New_York")
    mini.deliver("sales", {**sale("1"), "sold_at": FIRST})
    mini.build()
    mini.deliver("sales", {**sale("2"), "sold_at": SECOND})
    lost = r"PARTITION_VALUES_LOST.*history.*found sold_at = .*New_York"

    with pytest.raises(LivemartError, match=lost):
        mini.build()

    assert [row["sold_at"].isoformat() for row in mini.rows("mini.history")] == [FIRST]
    mini.set_zone("UTC")
    mini.build()
    stored = mini.rows("mini.history")
    assert sorted(row["sold_at"].isoformat() for row in stored) == [FIRST, SECOND]
    # Nor does it end that row's time, which would store the row again.
    mini.set_zone("America/New_York")
    mini.deliver("sales", {**sale("2", amount="2.00", updated=1), "sold_at": FIRST})
    with pytest.raises(LivemartError, match=lost):
        mini.build()
    assert mini.rows("mini.history") == stored


HELD = {
    "row_tracking": {"delta.enableRowTracking": "true"},
    "commit_times": {"delta.enableInCommitTimestamps": "true"},
    "without_feed": {"delta.enableChangeDataFeed": "false"},
    "prefixed": {"delta.randomizeFilePrefixes": "true", "delta.dataSkippingNumIndexedCols": "0"},
    "compacted": {"delta.autoOptimize.autoCompact": "true", "delta.dataSkippingStatsColumns": "n"},
    "short": {
        "delta.checkpointInterval": "1",
        "delta.checkpoint.writeStatsAsJson": "false",
        "delta.checkpoint.writeStatsAsStruct": "true",
    },
    "features": {"delta.minReaderVersion": "3", "delta.minWriterVersion": "7"},
    "checked": {"delta.constraints.counted": "n > 0"},
}


@pytest.mark.extended
@pytest.mark.parametrize("lane", ["small", "large"])
def test_models_with_properties_that_hold_have_the_rows_of_a_build(
    spark: SparkSession, tmp_path: Path, lane: str
) -> None:
    mini = Mini(spark, tmp_path)
    query = f"select shop_id, count(*) as n, sum(amount) as amount from {SALES} group by 1"
    models = {
        name: "{{ config(tblproperties=" + json.dumps(properties) + ") }} " + query
        for name, properties in HELD.items()
    }
    readers = {
        f"above_{name}": f"select sum(n) as n from {{{{ ref('{name}') }}}}" for name in models
    }
    mini.replace(SOURCES, **models, **readers)
    mini.deliver("sales", sale("1"), sale("2", "b"), sale("3", "c"))
    mini.pipeline(lane=lane)
    mini.build()

    for batch in (
        [sale("4", "b"), sale("2", "b", updated=1, op="d")],
        [sale("1", updated=2, op="d"), sale("3", "a", updated=2)],
        [sale("5", "c", "2.00")],
    ):
        mini.deliver("sales", *batch)
        mini.refresh()
        assert _differing(mini) == []


# By table: columns of other kinds, clauses behind them, properties.
FOREIGN = {
    "vectors": ("", "", {"delta.enableDeletionVectors": "true"}),
    "mapped": (
        "",
        "",
        {"delta.columnMapping.mode": "name", "delta.enableChangeDataFeed": "false"},
    ),
    "mapped_by_id": ("", "", {"delta.columnMapping.mode": "id"}),
    "tracked": (
        "",
        "",
        {"delta.enableRowTracking": "true", "delta.enableInCommitTimestamps": "true"},
    ),
    "checkpointed": ("", "", {"delta.checkpointPolicy": "v2", "delta.checkpointInterval": "1"}),
    "widened": ("", "", {"delta.enableTypeWidening": "true"}),
    "clustered": ("", "cluster by (id)", {}),
    "numbered": (", row bigint generated always as identity", "", {}),
    "generated": (
        ", twice bigint generated always as (cast(n as bigint) * 2),"
        " initial string generated always as (substring(name, 1, 1))",
        "partitioned by (initial)",
        {},
    ),
    "defaults": (
        ", kind string default 'new'",
        "",
        {"delta.feature.allowColumnDefaults": "supported"},
    ),
    "checked": ("", "", {"delta.constraints.counted": "n > 0"}),
    "cloned": ("", "shallow clone", {}),
    # Spark pads a text that it compares with such a column.
    "padded": (
        ", sort char(5) default 'x', code varchar(9) default 'x'",
        "",
        {"delta.feature.allowColumnDefaults": "supported"},
    ),
}
# A measure of such a column.
OTHER_COLUMNS = {
    "numbered": "count(distinct row)",
    "generated": "sum(if(initial = 'a', twice, 0))",
    "defaults": "count_if(kind = 'new')",
    "padded": "count_if(sort = 'x' and sort in ('y', 'x') and code = 'x')",
}
READ_BY_SPARK = {"vectors", "mapped", "mapped_by_id", "widened", "cloned", "padded"}
JOINED = {
    "with_spark": sorted(READ_BY_SPARK),
    "with_others": sorted(FOREIGN.keys() - READ_BY_SPARK),
}


@pytest.mark.extended
@pytest.mark.timeout(900)
def test_sources_of_others_are_read_rightly_whatever_features_they_have(
    spark: SparkSession, tmp_path: Path
) -> None:
    mini = Mini(spark, tmp_path)
    outside = spark.newSession()
    for operation in ("delete", "merge", "update"):
        outside.conf.unset(f"spark.databricks.delta.{operation}.deletionVectors.persistent")
    paths = {name: f"delta.`{mini.warehouse.path(f'raw.{name}')}`" for name in FOREIGN}
    for name, (columns, clause, properties) in FOREIGN.items():
        if clause == "shallow clone":
            outside.sql(f"create table {paths[name]} shallow clone {paths['checked']}")
            continue
        listed = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
        outside.sql(
            f"create table {paths[name]} (id int, name string, n int{columns}) using delta {clause}"
            + (f" tblproperties ({listed})" if listed else "")
        )
        # Into three files: what comes later exchanges one, and a clone keeps the others.
        nine = "select id, 'a', 1 from range(0, 9, 1, 3)"
        outside.sql(f"insert into {paths[name]} (id, name, n) {nine}")
    tables = "".join(f"      - name: {name}\n" for name in FOREIGN)
    raw = f"  - name: raw\n    schema: raw\n    tables:\n{tables}"
    models = {
        f"of_{name}": f"select name, count(*) as k, sum(n) as n, max(id) as id,"
        f" {OTHER_COLUMNS.get(name, 'count(*)')} as o"
        f" from {{{{ source('raw', '{name}') }}}} group by 1"
        for name in FOREIGN
    }
    # A model that reads one that only Spark reads is recomputed: the others are joined apart.
    joined = {
        model: f"select s.sale_id, {', '.join(f'{name}.n as {name}' for name in names)}"
        f" from {SALES} as s "
        + " ".join(
            f"left join {{{{ source('raw', '{name}') }}}} as {name} on {name}.id = 3"
            for name in names
        )
        for model, names in JOINED.items()
    }
    mini.replace(SOURCES + raw, **models, **joined)
    mini.deliver("sales", sale("1"))
    mini.build()
    assert _differing(mini) == []

    for name, path in paths.items():
        outside.sql(f"delete from {path} where id = 3")
        if name == "mapped":
            outside.sql(f"alter table {path} rename column name to other")
            outside.sql(f"alter table {path} rename column other to name")
        if name == "widened":
            outside.sql(f"alter table {path} alter column n type bigint")
            outside.sql(f"insert into {path} values (70, 'b', 70000000000)")
        else:
            outside.sql(f"insert into {path} (id, name, n) values (70, 'b', 7)")
        outside.sql(f"update {path} set n = 2 where id = 4")
    mini.refresh()

    assert _differing(mini) == []
    rows = {name: mini.rows(f"mini.of_{name}") for name in FOREIGN}
    assert all(
        [(it["k"], it["n"]) for it in rows[name] if it["name"] == "a"] == [(8, 9)] for name in rows
    )
    others = {name: {it["name"]: it["o"] for it in rows[name]} for name in OTHER_COLUMNS}
    assert others == {
        "numbered": {"a": 8, "b": 1},
        "generated": {"a": 18, "b": 0},
        "defaults": {"a": 8, "b": 1},
        "padded": {"a": 8, "b": 1},
    }
    for model, names in JOINED.items():
        assert mini.rows(f"mini.{model}") == [{"sale_id": "1", **dict.fromkeys(names)}]
    why = reasons(mini.newest)
    recomputed = {name for name in FOREIGN if why[f"of_{name}"] == "CDF_UNAVAILABLE"}
    # Another type of a column has a separate reason.
    assert recomputed == READ_BY_SPARK - {"widened"}

    # Spark reads unchanged and changed rows together.
    mini.deliver("sales", sale("2"))
    mini.refresh()

    assert _differing(mini) == []
    for name in READ_BY_SPARK:
        with pytest.raises(RefreshError, match="TABLE_NOT_READABLE"):
            mini.warehouse.read(f"raw.{name}")


@pytest.mark.extended
def test_days_in_the_calendar_of_spark_2_are_those_that_spark_reads(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Spark 4.2.0 counts days of such a file as others; pyarrow 26.0.1 and deltalake do not."""
    mini = Mini(spark, tmp_path)
    outside = spark.newSession()
    for kind in ("datetime", "int96"):
        outside.conf.set(f"spark.sql.parquet.{kind}RebaseModeInWrite", "LEGACY")
    table = f"delta.`{mini.warehouse.path('raw.days')}`"
    outside.sql(f"create table {table} (id int, day date, at timestamp) using delta")
    row = "({0}, date'{1}', timestamp'{1} 00:00:00Z')"
    old = ", ".join(row.format(*it) for it in enumerate(("0001-01-01", "1582-10-04", "2026-03-01")))
    outside.sql(f"insert into {table} values {old}")
    raw = "  - name: raw\n    schema: raw\n    tables:\n      - name: days\n"
    days = "{{ source('raw', 'days') }}"
    mini.replace(
        SOURCES + raw,
        passed_on=f"select * from {days}",
        by_day=f"select day, count(*) as n, max(at) as at from {days} group by day",
        beside=f"select s.sale_id, d.day from {SALES} as s left join {days} as d on d.id = 0",
    )
    mini.deliver("sales", sale("1"))
    mini.build()
    outside.sql(f"insert into {table} values {row.format(3, '0001-01-01')}")
    outside.sql(f"delete from {table} where id = 1")
    mini.deliver("sales", sale("2"))

    mini.refresh()

    assert _differing(mini) == []
    found = {str(it["day"]): it["n"] for it in mini.rows("mini.by_day")}
    assert found == {"0001-01-01": 2, "2026-03-01": 1}
    assert {str(it["day"]) for it in mini.rows("mini.beside")} == {"0001-01-01"}


@pytest.mark.extended
def test_a_property_set_from_outside_brings_no_deleted_row_back(
    spark: SparkSession, tmp_path: Path
) -> None:
    mini = Mini(spark, tmp_path, now=NOON + timedelta(hours=1))
    totals = f"select shop_id, count(*) as n from {SALES} group by 1"
    above = "select count(*) as shops, sum(n) as n from {{ ref('totals') }}"
    mini.replace(SOURCES, totals=totals, above=above)
    mini.deliver("sales", *(sale(str(number), "abcdefgh"[number]) for number in range(8)))
    mini.build()
    table = f"delta.`{mini.warehouse.path('mini.totals')}`"
    outside = spark.newSession()
    outside.conf.unset("spark.databricks.delta.delete.deletionVectors.persistent")
    outside.sql(f"alter table {table} set tblproperties ('delta.enableDeletionVectors' = 'true')")
    outside.sql(f"delete from {table} where shop_id = 'a'")
    assert any(it.num_rows for it in _table(mini, "mini.totals").deletion_vectors())

    for number in range(3):
        mini.deliver("sales", sale(str(number), "abcdefgh"[number], updated=number + 1, op="d"))
        mini.refresh()

        assert _differing(mini) == []
        assert mini.rows("mini.above") == [{"shops": 7 - number, "n": 7 - number}]
    mini.build()
    mini.deliver("sales", sale("3", "d", updated=9, op="d"))
    mini.refresh()

    assert mini.rows("mini.above") == [{"shops": 4, "n": 4}]


def _differing(mini: Mini) -> list[str]:
    return [render_comparison(it) for it in mini.verify() if not it.is_equal]


def _tag() -> Tag:
    return Tag("e1/t/0", 1, {})


def _table(mini: Mini, relation: str) -> DeltaTable:
    return DeltaTable(str(mini.warehouse.path(relation)))


def _partition_texts(warehouse: Warehouse, relation: str) -> set[str | None]:
    texts: set[str | None] = set()
    for entry in (warehouse.path(relation) / "_delta_log").glob("*.json"):
        actions: list[dict[str, Any]] = [json.loads(it) for it in entry.read_text().splitlines()]
        texts |= {it["add"]["partitionValues"]["p"] for it in actions if "add" in it}
    return texts
