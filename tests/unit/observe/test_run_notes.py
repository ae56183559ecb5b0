"""A run is noted from its first word to its end, however it ends."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from livemart.conflicts import TableChangedError
from livemart.errors import ConfigError, RefreshError
from livemart.observe.run_notes import RunNotes, memory_use
from livemart.project.node_results import NodeProgress
from livemart.run.events import BatchBegan, BatchEnded, BatchRetried, RecordsLanded, StepBegan
from livemart.settings import load_settings
from livemart.state.drift import DriftedField, DriftKind
from livemart.state.last_run import (
    BuildProgress,
    LastRun,
    MemoryUse,
    TestStanding,
    read_last_run,
    run_from_json,
)
from livemart.state.lock import hold_warehouse
from livemart.state.places import StateFolder
from livemart.store.reader import StoreReader
from tests.unit.observe.outcomes import make_held_outcome, make_landed, make_outcome

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
TOTALS = "model.shop.totals"
FAILED = RefreshError("MODEL_FAILED", "models/totals.sql:3: no\nmore", hint="mend", models=[TOTALS])
_PAGE = os.sysconf("SC_PAGE_SIZE")


class _Course:
    """A run of which a test says what happens; its clock goes on by a second with each look."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._seconds = 0
        self.notes = self._make()

    def _make(self) -> RunNotes:
        settings = load_settings({"warehouse": self.folder}, environ={}, directory=self.folder)
        return RunNotes(settings, "refresh", now=self._now)

    def _now(self) -> datetime:
        self._seconds += 1
        return NOON + timedelta(seconds=self._seconds)

    @contextmanager
    def run(self, *, is_stopped: bool = False) -> Iterator[RunNotes]:
        """Yield the notes of a further run, which holds the warehouse."""
        self.notes = self._make()
        with hold_warehouse(self.folder), self.notes.until_end(lambda: is_stopped):
            self.notes.handle(StepBegan("starting Spark"))
            yield self.notes

    def now(self) -> LastRun:
        run = read_last_run(self.folder)
        assert run is not None
        return run


@pytest.fixture
def course(tmp_path: Path) -> _Course:
    return _Course(tmp_path)


def test_a_run_that_fails_leaves_code_model_and_time(course: _Course) -> None:
    with pytest.raises(RefreshError), course.run() as notes:
        notes.handle(RecordsLanded(make_landed({})))
        raise FAILED

    run = course.now()
    assert (run.command, run.ending, run.pid) == ("refresh", "failed", os.getpid())
    assert run.failure is not None
    assert (run.failure.code, run.failure.models) == ("MODEL_FAILED", (TOTALS,))
    assert run.failure.message == "models/totals.sql:3: no"
    assert run.began_at < run.failure.at <= (run.ended_at or NOON)
    assert run.totals.failed_batches == 1


def test_a_failure_stays_until_something_has_succeeded(course: _Course) -> None:
    with pytest.raises(RefreshError), course.run():
        raise FAILED
    with course.run(is_stopped=True):
        assert course.now().ending is None
        assert course.now().failure is not None
    assert (course.now().ending, course.now().failure is None) == ("stopped", False)

    with course.run() as notes:
        notes.handle(BatchEnded(make_outcome()))
        assert course.now().failure is None

    assert (course.now().ending, course.now().failure) == ("ok", None)


def test_a_batch_that_is_run_again_is_a_failure_unless_another_writer_came_first(
    course: _Course,
) -> None:
    with course.run() as notes:
        notes.handle(RecordsLanded(make_landed({})))
        notes.handle(
            BatchRetried(TableChangedError("TABLE_CHANGED", "s.t: changed", hint="wait"), 0, 3)
        )
        assert course.now().failure is None
        notes.handle(BatchRetried(OSError("the disk is away"), 1, 3))
        failure = course.now().failure
        assert failure is not None
        assert (failure.code, failure.message) == ("UNEXPECTED", "the disk is away")
        notes.handle(BatchEnded(make_outcome()))

    assert course.now().failure is None
    assert course.now().totals.failed_batches == 1


def test_a_build_tells_how_many_of_its_models_are_made(course: _Course) -> None:
    def model(is_stored: bool) -> Any:
        return SimpleNamespace(is_stored=is_stored)

    models = {"model.a": model(True), "model.b": model(True), "model.view": model(False)}
    with course.run() as notes:
        # dbt compiles a node before anything is known of the project.
        notes.handle(NodeProgress("model.a", "success"))
        assert course.now().progress is None
        course.notes.knows(SimpleNamespace(models=models))  # type: ignore[arg-type]
        for unique_id in ("model.a", "model.view", "test.t"):
            notes.handle(NodeProgress(unique_id, None))
            notes.handle(NodeProgress(unique_id, None, "a line of dbt"))
            notes.handle(NodeProgress(unique_id, "success"))
        assert course.now().progress == BuildProgress(1, 2)
        notes.handle(BatchEnded(make_outcome()))
        assert course.now().progress is None

        # A refresh builds nothing, though dbt compiles nodes in it.
        notes.handle(BatchBegan(2))
        notes.handle(NodeProgress("model.b", "success"))
        assert course.now().progress is None


def test_sums_go_on_from_run_to_run_and_the_newest_batch_is_told(course: _Course) -> None:
    drift = (DriftedField(DriftKind.UNDECLARED, "note"),)
    held = make_held_outcome()
    assert held.snapshot is not None
    held = replace(held, snapshot=replace(held.snapshot, drift={"bronze.orders": drift}))
    for outcome in (make_outcome(), held):
        with course.run() as notes:
            notes.handle(BatchEnded(outcome))

    run = course.now()

    assert run.totals.batches == 2
    assert run.totals.batch_seconds == pytest.approx(4.2)
    assert run.totals.landed == {"bronze.orders": 2_000}
    assert run.totals.dead_letters == {"bronze.orders": 4}
    assert run.newest is not None
    assert (run.newest.snapshot_id, run.newest.is_held, run.newest.took_s) == (7, True, 2.1)
    assert run.newest.tests == {
        "test.livemart.unique_panes": TestStanding("fail", 3, "models/panes.yml:9")
    }
    assert run.newest.drift == {"bronze.orders": 1}


def test_a_test_that_looked_at_nothing_new_keeps_its_number_of_rows(course: _Course) -> None:
    with course.run() as notes:
        notes.handle(BatchEnded(make_held_outcome()))
        again = make_held_outcome()
        name = "test.livemart.unique_panes"
        unchanged = replace(again.checks[name], failures=None, how="unchanged")
        notes.handle(BatchEnded(replace(again, checks={name: unchanged})))

    newest = course.now().newest
    assert newest is not None
    assert newest.tests == {name: TestStanding("fail", 3, "models/panes.yml:9")}


@pytest.mark.parametrize(("code", "ending"), [(0, "ok"), (1, "incomplete"), (143, "stopped")])
def test_the_exit_code_says_how_a_run_without_an_error_ended(
    course: _Course, code: int, ending: str
) -> None:
    with pytest.raises(SystemExit), course.run():
        raise SystemExit(code)

    assert (course.now().ending, course.now().failure) == (ending, None)


def test_a_mistake_found_before_the_warehouse_is_held_is_a_failure_too(course: _Course) -> None:
    mistake = ConfigError("PROFILES_NOT_FOUND", "profiles: none", hint="write it")
    with pytest.raises(ConfigError), course.notes.until_end():
        raise mistake
    # Nothing is made where no warehouse is.
    assert list(course.folder.iterdir()) == []

    StateFolder(course.folder).path.mkdir()
    with pytest.raises(ConfigError), course.notes.until_end():
        raise mistake

    assert course.now().ending == "failed"
    assert course.now().failure is not None


def test_a_run_that_another_one_keeps_out_leaves_its_note_alone(course: _Course) -> None:
    with course.run():
        before = course.now()
        late = course._make()
        with pytest.raises(ConfigError), late.until_end():
            raise ConfigError("RUNNER_LIVES", "held", hint="wait")

        assert course.now() == before


def test_a_full_disk_ends_no_run_because_of_its_note(
    course: _Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with course.run() as notes:
        monkeypatch.setattr("livemart.observe.run_notes.keep_last_run", refuse)
        notes.handle(BatchEnded(make_outcome()))


def test_a_store_elsewhere_has_the_copy_when_the_run_has_ended(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'elsewhere.db'}"
    given = {"warehouse": tmp_path / "warehouse", "store": url}
    notes = RunNotes(load_settings(given, environ={}, directory=tmp_path), "refresh")

    with (
        pytest.raises(RefreshError),
        hold_warehouse(tmp_path / "warehouse"),
        notes.until_end(),
    ):
        notes.handle(BatchEnded(make_outcome()))
        raise FAILED

    with closing(StoreReader.open(url)) as reader:
        assert run_from_json(reader.run_copy()) == read_last_run(tmp_path / "warehouse")


def test_a_store_that_is_away_ends_no_run(tmp_path: Path) -> None:
    given = {"warehouse": tmp_path, "store": "postgresql://127.0.0.1:1/none"}
    notes = RunNotes(load_settings(given, environ={}, directory=tmp_path), "refresh")

    with hold_warehouse(tmp_path), notes.until_end():
        notes.handle(StepBegan("starting Spark"))

    run = read_last_run(tmp_path)
    assert run is not None
    assert run.ending == "ok"


def _process(proc: Path, name: str, comm: str, pages: int) -> Path:
    folder = proc / name
    folder.mkdir(parents=True)
    (folder / "comm").write_text(f"{comm}\n")
    (folder / "statm").write_text(f"900 {pages} 7 1 0 3 0\n")
    return folder


def test_the_jvm_counts_whichever_thread_has_started_it(tmp_path: Path) -> None:
    threads = _process(tmp_path, "self", "python", 20) / "task"
    for thread, children in (("1", "7 8 "), ("2", "9 "), ("3", None)):
        (threads / thread).mkdir(parents=True)
        if children is not None:
            (threads / thread / "children").write_text(children)
    _process(tmp_path, "7", "java", 300)
    _process(tmp_path, "8", "git", 5)

    # The process 9 has ended since.
    assert memory_use(tmp_path) == MemoryUse(20 * _PAGE, 300 * _PAGE)


def test_a_system_that_does_not_say_is_unknown(tmp_path: Path) -> None:
    assert memory_use(tmp_path) is None


def test_this_process_holds_memory() -> None:
    found = memory_use()

    assert found is None or found.python_bytes > 1_000_000
