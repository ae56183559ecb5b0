"""Reads secrets that options name by environment variables, and keeps them out of texts.

Used by kinds of record logs when they connect.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from livemart.errors import nearest

_SHOWN = "***"


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
