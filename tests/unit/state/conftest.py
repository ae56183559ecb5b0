"""The places in which the tests keep state."""

from __future__ import annotations

from tests.storages import bucket_server, memory_place, place

__all__ = ["bucket_server", "memory_place", "place"]
