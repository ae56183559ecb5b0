"""A PostgreSQL whose changes can be followed: logical replication, and a port on loopback."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import psycopg

from tests.ports import silent_port
from tests.services.maven import NotInstalledError
from tests.store.postgres import Postgres, find_binaries, running_postgres

_ATTEMPTS = 5
_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "wal_level": "logical",
    "max_replication_slots": "16",
    "max_wal_senders": "16",
}


@contextmanager
def running_database() -> Iterator[Postgres]:
    """Start a server, yield it, and end it.

    Raises:
        NotInstalledError: PostgreSQL is not installed.
    """
    binaries = find_binaries()
    if binaries is None:
        raise NotInstalledError("PostgreSQL is not installed (apt-get install postgresql)")
    with ExitStack() as stack:
        for attempt in range(_ATTEMPTS):
            with silent_port() as port:
                pass
            try:
                settings = _SETTINGS | {"port": str(port)}
                server = stack.enter_context(running_postgres(binaries, settings))
                break
            except psycopg.OperationalError:
                # Somebody else took the port in between.
                if attempt == _ATTEMPTS - 1:
                    raise
        yield server
