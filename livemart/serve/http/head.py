"""Answers HEAD as GET, without the body (RFC 9110, 9.3.2).

Used round the whole application, so that no route has to know of it.
"""

from __future__ import annotations

import asyncio

from starlette.types import ASGIApp, Message, Receive, Scope, Send


class Head:
    """Asks the application for GET, and keeps the body back.

    A stream has no end to wait for: once its headers are sent, the application learns that the
    client is gone.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return
        is_read, has_begun = False, asyncio.Event()

        async def receive_nothing() -> Message:
            nonlocal is_read
            if not is_read:
                is_read = True
                return {"type": "http.request", "body": b"", "more_body": False}
            await has_begun.wait()
            return {"type": "http.disconnect"}

        async def send_head(message: Message) -> None:
            if message["type"] == "http.response.start":
                await send(message)
                await send({"type": "http.response.body", "body": b"", "more_body": False})
                has_begun.set()

        await self._app({**scope, "method": "GET"}, receive_nothing, send_head)
