"""A disk of a test's own that it fills to the last page: a file system in memory."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

_BALLOON = ".balloon"


@dataclass(frozen=True)
class SmallDisk:
    """A disk, mounted at `place`."""

    place: Path

    def fill(self, room: int) -> None:
        """Leave so many bytes free, as others would who write to the same disk."""
        found = os.statvfs(self.place)
        with (self.place / _BALLOON).open("wb") as balloon:
            os.posix_fallocate(balloon.fileno(), 0, found.f_bavail * found.f_frsize - room)

    def empty(self) -> None:
        """Give the space back."""
        (self.place / _BALLOON).unlink()


@contextmanager
def small_disk(place: Path, size: int) -> Iterator[SmallDisk]:
    """Mount a disk of so many bytes at an empty folder; skip the test if mounting is refused."""
    options = ["-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)]
    try:
        subprocess.run(["mount", *options], check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no disk can be mounted, so none is full: {getattr(error, 'stderr', error)}")
    try:
        yield SmallDisk(place)
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)
