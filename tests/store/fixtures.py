"""Fixtures of stores: a SQLite file, and a database of a real PostgreSQL.

The conftest of each folder whose tests fill a store imports them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from livemart.store.reader import StoreReader
from tests.store.postgres import Postgres, find_binaries, running_postgres
from tests.waits import PATIENCE_S


@pytest.fixture(scope="session")
def postgres_binaries() -> Path:
    """The folder of PostgreSQL's programs; absent a named skip, but a failure where CI=true."""
    binaries = find_binaries()
    if binaries is None:
        reason = "PostgreSQL is not installed (apt-get install postgresql): its tests did not run"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    return binaries


@pytest.fixture(scope="session")
def postgres(postgres_binaries: Path) -> Iterator[Postgres]:
    """A PostgreSQL server that all tests share."""
    with running_postgres(postgres_binaries) as server, pytest.MonkeyPatch.context() as patch:
        # Under load it may take longer to answer than an operator should wait.
        patch.setattr("livemart.store.connections._CONNECT_SECONDS", int(PATIENCE_S))
        yield server


@pytest.fixture(scope="session", params=["sqlite", "postgresql"])
def new_store(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[], str]:
    """Returns the URL of another store that does not exist yet, in both databases."""
    if request.param == "postgresql":
        server: Postgres = request.getfixturevalue("postgres")
        return server.new_store

    def new_file() -> str:
        return f"sqlite:///{tmp_path_factory.mktemp('store')}/warehouse/_livemart/serving.db"

    return new_file


@pytest.fixture
def store_url(new_store: Callable[[], str]) -> str:
    """The URL of a store that does not exist yet, in both databases."""
    return new_store()


@pytest.fixture
def reader(store_url: str) -> Iterator[StoreReader]:
    """A reader of that store, opened before anybody fills it."""
    with closing(StoreReader.open(store_url)) as opened:
        yield opened
