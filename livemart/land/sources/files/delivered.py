"""Reads deliveries of files: the files of a micro-batch, with their state when it began.

Used by landing for sources that read the landing folder. The receipt of a delivery is
`{"files": [...], "changed": [...]}`, identities of files: those that it reads, and those of earlier
micro-batches that hold something else now, which are not read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from livemart.epoch import clock_moment
from livemart.land.sources.delivery import Delivery, DeliveryProblem
from livemart.land.sources.files.bucket import LandingPlace
from livemart.land.sources.files.folder import FileIdentity
from livemart.land.sources.files.parts import FilePart, parts_of
from livemart.land.sources.files.problems import changed, changed_since, disappeared, file_problem
from livemart.project.sources import FILES_KIND

# Such records are about this much larger than they look.
_COMPRESSED = (".gz", ".zst", ".bz2", ".parquet", ".avro")
_COMPRESSION = 8


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
