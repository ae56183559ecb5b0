"""Notices files that change after they landed.

Used by landing for each micro-batch. Their new content is not read: the file becomes a dead letter
of each source that read it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from livemart.land.files.folder import LandingFolder
from livemart.land.files.manifest import Changed, Manifest

_WATCHED_FILES = 1_000


class WatchedFiles:
    """The last 1,000 landed files, as they were when last seen.

    Args:
        folder: where they lie.
        manifests: of earlier micro-batches, newest first; no more are taken than are needed.
    """

    def __init__(self, folder: LandingFolder, manifests: Iterable[Manifest]) -> None:
        self._folder = folder
        self._files: dict[str, Changed] = {}
        needed: list[Manifest] = []
        names: set[str] = set()
        for manifest in manifests:
            needed.append(manifest)
            names |= manifest.files.keys()
            if len(names) >= _WATCHED_FILES:
                break
        for manifest in reversed(needed):
            self.add(manifest)

    def add(self, manifest: Manifest) -> None:
        """Watch what a micro-batch has landed, and what it found changed as it is now."""
        latest: dict[str, Changed] = {}
        for relation, paths in manifest.relations.items():
            for path in paths:
                known = latest.get(path) or self._files.get(path)
                readers = (*known.relations, relation) if known else (relation,)
                latest[path] = Changed(manifest.files[path], tuple(dict.fromkeys(readers)))
        latest |= manifest.changed
        # Landed last, watched longest.
        kept = {name: file for name, file in self._files.items() if name not in latest}
        self._files = dict([*kept.items(), *latest.items()][-_WATCHED_FILES:])

    def changed(self) -> Mapping[str, Changed]:
        """Return the files that hold something else now than when last seen."""
        changed = {}
        for name, watched in self._files.items():
            if not self._folder.is_touched(watched.now):
                continue
            path = self._folder.locate(name)
            now = self._folder.identify(path) if path else None
            if now is not None and not now.is_same_content(watched.now):
                changed[name] = Changed(now, watched.relations)
        return changed
