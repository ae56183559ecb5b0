"""Lets scripts of the origins that a setting names read the API from a browser (CORS).

Used round the whole application. No answer allows credentials: such a script sends a token, and a
visitor's session is of no use to it. Pages are never shared, and any other origin gets no header.
"""

from __future__ import annotations

from collections.abc import Collection

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_SHARED = ("/v1/", "/openapi.json")
_PREFLIGHT = {
    "Access-Control-Allow-Methods": "GET, HEAD, POST",
    "Access-Control-Allow-Headers": "Authorization, Content-Type, Idempotency-Key, "
    "If-None-Match, Last-Event-ID",
    "Access-Control-Max-Age": "600",
    "Cache-Control": "no-store",
}
_EXPOSED = (
    "Content-Disposition, ETag, Livemart-As-Of, Livemart-Changes-After, Livemart-Next, "
    "Livemart-Refreshed-At, Livemart-Set-Aside-Since, Livemart-Snapshot-Id, Livemart-Truncated, "
    "RateLimit, RateLimit-Policy, Retry-After"
)


class OtherOrigins:
    """Answers the preflights of `origins`, and names them in the answers to their scripts."""

    def __init__(self, app: ASGIApp, origins: Collection[str]) -> None:
        self._app = app
        self._origins = frozenset(origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http" or not scope["path"].startswith(_SHARED):
            await self._app(scope, receive, send)
            return
        asked = Headers(scope=scope)
        origin = asked.get("origin", "")
        is_allowed = origin in self._origins

        async def send_named(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(raw=message.setdefault("headers", []))
                headers.add_vary_header("Origin")
                if is_allowed:
                    headers["Access-Control-Allow-Origin"] = origin
                    headers["Access-Control-Expose-Headers"] = _EXPOSED
            await send(message)

        is_preflight = scope["method"] == "OPTIONS" and "access-control-request-method" in asked
        if is_allowed and is_preflight:
            headers = MutableHeaders(_PREFLIGHT)
            await send_named({"type": "http.response.start", "status": 204, "headers": headers.raw})
            await send_named({"type": "http.response.body", "body": b""})
            return
        await self._app(scope, receive, send_named)
