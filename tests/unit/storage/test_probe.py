"""A store that takes conditions without keeping them is found out before anything is written."""

from __future__ import annotations

import re
import time
from typing import Any

import obstore
import pytest

from livemart.errors import ConfigError
from livemart.storage import object as object_module
from livemart.storage.location import Location
from livemart.storage.opening import open_storage
from livemart.storage.probe import probe_store
from livemart.storage.storage import Storage


def test_every_kind_of_store_keeps_its_conditions(storage: Storage) -> None:
    probe_store(storage, 15)

    assert storage.names() == []


@pytest.mark.parametrize(
    "is_ignored, said",
    [
        (lambda mode: mode == "create", "the store does not keep If-None-Match"),
        (lambda mode: isinstance(mode, dict), "the store does not keep If-Match"),
    ],
)
def test_a_store_that_ignores_a_condition_is_refused(
    is_ignored: Any,
    said: str,
    memory_place: Location,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Careless:
        def __getattr__(self, function: str) -> Any:
            return getattr(obstore, function)

        def put(self, *arguments: Any, mode: Any, **options: Any) -> Any:
            mode = "overwrite" if is_ignored(mode) else mode
            return obstore.put(*arguments, mode=mode, **options)

    monkeypatch.setattr(object_module, "obstore", Careless())
    bucket = open_storage(memory_place)

    with pytest.raises(ConfigError, match=f"STORE_UNCONDITIONAL: s3://mart/eu: {re.escape(said)}"):
        probe_store(bucket, 15)
    assert bucket.names() == []


@pytest.mark.parametrize("off_s", [-40, 40])
def test_a_clock_that_leases_cannot_go_by_is_told(
    off_s: int,
    memory_place: Location,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = time.time
    monkeypatch.setattr(time, "time", lambda: clock() + off_s)

    with pytest.raises(ConfigError, match=r"CLOCK_APART: s3://mart/eu: .* (39|40) s apart"):
        probe_store(open_storage(memory_place), 15)
    probe_store(open_storage(memory_place), 45)
