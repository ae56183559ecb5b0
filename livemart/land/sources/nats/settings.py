"""Checks the options of a source of the kind `nats`.

Used by `NatsLog`. Secrets are named by environment variables, which are read when a client
connects: so no option holds one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from livemart.errors import nearest
from livemart.land.secrets import check_variable
from livemart.land.sources.record_log import check_name

_TEXTS = ("domain", "inbox_prefix", "tls_hostname", "user")
_FILES = ("credentials", "nkey", "tls_ca", "tls_cert", "tls_key")
_FLAGS = ("tls_first",)
_CLIENT = tuple(sorted((*_TEXTS, *_FILES, *_FLAGS)))
_SECRETS = ("password", "token", "user")
_SERVER = re.compile(r"(?:(?:nats|tls)://)?[^\s/@]+")
# The characters that no name of a stream can have.
_NO_STREAM = re.compile(r"[\s.*>/\\]")


def check_servers(servers: object) -> Iterator[str]:
    """Yield the mistakes in the addresses of servers."""
    addresses = server_list(servers) if isinstance(servers, str) else []
    if not addresses:
        yield "servers: write `nats://host:port`, several with commas"
    for number, address in enumerate(addresses, 1):
        if "@" in address:
            # The value found is not shown: it may be the secret itself.
            yield (
                f"servers: number {number} holds a user, a password or a token: name environment "
                "variables that hold them, `secrets: {user: NATS_USER, password: NATS_PASSWORD}`"
            )
        elif not _SERVER.fullmatch(address):
            yield f"servers: found {address}: write `nats://host:port` or `tls://host:port`"


def server_list(servers: str) -> list[str]:
    """Return the addresses of servers that are listed in one text.

    >>> server_list("nats://a:4222, nats://b:4222")
    ['nats://a:4222', 'nats://b:4222']
    """
    return [address.strip() for address in servers.split(",") if address.strip()]


def check_stream(stream: object, subjects: object, name: object) -> Iterator[str]:
    """Yield the mistakes in the names of a stream, of its servers and of its subjects."""
    if not isinstance(stream, str) or not stream:
        yield "stream: write the name of a stream"
    elif _NO_STREAM.search(stream):
        yield f"stream: found {stream!r}: a stream's name has no blanks, dots, *, > and slashes"
    if not isinstance(subjects, list) or not all(
        isinstance(subject, str) and subject and not re.search(r"\s", subject)
        for subject in subjects
    ):
        yield "subjects: write a list of subjects, `[orders.*, refunds.>]`"
    yield from check_name(name)


def check_connection(client: object, secrets: object) -> Iterator[str]:
    """Yield the mistakes in the settings of a client and the names of its secrets."""
    if not isinstance(client, Mapping):
        yield f"client: write settings with values; they are {', '.join(_CLIENT)}"
        client = {}
    if not isinstance(secrets, Mapping):
        yield f"secrets: write secrets with environment variables; they are {', '.join(_SECRETS)}"
        secrets = {}
    for name, value in client.items():
        if name in _SECRETS and name not in _CLIENT:
            yield (
                f"client: {name} is a secret: put it in an environment variable and name that, "
                f"`secrets: {{{name}: NATS_{name.upper()}}}`"
            )
        elif name not in _CLIENT:
            yield (
                f"client: found {name}{nearest(str(name), _CLIENT)}: the settings are "
                f"{', '.join(_CLIENT)}"
            )
        elif name in _FLAGS:
            if not isinstance(value, bool):
                yield f"client: {name}: found {value!r}: write true or false"
        elif not isinstance(value, str) or not value:
            yield f"client: {name}: found {value!r}: write a text"
        elif name in _FILES and not Path(value).is_file():
            yield f"client: {name}: found no file {value}"
    for name, variable in secrets.items():
        if name not in _SECRETS:
            yield (
                f"secrets: found {name}{nearest(str(name), _SECRETS)}: the secrets are "
                f"{', '.join(_SECRETS)}"
            )
        else:
            yield from check_variable(name, variable, client)
    if "tls_key" in client and "tls_cert" not in client:
        yield "client: tls_key: name its certificate as well, `tls_cert`"
