"""The application over a store that a test fills, and the server in a separate thread."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar, cast

from fastapi import FastAPI
from starlette.testclient import TestClient

from livemart.land.group_commit import GroupCommit
from livemart.serve.app import create_app
from livemart.serve.auth.attempts import Attempts
from livemart.serve.auth.book import TokenBook
from livemart.serve.auth.callers import Guard
from livemart.serve.auth.tokens import TokenStore
from livemart.serve.ingest.endpoint import Intake
from livemart.serve.live.hub import Hub
from livemart.serve.server import open_server
from livemart.settings import Settings, load_settings
from livemart.store.reader import StoreReader
from tests.waits import PATIENCE_S as PATIENCE_S
from tests.waits import wait_until as wait_until

_Part = TypeVar("_Part")
ADDRESS = "http://127.0.0.1:8000"
# For the document alone: nothing is stored.
TAKES_RECORDS = Intake({}, cast(GroupCommit, None))


@dataclass(frozen=True, slots=True)
class Site:
    """A running application: a client of it, its store and its tokens."""

    client: TestClient
    url: str
    tokens: TokenStore
    app: FastAPI

    @property
    def hub(self) -> Hub:
        """The thread that polls the store."""
        return self._part(Hub)

    @property
    def book(self) -> TokenBook:
        """The tokens that the server knows."""
        return self._part(Guard).book

    @property
    def session_key(self) -> str:
        """The key with which the server signs sessions."""
        return self._part(Guard).key.text

    def _part(self, kind: type[_Part]) -> _Part:
        part = self.app.state.parts[kind]
        assert isinstance(part, kind)
        return part

    def until(self, is_true: Callable[[], bool]) -> None:
        """Wait until something is true; the hub looks at the store by itself."""
        wait_until(is_true)

    def shows(self, snapshot_id: int) -> bool:
        """Return True once readers see this snapshot."""
        published = self.hub.published
        return published is not None and published.snapshot_id == snapshot_id

    def learn_tokens(self) -> None:
        """Read the tokens now, not with the next look."""
        self.book.refresh()

    def bearer(self, *restaurants: str) -> dict[str, str]:
        """Return the header of a new token for these restaurants; for all if none is named."""
        return bearer(self.make_token(*restaurants))

    def make_token(self, *restaurants: str, lasts: timedelta | None = None) -> str:
        """Return a new token that the server knows."""
        text, _ = self.tokens.create(
            "test", tenants=restaurants, is_admin=not restaurants, lasts=lasts
        )
        self.learn_tokens()
        return text


def bearer(token: str) -> dict[str, str]:
    """Return the header that sends a token."""
    return {"Authorization": f"Bearer {token}"}


def compared(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers but for the time, and for the share that the caller itself has left.

    Both change between two equal requests.
    """
    return {name: value for name, value in headers.items() if name not in ("date", "ratelimit")}


def make_settings(folder: Path, **flags: object) -> Settings:
    """Return settings whose warehouse, and so whose store, is in `folder`."""
    given: Mapping[str, object] = {"warehouse": folder / "warehouse", **flags}
    return load_settings(given, environ={}, directory=folder)


@contextmanager
def site(
    folder: Path,
    *,
    page: bool = False,
    attempts: int = 1_000_000,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
    peer: str = "127.0.0.1",
    intake: Intake | None = None,
    **flags: object,
) -> Iterator[Site]:
    """Run the application in this process, without a socket."""
    settings = make_settings(folder, **flags)
    url = settings.store_url
    assert url is not None
    tokens, reader = TokenStore(url, now=now), StoreReader.open(url)
    # No minute passes in which a wrong token would be forgiven.
    counted = Attempts(attempts, clock=lambda: 0.0)
    app = create_app(settings, reader, tokens, page=page, intake=intake, attempts=counted, now=now)
    try:
        with TestClient(app, base_url=ADDRESS, client=(peer, 4711)) as client:
            yield Site(client, url, tokens, app)
    finally:
        reader.close()
        tokens.close()


def document(intake: Intake | None = None) -> dict[str, Any]:
    """Return the OpenAPI document of an application that asks no store."""
    settings = make_settings(Path("/nowhere"))
    url = str(settings.store_url)
    reader, tokens = StoreReader.open(url), TokenStore(url)
    return create_app(settings, reader, tokens, page=False, intake=intake).openapi()


@contextmanager
def server(folder: Path, **flags: object) -> Iterator[tuple[str, int]]:
    """Run the real server in a thread; yield host and port."""
    settings = make_settings(folder, port=0, **flags)
    with open_server(settings, lambda: None) as greeting:
        found = re.search(r"http://([\d.]+):(\d+)/", greeting)
        assert found is not None
        yield found[1], int(found[2])
