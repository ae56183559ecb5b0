"""Handles the secrets that options name by environment variables.

Used by kinds of record logs when they are opened and when they connect, and where a schema registry
is asked. No text that a user meets shows one.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping

from livemart.errors import nearest

_SHOWN = "***"


def check_variable(name: str, variable: object, client: Collection[str]) -> Iterator[str]:
    """Yield the mistakes of the environment variable that `secrets` names for a secret.

    `client`: settings that are no secrets.
    """
    if name in client:
        yield f"secrets: {name} is in `client` as well"
    if not isinstance(variable, str) or not variable.isidentifier():
        # The value found is not shown: it may be the secret itself.
        yield f"secrets: {name}: write the name of an environment variable"


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
