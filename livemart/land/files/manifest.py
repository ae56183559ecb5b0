"""Writes down the files that a micro-batch reads before it lands any of them.

Used by landing for each batch, and for the files that it watches. Spark replays a micro-batch by
the names of its files alone. The manifest also keeps what those files were, when they arrived, and
the versions of the tables they met: so that a replay does exactly what the first attempt did, or
says why it cannot.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from livemart.errors import StateError
from livemart.land.files.folder import FileIdentity
from livemart.state.atomic_files import numbers_of, replace_file

# Spark replays the last micro-batch; the others are kept for the files that are watched. Batches
# without files leave none.
_KEPT = 1_000


@dataclass(frozen=True, slots=True)
class Changed:
    """A file that was changed after it was landed: what it is now, and who read it before."""

    now: FileIdentity
    relations: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Manifest:
    """One micro-batch: arrival time, table versions before it, files by relation.

    `changed`: files of earlier micro-batches that have other content now, with what they are now.
    """

    batch_id: int
    landed_at: datetime
    versions: Mapping[str, int]
    relations: Mapping[str, tuple[str, ...]]
    files: Mapping[str, FileIdentity]
    changed: Mapping[str, Changed] = field(default_factory=dict)

    @property
    def delivered_at(self) -> datetime | None:
        """Modification time of the oldest file, UTC, not after its arrival; None without files."""
        times = [file.mtime_ns for file in self.files.values()]
        if not times:
            return None
        # A clock elsewhere may go fast.
        return min(datetime.fromtimestamp(min(times) / 1e9, UTC), self.landed_at)


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
            return Manifest(
                batch_id,
                datetime.fromisoformat(content["landed_at"]),
                content["versions"],
                {name: tuple(files) for name, files in content["relations"].items()},
                {name: FileIdentity(**known) for name, known in content["files"].items()},
                {
                    name: Changed(FileIdentity(**known["now"]), tuple(known["relations"]))
                    for name, known in content["changed"].items()
                },
            )
        except FileNotFoundError:
            return None
        except (ValueError, TypeError, KeyError) as error:
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
            "relations": {name: list(files) for name, files in manifest.relations.items()},
            "files": {name: asdict(identity) for name, identity in manifest.files.items()},
            "changed": {name: asdict(changed) for name, changed in manifest.changed.items()},
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
