"""Reads topics of a Kafka cluster as a record log: the kind `kafka`.

Landing plans ranges of offsets and keeps them; no consumer group is joined, nothing is committed to
the cluster.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from livemart.epoch import clock_moment, parse_moment
from livemart.extras import require_extra
from livemart.land.records.messages.message import Message
from livemart.land.secrets import read_secrets
from livemart.land.sources.kafka.settings import check_client, check_moment
from livemart.land.sources.record_log import check_name

if TYPE_CHECKING:
    from livemart.land.sources.kafka.client import KafkaClient, KafkaTopic


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
        name: of the cluster; it is put before the names of partitions.
        start: where a source begins that has read nothing: `earliest`, `latest`, a time (ISO 8601,
            UTC without a zone), or an offset for each partition.
        end: where it ends for good: a time, or an offset for each partition; None for nowhere.

    Raises:
        ConfigError: EXTRA_MISSING.
        ValueError: with all mistakes.
    """

    has_plain_options: ClassVar[bool] = True

    servers: str
    topics: list[str] = field(default_factory=list)
    pattern: str = ""
    client: dict[str, Any] = field(default_factory=dict)
    secrets: dict[str, str] = field(default_factory=dict)
    name: str = ""
    start: str | dict[str, int] = "earliest"
    end: str | dict[str, int] | None = None

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
        if not isinstance(names, list) or not all(isinstance(name, str) and name for name in names):
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
        yield from check_name(self.name)
        yield from check_moment("start", self.start, ("earliest", "latest"))
        if self.end is not None:
            yield from check_moment("end", self.end, ())

    def steady(self) -> KafkaLog:
        """Return the log with the topics that are there now."""
        log = copy(self)
        # An object that nothing is set in holds what it was asked for once.
        log.__dict__.update(_client=self._client, _steady_topics=self._topics())
        return log

    def starts(self) -> Mapping[str, int]:
        """Return the offset of the oldest record that is still there, by partition."""
        return self._named(self._client.offsets(self._places(), newest=False))

    def ends(self) -> Mapping[str, int]:
        """Return the offset behind the newest record of a transaction that has ended."""
        return self._named(self._client.offsets(self._places(), newest=True))

    def begins(self) -> Mapping[str, int]:
        """Return the offset at which a source begins that has read nothing, by partition."""
        return self._offsets_of("start", self.start)

    def bounds(self) -> Mapping[str, int]:
        """Return the offset before which reading finally ends, by partition."""
        return {} if self.end is None else self._offsets_of("end", self.end)

    def identities(self) -> Mapping[str, str]:
        """Return the id of each partition's topic, where the broker has ids."""
        return {
            self._name(name, number): topic.id
            for name, topic in self._topics().items()
            for number in topic.partitions
            if topic.id is not None
        }

    def is_selected(self, partition: str) -> bool:
        """Return whether a partition's topic is one of `topics`, or as `pattern` says."""
        topic, _ = self._place(partition)
        return topic in self.topics or self._matches(topic)

    def absent(self) -> Collection[str]:
        """Return those of `topics` that are not there."""
        there = self._topics()
        return [f"topic {name}" for name in self.topics if name not in there]

    def read(self, partition: str, start: int, end: int) -> Iterator[Message]:
        """Yield the messages from `start` to before `end`, those of aborted transactions not."""
        return self._client.read(*self._place(partition), start, end)

    def written_at(self, partition: str, offset: int) -> datetime | None:
        """Return the time of the first message from an offset on."""
        moment = self._client.time_of(*self._place(partition), offset)
        return None if moment is None else clock_moment(moment / 1e6)

    def _offsets_of(self, option: str, value: str | dict[str, int]) -> Mapping[str, int]:
        """Return the offsets that a value of `start` or `end` stands for."""
        if value == "earliest":
            return {}
        # Asked before the time is: what comes in between is behind them, and not passed over.
        ends = self.ends()
        if value == "latest":
            return ends
        if isinstance(value, dict):
            for name, offset in value.items():
                if name not in ends or (option == "start" and offset > ends[name]):
                    there = f"ends at {ends[name]}" if name in ends else "is not there"
                    raise ValueError(f"{option}: {name}: found {offset}, but the partition {there}")
            return value
        at = self._named(self._client.offsets_at(self._places(), parse_moment(value)))
        if option == "end":
            # Without a record from that time on, whatever comes may be before it.
            return {name: offset for name, offset in at.items() if offset >= 0}
        return {name: end if at.get(name, -1) < 0 else at[name] for name, end in ends.items()}

    def _topics(self) -> Mapping[str, KafkaTopic]:
        topics: Mapping[str, KafkaTopic] | None = self.__dict__.get("_steady_topics")
        if topics is not None:
            return topics
        return self._client.topics(
            self.topics or [name for name in self._client.names() if self._matches(name)]
        )

    def _matches(self, topic: str) -> bool:
        return bool(self.pattern) and re.fullmatch(self.pattern, topic) is not None

    def _places(self) -> list[tuple[str, int]]:
        topics = self._topics().items()
        return [(name, number) for name, topic in topics for number in topic.partitions]

    def _named(self, offsets: Mapping[tuple[str, int], int]) -> Mapping[str, int]:
        return {self._name(*place): offset for place, offset in offsets.items()}

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
