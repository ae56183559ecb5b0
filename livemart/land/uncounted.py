"""Keeps landed batches until a snapshot counts them.

Used by the pipeline: a build lands all that waits before its one row of the snapshot log. Spark
brings a batch again only until it is committed, and a build commits each before dbt runs. If dbt
fails after that, or the process is killed, the next snapshot counts these batches too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pydantic import TypeAdapter

from livemart.land.landing import LandedBatch
from livemart.state.atomic_files import (
    numbers_of,
    remove_state_file,
    replace_file,
    require_state_file,
)
from livemart.state.counts import Counts
from livemart.state.drift import merge_drift
from livemart.state.places import StateFolder
from livemart.state.snapshots import Snapshot
from livemart.storage.location import StoragePlace

_BATCH = TypeAdapter(LandedBatch)


class UncountedBatches:
    """Batches of one epoch, `root/_livemart/files/<epoch>/uncounted/<batch_id>.json`."""

    def __init__(self, root: StoragePlace, epoch: str) -> None:
        self._epoch = epoch
        self._folder = StateFolder(root).uncounted(epoch)

    def keep(self, batch: LandedBatch) -> None:
        """Keep a batch until a snapshot counts it; it is whole on disk when this returns."""
        if not batch.has_records:
            return
        replace_file(self._path(batch.batch_id), _BATCH.dump_json(batch, exclude={"refusals"}))

    def merge(self, batches: Sequence[LandedBatch], newest: Snapshot | None) -> LandedBatch:
        """Return batches as one, together with all that were kept since a snapshot.

        Args:
            batches: landed by this process; at least one, none before a kept one.
            newest: the frontier; one of another epoch has counted none of these batches.

        Raises:
            StateError: MANIFEST_TORN.
        """
        counted = newest.batch_id if newest and newest.epoch == self._epoch else -1
        uncounted = (batch_id for batch_id in numbers_of(self._folder) if batch_id > counted)
        by_id = {batch_id: self._read(batch_id) for batch_id in uncounted}
        # A batch that was run again is counted once.
        by_id |= {batch.batch_id: batch for batch in batches}
        return _merged([by_id[batch_id] for batch_id in sorted(by_id)])

    def forget(self, batch_id: int) -> None:
        """Drop the batches that a snapshot has counted: this one and all before it."""
        for number in numbers_of(self._folder):
            if number <= batch_id:
                remove_state_file(self._path(number))

    def _path(self, batch_id: int) -> StoragePlace:
        return self._folder / f"{batch_id}.json"

    def _read(self, batch_id: int) -> LandedBatch:
        return require_state_file(
            self._path(batch_id),
            LandedBatch,
            hint=f"restore the file, or remove it: the rows of batch {batch_id} stay landed, "
            "the next snapshot will not count them",
        )


def _merged(batches: Sequence[LandedBatch]) -> LandedBatch:
    """Return the landed batches of one pass as one: the last id and versions, all counts."""
    counts: dict[str, Counts] = {}
    for batch in batches:
        for relation, of_batch in batch.counts.items():
            counts[relation] = counts.get(relation, Counts()) + of_batch
    times = [batch.newest_event_time for batch in batches if batch.newest_event_time is not None]
    delivered = [batch.delivered_at for batch in batches if batch.delivered_at is not None]
    return replace(
        batches[-1],
        counts=counts,
        newest_event_time=max(times, default=None),
        has_records=any(batch.has_records for batch in batches),
        delivered_at=min(delivered, default=None),
        drift=merge_drift(batch.drift for batch in batches),
    )
