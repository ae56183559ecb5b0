from __future__ import annotations

import pytest

from livemart.project.session_spec import (
    SessionSpec,
    defining,
    function_schema,
    is_asking,
    is_defining,
    is_setting,
    is_without_meaning,
    profile_spec,
    remade,
)

ZONE = "spark.sql.session.timeZone"


@pytest.mark.parametrize(
    ("statement", "is_one"),
    [
        ("set spark.sql.session.timeZone=America/New_York", True),
        ("SET TIME ZONE 'Asia/Tokyo'", True),
        ("set var x = 3", True),
        ("reset spark.sql.mapKeyDedupPolicy", True),
        ("use shop", True),
        ("declare or replace variable x int default 3", True),
        ('-- why\n/* {"app": "dbt"} */\ncreate temp view v as select 1', True),
        ("create or replace temporary function f(x int) returns int return x", True),
        ("add jar /opt/x.jar", True),
        ("add file /opt/x.csv", True),
        ("add archive /opt/x.zip", True),
        ("create or replace view shop.v as select 1", False),
        ("create table t as select 1", False),
        ("insert into t select 1", False),
        ("optimize shop.orders", False),
        ("grant select on table t to x", False),
        ("settle", False),
        ("", False),
    ],
)
def test_the_list_of_what_defines_is_closed(statement: str, is_one: bool) -> None:
    assert is_defining(statement) is is_one


@pytest.mark.parametrize(
    ("name", "is_one"),
    [
        ("spark.executor.memory", True),
        ("spark.hadoop.fs.s3a.endpoint", True),
        ("spark.databricks.delta.optimizeWrite.enabled", True),
        ("spark.sql.adaptive.enabled", True),
        ("spark.sql.sources.partitionOverwriteMode", True),
        ("spark.sql.parquet.compression.codec", True),
        ("spark.sql.files.maxPartitionBytes", True),
        ("spark.sql.catalog.other", True),
        ("spark.sql.mapKeyDedupPolicy", False),
        ("spark.sql.legacy.sizeOfNull", False),
    ],
)
def test_what_cannot_change_a_row(name: str, is_one: bool) -> None:
    assert is_without_meaning(name) is is_one


@pytest.mark.parametrize(
    ("statement", "is_one"),
    [
        *[("(select 1)", True), ("show tables", True), ("delete from t", False)],
        ("set a=1", False),
        ("with q as (select 1) -- it's new\ninsert into log select 'x' from q", False),
        ("with q as (select \"it's\" as a) insert into log select 'x' from q", False),
        ("with q as (select `a'b` from t) /* 'n' */ delete from log where a = 'x'", False),
        ('with q as (select "insert into" as `update`) select * from q -- update', True),
    ],
)
def test_what_asks(statement: str, is_one: bool) -> None:
    assert is_asking(statement) is is_one


def test_settings_that_cannot_change_a_row_or_are_the_engines_own_do_not_count() -> None:
    parameters = {
        ZONE: "UTC",
        "spark.sql.ansi.enabled": "false",
        "spark.driver.memory": "4g",
        "spark.sql.shuffle.partitions": "8",
        "spark.sql.legacy.timeParserPolicy": "LEGACY",
    }

    assert profile_spec(parameters).settings == (("spark.sql.legacy.timeParserPolicy", "LEGACY"),)
    assert profile_spec({ZONE: "UTC"}).is_plain


def test_the_profile_beats_what_a_hook_sets() -> None:
    statements = [
        f"set {ZONE}=Asia/Tokyo",
        "set time zone 'Asia/Tokyo'",
        "set spark.sql.shuffle.partitions = 3",
        "set spark.sql.mapKeyDedupPolicy=LAST_WIN;",
        "set",
        "set spark.sql.mapKeyDedupPolicy",
        "analyze table t compute statistics",
    ]

    assert defining(statements, {ZONE: "UTC"}) == ["set spark.sql.mapKeyDedupPolicy=LAST_WIN"]
    assert defining(statements[:2], {}) == statements[:2]


def test_a_repeated_statement_changes_nothing_unless_another_came_between() -> None:
    one = "create or replace temporary function f(x int) returns int return x"
    other = "create or replace temporary function f(x int) returns int return x + 1"

    assert SessionSpec().then([one, one]).statements == (one,)
    assert SessionSpec().then([one, other, one]).statements == (one, other, one)
    for other in ("reset", f"reset {ZONE}", "set time zone 'Asia/Tokyo'"):
        again = (f"set {ZONE}=Asia/Kolkata", other, f"set {ZONE}=Asia/Kolkata")
        assert SessionSpec().then(again).statements == again


@pytest.mark.parametrize(
    ("statement", "is_unknown"),
    [
        ("set spark.sql.parser.escapedStringLiterals=true", True),
        ("set spark.sql.legacy.timeParserPolicy=LEGACY", False),
        ("set my.flag=1", False),
        ("set time zone 'Asia/Tokyo'", False),
        ("set spark.sql.crossJoin.enabled=false", False),
        ("set `spark.sql.caseSensitive`=true", True),
        ("set var x = 5", True),
        ("declare variable x int", True),
        ("use shop", True),
        ("create temporary view v as select 1", False),
    ],
)
def test_what_may_change_how_sql_is_read(statement: str, is_unknown: bool) -> None:
    assert (SessionSpec(statements=(statement,)).unknown_effect() is not None) is is_unknown


def test_the_functions_of_a_session() -> None:
    made = (
        "create temporary function `Net`(x int) returns int return x",
        "create or replace function shop.rate() returns int return (select max(x) from t)",
        "create or replace function other.rate() returns int return 1",
    )

    expected = list(zip(("net", "rate", "rate"), made, strict=True))
    assert SessionSpec(statements=made).functions() == expected


def test_functions_for_all_sessions_are_needed_by_who_names_them() -> None:
    made = [
        "create or replace function shop.`low net`(x int) returns int return x",
        "create or replace function shop.gross(x int) returns int return shop.`low net`(x) * 2",
        "create or replace function shop.other(x int) returns int return x",
    ]
    spec = SessionSpec(statements=tuple(made))

    assert spec.needed_by("select Shop.Gross(1)").statements == tuple(made[:2])
    assert spec.needed_by("select gross_total").statements == ()
    assert list(map(function_schema, made)) == ["shop"] * 3
    assert spec.of_a_view.is_plain


def test_a_function_that_exists_is_made_all_the_same() -> None:
    sent = [
        "create function if not exists net(x int) returns int return x",
        "Create Function f as 'a'",
    ]

    assert defining(sent, {}) == [
        "create or replace function net(x int) returns int return x",
        "create or replace function f as 'a'",
    ]
    assert remade("select 'create function f'") == "select 'create function f'"


def test_what_the_engine_has_already_is_no_other_session() -> None:
    assert SessionSpec().then([f"set {ZONE}=UTC"]).is_plain
    restored = [f"set {ZONE}=Asia/Tokyo", f"set {ZONE}=UTC"]
    assert SessionSpec().then(restored).of_a_view.is_plain
    tokyo = SessionSpec(((ZONE, "Asia/Tokyo"),))
    assert tokyo.then(restored[1:]).statements == (restored[1],)


def test_what_a_text_does_not_name_is_left_out() -> None:
    base = "create temporary function base(x int) returns int return x"
    net = "create temporary function net(x int) returns int return base(x)"
    other = "create temporary view other as select 1"
    spec = SessionSpec(statements=("set time zone 'Asia/Tokyo'", base, net, other))

    assert spec.needed_by("select NET(1)").statements == spec.statements[:3]
    assert spec.needed_by("select internet(1)").statements == spec.statements[:1]
    assert spec.of_a_view.statements == spec.statements[:1]


def test_what_may_be_run_before_any_node() -> None:
    assert is_setting("set a.b=1") and is_setting("add jar '/x.jar'") and is_setting("use shop")
    assert not is_setting("create or replace temporary view v as select 1")
    assert not is_setting("declare or replace variable x int")
