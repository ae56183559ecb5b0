"""Faults of a Kafka cluster: no record is lost silently, and none lands twice."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fastavro
import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import NewPartitions

from livemart.errors import SourceError
from livemart.land.lag import source_lags
from livemart.land.micro_batch import Limit
from livemart.land.sources.log_deliveries import LogPart
from livemart.run.replays import is_retriable
from tests.deliveries import Shop, lines, order, source
from tests.services.kafka import Kafka, running_kafka
from tests.services.topics import admin_of, create_topic, send
from tests.waits import wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.extended
_CLIENT = "livemart.land.sources.kafka.client"


def shop_of(root: Path, kafka: Kafka, spark: Any = None, **given: Any) -> Shop:
    """A shop whose orders, by key and as events, come from topics; `given` are options of both."""
    after_loss, spec = given.pop("after_loss", "stop"), given.pop("spec", {})
    options = {"servers": kafka.address, **given}
    log: dict[str, Any] = {
        "path": "",
        "kind": "kafka",
        "after_loss": after_loss,
        "options": tuple(sorted(options.items())),
        **spec,
    }
    tables = (source("orders", keys=("order_id",), **log), source("order_events", **log))
    return Shop(spark, root, tables)


def events(shop: Shop) -> list[str]:
    return [name for (name,) in shop.rows("order_events", "order_id")]


def letters(shop: Shop) -> set[tuple[str, str, str]]:
    return set(shop.rows("_dead_letters", "origin", "reason", "detail"))


def orders(*names: str) -> list[str]:
    return lines(map(order, names))


def done(answers: dict[Any, Any]) -> None:
    for answer in answers.values():
        answer.result(timeout=30)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker that is away is given up after seconds."""
    monkeypatch.setattr(f"{_CLIENT}._ANSWER_S", 2.0)
    monkeypatch.setattr(f"{_CLIENT}._SILENCE_S", 3.0)


def remove_topic(kafka: Kafka, topic: str) -> None:
    admin = admin_of(kafka)
    done(admin.delete_topics([topic]))
    wait_until(lambda: topic not in admin.list_topics(timeout=10).topics)


def add_partitions(kafka: Kafka, topic: str, count: int) -> None:
    admin = admin_of(kafka)
    done(admin.create_partitions([NewPartitions(topic, count)]))
    wait_until(lambda: len(admin.list_topics(topic).topics[topic].partitions) == count)


def test_a_broker_that_is_killed_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, impatient: None, capfd: Any
) -> None:
    with running_kafka(tmp_path) as kafka:
        topic = create_topic(kafka)
        send(kafka, topic, *orders("a", "b"))
        shop = shop_of(tmp_path, kafka, topics=(topic,))
        shop.land(0)
        send(kafka, topic, *orders("c"))
        with monkeypatch.context() as patch:
            read = LogPart.read

            def killed(part: LogPart, *arguments: Any) -> Iterator[Any]:
                kafka.kill()
                return read(part, *arguments)

            patch.setattr(LogPart, "read", killed)
            with pytest.raises(SourceError, match="SOURCE_UNREADABLE: kafka") as in_the_middle:
                shop.land(1)
        shop.restart()
        with pytest.raises(SourceError, match="SOURCE_UNREADABLE: kafka") as at_the_plan:
            shop.land(2)
        away = source_lags(shop.warehouse.root, None)["bronze.orders"].away
        kafka.start()
        send(kafka, topic, *orders("d"))
        shop.restart()
        shop.land(1)
        shop.land(2)

    assert is_retriable(in_the_middle.value) and is_retriable(at_the_plan.value)
    assert "refused" in away
    assert events(shop) == ["a", "b", "c", "d"]
    # The errors contain the C client's messages.
    assert "rdkafka" not in capfd.readouterr().err


# 30 s.
def test_a_broker_of_two_is_killed_and_the_other_has_all(tmp_path: Path, impatient: None) -> None:
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
    with (
        running_kafka(tmp_path / "first") as first,
        running_kafka(tmp_path / "second", joins=first) as second,
    ):
        wait_until(lambda: len(admin_of(first).list_topics(timeout=10).brokers) == 2)
        topic = create_topic(first, partitions=2, replicas=2)

        def leaders() -> set[int]:
            partitions = admin_of(first).list_topics(topic, timeout=10).topics[topic].partitions
            assert all(len(it.replicas) == 2 for it in partitions.values())
            return {it.leader for it in partitions.values()}

        wait_until(lambda: leaders() == {1, 2})
        shop = shop_of(tmp_path, first, topics=(topic,), spec={"max_records_per_trigger": 40})
        names = [f"{number:03}" for number in range(200)]
        for partition in (0, 1):
            mine = names[partition::2]
            send(first, topic, *orders(*mine), partition=partition, settings={"acks": "all"})
        shop.land(0)
        second.kill()
        failures = land_all(shop, 1)
        wait_until(lambda: leaders() == {1})
        send(first, topic, *orders("x"), partition=0)
        send(first, topic, *orders("y"), partition=1)
        second.start()
        failures += land_all(shop, 100)

    assert all(map(is_retriable, failures))
    assert events(shop) == sorted([*names, "x", "y"])
    assert letters(shop) == set()


def land_all(shop: Shop, batch: int) -> list[SourceError]:
    """Land until nothing waits, as a stream does it; return what was tried again."""
    failures = list[SourceError]()

    def has_landed() -> bool:
        nonlocal batch
        try:
            landed = shop.land(batch)
        except SourceError as error:
            failures.append(error)
            shop.restart()
            return False
        batch += 1
        return not landed.has_records

    wait_until(has_landed)
    return failures


@pytest.mark.parametrize(
    ("after_loss", "expected"), [("earliest", ["a", "d", "e"]), ("latest", ["a", "e"])]
)
def test_retention_that_passed_the_offset_stops_until_it_is_said_how_to_go_on(
    kafka: Kafka, tmp_path: Path, after_loss: str, expected: list[str]
) -> None:
    topic = create_topic(kafka)
    send(kafka, topic, *orders("a"))
    shop_of(tmp_path, kafka, topics=(topic,)).land(0)
    send(kafka, topic, *orders("b", "c", "d"))
    admin = admin_of(kafka)
    done(admin.delete_records([TopicPartition(topic, 0, 3)]))
    with pytest.raises(SourceError, match=f"{topic}/0: records 1 to 2 had expired") as caught:
        shop_of(tmp_path, kafka, topics=(topic,)).land(1)
    shop = shop_of(tmp_path, kafka, topics=(topic,), after_loss=after_loss)

    shop.land(1)
    send(kafka, topic, *orders("e"))
    shop.land(2)

    assert caught.value.code == "SOURCE_RECORDS_LOST"
    assert events(shop) == expected
    assert {it[:2] for it in letters(shop)} == {(f"{topic}/0@1", "RECORDS_EXPIRED")}


def test_a_topic_made_anew_is_known_by_its_id(kafka: Kafka, tmp_path: Path) -> None:
    topic = create_topic(kafka)
    send(kafka, topic, *orders("a"))
    shop_of(tmp_path, kafka, topics=(topic,)).land(0)
    remove_topic(kafka, topic)
    with pytest.raises(SourceError, match=f"{topic}/0: the partition is gone") as gone:
        shop_of(tmp_path, kafka, topics=(topic,)).land(1)
    create_topic(kafka, topic)
    send(kafka, topic, *orders("x", "y"))
    with pytest.raises(SourceError, match=f"{topic}/0: another partition has its name") as anew:
        shop_of(tmp_path, kafka, topics=(topic,)).land(1)
    shop = shop_of(tmp_path, kafka, topics=(topic,), after_loss="earliest")
    shop.land(1)
    shop.land(2)

    assert {gone.value.code, anew.value.code} == {"SOURCE_RECORDS_LOST"}
    assert events(shop) == ["a", "x", "y"]
    assert {it[:2] for it in letters(shop)} == {(f"{topic}/0@1", "RECORDS_EXPIRED")}


def test_a_topic_that_is_not_there_is_told_and_waited_for(kafka: Kafka, tmp_path: Path) -> None:
    topic = create_topic(kafka)
    shop = shop_of(tmp_path, kafka, topics=(topic, f"{topic}-2"))
    with pytest.raises(SourceError, match=f"missing: topic {topic}-2") as caught:
        shop.land(0)
    create_topic(kafka, f"{topic}-2")
    send(kafka, f"{topic}-2", *orders("a"))
    shop.land(0)

    assert is_retriable(caught.value)
    assert events(shop) == ["a"]


def test_partitions_and_topics_that_come_later_join(kafka: Kafka, tmp_path: Path) -> None:
    topic = create_topic(kafka)
    send(kafka, topic, *orders("before"))
    shop = shop_of(tmp_path, kafka, pattern=f"{topic}(-[0-9])?", start="latest")
    shop.land(0)
    add_partitions(kafka, topic, 3)
    create_topic(kafka, f"{topic}-2")
    create_topic(kafka, f"{topic}-other")
    send(kafka, topic, *orders("a"))
    send(kafka, topic, *orders("b"), partition=2)
    send(kafka, f"{topic}-2", *orders("c"))
    send(kafka, f"{topic}-other", *orders("d"))
    shop.restart()
    shop.land(1)

    assert shop.rows("order_events", "order_id", "_origin") == [
        *(("a", f"{topic}/0@1"), ("b", f"{topic}/2@0"), ("c", f"{topic}-2/0@0"))
    ]


def test_only_committed_records_land_and_the_end_of_a_range_may_be_none(
    kafka: Kafka, tmp_path: Path
) -> None:
    topic = create_topic(kafka)
    settings = {"bootstrap.servers": kafka.address, "transactional.id": topic, "log_level": 0}
    producer = Producer(settings)
    producer.init_transactions()

    def transact(names: str, end: Callable[[], None] | None) -> None:
        producer.begin_transaction()
        for line in orders(*names):
            producer.produce(topic, line, partition=0)
        producer.flush()
        if end is not None:
            end()

    shop = shop_of(tmp_path, kafka, topics=(topic,), spec={"max_records_per_trigger": 3})
    transact("ab", producer.commit_transaction)
    transact("xyz", producer.abort_transaction)
    transact("c", None)
    produced = [shop.land(batch).counts["bronze.order_events"].produced for batch in range(4)]
    waiting = source_lags(shop.warehouse.root, None)["bronze.orders"].records
    producer.commit_transaction()
    later: list[int] = []

    def lands() -> bool:
        batch = 4 + len(later)
        later.append(shop.land(batch).counts["bronze.order_events"].produced)
        return later[-1] > 0

    # The coordinator answers a commit before its mark is in the partition.
    wait_until(lands)
    rest = shop.land(4 + len(later)).counts["bronze.order_events"].produced

    # Offsets 2 and 6 are marks of the bounds, 3 to 5 were aborted; 7 is not committed yet.
    assert produced == [2, 0, 0, 0]
    assert waiting == 0
    assert (later[-1], rest) == (1, 0)
    assert events(shop) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"start": "latest"}, ["d"]),
        ({"start": "2026-03-01T12:01:00"}, ["b", "c", "d"]),
        ({"start": "2026-03-01T12:01:30Z"}, ["c", "d"]),
        ({"start": "2030-01-01"}, ["d"]),
        ({"end": "2026-03-01T12:02:00Z"}, ["a", "b"]),
    ],
)
def test_a_source_begins_and_ends_where_its_options_say(
    kafka: Kafka, tmp_path: Path, options: dict[str, str], expected: list[str]
) -> None:
    noon = datetime(2026, 3, 1, 12, tzinfo=UTC)
    topic = create_topic(kafka)
    for minute, name in enumerate("abc"):
        sent_at = noon + timedelta(minutes=minute)
        send(kafka, topic, *orders(name), timestamp_ms=round(sent_at.timestamp() * 1000))
    shop = shop_of(tmp_path, kafka, topics=(topic,), **options)
    shop.land(0)
    send(kafka, topic, *orders("d"))
    shop.restart()
    shop.land(1)

    assert events(shop) == expected


def test_offsets_by_partition_bound_a_source(kafka: Kafka, tmp_path: Path) -> None:
    topic = create_topic(kafka, partitions=2)
    for partition, names in enumerate(("abcd", "efgh")):
        send(kafka, topic, *orders(*names), partition=partition)
    bounds = {"start": frozenset({(f"{topic}/0", 1)}), "end": frozenset({(f"{topic}/0", 3)})}
    shop = shop_of(tmp_path, kafka, topics=(topic,), **bounds)
    shop.land(0)
    absent = {"start": frozenset({(f"{topic}/7", 1)})}
    (tmp_path / "other").mkdir()
    with pytest.raises(SourceError, match=f"start: {topic}/7: found 1, but the partition is not"):
        shop_of(tmp_path / "other", kafka, topics=(topic,), **absent).land(0)

    assert events(shop) == ["b", "c", "e", "f", "g", "h"]


def test_what_waits_is_as_old_as_its_message(kafka: Kafka, tmp_path: Path) -> None:
    topic = create_topic(kafka, partitions=2)
    sent_at = datetime(2026, 3, 1, 11, tzinfo=UTC)
    at = round(sent_at.timestamp() * 1000)
    send(kafka, topic, *orders("a", "b", "c"), timestamp_ms=at)
    send(kafka, topic, *orders("d", "e"), timestamp_ms=at + 60_000, partition=1)
    shop = shop_of(tmp_path, kafka, topics=(topic,), spec={"max_records_per_trigger": 2})
    shop.land(0)

    lag = source_lags(shop.warehouse.root, None)["bronze.orders"]
    assert (lag.records, lag.oldest_at) == (3, sent_at)
    assert lag.partitions == {f"{topic}/0": 2, f"{topic}/1": 1}


def test_parts_of_messages_are_columns_and_a_tombstone_deletes_its_key(
    kafka: Kafka, tmp_path: Path
) -> None:
    topic = create_topic(kafka, config={"cleanup.policy": "compact"})
    columns = {
        "order_id": "string",
        "status": "string",
        "headers": "map<string,string>",
        "sent_at": "timestamp",
        "part": "int",
        "position": "bigint",
        "topic": "string",
        "is_deleted": "boolean",
    }
    parts = {
        **{"key": "order_id", "headers": "headers", "timestamp": "sent_at", "topic": "topic"},
        **{"partition": "part", "offset": "position", "tombstone": "is_deleted"},
    }
    log: dict[str, Any] = {
        **{"path": "", "kind": "kafka", "message": tuple(parts.items())},
        "options": (("servers", kafka.address), ("topics", (topic,))),
    }
    keyed = source(
        "orders",
        columns,
        keys=("order_id",),
        sequence_by=("sent_at", "position"),
        apply_as_deletes="`is_deleted` = true",
        **log,
    )
    shop = Shop(None, tmp_path, (keyed, source("order_events", columns, **log)))
    at = 1_772_366_400_000
    headers: list[tuple[str, bytes | None]] = [("trace", b"7"), ("empty", None)]
    content = json.dumps({"status": "placed"})
    send(kafka, topic, content, content, keys=["a", "b"], headers=headers, timestamp_ms=at)
    shop.land(0)
    send(kafka, topic, None, keys=["a"], timestamp_ms=at + 1_000)
    shop.land(1)

    sent = datetime.fromtimestamp(at / 1000, UTC)
    assert shop.rows("orders", *columns) == [
        ("b", "placed", [("empty", None), ("trace", "7")], sent, 0, 1, topic, False)
    ]
    assert [row[:2] for row in shop.rows("order_events", "order_id", "is_deleted", "status")] == [
        *(("a", False), ("a", True), ("b", False))
    ]


def test_messages_of_avro_and_csv_land_as_those_of_json(kafka: Kafka, tmp_path: Path) -> None:
    columns = {"order_id": "string", "amount": "int"}
    fields = [{"name": "order_id", "type": "string"}, {"name": "amount", "type": "int"}]
    schema = {"type": "record", "name": "o", "fields": fields}
    (tmp_path / "7.avsc").write_text(json.dumps(schema))
    file = io.BytesIO()
    fastavro.schemaless_writer(file, schema, {"order_id": "a", "amount": 3})
    forms: dict[str, tuple[bytes, dict[str, Any]]] = {
        "of_json": (b'{"order_id": "a", "amount": 3}', {"format": "json"}),
        "of_csv": (b"a,3", {"format": "csv"}),
        "bare": (file.getvalue(), {"format": "avro", "avro_schema": json.dumps(schema)}),
        "numbered": (
            b"\0\0\0\0\7" + file.getvalue(),
            {"format": "avro", "schema_registry": str(tmp_path)},
        ),
    }
    tables = []
    for name, (content, spec) in forms.items():
        topic = create_topic(kafka)
        send(kafka, topic, content, b"\xff,")
        options = (("servers", kafka.address), ("topics", (topic,)))
        spec |= {"path": "", "kind": "kafka", "options": options}
        tables.append(source(name, columns, **spec))
    shop = Shop(None, tmp_path, tables)
    shop.land(0)

    for name in forms:
        assert shop.rows(name, "order_id", "amount") == [("a", 3)]
    refused = shop.rows("_dead_letters", "source", "reason")
    assert refused == [(f"bronze.{name}", "MALFORMED_RECORD") for name in sorted(forms)]


# 20 s.
def test_workers_land_what_the_driver_lands(
    spark: SparkSession, kafka: Kafka, tmp_path: Path
) -> None:
    topic = create_topic(kafka, partitions=2)
    for partition in range(2):
        names = [f"{partition}-{number}" for number in range(100)]
        send(kafka, topic, *orders(*names), "{broken", partition=partition)
    rows = []
    for lane in ("small", "large"):
        (tmp_path / lane).mkdir()
        shop = shop_of(tmp_path / lane, kafka, spark, topics=(topic,))
        shop.limit = Limit.of(lane)
        shop.restart()
        shop.run()
        rows.append(
            [
                shop.rows("orders", "order_id", "_origin"),
                shop.rows("order_events", "order_id", "_origin"),
                shop.rows("_dead_letters", "source", "origin", "reason", "record"),
            ]
        )

    assert rows[0] == rows[1]
    assert [len(it) for it in rows[0]] == [200, 200, 4]
