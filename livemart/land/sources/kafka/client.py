"""Reads topics of a Kafka cluster: their bounds, or a range of them.

Used by `KafkaLog`; the one module that imports confluent-kafka. Each call ends within a time limit,
and what the C client would write to the terminal becomes part of the error.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

import confluent_kafka as kafka
from confluent_kafka import (
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, OffsetSpec

from livemart.land.records.messages.message import Message
from livemart.land.secrets import redacted

_T = TypeVar("_T")

# A broker that says nothing for so long is away.
_ANSWER_S = 15.0
_SILENCE_S = 30.0
# A question only about waiting times is given up after so long.
_GLANCE_S = 2.0
# Between two looks at whether somebody asked for the end.
_LOOK_S = 0.5
_RUN_RECORDS = 8_192
_NEWEST_WORDS = 3
# Who asks is not who may, or the server cannot prove who it is.
_DENIALS = frozenset(
    {
        KafkaError._AUTHENTICATION,
        KafkaError.SASL_AUTHENTICATION_FAILED,
        KafkaError.UNSUPPORTED_SASL_MECHANISM,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
    }
)
_UNPROVEN_WORDS = "certificate verify failed"
# Words for a server that may be away: one of tokens, or a broker that went during sign-in.
_AWAY_WORDS = ("Failed to acquire SASL OAUTHBEARER token", "mechanism handshake failed: Local:")
# All bits are zero.
_NO_ID = "A" * 22

_DEFAULTS: Mapping[str, Any] = {
    "client.id": "livemart",
    "socket.connection.setup.timeout.ms": 10_000,
    "allow.auto.create.topics": False,
}
_READING: Mapping[str, Any] = {
    # No group is joined and nothing is committed: the client asks for a name all the same.
    "group.id": "livemart",
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    # The end of a range may be records that are never handed out: of a transaction that was
    # aborted, marks of its bounds, what compaction removed.
    "enable.partition.eof": True,
    "auto.offset.reset": "error",
    # A range is 100,000 records at most, so what is fetched beyond it is for nothing.
    "queued.min.messages": 50_000,
    "queued.max.messages.kbytes": 32_768,
    # Else a full queue rests for a second.
    "fetch.queue.backoff.ms": 5,
}


@dataclass(frozen=True, slots=True)
class KafkaTopic:
    """A topic: its id, which no other of its name has, and the numbers of its partitions.

    The id is None if the broker is older than ids of topics.
    """

    id: str | None
    partitions: tuple[int, ...]


class KafkaUnreadableError(Exception):
    """A cluster that does not answer, or gives a wrong answer."""


class KafkaDeniedError(KafkaUnreadableError, PermissionError):
    """A cluster that does not let this client in, or that this client does not trust."""


class KafkaClient:
    """A client of one cluster; connections are made when they are needed first.

    `servers`: `host:port`; `settings`: of librdkafka; values of `secrets` are never shown.
    """

    def __init__(
        self, servers: str, settings: Mapping[str, object], secrets: Mapping[str, str]
    ) -> None:
        self._settings = {"bootstrap.servers": servers, **_DEFAULTS, **settings, **secrets}
        self._secrets = secrets
        self._client_errors: deque[KafkaError] = deque(maxlen=_NEWEST_WORDS)
        self._asking: AdminClient | None = None
        self._readers: list[Consumer] = []
        self._isolation = (
            IsolationLevel.READ_UNCOMMITTED
            if settings.get("isolation.level") == "read_uncommitted"
            else IsolationLevel.READ_COMMITTED
        )

    def check(self) -> None:
        """Refuse settings that the client does not know or take; nothing is connected."""
        self._readers.append(self._consumer())

    def names(self) -> Sequence[str]:
        """Return the names of all topics of the cluster."""
        return sorted(self._asked(lambda admin: admin.list_topics(timeout=_ANSWER_S)).topics)

    def topics(self, names: Sequence[str]) -> dict[str, KafkaTopic]:
        """Return those of some topics that are there, by name."""
        if not names:
            return {}
        asked = TopicCollection(list(names))
        answers = self._asked(lambda admin: admin.describe_topics(asked, request_timeout=_ANSWER_S))
        topics = {}
        for name, answer in answers.items():
            try:
                topic = answer.result(timeout=_ANSWER_S + _GLANCE_S)
            except KafkaException as error:
                if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                    continue
                raise self._error(f"{name}: {error.args[0].str()}", error.args[0]) from None
            numbers = tuple(sorted(partition.id for partition in topic.partitions))
            topic_id = str(topic.topic_id)
            topics[name] = KafkaTopic(None if topic_id == _NO_ID else topic_id, numbers)
        return topics

    def offsets(
        self, partitions: Sequence[tuple[str, int]], *, newest: bool
    ) -> dict[tuple[str, int], int]:
        """Return the offset of the oldest record, or behind the newest that is committed."""
        spec: Any = OffsetSpec.latest if newest else OffsetSpec.earliest
        asked = {TopicPartition(topic, number): spec() for topic, number in partitions}
        return self._listed(asked)

    def offsets_at(
        self, partitions: Sequence[tuple[str, int]], at: datetime
    ) -> dict[tuple[str, int], int]:
        """Return the offset of the first record from a time on, -1 if there is none."""
        spec = OffsetSpec.for_timestamp(round(at.timestamp() * 1000))
        return self._listed({TopicPartition(topic, number): spec for topic, number in partitions})

    def _listed(self, asked: Mapping[TopicPartition, OffsetSpec]) -> dict[tuple[str, int], int]:
        if not asked:
            return {}
        answers = self._asked(
            lambda admin: admin.list_offsets(
                dict(asked), isolation_level=self._isolation, request_timeout=_ANSWER_S
            )
        )
        offsets = {
            (place.topic, place.partition): self._result(answer).offset
            for place, answer in answers.items()
        }
        for (topic, number), offset in offsets.items():
            # While a partition changes its leader; the client does not call it an error.
            if offset == kafka.OFFSET_INVALID:
                raise self._error(f"{topic}/{number}: no broker says where it begins or ends")
        return offsets

    def read(self, topic: str, number: int, start: int, end: int) -> Iterator[Message]:
        """Yield the committed messages of a partition from `start` to before `end`."""
        with self._reader_at(topic, number, start) as consumer:
            yield from self._range(consumer, topic, number, end)

    def time_of(self, topic: str, number: int, start: int) -> int | None:
        """Return when the first message from `start` on was sent, in microseconds since 1970."""
        with self._reader_at(topic, number, start) as consumer:
            message = self._guarded(lambda: consumer.poll(_GLANCE_S))
        if message is None or message.error() is not None:
            return None
        return _sent_us(message)

    @contextmanager
    def _reader_at(self, topic: str, number: int, start: int) -> Iterator[Consumer]:
        """Yield a consumer that reads a partition from `start` on; one that failed is closed."""
        consumer = self._readers.pop() if self._readers else self._consumer()
        try:
            self._guarded(lambda: consumer.assign([TopicPartition(topic, number, start)]))
            yield consumer
            self._guarded(consumer.unassign)
        except BaseException:
            consumer.close()
            raise
        self._readers.append(consumer)

    def _range(self, consumer: Consumer, topic: str, number: int, end: int) -> Iterator[Message]:
        answered_at, behind = time.monotonic(), ""
        while True:
            first = self._guarded(lambda: consumer.poll(_LOOK_S))
            if first is None:
                if time.monotonic() - answered_at > _SILENCE_S:
                    raise self._error(f"no record within {_SILENCE_S:.0f} s{behind}")
                continue
            answered_at = time.monotonic()
            message: Any
            for message in (first, *self._guarded(lambda: consumer.consume(_RUN_RECORDS, 0))):
                error = message.error()
                offset = message.offset()
                if error is not None:
                    if error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED:
                        # No group is joined, so no right to one is needed.
                        continue
                    if error.code() != KafkaError._PARTITION_EOF:
                        raise self._error(error.str(), error)
                    if offset >= end:
                        return
                    # A broker that has just taken over may not know yet of all that is there.
                    behind = f": the partition ends at {offset}, and was to be read to {end}"
                    continue
                if offset >= end:
                    return
                yield Message(
                    offset,
                    message.value(),
                    message.key(),
                    message.headers() or (),
                    _sent_us(message),
                    topic,
                    number,
                )
                if offset == end - 1:
                    return

    def _consumer(self) -> Consumer:
        isolation = {"isolation.level": "read_committed"}
        settings: dict[str, Any] = {**isolation, **self._settings, **_READING}
        settings["error_cb"] = self._on_error
        return self._guarded(lambda: Consumer(settings, logger=_silent()))

    def _asked(self, ask: Callable[[AdminClient], _T]) -> _T:
        if self._asking is None:
            settings: dict[str, Any] = {
                name: value for name, value in self._settings.items() if name != "isolation.level"
            }
            settings["error_cb"] = self._on_error
            self._asking = self._guarded(lambda: AdminClient(settings, logger=_silent()))
        admin = self._asking
        # Reports about earlier calls are no cause of later failures.
        self._client_errors.clear()
        try:
            return self._guarded(lambda: ask(admin))
        finally:
            # Serves what the client has to say.
            admin.poll(0)

    def _result(self, answer: Future[Any]) -> Any:
        return self._guarded(lambda: answer.result(timeout=_ANSWER_S + _GLANCE_S))

    def _guarded(self, call: Callable[[], _T]) -> _T:
        try:
            return call()
        except KafkaException as error:
            raise self._error(error.args[0].str(), error.args[0]) from None

    def _error(self, text: str, error: KafkaError | None = None) -> KafkaUnreadableError:
        """Return the error with the client's last message, which often is the cause."""
        if self._asking is not None:
            # Lets the client report its remaining errors.
            self._asking.poll(0)
        errors = [*self._client_errors, *([error] if error is not None else [])]
        said = [
            it for it in dict.fromkeys(it.str() for it in self._client_errors) if it not in text
        ]
        self._client_errors.clear()
        kind = KafkaDeniedError if any(map(is_denial, errors)) else KafkaUnreadableError
        return kind(redacted("; ".join([text, *said]), self._secrets))

    def _on_error(self, error: KafkaError) -> None:
        self._client_errors.append(error)


def is_denial(error: KafkaError) -> bool:
    """Return whether an error says that access is denied, which no waiting mends."""
    text = error.str()
    if error.code() == KafkaError._SSL:
        return _UNPROVEN_WORDS in text
    return error.code() in _DENIALS and not any(words in text for words in _AWAY_WORDS)


def _sent_us(message: kafka.Message) -> int | None:
    kind, milliseconds = message.timestamp()
    return None if kind == kafka.TIMESTAMP_NOT_AVAILABLE else milliseconds * 1000


def _silent() -> logging.Logger:
    """Return a log without a reader: errors are reported by exceptions."""
    log = logging.Logger("livemart.kafka")
    log.addHandler(logging.NullHandler())
    log.propagate = False
    return log
