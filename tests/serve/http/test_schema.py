"""The OpenAPI document, and the application fuzzed by it: no 5xx, no shape that it does not say."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from fastapi import FastAPI
from hypothesis import HealthCheck, settings
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from livemart.serve import server as server_module
from livemart.serve.app import create_app
from livemart.serve.auth.attempts import Attempts
from livemart.serve.auth.tokens import TokenStore
from tests.conftest import IS_NIGHTLY
from tests.serve.apps import bearer, document, make_settings, server, site
from tests.serve.letters.stored_letters import letter, store_letters
from tests.store.stores import fill_store, reference_tables
from tests.waits import PATIENCE_S

EXAMPLES = 200 if IS_NIGHTLY else 15


class CutStreams:
    """Lets a stream end behind its first event: a fuzzer would wait for the end for ever."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_over = False

        async def receive_cut() -> Message:
            return {"type": "http.disconnect"} if is_over else await receive()

        async def send_cut(message: Message) -> None:
            nonlocal is_over
            is_stream = scope["type"] == "http" and scope["path"].endswith("/stream")
            if is_stream and message["type"] == "http.response.body" and message.get("more_body"):
                if is_over:
                    return
                if b"data: " in message["body"]:
                    is_over = True
                    message = {**message, "more_body": False}
            await send(message)

        await self._app(scope, receive_cut, send_cut)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, dict[str, str]]]:
    """A server over a filled store: its address, and the header of an admin."""
    folder = tmp_path_factory.mktemp("schema")
    url = str(make_settings(folder).store_url)
    fill_store(url, reference_tables())
    store_letters(folder / "warehouse", [letter(number) for number in range(3)])
    tokens = TokenStore(url)
    text, _ = tokens.create("fuzzer", is_admin=True)
    tokens.close()

    def create_cut(*arguments: Any, **options: Any) -> FastAPI:
        app = create_app(*arguments, **options, attempts=Attempts(1_000_000))
        app.add_middleware(CutStreams)
        return app

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(server_module, "create_app", create_cut)
        with server(folder) as (host, port):
            yield f"http://{host}:{port}", bearer(text)


schema = schemathesis.openapi.from_dict(document())


@schema.parametrize()
@settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
def test_whatever_is_asked_the_answer_is_as_described(
    case: schemathesis.Case[Any], address: tuple[str, dict[str, str]]
) -> None:
    base_url, headers = address

    case.call_and_validate(base_url=base_url, headers=headers, timeout=PATIENCE_S)


def test_the_document_needs_nothing_from_elsewhere(tmp_path: Path) -> None:
    with site(tmp_path) as one:
        text = one.client.get("/openapi.json").text
        assert {one.client.get(path).status_code for path in ("/docs", "/redoc")} == {404}

    assert set(re.findall(r"https?://[^\"]+", text)) == set()


def test_every_operation_says_what_it_answers() -> None:
    for path, operations in document()["paths"].items():
        answers = operations["get"]["responses"]

        assert "200" in answers, path
        problem = answers["401"]["content"]["application/problem+json"]["schema"]
        assert problem == {"$ref": "#/components/schemas/Problem"}
