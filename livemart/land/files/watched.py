"""Landed files that are looked at again: nobody reads what somebody changes in them after all."""

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
        found: dict[str, Changed] = {}
        for relation, paths in manifest.relations.items():
            for path in paths:
                known = found.get(path) or self._files.get(path)
                readers = (*known.relations, relation) if known else (relation,)
                found[path] = Changed(manifest.files[path], tuple(dict.fromkeys(readers)))
        found |= manifest.changed
        # Landed last, watched longest.
        kept = {name: file for name, file in self._files.items() if name not in found}
        self._files = dict([*kept.items(), *found.items()][-_WATCHED_FILES:])

    def changed(self) -> Mapping[str, Changed]:
        """Return the files that hold something else now than when last seen."""
        found = {}
        for name, watched in self._files.items():
            if not self._folder.is_touched(watched.now):
                continue
            path = self._folder.locate(name)
            now = self._folder.identify(path) if path else None
            if now is not None and not now.is_same_content(watched.now):
                found[name] = Changed(now, watched.relations)
        return found
