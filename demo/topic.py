"""Sends the market's orders to a topic of Kafka, and has a copy of the project read them there.

Used by the demo in the place of files; restaurants and dishes stay files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from demo.delivery import hand_over_lines
from livemart.storage.location import StoragePlace
from tests.project_run import copy_project
from tests.services.kafka import running_kafka
from tests.services.maven import NotInstalledError

_ANSWER_S = 30.0
_PARTITIONS = 2
_SOURCES = Path("models", "staging", "ordering", "_ordering__sources.yml")
_FILES = "path: orders/*.jsonl\n"
_ORDER_ID = re.compile(r'"order_id": *"([^"]*)"')


class OrderTopic:
    """A topic that is created here; it must not exist yet.

    Args:
        servers: of the cluster, `host:port`.
        name: of the topic.

    Attributes:
        servers: of the cluster.

    Raises:
        BadParameter: the cluster does not let it be made.
    """

    def __init__(self, servers: str, name: str) -> None:
        self.servers = servers
        self._name = name
        admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
        try:
            for made in admin.create_topics([NewTopic(name, _PARTITIONS)]).values():
                made.result(timeout=_ANSWER_S)
        except (KafkaException, TimeoutError) as error:
            raise click.BadParameter(
                f"{servers}: topic {name} cannot be made: {error}", param_hint="--broker"
            ) from None
        self._producer = Producer({"bootstrap.servers": servers, "log_level": 0})

    def deliver(
        self, folder: StoragePlace, name: str, lines: Iterable[str]
    ) -> Sequence[StoragePlace]:
        """Send lines of the folder `orders` to the topic; hand others over as a file."""
        if folder.name != "orders":
            return hand_over_lines(folder, name, lines)
        for line in lines:
            # All versions of an order are in one partition; a broken line may have no order.
            key = _ORDER_ID.search(line)
            self._producer.produce(self._name, line.encode(), key[1] if key else None)
            self._producer.poll(0)
        if self._producer.flush(_ANSWER_S):
            raise click.ClickException(f"{self.servers} does not take the orders")
        return ()

    def lead_into(self, project: Path, copy: Path) -> None:
        """Make a copy of the project whose orders come from the topic."""
        copy_project(project, copy)
        path = copy / _SOURCES
        text = path.read_text(encoding="utf-8")
        before, *_ = text.partition(_FILES)
        indent = before.rpartition("\n")[2]
        options = json.dumps({"servers": self.servers, "topics": [self._name]})
        from_topic = text.replace(_FILES, f"kind: kafka\n{indent}options: {options}\n")
        path.write_text(from_topic, encoding="utf-8")


@contextmanager
def order_topic(broker: str | None, folder: Path, name: str) -> Iterator[OrderTopic]:
    """Yield a topic for the orders: of a named broker, or of one that is started for it.

    Args:
        broker: `host:port`; None for one that is started.
        folder: where its own keeps everything.
        name: of the topic.

    Raises:
        BadParameter: the broker cannot be used, or its own cannot be had.
    """
    if broker is not None:
        yield OrderTopic(broker, name)
        return
    folder.mkdir(parents=True)
    try:
        with running_kafka(folder) as own:
            yield OrderTopic(own.address, name)
    except NotInstalledError as error:
        raise click.BadParameter(
            f"no broker of its own: {error}; name one, host:port", param_hint="--broker"
        ) from None
