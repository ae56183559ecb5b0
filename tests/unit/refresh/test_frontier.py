"""Which models cannot start from the frontier, and which landed tables cannot be trusted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import pytest

from livemart.delta.log import LogEntry
from livemart.errors import StateError
from livemart.project.graph import Project
from livemart.project.questions import Question
from livemart.refresh.context import Rebuild
from livemart.refresh.frontier import (
    check_landed,
    find_rebuilds,
    resting_models,
    returning_models,
)
from livemart.state.counts import TableCounts
from livemart.state.snapshots import LEFT_OUT, ModelState, SetAside, Snapshot
from tests.models import make_model

MODEL, RELATION, LANDED = "model.mini.totals", "mini.totals", "bronze.sales"


@dataclass
class Table:
    version: int = 5
    table_id: str = "id"
    commits: list[LogEntry | None] = field(default_factory=list)


@dataclass
class FakeTables:
    tables: dict[str, Table]

    def exists(self, relation: str) -> bool:
        return relation in self.tables

    def version(self, relation: str) -> int:
        return self.tables[relation].version

    def table_id(self, relation: str) -> str:
        return self.tables[relation].table_id

    def data_changed_between(self, relation: str, v0: int, v1: int) -> Sequence[LogEntry | None]:
        return [
            commit
            for commit in self.tables[relation].commits
            if commit is None or v0 < commit.version <= v1
        ]


def commit(version: int, **transactions: int) -> LogEntry:
    tags = {name.replace("__", "/").replace("_dot_", "."): n for name, n in transactions.items()}
    metadata = {"fingerprint": "print"} if tags else {}
    return LogEntry(version, "WRITE", 0, tags, metadata, True, None, (), (), ())


def snapshot(**changes: object) -> Snapshot:
    at = datetime(2026, 3, 1, tzinfo=UTC)
    values: dict[str, object] = {
        "snapshot_id": 7,
        "epoch": "e",
        "batch_id": 3,
        "kind": "refresh",
        "as_of": at,
        "sources": {LANDED: 5},
        "models": {MODEL: ModelState(5, "print", "signed", None, 0, 0, 2, "id")},
        "tests": {},
        "status": "published",
        "started_at": at,
        "finished_at": at,
        "landed": {LANDED: TableCounts(0, 0, 0, 0, "id")},
    }
    return Snapshot(**(values | changes))  # type: ignore[arg-type]


def project() -> Project:
    model = make_model(MODEL)
    return Project("mini", ".", "mini", {}, {MODEL: model}, {}, {})


def rebuild_of(table: Table | None, newest: Snapshot | None = None, mark: str = "print") -> object:
    tables = FakeTables({} if table is None else {RELATION: table})
    found = find_rebuilds(
        newest or snapshot(), project(), {MODEL: mark}, tables, epoch="e", batch_id=4
    )
    return (found[MODEL].code, found[MODEL].generation) if found else None


def test_a_model_as_the_log_names_it_starts_from_the_frontier() -> None:
    assert rebuild_of(Table()) is None


def test_a_model_that_the_log_does_not_name_is_new() -> None:
    assert rebuild_of(Table(), snapshot(models={})) == ("NEW_MODEL", 0)


def test_other_sql_is_another_generation() -> None:
    assert rebuild_of(Table(), mark="other") == ("FINGERPRINT_CHANGED", 3)


def test_other_sql_of_a_model_that_asks_the_warehouse_has_its_own_reason() -> None:
    asking = replace(project(), questions={MODEL: (Question("relation", "mini.old", ""),)})
    tables = FakeTables({RELATION: Table()})

    rebuilds = find_rebuilds(snapshot(), asking, {MODEL: "other"}, tables, epoch="e", batch_id=4)

    assert rebuilds[MODEL].code == "ASKS_THE_WAREHOUSE"


def test_another_session_is_another_generation_with_its_own_reason() -> None:
    assert rebuild_of(Table(), mark="print.zone") == ("SESSION_CHANGED", 3)
    assert rebuild_of(Table(), mark="other.zone") == ("FINGERPRINT_CHANGED", 3)


def test_a_missing_table_is_rebuilt() -> None:
    assert rebuild_of(None) == ("CHANGED_OUTSIDE", 3)


def test_another_table_in_the_same_place_is_rebuilt() -> None:
    assert rebuild_of(Table(table_id="other")) == ("CHANGED_OUTSIDE", 3)


def test_a_table_set_back_is_rebuilt() -> None:
    assert rebuild_of(Table(version=4)) == ("CHANGED_OUTSIDE", 3)


def test_a_commit_without_our_tag_is_from_outside() -> None:
    assert rebuild_of(Table(6, commits=[commit(6)])) == ("CHANGED_OUTSIDE", 3)


def test_a_rebuild_that_an_earlier_attempt_finished_is_found_again() -> None:
    table = Table(7, commits=[commit(6), commit(7, e__mini_dot_totals__3=4)])

    assert rebuild_of(table) == ("CHANGED_OUTSIDE", 3)


def test_a_commit_from_outside_after_that_is_another_generation() -> None:
    table = Table(8, commits=[commit(6), commit(7, e__mini_dot_totals__3=4), commit(8)])

    assert rebuild_of(table) == ("CHANGED_OUTSIDE", 4)


def test_sql_that_changed_between_two_attempts_is_another_generation() -> None:
    table = Table(6, commits=[commit(6, e__mini_dot_totals__3=4)])

    assert rebuild_of(table, mark="other") == ("FINGERPRINT_CHANGED", 4)


def test_sql_that_changed_back_between_two_attempts_is_rebuilt() -> None:
    stale = commit(6, e__mini_dot_totals__3=4)
    table = Table(6, commits=[replace(stale, metadata={"fingerprint": "other"})])

    assert rebuild_of(table) == ("SELECTED", 4)


def test_a_selected_model_that_an_earlier_attempt_rebuilt_is_not_moved_again() -> None:
    assert rebuild_of(Table(6, commits=[commit(6, e__mini_dot_totals__3=4)])) == ("SELECTED", 3)


def test_a_new_model_that_an_earlier_attempt_built_keeps_its_generation() -> None:
    built = Table(0, commits=[commit(0, e__mini_dot_totals__0=4)])

    assert rebuild_of(built, snapshot(models={})) == ("NEW_MODEL", 0)
    assert rebuild_of(built, snapshot(models={}), mark="other") == ("NEW_MODEL", 1)


def test_a_commit_of_the_batch_being_replayed_is_not_from_outside() -> None:
    assert rebuild_of(Table(6, commits=[commit(6, e__mini_dot_totals__2=4)])) is None


def test_a_commit_of_another_batch_is_from_outside() -> None:
    table = Table(6, commits=[commit(6, e__mini_dot_totals__2=9)])

    assert rebuild_of(table) == ("CHANGED_OUTSIDE", 3)


def test_a_commit_that_changes_no_data_is_not_from_outside() -> None:
    assert rebuild_of(Table(6)) is None


def test_a_commit_whose_entry_is_gone_may_be_from_outside() -> None:
    assert rebuild_of(Table(6, commits=[None])) == ("CHANGED_OUTSIDE", 3)


def check(table: Table | None, *, accept_changes: bool = False, epoch: str = "e") -> None:
    tables = FakeTables({} if table is None else {LANDED: table})
    check_landed(snapshot(), [LANDED], tables, epoch, accept_changes=accept_changes)


def test_what_landing_committed_is_trusted() -> None:
    check(Table(6, commits=[commit(6, e__bronze_dot_sales__0=4)]))


def test_what_landing_committed_under_the_epoch_before_is_trusted() -> None:
    check(Table(6, commits=[commit(6, e__bronze_dot_sales__0=4)]), epoch="new")


@pytest.mark.parametrize("table", [None, Table(version=4), Table(table_id="other")])
def test_a_lost_landed_table_is_refused_even_by_a_build(table: Table | None) -> None:
    with pytest.raises(StateError, match="LANDED_TABLE_LOST") as raised:
        check(table, accept_changes=True)

    assert "build --new-epoch" in raised.value.hint


def test_a_landed_table_written_by_hand_is_refused() -> None:
    with pytest.raises(StateError, match=r"LANDED_TABLE_CHANGED.*version 6"):
        check(Table(6, commits=[commit(6)]))


def test_a_build_accepts_a_landed_table_written_by_hand() -> None:
    check(Table(6, commits=[commit(6)]), accept_changes=True)


NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
FAILED, WAITS, NEW = "model.m.failed", "model.m.waits", "model.m.new"
STATE = ModelState(4, "f", "region", None, 9, 5, 2, "t")
PRINTS = {FAILED: "f", WAITS: "w", NEW: "n"}


def without_three(snapshot_id: int) -> Snapshot:
    """Return a snapshot without three models, since snapshot 10."""
    aside = {
        key: SetAside(10, NOON, fingerprint, FAILED, "") for key, fingerprint in PRINTS.items()
    }
    states = {FAILED: STATE, WAITS: STATE}
    return Snapshot(
        *(snapshot_id, "e", 7, "refresh", None, {}, states, {}, "published", NOON, NOON),
        set_aside=aside,
    )


@pytest.mark.parametrize(
    ("snapshot_id", "is_tried"),
    [(10, True), (11, True), (12, False), (13, True), (14, False), (17, True), (18, False)],
)
def test_it_is_tried_after_1_2_4_8_snapshots_together_with_what_waits(
    snapshot_id: int, is_tried: bool
) -> None:
    resting = resting_models(without_three(snapshot_id), PRINTS, frozenset())

    assert set(resting) == (set() if is_tried else set(PRINTS))


@pytest.mark.parametrize(
    ("edited", "resting"), [(FAILED, set()), (WAITS, {FAILED, NEW}), (NEW, {FAILED, WAITS})]
)
def test_other_sql_is_tried_at_once_and_what_waits_for_it(edited: str, resting: set[str]) -> None:
    prints = PRINTS | {edited: "edited"}

    assert set(resting_models(without_three(12), prints, frozenset())) == resting


def test_what_was_left_out_comes_back_with_the_next_pass() -> None:
    left_out = without_three(12)
    aside = {key: replace(it, message=LEFT_OUT) for key, it in left_out.set_aside.items()}

    assert resting_models(replace(left_out, set_aside=aside), PRINTS, frozenset()) == {}


def test_what_waits_for_a_model_that_is_gone_is_tried() -> None:
    prints = {key: value for key, value in PRINTS.items() if key != FAILED}

    assert resting_models(without_three(12), prints, frozenset()) == {}


def test_a_model_that_is_named_is_tried() -> None:
    assert resting_models(without_three(12), PRINTS, frozenset({FAILED})) == {}


def test_it_comes_back_by_a_rebuild_unless_it_is_rebuilt_anyway() -> None:
    snapshot = without_three(11)
    known = {FAILED: Rebuild("FINGERPRINT_CHANGED", "", 3)}

    returning = returning_models(snapshot, {}, known)

    # The new one has nothing to come back to: it is built as every new model.
    assert {key: (each.code, each.generation) for key, each in returning.items()} == {
        WAITS: ("SET_ASIDE", 3)
    }
    assert returning_models(replace(snapshot, set_aside={}), {}, {}) == {}
    assert returning_models(snapshot, snapshot.set_aside, {}) == {}
