"""A PostgreSQL of the tests' own: in a temporary folder, on a unix socket, without fsync."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg

from tests.waits import PATIENCE_S


class Postgres:
    """A server that a test may stop and start again.

    Attributes:
        port: by which its socket is named; at which it listens, if its settings let it.
    """

    def __init__(
        self, binaries: Path, folder: Path, settings: Mapping[str, str] | None = None
    ) -> None:
        self._binaries = binaries
        self._folder = folder
        self._settings = dict(settings or {})
        self.port = int(self._settings.get("port", "5432"))
        self._server: subprocess.Popen[bytes] | None = None
        self._numbers = count(1)

    @property
    def socket_path(self) -> str:
        """Where its unix socket is."""
        return str(self._folder / f".s.PGSQL.{self.port}")

    @property
    def process_id(self) -> int:
        """The process that starts one for each connection."""
        assert self._server is not None
        return self._server.pid

    def new_store(self) -> str:
        """Make an empty schema and return its URL; a database each would be 7 MB."""
        name = f"store_{next(self._numbers)}"
        with self.connect() as connection:
            connection.execute(f"create schema {name}")
        options = quote(f"-csearch_path={name}")
        return f"postgresql+psycopg://postgres@/postgres?host={self._folder}&options={options}"

    def create_database(self, name: str) -> None:
        """Make an empty database."""
        with self.connect() as connection:
            connection.execute(f"create database {name}")

    def create(self) -> None:
        """Make the cluster; text is ordered as in English unless a column says otherwise."""
        initdb = [str(self._binaries / "initdb"), f"--pgdata={self._folder / 'data'}"]
        options = ["--auth=trust", "--username=postgres", "--no-sync", "--encoding=UTF8"]
        locale = ["--locale=C.UTF-8", "--locale-provider=icu", "--icu-locale=en-US"]
        command = [*initdb, *options, *locale]
        subprocess.run(command, check=True, capture_output=True, **_as_postgres())

    def start(self) -> None:
        """Start the server and wait until it answers."""
        settings = {
            "listen_addresses": "",
            "unix_socket_directories": str(self._folder),
            "fsync": "off",
            # It may hold a table for longer than a publication waits to drop it.
            "autovacuum": "off",
            "shared_buffers": "32MB",
            "max_connections": "200",
            **self._settings,
        }
        given = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        with (self._folder / "server.log").open("ab") as log:
            self._server = subprocess.Popen(
                [self._binaries / "postgres", "-D", self._folder / "data", *given],
                stdout=log,
                stderr=log,
                **_as_postgres(),
            )
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                self.connect().close()
                return
            except psycopg.OperationalError:
                if self._server.poll() is not None or time.monotonic() > deadline:
                    raise
                self._server_rest()

    def stop(self) -> None:
        """Stop the server as a crash would; clients lose their connections."""
        if self._server is not None:
            self._server.send_signal(signal.SIGQUIT)
            self._server.wait(timeout=PATIENCE_S)
            self._server = None

    def _server_rest(self) -> None:
        assert self._server is not None
        try:
            self._server.wait(timeout=0.05)
        except subprocess.TimeoutExpired:
            return

    def connect(self, **options: Any) -> psycopg.Connection[Any]:
        """Return a connection of the superuser; each statement is a separate transaction."""
        place: dict[str, Any] = {"host": str(self._folder), "port": self.port, "user": "postgres"}
        return psycopg.connect(**{"autocommit": True} | place | options)


def find_binaries() -> Path | None:
    """Return the folder of PostgreSQL's programs, None if there is none."""
    folders = [*Path("/usr/lib/postgresql").glob("*/bin")]
    folders.sort(key=lambda folder: int(folder.parent.name), reverse=True)
    if (found := shutil.which("initdb")) is not None:
        folders.append(Path(found).parent)
    return next((folder for folder in folders if (folder / "initdb").exists()), None)


@contextmanager
def running_postgres(
    binaries: Path, settings: Mapping[str, str] | None = None
) -> Iterator[Postgres]:
    """Yield a server that ends with the block."""
    folder = Path(tempfile.mkdtemp(prefix="livemart-pg-"))
    if os.geteuid() == 0:
        shutil.chown(folder, "postgres")
    server = Postgres(binaries, folder, settings)
    try:
        server.create()
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _as_postgres() -> dict[str, Any]:
    """PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return {}
    return {"user": "postgres", "group": "postgres", "extra_groups": [], "cwd": "/"}
