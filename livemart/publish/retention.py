"""How long the changes of served models are kept for push queries."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from livemart.store.schema import CHANGES, MODELS, PUBLISHED

KEPT_SNAPSHOTS = 200


def prune(connection: Connection, now: datetime, retention: timedelta) -> None:
    """Forget snapshots, and their changes, that are neither young nor among the newest 200.

    Args:
        connection: in the publishing transaction.
        now: UTC.
        retention: below this age a snapshot is young.
    """
    ids = sa.select(PUBLISHED.c.snapshot_id)
    newest = ids.order_by(PUBLISHED.c.snapshot_id.desc()).limit(KEPT_SNAPSHOTS).subquery()
    among_newest = connection.execute(sa.select(sa.func.min(newest.c.snapshot_id))).scalar()
    young = connection.execute(
        sa.select(sa.func.min(PUBLISHED.c.snapshot_id)).where(
            PUBLISHED.c.published_at >= now - retention
        )
    ).scalar()
    oldest = min((found for found in (among_newest, young) if found is not None), default=None)
    if oldest is None:
        return
    gone = sa.delete(PUBLISHED).where(PUBLISHED.c.snapshot_id < oldest)
    if not connection.execute(gone).rowcount:
        return
    # Model by model: the key of the changes begins with it, and they may be millions.
    models: Sequence[str] = connection.execute(sa.select(MODELS.c.model)).scalars().all()
    for model in models:
        old = (CHANGES.c.model == model, CHANGES.c.snapshot_id < oldest)
        connection.execute(sa.delete(CHANGES).where(*old))
