"""Keeps when a micro-batch began, so that one that is run again says the same of its run.

Used where SQL says something of the run that compiles it.
"""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from livemart.state.atomic_files import replace_file
from livemart.state.places import StateFolder


def run_start(warehouse: Path, epoch: str, batch_id: int, now: datetime) -> datetime:
    """Return when a micro-batch began first: `now`, if it has not begun before.

    Args:
        now: UTC.
    """
    path = StateFolder(warehouse).run
    batch = [epoch, batch_id]
    # Torn or absent: it begins now.
    with suppress(FileNotFoundError, ValueError, KeyError):
        entry = json.loads(path.read_text(encoding="utf-8"))
        if entry["batch"] == batch:
            return datetime.fromisoformat(entry["started_at"])
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, json.dumps({"batch": batch, "started_at": now.isoformat()}))
    return now
