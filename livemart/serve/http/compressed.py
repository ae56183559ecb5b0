"""Compresses answers for clients that take it: zstd or gzip, as `Accept-Encoding` asks.

Used round the whole application. Streams of events pass as they come.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from anyio import to_thread
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware.gzip import GZipResponder, IdentityResponder
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from livemart.serve.http.forms import read_wishes

# One packet takes as much.
_SMALLEST = 1_000
# Higher levels take twice the time for a twentieth of the bytes.
_GZIP_LEVEL = 4
_ZSTD_LEVEL = 1
# Above it a thread compresses: the event loop has others to answer.
_LARGE = 32 * 1024
_FROM_ELSEWHERE = ("cross-site", "same-site")


class Compressed:
    """Compresses the answers of an application.

    Starlette's own middleware takes `gzip;q=0` for a wish, knows no zstd and leaves the tag strong,
    as if all forms of an answer had the same bytes. Its responders are used.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        coding = None
        if scope["type"] == "http":
            headers = Headers(scope=scope)
            # A foreign page could try what its victim's answers hold, by their sizes (BREACH).
            is_lured = headers.get("sec-fetch-site") in _FROM_ELSEWHERE and "cookie" in headers
            coding = None if is_lured else choose_coding(headers.getlist("accept-encoding"))
        if coding is None:
            await self._app(scope, receive, send)
            return

        async def send_weak(message: Message) -> None:
            if message["type"] == "http.response.start":
                answered = MutableHeaders(raw=message["headers"])
                vary = [name.strip() for name in answered.get("vary", "").split(",")]
                answered["Vary"] = ", ".join(dict.fromkeys(filter(None, vary)))
                # Weak with a 304, and where the answer is too small, as well: one tag for each.
                if (tag := answered.get("etag", "W/")) and not tag.startswith("W/"):
                    answered["ETag"] = f"W/{tag}"
            await send(message)

        name, smallest = coding
        given: dict[str, Any] = {"minimum_size": smallest}
        if name == "gzip":
            given |= {"compresslevel": _GZIP_LEVEL, "thread_minimum_size": _LARGE}
        responder = GZipResponder if name == "gzip" else _ZstdResponder
        await responder(self._app, **given)(scope, receive, send_weak)


def choose_coding(accepted: list[str]) -> tuple[str, int] | None:
    """Return the coding that `Accept-Encoding` likes best, and the size from which on to use it.

    If it likes both alike, zstd is taken; a client has to name that. None: no coding.

    >>> choose_coding(["gzip, deflate, br"]), choose_coding(["gzip;q=0.5, zstd;q=0.5"])
    (('gzip', 1000), ('zstd', 1000))
    >>> choose_coding(["identity;q=0, gzip"]), choose_coding(["identity, gzip;q=0.5"])
    (('gzip', 1), None)
    """
    wishes = dict(read_wishes(",".join(accepted)))
    others = wishes.get("*", 0.0)
    liking, name = max((wishes.get("gzip", others), "gzip"), (wishes.get("zstd", 0.0), "zstd"))
    if liking <= 0 or wishes.get("identity", 0.0) > liking:
        return None
    is_plain_refused = wishes.get("identity", wishes.get("*")) == 0
    return name, 1 if is_plain_refused else _SMALLEST


class _ZstdResponder(IdentityResponder):
    """Compresses each part that is sent at once as one frame."""

    content_encoding = "zstd"

    async def apply_compression(self, body: bytes, *, more_body: bool) -> bytes:
        if not body:
            return body
        codec = pa.Codec("zstd", compression_level=_ZSTD_LEVEL)
        if len(body) < _LARGE:
            compressed: bytes = codec.compress(body, asbytes=True)
            return compressed
        return await to_thread.run_sync(lambda: codec.compress(body, asbytes=True))
