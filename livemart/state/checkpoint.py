"""Opens the checkpoint of the landing stream, if it fits the snapshot log.

Used before anything lands. Delta skips a write whose batch id it has seen under the same epoch. A
lost, torn or older checkpoint would hand out such ids again, and records would vanish in silence.
"""

from __future__ import annotations

import json
import os
import shlex
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from livemart.errors import StateError
from livemart.state.atomic_files import replace_file

EPOCH_FILE = "livemart_epoch.json"
_WAY_OUT = (
    "restore the checkpoint of this warehouse, or start a new one with "
    "`build --new-epoch`: landed tables stay, all files below the landing folder are read again; "
    "sources with keys absorb the repeats, append-only ones skip files that they hold"
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
    """The ids in the newest row of the log, and whether landed tables carry a batch or a later one.

    The tables may be one batch ahead of the log, after a crash.
    """

    epoch: str
    batch_id: int
    is_landed: Callable[[int], bool] = lambda batch_id: False

    def knows(self, batch_id: int) -> bool:
        """True if anything was written under `batch_id` or a later one."""
        return self.batch_id >= batch_id or self.is_landed(batch_id)


def last_commit_at(checkpoint: Path) -> datetime | None:
    """Return when a micro-batch last ran to its end, with news or without; None if none has."""
    commits = checkpoint / "commits"
    # A look holds no lock: a new epoch may take the folder away meanwhile.
    with suppress(FileNotFoundError):
        if (batch_id := _last_batch(commits)) is not None:
            return datetime.fromtimestamp((commits / str(batch_id)).stat().st_mtime, UTC)
    return None


def open_checkpoint(checkpoint: Path, recorded: Recorded | None, *, new_epoch: bool) -> Epoch:
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


def read_epoch(checkpoint: Path) -> Epoch | None:
    """Return the epoch that `checkpoint` carries, None if it carries none.

    Raises:
        StateError: CHECKPOINT_TORN, if the file is not what was written.
    """
    path = checkpoint / EPOCH_FILE
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return Epoch(content["epoch"], content.get("replaces"))
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, KeyError) as error:
        raise StateError(
            "CHECKPOINT_TORN", f"{path}: found {path.read_bytes()[:80]!r}", hint=_WAY_OUT
        ) from error


def _start_epoch(checkpoint: Path, replaces: str | None) -> Epoch:
    if checkpoint.exists():
        replaced = checkpoint.with_name(f"{checkpoint.name}.replaced-{uuid.uuid4().hex[:8]}")
        checkpoint.rename(replaced)
    epoch = Epoch(uuid.uuid4().hex, replaces)
    content = {"epoch": epoch.id, "replaces": epoch.replaces}
    replace_file(checkpoint / EPOCH_FILE, json.dumps(content))
    return epoch


def _refuse_older(checkpoint: Path, recorded: Recorded) -> None:
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


def _refuse_torn(checkpoint: Path, recorded: Recorded | None) -> None:
    committed = _last_batch(checkpoint / "commits")
    folders = [checkpoint / "offsets", checkpoint / "commits"]
    folders += sorted(path for path in checkpoint.glob("sources/*") if path.is_dir())
    for folder in folders:
        batch_id = _last_batch(folder)
        if batch_id is None or _is_whole(folder / str(batch_id)):
            continue
        path = folder / str(batch_id)
        is_known = recorded is not None and recorded.knows(batch_id)
        hint, remove = _WAY_OUT, f"remove the file, `rm {shlex.quote(str(path))}`"
        if folder.name == "commits":
            hint = f"{remove}: the batch is replayed, and what it wrote is skipped"
        elif folder.name == "offsets" and not is_known and (committed or -1) < batch_id:
            hint = f"{remove}: nothing was written under this batch, it is planned again"
        size = path.stat().st_size
        rest = f"torn after {size} bytes" if size else "found an empty file"
        raise StateError("CHECKPOINT_TORN", f"{path}: {rest}", hint=hint)


def _last_batch(folder: Path) -> int | None:
    return max(logged_batches(folder), default=None)


def logged_batches(folder: Path) -> list[int]:
    """Return the micro-batches that one of Spark's logs holds, the first one first."""
    names = os.listdir(folder) if folder.is_dir() else ()
    return sorted(int(name) for name in names if name.isdigit())


def _is_whole(path: Path) -> bool:
    """Spark's log files: a version line, then JSON lines (`-` and numbers among the offsets)."""
    lines = path.read_bytes().splitlines()
    if not lines or not lines[0].startswith(b"v"):
        return False
    try:
        for line in lines[1:]:
            if line not in (b"-", b""):
                json.loads(line)
    except ValueError:
        return False
    return len(lines) > 1 or path.parent.parent.name == "sources"
