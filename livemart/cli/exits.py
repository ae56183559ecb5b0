"""Ends a command with its error and its exit code.

Used by every command. Exit codes: 0 ok; 1 a check or a model failed, or the snapshot is held;
2 wrong usage, configuration or state; 3 not all could be verified.
130 and 143 follow SIGINT and SIGTERM.
"""

from __future__ import annotations

import os
import shutil
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from livemart.errors import FULL_DISK_WORDS, LivemartError, StateError, fault_text, full_disk
from livemart.extras import require_extra
from livemart.settings import Settings, load_settings

if TYPE_CHECKING:
    from livemart.check.checks import TestResult
    from livemart.cli.interrupts import Interrupts
    from livemart.run.pipeline import RunOutcome


# After SIGINT and SIGTERM.
_SIGNALED = (130, 143)


@contextmanager
def interruptible(
    patience: timedelta,
    notify: Callable[[], None] = lambda: None,
    *,
    is_supervised: bool = False,
) -> Iterator[Interrupts]:
    """Hold the signals; exit with 130 or 143 if one came, whatever failed because of it.

    The arguments are those of `Interrupts`.
    """
    from livemart.cli.interrupts import Interrupted, Interrupts

    with Interrupts(patience, notify, is_supervised=is_supervised) as interrupts:
        try:
            yield interrupts
        except (Exception, SystemExit, KeyboardInterrupt, Interrupted) as error:
            if interrupts.exit_code is not None:
                sys.exit(interrupts.exit_code)
            if isinstance(error, KeyboardInterrupt):
                sys.exit(130)
            raise
        if interrupts.exit_code is not None:
            sys.exit(interrupts.exit_code)


@contextmanager
def leaving_threads() -> Iterator[None]:
    """Let the process end with the block, which has closed everything, after a signal.

    Python waits for threads at its end, and one may wait for a store that does not answer.
    """
    try:
        yield
    except SystemExit as end:
        if isinstance(end.code, int) and end.code in _SIGNALED:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(end.code)
        raise


@contextmanager
def reported_errors(
    flags: dict[str, Any], extra: str | None = None, *, reads_warehouse: bool = False
) -> Iterator[Settings]:
    """Read the settings; print an error as code, message and next step, and exit with its code.

    Args:
        extra: an extra of the package that the command needs.
        reads_warehouse: the command needs a warehouse, and no project.
    """
    is_debugging, place = bool(flags.get("debug")), Path()
    try:
        flags = {name: None if value == () else value for name, value in flags.items()}
        settings = load_settings(flags)
        is_debugging = settings.debug
        if isinstance(settings.warehouse, Path):
            place = settings.warehouse
        if extra:
            require_extra(extra)
        if reads_warehouse:
            from livemart.state.wrong_folder import require_project_or_warehouse

            require_project_or_warehouse(settings)
        yield settings
    except LivemartError as error:
        ours = as_full_disk(error, place) or error
        _fail(str(ours), ours.exit_code, is_debugging)
    except click.ClickException:
        raise
    except Exception as error:
        if full := as_full_disk(error, place):
            _fail(str(full), full.exit_code, is_debugging)
        message = f"UNEXPECTED: {fault_text(error)}"
        hint = "run again with --debug for the traceback; if livemart is at fault, please report it"
        _fail(f"{message}\n  next: {hint}", 1, is_debugging)


def _fail(message: str, code: int, is_debugging: bool) -> NoReturn:
    if is_debugging:
        traceback.print_exc()
    _say(message)
    sys.exit(code)


def _say(text: str) -> None:
    """Write a text to standard error.

    A name of a file, a field or a record's value may be in it: a terminal must not obey them.
    """
    from livemart.land.letters.plain_text import plain_lines

    click.echo(plain_lines(text.replace("\r\n", "\n").expandtabs(4)), err=True)


def finish(done: RunOutcome) -> NoReturn:
    """Exit with 1 if the newest snapshot is held or lacks models, naming tests and models."""
    snapshots = [outcome for outcome in done.outcomes if outcome.snapshot is not None]
    if not snapshots:
        finish_idle(done.outcomes[-1].checks if done.outcomes else {})
    from livemart.observe.progress import describe_left_out

    newest = snapshots[-1].snapshot
    assert newest is not None
    if snapshots[-1].is_held:
        _name_holding(snapshots[-1].checks)
    if left_out := describe_left_out(newest):
        click.echo(left_out, err=True)
    for unique_id, aside in newest.set_aside.items():
        if aside.is_left_out:
            continue
        why = aside.message if aside.cause == unique_id else f"waits for {aside.cause}"
        _say(f"set aside {unique_id}: {why}")
    sys.exit(done.exit_code)


def finish_idle(checks: Mapping[str, TestResult] | None = None) -> NoReturn:
    """Exit after a pass without news: with 1 if the tests of an earlier snapshot still hold it."""
    click.echo("nothing to do: no record waits and as_of has not moved", err=True)
    sys.exit(1 if _name_holding(checks or {}) else 0)


def _name_holding(checks: Mapping[str, TestResult]) -> bool:
    """Name the tests that hold the snapshot and the way to release it; False if none does."""
    holding = {unique_id: result for unique_id, result in checks.items() if result.holds}
    if not holding:
        return False
    from livemart.state.snapshots import RELEASE, how_to_show_rows

    for unique_id, result in holding.items():
        details = result.message or (
            "failed before" if result.failures is None else f"{result.failures} rows"
        )
        place = f" ({result.place})" if result.place else ""
        _say(f"held by {unique_id}: {details}{place}")
        for row in result.rows:
            click.echo(f"  {row}", err=True)
        if result.status == "fail":
            click.echo(how_to_show_rows(unique_id), err=True)
    click.echo(RELEASE, err=True)
    return True


def as_full_disk(error: BaseException, warehouse: Path) -> StateError | None:
    """Return the error to report if a full disk caused this one, else None.

    Args:
        warehouse: the place to name if the error names none.
    """
    if (cause := full_disk(error)) is None:
        return None
    named = getattr(cause, "filename", None)
    place = Path(named) if isinstance(named, str) else warehouse
    lines = [line.strip() for line in str(cause).splitlines()]
    words = next((line for line in lines if any(word in line for word in FULL_DISK_WORDS)), "")
    reason = words or getattr(cause, "strerror", None) or str(cause)
    return StateError(
        "DISK_FULL",
        f"{place}: {_free(place)}: {reason}",
        hint="free space there (Spark's temporary files are in /tmp or SPARK_LOCAL_DIRS), then run "
        "the command again; readers keep the last snapshot, nothing was published in part",
    )


def _free(place: Path) -> str:
    for folder in (place, *place.absolute().parents):
        try:
            return f"found {shutil.disk_usage(folder).free >> 20:,} MiB free"
        except OSError:
            continue
    return "no space"
