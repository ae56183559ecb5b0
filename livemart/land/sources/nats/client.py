"""Reads one stream of a server of NATS: its bounds, or a range of it.

Used by `NatsLog`. A connection lives as long as one question or one range, each answer comes within
a time limit, and the server keeps nothing of it. Secrets are read from the environment when a
connection is made, and appear in no error.
"""

from __future__ import annotations

import asyncio
import json
import logging
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js import JetStreamContext, api
from nats.js.errors import NotFoundError, ServiceUnavailableError

from livemart.land.records.messages.message import Message
from livemart.land.secrets import read_secrets, redacted
from livemart.land.sources.nats.settings import server_list

_PULL_RECORDS = 5_000
_PULL_BYTES = 8_000_000
# The server forgets a consumer that has not asked for so long.
_PAUSE_S = 300.0
# These end a pull before it is full: nothing is left, or the next message is too large for it.
_NOTHING_LEFT = ("404", "408")
_TOO_LARGE = ("409", "Message Size Exceeds MaxBytes")
_ANSWER_S = 15.0
_CONNECTED_S = 10
_CLOSED_S = 1
_ENCRYPTING = ("tls_ca", "tls_cert", "tls_first", "tls_hostname")
_DENIAL_WORDS = (
    *("authorization violation", "authentication expired", "certificate verify failed"),
    *("certificate required", "does not encrypt"),
)
# asyncio writes it on the terminal whenever a server ends an encrypted connection.
_OF_EVERY_END = "returning true from eof_received() has no effect when using ssl"
logging.getLogger("asyncio").addFilter(lambda record: record.msg != _OF_EVERY_END)


class NatsUnreadableError(Exception):
    """A server that does not answer, or gives a wrong answer."""


class NatsDeniedError(NatsUnreadableError, PermissionError):
    """A server that does not let this client in, or that this client does not trust."""


@dataclass(frozen=True)
class NatsConnection:
    """How servers are reached.

    `servers`: addresses, tried in order until one answers; `client`: settings; `secrets`: names of
    environment variables.
    """

    servers: str
    client: Mapping[str, Any]
    secrets: Mapping[str, str]

    @property
    def prefix(self) -> str:
        """The first words of the subjects at which JetStream is asked."""
        domain = self.client.get("domain")
        return f"$JS.{domain}.API" if domain else "$JS.API"

    @asynccontextmanager
    async def open(self) -> AsyncIterator[tuple[Client, JetStreamContext]]:
        """Connect, and close the connection in the end.

        Raises:
            NatsUnreadableError: for every error, with what the server said, without secrets.
        """
        secrets = read_secrets(self.secrets)
        said: list[str] = []
        client: Client | None = None
        try:
            client = await self._connect(secrets, said)
            yield client, client.jetstream(prefix=self.prefix, timeout=_ANSWER_S)
        except Exception as error:
            text = redacted("; ".join(dict.fromkeys((_text_of(error), *said))), secrets)
            is_denied = any(words in text.lower() for words in _DENIAL_WORDS)
            raise (NatsDeniedError if is_denied else NatsUnreadableError)(text) from None
        finally:
            if client is not None:
                await _close(client)

    async def _connect(self, secrets: Mapping[str, str], said: list[str]) -> Client:
        """Return a connection to the first server that answers; `said` takes others' errors."""

        async def hear(error: Exception) -> None:
            said.append(_text_of(error))

        for address in server_list(self.servers):
            client = Client()
            try:
                async with asyncio.timeout(_ANSWER_S):
                    await client.connect(
                        address,
                        error_cb=hear,
                        name="livemart",
                        # A range that was cut off is read again: it would be unknown which of the
                        # messages that are not acknowledged were lost on the way.
                        allow_reconnect=False,
                        max_reconnect_attempts=1,
                        reconnect_time_wait=0,
                        connect_timeout=_CONNECTED_S,
                        **self._settings(client, address, secrets),
                    )
                return client
            except Exception as error:
                text = _text_of(error)
                said[:] = [*(other for other in said if other != text), f"{address}: {text}"]
                await _close(client)
        raise NatsUnreadableError("no server of `options` can be reached")

    def _settings(self, client: Client, address: str, secrets: Mapping[str, str]) -> dict[str, Any]:
        """Return the arguments of a connection that its options say."""
        options = self.client
        settings: dict[str, Any] = {
            argument: options[name]
            for name, argument in (
                ("inbox_prefix", "inbox_prefix"),
                ("tls_hostname", "tls_hostname"),
                ("tls_first", "tls_handshake_first"),
                ("credentials", "user_credentials"),
                ("nkey", "nkeys_seed"),
            )
            if name in options
        }
        if "tls_ca" in options or "tls_cert" in options:
            context = ssl.create_default_context(cafile=options.get("tls_ca"))
            if "tls_cert" in options:
                context.load_cert_chain(options["tls_cert"], options.get("tls_key"))
            settings["tls"] = context
        is_encrypted = address.startswith("tls://") or any(map(options.get, _ENCRYPTING))
        who = {"user": options["user"], **secrets} if "user" in options else secrets
        for name, value in who.items():
            settings[name] = _secret_for(client, value) if is_encrypted else value
        return settings


async def _close(client: Client) -> None:
    # One whose encryption failed would wait for ever.
    with suppress(Exception):
        async with asyncio.timeout(_CLOSED_S):
            await client.close()


def _secret_for(client: Client, secret: str) -> Callable[[], str]:
    """Return a function that gives a secret to the server, unless that would not encrypt it.

    Without this check a machine on the way could say that the server does not encrypt.
    """

    def tell() -> str:
        info = client._server_info
        if not (info.get("tls_required") or client.options["tls_handshake_first"]):
            raise NatsUnreadableError("the server does not encrypt, so no secret was sent to it")
        return secret

    return tell


def _text_of(error: Exception) -> str:
    text = str(error).removeprefix("nats: ")
    if isinstance(error, ServiceUnavailableError):
        return "JetStream is not enabled for this account, or has no leader"
    if isinstance(error, TimeoutError) or not text:
        return f"{type(error).__name__}: {text or 'no answer in time'}"
    return text


@dataclass(frozen=True)
class StreamBounds:
    """The bounds of a stream: its oldest sequence, and the one behind its newest.

    `created_at`: when it was made, as the server writes it. `is_compacted`: messages go only
    because newer ones replace them.
    """

    start: int
    end: int
    created_at: str
    is_compacted: bool = False


class _Pull(NamedTuple):
    """The messages that one request brought; `status`: why there are not more, else empty."""

    messages: Sequence[Msg]
    status: tuple[str, str] | None


class NatsClient:
    """A client of one stream, of which it reads `subjects`; all if there are none."""

    def __init__(self, connection: NatsConnection, stream: str, subjects: Sequence[str]) -> None:
        self._connection = connection
        self._stream = stream
        self._subjects = list(subjects)

    def bounds(self) -> StreamBounds:
        """Return the content of the stream."""
        return asyncio.run(self._bounds())

    def time_of(self, start: int) -> datetime | None:
        """Return when the first message from a sequence on was stored."""
        return asyncio.run(self._time_of(start))

    def read(self, start: int, end: int) -> Iterator[Message]:
        """Yield the messages from a sequence to before another."""
        # The loop runs only while it is asked for more: landing is no coroutine.
        with asyncio.Runner() as runner:
            batches = self._batches(start, end)
            try:
                while batch := runner.run(_next(batches)):
                    yield from batch
            finally:
                runner.run(batches.aclose())

    async def _bounds(self) -> StreamBounds:
        async with self._connection.open() as (_, stream):
            try:
                info = await stream.stream_info(self._stream)
            except NotFoundError:
                raise NatsUnreadableError(f"no stream {self._stream} in this account") from None
        # With another policy the server removes messages that were sent to a consumer, or
        # acknowledged.
        retention = info.config.retention
        if retention != api.RetentionPolicy.LIMITS:
            raise NatsUnreadableError(
                f"stream {self._stream} has the retention {retention}: read one with the retention "
                "`limits`, which may mirror it"
            )
        created_at = info.created.isoformat() if info.created else ""
        # The first message has sequence 1; a stream that never had one says 0.
        return StreamBounds(
            max(info.state.first_seq, 1),
            info.state.last_seq + 1,
            created_at,
            is_compacted(info.config),
        )

    async def _time_of(self, start: int) -> datetime | None:
        async with self._connection.open() as (_, stream):
            first = await self._first(stream, start)
        return first.time if first else None

    async def _first(self, stream: JetStreamContext, start: int) -> api.RawStreamMsg | None:
        """Return the first message from a sequence on, as the stream's leader knows it."""
        firsts = []
        for subject in self._subjects or [">"]:
            with suppress(NotFoundError):
                firsts.append(await stream.get_msg(self._stream, start, subject, next=True))
        return min(firsts, key=lambda message: message.seq or 0, default=None)

    async def _batches(self, start: int, end: int) -> AsyncGenerator[list[Message], None]:
        async with self._connection.open() as (client, stream):
            info = await stream.add_consumer(self._stream, self._consumer(start))
            self._check_filter(info.config)
            try:
                next_ = start
                async for batch in self._range(client, info, start, end):
                    next_ = batch[-1].offset + 1
                    yield batch
                await self._check_end(stream, next_, end)
            finally:
                # Else the server would do it, later.
                with suppress(Exception):
                    await stream.delete_consumer(self._stream, info.name)

    def _consumer(self, start: int) -> api.ConsumerConfig:
        one = self._subjects[0] if len(self._subjects) == 1 else None
        return api.ConsumerConfig(
            deliver_policy=api.DeliverPolicy.BY_START_SEQUENCE,
            opt_start_seq=start,
            ack_policy=api.AckPolicy.NONE,
            filter_subject=one,
            filter_subjects=None if one else self._subjects or None,
            inactive_threshold=_PAUSE_S,
            num_replicas=1,
            mem_storage=True,
        )

    def _check_filter(self, config: api.ConsumerConfig) -> None:
        if len(self._subjects) > 1 and sorted(config.filter_subjects or ()) != sorted(
            self._subjects
        ):
            raise NatsUnreadableError(
                "the server cannot filter by several subjects: name one, or use a nats-server of "
                "2.10 or newer"
            )

    async def _range(
        self, client: Client, consumer: api.ConsumerInfo, start: int, end: int
    ) -> AsyncGenerator[list[Message], None]:
        address = f"{self._connection.prefix}.CONSUMER.MSG.NEXT.{self._stream}.{consumer.name}"
        delivery, next_, max_bytes = 0, start, _PULL_BYTES
        while next_ < end:
            count = min(end - next_, _PULL_RECORDS) if max_bytes else 1
            pull = await _pull(client, address, count, max_bytes)
            batch = []
            for received in pull.messages:
                message, number = _read(received)
                delivery += 1
                if number != delivery:
                    raise NatsUnreadableError(f"message {delivery} was lost on the way")
                next_ = message.offset + 1
                if message.offset < end:
                    batch.append(message)
            if batch:
                yield batch
            if pull.status and pull.status[0] in _NOTHING_LEFT:
                return
            if pull.status and pull.status != _TOO_LARGE:
                raise NatsUnreadableError(f"the server says {' '.join(pull.status)}")
            # A message that is larger than a pull may be comes alone.
            max_bytes = 0 if pull.status and not pull.messages else _PULL_BYTES

    async def _check_end(self, stream: JetStreamContext, next_: int, end: int) -> None:
        """Refuse a range that ends too early: the server asked may lag behind its leader."""
        if next_ >= end:
            return
        first = await self._first(stream, next_)
        if first is not None and (first.seq or 0) < end:
            raise NatsUnreadableError(
                f"message {first.seq} was not delivered: a replica of the stream lags behind"
            )


def is_compacted(config: api.StreamConfig) -> bool:
    """Return whether a stream drops messages that newer ones replace, and no others.

    A key-value bucket does, by a limit for each subject, or by roll-ups. With a limit of age, count
    or size beside, replaced messages look like dropped ones.
    """
    keeps_old = config.discard == api.DiscardPolicy.NEW
    is_full_at = not keeps_old and ((config.max_msgs or 0) > 0 or (config.max_bytes or 0) > 0)
    is_replaced = (config.max_msgs_per_subject or 0) > 0 and not (
        keeps_old and config.discard_new_per_subject
    )
    return (is_replaced or bool(config.allow_rollup_hdrs)) and not (is_full_at or config.max_age)


async def _next(batches: AsyncGenerator[list[Message], None]) -> list[Message] | None:
    return await anext(batches, None)


async def _pull(client: Client, address: str, count: int, max_bytes: int) -> _Pull:
    """Return the next messages of a consumer; fewer than `count` with why."""
    messages: list[Msg] = []
    is_done = asyncio.Event()
    status: tuple[str, str] | None = None

    async def take(message: Msg) -> None:
        nonlocal status
        if message.reply:
            messages.append(message)
        else:
            headers = message.headers or {}
            status = headers.get("Status", ""), headers.get("Description", "")
        if status or len(messages) == count:
            is_done.set()

    # An inbox for each: what the server says of one pull is nothing to the next.
    inbox = client.new_inbox()
    subscription = await client.subscribe(inbox, cb=take)
    request = {"batch": count, "no_wait": True} | ({"max_bytes": max_bytes} if max_bytes else {})
    await client.publish(address, json.dumps(request).encode(), reply=inbox)
    received = -1
    while not is_done.is_set():
        if len(messages) == received:
            raise NatsUnreadableError(f"no message within {_ANSWER_S:.0f} s")
        received = len(messages)
        with suppress(TimeoutError):
            await asyncio.wait_for(is_done.wait(), _ANSWER_S)
    await subscription.unsubscribe()
    return _Pull(messages, None if len(messages) == count else status)


def _read(received: Msg) -> tuple[Message, int]:
    """Return a message, and the number that the consumer gave it.

    Both are in the subject for acknowledgements (ADR-15 of NATS); nats-py's own reading of it
    rounds the time.
    """
    words = received.reply.split(".")
    # The longer form has domain and account before, and more behind.
    first = 5 if len(words) == 9 else 7
    sequence, number, nanoseconds = map(int, words[first : first + 3])
    headers = [(name, value.encode()) for name, value in (received.headers or {}).items()]
    message = Message(
        sequence,
        received.data,
        headers=headers,
        timestamp_us=nanoseconds // 1000,
        topic=received.subject,
    )
    return message, number
