"""Keeps `%2F` in a path apart from a slash: the id of a tenant may hold one.

Used round the application, and by routes with such an id. A server decodes the path before it is
matched, so both would look alike. The sign in place of the slash is half a pair of UTF-16: no path
that was decoded from UTF-8 holds it.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

from starlette.types import ASGIApp, Receive, Scope, Send

_STAND_IN = "\udc2f"
_ENCODED = re.compile(rb"%2f", re.IGNORECASE)


class EncodedSlashes:
    """Keeps encoded slashes apart from separators until a path with a prefix is matched."""

    def __init__(self, app: ASGIApp, prefixes: tuple[bytes, ...]) -> None:
        self._app = app
        self._prefixes = prefixes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        raw: bytes = scope.get("raw_path") or b""
        if scope["type"] != "http" or b"%" not in raw or not raw.startswith(self._prefixes):
            await self._app(scope, receive, send)
            return
        parts = [unquote(part.decode("latin-1")) for part in _ENCODED.split(raw.partition(b"?")[0])]
        inner = {**scope, "path": _STAND_IN.join(parts)}
        try:
            await self._app(inner, receive, send)
        finally:
            # The measurements ask for it.
            if "route" in inner:
                scope["route"] = inner["route"]


def read_id(segment: str) -> str:
    """Return the id that a segment of a path stands for."""
    return segment.replace(_STAND_IN, "/")


def shown_path(path: str) -> str:
    """Return a path as it can be written: an encoded slash is one again."""
    return path.replace(_STAND_IN, "%2F")
