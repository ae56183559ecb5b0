"""The storages that each test of the protocol runs over."""

from __future__ import annotations

from tests.storages import bucket_server, memory_place, storage

__all__ = ["bucket_server", "memory_place", "storage"]
