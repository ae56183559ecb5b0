"""Fills a topic of Kafka or a stream of NATS with orders, as the landing benchmarks read them.

The brokers are those of the tests, with more memory; a kind whose broker cannot be had is left out.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import nats
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from bench.orders import COLUMNS, orders_of, source_of
from livemart.project.graph import EnvelopeOptions, SourceTable
from livemart.project.landing_columns import SEQUENCE
from tests.change_records import postgres
from tests.models import stream_spec
from tests.services.kafka import running_kafka
from tests.services.maven import NotInstalledError, jars_of
from tests.services.nats import running_nats

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LOG_KINDS = ("kafka", "kafka_keyed", "debezium", "nats")
# As many as the cores that a plain stream reads them with.
_PARTITIONS = 2
_MEMORY = "1g"
_TOPIC = "orders"
_STREAM = "ORDERS"
_IN_FLIGHT = 4_000
_KEYS: dict[str, Any] = {"keys": ("order_id",), "sequence_by": ("updated_at",)}
_CHANGES: dict[str, Any] = {
    "keys": ("order_id",),
    "sequence_by": (SEQUENCE,),
    "apply_as_deletes": "_operation = 'd'",
    "envelope": "debezium",
    "envelope_options": EnvelopeOptions(decimal_handling="string", time_precision="isostring"),
}


@dataclass(frozen=True)
class OrderLog:
    """A log that holds the orders.

    `source`: that reads it; `plain`: a plain stream of Spark over the same, where Spark has one.
    """

    source: SourceTable
    plain: Callable[[SparkSession], DataFrame] | None = None


def peer_jars(kinds: Sequence[str]) -> Sequence[Path]:
    """Return the jars of Spark's own source of Kafka, if a kind is measured beside it."""
    if not any(kind.startswith("kafka") for kind in kinds):
        return ()
    try:
        return sorted(jars_of("spark-kafka").glob("*.jar"))
    except NotInstalledError:
        return ()


@contextmanager
def order_log(kind: str, root: Path, count: int) -> Iterator[OrderLog]:
    """Start the broker of a kind, fill it, and yield what reads it.

    Raises:
        NotInstalledError: the broker cannot be had.
    """
    with tempfile.TemporaryDirectory(dir=root) as folder:
        if kind == "nats":
            with running_nats(Path(folder)) as server:
                asyncio.run(_publish(server.address, count))
                yield OrderLog(_source(kind, servers=server.address, stream=_STREAM))
            return
        with running_kafka(Path(folder), memory=_MEMORY) as broker:
            _send(broker.address, count, _change if kind == "debezium" else json.dumps)
            topics = (_TOPIC,)
            spec = {"kafka": {}, "kafka_keyed": _KEYS, "debezium": _CHANGES}[kind]
            source = _source(kind, spec, servers=broker.address, topics=topics)
            plain = None if kind == "debezium" else _plain_stream(broker.address)
            yield OrderLog(source, plain)


def _source(kind: str, spec: dict[str, Any] | None = None, **options: Any) -> SourceTable:
    reader = "nats" if kind == "nats" else "kafka"
    given = tuple(sorted(options.items()))
    return source_of(kind, stream_spec(path="", kind=reader, options=given, **(spec or {})))


def _plain_stream(address: str) -> Callable[[SparkSession], DataFrame]:
    def read(spark: SparkSession) -> DataFrame:
        schema = ", ".join(f"`{name}` {data_type}" for name, data_type in COLUMNS.items())
        messages = (
            spark.readStream.format("kafka")
            .option("kafka.bootstrap.servers", address)
            .option("subscribe", _TOPIC)
            .option("startingOffsets", "earliest")
            .load()
        )
        return messages.selectExpr(
            f"from_json(cast(value as string), '{schema}') as record"
        ).select("record.*")

    return read


def _send(address: str, count: int, write: Callable[[Any], str]) -> None:
    admin = AdminClient({"bootstrap.servers": address})
    for made in admin.create_topics([NewTopic(_TOPIC, _PARTITIONS, 1)]).values():
        made.result(timeout=60)
    producer = Producer({"bootstrap.servers": address, "linger.ms": 50})
    for number, order in enumerate(orders_of(0, count)):
        while True:
            try:
                producer.produce(_TOPIC, write(order), str(order["order_id"]), number % _PARTITIONS)
                break
            except BufferError:
                producer.poll(1)
    producer.flush()


def _change(order: dict[str, Any]) -> str:
    """Return an order as Debezium writes a row that is new."""
    source = postgres(24_023_128 + int(order["order_id"][1:]))
    return json.dumps({"before": None, "after": order, "source": source, "op": "c", "ts_ms": 1})


async def _publish(address: str, count: int) -> None:
    client = await nats.connect(address)
    stream = client.jetstream(publish_async_max_pending=_IN_FLIGHT)
    await stream.add_stream(name=_STREAM, subjects=[f"{_STREAM}.>"])
    for order in orders_of(0, count):
        await stream.publish_async(f"{_STREAM}.placed", json.dumps(order).encode())
    await stream.publish_async_completed()
    await client.close()
