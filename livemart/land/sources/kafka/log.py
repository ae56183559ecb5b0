"""Reads topics of a Kafka cluster as a record log: the kind `kafka`.

Landing plans ranges of offsets and keeps them; no consumer group is joined, nothing is committed to
the cluster.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from livemart.extras import require_extra
from livemart.land.records.messages.message import Message
from livemart.land.sources.kafka.settings import check_client
from livemart.land.sources.secrets import read_secrets

if TYPE_CHECKING:
    from livemart.land.sources.kafka.client import KafkaClient


@dataclass(frozen=True)
class KafkaLog:
    """Topics of one cluster; their partitions are `topic/number`. The fields are its `options`.

    Attributes:
        servers: `host:port, host:port`: brokers to ask first.
        topics: names of topics.
        pattern: regular expression of whole names; topics that come later join.
        client: settings of librdkafka, without secrets.
        secrets: settings of librdkafka whose values are secrets, each with the environment variable
            that holds it.
        name: of the cluster; stands before the names of partitions.

    Raises:
        ConfigError: EXTRA_MISSING.
        ValueError: with all mistakes.
    """

    servers: str
    topics: list[str] = field(default_factory=list)
    pattern: str = ""
    client: dict[str, Any] = field(default_factory=dict)
    secrets: dict[str, str] = field(default_factory=dict)
    name: str = ""

    def __post_init__(self) -> None:
        require_extra("kafka")
        mistakes = list(self._mistakes())
        if mistakes:
            raise ValueError("; ".join(mistakes))
        self._client.check()

    def _mistakes(self) -> Iterator[str]:
        servers: object = self.servers
        if not isinstance(servers, str) or not self.servers.strip():
            yield "servers: write `host:port`, several with commas"
        names = self.topics
        if not isinstance(names, list) or not all(isinstance(it, str) and it for it in names):
            yield "topics: write a list of names"
        elif bool(names) == bool(self.pattern):
            yield "write either `topics`, a list of names, or `pattern`, a regular expression"
        try:
            re.compile(self.pattern)
        except (re.error, TypeError) as error:
            yield f"pattern: found {self.pattern!r}: {error}"
        settings: list[tuple[str, object]] = [("client", self.client), ("secrets", self.secrets)]
        for option, value in settings:
            if not isinstance(value, dict):
                yield f"{option}: write settings of librdkafka with values"
                return
        yield from check_client(self.client, self.secrets)
        if not isinstance(self.name, str) or re.search(r"[\s/@]", self.name):
            yield f"name: found {self.name!r}: write a word without blanks, / and @"

    def starts(self) -> Mapping[str, int]:
        """Return the offset of the oldest record that is still there, by partition."""
        return self._offsets(newest=False)

    def ends(self) -> Mapping[str, int]:
        """Return the offset behind the newest record of a transaction that has ended."""
        return self._offsets(newest=True)

    def read(self, partition: str, start: int, end: int) -> Iterator[Message]:
        """Yield the messages from `start` to before `end`, those of aborted transactions not."""
        return self._client.read(*self._place(partition), start, end)

    def written_at(self, partition: str, offset: int) -> datetime | None:
        """Return the time of the first message from an offset on."""
        moment = self._client.time_of(*self._place(partition), offset)
        return None if moment is None else datetime.fromtimestamp(moment / 1e6, UTC)

    def _offsets(self, *, newest: bool) -> Mapping[str, int]:
        offsets = self._client.offsets(self._partitions(), newest=newest)
        return {self._name(*place): offset for place, offset in offsets.items()}

    def _partitions(self) -> list[tuple[str, int]]:
        topics = self._client.topics()
        names = self.topics or filter(re.compile(self.pattern).fullmatch, topics)
        return [(name, number) for name in names for number in topics.get(name, ())]

    def _name(self, topic: str, number: int) -> str:
        return f"{self.name}/{topic}/{number}" if self.name else f"{topic}/{number}"

    def _place(self, partition: str) -> tuple[str, int]:
        topic, _, number = partition.rpartition("/")
        return topic.removeprefix(f"{self.name}/" if self.name else ""), int(number)

    @cached_property
    def _client(self) -> KafkaClient:
        from livemart.land.sources.kafka.client import KafkaClient

        return KafkaClient(self.servers, self.client, read_secrets(self.secrets))

    def __getstate__(self) -> dict[str, Any]:
        # Spark's workers connect by themselves.
        return {name: value for name, value in self.__dict__.items() if name != "_client"}
