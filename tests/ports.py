"""Ports of this machine without a listener."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def silent_port() -> Iterator[int]:
    """Yield a port that refuses every connection; it is held, so no other process can listen."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port: int = held.getsockname()[1]
        yield port
