"""Warehouses of earlier versions are found again: the places of the state stay as they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from livemart.settings import load_settings
from livemart.state.places import LocalFolder, StateFolder
from livemart.storage.location import Location

PLACES, LOCAL = StateFolder(Path("/w")), LocalFolder(Path("/w"))


def test_every_place_is_where_it_was() -> None:
    assert PLACES.path == Path("/w/_livemart")
    assert PLACES.snapshots == Path("/w/_livemart/snapshots")
    assert PLACES.checkpoint == Path("/w/_livemart/checkpoint")
    assert PLACES.files == Path("/w/_livemart/files")
    assert PLACES.uncounted("e1") == Path("/w/_livemart/files/e1/uncounted")
    assert LOCAL.staging == Path("/w/_livemart/staging")
    assert LOCAL.lock == Path("/w/_livemart/lock")
    assert LOCAL.holder == Path("/w/_livemart/holder.json")
    assert PLACES.views == Path("/w/_livemart/views.json")
    assert PLACES.view_columns == Path("/w/_livemart/view_columns.json")
    assert PLACES.test_tables == Path("/w/_livemart/test_tables.json")
    assert LOCAL.spark_conf == Path("/w/_livemart/conf")
    assert LOCAL.connect_token == Path("/w/_livemart/connect_token")
    assert LOCAL.spark_log == Path("/w/_livemart/spark.log")


def test_a_machine_keeps_its_own_files_of_a_bucket_in_its_folder_of_state(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/state")
    eu, us = (LocalFolder(Location.parse(f"s3://mart/{it}")) for it in ("eu", "us"))

    assert eu.path.parent == us.path.parent == Path("/state/livemart")
    assert eu.path != us.path
    assert LocalFolder(Location.parse("s3://mart/eu/")).lock == eu.path / "lock"
    assert LocalFolder(Location.parse("/w")).lock == Path("/w/_livemart/lock")
    assert str(StateFolder(Location.parse("s3://mart/eu")).run) == "s3://mart/eu/_livemart/run.json"


def test_the_default_store_lies_beside_them(tmp_path: Path) -> None:
    settings = load_settings({"warehouse": str(tmp_path)}, environ={})

    assert settings.store_url == f"sqlite:///{StateFolder(tmp_path).path / 'serving.db'}"
