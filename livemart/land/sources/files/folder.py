"""Finds files below a landing folder on a disk, each with the identity of its content.

Used by landing and by the count of waiting files. Nothing outside the folder is ever read.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from itertools import takewhile
from pathlib import Path, PurePosixPath
from stat import S_ISREG

from livemart.errors import SourceError
from livemart.storage.location import StoragePlace

_DIGEST_BLOCK = 1 << 20
_DIGEST_BLOCKS = 64
# Signs of a pattern that stand for others.
GLOB = "*?[]{}\\"
# Begins the digest of a file in a bucket.
ETAG = "etag:"
# The innermost ones, which hold no others.
_BRACES = re.compile(r"\{([^{}]*)\}")


@dataclass(frozen=True, slots=True)
class FileIdentity:
    """A file when it was first seen: size, modification time, digest of its content.

    If a file has more than 64 MiB, 64 blocks from start to end and the time stand for the content.
    In a bucket its ETag stands for it. `path` is relative to the landing folder.
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
        return self.size > _DIGEST_BLOCK * _DIGEST_BLOCKS and not self.digest.startswith(ETAG)


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file that waits: where it is, its size in bytes, when it was changed in POSIX seconds."""

    place: StoragePlace
    size: int
    modified_s: float


class LandingFolder:
    """A folder of a disk that files are delivered to. Nothing else is ever read."""

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()

    def locate(self, relative: str) -> Path | None:
        """Return where a file is, None if its path or a link in it leads out of the folder."""
        path = self.root / relative
        if not is_below(relative) or not path.resolve().is_relative_to(self.root.resolve()):
            return None
        return path

    def relative(self, place: StoragePlace) -> str:
        """Return a path below the folder as it appears in `_origin` and manifests.

        Raises:
            SourceError: LANDING_MOVED, of a path that Spark has listed below another folder.
        """
        if not isinstance(place, Path) or not place.is_relative_to(self.root):
            raise moved(place, self.root)
        return place.relative_to(self.root).as_posix()

    def name_in(self, error: OSError) -> str | None:
        """Return the path below the folder that an error speaks of, None if it is of another."""
        path = (
            Path(os.fsdecode(error.filename)) if isinstance(error.filename, str | bytes) else None
        )
        if path is None or not path.is_relative_to(self.root):
            return None
        return self.relative(path)

    def has_folder(self, name: str) -> bool:
        """Return whether a folder below this one can be looked into."""
        return (self.root / name).is_dir()

    def touched(self, files: Sequence[FileIdentity]) -> list[FileIdentity]:
        """Return those that are still there and may have been changed: a look at their times."""
        return [file for file in files if self._is_touched(file)]

    def _is_touched(self, identity: FileIdentity) -> bool:
        try:
            status = (self.root / identity.path).stat()
        except OSError:
            return False
        return (status.st_size, status.st_mtime_ns) != (identity.size, identity.mtime_ns)

    def found(self, pattern: str) -> Iterator[FoundFile]:
        """Yield the files that Spark reads by a pattern."""
        for path in {path for glob in spelled_out(pattern) for path in self.root.glob(glob)}:
            if is_spelled(path.name) and not is_hidden(self.relative(path)):
                try:
                    status = path.stat()
                except FileNotFoundError:
                    continue
                if S_ISREG(status.st_mode):
                    yield FoundFile(path, status.st_size, status.st_mtime)

    def names(self) -> Iterator[str]:
        """Yield the files that are not hidden, by their names below the folder."""
        for place, folders, names in os.walk(self.root):
            folders[:] = sorted(name for name in folders if not is_hidden(name))
            below = self.relative(Path(place))
            for name in names:
                if not is_hidden(name):
                    yield name if below == "." else f"{below}/{name}"

    def size(self, name: str) -> int:
        """Return the size of a file in bytes; FileNotFoundError if it was removed."""
        return (self.root / name).stat().st_size

    def identify(self, name: str) -> FileIdentity | None:
        """Return the present state of a file, None if it was removed."""
        try:
            with (self.root / name).open("rb") as file:
                status = os.fstat(file.fileno())
                digest = _digest(file, status.st_size)
        except FileNotFoundError:
            return None
        return FileIdentity(name, status.st_size, status.st_mtime_ns, digest)


def is_below(relative: str) -> bool:
    """Return whether a path leads to a place below the folder that it starts from."""
    parts = PurePosixPath(relative).parts
    return bool(parts) and parts[0] != "/" and ".." not in parts


def is_hidden(name: str) -> bool:
    """Names that start with . or _ are still being written, or not meant for us."""
    return any(part.startswith((".", "_")) for part in name.split("/"))


def moved(place: StoragePlace, root: StoragePlace) -> SourceError:
    """Return the error of a file that Spark has listed below another landing folder."""
    return SourceError(
        "LANDING_MOVED",
        f"{place}: the batch that is to land began with this file, which is not below the "
        f"landing folder, {root}",
        hint="run once with the folder of before as `landing`, then with the new one; or "
        "run `build --new-epoch`, which reads all files of the new one again",
    )


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


def literal_folder(pattern: str) -> str:
    """Return the folder below which a pattern finds all of its files; empty for the first one.

    >>> literal_folder("orders/eu/*/*.jsonl"), literal_folder("*.csv")
    ('orders/eu', '')
    """
    folders = pattern.split("/")[:-1]
    is_literal = (not any(sign in part for sign in GLOB) for part in folders)
    return "/".join(part for part, _ in zip(folders, takewhile(bool, is_literal), strict=False))


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
