"""Hands files over as the landing contract has it: written under a hidden name, then renamed.

Used by the market, for history and for live steps.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Delivery:
    """Files that were handed over, and how many records of each kind they hold."""

    files: tuple[Path, ...]
    counts: Mapping[str, int]

    @property
    def records(self) -> int:
        """All lines, broken ones included."""
        return sum(self.counts.values())


def hand_over(folder: Path, name: str, lines: Iterable[str]) -> Path:
    """Write a file under a name that is not read, then rename it: the landing contract."""
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / name
    hidden = folder / f".{name}.part"
    with hidden.open("w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines)
    os.replace(hidden, target)
    return target
