"""Fixtures of services that tests start: absent they are a named skip, but a failure where CI=true.

The conftest of each folder whose tests need one imports them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.services.connect import Connect, running_connect
from tests.services.database import running_database
from tests.services.kafka import Kafka, running_kafka
from tests.services.maven import NotInstalledError
from tests.services.nats import Nats, running_nats
from tests.store.postgres import Postgres


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    """A broker that all tests of a process share; each creates its own topics."""
    with told_where_absent(), running_kafka(tmp_path_factory.mktemp("kafka")) as broker:
        yield broker


@pytest.fixture(scope="session")
def nats_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nats]:
    """A server that all tests of a process share; each creates its own streams."""
    with told_where_absent(), running_nats(tmp_path_factory.mktemp("nats")) as server:
        yield server


@pytest.fixture(scope="session")
def database() -> Iterator[Postgres]:
    """A PostgreSQL with logical replication that all tests of a process share."""
    with told_where_absent(), running_database() as server:
        yield server


@pytest.fixture(scope="session")
def connect(kafka: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connect]:
    """Kafka Connect with Debezium, which all tests of a process share."""
    with (
        told_where_absent(),
        running_connect(tmp_path_factory.mktemp("connect"), kafka.address) as worker,
    ):
        yield worker


@contextmanager
def told_where_absent() -> Iterator[None]:
    """Skip or fail a test whose services cannot be had."""
    try:
        yield
    except NotInstalledError as error:
        not_installed(str(error))


def not_installed(reason: str) -> None:
    """Skip a test by name, or fail it where every service must be there."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"{reason}: its tests did not run")
    pytest.skip(f"{reason}: its tests did not run")
