"""What the parts of one server share; made once by `create_app`, no part has globals of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, cast

from starlette.requests import HTTPConnection

from livemart.settings import Settings
from livemart.store.reader import StoreReader

if TYPE_CHECKING:
    from livemart.serve.auth.book import TokenBook
    from livemart.serve.auth.callers import Attempts
    from livemart.serve.http.measurements import Measurements
    from livemart.serve.live.hub import Hub
    from livemart.serve.owner.answers import Answers


@dataclass(frozen=True, slots=True)
class Serving:
    """The parts of one server.

    `reader`: the store; `book`: tokens; `hub`: tells of new snapshots; `answers`: bodies computed
    once a snapshot; `now`: the wall clock, UTC; `is_loopback`: bound to this machine alone.
    """

    settings: Settings
    reader: StoreReader
    book: TokenBook
    hub: Hub
    answers: Answers
    attempts: Attempts
    measurements: Measurements
    now: Callable[[], datetime]
    is_loopback: bool

    @property
    def is_open(self) -> bool:
        """True if anybody at this machine is an admin: bound to loopback, and no token was made."""
        return self.is_loopback and self.book.is_empty


def serving_of(connection: HTTPConnection) -> Serving:
    """Return the parts of the server that a request came to."""
    return cast(Serving, connection.app.state.serving)
