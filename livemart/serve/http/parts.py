"""Finds a part of the server of a request, by the part's type.

Used by every route. `create_app` puts the parts on the application, and no part has its own
globals. This module knows none of them: a caller of one part imports only that part.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from starlette.requests import HTTPConnection

_Part = TypeVar("_Part")


def part_of(connection: HTTPConnection, kind: type[_Part]) -> _Part:
    """Return the part of this type of the request's server."""
    parts: Mapping[type, object] = connection.app.state.parts
    part = parts[kind]
    assert isinstance(part, kind)
    return part
