"""Reads a stream of NATS JetStream as a record log: the kind `nats`.

A record's offset is its sequence in the stream. Landing plans ranges of sequences and keeps them;
nothing is acknowledged, and the server keeps no consumer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar

from livemart.extras import require_extra
from livemart.land.records.messages.message import Message
from livemart.land.secrets import read_secrets
from livemart.land.sources.nats.settings import check_connection, check_servers, check_stream

if TYPE_CHECKING:
    from livemart.land.sources.nats.client import NatsClient, StreamBounds


@dataclass(frozen=True)
class NatsLog:
    """One stream; its one partition bears its name. The fields are its `options`.

    Attributes:
        servers: `nats://host:port, nats://host:port`: tried in order.
        stream: name of the stream.
        subjects: what is read of it; all if it is empty.
        client: settings, without secrets.
        secrets: `user`, `password`, `token`, each with the environment variable that holds it.
        name: of the servers; it is put before the name of the partition.

    Raises:
        ConfigError: EXTRA_MISSING.
        ValueError: with all mistakes.
        LookupError: an environment variable is not there.
    """

    has_plain_options: ClassVar[bool] = True

    servers: str
    stream: str
    subjects: list[str] = field(default_factory=list)
    client: dict[str, Any] = field(default_factory=dict)
    secrets: dict[str, str] = field(default_factory=dict)
    name: str = ""

    def __post_init__(self) -> None:
        require_extra("nats")
        mistakes = [
            *check_servers(self.servers),
            *check_stream(self.stream, self.subjects, self.name),
            *check_connection(self.client, self.secrets),
        ]
        if mistakes:
            raise ValueError("; ".join(mistakes))
        read_secrets(self.secrets)

    def steady(self) -> NatsLog:
        """Return the log with the present content of the stream."""
        log = copy(self)
        # An object that nothing is set in holds what it was asked for once.
        log.__dict__["_steady_bounds"] = self._bounds()
        return log

    def starts(self) -> Mapping[str, int]:
        """Return the sequence of the oldest message that is still there."""
        return {self._partition: self._bounds().start}

    def ends(self) -> Mapping[str, int]:
        """Return the sequence that the next message will have."""
        return {self._partition: self._bounds().end}

    def read(self, partition: str, start: int, end: int) -> Iterator[Message]:
        """Yield the messages from `start` to before `end`; deleted ones are left out."""
        return self._client.read(start, end)

    def written_at(self, partition: str, offset: int) -> datetime | None:
        """Return when the first message from an offset on was stored."""
        return self._client.time_of(offset)

    def identities(self) -> Mapping[str, str]:
        """Return when the stream was made: one that is created again has another time."""
        created_at = self._bounds().created_at
        return {self._partition: created_at} if created_at else {}

    def is_selected(self, partition: str) -> bool:
        """Return whether a partition is the stream."""
        return partition == self._partition

    def is_compacted(self) -> bool:
        """Return whether messages go only because newer ones of their subject replace them."""
        return self._bounds().is_compacted

    def absent(self) -> Collection[str]:
        """Return nothing: without the stream no question about it is answered."""
        return ()

    @property
    def _partition(self) -> str:
        return f"{self.name}/{self.stream}" if self.name else self.stream

    def _bounds(self) -> StreamBounds:
        bounds: StreamBounds | None = self.__dict__.get("_steady_bounds")
        return self._client.bounds() if bounds is None else bounds

    @property
    def _client(self) -> NatsClient:
        from livemart.land.sources.nats.client import NatsClient, NatsConnection

        connection = NatsConnection(self.servers, self.client, self.secrets)
        return NatsClient(connection, self.stream, self.subjects)
