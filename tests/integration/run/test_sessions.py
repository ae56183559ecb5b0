"""SQL means in a refresh, a test and `verify` what it means in the session of plain dbt-spark."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from livemart.plan.plan import Full
from tests.integration.run.shop import ORDERS, order, shop_project
from tests.project_run import ProjectRun, reasons, strategies

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ZONE = "spark.sql.session.timeZone"
CLOCK = "{{ source('livemart', 'clock') }}"
# By name, in dependency order.
MODELS = {
    "staged": "{{ config(materialized='view') }}select *, cast(ordered_at as date) as day,"
    f" cast(ordered_at as timestamp_ntz) as local from {ORDERS}",
    "by_hour": "select shop_id, cast(ordered_at as date) as day, hour(ordered_at) as hr,"
    f" count(*) as n, sum(amount) as amount from {ORDERS} group by 1, 2, 3",
    "by_day": "{{ config(partition_by='since') }}select shop_id,"
    " date_trunc('day', ordered_at) as since, max(amount) as most,"
    " count(distinct method) as methods from {{ ref('staged') }} group by 1, 2",
    "by_date": "select shop_id, day, max(amount) as most from {{ ref('staged') }} group by 1, 2",
    # In one column times of two types meet.
    "stacked": "select shop_id, t, sum(amount) over (partition by shop_id order by t"
    " range between interval 1 day preceding and current row) as amount"
    f" from (select shop_id, ordered_at as t, amount from {ORDERS} where method <> 'cash'"
    " union all select shop_id, day as t, most as amount from {{ ref('by_date') }})",
    "of_two_days": "select order_id, shop_id, ordered_at, sum(amount) over (partition by shop_id"
    " order by ordered_at range between interval 2 days preceding and current row) as amount"
    f" from {ORDERS}",
    "of_two_dates": "select order_id, shop_id, day, sum(amount) over (partition by shop_id"
    " order by day range between interval 2 days preceding and current row) as amount"
    " from {{ ref('staged') }}",
    "newest_day": "select o.order_id, o.ordered_at, o.amount from {{ ref('staged') }} as o"
    f" cross join {CLOCK} as c where o.ordered_at >= c.as_of - interval 24 hours",
    "newest_dates": "select o.shop_id, count(*) as n, sum(o.amount) as amount"
    " from {{ ref('staged') }} as o"
    f" cross join {CLOCK} as c where o.day >= cast(c.as_of as date) - interval 1 day group by 1",
    "of_its_day": "select o.order_id, o.local, d.most, o.amount / d.most as part"
    " from {{ ref('staged') }} as o"
    " left join {{ ref('by_day') }} as d on d.shop_id = o.shop_id and d.since = o.day",
    "first_of_day": "select order_id, shop_id, day from (select *, row_number() over"
    " (partition by shop_id, day order by ordered_at, order_id) as place"
    " from {{ ref('staged') }}) where place = 1",
    "labelled": "select date_format(ordered_at, '{pattern}') as label, count(*) as n,"
    " min(to_timestamp(date_format(ordered_at, 'yyyy-MM-dd HH:mm'), 'yyyy-MM-dd HH:mm')) as first"
    f" from {ORDERS} group by 1",
    "mapped": "select order_id, map(method, amount, lower(method), -amount) as amounts,"
    f" amount * cast(1.123456789 as decimal(38, 18)) as product, size(cast(null as array<int>))"
    f" as size from {ORDERS}",
    # One row gives NULL, but NaN by the setting of Spark 4.2 that restores an earlier behaviour.
    "spread": "select shop_id, method, round(corr(cast(amount as double), order_id), 6) as related,"
    " round(stddev_samp(cast(amount as double)), 6) as deviation, count(*) as n"
    f" from {ORDERS} group by shop_id, method",
}
# A map with one key twice is an error unless a setting says otherwise; 'u' is one of new patterns.
_GATE = ("staged", "by_hour", "by_date", "newest_day")


@dataclass(frozen=True)
class Case:
    """The session settings of a project, and the models with rows in it."""

    parameters: Mapping[str, str]
    on_run_start: Sequence[str]
    pattern: str = "yyyy-MM-dd HH"
    left_out: Sequence[str] = ("mapped",)


NEW_YORK = Case({ZONE: "America/New_York"}, ())
CASES = {
    "New York by the profile": NEW_YORK,
    "Kolkata by a hook": Case({}, ("set time zone 'Asia/Kolkata'",)),
    "Tokyo over a hook": Case({ZONE: "Asia/Tokyo"}, (f"set {ZONE}=America/New_York",)),
    "old patterns": Case({"spark.sql.legacy.timeParserPolicy": "LEGACY"}, (), "u"),
    "maps and decimals": Case(
        {"spark.sql.mapKeyDedupPolicy": "LAST_WIN"},
        ("set spark.sql.decimalOperations.allowPrecisionLoss=false",),
        left_out=(),
    ),
    "NaN of one row": Case({"spark.sql.legacy.statisticalAggregate": "true"}, ()),
}
FIRST = (
    (1, "a", "card", "10.00", "2026-03-04T02:00:00Z"),
    (2, "a", "cash", "5.00", "2026-03-04T15:00:00Z"),
    (3, "b", "card", "7.00", "2026-03-07T08:00:00Z"),
    (6, "b", "card", "1.00", "2026-03-06T04:30:00Z"),
    (7, "a", "cash", "2.00", "2026-03-05T23:30:00Z"),
    # Leaves the day before 12:00 of the eighth, an hour early: New York's has 23 hours.
    (9, "a", "cash", "8.00", "2026-03-07T12:30:00Z"),
)
THEN = (
    (4, "a", "voucher", "3.00", "2026-03-05T02:00:00Z"),
    (5, "b", "card", "2.00", "2026-03-08T07:30:00Z"),
    (8, "b", "cash", "4.00", "2026-03-08T03:59:00Z"),
    # On one day with the first order, only in New York.
    (10, "a", "cash", "1.00", "2026-03-03T18:00:00Z"),
)


def project_of(
    spark: SparkSession, tmp_path: Any, case: Case, models: Mapping[str, str], **flags: object
) -> ProjectRun:
    """Return the project with the session of a case, and the first orders delivered."""
    run = shop_project(spark, tmp_path, models, FIRST, **flags)
    run.now = datetime(2026, 3, 8, 8, tzinfo=UTC)
    give(run, case)
    # Its answer depends on the pattern of the case, and without its session there is none.
    bad = f"select * from {ORDERS} where length(date_format(ordered_at, '{case.pattern}')) > 13"
    run.edit("tests/every_order_has_a_label.sql", bad)
    return run


def give(run: ProjectRun, case: Case) -> None:
    """Write what a case says into profile and project."""
    target = {"type": "spark", "method": "session", "schema": "mini", "host": "NA", "threads": 1}
    target["server_side_parameters"] = dict(case.parameters)
    profile = {"mini": {"target": "local", "outputs": {"local": target}}}
    run.edit("profiles/profiles.yml", yaml.safe_dump(profile))
    path = run.project / "dbt_project.yml"
    config = yaml.safe_load(path.read_text()) | {"on-run-start": list(case.on_run_start)}
    run.edit("dbt_project.yml", yaml.safe_dump(config))


def expected_rows(
    run: ProjectRun, case: Case, models: Mapping[str, str]
) -> dict[str, Counter[Any]]:
    """Return the rows that plain dbt-spark would store, in one session, by name of the model."""
    spark = run.spark.newSession()

    def fix() -> None:
        for name, value in case.parameters.items():
            spark.conf.set(name, value)

    fix()
    for statement in case.on_run_start:
        spark.sql(statement)
        fix()
    newest = run.newest
    for relation, name in (("shop.orders", "the_orders"), ("livemart.clock", "the_clock")):
        path = str(run.warehouse.path(relation))
        reader = spark.read.option("versionAsOf", newest.sources[relation]).format("delta")
        reader.load(path).createOrReplaceTempView(name)
    rows = {}
    for name, text in models.items():
        sql = text.replace(ORDERS, "the_orders").replace(CLOCK, "the_clock")
        sql = re.sub(r"\{\{ config\(.*?\) \}\}", "", sql).replace("{{ ref('", "the_")
        frame = spark.sql(sql.replace("') }}", ""))
        frame.createOrReplaceTempView(f"the_{name}")
        rows[name] = _counted(frame.toArrow().to_pylist())
    return rows


def _counted(rows: Sequence[Mapping[str, Any]]) -> Counter[Any]:
    return Counter(
        tuple((name, _instant(value)) for name, value in sorted(row.items())) for row in rows
    )


def _instant(value: Any) -> Any:
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC)
    # NaN is not equal to itself.
    return str(value) if isinstance(value, list | dict | float) else value


def check(run: ProjectRun, case: Case, models: Mapping[str, str]) -> None:
    expected = expected_rows(run, case, models)
    for name in models:
        if name != "staged":
            assert (name, _counted(run.rows(f"mini.{name}"))) == (name, expected[name])
    assert run.differing() == []
    assert set(run.newest.tests.values()) == {"pass"}


def refresh_and_check(run: ProjectRun, case: Case, models: Mapping[str, str]) -> None:
    """Refresh step by step, and compare after each."""
    for step in steps(run):
        step()
        check(run, case, models)


def steps(run: ProjectRun) -> Iterator[Callable[[], object]]:
    """Yield a build; orders that come, are corrected and deleted; then the clock alone moves."""
    yield run.build
    run.deliver("orders", *(order(*row) for row in THEN))
    yield run.refresh
    corrected = (2, "a", "cash", "6.00", FIRST[1][4])
    run.deliver("orders", order(*corrected, later=1), order(*FIRST[2], later=1, op="d"))
    yield run.refresh
    for hour in (11, 12):
        run.now = datetime(2026, 3, 8, hour, tzinfo=UTC)
        yield run.refresh


def _models(case: Case, names: Sequence[str] = tuple(MODELS)) -> dict[str, str]:
    return {
        name: text.replace("{pattern}", case.pattern)
        for name, text in MODELS.items()
        if name in names and name not in case.left_out
    }


# 20 s.
@pytest.mark.extended
def test_days_and_windows_are_those_of_the_time_zone_of_the_profile(
    spark: SparkSession, tmp_path: Any
) -> None:
    models = _models(NEW_YORK, _GATE)
    run = project_of(spark, tmp_path, NEW_YORK, models)

    for step in islice(steps(run), 4):
        step()

    check(run, NEW_YORK, models)
    assert not any(isinstance(plan.strategy, Full) for plan in run.runtime.plans.models.values())
    days = {(str(row["day"]), row["hr"]) for row in run.rows("mini.by_hour")}
    assert ("2026-03-03", 21) in days


@pytest.mark.extended
@pytest.mark.parametrize("lane", ["small", "large"])
@pytest.mark.parametrize("name", CASES)
def test_every_setting_means_the_same_in_both_lanes(
    spark: SparkSession, tmp_path: Any, name: str, lane: str
) -> None:
    case = CASES[name]
    models = _models(case)
    run = project_of(spark, tmp_path, case, models, lane=lane)

    refresh_and_check(run, case, models)

    of_one_row = {row["related"] for row in run.rows("mini.spread") if row["n"] == 1}
    is_legacy = "spark.sql.legacy.statisticalAggregate" in case.parameters
    assert set(map(str, of_one_row)) == {"nan" if is_legacy else "None"}


# 12 s.
@pytest.mark.extended
def test_a_setting_of_a_hook_is_part_of_what_a_model_is(spark: SparkSession, tmp_path: Any) -> None:
    net = "create or replace temporary function net(x decimal(10,2)) returns decimal(10,2) return x"
    models = {
        "of_guests": f"select order_id from {ORDERS} join guests using (shop_id)",
        "netted": '{{ config(pre_hook="' + net + ' * 0.5") }}'
        f"select order_id, net(amount) as amount from {ORDERS}",
        "by_hour": MODELS["by_hour"],
        "by_hour_there": "{{ config(pre_hook=\"set time zone 'Asia/Tokyo'\","
        " post_hook=\"set time zone 'UTC'\") }}" + MODELS["by_hour"],
        "by_hour_here": MODELS["by_hour"],
    }
    guests = "create or replace temporary view guests as select 'b' as shop_id"
    case = Case({}, ("create table if not exists shop.log (x int) using delta", guests))
    run = project_of(spark, tmp_path, case, models)
    run.build()
    run.deliver("orders", *(order(*row) for row in THEN))

    run.refresh()

    hours = {
        name: {row["hr"] for row in run.rows(f"mini.{name}")}
        for name in ("by_hour", "by_hour_here", "by_hour_there")
    }
    assert hours["by_hour_here"] == hours["by_hour"] >= {2, 15}
    assert hours["by_hour_there"] == {(hour + 9) % 24 for hour in hours["by_hour"]}

    assert {row["order_id"]: str(row["amount"]) for row in run.rows("mini.netted")}[5] == "1.00"
    assert {row["order_id"] for row in run.rows("mini.of_guests")} == {3, 5, 6, 8}
    assert reasons(run.newest)["netted"] == "UDF_NOT_DETERMINISTIC"
    assert strategies(run.newest)["by_hour"] == "signed"
    assert run.differing() == []

    zone = ("set time zone 'Asia/Tokyo'", guests)
    give(run, Case({}, (*zone, "set spark.sql.shuffle.partitions=3")))
    run.edit("models/netted.sql", models["netted"].replace("0.5", "0.1"))
    run.refresh()

    assert reasons(run.newest)["by_hour"] == reasons(run.newest)["netted"] == "SESSION_CHANGED"
    assert {row["order_id"]: str(row["amount"]) for row in run.rows("mini.netted")}[5] == "0.20"
    assert ("2026-03-08", 16) in {(str(r["day"]), r["hr"]) for r in run.rows("mini.by_hour")}
    assert run.differing() == []

    snapshot_id = run.newest.snapshot_id
    give(run, Case({"spark.driver.memory": "4g"}, zone))
    run.refresh()

    # Nothing but what cannot change a row is another one.
    assert run.newest.snapshot_id == snapshot_id
