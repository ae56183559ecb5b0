"""A place says by its form which store keeps its objects."""

from __future__ import annotations

from pathlib import Path

import pytest

from livemart.errors import ConfigError
from livemart.storage.local import LocalStorage
from livemart.storage.object import ObjectStorage
from livemart.storage.opening import open_storage

KEYS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION", "AWS_DEFAULT_REGION")


def test_a_path_is_on_the_disk_and_a_url_in_a_bucket(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in KEYS:
        monkeypatch.setenv(name, "set")

    assert isinstance(open_storage(tmp_path), LocalStorage)
    assert isinstance(open_storage("warehouse"), LocalStorage)
    assert isinstance(open_storage("s3://mart/eu"), ObjectStorage)


@pytest.mark.parametrize("scheme", ["gs", "abfss", "s3a", "ftp"])
def test_a_store_of_another_kind_is_not_opened(scheme: str) -> None:
    with pytest.raises(ValueError, match="name a folder, or s3://bucket/folder"):
        open_storage(f"{scheme}://mart/eu")


def test_a_bucket_needs_keys_that_every_engine_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in KEYS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_REGION", "eu-central-1")

    with pytest.raises(ValueError, match="set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in"):
        open_storage("s3://mart/eu")


def test_a_bucket_needs_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("livemart.extras.find_spec", lambda name: None)

    with pytest.raises(ConfigError, match="EXTRA_MISSING: extra s3: found no obstore"):
        open_storage("s3://mart/eu")
