"""Runs the demo: 15 days of a market, its answers from a batch build, then live, then verified.

Used as `python -m demo`. Everything is created below one folder; no other data is touched.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from livemart.errors import LivemartError
from livemart.settings import Settings, load_settings
from livemart.storage.location import Location, machine_folder

if TYPE_CHECKING:
    from demo.delivery import Deliver
    from demo.market import Market
    from demo.tour import Tour
    from livemart.run.runtime import Runtime

_PROJECT = Path(__file__).resolve().parents[1]
_LIVE_STEPS = 6
_PANE = timedelta(minutes=5)
_EVERY = timedelta(seconds=2)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--once", is_flag=True, help="End after verify, with its exit code.")
@click.option("--folder", default="artifacts/demo", show_default=True, help="Emptied at the start.")
@click.option("--seed", default=7, show_default=True, help="Another seed, another market.")
@click.option("--restaurants", default=40, show_default=True, type=click.IntRange(1))
@click.option("--orders-per-day", default=2_000, show_default=True, type=click.IntRange(1))
@click.option(
    "--source",
    default="files",
    show_default=True,
    type=click.Choice(["files", "kafka"]),
    help="How orders come; kafka is started by the demo (needs Maven, once).",
)
@click.option("--broker", envvar="LIVEMART_DEMO_BROKER", help="Of --source kafka: host:port.")
@click.option("--port", default=8_000, show_default=True, help="Of the page, unless --once.")
@click.option(
    "--storage",
    default="disk",
    show_default=True,
    type=click.Choice(["disk", "s3"]),
    help="Where files arrive and tables are; s3 is started by the demo, in memory.",
)
# For tests: the same market whenever it runs, on a copy of the project, in fewer steps.
@click.option("--now", type=click.DateTime(), hidden=True)
@click.option("--project", default=str(_PROJECT), hidden=True)
@click.option("--steps", default=_LIVE_STEPS, type=click.IntRange(1), hidden=True)
def main(
    once: bool,
    folder: str,
    seed: int,
    restaurants: int,
    orders_per_day: int,
    source: str,
    broker: str | None,
    port: int,
    storage: str,
    now: datetime | None,
    project: str,
    steps: int,
) -> None:
    """Show a restaurant's three answers staying right while orders arrive."""
    from demo.delivery import hand_over_lines
    from demo.market import Market

    place = Path(folder).absolute()
    began_at = datetime.now(UTC) if now is None else now.replace(tzinfo=UTC)
    try:
        with ExitStack() as stack:
            root = stack.enter_context(_bucket(place)) if storage == "s3" else place
            settings = load_settings(
                {
                    "project_dir": place / "project" if source == "kafka" else Path(project),
                    "warehouse": str(root / "warehouse"),
                    "landing": str(root / "landing"),
                    "clock": "event_time",
                    "port": port,
                }
            )
            _empty(settings)
            deliver: Deliver = hand_over_lines
            if source == "kafka":
                deliver = stack.enter_context(_orders_by_topic(broker, Path(project), place))
            market = Market(
                seed, restaurants=restaurants, orders_per_day=orders_per_day, deliver=deliver
            )
            code = _run(settings, once, market, began_at, steps)
        sys.exit(code)
    except LivemartError as error:
        click.echo(str(error), err=True)
        sys.exit(error.exit_code)


@contextmanager
def _bucket(place: Path) -> Iterator[Location]:
    """Yield a bucket of a server that ends with the block; this machine's files are below place."""
    from tests.services.bucket import buckets

    with buckets() as server:
        server.make("livemart-demo")
        os.environ |= {**server.environment, "XDG_STATE_HOME": str(place / "own")}
        click.echo(f"files arrive and tables are in s3://livemart-demo, at {server.endpoint}")
        yield Location.parse("s3://livemart-demo")


@contextmanager
def _orders_by_topic(broker: str | None, project: Path, place: Path) -> Iterator[Deliver]:
    """Yield what delivers orders to a topic, from which a copy of the project reads them."""
    from demo.topic import order_topic

    for name in ("project", "kafka"):
        shutil.rmtree(place / name, ignore_errors=True)
    topic = f"livemart-demo-{datetime.now(UTC):%Y%m%dT%H%M%S}"
    with order_topic(broker, place / "kafka", topic) as orders:
        orders.lead_into(project, place / "project")
        click.echo(f"orders come by the topic {topic} of {orders.servers}")
        yield orders.deliver


def _run(settings: Settings, once: bool, market: Market, began_at: datetime, steps: int) -> int:
    from demo.tour import Tour
    from livemart.cli.interrupts import Interrupted, Interrupts
    from livemart.observe.logs import configure_logs
    from livemart.observe.progress import open_watcher
    from livemart.observe.run_notes import RunNotes
    from livemart.run.events import to_all
    from livemart.run.pipeline import Pipeline
    from livemart.run.runtime import open_runtime
    from livemart.run.stream import Stream
    from livemart.serve.server import open_server

    configure_logs(settings.log_format, debug=settings.debug)
    # These panes are between history and the wall clock; the live ones come in fast motion.
    start = _start_of_pane(began_at) - steps * _PANE
    history = market.history(settings.landing, start)
    click.echo(f"history: {history.records:,} records in {len(history.files)} files")

    with ExitStack() as stack:
        watcher = stack.enter_context(open_watcher(settings.log_format))
        tour = Tour(
            watcher.handle,
            market,
            settings,
            start=start,
            steps=steps,
            now=lambda: datetime.now(UTC),
        )
        interrupts = Interrupts(settings.stop_timeout, tour.enough.set)
        notes = RunNotes(settings, "demo")
        report = to_all(notes.handle, tour.handle)
        if not once:
            # From the first snapshot on, the page shows what the terminal tells.
            click.echo(stack.enter_context(open_server(settings, tour.enough.set)))
        try:
            with (
                interrupts,
                open_runtime(settings, report, has_guests=not once) as runtime,
                notes.until_end(interrupts.stop.is_set),
            ):
                interrupts.install(patient=True)
                notes.knows(runtime.project)
                pipeline = Pipeline(runtime, report, stop=tour.enough, abandon=interrupts.abandon)
                tour.is_building = True
                pipeline.build()
                tour.go_live()
                Stream(pipeline).run(_EVERY)
                code = 0 if interrupts.stop.is_set() else _verify(runtime, tour)
                if not (once or interrupts.stop.is_set()):
                    click.echo("\norders keep coming, on the page, too; Ctrl-C ends the demo")
                    tour.go_live()
                    if interrupts.stop.is_set():
                        tour.enough.set()
                    Stream(pipeline).run(_EVERY)
        except (Exception, Interrupted):
            if interrupts.exit_code is None:
                raise
        # Ctrl-C is how the endless demo ends; it cuts the short one off.
        stopped = interrupts.exit_code
    if stopped is None:
        return code
    return stopped if once else 0


def _verify(runtime: Runtime, tour: Tour) -> int:
    """Recompute every model from the landed records; return the exit code of `verify`."""
    from livemart.inspect.verify import exit_code, render_comparison, verify_models
    from livemart.run.events import StepBegan

    snapshot = runtime.log.newest_published()
    assert snapshot is not None
    click.echo("\nverify: every model recomputed from the landed records")
    tour.handle(StepBegan("recomputing the models"))
    comparisons = []
    for comparison in verify_models(runtime.spark, runtime.warehouse, runtime.project, snapshot):
        comparisons.append(comparison)
        click.echo(f"   {render_comparison(comparison)}")
    code = exit_code(comparisons)
    words = {0: "equals the batch", 1: "DIFFERS from the batch"}
    click.echo(f"the stream {words.get(code, 'could not be compared with the batch as a whole')}")
    return code


def _empty(settings: Settings) -> None:
    """Remove what an earlier demo left, unless it still runs."""
    from livemart.state.lock import hold_warehouse
    from livemart.state.places import StateFolder
    from livemart.storage.scratch import drop_folder

    if not isinstance(warehouse := settings.warehouse, Path):
        # The bucket is new; the serving store of an earlier one is not of it.
        drop_folder(machine_folder(warehouse))
        return
    with hold_warehouse(warehouse):
        drop_folder(settings.landing)
        state = StateFolder(warehouse).path
        for path in warehouse.iterdir():
            if path != state:
                shutil.rmtree(path)
        for path in state.iterdir():
            if path.is_dir():
                shutil.rmtree(path)
            elif path.name.startswith(("serving.db", "last_run.")):
                path.unlink()


def _start_of_pane(instant: datetime) -> datetime:
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    return epoch + (instant - epoch) // _PANE * _PANE


if __name__ == "__main__":
    main()
