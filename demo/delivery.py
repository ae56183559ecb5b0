"""Hands files over as the landing contract has it: written under a hidden name, then renamed.

Used by the market, for history and for live steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from livemart.land.hand_over import hand_over
from livemart.storage.location import StoragePlace

# Takes a folder, a name and lines; returns the files that were handed over.
Deliver = Callable[[StoragePlace, str, Iterable[str]], Sequence[StoragePlace]]


@dataclass(frozen=True, slots=True)
class Delivery:
    """Files that were handed over, and how many records of each kind were."""

    files: tuple[StoragePlace, ...]
    counts: Mapping[str, int]

    @property
    def records(self) -> int:
        """All records, broken ones included."""
        return sum(self.counts.values())


def hand_over_lines(
    folder: StoragePlace, name: str, lines: Iterable[str]
) -> Sequence[StoragePlace]:
    """Hand over a file of these lines."""
    return (hand_over(folder, name, "".join(f"{line}\n" for line in lines).encode()),)
