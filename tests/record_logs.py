"""A record log in memory and one in a folder, and how a test installs a kind of source."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest


@dataclass(frozen=True)
class FolderLog:
    """Partitions are files `<name>.json` of a folder: `{"start": 3, "records": ["...", ...]}`."""

    has_plain_options: ClassVar[bool] = True
    fails: ClassVar[str] = ""

    folder: str

    def starts(self) -> Mapping[str, int]:
        return {name: it["start"] for name, it in self._partitions().items()}

    def ends(self) -> Mapping[str, int]:
        if self.fails:
            raise ConnectionError(self.fails)
        return {name: it["start"] + len(it["records"]) for name, it in self._partitions().items()}

    def read(self, partition: str, start: int, end: int) -> Iterator[tuple[int, bytes]]:
        content = self._partitions()[partition]
        for offset in range(start, end):
            if offset < content["start"]:
                raise LookupError(f"{offset} is gone")
            if (text := content["records"][offset - content["start"]]) is not None:
                yield offset, text.encode()

    def _partitions(self) -> dict[str, Any]:
        return {path.stem: json.loads(path.read_text()) for path in Path(self.folder).glob("*")}


def write_partition(folder: Path, name: str, records: list[str | None], start: int = 0) -> None:
    """Write a partition of a `FolderLog`; None is an offset without a record."""
    folder.mkdir(exist_ok=True)
    content = json.dumps({"start": start, "records": records})
    (folder / f"{name}.json").write_text(content)


def install_kind(site: Path, monkeypatch: pytest.MonkeyPatch, name: str, target: str) -> None:
    """Offer a kind of source as an installed package would: by an entry point."""
    info = site / f"test_{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: test-{name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[livemart.sources]\n{name} = {target}\n")
    monkeypatch.syspath_prepend(str(site))


def install_folder_logs(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Offer logs in folders as the kind `folder`, by a class that no other test has.

    Whether a class has the methods of a protocol Python remembers, whatever a test has lent it.
    """
    names = {"__module__": __name__, "__qualname__": FolderLog.__qualname__}
    log_class = type(FolderLog.__name__, (FolderLog,), names)
    monkeypatch.setattr(f"{__name__}.FolderLog", log_class)
    install_kind(site, monkeypatch, "folder", f"{__name__}:FolderLog")
