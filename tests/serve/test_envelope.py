"""Whatever an application does, its answer has the headers, begins once, and is counted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock

import pytest
from fastapi import FastAPI
from sse_starlette.sse import SendTimeoutError
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.testclient import TestClient
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from structlog.testing import capture_logs

from livemart.serve.envelope import Envelope
from livemart.serve.http.measurements import Measurements
from livemart.serve.http.problems import ProblemError, install_problems
from livemart.settings import Settings
from tests.serve.apps import make_settings

LIMIT = 64 * 1024
START = {"type": "http.response.start", "status": 200, "headers": []}


@pytest.fixture
def parts(tmp_path: Path) -> SimpleNamespace:
    """The request that a problem makes of the application."""
    settings = make_settings(tmp_path)
    return SimpleNamespace(state=SimpleNamespace(parts={Settings: settings}))


def answer_of(
    parts: object,
    app: ASGIApp,
    received: list[Message] | None = None,
    measurements: Measurements | None = None,
    **scope: Any,
) -> list[Message]:
    """Return the messages of an answer; a fault that goes further is the last of them."""
    sent: list[Message] = []
    waiting = received or [{"type": "http.request", "body": b""}]

    async def receive() -> Message:
        return waiting.pop(0)

    async def send(message: Message) -> None:
        sent.append(message)

    asked: dict[str, Any] = {
        "type": "http",
        "method": "POST",
        "path": "/x",
        "headers": [],
        "app": parts,
    }
    asked |= {"query_string": b"", "server": ("127.0.0.1", 80), "scheme": "http", **scope}
    envelope = Envelope(app, measurements or Measurements(), {"/large": 2 * LIMIT})
    try:
        asyncio.run(envelope(asked, receive, send))
    except (Exception, asyncio.CancelledError) as error:
        sent.append({"type": "raised", "error": error})
    return sent


def failing(error: BaseException, *, begins: bool) -> ASGIApp:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if begins:
            await send(dict(START))
        raise error

    return app


async def read_all(scope: Scope, receive: Receive, send: Send) -> None:
    body = await Request(scope, receive).body()
    await PlainTextResponse(str(len(body)))(scope, receive, send)


def body_of(*sizes: int) -> list[Message]:
    last = len(sizes) - 1
    return [
        {"type": "http.request", "body": b"x" * size, "more_body": number < last}
        for number, size in enumerate(sizes)
    ]


def test_an_answer_may_say_how_long_it_is_kept_and_nothing_of_what_protects_it(
    parts: object,
) -> None:
    headers = {
        "Cache-Control": "max-age=60",
        "Content-Security-Policy": "default-src *",
        "Referrer-Policy": "unsafe-url",
    }

    start, _ = answer_of(parts, Response("", headers=headers))

    shown = Headers(raw=start["headers"])
    assert shown["cache-control"] == "max-age=60"
    policy = shown["content-security-policy"].split("; ")
    assert {"default-src 'none'", "base-uri 'none'", "frame-ancestors 'none'"} <= set(policy)
    assert "unsafe" not in shown["content-security-policy"]
    assert shown["referrer-policy"] == "same-origin"
    assert shown["x-content-type-options"] == "nosniff"
    assert shown["vary"] == "Authorization, Cookie, Accept, Accept-Encoding"
    assert len(shown.getlist("content-security-policy")) == 1


@pytest.mark.parametrize(
    ("path", "sizes", "status"),
    [
        ("/x", [LIMIT], 200),
        ("/x", [LIMIT, 1], 413),
        ("/x", [1] * 100, 200),
        ("/large", [2 * LIMIT], 200),
        ("/large", [LIMIT, LIMIT, 1], 413),
    ],
)
def test_a_body_that_does_not_say_its_length_is_counted_while_it_comes(
    parts: object, path: str, sizes: list[int], status: int
) -> None:
    start, content = answer_of(parts, read_all, body_of(*sizes), path=path)

    assert start["status"] == status
    assert (b"REQUEST_TOO_LARGE" in content["body"]) == (status == 413)


def test_a_body_that_says_that_it_is_too_long_is_not_read(parts: object) -> None:
    async def app(*_: object) -> None:
        raise AssertionError("was asked")

    headers = [(b"content-length", str(LIMIT + 1).encode())]

    assert answer_of(parts, app, headers=headers)[0]["status"] == 413


def test_a_body_that_turns_out_too_long_is_refused_so_by_a_route_that_parses_it(
    tmp_path: Path,
) -> None:
    app = FastAPI()
    app.state.parts = {Settings: make_settings(tmp_path)}
    install_problems(app)
    app.add_middleware(Envelope, measurements=Measurements())

    @app.post("/take")
    async def take(body: dict[str, str]) -> None: ...

    def chunks() -> Iterator[bytes]:
        yield b'{"x": "'
        yield from [b"x" * 1_000] * 70
        yield b'"}'

    with TestClient(app) as client:
        answer = client.post(
            "/take", content=chunks(), headers={"Content-Type": "application/json"}
        )

    assert (answer.status_code, answer.json()["code"]) == (413, "REQUEST_TOO_LARGE")


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (RuntimeError("a secret"), 500),
        (ProblemError("MODEL_UNKNOWN", "none of that name"), 404),
        (asyncio.CancelledError(), 503),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else str(value),
)
def test_a_fault_is_a_problem_before_an_answer_began_and_breaks_it_off_afterwards(
    parts: object, error: BaseException, status: int
) -> None:
    """A second begin, or an end as if all had been sent, would pass for a whole answer."""
    with capture_logs():
        start, content = answer_of(parts, failing(error, begins=False))
        begun, raised = answer_of(parts, failing(error, begins=True))

    assert start["status"] == status
    assert b"secret" not in content["body"]
    assert b"content-security-policy" in dict(start["headers"])
    assert begun["status"] == 200
    assert raised["error"] is error


def test_a_body_without_end_ends_the_answer_that_has_begun_and_is_no_fault(parts: object) -> None:
    """A stream, whose request brings a body for as long as the stream lasts."""

    async def stream(scope: Scope, receive: Receive, send: Send) -> None:
        await send(dict(START))
        while (await receive())["type"] != "http.disconnect":
            await send({"type": "http.response.body", "body": b"event", "more_body": True})

    with capture_logs() as logs:
        sent = answer_of(parts, stream, body_of(LIMIT, 1, LIMIT))

    assert [each["type"] for each in sent] == ["http.response.start", "http.response.body"]
    assert logs == []


def test_a_fault_that_clients_meet_again_and_again_is_logged_once(parts: object) -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        raise {"/x": RuntimeError, "/y": RuntimeError, "/z": KeyError}[scope["path"]]

    envelope, paths = Envelope(app, Measurements()), ["/x", "/y", "/x", "/z"] * 20

    async def ask(path: str) -> None:
        asked = {"type": "http", "method": "GET", "path": path, "headers": [], "app": parts}

        async def send(message: Message) -> None: ...

        await envelope({**asked, "query_string": b""}, AsyncMock(), send)

    with capture_logs() as logs:
        for path in paths:
            asyncio.run(ask(path))

    assert [(it["event"], it["path"], type(it["exc_info"])) for it in logs] == [
        ("request_failed", "/x", RuntimeError),
        ("request_failed", "/z", KeyError),
    ]


def test_a_client_that_takes_nothing_is_left_without_a_fault(parts: object) -> None:
    with capture_logs() as logs:
        sent = answer_of(parts, failing(SendTimeoutError(), begins=True))

    assert [each["type"] for each in sent] == ["http.response.start"]
    assert [(each["event"], each["log_level"]) for each in logs] == [("slow_client_closed", "info")]


@pytest.mark.parametrize(
    ("respond", "status"),
    [
        (lambda: Response(status_code=204), "204"),
        (lambda: failing(RuntimeError("x"), begins=False), "500"),
        (lambda: StreamingResponse(iter([b"a"])), "200"),
    ],
    ids=["answer", "fault", "stream"],
)
def test_each_answer_is_counted_under_its_route_and_not_under_its_path(
    parts: object, respond: Callable[[], ASGIApp], status: str
) -> None:
    measurements = Measurements()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        scope["route"] = SimpleNamespace(path="/v1/{id}")
        await respond()(scope, receive, send)

    received: list[Message] = [{"type": "http.request"}, {"type": "http.disconnect"}]
    with capture_logs():
        answer_of(parts, app, received, measurements, path="/v1/secret")

    text = measurements.render().decode()
    assert f'livemart_requests_total{{route="/v1/{{id}}",status="{status}"}} 1.0' in text
    assert "secret" not in text


def test_what_is_no_request_goes_through_untouched(parts: object) -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        assert "state" not in scope
        await send({"type": f"{(await receive())['type']}.complete"})

    startup: list[Message] = [{"type": "lifespan.startup"}]

    assert answer_of(parts, app, startup, type="lifespan") == [
        {"type": "lifespan.startup.complete"}
    ]
