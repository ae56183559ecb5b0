"""The note in the store that its newest snapshot still is the newest, though nothing was new."""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa

from livemart.state.snapshots import Snapshot
from livemart.store.schema import PUBLISHED
from livemart.store.store import Store, read_state


def confirm(store: Store, snapshot: Snapshot, checked_at: datetime) -> bool:
    """Note that a snapshot is still the newest; return False if the store does not show it.

    Raises:
        PublishError: STORE_UNREACHABLE.
    """
    with store.begin() as connection:
        newest = read_state(connection).published
        if newest is None or (newest.epoch, newest.snapshot_id) != (
            snapshot.epoch,
            snapshot.snapshot_id,
        ):
            return False
        same = PUBLISHED.c.snapshot_id == snapshot.snapshot_id
        connection.execute(sa.update(PUBLISHED).where(same).values(checked_at=checked_at))
    return True
