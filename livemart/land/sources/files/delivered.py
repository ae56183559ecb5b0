"""Reads deliveries of files, with their state when their batch began, and notices later changes.

Used by landing for sources that read the landing folder. The receipt of a delivery is
`{"files": [...], "changed": [...]}`, identities of files: those that it reads, and those of earlier
micro-batches that hold something else now, which are not read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass

from livemart.epoch import clock_moment
from livemart.land.sources.delivery import Delivery, DeliveryProblem
from livemart.land.sources.files.bucket import LandingPlace
from livemart.land.sources.files.folder import FileIdentity
from livemart.land.sources.files.parts import FilePart, parts_of
from livemart.land.sources.files.problems import changed, changed_since, disappeared, file_problem
from livemart.land.sources.manifest import Manifest
from livemart.project.sources import FILES_KIND

# Such records are about this much larger than they look.
_COMPRESSED = (".gz", ".zst", ".bz2", ".parquet", ".avro")
_COMPRESSION = 8

_WATCHED_FILES = 1_000


class DeliveredFiles:
    """The deliveries of a landing folder."""

    kind = FILES_KIND

    def __init__(self, folder: LandingPlace) -> None:
        self._folder = folder

    def plan(self, files: Mapping[str, tuple[str, ...]]) -> list[Delivery]:
        """Look at the files of a new micro-batch: sorted names by relation.

        Raises:
            SourceError: SOURCE_FILE_CHANGED, if one has gone since Spark listed it.
        """
        readers: dict[tuple[str, ...], list[str]] = {}
        for relation, names in files.items():
            readers.setdefault(names, []).append(relation)
        identities = {
            name: self._identify(name) for name in sorted({n for ns in readers for n in ns})
        }
        deliveries = []
        for names, relations in readers.items():
            oldest = min(identities[name].mtime_ns for name in names)
            deliveries.append(
                Delivery(
                    FILES_KIND,
                    tuple(relations),
                    {"files": [asdict(identities[name]) for name in names], "changed": []},
                    clock_moment(oldest / 1e9),
                )
            )
        return deliveries

    def check(self, delivery: Delivery, batch_id: int) -> Delivery:
        """Return the delivery unchanged.

        Raises:
            SourceError: SOURCE_FILE_CHANGED, if one of its files is not what it was.
        """
        for before in files_of(delivery):
            if self._folder.locate(before.path) is None:
                continue
            now = self._folder.identify(before.path)
            if now is None:
                raise disappeared(self._folder, before.path)
            if now.size and not now.is_same_content(before):
                raise changed(before, now, batch_id)
        return delivery

    def size(self, delivery: Delivery) -> int:
        """Return about how many bytes its records are."""
        return sum(
            file.size * (_COMPRESSION if file.path.endswith(_COMPRESSED) else 1)
            for file in files_of(delivery)
        )

    def problems(self, delivery: Delivery) -> Sequence[DeliveryProblem]:
        """Return the mistakes of its files."""
        read = [file_problem(self._folder, file) for file in files_of(delivery)]
        return [
            *(problem for problem in read if problem is not None),
            *(changed_since(now) for now in changed_files_of(delivery)),
        ]

    def parts(self, delivery: Delivery, record_format: str) -> Sequence[FilePart]:
        """Return the parts of its files to read; files outside of the folder are left out."""
        return [
            part
            for file in files_of(delivery)
            if (place := self._folder.locate(file.path)) is not None
            for part in parts_of(file.path, place, record_format, file.digest)
        ]

    def _identify(self, name: str) -> FileIdentity:
        if self._folder.locate(name) is None:
            # Not read; its dead letter says so.
            return FileIdentity(name, 0, 0, "")
        identity = self._folder.identify(name)
        if identity is None:
            raise disappeared(self._folder, name)
        return identity


def files_of(delivery: Delivery) -> list[FileIdentity]:
    """Return the files that a delivery reads; none of another kind."""
    return [FileIdentity(**file) for file in delivery.receipt.get("files", ())]


def changed_files_of(delivery: Delivery) -> list[FileIdentity]:
    """Return the files that were changed after they landed, as they are now."""
    return [FileIdentity(**file) for file in delivery.receipt.get("changed", ())]


def change_delivery(now: FileIdentity, relations: tuple[str, ...]) -> Delivery:
    """Return a delivery that says that a file has changed, for the tables that had read it."""
    return Delivery(FILES_KIND, relations, {"files": [], "changed": [asdict(now)]})


@dataclass(frozen=True, slots=True)
class _Watched:
    """A file that was landed: its state when last seen, and its readers."""

    now: FileIdentity
    relations: tuple[str, ...]


class WatchedFiles:
    """The last 1,000 landed files, as they were when last seen.

    The new content of a changed file is not read: it becomes a dead letter of each source that had
    read the file.

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
