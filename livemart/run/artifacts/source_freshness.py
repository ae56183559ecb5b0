"""Judges how fresh sources are, as `dbt source freshness` does, in `sources.json`.

Used by the pipeline with each snapshot, and by a pass without news: a source ages by itself. It is
as old as its newest landing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from livemart.delta.warehouse import Warehouse
from livemart.errors import LivemartError
from livemart.project.graph import Project, SourceTable
from livemart.project.landing_columns import LANDED_AT
from livemart.run.artifacts.artifact_files import (
    Entry,
    artifact_metadata,
    artifact_time,
    write_artifact,
)
from livemart.state.snapshots import Snapshot

_FILE = "sources.json"
# dbt takes the worst one that holds.
_CRITERIA = (("error_after", "error"), ("warn_after", "warn"))


def write_freshness(
    target_dir: Path, project: Project, warehouse: Warehouse, snapshot: Snapshot
) -> None:
    """Write how fresh the sources of a snapshot are, those whose YAML has `freshness`.

    Args:
        target_dir: folder of dbt's artifacts.
        project: its sources.
        warehouse: holds the landed tables.
        snapshot: the newest one.
    """
    results = [
        _entry(source.unique_id, source.freshness, landed_at, snapshot.finished_at)
        for source in project.sources.values()
        if source.freshness and (landed_at := _landed_at(warehouse, source, snapshot)) is not None
    ]
    if results:
        _write(target_dir, results, snapshot.finished_at)
    else:
        # It is of a project that had such sources.
        with suppress(OSError):
            (target_dir / _FILE).unlink(missing_ok=True)


def renew_freshness(target_dir: Path, now: datetime) -> None:
    """Judge the sources of the newest snapshot again: nothing has landed since."""
    # No such file exists, or dbt itself wrote it in another version.
    with suppress(OSError, ValueError, TypeError, KeyError, AttributeError):
        rows = json.loads((target_dir / _FILE).read_text(encoding="utf-8"))["results"]
        results = [
            _entry(
                row["unique_id"], row["criteria"], datetime.fromisoformat(row["max_loaded_at"]), now
            )
            for row in rows
        ]
        _write(target_dir, results, now)


def freshness_status(criteria: Mapping[str, Any], age: timedelta) -> str:
    """Return dbt's word for rows of this age: `pass`, `warn` or `error`."""
    for name, word in _CRITERIA:
        limit = criteria.get(name) or {}
        count, period = limit.get("count"), limit.get("period")
        # So many days may reach past the range of `timedelta`.
        with suppress(OverflowError):
            if count and period and age > timedelta(**{f"{period}s": count}):
                return word
    return "pass"


def _landed_at(warehouse: Warehouse, source: SourceTable, snapshot: Snapshot) -> datetime | None:
    if source.stream is None or source.relation not in snapshot.sources:
        return None
    try:
        version = snapshot.sources[source.relation]
        landed_at: datetime | None = warehouse.newest(source.relation, LANDED_AT, version)
    except LivemartError:
        return None
    return landed_at


def _entry(
    unique_id: str, criteria: Mapping[str, Any], landed_at: datetime, now: datetime
) -> Entry:
    age = now - landed_at
    return {
        "unique_id": unique_id,
        "max_loaded_at": artifact_time(landed_at),
        "snapshotted_at": artifact_time(now),
        "max_loaded_at_time_ago_in_s": age.total_seconds(),
        "status": freshness_status(criteria, age),
        "criteria": criteria,
        "adapter_response": {},
        "timing": [],
        "thread_id": "livemart",
        "execution_time": 0.0,
    }


def _write(target_dir: Path, results: Sequence[Entry], at: datetime) -> None:
    content = {
        "metadata": artifact_metadata("sources/v3", at),
        "results": list(results),
        "elapsed_time": 0.0,
    }
    write_artifact(target_dir / _FILE, content)
