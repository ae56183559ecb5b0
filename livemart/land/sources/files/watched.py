"""Notices files that change after they landed.

Used by landing for each micro-batch. Their new content is not read: the file becomes a dead letter
of each source that read it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from livemart.land.sources.delivery import Delivery
from livemart.land.sources.files.bucket import LandingPlace
from livemart.land.sources.files.delivered import change_delivery, changed_files_of, files_of
from livemart.land.sources.files.folder import FileIdentity
from livemart.land.sources.manifest import Manifest

_WATCHED_FILES = 1_000


@dataclass(frozen=True, slots=True)
class _Watched:
    """A file that was landed: its state when last seen, and its readers."""

    now: FileIdentity
    relations: tuple[str, ...]


class WatchedFiles:
    """The last 1,000 landed files, as they were when last seen.

    Args:
        folder: the landing folder.
        manifests: of earlier micro-batches, newest first; no more are taken than are needed.
    """

    def __init__(self, folder: LandingPlace, manifests: Iterable[Manifest]) -> None:
        self._folder = folder
        self._files: dict[str, _Watched] = {}
        needed: list[Manifest] = []
        names: set[str] = set()
        for manifest in manifests:
            needed.append(manifest)
            names.update(file.path for it in manifest.deliveries for file in files_of(it))
            if len(names) >= _WATCHED_FILES:
                break
        for manifest in reversed(needed):
            self.add(manifest)

    def add(self, manifest: Manifest) -> None:
        """Watch the files that a micro-batch has landed, and those that it found changed."""
        latest: dict[str, _Watched] = {}
        for delivery in manifest.deliveries:
            for file in files_of(delivery):
                before = latest.get(file.path) or self._files.get(file.path)
                readers = (*(before.relations if before else ()), *delivery.relations)
                latest[file.path] = _Watched(file, tuple(dict.fromkeys(readers)))
        for delivery in manifest.deliveries:
            for file in changed_files_of(delivery):
                latest[file.path] = _Watched(file, delivery.relations)
        # Landed last, watched longest.
        others = {name: file for name, file in self._files.items() if name not in latest}
        self._files = dict([*others.items(), *latest.items()][-_WATCHED_FILES:])

    def changed(self) -> list[Delivery]:
        """Return the files that hold something else now than when last seen."""
        changed: list[Delivery] = []
        for before in self._folder.touched([watched.now for watched in self._files.values()]):
            is_ours = self._folder.locate(before.path) is not None
            now = self._folder.identify(before.path) if is_ours else None
            if now is not None and not now.is_same_content(before):
                changed.append(change_delivery(now, self._files[before.path].relations))
        return changed
