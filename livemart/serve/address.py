"""Takes the address that the server listens at, before anything slow begins.

Used by the server, and by the supervisor of `up`, which keeps the address for the servers to come.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager

from livemart.errors import StateError
from livemart.settings import Settings


@contextmanager
def bound(settings: Settings, backlog: int | None = None) -> Iterator[socket.socket]:
    """Yield a socket that has the address; it listens if there is a `backlog`.

    One that does not listen leaves the address to others that bind it in the same way, and keeps
    the system from giving it to a connection.

    Raises:
        StateError: ADDRESS_TAKEN.
    """
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # With the protocol named, asyncio sends each answer at once (TCP_NODELAY).
    with socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((settings.host, settings.port))
            if backlog is not None:
                # Who comes before the server is ready waits for it.
                listener.listen(backlog)
        except OSError as error:
            raise StateError(
                "ADDRESS_TAKEN",
                f"host, port: found {settings.host}:{settings.port}: {error.strerror or error}",
                hint="stop the process that listens there, or choose another --port",
            ) from error
        yield listener
