"""Writes down the input of a micro-batch before any of it is landed.

Used by landing for each batch. The manifest keeps the deliveries with their contents, their times
of arrival, and the versions of the tables that they met. So a replay does exactly the same as the
first attempt, or says why it cannot.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from livemart.land.sources.delivery import Delivery
from livemart.state.atomic_files import (
    numbers_of,
    remove_state_file,
    require_state_file,
    write_state_file,
)
from livemart.storage.location import StoragePlace

# Spark replays the last micro-batch; the others are kept for the files that are watched. Batches
# that read nothing leave none.
_KEPT = 1_000

Offsets = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Manifest:
    """One micro-batch: its arrival time, the table versions before it, and its input.

    `offsets`: of each source table that reads a record log, the offset behind the last record that
    was read, by partition; those of earlier micro-batches are carried on. `identities`: of the
    partitions, where the log tells them apart from others of their name.
    """

    batch_id: int
    landed_at: datetime
    versions: Mapping[str, int]
    deliveries: Sequence[Delivery] = ()
    offsets: Mapping[str, Offsets] = field(default_factory=dict)
    identities: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @property
    def relations(self) -> list[str]:
        """Return the source tables that read something, each once."""
        return list(dict.fromkeys(name for it in self.deliveries for name in it.relations))

    def without(self, names: Collection[str]) -> Manifest:
        """Return the manifest without some source tables, which go on with a log where they were.

        They are those that left the project before the micro-batch landed.
        """
        deliveries, offsets = [], dict(self.offsets)
        for delivery in self.deliveries:
            receipt = delivery.receipt
            starts = {name: start for name, (start, _) in receipt.get("read", {}).items()}
            for loss in receipt.get("lost", ()):
                # Their dead letters have not landed either.
                name, start = loss["partition"], loss["start"]
                starts[name] = min(start, starts.get(name, start))
            for name in offsets.keys() & names & set(delivery.relations):
                offsets[name] = {**offsets[name], **starts}
            if left := tuple(name for name in delivery.relations if name not in names):
                deliveries.append(replace(delivery, relations=left))
        return replace(self, deliveries=deliveries, offsets=offsets)

    @property
    def delivered_at(self) -> datetime | None:
        """When the oldest delivery came, UTC, not after its arrival; None if unknown."""
        times = [it.delivered_at for it in self.deliveries if it.delivered_at is not None]
        # A clock elsewhere may go fast.
        return min(*times, self.landed_at) if times else None


class ManifestStore:
    """Manifests of one epoch, `root/<epoch>/<batch_id>.json`."""

    def __init__(self, root: StoragePlace, epoch: str) -> None:
        self._folder = root / epoch

    def read(self, batch_id: int) -> Manifest | None:
        """Return the manifest of a micro-batch that was begun before, None if it is new.

        Raises:
            StateError: MANIFEST_TORN.
        """
        hint = "restore the file, or remove it if the batch has not landed anywhere yet"
        try:
            return require_state_file(self._path(batch_id), Manifest, hint=hint)
        except FileNotFoundError:
            return None

    def write(self, manifest: Manifest) -> None:
        """Keep a manifest, and the 999 before it; it is whole on disk when this returns."""
        write_state_file(self._path(manifest.batch_id), manifest)
        for batch_id in numbers_of(self._folder)[_KEPT:]:
            remove_state_file(self._path(batch_id))

    def newest_first(self) -> Iterator[Manifest]:
        """Yield the manifests, the last one first; each is read when its turn comes."""
        manifests = (self.read(batch_id) for batch_id in numbers_of(self._folder))
        return (manifest for manifest in manifests if manifest is not None)

    def _path(self, batch_id: int) -> StoragePlace:
        return self._folder / f"{batch_id}.json"
