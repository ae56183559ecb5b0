"""Makes the tables of a warehouse as old as if their commits had been made days ago."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

_TIMES = {"add": "modificationTime", "commitInfo": "timestamp", "remove": "deletionTimestamp"}


def age(table: Path, days: float) -> None:
    """Give the files of a table, and what its log says of them, times of days ago."""
    past_s = time.time() - days * 86_400
    log = table / "_delta_log"
    # They tell times as well, or are sums of entries as they were; readers do without.
    of_entries = (*log.glob("*.checkpoint*.parquet"), *log.glob("*.crc"), *log.glob(".*.crc"))
    for path in (*of_entries, log / "_last_checkpoint"):
        path.unlink(missing_ok=True)
    for path in log.glob("*.json"):
        actions = [json.loads(line) for line in path.read_text().splitlines()]
        for action in actions:
            for kind, name in _TIMES.items():
                if name in action.get(kind, {}):
                    action[kind][name] = round(past_s * 1000)
        path.write_text("".join(json.dumps(action) + "\n" for action in actions))
    for path in table.rglob("*"):
        if path.is_file():
            os.utime(path, (past_s, past_s))


def parquet_files(table: Path) -> set[Path]:
    """Return the data files and files of changes of a table."""
    return {path for path in table.rglob("*.parquet") if "_delta_log" not in path.parts}
