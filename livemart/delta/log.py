"""Reads and writes the commits of Delta's log.

Used by the small lane and by all readers of a commit's actions. deltalake writes a change of few
rows by a MERGE that costs 100 to 600 ms and cannot compare maps. The small lane knows the files
that it rewrites, so it writes the commit itself (delta-io/delta, PROTOCOL.md; ADR-0006). A commit
is created by the storage, which refuses it if another writer took the version.
"""

from __future__ import annotations

import json
import re
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from livemart.delta.tags import Tag
from livemart.storage.storage import Missing, Storage

if TYPE_CHECKING:
    from deltalake import DeltaTable

Action = Mapping[str, Any]
# The folder, name and ETag of a commit's file.
LogFile = tuple[str, str, str]

# The `userMetadata` of a commit that only sets properties: no reader of rows or changes need know.
PROPERTIES_ONLY: Mapping[str, str] = {"livemart": "properties only"}

_VERSIONED = re.compile(r"_delta_log/\d{20}\.")


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One commit. `transactions`: version by application id. `metadata`: parsed `userMetadata`.

    `changes_data` is True if the commit adds or removes rows; `table_id` is set if it gives the
    table a new schema, partitioning, property or id, but for `PROPERTIES_ONLY`.
    """

    version: int
    transactions: Mapping[str, int]
    metadata: Mapping[str, str]
    changes_data: bool
    table_id: str | None
    adds: Sequence[Action] = field(repr=False)
    removes: Sequence[Action] = field(repr=False)
    cdc: Sequence[Action] = field(repr=False)

    @property
    def action_count(self) -> int:
        """The number of files that it names."""
        return len(self.adds) + len(self.removes) + len(self.cdc)


def has_commits(table: Storage) -> bool:
    """Return True if a folder is a Delta table: its log holds a commit or a checkpoint."""
    # Names of versions begin with a digit, and are the first that do.
    first = table.names("_delta_log", after="_delta_log/0", most=1)
    return any(map(_VERSIONED.match, first))


def log_name(version: int) -> str:
    """Return the name of a commit's JSON file."""
    return f"_delta_log/{version:020d}.json"


def log_file(table: Storage, version: int) -> LogFile | None:
    """Return the identity of a commit's file; None if it was removed.

    A table that was dropped and created again has another.
    """
    entry = table.head(log_name(version))
    return None if entry is None else (table.location.url, entry.name, entry.etag)


def read_entry(table: Storage, version: int) -> LogEntry | None:
    """Return the entry of a commit; None if its file was cleaned up, or never written."""
    try:
        text = table.get(log_name(version)).decode()
    except Missing:
        return None
    actions: dict[str, list[Any]] = {}
    # Not `splitlines`: of a line's ends JSON escapes none but the first 32 characters.
    for line in text.split("\n"):
        if line:
            for kind, body in json.loads(line).items():
                actions.setdefault(kind, []).append(body)
    info: Action = next(iter(actions.get("commitInfo", [])), {})
    adds, removes = actions.get("add", []), actions.get("remove", [])
    metadata, said = next(iter(actions.get("metaData", [])), None), _user_metadata(info)
    if said == PROPERTIES_ONLY:
        metadata = None
    return LogEntry(
        version=version,
        transactions={entry["appId"]: int(entry["version"]) for entry in actions.get("txn", [])},
        metadata=said,
        changes_data=any(action.get("dataChange", True) for action in [*adds, *removes]),
        table_id=None if metadata is None else metadata["id"],
        adds=adds,
        removes=removes,
        cdc=actions.get("cdc", []),
    )


def log_json(value: Any) -> str:
    r"""Return JSON as the log holds it: with every character as it is.

    deltalake 1.6.6 reads an escaped one of the planes 2, 4, 6 .. 16 as that of the plane before
    (`\ud842\udfb7`, U+20BB7, as U+10BB7), in partition values and bounds alike.
    """
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def write_entry(
    table: Storage,
    version: int,
    actions: Iterable[Action],
    *,
    operation: str,
    tag: Tag,
    metrics: Mapping[str, int] = MappingProxyType({}),
) -> None:
    """Write one commit, all or nothing.

    Raises:
        Taken: another writer committed this version first; nothing was written.
    """
    now = int(time.time() * 1000)
    info = {
        "timestamp": now,
        "operation": operation,
        "operationParameters": {},
        "readVersion": version - 1,
        "isolationLevel": "Serializable",
        "isBlindAppend": False,
        "operationMetrics": {name: str(value) for name, value in metrics.items()},
        "engineInfo": "livemart",
        "txnId": str(uuid.uuid4()),
        "userMetadata": json.dumps(dict(tag.metadata), sort_keys=True),
    }
    transaction = {"appId": tag.app_id, "version": tag.version, "lastUpdated": now}
    lines = [{"commitInfo": info}, {"txn": transaction}, *actions]
    body = "\n".join(map(log_json, lines)) + "\n"
    table.create(log_name(version), body.encode())


def metadata_action(
    table: DeltaTable,
    *,
    schema: str | None = None,
    configuration: Mapping[str, str] | None = None,
) -> Action:
    """Return the action that gives a table another schema (as JSON), or other properties.

    All else of its metadata stays.
    """
    metadata = table.metadata()
    body: dict[str, Any] = {
        "id": str(metadata.id),
        "name": metadata.name,
        "description": metadata.description,
        "format": {"provider": "parquet", "options": {}},
        "schemaString": schema or table.schema().to_json(),
        "partitionColumns": list(metadata.partition_columns),
        "configuration": dict(metadata.configuration if configuration is None else configuration),
        "createdTime": metadata.created_time,
    }
    return {"metaData": {name: value for name, value in body.items() if value is not None}}


def _user_metadata(info: Mapping[str, Any]) -> Mapping[str, str]:
    text = info.get("userMetadata")
    if not text:
        return {}
    try:
        parsed = json.loads(text)
    except (TypeError, ValueError):
        return {"userMetadata": str(text)}
    return parsed if isinstance(parsed, dict) else {"userMetadata": str(text)}
