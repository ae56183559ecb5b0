"""The servers of the tests that land from one."""

from __future__ import annotations

from tests.services.fixtures import kafka, nats_server

__all__ = ["kafka", "nats_server"]
