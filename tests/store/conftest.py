"""Stores for the tests of the store."""

from __future__ import annotations

from tests.store.fixtures import new_store, postgres, postgres_binaries, reader, store_url  # noqa: F401
