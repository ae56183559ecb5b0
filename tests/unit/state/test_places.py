"""Warehouses of earlier versions are found again: the places of the state stay as they are."""

from __future__ import annotations

from pathlib import Path

from livemart.settings import load_settings
from livemart.state.places import StateFolder

PLACES = StateFolder(Path("/w"))


def test_every_place_is_where_it_was() -> None:
    assert PLACES.path == Path("/w/_livemart")
    assert PLACES.snapshots == Path("/w/_livemart/snapshots")
    assert PLACES.checkpoint == Path("/w/_livemart/checkpoint")
    assert PLACES.files == Path("/w/_livemart/files")
    assert PLACES.uncounted("e1") == Path("/w/_livemart/files/e1/uncounted")
    assert PLACES.staging == Path("/w/_livemart/staging")
    assert PLACES.lock == Path("/w/_livemart/lock")
    assert PLACES.holder == Path("/w/_livemart/holder.json")
    assert PLACES.views == Path("/w/_livemart/views.json")
    assert PLACES.view_columns == Path("/w/_livemart/view_columns.json")
    assert PLACES.spark_conf == Path("/w/_livemart/conf")
    assert PLACES.connect_token == Path("/w/_livemart/connect_token")
    assert PLACES.spark_log == Path("/w/_livemart/spark.log")


def test_the_default_store_lies_beside_them(tmp_path: Path) -> None:
    settings = load_settings({"warehouse": str(tmp_path)}, environ={})

    assert settings.store_url == f"sqlite:///{StateFolder(tmp_path).path / 'serving.db'}"
