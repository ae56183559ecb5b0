"""The frontier: where each model's refresh starts, and which models cannot start there.

The newest row of the snapshot log is compared with the tables as they lie and with the models as
they are written now. A landed table that somebody else changed is an error; a model's table that
somebody else changed, or whose SQL changed, is rebuilt.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from livemart.engine.context import Rebuild
from livemart.engine.delta_log import LogEntry
from livemart.errors import StateError
from livemart.project.graph import Project
from livemart.publish.snapshots import ModelState, Snapshot


class Tables(Protocol):
    """What is asked of the warehouse here."""

    def exists(self, relation: str) -> bool: ...
    def version(self, relation: str) -> int: ...
    def table_id(self, relation: str) -> str: ...
    def data_changed_between(
        self, relation: str, v0: int, v1: int
    ) -> Sequence[LogEntry | None]: ...


def find_rebuilds(
    newest: Snapshot | None,
    project: Project,
    fingerprints: Mapping[str, str],
    tables: Tables,
    *,
    epoch: str,
    batch_id: int,
) -> dict[str, Rebuild]:
    """Return the stored models of `project` that cannot be refreshed from `newest`, by unique id.

    Commits of the batch being replayed are not from outside, nor are those that change no data.
    """
    rebuilds: dict[str, Rebuild] = {}
    for unique_id, model in project.models.items():
        if not model.is_stored:
            continue
        state = newest.models.get(unique_id) if newest else None
        if state is None:
            rebuilds[unique_id] = Rebuild("NEW_MODEL", f"{model.name} is not in the log yet", 0)
        elif state.fingerprint != fingerprints[unique_id]:
            rebuilds[unique_id] = Rebuild(
                "FINGERPRINT_CHANGED",
                f"the SQL of {model.name} is not that of snapshot {newest.snapshot_id}"
                if newest
                else "",
                state.generation + 1,
            )
        elif found := _changed_outside(model.relation, state, tables, epoch, batch_id):
            rebuilds[unique_id] = found
    return rebuilds


def _changed_outside(
    relation: str, state: ModelState, tables: Tables, epoch: str, batch_id: int
) -> Rebuild | None:
    if not tables.exists(relation):
        return Rebuild("CHANGED_OUTSIDE", f"{relation} is missing", state.generation + 1)
    version = tables.version(relation)
    if tables.table_id(relation) != state.table_id:
        message = f"{relation} is another table than the one of the log"
        return Rebuild("CHANGED_OUTSIDE", message, state.generation + 1)
    if version == state.version:
        return None
    if version < state.version:
        message = f"{relation} is at version {version}, the log names {state.version}"
        return Rebuild("CHANGED_OUTSIDE", message, state.generation + 1)
    foreign = [
        commit
        for commit in tables.data_changed_between(relation, state.version, version)
        if commit is None or not _is_ours(commit, f"{epoch}/{relation}/", batch_id)
    ]
    if not foreign:
        return None
    versions = ", ".join(str(commit.version) if commit else "unknown" for commit in foreign)
    message = f"{relation} was written by somebody else (version {versions})"
    # One generation per foreign commit: a change after a first rebuild of this batch is not
    # mistaken for that rebuild, a plain replay of it is.
    return Rebuild("CHANGED_OUTSIDE", message, state.generation + len(foreign))


def check_landed(
    newest: Snapshot,
    relations: Iterable[str],
    tables: Tables,
    epoch: str,
    *,
    accept_changes: bool = False,
) -> None:
    """Refuse to go on from landed tables that somebody else dropped, set back or rewrote.

    Args:
        newest: the frontier.
        relations: the landed tables.
        tables: the warehouse.
        epoch: the current one; the log may still name the one it replaces.
        accept_changes: a build recomputes everything, so rows rewritten by hand do not mislead it;
            rows that are gone would be missed all the same.

    Raises:
        StateError: LANDED_TABLE_LOST or LANDED_TABLE_CHANGED.
    """
    for relation in relations:
        if (known := newest.sources.get(relation)) is None:
            continue
        named = f"snapshot {newest.snapshot_id} names version {known}"
        if not tables.exists(relation):
            raise _lost(f"{relation}: missing, {named}")
        version = tables.version(relation)
        if version < known:
            raise _lost(f"{relation}: found version {version}, {named}")
        counted = newest.landed.get(relation)
        if counted and counted.table_id not in ("", tables.table_id(relation)):
            raise _lost(f"{relation}: found another table, {named} of the one before")
        prefixes = (f"{epoch}/{relation}/", f"{newest.epoch}/{relation}/")
        foreign = [
            commit.version
            for commit in tables.data_changed_between(relation, known, version)
            # A commit whose log entry is gone was made long ago; its change feed is gone with it.
            if commit and not any(_is_ours(commit, prefix) for prefix in prefixes)
        ]
        if foreign and not accept_changes:
            raise StateError(
                "LANDED_TABLE_CHANGED",
                f"{relation}: written by somebody else (version {', '.join(map(str, foreign))}), "
                f"{named}",
                hint="look at the table (RESTORE brings an earlier version back); then accept it "
                "as it is and recompute every model with `build`",
            )


def _lost(message: str) -> StateError:
    return StateError(
        "LANDED_TABLE_LOST",
        message,
        hint="put the table's folder back, or land everything below the landing folder again with "
        "`build --new-epoch`",
    )


def _is_ours(commit: LogEntry, prefix: str, batch_id: int | None = None) -> bool:
    return any(
        app_id.startswith(prefix) and (batch_id is None or version == batch_id)
        for app_id, version in commit.transactions.items()
    )
