"""Opens the storage of a place, whose form says which store keeps its objects.

Used where a warehouse is opened.
"""

from __future__ import annotations

import os

from livemart.storage.access import check_access
from livemart.storage.local import LocalStorage
from livemart.storage.location import Location, StoragePlace
from livemart.storage.storage import Storage


def open_storage(place: StoragePlace | str) -> Storage:
    """Return the storage of a path, a URL or a location; nothing is read yet.

    Raises:
        ConfigError, ValueError: see `check_access`.
    """
    location = Location.of(place)
    check_access(location, os.environ)
    if not location.scheme:
        return LocalStorage(location)
    from livemart.storage.object import ObjectStorage

    return ObjectStorage.open(location, os.environ)
