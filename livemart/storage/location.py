"""Names a folder on a disk or in a bucket, for each engine that opens it.

Used by each storage, and where deltalake or Spark are given a table.
"""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, Self
from urllib.parse import unquote, urlsplit

# Holds all state of a warehouse beside its tables.
STATE_FOLDER = "_livemart"

# Without empty parts, and those that some engines leave out.
_URL = re.compile(r"([a-z][a-z0-9]+)://([a-z0-9][a-z0-9.-]+)((?:/(?!\.{1,2}(?:/|$))[^/?#]+)*)/?")


class StoragePlace(Protocol):
    """A folder or an object: its path, or its location."""

    @property
    def name(self) -> str: ...

    @property
    def parent(self) -> Self: ...

    def __truediv__(self, name: str, /) -> Self: ...


@dataclass(frozen=True, slots=True)
class Location:
    """A path of a disk, or a URL without a slash at its end: both as deltalake opens them.

    `scheme`: empty for a disk; `bucket` and `path`: of a URL, the path without slashes around it.
    """

    url: str
    scheme: str = ""
    bucket: str = ""
    path: str = ""

    @classmethod
    def of(cls, place: StoragePlace | str) -> Location:
        """Return the location of a path or a URL, see `parse`; a location is its own."""
        return place if isinstance(place, cls) else cls.parse(str(place))

    @classmethod
    def parse(cls, place: Path | str) -> Location:
        """Read a path or a URL.

        Raises:
            ValueError: it is no URL of a bucket: it has a user, a query, an empty part or dots.

        >>> str(Location.parse("s3://mart/eu/") / "orders"), str(Location.parse("a/b") / "c")
        ('s3://mart/eu/orders', 'a/b/c')
        """
        if isinstance(place, Path) or "://" not in place:
            return cls(str(Path(place)))
        if (match := _URL.fullmatch(place)) is None:
            # The URL itself may hold a secret.
            raise ValueError(
                "write s3://bucket/folder, without user, query, and parts that are empty or dots"
            )
        scheme, bucket, path = match.groups()
        return cls(place.rstrip("/"), scheme, bucket, path.strip("/"))

    @classmethod
    def of_spark(cls, url: str) -> Location:
        """Return the location of a file that Spark names by an encoded URL; see `spark_url`.

        >>> str(Location.of_spark("s3a://mart/eu/a%20b")), str(Location.of_spark("file:///a%20b"))
        ('s3://mart/eu/a b', '/a b')
        """
        parts = urlsplit(url)
        path = unquote(parts.path)
        if not parts.netloc:
            return cls(path)
        scheme = parts.scheme.replace("s3a", "s3")
        return cls(f"{scheme}://{parts.netloc}{path}", scheme, parts.netloc, path.strip("/"))

    def __truediv__(self, name: str) -> Location:
        path = "/".join(filter(None, (self.path, name))) if self.scheme else ""
        return Location(f"{self.url}/{name}", self.scheme, self.bucket, path)

    def __str__(self) -> str:
        return self.url

    @property
    def name(self) -> str:
        """The last part of the path or URL."""
        return self.url.rpartition("/")[2]

    @property
    def parent(self) -> Location:
        """The folder that holds this one; a whole bucket has none."""
        if not self.scheme:
            return Location(str(Path(self.url).parent))
        return Location.parse(self.url.rpartition("/")[0])

    @property
    def top(self) -> Location:
        """The whole bucket; of a disk its root."""
        return Location.parse(f"{self.scheme}://{self.bucket}" if self.scheme else "/")

    @property
    def place(self) -> Path | Location:
        """The path of a disk; in a bucket the location itself."""
        return self if self.scheme else self.on_disk

    @property
    def on_disk(self) -> Path:
        """The path of a disk.

        Raises:
            ValueError: it is in a bucket, of which a path would name a folder of this machine.
        """
        if self.scheme:
            raise ValueError(f"{self.url} is on no disk")
        return Path(self.url)

    @property
    def spark_url(self) -> str:
        """The name by which Spark opens the folder: Hadoop calls `s3` by another scheme.

        >>> Location.parse("s3://mart/eu").spark_url
        's3a://mart/eu'
        """
        return f"s3a{self.url.removeprefix('s3')}" if self.scheme == "s3" else self.url


def machine_folder(warehouse: StoragePlace) -> Path:
    """Return the folder in which this machine keeps its own files of a warehouse.

    On a disk it is the one that holds the state of the warehouse, too.
    """
    location = Location.of(warehouse)
    if not location.scheme:
        return Path(location.url, STATE_FOLDER)
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state, "livemart", hashlib.sha256(location.url.encode()).hexdigest()[:16])
