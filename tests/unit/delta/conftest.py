"""A warehouse without tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from livemart.delta.warehouse import Warehouse
from livemart.storage.storage import Storage


@pytest.fixture
def place(tmp_path: Path) -> Path | Storage:
    """The place of the warehouse; a module may have others."""
    return tmp_path


@pytest.fixture
def warehouse(place: Path | Storage) -> Warehouse:
    """A warehouse without tables."""
    return Warehouse(place)
