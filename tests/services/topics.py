"""Topics of the tests' broker, and messages in them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from uuid import uuid4

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.services.kafka import Kafka

Payload = str | bytes | None


def admin_of(kafka: Kafka, **settings: Any) -> AdminClient:
    """A client that makes, changes and deletes topics."""
    return AdminClient(_settings(kafka, settings))


def create_topic(
    kafka: Kafka,
    name: str = "",
    partitions: int = 1,
    config: Mapping[str, str] | None = None,
    replicas: int = 1,
    **settings: Any,
) -> str:
    """Make a topic and return its name: one that no other test has, if none is given."""
    name = name or f"orders-{uuid4().hex[:8]}"
    topic = NewTopic(name, partitions, replicas, config=dict(config or {}))
    # Answers come as long as the client is there.
    admin = admin_of(kafka, **settings)
    for done in admin.create_topics([topic]).values():
        done.result(timeout=30)
    return name


def send(
    kafka: Kafka,
    topic: str,
    *contents: Payload,
    keys: Iterable[Payload] = (),
    partition: int = 0,
    headers: list[tuple[str, bytes | None]] | None = None,
    timestamp_ms: int = 0,
    settings: Mapping[str, Any] | None = None,
) -> None:
    """Send messages to a partition, in order, and wait until the broker has them."""
    producer = Producer(_settings(kafka, settings or {}))
    given = iter(keys)
    for content in contents:
        more: dict[str, Any] = {"headers": headers} if headers else {}
        producer.produce(
            topic,
            content,
            next(given, None),
            partition=partition,
            timestamp=timestamp_ms,
            on_delivery=_delivered,
            **more,
        )
    assert producer.flush(30) == 0


def _delivered(error: object, _: object) -> None:
    assert error is None, error


def _settings(kafka: Kafka, more: Mapping[str, Any]) -> dict[str, Any]:
    return {"bootstrap.servers": kafka.address, "log_level": 0, **more}
