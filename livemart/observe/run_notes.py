"""Notes how a run goes, for those who ask while it goes on and after it has ended.

Used by the commands that write. The note in the warehouse is the one that counts; a serving store
elsewhere gets a copy, for a server that cannot see the warehouse. Neither a full disk nor a store
that is away ever stops a run.

Linux says below /proc how much memory a run holds, this process and the JVM that it has started;
elsewhere nothing is known.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from threading import Condition, Lock, Thread
from typing import TYPE_CHECKING, Any

from livemart.conflicts import is_another_writers
from livemart.errors import LivemartError, causes, first_lines, full_disk
from livemart.project.node_results import NodeProgress
from livemart.run import events
from livemart.run.events import BatchOutcome, RunEvent
from livemart.settings import Settings
from livemart.state.last_run import (
    BuildProgress,
    Ending,
    LastRun,
    MemoryUse,
    NewestBatch,
    RunFailure,
    RunTotals,
    TestStanding,
    keep_last_run,
    read_last_run,
    run_to_json,
)
from livemart.state.lock import who_holds
from livemart.state.places import LocalFolder
from livemart.storage.opening import open_storage
from livemart.storage.storage import Storage

if TYPE_CHECKING:
    from livemart.project.graph import Project
    from livemart.state.snapshots import Snapshot

_MOST_SIGNS = 500
_COPY_EVERY_S = 1.0
_LAST_COPY_S = 10.0


class RunNotes:
    """Notes the course of one run, from its first event on, when it holds the warehouse.

    Args:
        settings: name the warehouse, and the store if it is elsewhere.
        command: what runs, as its user calls it.
        now: the wall clock, UTC.
    """

    def __init__(
        self,
        settings: Settings,
        command: str,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._warehouse = settings.warehouse
        self._command = command
        self._now = now
        self._began_at = now()
        self._lock = Lock()
        self._run: LastRun | None = None
        self._models: frozenset[str] = frozenset()
        self._done: set[str] = set()
        self._is_in_batch = False
        # Until a micro-batch begins to refresh what it landed.
        self._is_building = False
        url = settings.store_url if settings.store else None
        self._copy = None if url is None else _StoreCopy(url)

    def knows(self, project: Project) -> None:
        """Take the models that a build makes; from now on nodes are not compiled, but built."""
        models = project.models.items()
        self._models = frozenset(key for key, model in models if model.is_stored)
        self._is_building = True

    @contextmanager
    def until_end(self, is_stopped: Callable[[], bool] = lambda: False) -> Iterator[None]:
        """Note how the block ends, unless one inside of it has done so.

        Args:
            is_stopped: whether somebody has asked the run to end.
        """
        try:
            yield
        except SystemExit as end:
            is_ended = end.code in (None, 0, 1) and not is_stopped()
            self._end("stopped" if not is_ended else "incomplete" if end.code else "ok")
            raise
        except Exception as error:
            if is_stopped():
                self._end("stopped")
            else:
                self._end("failed", error)
            raise
        except BaseException:
            self._end("stopped")
            raise
        self._end("stopped" if is_stopped() else "ok")

    def handle(self, event: RunEvent) -> None:
        """Note an event."""
        with self._lock:
            if self._run is None:
                self._begin()
            match event:
                case events.LandingBegan() | events.RecordsLanded():
                    self._is_in_batch = True
                case events.BatchBegan():
                    self._is_building = False
                case NodeProgress(unique_id, str(), None):
                    self._built(unique_id)
                case events.BatchRetried(error) if not is_another_writers(error):
                    self._fail(error)
                case events.BatchEnded(outcome):
                    self._batch_ended(outcome)

    def _begin(self) -> None:
        run = LastRun(self._command, os.getpid(), self._began_at, self._began_at)
        if (before := read_last_run(self._warehouse)) is not None:
            run = replace(run, failure=before.failure, totals=before.totals, newest=before.newest)
        self._note(run)

    def _built(self, unique_id: str) -> None:
        if self._is_building and unique_id in self._models and unique_id not in self._done:
            self._done.add(unique_id)
            self._change(progress=BuildProgress(len(self._done), len(self._models)))

    def _batch_ended(self, outcome: BatchOutcome) -> None:
        self._is_in_batch = self._is_building = False
        run, snapshot = self._run, outcome.snapshot
        assert run is not None
        if snapshot is not None:
            rows = {key: standing.rows for key, standing in _tests(run.newest).items()}
            totals, newest = _added(run.totals, snapshot), _newest(outcome, snapshot, rows)
            self._change(
                failure=None, progress=None, totals=totals, newest=newest, memory=memory_use()
            )
        elif run.failure is not None or run.progress is not None:
            self._change(failure=None, progress=None)

    def _fail(self, error: BaseException) -> None:
        assert self._run is not None
        totals = self._run.totals
        if self._is_in_batch:
            totals = replace(totals, failed_batches=totals.failed_batches + 1)
        self._change(failure=_failure(error, self._now()), progress=None, totals=totals)

    def _end(self, ending: Ending, error: BaseException | None = None) -> None:
        with self._lock:
            if self._run is None:
                if not self._may_begin(ending):
                    return
                self._begin()
            run = self._run
            if run is None or run.ending is not None:
                return
            if error is not None:
                self._fail(error)
            elif ending != "stopped":
                self._change(failure=None)
            self._change(ending=ending, ended_at=self._now(), progress=None)
            if self._copy is not None:
                self._copy.close()

    def _may_begin(self, ending: Ending) -> bool:
        """Return whether an end before the run held the warehouse is news.

        Not to a warehouse that is not there, nor while another run holds it; and what was only
        stopped has not been a run.
        """
        is_there = LocalFolder(self._warehouse).path.is_dir()
        return is_there and ending != "stopped" and who_holds(self._warehouse) is None

    def _change(self, **changes: Any) -> None:
        assert self._run is not None
        self._note(replace(self._run, noted_at=self._now(), **changes))

    def _note(self, run: LastRun) -> None:
        self._run = run
        with suppress(OSError):
            keep_last_run(self._warehouse, run)
        if self._copy is not None:
            self._copy.offer(run)


class _StoreCopy:
    """Copies the newest note into the store from a separate thread; a store may be slow."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._changed = Condition()
        self._waiting: LastRun | None = None
        self._is_closing = False
        self._thread: Thread | None = None

    def offer(self, run: LastRun) -> None:
        """Copy this note next, instead of any that still waits."""
        with self._changed:
            self._waiting = run
            if self._thread is None:
                self._thread = Thread(target=self._go_on, name="run notes", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def close(self) -> None:
        """Wait for the last copy, but not for long."""
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(_LAST_COPY_S)

    def _go_on(self) -> None:
        from livemart.store.connections import open_engine
        from livemart.store.run_copy import write_run_copy

        engine = open_engine(self._url, writes=True)
        try:
            while (run := self._next()) is not None:
                # That the store is away is the publisher's to say.
                with suppress(Exception):
                    write_run_copy(engine, run_to_json(run))
                with self._changed:
                    self._changed.wait_for(lambda: self._is_closing, _COPY_EVERY_S)
        finally:
            engine.dispose()

    def _next(self) -> LastRun | None:
        """Return the note to be copied, once there is one; None if there will be no more."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting is not None or self._is_closing)
            run, self._waiting = self._waiting, None
            return run


def _failure(error: BaseException, at: datetime) -> RunFailure:
    cause = next((raised for raised in causes(error) if isinstance(raised, LivemartError)), None)
    code = cause.code if cause is not None else "UNEXPECTED"
    if full_disk(error) is not None:
        code = "DISK_FULL"
    models = dict.fromkeys(
        name for raised in causes(error) for name in getattr(raised, "models", ())
    )
    message = first_lines(cause.message) if cause is not None else first_lines(error)
    return RunFailure(at, code, tuple(models), message[:_MOST_SIGNS])


def _added(totals: RunTotals, snapshot: Snapshot) -> RunTotals:
    landed, letters = dict(totals.landed), dict(totals.dead_letters)
    for relation, counts in snapshot.landed.items():
        landed[relation] = landed.get(relation, 0) + counts.landed
        letters[relation] = letters.get(relation, 0) + counts.dead_letters
    return replace(
        totals,
        batches=totals.batches + 1,
        batch_seconds=totals.batch_seconds + _took_s(snapshot),
        landed=landed,
        dead_letters=letters,
    )


def _newest(
    outcome: BatchOutcome, snapshot: Snapshot, rows_before: Mapping[str, int | None]
) -> NewestBatch:
    return NewestBatch(
        snapshot.snapshot_id,
        outcome.is_held,
        _took_s(snapshot),
        tests={
            # One that looked at nothing new has as many as before.
            key: TestStanding(
                check.status,
                rows_before.get(key) if check.failures is None else check.failures,
                check.place,
            )
            for key, check in outcome.checks.items()
            if check.status != "pass"
        },
        drift={relation: len(drift) for relation, drift in snapshot.drift.items() if drift},
    )


def _tests(newest: NewestBatch | None) -> Mapping[str, TestStanding]:
    return {} if newest is None else newest.tests


def _took_s(snapshot: Snapshot) -> float:
    return (snapshot.finished_at - snapshot.started_at).total_seconds()


def memory_use(proc: Path = Path("/proc")) -> MemoryUse | None:
    """Return the memory of this process and its JVM; None where the system does not say."""
    processes = open_storage(proc)
    python_bytes = _resident_bytes(processes, "self")
    if python_bytes is None:
        return None
    resident = (_resident_bytes(processes, pid) for pid in _jvms(processes))
    return MemoryUse(python_bytes, sum(size for size in resident if size is not None))


def _jvms(processes: Storage) -> list[str]:
    """Return the ids of the JVMs below this process.

    Each thread names the processes that it has started; one may end between two looks.
    """
    threads = processes.folders("self/task")
    pids = [pid for it in threads for pid in _text(processes, f"self/task/{it}/children").split()]
    return [pid for pid in pids if _text(processes, f"{pid}/comm").strip() == "java"]


def _resident_bytes(processes: Storage, pid: str) -> int | None:
    words = _text(processes, f"{pid}/statm").split()
    return int(words[1]) * os.sysconf("SC_PAGE_SIZE") if len(words) > 1 else None


def _text(processes: Storage, name: str) -> str:
    with suppress(OSError):
        return processes.get(name).decode(errors="replace")
    return ""
