"""The HTTP application: its parts put together, nothing decided here."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from livemart import __version__
from livemart.serve import health
from livemart.serve.auth.book import TokenBook
from livemart.serve.auth.callers import Attempts, is_loopback_name
from livemart.serve.auth.tokens import TokenStore
from livemart.serve.envelope import Envelope
from livemart.serve.http import schemas
from livemart.serve.http.encoded_slashes import EncodedSlashes
from livemart.serve.http.head import Head
from livemart.serve.http.measurements import Measurements
from livemart.serve.http.parts import Serving
from livemart.serve.http.problems import install_problems
from livemart.serve.live import streams
from livemart.serve.live.hub import Hub
from livemart.serve.models import pull as model_pull
from livemart.serve.owner import pull
from livemart.serve.owner.answers import Answers
from livemart.settings import Settings
from livemart.store.reader import StoreReader

_SUMMARY = """\
Fresh figures of restaurants. **Pull**: one answer from the newest snapshot. **Push**: server-sent
events. Every body says which snapshot it is from; money is a decimal string, times are UTC, `null`
is unknown. Send `Authorization: Bearer <token>`."""


def create_app(
    settings: Settings,
    reader: StoreReader,
    tokens: TokenStore,
    *,
    page: bool = True,
    attempts: Attempts | None = None,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> FastAPI:
    """Return the application over a store that may still be empty, or away.

    Args:
        settings: host decides whether this machine needs a token; `every` what is stale.
        reader: the store.
        tokens: who may read what.
        page: with the owner's page.
        attempts: how many wrong tokens an address may send.
        now: the wall clock, UTC.
    """
    book, measurements = TokenBook(tokens), Measurements()
    hub = Hub(reader, book)
    answers = Answers(reader, hub)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        await hub.look()
        watching = asyncio.create_task(hub.run())
        try:
            yield
        finally:
            hub.close()
            watching.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await watching
            answers.close()

    app = FastAPI(
        title="livemart",
        version=__version__,
        description=_SUMMARY,
        lifespan=lifespan,
        # They load their scripts from elsewhere.
        docs_url=None,
        redoc_url=None,
    )
    app.state.serving = Serving(
        settings=settings,
        reader=reader,
        book=book,
        hub=hub,
        answers=answers,
        attempts=attempts or Attempts(),
        measurements=measurements,
        now=now,
        is_loopback=is_loopback_name(settings.host),
    )
    install_problems(app)
    app.add_middleware(EncodedSlashes)
    app.add_middleware(Envelope, measurements=measurements)
    # Outermost: all the others see a GET.
    app.add_middleware(Head)
    for part in (pull, model_pull, streams, health):
        app.include_router(part.router)
    if page:
        from livemart.serve.page.page import page_router

        app.include_router(page_router())
    app.openapi = lambda: _describe(app)  # type: ignore[method-assign]
    return app


def _describe(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI document: the generated one, with problems and the two ways to sign in."""
    if app.openapi_schema is None:
        found = get_openapi(
            title=app.title,
            version=app.version,
            description=app.description,
            routes=app.routes,
        )
        parts = found.setdefault("components", {})
        shapes = parts.setdefault("schemas", {})
        shapes["Problem"] = schemas.Problem.model_json_schema()
        shapes["State"] = schemas.State.model_json_schema(
            ref_template="#/components/schemas/{model}"
        )
        shapes["State"].pop("$defs", None)
        parts["securitySchemes"] = {
            "token": {"type": "http", "scheme": "bearer"},
            "session": {"type": "apiKey", "in": "cookie", "name": "livemart_session"},
        }
        for path, operations in found["paths"].items():
            for operation in operations.values():
                if path not in ("/healthz", "/readyz"):
                    operation["security"] = [{"token": []}, {"session": []}]
                if path == "/metrics":
                    # To this machine.
                    operation["security"].append({})
        # FastAPI's own shape of a wrong parameter is never sent.
        for unused in ("HTTPValidationError", "ValidationError"):
            shapes.pop(unused, None)
        app.openapi_schema = found
    return app.openapi_schema
