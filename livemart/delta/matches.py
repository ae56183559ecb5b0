"""Remembers which rows of data files pass a filter, for the next reader of the same rows.

Used by the versions of a table. Models that share an input ask it for rows of the same keys, each
for its own columns, and two versions share most of their files. A look at a million texts takes
longer than all the rest of such a read.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

import numpy.typing as npt
import pyarrow.dataset as pds

# A batch asks a table for the rows of few sets of keys.
_MOST_FILTERS = 4


@dataclass(frozen=True, slots=True)
class Matches:
    """By path of a file, the places of its rows that pass. Hold the lock to look up and to add."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    places: dict[str, npt.NDArray[Any]] = field(default_factory=dict)


class RecentMatches:
    """Results of the filters that were asked for last. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._recent: list[tuple[pds.Expression, Matches]] = []

    def of(self, filter: pds.Expression) -> Matches:
        """Return the known matches of a filter, nothing if it is new."""
        with self._lock:
            for place, (expression, _) in enumerate(self._recent):
                if expression.equals(filter):
                    self._recent.append(self._recent.pop(place))
                    break
            else:
                self._recent.append((filter, Matches()))
                del self._recent[:-_MOST_FILTERS]
            return self._recent[-1][1]
