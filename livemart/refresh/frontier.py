"""Finds where each model's refresh starts, and which models cannot start there.

Used by run before each batch. The newest row of the snapshot log is compared with the tables as
they lie and with the models as they are written now. A landed table that something else changed is
an error; a model's table that something else changed, or whose SQL changed, is rebuilt.

A model that was set aside is tried again as soon as its SQL, or that of the model it waits for, is
another one; and, as data are mended too, after 1, 2, 4, 8 ... snapshots. One that was left out
comes back with the first pass that does not leave it out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Protocol

from livemart.delta.log import LogEntry
from livemart.delta.tags import Tags, is_of_epoch
from livemart.errors import StateError
from livemart.plan.project_plans import is_same_text
from livemart.project.graph import Model, Project
from livemart.refresh.context import Rebuild
from livemart.state.snapshots import ModelState, SetAside, Snapshot


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

    Commits that change no data are not from outside, nor are those of the batch being replayed, as
    long as the model is still what it was when they were made.
    """
    rebuilds: dict[str, Rebuild] = {}
    for unique_id, model in project.models.items():
        if model.is_stored:
            state = newest.models.get(unique_id) if newest else None
            is_asking = bool(project.asking(unique_id))
            rebuild = _find_rebuild(
                model, state, fingerprints[unique_id], tables, epoch, batch_id, is_asking=is_asking
            )
            if rebuild is not None:
                rebuilds[unique_id] = rebuild
    return rebuilds


def _find_rebuild(
    model: Model,
    state: ModelState | None,
    fingerprint: str,
    tables: Tables,
    epoch: str,
    batch_id: int,
    *,
    is_asking: bool,
) -> Rebuild | None:
    code = message = ""
    relation = model.relation
    if state is None:
        code, message = "NEW_MODEL", f"{relation} is not in the log yet"
    elif state.fingerprint != fingerprint and is_same_text(state.fingerprint, fingerprint):
        session = model.session.text or "no setting of its own"
        code, message = "SESSION_CHANGED", f"the session of {relation} is another one: {session}"
    elif state.fingerprint != fingerprint:
        code, message = "FINGERPRINT_CHANGED", f"the SQL of {relation} is not that of the log"
        if is_asking:
            code, message = "ASKS_THE_WAREHOUSE", f"{message}: it asks the warehouse"
    generation = state.generation if state else -1
    if not tables.exists(relation):
        return Rebuild(
            code or "CHANGED_OUTSIDE", message or f"{relation} is missing", generation + 1
        )
    version = tables.version(relation)
    is_same_table = (
        state is not None
        and tables.table_id(relation) == state.table_id
        and version >= state.version
    )
    # Of a table that the log does not name, the last commit tells whether we made it.
    since = version - 1 if state is None else state.version if is_same_table else -1
    commits = tables.data_changed_between(relation, since, version)
    if not commits:
        if not code and not is_same_table:
            code, message = _explain(relation, state, (), (), is_same_table)
        return Rebuild(code, message, generation + 1) if code else None
    tags = Tags(epoch, batch_id)
    made = [
        None if commit is None else tags.generation_of(relation, commit.transactions)
        for commit in commits
    ]
    last = commits[-1]
    is_current = last is not None and last.metadata.get("fingerprint") == fingerprint
    if not code and is_same_table and is_current and set(made) == {generation}:
        return None
    if not code:
        code, message = _explain(relation, state, commits, made, is_same_table)
    if is_current and made[-1] is not None and made[-1] > generation:
        # An earlier attempt at this batch has rebuilt it already.
        return Rebuild(code, message, made[-1])
    # Never a generation that carries this batch already: Delta would skip the rebuild.
    return Rebuild(code, message, 1 + max(generation, *(known or 0 for known in made)))


def _explain(
    relation: str,
    state: ModelState | None,
    commits: Sequence[LogEntry | None],
    made: Sequence[int | None],
    is_same_table: bool,
) -> tuple[str, str]:
    if not is_same_table:
        known = state.version if state else "none"
        return "CHANGED_OUTSIDE", f"{relation} is not the table of the log (version {known})"
    foreign = [
        str(commit.version) if commit else "unknown"
        for commit, generation in zip(commits, made, strict=True)
        if generation is None
    ]
    if not foreign:
        return "SELECTED", f"an earlier attempt at this batch rebuilt {relation}"
    versions = ", ".join(foreign)
    return "CHANGED_OUTSIDE", f"{relation} was written by somebody else (version {versions})"


def resting_models(
    newest: Snapshot, fingerprints: Mapping[str, str], selected: Set[str]
) -> dict[str, SetAside]:
    """Return the models that the batch after `newest` does not try, by unique id.

    Args:
        newest: the frontier.
        fingerprints: of the models as they are written now, by unique id.
        selected: models that are tried in any case.
    """
    return {
        unique_id: aside
        for unique_id, aside in newest.set_aside.items()
        if unique_id in fingerprints
        and not _is_due(unique_id, newest, fingerprints, selected)
        and not _is_due(aside.cause, newest, fingerprints, selected)
    }


def returning_models(
    newest: Snapshot, resting: Mapping[str, SetAside], rebuilds: Mapping[str, Rebuild]
) -> dict[str, Rebuild]:
    """Return how models that are tried again are rebuilt, where nothing else says so.

    The frontier has moved on without them: no change set leads from their rows to the newest ones.
    """
    return {
        unique_id: Rebuild("SET_ASIDE", "it was set aside", state.generation + 1)
        for unique_id, aside in newest.set_aside.items()
        if unique_id not in resting
        and unique_id not in rebuilds
        and (state := newest.models.get(unique_id)) is not None
    }


def _is_due(
    unique_id: str, newest: Snapshot, fingerprints: Mapping[str, str], selected: Set[str]
) -> bool:
    aside = newest.set_aside.get(unique_id)
    if (
        aside is None
        or aside.is_left_out
        or unique_id in selected
        or fingerprints.get(unique_id) != aside.fingerprint
    ):
        return True
    distance = newest.snapshot_id + 1 - aside.since
    is_power_of_two = distance & (distance - 1) == 0
    return aside.cause == unique_id and is_power_of_two


def check_landed(
    newest: Snapshot,
    relations: Iterable[str],
    tables: Tables,
    epoch: str,
    *,
    accept_changes: bool = False,
) -> None:
    """Refuse to go on from landed tables that another writer dropped, set back or rewrote.

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
        foreign = [
            commit.version
            for commit in tables.data_changed_between(relation, known, version)
            # A commit whose log entry is gone was made long ago; its change feed is gone with it.
            if commit
            and not is_of_epoch(epoch, relation, commit.transactions)
            and not is_of_epoch(newest.epoch, relation, commit.transactions)
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
        hint="put the table's folder back, or land what still lies below the landing folder again "
        "with `build --new-epoch`; append-only sources pass over files that their table holds",
    )
