"""The broker of the tests that land from one."""

from __future__ import annotations

from tests.services.fixtures import kafka

__all__ = ["kafka"]
