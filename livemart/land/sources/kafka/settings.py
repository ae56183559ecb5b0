"""Checks the options of a source of the kind `kafka`, and makes the settings of its client.

Used by `KafkaLog`. Secrets are named by environment variables, which are read when a client
connects: so no option holds one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from livemart.errors import nearest

# A setting of the client whose value is a secret, by its name.
_SECRET_WORDS = ("password", "secret", "sasl.oauthbearer.config", "key.pem", "private.key")
# What a range of offsets is read by is not for a project to decide.
_OWN = (
    "auto.offset.reset",
    "bootstrap.servers",
    "enable.auto.commit",
    "enable.auto.offset.store",
    "enable.partition.eof",
    "group.id",
    "metadata.broker.list",
)
_SHOWN = "***"


def check_client(client: Mapping[str, object], secrets: Mapping[str, object]) -> Iterator[str]:
    """Yield what is wrong with the settings of a client and the names of its secrets."""
    for name, value in client.items():
        if is_secret(name):
            yield (
                f"client: {name} is a secret: put it in an environment variable and name that, "
                f"`secrets: {{{name}: KAFKA_SECRET}}`"
            )
        elif name in _OWN:
            yield f"client: {name} is set by livemart: leave it out"
        elif not isinstance(value, str | int | float):
            yield f"client: {name}: write a text, a number, true or false"
    for name, variable in secrets.items():
        if name in client:
            yield f"secrets: {name} is in `client` as well"
        if not isinstance(variable, str) or not variable.isidentifier():
            # Of what is there nothing is said: it may be the secret itself.
            yield f"secrets: {name}: write the name of an environment variable"


def is_secret(name: str) -> bool:
    """Return whether the value of a setting of the client is a secret.

    >>> is_secret("sasl.password"), is_secret("sasl.username")
    (True, False)
    """
    return any(word in name for word in _SECRET_WORDS)


def read_secrets(secrets: Mapping[str, str]) -> dict[str, str]:
    """Return the secrets by the name of their setting.

    Raises:
        LookupError: an environment variable is not there.
    """
    values = {}
    for name, variable in secrets.items():
        if (value := os.environ.get(variable)) is None:
            raise LookupError(
                f"no environment variable {variable}{nearest(variable, os.environ)}, which holds "
                f"{name}"
            )
        values[name] = value
    return values


def redacted(text: str, secrets: Mapping[str, str]) -> str:
    """Return a text without the secrets.

    >>> redacted("user: hunter2", {"sasl.password": "hunter2"})
    'user: ***'
    """
    for value in sorted(filter(None, secrets.values()), key=len, reverse=True):
        text = text.replace(value, _SHOWN)
    return text
