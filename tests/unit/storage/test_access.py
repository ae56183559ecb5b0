"""A URL is checked before its store is opened, without its client."""

from __future__ import annotations

import subprocess
import sys

import pytest

from livemart.errors import ConfigError
from livemart.storage.access import check_access
from livemart.storage.location import Location

KEYS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION", "AWS_DEFAULT_REGION")


@pytest.mark.parametrize("scheme", ["gs", "abfss", "s3a", "ftp"])
def test_a_store_of_another_kind_is_refused(scheme: str) -> None:
    with pytest.raises(ValueError, match="name a folder, or s3://bucket/folder"):
        check_access(Location.parse(f"{scheme}://mart/eu"), {})


def test_a_bucket_needs_keys_that_every_engine_reads() -> None:
    region = {"AWS_REGION": "eu-central-1"}

    with pytest.raises(ValueError, match="set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in"):
        check_access(Location.parse("s3://mart/eu"), region)


def test_a_bucket_needs_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("livemart.extras.find_spec", lambda name: None)

    with pytest.raises(ConfigError, match="EXTRA_MISSING: extra s3: found no obstore"):
        check_access(Location.parse("s3://mart/eu"), dict.fromkeys(KEYS, "set"))


def test_settings_with_a_url_import_no_client_of_buckets() -> None:
    code = """
import sys
from livemart.settings import Settings
assert str(Settings(warehouse="s3://mart/eu").warehouse) == "s3://mart/eu"
print(sorted({"obstore", "pyarrow", "deltalake"} & sys.modules.keys()))
"""
    environment = dict.fromkeys(KEYS, "set")
    printed = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )

    assert printed.stdout == "[]\n"
