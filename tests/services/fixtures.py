"""Fixtures of services that tests start: absent they are a named skip, but a failure where CI=true.

The conftest of each folder whose tests need one imports them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.services.kafka import Kafka, running_kafka
from tests.services.maven import NotInstalledError
from tests.services.nats import Nats, running_nats


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    """A broker that all tests of a process share; each makes topics of its own."""
    try:
        with running_kafka(tmp_path_factory.mktemp("kafka")) as broker:
            yield broker
    except NotInstalledError as error:
        not_installed(str(error))


@pytest.fixture(scope="session")
def nats_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nats]:
    """A server that all tests of a process share; each makes streams of its own."""
    try:
        with running_nats(tmp_path_factory.mktemp("nats")) as server:
            yield server
    except NotInstalledError as error:
        not_installed(str(error))


def not_installed(reason: str) -> None:
    """Skip a test by name, or fail it where every service must be there."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"{reason}: its tests did not run")
    pytest.skip(f"{reason}: its tests did not run")
