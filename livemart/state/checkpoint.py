"""Opens the checkpoint of the landing stream, if it fits the snapshot log.

Used before anything lands. Delta skips a write whose batch id it has seen under the same epoch. A
lost, torn or older checkpoint would hand out such ids again, and records would vanish in silence.
"""

from __future__ import annotations

import json
import shlex
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from livemart.epoch import clock_moment
from livemart.errors import StateError
from livemart.state.atomic_files import read_file, replace_file
from livemart.storage.location import StoragePlace
from livemart.storage.opening import open_storage

EPOCH_FILE = "livemart_epoch.json"
_REPLACED = ".replaced-"
_WAY_OUT = (
    "restore the checkpoint of this warehouse, or start a new one with "
    "`build --new-epoch`: landed tables stay, and all files of the landing folder are read again. "
    "Sources with keys absorb the repeats, append-only ones skip files that they hold"
)


@dataclass(frozen=True, slots=True)
class Epoch:
    """The random id of a checkpoint, part of every transaction id written under it.

    `replaces` is the epoch of the log when this checkpoint was started from nothing, until its
    first snapshot row is written.
    """

    id: str
    replaces: str | None = None


@dataclass(frozen=True, slots=True)
class Recorded:
    """The ids in the newest row of the log."""

    epoch: str
    batch_id: int
    is_landed: Callable[[int], bool] = lambda batch_id: False
    """Returns True if landed tables carry a batch, or a later one.

    After a crash the tables may be one batch ahead of the log.
    """

    def knows(self, batch_id: int) -> bool:
        """True if anything was written under `batch_id` or a later one."""
        return self.batch_id >= batch_id or self.is_landed(batch_id)


def last_commit_at(checkpoint: StoragePlace) -> datetime | None:
    """Return when a micro-batch last ran to its end, with news or without; None if none has."""
    if (batch_id := _last_batch(checkpoint / "commits")) is None:
        return None
    entry = open_storage(checkpoint).head(f"commits/{batch_id}")
    # A look holds no lock: a new epoch may have taken the folder away.
    return None if entry is None else clock_moment(entry.modified_s)


def open_checkpoint(
    checkpoint: StoragePlace, recorded: Recorded | None, *, new_epoch: bool
) -> Epoch:
    """Return the epoch of `checkpoint`, made here if checkpoint and log are both new.

    Args:
        recorded: what was written under the newest epoch of the log; None if the log is empty.
        new_epoch: start a new checkpoint; the old one is kept beside it.

    Raises:
        StateError: CHECKPOINT_LOST, CHECKPOINT_OLDER or CHECKPOINT_TORN.
    """
    if new_epoch:
        return _start_epoch(checkpoint, recorded.epoch if recorded else None)
    epoch = read_epoch(checkpoint)
    if epoch is None:
        if recorded is None and _last_batch(checkpoint / "offsets") is None:
            return _start_epoch(checkpoint, None)
        wrote = (
            f"the snapshot log was written under epoch {recorded.epoch}"
            if recorded
            else ("it holds offsets")
        )
        raise StateError(
            "CHECKPOINT_LOST", f"{checkpoint}: has no {EPOCH_FILE}, but {wrote}", hint=_WAY_OUT
        )
    _refuse_torn(checkpoint, recorded)
    if recorded is None:
        return epoch
    if epoch.id != recorded.epoch:
        if epoch.replaces == recorded.epoch:
            return epoch
        raise StateError(
            "CHECKPOINT_LOST",
            f"{checkpoint}: found epoch {epoch.id}, the snapshot log was written under "
            f"{recorded.epoch}",
            hint=_WAY_OUT,
        )
    _refuse_older(checkpoint, recorded)
    return epoch


def replaced_checkpoints(checkpoint: StoragePlace) -> list[StoragePlace]:
    """Return the checkpoints beside this one that those of new epochs have replaced."""
    names = open_storage(checkpoint.parent).folders()
    of_replaced = f"{checkpoint.name}{_REPLACED}"
    return [checkpoint.parent / name for name in names if name.startswith(of_replaced)]


def read_epoch(checkpoint: StoragePlace) -> Epoch | None:
    """Return the epoch that `checkpoint` carries, None if it carries none.

    Raises:
        StateError: CHECKPOINT_TORN, if the file is not what was written.
    """
    path = checkpoint / EPOCH_FILE
    try:
        text = read_file(path)
    except FileNotFoundError:
        return None
    try:
        content = json.loads(text)
        return Epoch(content["epoch"], content.get("replaces"))
    except (ValueError, TypeError, KeyError) as error:
        raise StateError(
            "CHECKPOINT_TORN", f"{path}: found {text[:80]!r}", hint=_WAY_OUT
        ) from error


def _start_epoch(checkpoint: StoragePlace, replaces: str | None) -> Epoch:
    _move_away(checkpoint)
    epoch = Epoch(uuid.uuid4().hex, replaces)
    content = {"epoch": epoch.id, "replaces": epoch.replaces}
    replace_file(checkpoint / EPOCH_FILE, json.dumps(content))
    return epoch


def _move_away(checkpoint: StoragePlace) -> None:
    """Store the content of a checkpoint beside it.

    The rest of a move that was cut short has no epoch, and so the next one moves it.
    """
    storage = open_storage(checkpoint)
    if names := storage.names():
        name = f"{checkpoint.name}{_REPLACED}{uuid.uuid4().hex[:8]}"
        replaced = open_storage(checkpoint.parent / name)
        for name in names:
            replaced.put(name, storage.get(name))
        storage.delete([EPOCH_FILE])
        storage.delete(names)


def _refuse_older(checkpoint: StoragePlace, recorded: Recorded) -> None:
    """A batch runs once its offsets are written: fewer offsets than batches is an old copy."""
    planned = _last_batch(checkpoint / "offsets")
    planned = -1 if planned is None else planned
    if recorded.knows(planned + 1):
        raise StateError(
            "CHECKPOINT_OLDER",
            f"{checkpoint}: its last batch is {planned}, the warehouse holds a later one of the "
            f"same epoch (newest snapshot: batch {recorded.batch_id})",
            hint=_WAY_OUT,
        )


def _refuse_torn(checkpoint: StoragePlace, recorded: Recorded | None) -> None:
    storage, newest = open_storage(checkpoint), dict[str, int]()
    for name in storage.names():
        folder, _, file = name.rpartition("/")
        if file.isdigit():
            newest[folder] = max(int(file), newest.get(folder, -1))
    of_sources = sorted(folder for folder in newest if folder.startswith("sources/"))
    for folder in ("offsets", "commits", *of_sources):
        if (batch_id := newest.get(folder)) is None:
            continue
        content = storage.get(f"{folder}/{batch_id}")
        if _is_whole(content, is_of_source=folder in of_sources):
            continue
        path = checkpoint / folder / str(batch_id)
        is_known = recorded is not None and recorded.knows(batch_id)
        remover = "rm" if isinstance(path, Path) else "aws s3 rm"
        hint, remove = _WAY_OUT, f"remove the file, `{remover} {shlex.quote(str(path))}`"
        if folder == "commits":
            hint = f"{remove}: the batch is replayed, and what it wrote is skipped"
        elif folder == "offsets" and not is_known and newest.get("commits", -1) < batch_id:
            hint = f"{remove}: nothing was written under this batch, it is planned again"
        rest = f"torn after {len(content)} bytes" if content else "found an empty file"
        raise StateError("CHECKPOINT_TORN", f"{path}: {rest}", hint=hint)


def _last_batch(folder: StoragePlace) -> int | None:
    return max(logged_batches(folder), default=None)


def logged_batches(folder: StoragePlace) -> list[int]:
    """Return the micro-batches that one of Spark's logs holds, the first one first."""
    return sorted(int(name) for name in open_storage(folder).names() if name.isdigit())


def _is_whole(content: bytes, *, is_of_source: bool) -> bool:
    """Spark's log files: a version line, then JSON lines (`-` and numbers among the offsets)."""
    lines = content.splitlines()
    if not lines or not lines[0].startswith(b"v"):
        return False
    try:
        for line in lines[1:]:
            if line not in (b"-", b""):
                json.loads(line)
    except ValueError:
        return False
    return len(lines) > 1 or is_of_source
