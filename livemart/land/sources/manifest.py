"""Writes down what a micro-batch reads before it lands any of it.

Used by landing for each batch. The manifest keeps the deliveries with what they were, when they
arrived, and the versions of the tables they met: so that a replay does exactly what the first
attempt did, or says why it cannot.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from livemart.errors import StateError
from livemart.land.sources.delivery import Delivery
from livemart.state.atomic_files import numbers_of, replace_file

# Spark replays the last micro-batch; the others are kept for the files that are watched. Batches
# that read nothing leave none.
_KEPT = 1_000

Offsets = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Manifest:
    """One micro-batch: arrival time, table versions before it, what it reads.

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

    @property
    def delivered_at(self) -> datetime | None:
        """When the oldest delivery came, UTC, not after its arrival; None if nobody knows."""
        times = [it.delivered_at for it in self.deliveries if it.delivered_at is not None]
        # A clock elsewhere may go fast.
        return min(*times, self.landed_at) if times else None


class ManifestStore:
    """Manifests of one epoch, `root/<epoch>/<batch_id>.json`."""

    def __init__(self, root: Path, epoch: str) -> None:
        self._folder = root / epoch

    def read(self, batch_id: int) -> Manifest | None:
        """Return the manifest of a micro-batch that was begun before, None if it is new.

        Raises:
            StateError: MANIFEST_TORN.
        """
        path = self._path(batch_id)
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            is_of_files = "deliveries" not in content
            return Manifest(
                batch_id,
                datetime.fromisoformat(content["landed_at"]),
                content["versions"],
                _of_files(content) if is_of_files else _deliveries(content["deliveries"]),
                {} if is_of_files else content["offsets"],
                content.get("identities", {}),
            )
        except FileNotFoundError:
            return None
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise StateError(
                "MANIFEST_TORN",
                f"{path}: {error}",
                hint="restore the file, or remove it if the batch has not landed anywhere yet",
            ) from error

    def write(self, manifest: Manifest) -> None:
        """Keep a manifest, and the 999 before it; it is whole on disk when this returns."""
        self._folder.mkdir(parents=True, exist_ok=True)
        content = {
            "landed_at": manifest.landed_at.isoformat(),
            "versions": dict(manifest.versions),
            "deliveries": [
                {
                    "kind": it.kind,
                    "relations": list(it.relations),
                    "receipt": dict(it.receipt),
                    "delivered_at": it.delivered_at and it.delivered_at.isoformat(),
                }
                for it in manifest.deliveries
            ],
            "offsets": {name: dict(offsets) for name, offsets in manifest.offsets.items()},
            "identities": {name: dict(it) for name, it in manifest.identities.items() if it},
        }
        replace_file(self._path(manifest.batch_id), json.dumps(content))
        for batch_id in numbers_of(self._folder)[_KEPT:]:
            self._path(batch_id).unlink(missing_ok=True)

    def newest_first(self) -> Iterator[Manifest]:
        """Yield the manifests, the last one first; each is read when its turn comes."""
        manifests = (self.read(batch_id) for batch_id in numbers_of(self._folder))
        return (manifest for manifest in manifests if manifest is not None)

    def _path(self, batch_id: int) -> Path:
        return self._folder / f"{batch_id}.json"


def _deliveries(content: Sequence[Mapping[str, Any]]) -> tuple[Delivery, ...]:
    return tuple(
        Delivery(
            it["kind"],
            tuple(it["relations"]),
            it["receipt"],
            it["delivered_at"] and datetime.fromisoformat(it["delivered_at"]),
        )
        for it in content
    )


def _of_files(content: Mapping[str, Any]) -> tuple[Delivery, ...]:
    """Return the deliveries of a manifest that knew nothing but files."""
    readers: dict[tuple[str, ...], list[str]] = {}
    for relation, names in content["relations"].items():
        readers.setdefault(tuple(names), []).append(relation)
    read = [
        Delivery(
            "files",
            tuple(relations),
            {"files": [content["files"][name] for name in names], "changed": []},
            datetime.fromtimestamp(
                min(content["files"][name]["mtime_ns"] for name in names) / 1e9, UTC
            ),
        )
        for names, relations in readers.items()
        if names
    ]
    changed = [
        Delivery("files", tuple(it["relations"]), {"files": [], "changed": [it["now"]]})
        for it in content["changed"].values()
    ]
    return (*read, *changed)
