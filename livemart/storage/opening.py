"""Opens the storage of a place: a kind of store is one line here, and one file beside it.

Used where a warehouse is opened.
"""

from __future__ import annotations

import os

from livemart.extras import require_extra
from livemart.storage.local import LocalStorage
from livemart.storage.location import Location, StoragePlace
from livemart.storage.storage import Storage


def open_storage(place: StoragePlace | str) -> Storage:
    """Return the storage of a path, a URL or a location; nothing is read yet.

    Raises:
        ConfigError: EXTRA_MISSING; ValueError: a URL that names no bucket of a known kind, or
        credentials that the environment lacks.
    """
    location = Location.of(place)
    match location.scheme:
        case "":
            return LocalStorage(location)
        case "s3":
            require_extra("s3")
            from livemart.storage.object import ObjectStorage

            return ObjectStorage.open(location, os.environ)
    raise ValueError("name a folder, or s3://bucket/folder: no store of another kind is opened")
