"""Puts the parts of the HTTP application together.

Used by the server and by tests. Nothing is decided here.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import cache

from fastapi import Depends, FastAPI

from livemart import __version__
from livemart.land.lag import WatchedLags, source_lags
from livemart.serve.auth.attempts import Attempts
from livemart.serve.auth.book import TokenBook
from livemart.serve.auth.callers import Guard, require_caller
from livemart.serve.auth.ended_sessions import EndedSessions
from livemart.serve.auth.seal import Seal
from livemart.serve.auth.signing_key import SigningKey
from livemart.serve.auth.this_machine import serves_this_machine_alone
from livemart.serve.auth.tokens import TokenStore
from livemart.serve.envelope import Envelope
from livemart.serve.health import health_router
from livemart.serve.http.compressed import Compressed
from livemart.serve.http.encoded_slashes import EncodedSlashes
from livemart.serve.http.head import Head
from livemart.serve.http.held_bytes import HeldBytes
from livemart.serve.http.known_parameters import refuse_unread
from livemart.serve.http.measurements import Measurements
from livemart.serve.http.other_origins import OtherOrigins
from livemart.serve.http.problems import install_problems
from livemart.serve.ingest.endpoint import INGEST_PATH, MOST_INGEST_BYTES, Intake, ingest_router
from livemart.serve.letters.pull import LetterDesk, letters_router
from livemart.serve.live.hub import Hub
from livemart.serve.live.late_watch import LateWatch
from livemart.serve.live.readings import Readings
from livemart.serve.live.run_watch import RunWatch
from livemart.serve.live.side_processes import SideProcesses
from livemart.serve.models.pull import models_router
from livemart.serve.models.stream import model_stream_router
from livemart.serve.openapi import describe
from livemart.serve.owner.answers import Answers
from livemart.serve.owner.pull import restaurants_router
from livemart.serve.owner.stream import restaurant_stream_router
from livemart.serve.shares.begins import Begins
from livemart.serve.shares.shares import FIGURES, PULLS, Shares
from livemart.settings import Settings
from livemart.state.places import LocalFolder
from livemart.store.reader import StoreReader

# Their ids may hold a slash.
_PATHS_WITH_IDS = (b"/r/", b"/v1/restaurants/")
_SUMMARY = """\
The served models of a project. **Pull**: one answer from the newest snapshot. **Push**: server-sent
events. Every body says which snapshot it is from; money is a decimal string, times are UTC, `null`
is unknown. Send `Authorization: Bearer <token>`."""


def create_app(
    settings: Settings,
    reader: StoreReader,
    tokens: TokenStore,
    *,
    page: bool = True,
    intake: Intake | None = None,
    side: SideProcesses | None = None,
    attempts: Attempts | None = None,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> FastAPI:
    """Return the application over a store that may still be empty, or away.

    Args:
        settings: host decides whether this machine needs a token; `every` what is stale.
        reader: the store.
        tokens: who may read what.
        page: with the owner's page.
        intake: what takes records, if they are taken here.
        side: reads large answers, and is closed with the application; None: its threads do.
        attempts: how many wrong tokens an address may send.
        now: the wall clock, UTC.
    """
    book, measurements = TokenBook(tokens), Measurements()
    hub = Hub(reader, book)
    readings = Readings(reader, hub, side)
    answers = Answers(readings, hub)
    guard = Guard(
        book=book,
        attempts=attempts or Attempts(),
        is_loopback=serves_this_machine_alone(settings),
        now=now,
        key=SigningKey.of(settings),
        ended=EndedSessions(LocalFolder(settings.warehouse).ended_sessions),
    )

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        await hub.look()
        late = LateWatch(hub, settings.every, now)
        watching = asyncio.gather(hub.run(), late.run())
        try:
            yield
        finally:
            hub.close()
            watching.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await watching
            readings.close()

    app = FastAPI(
        title="livemart",
        version=__version__,
        description=_SUMMARY,
        lifespan=lifespan,
        # They load their scripts from elsewhere.
        docs_url=None,
        redoc_url=None,
        # Starlette would send a client that adds a slash to the host that the request names.
        redirect_slashes=False,
    )
    lags = WatchedLags(lambda: source_lags(settings.warehouse, settings.landing))
    desk = LetterDesk(settings.warehouse)
    runs = RunWatch(settings.warehouse, reader)
    seal = Seal(guard.key)
    shares = Shares(settings, measurements)
    parts = (
        *(settings, reader, guard, hub, readings, answers, measurements, lags, desk, runs),
        *(seal, shares, HeldBytes()),
    )
    app.state.parts = {type(part): part for part in (*parts, *([intake] if intake else []))}
    install_problems(app, lambda: hub.newest_known(now()), runs.serves_nothing)
    app.add_middleware(EncodedSlashes, prefixes=_PATHS_WITH_IDS)
    app.add_middleware(Begins, measurements=measurements)
    app.add_middleware(Envelope, measurements=measurements, larger={INGEST_PATH: MOST_INGEST_BYTES})
    app.add_middleware(Compressed)
    # Outermost: all the others see a GET.
    app.add_middleware(Head)
    if settings.cors_origins:
        app.add_middleware(OtherOrigins, origins=settings.cors_origins)
    # Who may not read anything does not learn what there is to ask.
    checks = [Depends(require_caller), Depends(refuse_unread)]
    app.include_router(restaurants_router, dependencies=[*checks, FIGURES])
    # Those of models know the columns that may be asked for. The readings of streams take turns by
    # themselves, or are shared by all who are equally far.
    app.include_router(models_router, dependencies=[Depends(require_caller), PULLS])
    app.include_router(model_stream_router, dependencies=[Depends(require_caller)])
    app.include_router(restaurant_stream_router, dependencies=checks)
    app.include_router(letters_router, dependencies=[*checks, PULLS])
    app.include_router(health_router, dependencies=[Depends(refuse_unread)])
    if intake is not None:
        app.include_router(ingest_router, dependencies=checks)
    if page:
        from livemart.serve.page.page import page_router

        app.include_router(page_router())
    app.openapi = cache(lambda: describe(app))  # type: ignore[method-assign]
    return app
