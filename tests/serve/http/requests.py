"""A request as a route sees it, without a server."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace

from starlette.requests import Request


def request_of(
    headers: Mapping[str, str] | None = None,
    parts: Mapping[type, object] | None = None,
    *,
    client: str = "127.0.0.1",
    scheme: str = "http",
) -> Request:
    """Return a GET request for `/`.

    Args:
        headers: by name.
        parts: of the server, by type.
        client: the address that it comes from.
        scheme: `http` or `https`.
    """
    named = {"host": "127.0.0.1:8000"} | {
        name.lower(): value for name, value in (headers or {}).items()
    }
    return Request(
        {
            "type": "http",
            "method": "GET",
            "scheme": scheme,
            "path": "/",
            "query_string": b"",
            "headers": [(name.encode(), value.encode()) for name, value in named.items()],
            "client": (client, 50_000),
            "server": ("127.0.0.1", 8000),
            "state": {},
            "app": SimpleNamespace(state=SimpleNamespace(parts=dict(parts or {}))),
        }
    )
