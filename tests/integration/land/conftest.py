"""The services of the tests that land from them."""

from __future__ import annotations

from tests.services.fixtures import connect, database, kafka, nats_server

__all__ = ["connect", "database", "kafka", "nats_server"]
