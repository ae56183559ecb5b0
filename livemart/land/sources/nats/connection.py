"""Connects to a server of NATS as the options of a source say.

Used for each question about a stream and each range of it. Secrets are read from the environment
when a connection is made, and appear in no error.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

from nats.aio.client import Client
from nats.js import JetStreamContext
from nats.js.errors import ServiceUnavailableError

from livemart.land.secrets import read_secrets, redacted
from livemart.land.sources.nats.settings import server_list

ANSWER_S = 15.0
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
            yield client, client.jetstream(prefix=self.prefix, timeout=ANSWER_S)
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
                async with asyncio.timeout(ANSWER_S):
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
