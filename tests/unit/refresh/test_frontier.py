"""Which models cannot start from the frontier, and which landed tables cannot be trusted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import pytest

from livemart.conflicts import TableChangedError
from livemart.delta.log import LogEntry
from livemart.delta.tags import Tags
from livemart.errors import StateError
from livemart.plan.plan import Full, Plan
from livemart.plan.project_plans import ProjectPlans
from livemart.plan.stored_queries import StoredQuery, stored_queries
from livemart.project.graph import Project
from livemart.project.questions import Question
from livemart.refresh.frontier import (
    LeftAlone,
    Loaded,
    Rebuild,
    Refresh,
    Rest,
    Start,
    Wait,
    check_landed,
    find_rebuild,
    find_starts,
    leave_out,
    refuse_writes_since,
    set_aside,
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
    return LogEntry(version, tags, metadata, True, None, (), (), ())


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


def project(*unique_ids: str) -> Project:
    models = {key: make_model(key) for key in unique_ids or (MODEL,)}
    return Project("mini", ".", "mini", {}, models, {}, {})


def queries(project: Project, prints: Mapping[str, str]) -> dict[str, StoredQuery]:
    plans = {key: Plan(Full(), fingerprint=fingerprint) for key, fingerprint in prints.items()}
    return stored_queries(project, plans)


def rebuild_of(table: Table | None, newest: Snapshot | None = None, mark: str = "print") -> object:
    tables = FakeTables({} if table is None else {RELATION: table})
    (query,) = queries(project(), {MODEL: mark}).values()
    rebuild = find_rebuild(query, newest or snapshot(), tables, Tags("e", 4))
    return (rebuild.code, rebuild.generation) if rebuild else None


def test_a_model_as_the_log_names_it_starts_from_the_frontier() -> None:
    assert rebuild_of(Table()) is None


def test_a_model_that_the_log_does_not_name_is_new() -> None:
    assert rebuild_of(Table(), snapshot(models={})) == ("NEW_MODEL", 0)


def test_other_sql_is_another_generation() -> None:
    assert rebuild_of(Table(), mark="other") == ("FINGERPRINT_CHANGED", 3)


def test_other_sql_of_a_model_that_asks_the_warehouse_has_its_own_reason() -> None:
    asking = replace(project(), questions={MODEL: (Question("relation", "mini.old", ""),)})
    tables = FakeTables({RELATION: Table()})

    (query,) = queries(asking, {MODEL: "x"}).values()
    rebuild = find_rebuild(query, snapshot(), tables, Tags("e", 4))

    assert rebuild is not None
    assert rebuild.code == "ASKS_THE_WAREHOUSE"


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


def test_a_table_that_hooks_fill_is_taken_over_whoever_has_written_it() -> None:
    filled = replace(project().models[MODEL], filled="wholly")
    filled_project = replace(project(), models={MODEL: filled})

    def found(table: Table, mark: str = "print") -> object:
        tables = FakeTables({RELATION: table})
        (query,) = queries(filled_project, {MODEL: mark}).values()
        rebuild = find_rebuild(query, snapshot(), tables, Tags("e", 4))
        return (rebuild.code, rebuild.generation) if rebuild else None

    assert found(Table()) is None
    assert found(Table(7, commits=[commit(6), commit(7)])) == ("FILLED_BY_HOOKS", 2)
    made_anew = Table(1, table_id="other", commits=[commit(0), commit(1)])
    assert found(made_anew) == ("FILLED_BY_HOOKS", 2)
    assert found(Table(), mark="other") == ("FINGERPRINT_CHANGED", 3)


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
STATE = ModelState(5, "print", "region", None, 9, 5, 2, "id")
PRINTS = {FAILED: "f", WAITS: "w", NEW: "n"}


def without_three(snapshot_id: int) -> Snapshot:
    """Return a snapshot without three models, since snapshot 10."""
    aside = {
        key: SetAside(10, NOON, fingerprint, FAILED, "") for key, fingerprint in PRINTS.items()
    }
    return snapshot(
        snapshot_id=snapshot_id,
        models={FAILED: replace(STATE, fingerprint="f"), WAITS: replace(STATE, fingerprint="w")},
        set_aside=aside,
    )


def starts_of(
    newest: Snapshot, prints: Mapping[str, str] = PRINTS, **options: Any
) -> dict[str, Start]:
    models = project(*prints)
    tables = FakeTables({it.relation: Table() for it in models.models.values()})
    return find_starts(
        newest, queries(models, prints), tables, Tags("e", 4), **{"left_out": {}} | options
    )


def resting(newest: Snapshot, prints: Mapping[str, str] = PRINTS, **options: Any) -> set[str]:
    starts = starts_of(newest, prints, **options)
    return {key for key, it in starts.items() if isinstance(it, Rest | Wait)}


@pytest.mark.parametrize(
    ("snapshot_id", "is_tried"),
    [(10, True), (11, True), (12, False), (13, True), (14, False), (17, True), (18, False)],
)
def test_it_is_tried_after_1_2_4_8_snapshots_together_with_what_waits(
    snapshot_id: int, is_tried: bool
) -> None:
    assert resting(without_three(snapshot_id)) == (set() if is_tried else set(PRINTS))


@pytest.mark.parametrize(
    ("edited", "others"), [(FAILED, set()), (WAITS, {FAILED, NEW}), (NEW, {FAILED, WAITS})]
)
def test_other_sql_is_tried_at_once_and_what_waits_for_it(edited: str, others: set[str]) -> None:
    assert resting(without_three(12), PRINTS | {edited: "edited"}) == others


def test_what_was_left_out_comes_back_with_the_next_pass() -> None:
    left_out = without_three(12)
    aside = {key: replace(it, message=LEFT_OUT) for key, it in left_out.set_aside.items()}

    assert resting(replace(left_out, set_aside=aside)) == set()


def test_what_waits_for_a_model_that_is_gone_is_tried() -> None:
    prints = {key: value for key, value in PRINTS.items() if key != FAILED}

    starts = starts_of(without_three(12), prints)

    # Nothing is said of the model itself, though the log still names it.
    assert {key: type(it) for key, it in starts.items()} == {WAITS: Rebuild, NEW: Rebuild}


def test_a_model_that_is_named_is_tried() -> None:
    assert resting(without_three(12), selected=frozenset({FAILED})) == set()


OUTSIDE = "m.written was written by another program (version 6)"
GOLDEN = f"""
plain: refresh
new: rebuild NEW_MODEL, generation 0: m.new is not in the log yet
edited: rebuild FINGERPRINT_CHANGED, generation 3: the SQL of m.edited is not that of the log
asking: rebuild ASKS_THE_WAREHOUSE, generation 3: the SQL of m.asking is not that of the log: it \
asks the warehouse
zoned: rebuild SESSION_CHANGED, generation 3: the session of m.zoned is another one: no setting
written: rebuild CHANGED_OUTSIDE, generation 3: {OUTSIDE}
named: rebuild SELECTED, generation 3: named by --select
mended: rebuild SET_ASIDE, generation 3: it was set aside
failed: rest since 4 for failed: no such column
waits: wait since 4 for failed: no such column
unselected: left alone since 7 for unselected: {LEFT_OUT}
reader: wait since 7 for unselected: {LEFT_OUT}
""".replace("\\\n", "")


def told(unique_id: str, start: Start) -> str:
    name = unique_id.rpartition(".")[2]
    match start:
        case Rebuild(code, message, generation):
            return f"{name}: rebuild {code}, generation {generation}: {message}"
        case Rest(aside) | Wait(aside) | LeftAlone(aside):
            words = {Rest: "rest", Wait: "wait", LeftAlone: "left alone"}
            cause = aside.cause.rpartition(".")[2]
            word = f"{words[type(start)]} since {aside.since}"
            return f"{name}: {word} for {cause}: {aside.message}"
    return f"{name}: refresh"


def test_each_reason_to_start_elsewhere_than_at_the_frontier() -> None:
    names = [line.partition(":")[0] for line in GOLDEN.strip().splitlines()]
    ids = {name: f"model.m.{name}" for name in names}
    models = {key: make_model(key) for key in ids.values()}
    models[ids["reader"]] = make_model(ids["reader"], depends_on=(ids["unselected"],))
    questions = {ids["asking"]: (Question("relation", "m.old", ""),)}
    tables = FakeTables({it.relation: Table() for it in models.values()})
    tables.tables["m.written"] = Table(6, commits=[commit(6)])
    prints = dict.fromkeys(ids.values(), "print")
    prints |= {ids["edited"]: "x", ids["asking"]: "x", ids["zoned"]: "print.zone"}
    aside = SetAside(4, NOON, "print", ids["failed"], "no such column")
    newest = snapshot(
        snapshot_id=6,
        models={key: STATE for name, key in ids.items() if name != "new"},
        set_aside={
            ids["failed"]: aside,
            ids["waits"]: aside,
            ids["mended"]: replace(aside, fingerprint="of the mistake", cause=ids["mended"]),
        },
    )
    project = Project("m", ".", "m", {}, models, {}, {}, questions=questions)
    of_project = queries(project, prints)

    def starts(is_outdated: bool) -> str:
        left_out = leave_out(newest, of_project, {ids["unselected"]})
        starts = find_starts(
            newest,
            of_project,
            tables,
            Tags("e", 9),
            left_out=left_out,
            selected={ids["named"]},
            is_outdated=is_outdated,
        )
        return "\n".join(told(key, start) for key, start in starts.items())

    golden = GOLDEN.strip()
    assert starts(False) == golden
    message = f"since 7 for written: {OUTSIDE}, and the edited project cannot be read"
    rebuilt = f"rebuild CHANGED_OUTSIDE, generation 3: {OUTSIDE}"
    assert starts(True) == golden.replace(rebuilt, f"left alone {message}")


def test_a_model_has_the_age_that_it_had_unless_it_was_left_out_and_fails_now() -> None:
    failed = SetAside(2, NOON, "f", FAILED, "no")
    newest = snapshot(
        models={FAILED: STATE}, set_aside={FAILED: failed, NEW: replace(failed, message=LEFT_OUT)}
    )

    def age(unique_id: str, message: str, newest: Snapshot | None = newest) -> object:
        aside = set_aside(newest, unique_id, "f", unique_id, message)
        return aside.since, aside.refreshed_at

    assert age(FAILED, "still no") == age(FAILED, LEFT_OUT) == age(NEW, LEFT_OUT) == (2, NOON)
    assert age(NEW, "no") == (8, NOON)
    assert age(WAITS, "no") == (8, None)
    assert age(WAITS, "no", replace(newest, models={WAITS: STATE})) == (8, newest.finished_at)
    assert age(NEW, LEFT_OUT, None) == (1, None)


def test_what_is_left_out_holds_up_what_reads_it_through_views_and_by_its_name() -> None:
    seed = make_model("seed.m.shops", materialized="seed", compiled_code=None)
    view = make_model(
        "model.m.seen",
        materialized="view",
        compiled_code="select * from m.shops",
        depends_on=(seed.unique_id,),
    )
    table = make_model(
        "model.m.counted",
        compiled_code="select city, count(*) as n from m.seen group by 1",
        depends_on=(view.unique_id,),
    )
    named = make_model("model.m.named", compiled_code="select n from m.counted")
    nodes = {model.unique_id: model for model in (seed, view, table, named)}
    real = ProjectPlans(Project("m", ".", "m", {}, nodes, {}, {}))
    state = replace(STATE, fingerprint=real.models[seed.unique_id].fingerprint)
    seed_id, others = seed.unique_id, {table.unique_id: Wait, named.unique_id: Wait}

    def left_out(newest: Snapshot | None) -> dict[str, type[Start]]:
        return {key: type(it) for key, it in leave_out(newest, real.stored, {seed_id}).items()}

    assert left_out(None) == left_out(snapshot(models={})) == {seed_id: LeftAlone} | others
    # An unedited file is as it would be loaded.
    assert left_out(snapshot(models={seed_id: state})) == {}
    assert leave_out(None, real.stored, set()) == {}


def test_what_has_failed_is_told_as_failed_though_it_is_left_out() -> None:
    of_project = queries(project(*PRINTS), PRINTS)

    starts = leave_out(without_three(12), of_project, {FAILED, WAITS})

    assert starts[FAILED] == Rest(without_three(12).set_aside[FAILED])
    assert isinstance(starts[WAITS], LeftAlone)


@pytest.mark.parametrize(
    ("start", "commits", "is_refused"),
    [
        (Refresh(), [], False),
        (Refresh(), [commit(6)], True),
        (Rebuild("SELECTED", "", 3), [commit(6, e__mini_dot_totals__3=4)], False),
        (Rebuild("SELECTED", "", 3), [commit(6, e__mini_dot_totals__3=4), commit(7)], True),
        (Loaded("FINGERPRINT_CHANGED", "", 3, STATE), [commit(6), commit(7)], False),
        (Rest(SetAside(2, NOON, "print", MODEL, "no")), [commit(6)], False),
    ],
)
def test_a_commit_in_the_middle_of_a_batch_replays_it(
    start: Start, commits: list[LogEntry | None], is_refused: bool
) -> None:
    tables = FakeTables({RELATION: Table(5 + len(commits), commits=commits)})

    def refuse() -> None:
        of_project = queries(project(), {MODEL: "print"})
        refuse_writes_since({MODEL: start}, {}, snapshot(), of_project, tables, Tags("e", 4))

    if is_refused:
        with pytest.raises(TableChangedError, match="while batch 4 was refreshed"):
            refuse()
    else:
        refuse()
