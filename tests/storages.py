"""The storages over which one suite runs: a disk, a memory that fails, a bucket of moto."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import obstore
import pytest
from obstore.exceptions import GenericError
from obstore.store import MemoryStore

from livemart.storage import object as object_module
from livemart.storage.local import LocalStorage
from livemart.storage.location import Location, StoragePlace
from livemart.storage.object import ObjectStorage
from livemart.storage.storage import Storage
from tests.services.bucket import Buckets, buckets

# Those that lose nothing, and that pyarrow and deltalake open.
SURE_STORAGES = ["disk", pytest.param("bucket", marks=pytest.mark.extended)]
STORAGES = ["memory", *SURE_STORAGES]


@pytest.fixture(scope="session")
def bucket_server() -> Iterator[Buckets]:
    """A server of buckets that all tests of a process share; each makes a bucket for itself."""
    with buckets() as server:
        yield server


@pytest.fixture(params=STORAGES)
def storage(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Storage:
    """An empty storage of each kind."""
    if request.param == "disk":
        return LocalStorage(Location.parse(tmp_path / "a b%20#?"))
    if request.param == "memory":
        return storage_in_memory(monkeypatch)
    return storage_in_bucket(request.getfixturevalue("bucket_server"))


@pytest.fixture(params=SURE_STORAGES)
def place(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> StoragePlace:
    """An empty folder of a disk, or of a bucket that the environment gives access to."""
    if request.param == "disk":
        return tmp_path
    server = request.getfixturevalue("bucket_server")
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    return storage_in_bucket(server).location


@pytest.fixture
def memory_place(monkeypatch: pytest.MonkeyPatch) -> Location:
    """An empty folder of a bucket that is kept in memory, as are all that are opened by a URL."""
    stores: dict[str, MemoryStore] = {}

    def open_in_memory(location: Location, _: Mapping[str, str]) -> ObjectStorage:
        client = stores.setdefault(location.bucket, MemoryStore())
        return ObjectStorage(location, client, {})

    monkeypatch.setattr(ObjectStorage, "open", open_in_memory)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"):
        monkeypatch.setenv(name, "memory")
    return Location.parse("s3://mart/eu")


def storage_in_bucket(server: Buckets) -> ObjectStorage:
    """Return an empty storage in a new bucket."""
    name = f"mart-{uuid4().hex}"
    server.make(name)
    return ObjectStorage.open(Location.parse(f"s3://{name}/eu"), server.environment)


def storage_in_memory(monkeypatch: pytest.MonkeyPatch) -> ObjectStorage:
    """Return an empty storage in memory, of whose requests two in three fail at first."""
    faulty: Any = _FaultyRequests()
    monkeypatch.setattr(object_module, "obstore", faulty)
    monkeypatch.setattr(object_module, "_FIRST_WAIT_S", 0.0)
    return ObjectStorage(Location.parse("s3://memory/eu"), MemoryStore(), {})


class _FaultyRequests:
    """The functions of obstore; each loses a request, then an answer, and lists in any order."""

    def __init__(self) -> None:
        self._count = 0
        self._random = random.Random(7)

    def __getattr__(self, function: str) -> Any:
        def ask(*arguments: Any, **options: Any) -> Any:
            self._count += 1
            if self._count % 3 == 1:
                raise GenericError("the request was lost")
            answer = getattr(obstore, function)(*arguments, **options)
            if self._count % 3 == 2:
                raise GenericError("the answer was lost")
            return map(self._shuffled, answer) if function == "list" else answer

        return ask

    def _shuffled(self, page: list[Any]) -> list[Any]:
        return self._random.sample(page, len(page))
