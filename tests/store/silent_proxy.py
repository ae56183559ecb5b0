"""A proxy before a PostgreSQL that can go silent: it takes every byte and passes none on."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from tests.store.postgres import Postgres

_CHUNK = 65_536


class SilentProxy:
    """Passes connections to a server's socket on, until it is silenced.

    A connection that was silenced stays so, as one that a firewall forgot; its session lives on at
    the server, which hears nothing either.
    """

    def __init__(self, server: Postgres) -> None:
        self._server = server
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._sockets: list[socket.socket] = []
        self._generation = 0
        self._is_silent = False
        threading.Thread(target=self._accept, daemon=True).start()

    def silence(self) -> None:
        """Pass nothing on any more, for connections that are there and those that come."""
        self._is_silent = True
        self._generation += 1

    def speak(self) -> None:
        """Pass on what comes by new connections."""
        self._is_silent = False

    def url(self, schema_url: str) -> str:
        """Return the URL by which a store of the server is reached through the proxy."""
        options = schema_url.partition("options=")[2]
        return f"postgresql+psycopg://postgres@127.0.0.1:{self.port}/postgres?options={options}"

    def close(self) -> None:
        """Close every connection."""
        for each in (self._listener, *self._sockets):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self._sockets.append(client)
                if self._is_silent:
                    continue
                upstream = socket.socket(socket.AF_UNIX)
                self._sockets.append(upstream)
                upstream.connect(self._server.socket_path)
                for source, sink in ((client, upstream), (upstream, client)):
                    pumped = (source, sink, self._generation)
                    threading.Thread(target=self._pump, args=pumped, daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket, generation: int) -> None:
        with suppress(OSError):
            while data := source.recv(_CHUNK):
                if self._generation == generation:
                    sink.sendall(data)
            if self._generation == generation:
                sink.shutdown(socket.SHUT_WR)


@contextmanager
def silent_proxy(server: Postgres) -> Iterator[SilentProxy]:
    """Yield a proxy that still speaks."""
    proxy = SilentProxy(server)
    try:
        yield proxy
    finally:
        proxy.close()
