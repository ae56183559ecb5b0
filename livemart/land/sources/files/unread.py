"""Finds delivered files that no source reads, and says why.

Used by the commands that look at a warehouse, and after a pass. A misspelled `path` would else be
silence: the files are there, and nothing lands.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import islice

from livemart.errors import StorageError
from livemart.land.sources.files.bucket import LandingPlace, open_landing
from livemart.land.sources.files.folder import is_spelled, matches
from livemart.land.sources.files.stream import kept_slots
from livemart.state.places import StateFolder
from livemart.storage.location import StoragePlace

# To look at more would delay what is asked for.
_MOST_FILES = 20_000
_NAMED = 5
# From here on a pattern looks like a path.
_LIKE = 0.5


@dataclass(frozen=True, slots=True)
class UnreadFiles:
    """Files of one folder that no source reads, `files` of them.

    `example`: one of them, below the landing folder, as text. `why`: what is wrong, and what to do.
    """

    folder: str
    files: int
    example: str
    why: str

    def __str__(self) -> str:
        more = f" and {self.files - 1:,} more" if self.files > 1 else ""
        return f"unread {self.example}{more}: {self.why}"


def unread_files(warehouse: StoragePlace, landing: StoragePlace) -> tuple[UnreadFiles, ...]:
    """Return the files that no source of the last stream reads, by folder, the most files first.

    At most five folders, of the first 20,000 files that are met. Nothing before the first stream.
    """
    slots = kept_slots(StateFolder(warehouse).checkpoint)
    patterns = {name: slot.path for slot in slots for name in slot.relations}
    return find_unread(open_landing(landing), patterns) if patterns else ()


def find_unread(folder: LandingPlace, patterns: Mapping[str, str]) -> tuple[UnreadFiles, ...]:
    """Return the files that no pattern reads, and those whose names Java cannot spell.

    Args:
        folder: the landing folder.
        patterns: of each source that reads files, by relation.
    """
    names_by_folder: dict[tuple[str, bool], list[str]] = {}
    for name in _names(folder):
        is_read = any(matches(name, pattern) for pattern in set(patterns.values()))
        if not is_read or not is_spelled(name):
            names_by_folder.setdefault((name.rpartition("/")[0], is_read), []).append(name)
    unread = [
        UnreadFiles(
            _text(place),
            len(names),
            _text(min(names)),
            _UNSPELLED if is_read else _nearest(min(names), patterns),
        )
        for (place, is_read), names in names_by_folder.items()
    ]
    return tuple(sorted(unread, key=lambda group: (-group.files, group.folder, group.why))[:_NAMED])


def _names(folder: LandingPlace) -> Iterator[str]:
    """Yield the first names of the folder; none of a bucket that cannot list all of them."""
    try:
        yield from islice(folder.names(), _MOST_FILES)
    except StorageError as error:
        if error.code != "OBJECT_UNNAMED":
            raise


_UNSPELLED = "a name that is no UTF-8, which Spark cannot read: rename it"


def _nearest(name: str, patterns: Mapping[str, str]) -> str:
    likeness = {
        relation: SequenceMatcher(None, name, pattern, autojunk=False).ratio()
        for relation, pattern in sorted(patterns.items())
    }
    nearest = max(likeness, key=likeness.__getitem__)
    if likeness[nearest] < _LIKE:
        return "no source reads it: correct the `path` of its source, or move it elsewhere"
    return (
        f"no source reads it; {nearest} reads {patterns[nearest]}: correct that `path`, or the name"
    )


def _text(name: str) -> str:
    return os.fsencode(name).decode(errors="backslashreplace")
