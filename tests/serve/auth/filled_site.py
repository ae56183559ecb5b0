"""A site with rows to ask for, a clock that a test moves, and readings of answers."""

from __future__ import annotations

from datetime import UTC, datetime

from tests.serve.apps import Site
from tests.store.stores import fill_store, reference_tables

TILES = "/v1/restaurants/r1/metrics"
ORIGIN = {"Origin": "http://127.0.0.1:8000"}


class Clock:
    """A wall clock that a test moves."""

    def __init__(self) -> None:
        self.now = datetime(2026, 3, 2, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


def fill(one: Site) -> None:
    fill_store(one.url, reference_tables([]))
    one.until(lambda: one.shows(1))


def other_sign(sign: str) -> str:
    return "0" if sign != "0" else "1"


def code_of(response: object) -> str:
    return str(response.json()["code"])  # type: ignore[attr-defined]
