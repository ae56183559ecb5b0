"""A place says by its form which store keeps its objects."""

from __future__ import annotations

from pathlib import Path

import pytest

from livemart.storage.local import LocalStorage
from livemart.storage.object import ObjectStorage
from livemart.storage.opening import open_storage
from tests.unit.storage.test_access import KEYS


def test_a_path_is_on_the_disk_and_a_url_in_a_bucket(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in KEYS:
        monkeypatch.setenv(name, "set")

    assert isinstance(open_storage(tmp_path), LocalStorage)
    assert isinstance(open_storage("warehouse"), LocalStorage)
    assert isinstance(open_storage("s3://mart/eu"), ObjectStorage)


def test_a_store_that_is_not_accessible_is_not_opened() -> None:
    with pytest.raises(ValueError, match="name a folder, or s3://bucket/folder"):
        open_storage("gs://mart/eu")
