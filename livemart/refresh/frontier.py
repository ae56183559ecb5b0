"""Compares the frontier with the stored tables: where each model of a batch starts.

Used by run before each batch. The frontier is the newest row of the snapshot log. A landed table
that something else changed is an error; a model's table that something else changed, or whose SQL
changed, is rebuilt.

A model that was set aside is tried again as soon as its SQL, or that of the model it waits for, is
another one. As data are mended too, it is also tried after 1, 2, 4, 8 ... snapshots. A model that
was left out comes back with the first pass that does not leave it out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Protocol

from livemart.conflicts import TableChangedError
from livemart.delta.log import LogEntry
from livemart.delta.tags import Tags, is_of_epoch
from livemart.errors import StateError
from livemart.plan.project_plans import is_same_text
from livemart.plan.stored_queries import StoredQuery
from livemart.state.snapshots import LEFT_OUT, ModelState, SetAside, Snapshot


@dataclass(frozen=True, slots=True)
class Refresh:
    """The model starts from the frontier: the net change of its inputs moves its rows."""


@dataclass(frozen=True, slots=True)
class Rebuild:
    """The model is computed from all rows: no change set leads from its rows to the newest ones.

    `code` is NEW_MODEL, FINGERPRINT_CHANGED, ASKS_THE_WAREHOUSE, SESSION_CHANGED, CHANGED_OUTSIDE,
    SET_ASIDE or SELECTED; `generation` is that of its next table. A table that hooks fill is taken
    over as it is: FILLED_BY_HOOKS or OWN_MATERIALIZATION.
    """

    code: str
    message: str
    generation: int


@dataclass(frozen=True, slots=True)
class Loaded(Rebuild):
    """The rebuild of a seed: dbt has loaded it for this batch already."""

    state: ModelState


@dataclass(frozen=True, slots=True)
class Broken:
    """The model fails before it begins: dbt cannot make it, or its policy forbids its SQL."""

    message: str


@dataclass(frozen=True, slots=True)
class Untouched:
    """The model stays unchanged; `aside` is its entry in the snapshot's row."""

    aside: SetAside


class Rest(Untouched):
    """The model has failed as it is written now, and its next attempt is not due."""


class Wait(Untouched):
    """The model waits for one that it reads, which is untouched."""


class LeftAlone(Untouched):
    """Nothing is wrong with the model: it is not selected, or was built from a newer edit."""


Start = Refresh | Rebuild | Broken | Rest | Wait | LeftAlone


class Tables(Protocol):
    """The questions that this module asks of the warehouse."""

    def exists(self, relation: str) -> bool: ...
    def version(self, relation: str) -> int: ...
    def table_id(self, relation: str) -> str: ...
    def data_changed_between(
        self, relation: str, v0: int, v1: int
    ) -> Sequence[LogEntry | None]: ...


def find_starts(
    newest: Snapshot,
    stored: Mapping[str, StoredQuery],
    tables: Tables,
    tags: Tags,
    *,
    left_out: Mapping[str, Start],
    selected: Set[str] = frozenset(),
    is_outdated: bool = False,
) -> dict[str, Start]:
    """Return where each stored query of a project starts, by unique id, in dependency order.

    Args:
        newest: the frontier.
        stored: the queries, by unique id.
        tables: the warehouse.
        tags: of the batch.
        left_out: the models that the selection leaves out; see `leave_out`.
        selected: models that are tried and rebuilt in any case.
        is_outdated: the project as it is written cannot be read; what runs must not put older rows
            over a table that another writer has built, maybe from newer SQL.
    """
    fingerprints = {unique_id: query.fingerprint for unique_id, query in stored.items()}
    named = {
        key for key, it in stored.items() if not selected.isdisjoint((key, it.owner.unique_id))
    }

    def start_of(unique_id: str) -> Start:
        aside = newest.aside.get(unique_id)
        if aside is not None and not any(
            _is_due(node, newest, fingerprints, named) for node in (unique_id, aside.cause)
        ):
            return Rest(aside) if aside.cause == unique_id else Wait(aside)
        rebuild = find_rebuild(stored[unique_id], newest, tables, tags)
        if rebuild is None and (unique_id in named or aside is not None):
            # The frontier has moved on without what was set aside.
            code, message = "SET_ASIDE", "it was set aside"
            if unique_id in named:
                code, message = "SELECTED", "named by --select"
            return Rebuild(code, message, newest.stored[unique_id].generation + 1)
        if rebuild is not None and rebuild.code == "CHANGED_OUTSIDE" and is_outdated:
            message = f"{rebuild.message}, and the edited project cannot be read"
            fingerprint = fingerprints[unique_id]
            return LeftAlone(aside or set_aside(newest, unique_id, fingerprint, unique_id, message))
        return rebuild or Refresh()

    return {key: left_out.get(key) or start_of(key) for key in stored}


def leave_out(
    newest: Snapshot | None, stored: Mapping[str, StoredQuery], unique_ids: Set[str]
) -> dict[str, Start]:
    """Return the stored ones of these models and all that wait for one, by unique id.

    A seed, or a table of dbt's, that was not edited stays as it is in any case. A model that failed
    before is reported as failed.
    """
    starts: dict[str, Start] = {}
    causes: dict[str, str] = {}
    for unique_id, query in stored.items() if unique_ids else ():
        fingerprint = query.fingerprint
        state = newest.stored.get(unique_id) if newest else None
        is_unedited = state is not None and state.fingerprint == fingerprint
        if is_unedited and query.made_by != "sql":
            continue
        if unique_id in unique_ids:
            causes[unique_id] = unique_id
        elif waits_for := sorted(query.parents & causes.keys()):
            causes[unique_id] = causes[waits_for[0]]
        else:
            continue
        cause = causes[unique_id]
        before = newest.aside.get(unique_id) if newest else None
        if before is not None and not before.is_left_out and before.cause == unique_id:
            starts[unique_id] = Rest(before)
        else:
            aside = set_aside(newest, unique_id, fingerprint, cause, LEFT_OUT)
            starts[unique_id] = LeftAlone(aside) if cause == unique_id else Wait(aside)
    return starts


def set_aside(
    newest: Snapshot | None, unique_id: str, fingerprint: str, cause: str, message: str
) -> SetAside:
    """Return how the row after `newest` sets a model aside; one that was before has its age.

    The attempts of a model that was left out begin when it first fails.
    """
    since, refreshed_at = 1, None
    if newest is not None:
        since = newest.snapshot_id + 1
        refreshed_at = newest.finished_at if unique_id in newest.stored else None
        if (before := newest.aside.get(unique_id)) is not None:
            refreshed_at = before.refreshed_at
            since = since if before.is_left_out and message != LEFT_OUT else before.since
    return SetAside(since, refreshed_at, fingerprint, cause, message)


def refuse_writes_since(
    starts: Mapping[str, Start],
    states: Mapping[str, ModelState],
    newest: Snapshot,
    stored: Mapping[str, StoredQuery],
    tables: Tables,
    tags: Tags,
) -> None:
    """Replay the batch if another writer has committed to a model since it started.

    Once the row names a later version, no refresh would look at that commit again. For tables that
    dbt writes, the row names the version that was read.

    Args:
        starts: of the batch, by unique id.
        states: of its models, by unique id.
        newest: the frontier.
        stored: the queries of the project.
        tables: the warehouse.
        tags: of the batch.

    Raises:
        TableChangedError: TABLE_CHANGED.
    """
    for unique_id, start in starts.items():
        query = stored[unique_id]
        if query.made_by == "dbt" or isinstance(start, Loaded):
            continue
        if not isinstance(start, Refresh | Rebuild):
            continue
        rebuild = find_rebuild(query, newest, tables, tags)
        generation = start.generation if isinstance(start, Rebuild) else -1
        if (state := states.get(unique_id)) is not None:
            before = newest.stored.get(unique_id)
            if before is None or state.generation != before.generation:
                generation = state.generation
        if rebuild is not None and rebuild.generation > generation:
            raise TableChangedError(
                "TABLE_CHANGED",
                f"{rebuild.message}, while batch {tags.batch_id} was refreshed",
                hint="nothing to do: the batch is run again and rebuilds the model",
            )


def find_rebuild(
    query: StoredQuery, newest: Snapshot, tables: Tables, tags: Tags
) -> Rebuild | None:
    """Return why a stored query cannot be refreshed from `newest`, None if it can.

    Commits that change no data are not from outside. Nor are those of the batch being replayed, as
    long as the model is the same as when they were made.
    """
    state, fingerprint = newest.stored.get(query.unique_id), query.fingerprint
    code = message = ""
    relation = query.relation
    if state is None:
        code, message = "NEW_MODEL", f"{relation} is not in the log yet"
    elif state.fingerprint != fingerprint and is_same_text(state.fingerprint, fingerprint):
        session = query.session.text or "no setting"
        code, message = "SESSION_CHANGED", f"the session of {relation} is another one: {session}"
    elif state.fingerprint != fingerprint:
        code, message = "FINGERPRINT_CHANGED", f"the SQL of {relation} is not that of the log"
        if query.asks_warehouse:
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
    if not code and not is_same_table:
        since = state.version if state else "none"
        code = "CHANGED_OUTSIDE"
        message = f"{relation} is not the table of the log (version {since})"
    # If the log does not name a table, its last commit tells whether we made it.
    start = version - 1 if state is None else state.version if is_same_table else -1
    commits = tables.data_changed_between(relation, start, version)
    if not commits:
        return Rebuild(code, message, generation + 1) if code else None
    generations = [
        None if commit is None else tags.generation_of(relation, commit.transactions)
        for commit in commits
    ]
    if query.owner.filled != "no" and code in ("", "CHANGED_OUTSIDE"):
        # It has no generation: livemart itself commits nothing to it.
        by = "dbt" if query.owner.is_custom else "hooks, or by dbt"
        message = f"{relation} was written by {by} (version {version})"
        return Rebuild(query.reason_of_dbt, message, generation)
    last = commits[-1]
    is_current = last is not None and last.metadata.get("fingerprint") == fingerprint
    if not code and is_current and set(generations) == {generation}:
        return None
    if not code:
        code, message = _explain(relation, commits, generations)
    attempt = generations[-1]
    if is_current and attempt is not None and attempt > generation:
        # An earlier attempt at this batch has rebuilt it already.
        return Rebuild(code, message, attempt)
    # Never a generation that carries this batch already: Delta would skip the rebuild.
    return Rebuild(code, message, 1 + max(generation, *(earlier or 0 for earlier in generations)))


def _explain(
    relation: str, commits: Sequence[LogEntry | None], generations: Sequence[int | None]
) -> tuple[str, str]:
    foreign = [
        str(commit.version) if commit else "unknown"
        for commit, generation in zip(commits, generations, strict=True)
        if generation is None
    ]
    if not foreign:
        return "SELECTED", f"an earlier attempt at this batch rebuilt {relation}"
    versions = ", ".join(foreign)
    return "CHANGED_OUTSIDE", f"{relation} was written by another program (version {versions})"


def _is_due(
    unique_id: str, newest: Snapshot, fingerprints: Mapping[str, str], selected: Set[str]
) -> bool:
    aside = newest.aside.get(unique_id)
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
    """Refuse landed tables that another writer dropped, set back or rewrote.

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
        if (since := newest.sources.get(relation)) is None:
            continue
        named = f"snapshot {newest.snapshot_id} names version {since}"
        if not tables.exists(relation):
            raise _lost(f"{relation}: missing, {named}")
        version = tables.version(relation)
        if version < since:
            raise _lost(f"{relation}: found version {version}, {named}")
        counted = newest.landed.get(relation)
        if counted and counted.table_id not in ("", tables.table_id(relation)):
            raise _lost(f"{relation}: found another table, {named} of the one before")
        foreign = [
            commit.version
            for commit in tables.data_changed_between(relation, since, version)
            # A commit whose log entry is gone was made long ago; its change feed is gone with it.
            if commit
            and not is_of_epoch(epoch, relation, commit.transactions)
            and not is_of_epoch(newest.epoch, relation, commit.transactions)
        ]
        if foreign and not accept_changes:
            raise StateError(
                "LANDED_TABLE_CHANGED",
                f"{relation}: written by another program (version {', '.join(map(str, foreign))}), "
                f"{named}",
                hint="check the table (RESTORE returns to an earlier version); then accept it and "
                "recompute every model with `build`",
            )


def _lost(message: str) -> StateError:
    return StateError(
        "LANDED_TABLE_LOST",
        message,
        hint="restore the table's folder, or land the files in the landing folder again "
        "with `build --new-epoch`; append-only sources skip files that their table holds",
    )
