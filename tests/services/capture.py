"""Clients that change a database in a thread, how one waits for its connector, and what it sent."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any, NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from tests.services.changed_tables import Changes, Connection
from tests.services.kafka import Kafka
from tests.waits import PATIENCE_S, wait_until

# A broker's error for a partition that was created a moment ago.
_WITHOUT_A_LEADER = (
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
)


class Message(NamedTuple):
    """A message of a topic; key and value as they were written."""

    topic: str
    partition: int
    offset: int
    key: str | None
    value: str | None


@contextmanager
def changing(changes: Changes, statements: int) -> Iterator[Callable[[int], None]]:
    """Let the clients do so many statements beside the block, and commit all at its end.

    Yields:
        A wait until so many transactions more are committed, or all statements are done.
    """
    errors = list[BaseException]()

    def work() -> None:
        try:
            changes.run(statements)
            changes.finish()
        except BaseException as error:
            errors.append(error)

    def wait(transactions: int) -> None:
        goal = changes.committed + transactions
        wait_until(lambda: changes.committed >= goal or not thread.is_alive())

    thread = Thread(target=work)
    thread.start()
    try:
        yield wait
    finally:
        thread.join(PATIENCE_S)
    assert not thread.is_alive()
    assert errors == []


def ask_for_rows(connection: Connection, tables: Iterable[str]) -> None:
    """Ask the connector by a signal to read tables while it sends changes."""
    names = [f"public.{table}" for table in tables]
    content = json.dumps({"data-collections": names, "type": "incremental"})
    connection.execute("insert into signals values ('rows', 'execute-snapshot', %s)", [content])


def wait_for_rows(kafka: Kafka, prefix: str) -> None:
    """Wait until the connector has read what it was asked for."""

    def is_read() -> bool:
        values = (json.loads(it.value or "{}") for it in messages_of(kafka, f"{prefix}.told"))
        told = ((it.get("payload") or it) for it in values)
        return any(
            (it["aggregate_type"], it["type"]) == ("Incremental Snapshot", "COMPLETED")
            for it in told
        )

    wait_until(is_read)


def wait_for_all(connection: Connection, slot: str) -> None:
    """Wait until Kafka has all that was committed; changes the table `marks` until then.

    A connector confirms the commit before the one whose record it has sent.
    """
    row = connection.execute("select pg_current_wal_insert_lsn()").fetchone()
    assert row is not None
    query = "select confirmed_flush_lsn > %s::pg_lsn from pg_replication_slots where slot_name = %s"

    def is_confirmed() -> bool:
        connection.execute("insert into marks default values")
        return connection.execute(query, [row[0], slot]).fetchone() == (True,)

    wait_until(is_confirmed)


def messages_of(kafka: Kafka, topic: str) -> list[Message]:
    """Return what a topic holds, partition after partition; nothing if it is not there."""
    consumer = Consumer({"bootstrap.servers": kafka.address, "group.id": "none"})
    found: list[Message] = []
    try:
        if topic not in (topics := consumer.list_topics(timeout=PATIENCE_S).topics):
            return []
        for partition in sorted(topics[topic].partitions):
            place = TopicPartition(topic, partition, 0)
            start, end = _bounds(consumer, place)
            consumer.assign([TopicPartition(topic, partition, start)])
            while start < end:
                message = consumer.poll(PATIENCE_S)
                assert message is not None and message.error() is None, message
                key, value, offset = message.key(), message.value(), message.offset()
                assert offset is not None
                start = offset + 1
                found.append(Message(topic, partition, offset, _text(key), _text(value)))
    finally:
        consumer.close()
    return found


def _bounds(consumer: Consumer, place: TopicPartition) -> tuple[int, int]:
    """Return where a partition begins and ends, once it has a leader: at first it has none."""
    bounds: list[tuple[int, int]] = []

    def is_led() -> bool:
        try:
            bounds.append(consumer.get_watermark_offsets(place, PATIENCE_S))
        except KafkaException as error:
            if error.args[0].code() not in _WITHOUT_A_LEADER:
                raise
        return bool(bounds)

    wait_until(is_led)
    return bounds[0]


def framed(message: Message, *, as_kcat: bool) -> str:
    """Return a message as a line that kcat (`-J`) writes, or a sink of Kafka Connect."""
    place = {"topic": message.topic, "partition": message.partition, "offset": message.offset}
    if as_kcat:
        return json.dumps({**place, "key": message.key, "payload": message.value})
    key, value = (None if it is None else json.loads(it) for it in (message.key, message.value))
    return json.dumps({**place, "key": key, "value": value})


def _text(content: Any) -> str | None:
    return None if content is None else bytes(content).decode()
