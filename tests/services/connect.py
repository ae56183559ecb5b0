"""Kafka Connect of the tests' own, with Debezium's connector to PostgreSQL: one worker process."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import Request, urlopen

from tests.ports import silent_port
from tests.services.java_server import JavaServer
from tests.services.maven import jars_of
from tests.waits import PATIENCE_S, wait_until

_MAIN = "org.apache.kafka.connect.cli.ConnectStandalone"


class Connect(JavaServer):
    """A worker whose connectors go on where they were.

    Args:
        folder: for its settings, its log and the positions of its connectors.
        broker: `host:port` of Kafka.
    """

    def __init__(self, folder: Path, broker: str) -> None:
        told = "io.debezium.connector.postgresql.connection"
        super().__init__(folder, jars_of("connect"), told)
        self._broker = broker
        self._port = 0
        self._connectors: dict[str, Mapping[str, str]] = {}

    def prepare(self) -> None:
        """Choose its port."""
        with silent_port() as self._port:
            self._write_settings()

    def command(self) -> Sequence[str]:
        """Return the main class and its arguments."""
        return _MAIN, str(self.folder / "worker.properties")

    def answers(self) -> bool:
        """Return whether it takes requests."""
        try:
            return self._ask("GET", "/connectors") is not None
        except OSError:
            return False

    def start(self) -> None:
        """Start it again, with the connectors that it had, and wait until they run."""
        super().start()
        for name in self._connectors:
            self._configure(name)

    def add(self, name: str, settings: Mapping[str, str]) -> None:
        """Start a connector, and wait until it runs."""
        self._connectors[name] = settings
        self._configure(name)

    def remove(self, name: str) -> None:
        """End a connector."""
        del self._connectors[name]
        self._ask("DELETE", f"/connectors/{name}")

    def states(self, name: str) -> list[str]:
        """Return the states of a connector's tasks: RUNNING, FAILED, ..."""
        answer = self._ask("GET", f"/connectors/{name}/status")
        return [task["state"] for task in answer["tasks"]] if answer else []

    def _configure(self, name: str) -> None:
        self._ask("PUT", f"/connectors/{name}/config", self._connectors[name])
        try:
            wait_until(lambda: self.states(name) == ["RUNNING"])
        except AssertionError as error:
            error.add_note(self.log()[-8000:])
            raise

    def _ask(self, method: str, path: str, body: object = None) -> Any:
        """Return what the worker answers; None for 404."""
        request = Request(
            f"http://127.0.0.1:{self._port}{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        try:
            with urlopen(request, timeout=PATIENCE_S) as answer:
                content = answer.read()
        except URLError as error:
            if getattr(error, "code", None) == 404:
                return None
            raise
        return json.loads(content) if content else None

    def _write_settings(self) -> None:
        settings = {
            "bootstrap.servers": self._broker,
            "listeners": f"http://127.0.0.1:{self._port}",
            "plugin.discovery": "service_load",
            "offset.storage.file.filename": str(self.folder / "offsets"),
            # After a kill the records since then are sent again.
            "offset.flush.interval.ms": "500",
            "key.converter": "org.apache.kafka.connect.json.JsonConverter",
            "key.converter.schemas.enable": "false",
            "value.converter": "org.apache.kafka.connect.json.JsonConverter",
            "value.converter.schemas.enable": "false",
        }
        text = "".join(f"{name}={value}\n" for name, value in settings.items())
        (self.folder / "worker.properties").write_text(text)


def postgres_connector(
    port: int, database: str, prefix: str, settings: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return the settings of a connector to a database, in which `signals` is a table.

    Args:
        port: of the server on 127.0.0.1.
        database: its name.
        prefix: of the topics: `<prefix>.<schema>.<table>`; slot and publication have its name. It
            reports on itself in `<prefix>.told`.
        settings: others.
    """
    return {
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "plugin.name": "pgoutput",
        "database.hostname": "127.0.0.1",
        "database.port": str(port),
        "database.user": "postgres",
        "database.password": "none",
        "database.dbname": database,
        "topic.prefix": prefix,
        "slot.name": prefix,
        "publication.name": prefix,
        "slot.retry.delay.ms": "500",
        "slot.max.retries": "100",
        "signal.data.collection": "public.signals",
        "incremental.snapshot.chunk.size": "10",
        "notification.enabled.channels": "sink",
        "notification.sink.topic.name": f"{prefix}.told",
        # Truncates are left out by default.
        "skipped.operations": "none",
        "retriable.restart.connector.wait.ms": "500",
        "topic.creation.default.replication.factor": "1",
        "topic.creation.default.partitions": "3",
        **(settings or {}),
    }


@contextmanager
def running_connect(folder: Path, broker: str) -> Iterator[Connect]:
    """Start a worker, yield it, and end it.

    Raises:
        NotInstalledError: its jars cannot be had.
    """
    worker = Connect(folder, broker)
    try:
        worker.create()
        yield worker
    finally:
        worker.kill()
