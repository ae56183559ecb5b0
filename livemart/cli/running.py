"""Runs the long parts of commands: one pass, the stream, the server, and both under a supervisor.

Used by the commands, which read flags. Each part opens what it needs, holds the signals, and closes
everything when it ends.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from livemart.cli.exits import finish, interruptible, leaving_threads, reported_errors
from livemart.cli.flags import flag_words
from livemart.cli.tether import Tether
from livemart.intervals import format_interval
from livemart.settings import Settings

if TYPE_CHECKING:
    from livemart.run.events import ReportEvent
    from livemart.run.pipeline import Pipeline
    from livemart.run.runtime import Runtime


# For `up`, unless `stop_timeout` is set: Docker waits for 10 s before it kills.
_UP_STOP_TIMEOUT = timedelta(seconds=5)


@contextmanager
def reporting(settings: Settings) -> Iterator[ReportEvent]:
    """Yield a function that shows on standard error where a command is, and that it goes on."""
    from livemart.observe.logs import configure_logs
    from livemart.observe.progress import open_watcher

    configure_logs(settings.log_format, debug=settings.debug)
    with open_watcher(settings.log_format) as watcher:
        yield watcher.handle


def run_stream(flags: dict[str, Any], tether: Tether | None = None) -> None:
    """Refresh continuously until a signal; a supervisor hears by the tether that it is ready."""
    is_supervised = tether is not None
    with opened(flags, has_guests=True, leaves_out=True, is_supervised=is_supervised) as (
        runtime,
        pipeline,
    ):
        from livemart.run.stream import Stream

        if tether is not None:
            tether.report_ready()
        finish(Stream(pipeline).run(runtime.settings.every))


def run_server(flags: dict[str, Any], tether: Tether | None = None) -> None:
    """Serve until a signal; a supervisor hears by the tether that it is ready."""
    with (
        leaving_threads(),
        reported_errors(flags, extra="serve", reads_warehouse=True) as settings,
    ):
        from livemart.observe.logs import configure_logs
        from livemart.serve.server import open_server

        configure_logs(settings.log_format, debug=settings.debug)
        with (
            interruptible(settings.stop_timeout, is_supervised=tether is not None) as interrupts,
            open_server(settings, interrupts.stop.set) as greeting,
        ):
            interrupts.install(patient=True)
            click.echo(greeting, err=True)
            if tether is not None:
                tether.report_ready()
            interrupts.stop.wait()


def run_both(flags: dict[str, Any]) -> None:
    """Run engine and server as two processes until a signal."""
    with reported_errors(flags, extra="serve") as settings:
        from livemart.cli.health_probe import HealthProbe
        from livemart.cli.supervisor import SupervisedProcess, run_once, supervise
        from livemart.observe.logs import configure_logs
        from livemart.project.profiles import find_profiles
        from livemart.serve.address import bound

        configure_logs(settings.log_format, debug=settings.debug)
        patience, environment = settings.stop_timeout, {}
        if "stop_timeout" not in settings.model_fields_set:
            patience = _UP_STOP_TIMEOUT
            environment["LIVEMART_STOP_TIMEOUT"] = format_interval(patience)
        # Only the second signal gives up, not the supervisor's patience.
        with interruptible(patience + timedelta(hours=1)) as interrupts:
            find_profiles(settings.project_dir, settings.profiles_dir)
            with bound(settings) as listener:
                address = listener.getsockname()[:2]
                place = {"host": settings.host, "port": str(address[1])}
                command = [sys.executable, "-P", "-m", "livemart", "up"]
                command += flag_words(click.get_current_context().command, {**flags, **place})
                # The server creates its store in the warehouse: first check the project.
                # dbt takes 200 MB, which this long process must not keep.
                if code := run_once([*command, "--part=check"]):
                    sys.exit(code)
                interrupts.install(patient=True)
                server, engine = (
                    SupervisedProcess(
                        name,
                        [*command, f"--part={name}"],
                        environment=environment,
                        probe=HealthProbe(address) if name == "server" else None,
                    )
                    for name in ("server", "engine")
                )
                ended = supervise((server, engine), interrupts.stop, interrupts.abandon, patience)
        sys.exit(ended)


@contextmanager
def opened(
    flags: dict[str, Any],
    *,
    has_guests: bool = False,
    is_short: bool = False,
    leaves_out: bool = False,
    builds: bool = False,
    is_supervised: bool = False,
) -> Iterator[tuple[Runtime, Pipeline]]:
    """Open everything that writing needs, with the signals held.

    Args:
        flags: of the command.
        has_guests: dbt in another terminal may use this Spark.
        is_short: the command ends within a minute or so.
        leaves_out: models that the selection does not name are set aside.
        builds: dbt builds the models.
        is_supervised: a supervisor of `up` passes on the signals.
    """
    with reported_errors(flags) as settings:
        from livemart.cli.goodbye import Goodbye
        from livemart.observe.logs import configure_logs
        from livemart.observe.progress import open_watcher
        from livemart.observe.run_notes import RunNotes
        from livemart.run.events import to_all
        from livemart.run.runtime import open_runtime

        configure_logs(settings.log_format, debug=settings.debug)
        notes = RunNotes(settings, click.get_current_context().info_name or "run")
        goodbye = Goodbye(settings.stop_timeout, say)

        with (
            notes.until_end(),
            interruptible(
                settings.stop_timeout, goodbye.begin, is_supervised=is_supervised
            ) as interrupts,
            open_watcher(settings.log_format) as shown,
            open_runtime(
                settings,
                report := to_all(notes.handle, goodbye.handle, shown.handle),
                has_guests=has_guests,
                is_short=is_short,
                builds=builds,
                meanwhile=partial(import_module, "livemart.run.pipeline"),
            ) as runtime,
            # Inside, the run still holds the warehouse.
            notes.until_end(interrupts.stop.is_set),
        ):
            from livemart.run.pipeline import Pipeline

            interrupts.install(patient=True)
            goodbye.waits = True
            notes.knows(runtime.project)
            pipeline = Pipeline(
                runtime,
                report,
                stop=interrupts.stop,
                abandon=interrupts.abandon,
                leaves_out=leaves_out,
            )
            try:
                yield runtime, pipeline
            finally:
                goodbye.end()


def name_unread(settings: Settings) -> None:
    """Name delivered files that no source reads."""
    from livemart.land.sources.files.unread import unread_files

    for unread in unread_files(settings.warehouse, settings.landing):
        say(str(unread))


def say(text: str) -> None:
    """Print a line beside the answer."""
    click.echo(text, err=True)
