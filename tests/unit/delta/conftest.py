"""A warehouse without tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from livemart.delta.warehouse import Warehouse


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    """A warehouse without tables."""
    return Warehouse(tmp_path)
