"""Wraps every answer, errors too: security headers, a limit of received bytes, measurements.

Used round the whole application. A fault of the application becomes a problem here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from time import perf_counter

from sse_starlette.sse import SendTimeoutError
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from livemart.serve.auth.callers import renewed_session
from livemart.serve.connections.protocol import ON_RESERVE
from livemart.serve.http.measurements import Measurements
from livemart.serve.http.problems import ProblemError, problem_of
from livemart.serve.http.rare_log import RareLog
from livemart.serve.shares.shares import end_turn

# No path but those of `larger` takes more than a form with a token.
_MOST_BYTES = 64 * 1024
# Answered on the reserve of connections, too.
_HEALTH = ("/healthz", "/readyz")
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_ALWAYS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
}
_UNLESS_GIVEN = {
    "Cache-Control": "private, no-cache",
    "Vary": "Authorization, Cookie, Accept, Accept-Encoding",
}

_LENGTHS = {b"content-length", b"transfer-encoding"}
# No rights, or nothing that this caller may see: a client that looks for more than it has.
_REFUSALS = (403, 404)
# Letters of a path in the log.
_MOST_LOGGED = 200


class Envelope:
    """Wraps the application; a fault of it becomes a problem, its traceback goes to the log."""

    def __init__(
        self, app: ASGIApp, measurements: Measurements, larger: Mapping[str, int] | None = None
    ) -> None:
        self._app = app
        self._measurements = measurements
        # Bytes that may be sent to the paths that begin so.
        self._larger = larger or {}
        self._log = RareLog()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status = perf_counter(), 0
        # Made here, so that a copy of the scope further in shares it.
        scope.setdefault("state", {})

        async def send_wrapped(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(raw=message.setdefault("headers", []))
                for name, value in _ALWAYS.items():
                    headers[name] = value
                for name, value in _UNLESS_GIVEN.items():
                    headers.setdefault(name, value)
                for name, value in end_turn(scope).items():
                    headers[name] = value
                if scope["state"].get(ON_RESERVE):
                    headers["Connection"] = "close"
                if cookie := renewed_session(scope):
                    headers.append("Set-Cookie", cookie)
            await send(message)

        most = next(
            (size for path, size in self._larger.items() if scope["path"].startswith(path)),
            _MOST_BYTES,
        )
        received = 0

        async def receive_limited() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > most:
                if status:
                    # A stream that goes on: there is no way left to refuse the request.
                    return {"type": "http.disconnect"}
                raise _too_large(most)
            return message

        try:
            if scope["state"].get(ON_RESERVE) and scope["path"] not in _HEALTH:
                raise ProblemError("TOO_MANY_CONNECTIONS", "close some, or try again later")
            if {name for name, _ in scope["headers"]} >= _LENGTHS:
                # A proxy in front may see two requests where this server sees one (RFC 9112, 6.3).
                raise ProblemError(
                    "REQUEST_REFUSED",
                    "send Content-Length or Transfer-Encoding, not both",
                    headers={"Connection": "close"},
                )
            if _announced(scope) > most:
                raise _too_large(most)
            await self._app(scope, receive_limited, send_wrapped)
        except SendTimeoutError:
            self._log.tell("slow_client_closed", level="info", path=scope["path"])
        except ClientDisconnect:
            # It left, or was too slow, before its body was whole: no one waits for an answer.
            pass
        except ProblemError as problem:
            if status:
                raise
            await problem.response(Request(scope))(scope, receive, send_wrapped)
        except asyncio.CancelledError:
            # The server ends, and its patience with answers under way is over.
            if status:
                raise
            ending = ProblemError("SERVER_ENDING", "the server is ending; try again")
            await ending.response(Request(scope))(scope, receive, send_wrapped)
        except Exception as error:
            kind = f"{_route_of(scope)} {type(error).__name__}"
            path = scope["path"][:_MOST_LOGGED]
            self._log.tell("request_failed", kind, level="error", path=path, exc_info=error)
            if status:
                raise
            response = problem_of(error).response(Request(scope))
            await response(scope, receive, send_wrapped)
        finally:
            end_turn(scope)
            if status in _REFUSALS:
                address = (scope.get("client") or ("",))[0]
                self._log.tell(
                    "request_refused",
                    str(status),
                    level="info",
                    status=status,
                    path=scope["path"][:_MOST_LOGGED],
                    address=address,
                )
            self._measurements.answered(_route_of(scope), status, perf_counter() - started)


def _announced(scope: Scope) -> int:
    length = Headers(scope=scope).get("content-length", "0")
    return int(length) if length.isascii() and length.isdigit() else 0


def _too_large(most: int) -> ProblemError:
    return ProblemError("REQUEST_TOO_LARGE", f"send less than {most >> 10:,} KiB")


def _route_of(scope: Scope) -> str:
    """Return the pattern of the path: a label for each id would have no end."""
    return str(getattr(scope.get("route"), "path", "none"))
