"""Writes how the newest run goes, for the pages.

Only admins read code and models: their names are nothing to a tenant.
"""

from __future__ import annotations

from datetime import datetime

from livemart.serve.page.text import age
from livemart.state.last_run import LastRun
from livemart.state.project_graph import SERVES_NOTHING


def failure_words(run: LastRun | None, now: datetime, *, is_admin: bool) -> str:
    """Return a sentence about a failure after which nothing has succeeded; '' if there is none.

    Args:
        run: None if none is known.
        now: wall clock, UTC.
        is_admin: the reader may read everything.
    """
    if run is None or (failure := run.failure) is None:
        return ""
    words = f"The last run failed {age(now - failure.at)}"
    if is_admin:
        words += f": {failure.code}"
        if failure.models:
            words += f" in {', '.join(failure.models)}"
    return f"{words}."


def run_words(run: LastRun | None, now: datetime) -> str:
    """Return a sentence about the newest run, for admins; '' if none is known."""
    if run is None:
        return ""
    if run.ending is None:
        return f"The run of {run.command} began {age(now - run.began_at)} and goes on."
    ended = run.ended_at or run.noted_at
    return f"The last run, {run.command}, ended {age(now - ended)}: {run.ending}."


def waiting_words(run: LastRun | None, now: datetime, *, serves_nothing: bool = False) -> str:
    """Return sentences for a page that waits for the first snapshot; it loads by itself then.

    Args:
        run: None if none is known.
        now: wall clock, UTC.
        serves_nothing: the project has no model to serve.
    """
    if run is not None and run.ending is None:
        if (progress := run.progress) is None:
            return f"The first build began {age(now - run.began_at)}; this page loads by itself."
        word = "model" if progress.models == 1 else "models"
        if progress.done == progress.models:
            return f"Testing {progress.models} {word}; this page loads by itself."
        return f"Building {progress.done} of {progress.models} {word}; this page loads by itself."
    failed = failure_words(run, now, is_admin=False)
    if serves_nothing and not failed:
        return f"{SERVES_NOTHING[0].upper()}{SERVES_NOTHING[1:]}."
    return failed or "No snapshot is published yet; this page loads by itself once one is."
