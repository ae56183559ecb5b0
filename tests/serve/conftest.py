"""Stores and a served store for the tests of the server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.serve.apps import server
from tests.serve.live.push_world import World
from tests.store.fixtures import new_store, postgres, postgres_binaries, reader, store_url  # noqa: F401


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """A store with one snapshot, and a server over it."""
    with server(tmp_path) as address:
        served = World(tmp_path, address)
        served.publish()
        yield served
