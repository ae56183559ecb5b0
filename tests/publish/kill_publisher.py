"""One publisher of the kill test: brings the store to a snapshot, and is killed on the way."""

from __future__ import annotations

from datetime import datetime, timedelta

from livemart.failpoints import arm, failpoint
from livemart.publish.publisher import Publication
from tests.store.stores import NOON, fill_store, make_orders, reference_tables

ORDERS = make_orders(days=3, a_day=60)


def as_of(number: int) -> datetime:
    """Return the moment of a snapshot; each has orders that the one before has not."""
    return NOON - timedelta(hours=24) + timedelta(hours=number)


def publish_number(url: str, number: int) -> Publication | None:
    """Publish the reference mart as of a snapshot's moment; the SQL of one model changed at 3."""
    return fill_store(
        url,
        reference_tables(ORDERS, as_of(number)),
        snapshot_id=number,
        as_of=as_of(number),
        fingerprints={"restaurant_top_dishes": "new" if number >= 3 else "old"},
        is_start=True,
        step=failpoint,
    )


def publish_until(point: str, url: str, number: int) -> None:
    """Publish a snapshot in a process that a failpoint kills."""
    arm(point)
    publish_number(url, number)
