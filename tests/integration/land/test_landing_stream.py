"""Landing through a real stream: which files belong to a batch, ticks, failures, later sources."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from livemart.errors import SourceError
from livemart.land.landing import LandedBatch
from livemart.land.sources.files.stream import is_refused_name
from tests.deliveries import EVENTS, ORDERS, Shop, lines, order, source
from tests.waits import wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def shop(spark: SparkSession, tmp_path: Path) -> Shop:
    return Shop(spark, tmp_path)


def test_each_file_is_landed_once_however_often_the_stream_runs(shop: Shop) -> None:
    shop.deliver("orders/an order [1].jsonl", lines([order("a")]))
    shop.deliver("orders/_hidden.jsonl", lines([order("hidden")]))
    first = shop.run()
    # A glob of Hadoop 3.5 refuses a whole folder for one name with a colon, be it hidden.
    shop.deliver("orders/2026-03-04T10:30:00Z ü%2F.jsonl", lines([order("b")]))
    shop.deliver("orders/.half:written", ["{"])
    shop.deliver("orders/done/1.jsonl", lines([order("below")]))
    old = shop.deliver("orders/old.jsonl", lines([order("c")]))
    os.utime(old, (0, 0))
    second = shop.run()
    third = shop.run()

    assert [batch.has_records for batch in (*first, *second, *third)] == [True, True, False]
    assert shop.rows("orders", "order_id") == [("a",), ("b",), ("c",)]
    assert shop.rows("order_events", "_origin") == [
        ("orders/2026-03-04T10:30:00Z ü%2F.jsonl:1",),
        ("orders/an order [1].jsonl:1",),
        ("orders/old.jsonl:1",),
    ]


@pytest.mark.extended
def test_a_name_with_a_colon_that_comes_to_a_running_stream_starts_it_again(shop: Shop) -> None:
    batches: list[LandedBatch] = []
    every = timedelta(milliseconds=100)
    query = shop.landing.stream(shop.checkpoint, batches.append, trigger=every)
    wait_until(lambda: bool(batches))
    shop.deliver("orders/at 10:30.jsonl", lines([order("a")]))

    with pytest.raises(Exception, match="at 10:30") as refused:
        query.awaitTermination()
    assert is_refused_name(refused.value)
    shop.restart()
    shop.run()

    assert shop.rows("order_events", "_origin") == [("orders/at 10:30.jsonl:1",)]


@pytest.mark.extended
@pytest.mark.parametrize("is_refused", [False, True])
def test_patterns_read_the_same_files_by_a_glob_and_by_a_listing(
    spark: SparkSession, tmp_path: Path, is_refused: bool
) -> None:
    patterns = {"a": "{eu,us}/[a-b]/*.{csv,txt}", "b": "*/*.csv", "c": "x.csv", "d": "*/day=*/?"}
    patterns |= {"e": "set/*.csv", "f": "{eu/a,eu/c}/1.csv", "g": "at 9:00/*"}
    columns = {"line": "string"}
    sources = [source(name, columns, path=it, format="text") for name, it in patterns.items()]
    shop = Shop(spark, tmp_path, sources)
    names = ["x.csv", "eu/a/1.csv", "us/b/2.txt", "us/b/2.json", "us/c/3.csv", "eu/1.csv"]
    names += [
        "at 9:00/1",
        "eu/c/1.csv",
        "eu/day=1/9",
        "set/2.csv",
        "set/1.csv/part-0.csv",
        "as/x.csv",
    ]
    for name in names:
        shop.deliver(name, [name])
    if is_refused:
        for name in (".a:b", "eu/.a:b", "eu/a/.a:b", "set/.a:b", "a:b/.c"):
            shop.deliver(name, [""])

    shop.run()

    assert {name: [it for (it,) in shop.rows(name, "line")] for name in patterns} == {
        "a": ["eu/a/1.csv", "us/b/2.txt"],
        "b": ["as/x.csv", "eu/1.csv", "set/1.csv/part-0.csv", "set/2.csv"],
        "c": ["x.csv"],
        "d": ["eu/day=1/9"],
        "e": ["set/1.csv/part-0.csv", "set/2.csv"],
        "f": ["eu/a/1.csv", "eu/c/1.csv"],
        "g": ["at 9:00/1"],
    }


def test_a_tick_comes_without_files_and_bad_records_do_not_stop_the_stream(shop: Shop) -> None:
    batches: list[LandedBatch] = []
    query = shop.landing.stream(
        shop.checkpoint, batches.append, trigger=timedelta(milliseconds=300)
    )
    try:
        wait_until(lambda: len(batches) >= 2)
        shop.deliver("orders/1.jsonl", ["{broken", *lines([order("a")])])
        wait_until(lambda: any(batch.has_records for batch in batches))
        shop.deliver("orders/2.jsonl", lines([order("b")]))
        wait_until(lambda: sum(batch.has_records for batch in batches) == 2)
    finally:
        query.stop()

    assert [batch.batch_id for batch in batches] == list(range(len(batches)))
    assert not batches[0].has_records
    assert shop.rows("orders", "order_id") == [("a",), ("b",)]


def test_an_exception_of_the_body_ends_the_query_and_the_batch_is_replayed(shop: Shop) -> None:
    shop.deliver("orders/1.jsonl", lines([order("a")]))
    seen: list[LandedBatch] = []

    def fail(batch: LandedBatch) -> None:
        seen.append(batch)
        raise RuntimeError("model failed")

    query = shop.landing.stream(shop.checkpoint, fail, trigger="available_now")
    with pytest.raises(Exception, match="model failed"):
        query.awaitTermination()
    failure = shop.landing.failure
    shop.restart()
    replayed = shop.run()

    assert isinstance(failure, RuntimeError)
    # The replay of the batch is followed by the stream's own tick.
    assert replayed[:1] == seen
    assert shop.rows("order_events", "order_id") == [("a",)]


def test_a_micro_batch_after_the_end_lands_nothing(shop: Shop) -> None:
    begun: list[LandedBatch] = []
    query = shop.landing.stream(shop.checkpoint, begun.append, trigger=timedelta(milliseconds=100))
    wait_until(lambda: bool(begun))

    shop.landing.end()
    shop.deliver("orders/1.jsonl", lines([order("a")]))
    wait_until(lambda: not query.isActive)

    assert shop.rows("orders", "order_id") == []
    shop.restart()
    shop.run()
    assert shop.rows("orders", "order_id") == [("a",)]


def test_a_file_that_vanishes_before_its_replay_is_never_passed_over(shop: Shop) -> None:
    path = shop.deliver("orders/1.jsonl", lines([order("a")]))
    content = path.read_bytes()

    def vanish(relation: str, *_: object, **__: object) -> None:
        path.unlink()
        raise RuntimeError("power cut")

    commit, shop.warehouse.commit = shop.warehouse.commit, vanish  # type: ignore[method-assign, assignment]
    with pytest.raises(RuntimeError, match="power cut"):
        shop.run()
    shop.warehouse.commit = commit  # type: ignore[method-assign]
    shop.restart()
    with pytest.raises(SourceError, match="SOURCE_FILE_CHANGED"):
        shop.run()
    path.write_bytes(content)
    shop.run()

    assert shop.rows("orders", "order_id") == [("a",)]


def test_a_source_that_comes_later_reads_its_files_from_the_start(shop: Shop) -> None:
    shop.sources = [ORDERS]
    shop.restart()
    shop.deliver("orders/1.jsonl", lines([order("a")]))
    shop.run()

    shop.sources = [ORDERS, EVENTS, source("returns", path="returns.jsonl")]
    shop.restart()
    shop.deliver("returns.jsonl", lines([order("r")]))
    shop.deliver("orders/2.jsonl", lines([order("b")]))
    shop.run()
    shop.sources = [EVENTS]
    shop.restart()
    shop.deliver("orders/3.jsonl", lines([order("c")]))
    shop.run()

    assert shop.rows("orders", "order_id") == [("a",), ("b",)]
    assert shop.rows("order_events", "order_id") == [("a",), ("b",), ("c",)]
    assert shop.rows("returns", "order_id") == [("r",)]


def test_another_path_or_a_source_put_back_lands_no_line_twice(shop: Shop) -> None:
    wider = source("order_events", path="orders/*.json*")
    shop.deliver("orders/1.jsonl", lines([order("a")]))
    shop.run()

    for number, sources in enumerate([[wider], [ORDERS], [wider], [ORDERS, EVENTS]], 2):
        shop.sources = sources
        shop.restart()
        shop.deliver(f"orders/{number}.jsonl", lines([order(f"o{number}")]))
        shop.run()

    assert shop.rows("order_events", "_origin") == [
        (f"orders/{number}.jsonl:1",) for number in range(1, 6)
    ]


def test_limits_bound_the_files_of_a_batch(spark: SparkSession, tmp_path: Path) -> None:
    shop = Shop(spark, tmp_path, [source("orders", keys=("order_id",), max_files_per_trigger=2)])
    for number in range(5):
        shop.deliver(f"orders/{number}.jsonl", lines([order(f"o{number}")]))

    batches = shop.run()

    assert [batch.counts["bronze.orders"].produced for batch in batches] == [2, 2, 1]


def test_a_condition_that_arrow_does_not_know_is_asked_of_spark(
    spark: SparkSession, tmp_path: Path
) -> None:
    condition = "lower(op) like 'd%' and status <> 'kept'"
    orders = source("orders", keys=("order_id",), apply_as_deletes=condition)
    shop = Shop(spark, tmp_path, [orders])
    records = [order("a", 1), order("a", 2, op="DEL"), order("b", 1, op="D", status="kept")]

    shop.land(0, shop.deliver("orders/0.jsonl", lines(records)))

    assert shop.rows("orders", "order_id") == [("b",)]
