"""Divides delivered files into micro-batches, by one Structured Streaming query.

Used by landing. The query only decides *which* files belong to a micro-batch, and a tick beside the
sources makes one at every trigger. The names are taken from the checkpoint, where Spark wrote them
before the batch began. The frame that Spark hands to `foreachBatch` silently leaves out a file that
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import cache, reduce
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from pydantic import TypeAdapter

from livemart.errors import StateError
from livemart.land.sources.files.folder import GLOB, literal_folder, spelled_out
from livemart.state.atomic_files import read_file, remove_state_file, replace_file
from livemart.state.checkpoint import logged_batches
from livemart.storage.location import Location, StoragePlace
from livemart.storage.opening import open_storage
from livemart.storage.scratch import folder_until_exit

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

SLOTS_FILE = "livemart_sources.json"
_COMPACTED = ".compact"
# Spark forgets files older than this beside newer ones: never, or a late file would be lost.
_MAX_FILE_AGE = "36500d"
# Folders of the form name=value are no partitions, and one may go while it is listed.
_LISTED = {"recursiveFileLookup": "true", "ignoreMissingFiles": "true"}


_Place = TypeVar("_Place", bound=StoragePlace)


@dataclass(frozen=True, slots=True)
class Limits:
    """How much of a source one micro-batch takes; at most one of the two."""

    max_files: int | None = None
    max_bytes: int | None = None

    def is_off(self, other: Limits, ratio: float) -> bool:
        """Return whether others count something else, or so many times more or fewer bytes.

        >>> Limits(max_bytes=10).is_off(Limits(max_bytes=20), 2)
        False
        >>> Limits(max_files=1).is_off(Limits(max_bytes=20), 2)
        True
        """
        if self.max_files is None and self.max_bytes and other.max_bytes:
            less, more = sorted((self.max_bytes, other.max_bytes))
            return more > less * ratio
        return self != other


@dataclass(frozen=True, slots=True)
class Slot:
    """One file source of the query: a path pattern and the relations that read it.

    Spark knows the sources of a checkpoint by their position alone, so a slot keeps its place for
    ever. A relation that comes later, or with another path, gets a new slot and is given its
    files from the start. A removed relation leaves an empty slot, which reads nothing.
    """

    path: str
    relations: tuple[str, ...]


_SLOTS = TypeAdapter(list[Slot])


def find_unplaced(checkpoint: StoragePlace, patterns: Mapping[str, str]) -> list[str]:
    """Return the relations that `place_slots` would give a new slot, sorted."""
    placed = {
        name for slot in _still_read(kept_slots(checkpoint), patterns) for name in slot.relations
    }
    return sorted(patterns.keys() - placed)


def place_slots(checkpoint: StoragePlace, patterns: Mapping[str, str]) -> list[Slot]:
    """Return the slots of a checkpoint, with new relations added at the end, and keep them."""
    before = kept_slots(checkpoint)
    slots = _still_read(before, patterns)
    added: dict[str, list[str]] = {}
    for relation in find_unplaced(checkpoint, patterns):
        added.setdefault(patterns[relation], []).append(relation)
    slots += [Slot(pattern, tuple(names)) for pattern, names in added.items()]
    if slots != before:
        _widen_offsets(checkpoint, 1 + len(slots))
        replace_file(checkpoint / SLOTS_FILE, _SLOTS.dump_json(slots, indent=1))
    return slots


def kept_slots(checkpoint: StoragePlace) -> list[Slot]:
    """Return the slots of a checkpoint as they were placed; none before the first stream."""
    try:
        return _SLOTS.validate_json(read_file(checkpoint / SLOTS_FILE))
    except FileNotFoundError:
        return []


def seen_files(checkpoint: StoragePlace, position: int) -> frozenset[StoragePlace]:
    """Return the files of a slot that some micro-batch has been given; positions begin with 1.

    Raises:
        StateError: CHECKPOINT_TORN.
    """
    log = checkpoint / "sources" / str(position)
    # A compacted file repeats all before it.
    newest = max(_compacted(log), default=-1)
    names = [str(step) for step in logged_batches(log) if step > newest]
    if newest >= 0:
        names.append(f"{newest}{_COMPACTED}")
    return frozenset(file for name in names for _, file in _entries(log / name))


def _still_read(slots: Sequence[Slot], patterns: Mapping[str, str]) -> list[Slot]:
    return [
        Slot(slot.path, tuple(name for name in slot.relations if patterns.get(name) == slot.path))
        for slot in slots
    ]


def last_committed(checkpoint: StoragePlace) -> int:
    """Return the last micro-batch that Spark will not replay; -1 for none."""
    return max(logged_batches(checkpoint / "commits"), default=-1)


def start_stream(
    spark: SparkSession,
    landing: StoragePlace,
    checkpoint: StoragePlace,
    slots: Sequence[tuple[Slot, Limits]],
    body: Callable[[int], None],
    trigger: Literal["available_now"] | timedelta,
) -> StreamingQuery:
    """Start the query; `body` gets the id of each micro-batch.

    The tick makes a micro-batch at every trigger, and once in an `available_now` run, even if no
    file arrived.
    """
    from pyspark.sql import functions as sql

    nothing = sql.lit(None).cast("string").alias("nothing")
    tick = (
        spark.readStream.format("rate-micro-batch")
        .option("rowsPerBatch", 1)
        .option("numPartitions", 1)
        .option("startTimestamp", 0)
        .load()
        .select(nothing)
    )
    parts = [tick]
    for slot, limits in slots:
        reader = spark.readStream.format("text").option("maxFileAge", _MAX_FILE_AGE)
        if limits.max_files is not None:
            reader = reader.option("maxFilesPerTrigger", limits.max_files)
        if limits.max_bytes is not None:
            reader = reader.option("maxBytesPerTrigger", limits.max_bytes)
        if not slot.relations:
            pattern = _listed(_idle_folder())
        elif _has_refused_names(landing, slot.path):
            for name, option in _LISTED.items():
                reader = reader.option(name, option)
            reader = reader.option("pathGlobFilter", _name_filter(slot.path))
            pattern = _listed(folder_of(landing, slot.path))
        else:
            pattern = _spark_pattern(landing, slot.path)
        parts.append(reader.load(pattern).select(nothing))
    union: DataFrame = reduce(lambda one, other: one.unionAll(other), parts)

    def run(_: DataFrame, batch_id: int) -> None:
        body(batch_id)

    writer = union.writeStream.foreachBatch(run).option(
        "checkpointLocation", Location.of(checkpoint).spark_url
    )
    if not isinstance(trigger, timedelta):
        return writer.trigger(availableNow=True).start()
    milliseconds = max(1, trigger // timedelta(milliseconds=1))
    return writer.trigger(processingTime=f"{milliseconds} milliseconds").start()


@cache
def _idle_folder() -> Path:
    """Return an empty folder, which the sources without a reader look at."""
    return folder_until_exit("idle")


def files_of_batch(
    checkpoint: StoragePlace, batch_id: int, slots: Sequence[Slot]
) -> dict[str, tuple[StoragePlace, ...]]:
    """Return the files of a micro-batch by relation, as Spark planned them.

    Their names match the pattern of their slot; their folders may be any below its first one.

    Raises:
        StateError: CHECKPOINT_TORN, if the checkpoint does not name them.
    """
    ends = _offsets(checkpoint, batch_id, len(slots))
    starts = _offsets(checkpoint, batch_id - 1, len(slots)) if batch_id else [-1] * len(slots)
    files: dict[str, tuple[StoragePlace, ...]] = {}
    for position, slot in enumerate(slots, 1):
        log = checkpoint / "sources" / str(position)
        steps = range(starts[position - 1] + 1, ends[position - 1] + 1)
        paths = tuple(sorted({path for step in steps for path in _logged(log, step)}, key=str))
        for relation in slot.relations if paths else ():
            files[relation] = paths
    return files


def _offsets(checkpoint: StoragePlace, batch_id: int, count: int) -> list[int]:
    """Return the last step of each slot's source log that a micro-batch includes; -1 for none."""
    path = checkpoint / "offsets" / str(batch_id)
    try:
        _, _, _tick, *sources = read_file(path).decode().splitlines()
        steps = [-1 if text == "-" else int(json.loads(text)["logOffset"]) for text in sources]
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise _torn(path, error) from error
    return steps + [-1] * (count - len(steps))


def _logged(log: StoragePlace, step: int) -> Iterator[StoragePlace]:
    """Return the files of one step; a compacted log file repeats all before it."""
    name = str(step)
    if open_storage(log).head(name) is None:
        name = f"{min((it for it in _compacted(log) if it >= step), default=step)}{_COMPACTED}"
    return (file for batch_id, file in _entries(log / name) if batch_id == step)


def _compacted(log: StoragePlace) -> list[int]:
    """Return the last steps of the compacted files of a log."""
    names = (name for name in open_storage(log).names() if name.endswith(_COMPACTED))
    return [int(number) for name in names if (number := name.removesuffix(_COMPACTED)).isdigit()]


def _entries(path: StoragePlace) -> Iterator[tuple[int, StoragePlace]]:
    """Yield the files that a log file names, with their step."""
    try:
        _, *entries = read_file(path).decode().splitlines()
        for entry in map(json.loads, entries):
            yield int(entry["batchId"]), Location.of_spark(entry["path"]).place
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise _torn(path, error) from error


def _widen_offsets(checkpoint: StoragePlace, sources: int) -> None:
    """Tell Spark that the sources added last have given nothing yet.

    It refuses to start if a checkpoint names fewer sources than the query has. The last two
    micro-batches are what it looks at.
    """
    folder = checkpoint / "offsets"
    for batch_id in logged_batches(folder)[-2:]:
        path = folder / str(batch_id)
        lines = read_file(path).decode().splitlines()
        missing = sources - (len(lines) - 2)
        if missing > 0:
            remove_state_file(folder / f".{batch_id}.crc")
            replace_file(path, "\n".join([*lines, *["-"] * missing]))


def folder_of(landing: _Place, pattern: str) -> _Place:
    """Return the folder below which a pattern finds all of its files.

    >>> folder_of(Path("/landing"), "orders/eu/*/*.jsonl")
    PosixPath('/landing/orders/eu')
    """
    folder = literal_folder(pattern)
    return landing / folder if folder else landing


def is_refused_name(error: BaseException) -> bool:
    """Return whether a query ended by a name that came meanwhile; started again, it reads it."""
    return "java.net.URISyntaxException: Relative path in absolute URI" in str(error)


def _has_refused_names(landing: StoragePlace, pattern: str) -> bool:
    """Return whether Hadoop would meet a name with a colon while it looks for a pattern's files.

    Its globs (3.5) then refuse all of the folder, even if they do not match the name. A listing of
    the folder does not, but finds the folders below it, too.
    """
    literal, folder = literal_folder(pattern), folder_of(landing, pattern)
    if not isinstance(folder, Path):
        return ":" in literal or any(":" in name for name in open_storage(landing).names(literal))
    depth = pattern.removeprefix(literal).strip("/").count("/") + 1
    return ":" in str(folder) or any(":" in name for name in _names(folder, depth))


def _names(folder: str | Path, depth: int) -> Iterator[str]:
    """Yield the names below a folder down to a depth; none of a folder that cannot be listed."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            yield entry.name
            if depth > 1 and entry.is_dir():
                yield from _names(entry.path, depth - 1)


def _name_filter(pattern: str) -> str:
    names = sorted({PurePosixPath(path).name for path in spelled_out(pattern)})
    return names[0] if len(names) == 1 else f"{{{','.join(names)}}}"


def _listed(folder: StoragePlace) -> str:
    """Return a path by which Spark lists a folder, and not by a glob of its names.

    The braces are no wildcard, but excuse the folder from being there at the start.
    """
    if not isinstance(folder, Path):
        return _plain(folder)
    if ":" in (plain := str(folder)) and not any(sign in plain for sign in GLOB):
        # Nor may a folder on the way have a colon, but in a path without any sign of a glob.
        return plain
    return f"{_plain(folder.parent)}{{/}}{_plain(Path(folder.name))}"


def _spark_pattern(landing: StoragePlace, pattern: str) -> str:
    # Without a wildcard Spark refuses to start before the file is there.
    if not any(character in pattern for character in GLOB):
        pattern = f"{pattern[:-1]}[{pattern[-1]}]"
    return f"{_plain(landing)}/{pattern}"


def _plain(folder: StoragePlace) -> str:
    """Return a folder's path with no character of it taken for a wildcard."""
    path = Location.of(folder).spark_url
    return "".join(f"\\{sign}" if sign in GLOB else sign for sign in path)


def _torn(path: StoragePlace, error: Any) -> StateError:
    return StateError(
        "CHECKPOINT_TORN",
        f"{path}: {error}",
        hint="restore the checkpoint of this warehouse, or start a new epoch",
    )
