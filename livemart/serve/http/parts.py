"""Finds a part of the server that a request came to, by its type.

Used by every route. `create_app` puts the parts on the application, and no part has globals of its
own. This module knows none of them: who asks for one part imports that part alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from starlette.requests import HTTPConnection

_Part = TypeVar("_Part")


def part_of(connection: HTTPConnection, kind: type[_Part]) -> _Part:
    """Return the part of this type of the server that a request came to."""
    parts: Mapping[type, object] = connection.app.state.parts
    part = parts[kind]
    assert isinstance(part, kind)
    return part
