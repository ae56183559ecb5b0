"""Which models a batch leaves alone, and in which order it takes the others."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
import structlog

from livemart.conflicts import may_pass
from livemart.delta.tags import Tag, Tags
from livemart.delta.warehouse import Commit, Warehouse
from livemart.errors import PlanError, RefreshError
from livemart.own_faults import VARIABLE
from livemart.plan.project_plans import ProjectPlans
from livemart.plan.stored_queries import StoredQuery
from livemart.project.graph import Column, Project
from livemart.refresh import models, strategy
from livemart.refresh.context import BatchContext, BatchMemory, SqlChanged
from livemart.refresh.frontier import (
    Broken,
    LeftAlone,
    Rebuild,
    Refresh,
    Rest,
    Start,
    Wait,
    find_rebuild,
    refuse_writes_since,
)
from livemart.refresh.inputs import PinnedInputs
from livemart.spark.model_errors import ModelFailedError
from livemart.state.snapshots import LEFT_OUT, ModelState, SetAside, Snapshot
from tests.models import make_model
from tests.unit.delta.small_tables import RELATION, SMALL, diff, tag

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
FRONTIER = Snapshot(7, "e", 2, "refresh", None, {}, {}, {}, "published", NOON, NOON)
BEFORE = ModelState(4, "f", "region", "COST_GATE", 9, 5, 2, "t")
SEED = make_model("seed.m.shops", materialized="seed", compiled_code=None)
VIEW = make_model(
    "model.m.seen",
    materialized="view",
    compiled_code="select * from m.shops",
    depends_on=(SEED.unique_id,),
)
TABLE = make_model(
    "model.m.counted",
    compiled_code="select city, count(*) as n from m.seen group by 1",
    depends_on=(VIEW.unique_id,),
)


def test_a_batch_that_begins_again_tells_what_it_has_committed(tmp_path: Path) -> None:
    warehouse, rows = Warehouse(tmp_path), pa.table({"id": [1, 2], "name": ["a", "b"]})
    replaced = tag(1).moved_by("full", "FINGERPRINT_CHANGED")
    moved, older = tag(2).moved_by("signed"), tag(4)
    warehouse.overwrite(RELATION, rows.cast(SMALL), replaced)
    assert _told(warehouse, replaced) == (2, {"strategy": "full", "reason": "FINGERPRINT_CHANGED"})

    warehouse.commit(RELATION, diff((1, "a", 1, 0), (1, "c", 0, 1), (7, "x", 0, 1)), moved)
    warehouse.commit(RELATION, diff((8, "x", 0, 1)), tag(3))
    # The one is an update, and counts as it was and as it is; another commit came behind it.
    assert _told(warehouse, moved) == (3, {"strategy": "signed", "rows_changed": "3"})

    warehouse.commit(RELATION, diff((9, "x", 0, 1)), older)
    assert _told(warehouse, older) == (0, {})


@pytest.mark.parametrize("is_new", [False, True], ids=["a model of the log", "a new model"])
@pytest.mark.parametrize(
    ("read", "computed"),
    [((5, 5, 5), [5]), ((5, 6, 6), [5, 6]), ((5, 6, 5), [5, 6, 5]), ((5, 7, 7), [5, 7, 7])],
    ids=["the same", "another", "another and back", "another without a change"],
)
def test_a_batch_that_begins_again_with_other_inputs_recomputes_what_it_has_committed(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    read: tuple[int, ...],
    computed: list[int],
    is_new: bool,
) -> None:
    nodes = {model.unique_id: model for model in (SEED, VIEW, TABLE)}
    stored = ProjectPlans(Project("m", ".", "m", {}, nodes, {}, {})).stored
    query, relation, tags = stored[TABLE.unique_id], TABLE.relation, Tags("e", 3)
    warehouse, rows = Warehouse(tmp_path), pa.table({"id": [1], "name": ["a"]}, schema=SMALL)
    states = {SEED.unique_id: BEFORE}
    if is_new:
        warehouse.create(relation, SMALL)
    else:
        warehouse.overwrite(relation, rows, Tags("e", 2).rows(relation, 0, query.fingerprint))
        table_id = warehouse.table_id(relation)
        states[TABLE.unique_id] = ModelState(1, query.fingerprint, "full", None, 1, 5, 0, table_id)
    frontier, first = replace(FRONTIER, models=states), warehouse.version(relation)
    found: list[int] = []

    def compute(tag: Tag, inputs: PinnedInputs) -> Commit:
        found.append(inputs.new["m.shops"])
        if found[-1] == 7:
            return Commit(warehouse.version(relation))
        return warehouse.commit(relation, diff((len(found) + 1, "b", 0, 1)), tag)

    monkeypatch.setattr(
        models, "move", lambda _, __, inputs, tag: (compute(tag, inputs), "signed", None)
    )
    monkeypatch.setattr(
        models, "refresh_full", lambda _, __, inputs, tag, ___: compute(tag, inputs)
    )
    monkeypatch.setattr(warehouse, "exists", lambda name: name == relation)
    for shops in read:
        start = find_rebuild(query, frontier, warehouse, tags) or Refresh()
        after = models.refresh_models(
            BatchContext(cast(Any, None), warehouse, "e", 3, "auto", 10, 1),
            stored,
            PinnedInputs(
                warehouse,
                {"m.shops": 4, relation: first},
                {},
                states | {SEED.unique_id: replace(BEFORE, version=shops)},
            ),
            frontier,
            {SEED.unique_id: Refresh(), TABLE.unique_id: start},
            report=lambda *_: None,
            before_model=lambda *_: None,
            attempts=1,
            runs_again=False,
        ).states
        refuse_writes_since({TABLE.unique_id: start}, after, frontier, stored, warehouse, tags)
        assert after[TABLE.unique_id].version == warehouse.version(relation)
    assert found == computed


def _told(warehouse: Warehouse, committed: Tag) -> tuple[int, dict[str, str]]:
    commit, said = models.committed_before(warehouse, RELATION, committed)
    assert (commit.skipped, commit.version) == (True, warehouse.version(RELATION))
    return commit.rows_changed, dict(said)


def test_a_model_whose_inputs_have_not_changed_keeps_its_state(tmp_path: Path) -> None:
    project = Project("m", ".", "m", {}, {m.unique_id: m for m in (SEED, VIEW, TABLE)}, {}, {})
    warehouse = Warehouse(tmp_path)
    said: list[tuple[str, str, ModelState | None]] = []

    def report(unique_id: str, word: str, state: ModelState | None = None, /) -> None:
        said.append((unique_id, word, state))

    context = BatchContext(cast(Any, None), warehouse, "e", 3, "auto", 10, 1)
    states = {model.unique_id: BEFORE for model in (SEED, TABLE)}
    versions = {"m.shops": 4, "m.counted": 4}

    after = models.refresh_models(
        context,
        ProjectPlans(project).stored,
        PinnedInputs(warehouse, versions, dict(versions), states),
        replace(FRONTIER, models=states),
        dict.fromkeys(states, Refresh()),
        report=report,
        before_model=lambda *_: None,
        attempts=1,
        runs_again=False,
    )

    unchanged = replace(BEFORE, strategy="unchanged", reason=None, rows_changed=0, took_ms=0)
    assert after.states == {SEED.unique_id: unchanged, TABLE.unique_id: unchanged}
    assert after.set_aside == {}
    # The table waits for the seed that it reads through the view.
    assert [unique_id for unique_id, word, _ in said if word == "started"] == list(states)
    assert [state for *_, state in said if state] == [unchanged, unchanged]


CHILD = make_model(
    "model.m.doubled",
    compiled_code="select city, 2 * n as n from m.counted",
    depends_on=(TABLE.unique_id,),
)
OTHER = make_model("model.m.other", compiled_code="select 1 as n")


class Batches:
    """Batches of a project in which one model fails; the tables are made up."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch, **other: Any) -> None:
        failing = replace(TABLE, **other)
        self.project = Project(
            "m", ".", "m", {}, {m.unique_id: m for m in (VIEW, failing, CHILD, OTHER)}, {}, {}
        )
        self.plans = ProjectPlans(self.project)
        self.warehouse = Warehouse(folder)
        self.between_batches = BatchMemory()
        self.tried: list[str] = []
        patch.setattr(self.warehouse, "table_id", lambda relation: "t")
        patch.setattr(models, "refresh_full", self._refresh_full)

    def _refresh_full(
        self, context: Any, query: StoredQuery, inputs: Any, tag: Tag, stored: Any
    ) -> Commit:
        self.tried.append(query.owner.name)
        # By it a replay tells a commit of this SQL.
        assert tag == Tags("e", 3).rows(query.relation, 0)
        assert tag.metadata["fingerprint"] == query.fingerprint
        assert (tag.metadata["strategy"], tag.metadata["reason"]) == ("full", "NEW_MODEL")
        if query.unique_id == TABLE.unique_id:
            raise ZeroDivisionError("[DIVIDE_BY_ZERO] by zero")
        return Commit(0)

    def run(
        self,
        states: dict[str, ModelState] | None = None,
        starts: dict[str, Start] | None = None,
        behind: dict[str, SetAside] | None = None,
        **other: Any,
    ) -> models.RefreshedModels:
        new: Start = Rebuild("NEW_MODEL", "", 0)
        options: dict[str, Any] = {
            "report": lambda *_: None,
            "before_model": lambda *_: None,
            "attempts": 3,
            "runs_again": False,
        }
        return models.refresh_models(
            BatchContext(
                cast(Any, None),
                self.warehouse,
                "e",
                3,
                "auto",
                10,
                1,
                between_batches=self.between_batches,
            ),
            self.plans.stored,
            PinnedInputs(self.warehouse, {}, {}, states or {}),
            replace(FRONTIER, models=states or {}, set_aside=behind or {}),
            dict.fromkeys(self.plans.stored, new)
            | dict.fromkeys(states or {}, Refresh())
            | (starts or {}),
            **options | other,
        )


def test_a_model_that_is_new_is_recomputed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    batches = Batches(tmp_path, monkeypatch)

    state = batches.run(attempts=1).states[OTHER.unique_id]

    assert (state.strategy, state.reason, state.version) == ("full", "NEW_MODEL", 0)


def test_all_others_end_before_a_batch_begins_again_and_are_not_made_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pivot = replace(OTHER, unique_id="model.m.pivot", name="pivot", identifier="pivot")
    reader = replace(
        CHILD,
        unique_id="model.m.reader",
        name="reader",
        identifier="reader",
        compiled_code="select n from m.pivot",
        depends_on=(pivot.unique_id,),
    )
    batches = Batches(tmp_path, monkeypatch)
    batches.plans = ProjectPlans(
        Project("m", ".", "m", {}, {it.unique_id: it for it in (pivot, reader, OTHER)}, {}, {})
    )
    ended: dict[str, models.EndedModel] = {}
    asked: list[str] = []

    def before_model(unique_id: str, inputs: PinnedInputs) -> None:
        asked.append(unique_id)
        if unique_id == pivot.unique_id and asked.count(unique_id) == 1:
            raise SqlChanged(unique_id)

    with pytest.raises(SqlChanged) as waiting:
        batches.run(before_model=before_model, ended=ended)

    assert waiting.value.args == (pivot.unique_id, reader.unique_id)
    assert (batches.tried, list(ended)) == (["other"], [OTHER.unique_id])
    after = batches.run(before_model=before_model, ended=ended)
    assert batches.tried == ["other", "pivot", "reader"]
    assert after.states.keys() == {pivot.unique_id, reader.unique_id, OTHER.unique_id}
    assert after.states[OTHER.unique_id] == ended[OTHER.unique_id].state


@pytest.mark.parametrize(
    ("changed", "is_made"),
    [
        ({}, False),
        ({"fingerprint": "another"}, True),
        ({"start": Refresh()}, True),
        ({"read": {"m.counted": 1}}, True),
    ],
)
def test_what_has_ended_is_made_again_if_anything_that_decides_about_it_is_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: dict[str, Any], is_made: bool
) -> None:
    batches = Batches(tmp_path, monkeypatch)
    batches.plans = ProjectPlans(
        Project("m", ".", "m", {}, {it.unique_id: it for it in (OTHER, CHILD)}, {}, {})
    )
    ended: dict[str, models.EndedModel] = {}
    batches.run(ended=ended)
    # Its input is of unknown origin, and may have changed unseen.
    assert list(ended) == [OTHER.unique_id]
    ended[OTHER.unique_id] = replace(ended[OTHER.unique_id], **changed)
    batches.tried.clear()

    batches.run(ended=ended)

    assert ("other" in batches.tried, "doubled" in batches.tried) == (is_made, True)


def test_a_model_is_set_aside_by_its_last_attempt_and_what_reads_it_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches = Batches(tmp_path, monkeypatch)
    starts: dict[str, Start] = {TABLE.unique_id: Rebuild("SELECTED", "", 3)}
    states = {TABLE.unique_id: BEFORE}
    for _ in range(2):
        with pytest.raises(RefreshError, match=r"MODEL_FAILED: models/counted\.sql") as raised:
            batches.run(states, starts, runs_again=True)
        assert may_pass(raised.value)

    done = batches.run(states, starts)

    # The others were refreshed in each attempt, and what waits never was tried.
    assert batches.tried.count("counted") == batches.tried.count("other") == 3
    assert "doubled" not in batches.tried
    assert set(done.states) == {TABLE.unique_id, OTHER.unique_id}
    carried = done.states[TABLE.unique_id]
    assert (carried.version, carried.strategy) == (BEFORE.version, "unchanged")
    failed, waits = done.set_aside[TABLE.unique_id], done.set_aside[CHILD.unique_id]
    assert {failed.cause, waits.cause} == {TABLE.unique_id}
    assert (failed.since, failed.refreshed_at) == (8, NOON)
    # It never had rows.
    assert (waits.since, waits.refreshed_at) == (8, None)


def test_a_model_that_was_set_aside_is_given_one_attempt_and_keeps_its_age(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches = Batches(tmp_path, monkeypatch)
    fingerprint = batches.plans.models[TABLE.unique_id].fingerprint
    known = SetAside(2, NOON - timedelta(hours=1), fingerprint, TABLE.unique_id, "before")

    done = batches.run(behind={TABLE.unique_id: known})

    aside = done.set_aside[TABLE.unique_id]
    assert (aside.since, aside.refreshed_at) == (known.since, known.refreshed_at)
    assert aside.message != "before"
    starts: dict[str, Start] = {TABLE.unique_id: Rest(known)}
    rests = batches.run(starts=starts, behind={TABLE.unique_id: known})
    assert rests.set_aside[TABLE.unique_id] is known
    # A model that reads it waits for the same model.
    assert rests.set_aside[CHILD.unique_id].message == "before"
    assert batches.tried.count("counted") == 1


def test_a_model_that_was_left_out_has_all_attempts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches = Batches(tmp_path, monkeypatch)
    fingerprint = batches.plans.models[TABLE.unique_id].fingerprint
    known = SetAside(2, NOON, fingerprint, TABLE.unique_id, LEFT_OUT)

    with pytest.raises(RefreshError, match="MODEL_FAILED"):
        batches.run(behind={TABLE.unique_id: known})


def test_other_sql_is_given_all_attempts_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches = Batches(tmp_path, monkeypatch)
    known = SetAside(2, NOON, "of other SQL", TABLE.unique_id, "before")

    with pytest.raises(RefreshError, match="MODEL_FAILED") as raised:
        batches.run(behind={TABLE.unique_id: known})
    # Nothing but a stream runs it again by itself.
    assert not may_pass(raised.value)


def test_a_model_may_say_that_its_error_stops_everything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches = Batches(tmp_path, monkeypatch, on_error="stop")

    with pytest.raises(RefreshError, match="MODEL_FAILED") as raised:
        batches.run(attempts=1)

    assert not may_pass(raised.value)


@pytest.mark.parametrize("text", ["DELTA_CONCURRENT_APPEND", "[SPARK_JOB_CANCELLED] Job 3"])
def test_what_is_no_models_fault_sets_none_aside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    batches = Batches(tmp_path, monkeypatch)

    def fail(*_: object) -> Commit:
        raise RuntimeError(text)

    monkeypatch.setattr(models, "refresh_full", fail)

    with pytest.raises(RuntimeError, match=re.escape(text)):
        batches.run(attempts=1)


def test_a_seed_that_dbt_cannot_load_is_set_aside_with_what_reads_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = Project("m", ".", "m", {}, {m.unique_id: m for m in (SEED, VIEW, TABLE)}, {}, {})
    batches = Batches(tmp_path, monkeypatch)
    batches.plans = ProjectPlans(project)
    states = {SEED.unique_id: BEFORE, TABLE.unique_id: BEFORE}

    done = batches.run(states, {SEED.unique_id: Broken("seeds/shops.csv: no")}, attempts=1)

    assert {key: aside.cause for key, aside in done.set_aside.items()} == {
        SEED.unique_id: SEED.unique_id,
        TABLE.unique_id: SEED.unique_id,
    }
    aside = done.set_aside
    starts: dict[str, Start] = {
        SEED.unique_id: LeftAlone(aside[SEED.unique_id]),
        TABLE.unique_id: Wait(aside[TABLE.unique_id]),
    }
    rests = batches.run(states, starts, behind=aside)
    assert rests.set_aside == done.set_aside
    assert batches.tried == []


@pytest.mark.parametrize("fails", ["stage", "last step"])
def test_a_step_that_fails_costs_its_model_no_more_than_a_full_refresh(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    monkeypatch.delenv(VARIABLE)
    top = make_model(
        "model.m.top",
        compiled_code="select city, count(*) as n from m.shops group by 1 order by n, city limit 3",
    )
    batches = Batches(tmp_path, monkeypatch)
    shops = replace(SEED, columns=(Column("city", "string"),))
    nodes = {shops.unique_id: shops, top.unique_id: top}
    batches.plans = ProjectPlans(Project("m", ".", "m", {}, nodes, {}, {}))
    texts: list[str] = []

    def refresh_full(context: Any, query: StoredQuery, *_: Any) -> Commit:
        assert query.flat is not None
        step = "stage" if query.is_stage else "last step" if query.stages else "whole"
        if step == fails:
            raise ZeroDivisionError("of ours")
        if step == "whole":
            texts.append(query.flat.render(lambda mention: mention.relation))
        return Commit(0)

    monkeypatch.setattr(models, "refresh_full", refresh_full)

    with structlog.testing.capture_logs() as events:
        done = batches.run({shops.unique_id: BEFORE})

    stage = "stage.m.top__1"
    aside = {stage} if fails == "stage" else set()
    assert done.states.keys() == {shops.unique_id, top.unique_id, stage} - aside
    assert done.set_aside.keys() == aside
    assert [" ".join(text.split()) for text in texts] == [
        "select city, count(*) as n from m.shops as `shops` group by 1 order by n, city limit 3"
    ]
    assert [event["event"] for event in events] == ["strategy_failed"]


def test_a_stage_that_decided_otherwise_than_the_whole_is_computed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLE)
    top = make_model(
        "model.m.top",
        compiled_code="with placed as (select shop, any_value(city) as city from m.shops "
        "group by 1) select city, count(*) as n from placed group by 1",
    )
    batches = Batches(tmp_path, monkeypatch)
    shops = replace(SEED, columns=(Column("city", "string"), Column("shop", "string")))
    nodes = {shops.unique_id: shops, top.unique_id: top}
    batches.plans = ProjectPlans(Project("m", ".", "m", {}, nodes, {}, {}))

    def refresh_full(context: Any, query: StoredQuery, *_: Any) -> Commit:
        if query.stages:
            raise ZeroDivisionError("of ours")
        return Commit(0)

    monkeypatch.setattr(models, "refresh_full", refresh_full)

    done = batches.run({shops.unique_id: BEFORE})

    # Both have a state: the model's rows are right, but do not follow from those of its stage.
    assert done.states.keys() == {*nodes, "stage.m.top__1"}
    assert done.set_aside["stage.m.top__1"].cause == "stage.m.top__1"


@pytest.mark.parametrize("rows_after", [0, 1])
def test_a_model_that_is_replaced_by_no_rows_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows_after: int
) -> None:
    batches = Batches(tmp_path, monkeypatch)
    batches.plans = ProjectPlans(Project("m", ".", "m", {}, {OTHER.unique_id: OTHER}, {}, {}))
    rows = pa.table({"id": [1], "name": ["a"]}, schema=SMALL)
    batches.warehouse.overwrite(OTHER.relation, rows, Tags("e", 2).rows(OTHER.relation))

    def move(context: BatchContext, query: StoredQuery, inputs: Any, tag: Tag) -> object:
        commit = context.warehouse.overwrite(query.relation, rows.slice(0, rows_after), tag)
        return commit, "full", None

    monkeypatch.setattr(models, "move", move)

    state = batches.run({OTHER.unique_id: replace(BEFORE, version=1, generation=0)}).states

    after = state[OTHER.unique_id]
    assert (after.version, after.strategy, after.rows_changed) == (2, "full", rows_after)


@pytest.mark.parametrize("fails", ["stage", "last step"])
def test_a_strict_model_of_which_a_step_fails_is_not_recomputed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    monkeypatch.delenv(VARIABLE)
    top = make_model(
        "model.m.top",
        compiled_code="select city, count(*) as n from m.shops group by 1 order by n, city limit 3",
        policy="strict",
    )
    batches = Batches(tmp_path, monkeypatch)
    shops = replace(SEED, columns=(Column("city", "string"),))
    nodes = {shops.unique_id: shops, top.unique_id: top}
    batches.plans = ProjectPlans(Project("m", ".", "m", {}, nodes, {}, {}))
    tried: list[str] = []

    def refresh_full(context: Any, query: StoredQuery, *_: Any) -> Commit:
        step = "stage" if query.is_stage else "last step" if query.stages else "whole"
        tried.append(step)
        if step == fails:
            raise ZeroDivisionError("of ours")
        return Commit(0)

    monkeypatch.setattr(models, "refresh_full", refresh_full)
    monkeypatch.setattr(strategy, "refresh_full", refresh_full)
    monkeypatch.setattr(strategy, "recompute", refresh_full)
    monkeypatch.setattr(PinnedInputs, "has_news", lambda *_: True)
    monkeypatch.setattr(PinnedInputs, "newest", lambda *_: None)

    said = {
        "stage": "stage.m.top__1 failed: see the log",
        "last step": "its last step failed: ZeroDivisionError: of ours",
    }
    with pytest.raises(PlanError, match=f"but STRATEGY_FAILED: {said[fails]}"):
        batches.run(dict.fromkeys(nodes, BEFORE))

    assert tried == ["stage", *["last step"] * (fails == "last step"), "whole"]


HISTORY = make_model("snapshot.m.history", materialized="snapshot", depends_on=(TABLE.unique_id,))


@pytest.mark.parametrize(("filled", "is_made"), [("wholly", False), ("partly", True)])
def test_a_table_that_hooks_fill_is_made_by_dbt_when_its_inputs_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, filled: Any, is_made: bool
) -> None:
    log = replace(TABLE, filled=filled)
    batches = Batches(tmp_path, monkeypatch)
    batches.plans = ProjectPlans(Project("m", ".", "m", {}, {log.unique_id: log}, {}, {}))
    monkeypatch.setattr(batches.warehouse, "exists", lambda relation: True)
    monkeypatch.setattr(batches.warehouse, "version", lambda relation: 9)
    monkeypatch.setattr(PinnedInputs, "has_news", lambda *_: True)
    made: list[str] = []

    done = batches.run(
        {log.unique_id: BEFORE},
        {log.unique_id: Refresh()},
        before_model=lambda unique_id, inputs: made.append(unique_id),
    )

    state = done.states[log.unique_id]
    assert made == [log.unique_id] * is_made
    assert state.version == (9 if is_made else BEFORE.version)
    assert state.reason == ("FILLED_BY_HOOKS" if is_made else None)
    assert state.generation == BEFORE.generation
    assert batches.tried == []


@pytest.mark.parametrize(
    ("code", "is_there", "is_made"),
    [
        ("NEW_MODEL", False, True),
        ("FINGERPRINT_CHANGED", True, True),
        ("SELECTED", True, True),
        ("CHANGED_OUTSIDE", True, False),
        ("CHANGED_OUTSIDE", False, True),
    ],
)
def test_a_dbt_snapshot_is_taken_over_as_dbt_leaves_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, is_there: bool, is_made: bool
) -> None:
    batches = Batches(tmp_path, monkeypatch)
    batches.plans = ProjectPlans(Project("m", ".", "m", {}, {HISTORY.unique_id: HISTORY}, {}, {}))
    monkeypatch.setattr(batches.warehouse, "exists", lambda relation: is_there)
    monkeypatch.setattr(batches.warehouse, "version", lambda relation: 9)
    made: list[str] = []

    done = batches.run(
        {} if code == "NEW_MODEL" else {HISTORY.unique_id: BEFORE},
        {HISTORY.unique_id: Rebuild(code, "", 3)},
        before_model=lambda unique_id, inputs: made.append(unique_id),
    )

    state = done.states[HISTORY.unique_id]
    assert (state.version, state.reason, state.generation, state.table_id) == (9, code, 3, "t")
    assert state.fingerprint == batches.plans.models[HISTORY.unique_id].fingerprint
    assert made == [HISTORY.unique_id] * is_made
    assert batches.tried == []


def test_a_dbt_snapshot_that_nobody_touched_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches = Batches(tmp_path, monkeypatch)
    batches.plans = ProjectPlans(Project("m", ".", "m", {}, {HISTORY.unique_id: HISTORY}, {}, {}))

    done = batches.run(
        {HISTORY.unique_id: BEFORE}, before_model=lambda *_: pytest.fail("dbt was asked")
    )

    assert done.states[HISTORY.unique_id].strategy == "unchanged"
    assert done.states[HISTORY.unique_id].version == BEFORE.version


def test_a_dbt_snapshot_that_dbt_cannot_make_costs_itself_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches = Batches(tmp_path, monkeypatch)
    nodes = {model.unique_id: model for model in (HISTORY, OTHER)}
    batches.plans = ProjectPlans(Project("m", ".", "m", {}, nodes, {}, {}))
    monkeypatch.setattr(batches.warehouse, "exists", lambda relation: False)

    def fail(unique_id: str, inputs: PinnedInputs) -> None:
        if unique_id == HISTORY.unique_id:
            raise ModelFailedError(HISTORY, "snapshots/history.sql: no")

    done = batches.run(before_model=fail, attempts=1)

    assert done.set_aside[HISTORY.unique_id].message == "snapshots/history.sql: no"
    assert set(done.states) == {OTHER.unique_id}
