"""Runs the server in a separate thread, from taking the address to a clean end.

Used by the commands `serve` and `up`, and by the demo: the main thread is left to them.
"""

from __future__ import annotations

import asyncio
import errno
import gc
import resource
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from typing import Any

import uvicorn
from fastapi import FastAPI

from livemart.errors import ConfigError, StateError
from livemart.serve.address import bound
from livemart.serve.app import create_app
from livemart.serve.auth.this_machine import serves_this_machine_alone
from livemart.serve.auth.tokens import TokenStore
from livemart.serve.connections.kept import ConnectionLimits, Connections
from livemart.serve.connections.protocol import TimedProtocol
from livemart.serve.http.held_bytes import HeldBytes
from livemart.serve.http.measurements import Measurements
from livemart.serve.http.origin import networks_of
from livemart.serve.http.rare_log import RareLog, redirected
from livemart.serve.ingest.endpoint import open_intake
from livemart.serve.live.hub import Hub
from livemart.serve.live.side_processes import SideProcesses
from livemart.serve.live.streams import MOST_STREAMS
from livemart.settings import Settings
from livemart.store.reader import StoreReader

# Streams end at once; only answers under way are waited for, and then readings without an answer.
# Together with the rest of the end this is less than the 10 s after which Docker kills.
_PATIENCE_S = 5
_LAST_READINGS_S = 2
# That the server closes its sockets is waited for whatever keeps the machine busy.
_CLOSED_WITHIN_S = 60
_BACKLOG = 4_096
# asyncio accepts as many connections before it continues with those that it has. Where no file can
# be opened any more, it tries as often, with a line in the log for each.
_ACCEPTED_AT_ONCE = 4
# In ticks of uvicorn, of 0.1 s.
_DEADLINES_EVERY = 5
_SWITCH_S = 0.0002
# As many as there may be streams, and what else a process holds open.
_OPEN_FILES = MOST_STREAMS + 1_000
_NO_FILES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_THRESHOLDS = (20_000, 20, 50)
_bind = partial(bound, backlog=_BACKLOG)


class _Server(uvicorn.Server):
    """Ends the streams before it waits for its connections: they would never end by themselves.

    `is_closed` is set once it neither listens nor talks any more.
    """

    def __init__(self, config: uvicorn.Config, connections: Connections) -> None:
        super().__init__(config)
        self.is_closed = threading.Event()
        self._connections = connections

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        asyncio.get_running_loop().set_exception_handler(self._handle)
        await super().startup(sockets)
        for listener in sockets or ():
            # asyncio has made the backlog as short as what it takes in at once.
            listener.listen(_BACKLOG)

    async def on_tick(self, counter: int) -> bool:
        if counter % _DEADLINES_EVERY == 0:
            await self._connections.expire(asyncio.get_running_loop().time())
        return await super().on_tick(counter)

    def _handle(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if isinstance(error, OSError) and error.errno in _NO_FILES and "socket" in context:
            # asyncio tries again in a second.
            self._connections.make_room()
        else:
            loop.default_exception_handler(context)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self.config.app.state.parts[Hub].close()  # type: ignore[union-attr]
        await super().shutdown(sockets)
        self.is_closed.set()


@contextmanager
def open_server(settings: Settings, failed: Callable[[], None]) -> Iterator[str]:
    """Serve until the block ends; yield the message for the person who started it.

    Args:
        settings: store, host and port.
        failed: is called from another thread should the server end before the block does.

    Yields:
        One or two lines: where it listens, and whether a token is needed.

    Raises:
        ConfigError: STORE_NOT_SET; TOKENS_NEEDED, if others could reach it and there is no token.
        StateError: ADDRESS_TAKEN; SERVER_ENDED, when the block ends after the server.
        PublishError: STORE_UNREACHABLE, while it must be known whether there are tokens.
    """
    url = settings.store_url
    if url is None:
        raise ConfigError(
            "STORE_NOT_SET",
            "store: found 'none': there is nothing to serve from",
            hint="leave out `store`, or name a SQLite file or a PostgreSQL database",
        )
    with closing(TokenStore(url)) as tokens, closing(StoreReader.open(url)) as reader:
        require_tokens(settings, tokens)
        with _bind(settings) as listener, open_intake(settings) as intake:
            app = create_app(settings, reader, tokens, intake=intake, side=SideProcesses(url))
            with _running(app, listener, failed):
                yield _greet(settings, listener, tokens)


def require_tokens(settings: Settings, tokens: TokenStore) -> None:
    """Refuse to listen to a network as long as no one needs a token.

    Raises:
        ConfigError: TOKENS_NEEDED.
    """
    if serves_this_machine_alone(settings) or tokens.version() > 0:
        return
    named = "host" if settings.public_url is None else "public_url"
    raise ConfigError(
        "TOKENS_NEEDED",
        f"{named}: found {getattr(settings, named)}, which other machines can reach, and no "
        "token exists",
        hint=f"run `livemart token create --admin --name me`, or leave {named} out",
    )


@contextmanager
def _running(app: FastAPI, listener: socket.socket, failed: Callable[[], None]) -> Iterator[None]:
    log, parts = RareLog(), app.state.parts
    connections = Connections(_limits(parts[Settings]), parts[Measurements], log, parts[HeldBytes])
    protocol = partial(
        TimedProtocol,
        connections=connections,
        error_base_url=parts[Settings].error_base_url,
    )
    server = _Server(
        uvicorn.Config(
            app,
            http=protocol,  # type: ignore[arg-type]
            ws="none",
            loop="asyncio",
            lifespan="on",
            # structlog logs the events.
            log_config=None,
            access_log=False,
            server_header=False,
            backlog=_ACCEPTED_AT_ONCE,
            forwarded_allow_ips=list(parts[Settings].trusted_proxies),
            timeout_graceful_shutdown=_PATIENCE_S,
        ),
        connections,
    )
    is_running = True

    def run() -> None:
        try:
            with redirected(log, "uvicorn.error", "asyncio"):
                asyncio.run(server.serve(sockets=[listener]))
        finally:
            server.is_closed.set()
            if is_running:
                failed()

    # A thread that reads the store must not keep the others' answers waiting.
    before = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_S)
    # Nor must the collector: modules stay for ever, and rows that were read go all at once.
    thresholds = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)
    thread = threading.Thread(target=run, name="server", daemon=True)
    thread.start()
    try:
        yield
    finally:
        has_ended = not thread.is_alive()
        is_running = False
        server.should_exit = True
        server.is_closed.wait(_CLOSED_WITHIN_S)
        thread.join(_LAST_READINGS_S)
        sys.setswitchinterval(before)
        gc.set_threshold(*thresholds)
        gc.unfreeze()
        if has_ended:
            # Any other error of the block followed from it.
            raise StateError(
                "SERVER_ENDED",
                "the server ended unexpectedly; the lines above give the reason",
                hint="start it again; if livemart is at fault, please report it",
            )


def _limits(settings: Settings) -> ConnectionLimits:
    proxies = networks_of(settings.trusted_proxies)
    return ConnectionLimits.within(_raise_open_files(), settings.address_connections, proxies)


def _raise_open_files() -> int:
    """Return how many files may be open; the limit is raised as needed, where it can be.

    Each connection is one, and the usual limit of 1,024 is a matter of habit alone.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = _OPEN_FILES if hard == resource.RLIM_INFINITY else min(_OPEN_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < limit:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
        return limit
    return _OPEN_FILES if soft == resource.RLIM_INFINITY else min(soft, _OPEN_FILES)


def _greet(settings: Settings, listener: socket.socket, tokens: TokenStore) -> str:
    name = f"[{settings.host}]" if ":" in settings.host else settings.host
    address = settings.public_url or f"http://{name}:{listener.getsockname()[1]}"
    if tokens.version() > 0:
        return f"serving {address}/"
    return f"serving {address}/\nno token exists yet: every user of this machine may see everything"
