"""The servers of the example: PostgreSQL, Kafka and Kafka Connect with Debezium, on loopback.

They are those of livemart's own tests: everything is in a folder that goes with the process.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.services.capture import wait_for_all
from tests.services.changed_tables import Connection
from tests.services.connect import Connect, postgres_connector, running_connect
from tests.services.database import running_database
from tests.services.kafka import Kafka, running_kafka
from tests.store.postgres import Postgres

_DATABASE = "shop"


class Services(NamedTuple):
    """What runs."""

    database: Postgres
    kafka: Kafka
    connect: Connect

    def connection(self, *, autocommit: bool = True) -> Connection:
        """Return a connection to the shop's database."""
        return self.database.connect(dbname=_DATABASE, autocommit=autocommit)

    def follow(self) -> None:
        """Start the connector, and wait until it has read what is there, while nobody writes."""
        settings = {"decimal.handling.mode": "string", "time.precision.mode": "isostring"}
        port = self.database.port
        self.connect.add(_DATABASE, postgres_connector(port, _DATABASE, _DATABASE, settings))
        self.wait_for_all()

    def wait_for_all(self) -> None:
        """Wait until Kafka has every change that was committed."""
        with self.connection() as connection:
            wait_for_all(connection, _DATABASE)


@contextmanager
def running_services(folder: Path) -> Iterator[Services]:
    """Start all, with an empty database, and end all.

    Raises:
        NotInstalledError: one cannot be had on this machine.
    """
    for name in ("kafka", "connect"):
        (folder / name).mkdir(parents=True)
    with (
        running_database() as database,
        running_kafka(folder / "kafka") as kafka,
        running_connect(folder / "connect", kafka.address) as connect,
    ):
        database.create_database(_DATABASE)
        yield Services(database, kafka, connect)
