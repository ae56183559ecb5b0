"""Shows the course of a run on a terminal: a live line per model, a lasting one per snapshot.

Used by the commands that run a pipeline; away from a terminal they get log events instead. Nothing
else in the package prints while a run goes on.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event, Thread
from time import monotonic
from typing import TYPE_CHECKING, TextIO, assert_never

from rich.console import Console, Group
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from livemart.errors import first_lines, first_names
from livemart.observe.logs import (
    UNDER_WAY,
    LogFormat,
    LogWatcher,
    UnreportedDrift,
    describe_failing,
)
from livemart.plan.reasons import WRITTEN_BY_DBT
from livemart.project.graph import names_apart, short_name
from livemart.project.node_results import NodeProgress
from livemart.run import events
from livemart.run.events import BatchOutcome, RunEvent
from livemart.state.drift import describe_drift
from livemart.state.snapshots import LEFT_OUT

if TYPE_CHECKING:
    from livemart.land.landing import LandedBatch
    from livemart.state.snapshots import Snapshot

_NAMED = 5
_STYLES = {
    "failed": "red",
    "error": "red",
    "full": "yellow",
    "unchanged": "dim",
    "skipped": "dim",
    "waiting": "yellow",
    "warn": "yellow",
}


@contextmanager
def open_watcher(
    log_format: LogFormat, *, stream: TextIO | None = None
) -> Iterator[TerminalWatcher | LogWatcher]:
    """Yield a watcher of a run: a live table on a terminal that is free for it, else log events.

    In the background of a shell the terminal is the shell's: a table would be drawn over it.

    Args:
        log_format: `json` asks for log events on a terminal, too.
        stream: where to look for a terminal; standard error if None.
    """
    stream = stream or sys.stderr
    console = make_console(stream)
    if log_format == "json" or not console.is_terminal or _is_in_background(stream):
        with _beating(LogWatcher()) as log_watcher:
            yield log_watcher
        return
    with TerminalWatcher(console) as watcher:
        yield watcher


def _is_in_background(stream: TextIO) -> bool:
    """Return True if another group of processes has the terminal of a stream."""
    try:
        return os.tcgetpgrp(stream.fileno()) != os.getpgrp()
    except OSError:
        # It is not the terminal that this process is controlled by: no other program draws on it.
        return False


@contextmanager
def _beating(watcher: LogWatcher) -> Iterator[LogWatcher]:
    """Let the watcher name the work under way now and then, until the block ends."""
    ended = Event()

    def beat() -> None:
        while not ended.wait(1):
            watcher.beat()

    thread = Thread(target=beat, name="heartbeat", daemon=True)
    thread.start()
    try:
        yield watcher
    finally:
        ended.set()
        thread.join()


def make_console(stream: TextIO) -> Console:
    """Return a console with colour and movement only on a real terminal."""
    is_terminal = stream.isatty() and os.environ.get("TERM") != "dumb"
    return Console(
        file=stream,
        force_terminal=is_terminal,
        no_color=not is_terminal or "NO_COLOR" in os.environ,
        highlight=False,
        soft_wrap=True,
        width=None if is_terminal else 200,
    )


@dataclass(slots=True)
class _Line:
    word: str
    began_at: float
    ended_at: float | None = None


class TerminalWatcher:
    """Shows the work under way as a table that goes away, and its results as lines that stay."""

    def __init__(self, console: Console, *, clock: Callable[[], float] = monotonic) -> None:
        self._console = console
        self._clock = clock
        self._lines: dict[str, _Line] = {}
        self._title = ""
        self._copied: int | None = None
        self._tests_ended = 0
        self._drift = UnreportedDrift()
        self._live = Live(
            console=console,
            get_renderable=self._render,
            transient=True,
            refresh_per_second=4,
            # Output for a pipe must not come out at the terminal.
            redirect_stdout=sys.stdout.isatty(),
        )

    def __enter__(self) -> TerminalWatcher:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def handle(self, event: RunEvent) -> None:
        """Show an event."""
        match event:
            case events.StepBegan(text):
                self._title = text
            case events.LandingBegan(batch_id, files):
                self._lines = {}
                read = f"{files:,} file{'s'[: files != 1]}" if files else "records"
                self._title = f"landing {read} of micro-batch {batch_id}"
            case events.RecordsLanded(batch):
                self._title = "building"
                if batch.refusals:
                    self._say(f"  {describe_refusals(batch)}", "yellow")
            case NodeProgress():
                self._node_changed(event)
            case events.BatchBegan(batch_id):
                self._lines = {}
                self._title = f"micro-batch {batch_id}"
            case events.ModelChanged(unique_id, word):
                self._model_changed(unique_id, word)
            case events.CheckEnded():
                self._tests_ended += 1
                self._title = f"running the data tests: {self._tests_ended} ended"
            case events.BatchEnded(outcome):
                self._batch_ended(outcome)
            case events.CopyBegan(snapshot_id):
                self._copied = snapshot_id
            case events.CopyEnded():
                self._copied = None
            case events.EditTaken(files, changes):
                self._say(f"project edited: {', '.join(files)}", "bold")
                for change in changes:
                    strategy = f", {change.strategy}" if change.strategy else ""
                    self._say(f"  {short_name(change.unique_id)} {change.word}{strategy}")
            case events.EditRefused(files, error):
                self._say(
                    f"edit refused, the previous project keeps running: {', '.join(files)}", "red"
                )
                self._say(f"  {error}".replace("\n", "\n  "), "red")
            case events.BatchRetried(error, failures, attempts):
                failed = f" ({failures} of {attempts} attempts failed)" if failures else ""
                self._say(f"  run again{failed}: {first_lines(error)}", "yellow")
            case _:
                assert_never(event)

    def _node_changed(self, node: NodeProgress) -> None:
        if node.line is not None:
            return
        self._model_changed(node.unique_id, "running" if node.status is None else node.status)
        # Tests are shown only while they run.
        if node.status is not None and "test" in node.unique_id.partition(".")[0]:
            self._lines.pop(node.unique_id, None)

    def _model_changed(self, unique_id: str, word: str) -> None:
        """Show the word beside the model, with the time since its refresh began."""
        now = self._clock()
        line = self._lines.get(unique_id)
        if line is None or word in UNDER_WAY:
            line = self._lines[unique_id] = _Line(word, now)
        line.word = word
        line.ended_at = None if word in UNDER_WAY else now

    def _batch_ended(self, outcome: BatchOutcome) -> None:
        """Replace the table by one line about the snapshot, and one for each test that failed."""
        self._lines, self._tests_ended = {}, 0
        self._title = "waiting for records"
        if outcome.snapshot is None:
            return
        style = "red" if outcome.snapshot.status == "held" else ""
        self._say(describe_snapshot(outcome.snapshot), style)
        aside_models = outcome.snapshot.set_aside
        causes = {aside.cause for aside in aside_models.values()}
        names = names_apart({*outcome.snapshot.models, *outcome.rebuilds, *aside_models, *causes})
        for unique_id, rebuild in outcome.rebuilds.items():
            word = "taken over" if rebuild.code in WRITTEN_BY_DBT else "rebuilt"
            self._say(f"  {names[unique_id]} {word}: {rebuild.code}, {rebuild.message}", "yellow")
        for unique_id, aside in aside_models.items():
            if aside.is_left_out:
                continue
            why = f"waits for {names[aside.cause]}"
            if aside.cause == unique_id:
                why = "cannot be computed"
            self._say(f"  {names[unique_id]} set aside: {why}", "red")
        for source, kind, fields in self._drift.of(outcome.snapshot, outcome.drift_before):
            text = f"  {describe_drift(source, kind, fields)}\n    {kind.next_step}"
            self._say(text, "yellow")
        if left_out := describe_left_out(outcome.snapshot):
            self._say(f"  {left_out}", "yellow")
        if outcome.snapshot.kind == "build" and outcome.checks:
            words = Counter(result.status for result in outcome.checks.values())
            counts = ", ".join(f"{count} {word}" for word, count in sorted(words.items()))
            self._say(f"  tests: {counts}")
        for unique_id, result in outcome.checks.items():
            if result.status not in ("pass", "waits"):
                rows = "" if result.failures is None else f", {result.failures} rows"
                style = "red" if result.holds else "yellow"
                self._say(f"  {unique_id}: {result.status}{rows}", style)
                for line in describe_failing(result):
                    self._say(f"    {line}")

    def _say(self, text: str, style: str = "") -> None:
        self._console.print(Text(text, style=style))

    def _render(self) -> Group:
        table = Table.grid(padding=(0, 2))
        # A copy: models end in other threads while this is drawn.
        lines = list(self._lines.items())
        names = names_apart(unique_id for unique_id, _ in lines)
        for unique_id, line in lines:
            end = self._clock() if line.ended_at is None else line.ended_at
            style = _STYLES.get(line.word, "cyan" if line.ended_at is None else "green")
            table.add_row(
                f"  {names[unique_id]}",
                Text(line.word, style=style),
                f"{end - line.began_at:.1f} s",
            )
        title = self._title
        if (copied := self._copied) is not None:
            title += f", copying snapshot {copied} into the serving store"
        return Group(Spinner("dots", text=Text(title, style="bold")), table)


def describe_refusals(batch: LandedBatch) -> str:
    """Return one line: how many dead letters a landing made, why, and the command to see them."""
    codes = ", ".join(f"{count:,} {code}" for code, count in sorted(batch.refusals.items()))
    total = sum(batch.refusals.values())
    relations = sorted(name for name, counts in batch.counts.items() if counts.dead_letters)
    of = f" of {', '.join(relations)}" if relations else ""
    return f"{total:,} dead letter{'s'[: total != 1]}{of}: {codes}; `livemart dead-letters show`"


def describe_left_out(snapshot: Snapshot) -> str:
    """Return one line: how many models the selection leaves out, and some of them; '' for none."""
    names = [short_name(key) for key, aside in snapshot.set_aside.items() if aside.is_left_out]
    if not names:
        return ""
    return f"set aside, {LEFT_OUT}: {first_names(names, _NAMED)}"


def describe_snapshot(snapshot: Snapshot) -> str:
    """Return one line: the snapshot, its time, landed records, changed rows, and its duration."""
    models = snapshot.models.values()
    changed = [state for state in models if state.rows_changed]
    rows = sum(state.rows_changed for state in changed)
    landed = {
        word: sum(getattr(counts, word) for counts in snapshot.landed.values())
        for word in ("landed", "superseded", "dead_letters")
    }
    parts = [f"snapshot {snapshot.snapshot_id} {snapshot.status}"]
    if snapshot.as_of is not None:
        parts.append(f"as of {snapshot.as_of:%Y-%m-%d %H:%M}")
    parts.append(
        ", ".join(
            f"{count:,} {word.replace('_', ' ')}"
            for word, count in landed.items()
            if count or word == "landed"
        )
    )
    if snapshot.kind == "build":
        parts.append(f"{len(snapshot.models)} models built, {rows:,} rows")
    else:
        parts.append(f"{rows:,} rows changed in {len(changed)} of {len(snapshot.models)} models")
    took = (snapshot.finished_at - snapshot.started_at).total_seconds()
    parts.append(f"{took:.1f} s")
    return " | ".join(parts)
