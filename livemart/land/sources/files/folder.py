"""Finds files below the landing folder, each with what tells its content.

Used by landing and by whoever tells what waits. Nothing outside the folder is ever read.
"""

from __future__ import annotations

import hashlib
import io
import os
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

_DIGEST_BLOCK = 1 << 20
_DIGEST_BLOCKS = 64


@dataclass(frozen=True, slots=True)
class FileIdentity:
    """What a file was when it was first seen: size, modification time, digest of its content.

    Of more than 64 MiB, 64 blocks from start to end and the time stand for the content. `path` is
    relative to the landing folder.
    """

    path: str
    size: int
    mtime_ns: int
    digest: str

    def is_same_content(self, other: FileIdentity) -> bool:
        """A file put back from a copy has the same content; a large one must have its time too."""
        is_alike = (self.size, self.digest) == (other.size, other.digest)
        # Between the blocks of a large file anything may have been changed.
        return is_alike and (not self.is_sampled or self.mtime_ns == other.mtime_ns)

    @property
    def is_sampled(self) -> bool:
        """Return whether the digest is of a part of the content only."""
        return self.size > _DIGEST_BLOCK * _DIGEST_BLOCKS


class LandingFolder:
    """The folder that files are delivered to. Nothing outside it is ever read."""

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()

    def locate(self, relative: str) -> Path | None:
        """Return where a file is, None if its path or a link in it leads out of the folder."""
        path = self.root / relative
        parts = PurePosixPath(relative).parts
        if not parts or parts[0] == "/" or ".." in parts:
            return None
        if not path.resolve().is_relative_to(self.root.resolve()):
            return None
        return path

    def relative(self, path: Path) -> str:
        """Return a path below the folder as it appears in `_origin` and manifests."""
        return path.relative_to(self.root).as_posix()

    def name_in(self, error: OSError) -> str | None:
        """Return the path below the folder that an error speaks of, None if it is of another."""
        path = (
            Path(os.fsdecode(error.filename)) if isinstance(error.filename, str | bytes) else None
        )
        if path is None or not path.is_relative_to(self.root):
            return None
        return self.relative(path)

    def is_touched(self, identity: FileIdentity) -> bool:
        """Return whether a file that is still there may have been changed: a look at its times."""
        try:
            status = (self.root / identity.path).stat()
        except OSError:
            return False
        return (status.st_size, status.st_mtime_ns) != (identity.size, identity.mtime_ns)

    def find(self, pattern: str) -> list[Path]:
        """Return the files that a pattern reads, sorted by name."""
        paths = self.root.glob(pattern)
        return sorted(path for path in paths if path.is_file() and not self.is_hidden(path))

    def is_hidden(self, path: Path) -> bool:
        """Names that start with . or _ are still being written, or not meant for us."""
        return any(part.startswith((".", "_")) for part in path.relative_to(self.root).parts)

    def matches(self, path: Path, pattern: str) -> bool:
        """Return whether a pattern reads the file."""
        relative = PurePosixPath(self.relative(path))
        return len(relative.parts) == len(PurePosixPath(pattern).parts) and relative.match(pattern)

    def identify(self, path: Path) -> FileIdentity | None:
        """Return what the file is now, None if it is gone."""
        try:
            with path.open("rb") as file:
                status = os.fstat(file.fileno())
                digest = _digest(file, status.st_size)
        except FileNotFoundError:
            return None
        return FileIdentity(self.relative(path), status.st_size, status.st_mtime_ns, digest)


def _digest(file: io.BufferedReader, size: int) -> str:
    """Return the digest of the content, or of blocks that are spread evenly over it."""
    content = hashlib.sha256()
    last = max(0, size - _DIGEST_BLOCK)
    count = min(_DIGEST_BLOCKS, -(-size // _DIGEST_BLOCK))
    for number in range(count):
        is_whole = size <= _DIGEST_BLOCK * _DIGEST_BLOCKS
        file.seek(number * _DIGEST_BLOCK if is_whole else last * number // (count - 1))
        content.update(file.read(_DIGEST_BLOCK))
    return content.hexdigest()
