"""Services that tests of this folder share."""

from __future__ import annotations

from tests.services.fixtures import kafka

__all__ = ["kafka"]
