"""Finds files below the landing folder, each with the identity of its content.

Used by landing and by the count of waiting files. Nothing outside the folder is ever read.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path, PurePosixPath

from livemart.errors import SourceError

_DIGEST_BLOCK = 1 << 20
_DIGEST_BLOCKS = 64
# The innermost ones, which hold no others.
_BRACES = re.compile(r"\{([^{}]*)\}")


@dataclass(frozen=True, slots=True)
class FileIdentity:
    """A file when it was first seen: size, modification time, digest of its content.

    If a file has more than 64 MiB, 64 blocks from start to end and the time stand for the content.
    `path` is relative to the landing folder.
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
        """Return a path below the folder as it appears in `_origin` and manifests.

        Raises:
            SourceError: LANDING_MOVED, of a path that Spark has listed below another folder.
        """
        if not path.is_relative_to(self.root):
            raise SourceError(
                "LANDING_MOVED",
                f"{path}: the batch that is to land began with this file, which is not below the "
                f"landing folder, {self.root}",
                hint="run once with the folder of before as `landing`, then with the new one; or "
                "run `build --new-epoch`, which reads all files of the new one again",
            )
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
        """Return the files that Spark reads by a pattern, sorted by name."""
        paths = {path for glob in spelled_out(pattern) for path in self.root.glob(glob)}
        return sorted(
            path
            for path in paths
            if path.is_file() and is_spelled(path.name) and not self.is_hidden(path)
        )

    def is_hidden(self, path: Path) -> bool:
        """Names that start with . or _ are still being written, or not meant for us."""
        return any(part.startswith((".", "_")) for part in path.relative_to(self.root).parts)

    def identify(self, path: Path) -> FileIdentity | None:
        """Return the present state of the file, None if it was removed."""
        try:
            with path.open("rb") as file:
                status = os.fstat(file.fileno())
                digest = _digest(file, status.st_size)
        except FileNotFoundError:
            return None
        return FileIdentity(self.relative(path), status.st_size, status.st_mtime_ns, digest)


def is_spelled(name: str) -> bool:
    """Return whether Java, and so Spark, can name a file: it finds none whose name is no UTF-8."""
    return not any("\udc80" <= sign <= "\udcff" for sign in name)


def matches(name: str, pattern: str) -> bool:
    """Return whether a pattern reads a file: by its name, or as one in a folder that it names.

    If writers made such a folder for one table, its `column=value` folders are parts of it.

    Args:
        name: of the file, below the landing folder.
        pattern: glob of a source.

    >>> matches("orders/1.csv", "orders/*"), matches("orders/new/1.csv", "*/*.csv")
    (True, False)
    >>> matches("orders/a.parquet/day=1/part-0.parquet", "orders/*.parquet")
    True
    """
    parts = name.split("/")
    named = [parts]
    while len(parts := parts[:-1]) > 0:
        named.append(parts)
        if "=" not in parts[-1]:
            break
    return any(
        len(parts) == len(globs) and all(map(fnmatchcase, parts, globs))
        for globs in _parts_of(pattern)
        for parts in named
    )


@lru_cache
def _parts_of(pattern: str) -> list[list[str]]:
    return [spelled.split("/") for spelled in spelled_out(pattern)]


def spelled_out(pattern: str) -> list[str]:
    """Return patterns of Python's that together find the files of one of Hadoop's.

    >>> spelled_out("{eu,us}/[^a]*.{csv,json{,l}}")
    ['eu/[!a]*.csv', 'eu/[!a]*.json', 'eu/[!a]*.jsonl', 'us/[!a]*.csv', 'us/[!a]*.json', \
'us/[!a]*.jsonl']
    """
    if (braces := _BRACES.search(pattern)) is None:
        return [pattern.replace("[^", "[!")]
    before, after = pattern[: braces.start()], pattern[braces.end() :]
    chosen = (f"{before}{choice}{after}" for choice in braces[1].split(","))
    return sorted({spelled for pattern in chosen for spelled in spelled_out(pattern)})


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
