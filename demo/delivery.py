"""Hands files over as the landing contract has it: written under a hidden name, then renamed.

Used by the market, for history and for live steps.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from livemart.land.hand_over import hand_over


@dataclass(frozen=True, slots=True)
class Delivery:
    """Files that were handed over, and how many records of each kind they hold."""

    files: tuple[Path, ...]
    counts: Mapping[str, int]

    @property
    def records(self) -> int:
        """All lines, broken ones included."""
        return sum(self.counts.values())


def hand_over_lines(folder: Path, name: str, lines: Iterable[str]) -> Path:
    """Hand over a file of these lines."""
    return hand_over(folder, name, "".join(f"{line}\n" for line in lines).encode())
