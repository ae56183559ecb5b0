"""A place says by its form which store keeps its objects."""

from __future__ import annotations

from pathlib import Path

import pytest

from livemart.errors import ConfigError
from livemart.storage.local import LocalStorage
from livemart.storage.object import ObjectStorage
from livemart.storage.opening import open_storage


def test_a_path_is_on_the_disk_and_a_url_in_a_bucket(tmp_path: Path) -> None:
    assert isinstance(open_storage(tmp_path), LocalStorage)
    assert isinstance(open_storage("warehouse"), LocalStorage)
    assert isinstance(open_storage("s3://mart/eu"), ObjectStorage)


def test_a_store_of_another_kind_is_named() -> None:
    with pytest.raises(ValueError, match="ftp://mart: found no store of this kind"):
        open_storage("ftp://mart/eu")


def test_a_bucket_needs_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("livemart.extras.find_spec", lambda name: None)

    with pytest.raises(ConfigError, match="EXTRA_MISSING: extra s3: found no obstore"):
        open_storage("s3://mart/eu")
