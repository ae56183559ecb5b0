"""Describes the newest run for a terminal.

Used by `status`.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from livemart.inspect.terminal_text import counted
from livemart.intervals import format_interval
from livemart.state.last_run import Ending, LastRun

_ENDINGS: dict[Ending, str] = {
    "ok": "ended well",
    "incomplete": "ended, but the snapshot is held or lacks models",
    "failed": "failed",
    "stopped": "was stopped",
    "killed": "was killed",
}


def describe_run(run: LastRun | None, now: datetime) -> list[str]:
    """Return lines about the newest run: its course, and failures since the last success.

    Args:
        run: None if none is known.
        now: wall clock, UTC.
    """
    if run is None:
        return []
    if run.ending is None:
        line = f"a run goes on: {run.command}, begun {_ago(now - run.began_at)}"
        if (progress := run.progress) is not None:
            line += f", {progress.done} of {counted(progress.models, 'model')} built"
    else:
        ended_at = run.ended_at or run.noted_at
        line = f"last run: {run.command} {_ENDINGS[run.ending]} {_ago(now - ended_at)}"
    lines = [line]
    if (memory := run.memory) is not None:
        sizes = (("Python", memory.python_bytes), ("Java", memory.jvm_bytes))
        words = [f"{name} {size / 1e6:,.0f} MB" for name, size in sizes if size]
        lines.append(f"  memory after its newest micro-batch: {', '.join(words)}")
    if (failure := run.failure) is not None:
        models = f" in {', '.join(failure.models)}" if failure.models else ""
        word = "last failure" if run.ending in (None, "stopped") else "  why"
        when = f"{failure.at:%Y-%m-%d %H:%M:%S}"
        lines.append(f"{word}: {failure.code}{models} at {when}: {failure.message}")
        if run.ending is not None:
            lines.append(f"  next: correct it, then run `{run.command}` again")
    return lines


def _ago(passed: timedelta) -> str:
    seconds = max(round(passed.total_seconds()), 0)
    return f"{format_interval(timedelta(seconds=seconds))} ago"
