"""Shows the answers after each snapshot, and lets the market go on.

Used by the demo in the place of a watcher, so that it sees what the terminal tells.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from threading import Event
from typing import TYPE_CHECKING

import click

from demo.answers import describe_records, read_answers, read_name, render_answers
from demo.delivery import Delivery
from demo.market import Market
from livemart.cli.interrupts import SignalEvent
from livemart.delta.warehouse import Warehouse
from livemart.settings import Settings

if TYPE_CHECKING:
    from livemart.check.checks import TestResult
    from livemart.land.landing import LandedBatch
    from livemart.observe.logs import LogWatcher
    from livemart.observe.progress import TerminalWatcher
    from livemart.run.batch import BatchOutcome
    from livemart.run.follower import PlanChange
    from livemart.state.snapshots import ModelState

_PANE = timedelta(minutes=5)
_BREATH = timedelta(seconds=5)


class Tour:
    """Tells `inner` everything, and drives the market by what it sees.

    Args:
        inner: shows progress.
        market: delivers the next records when the last ones are published.
        settings: name warehouse and landing folder.
        start: end of the history, UTC.
        steps: live micro-batches to wait for before `enough` is set.
        now: the wall clock, UTC.
    """

    def __init__(
        self,
        inner: TerminalWatcher | LogWatcher,
        market: Market,
        settings: Settings,
        *,
        start: datetime,
        steps: int,
        now: Callable[[], datetime],
    ) -> None:
        self.enough: Event = SignalEvent()
        self.is_building = False
        self._inner = inner
        self._market = market
        self._landing = settings.landing
        self._warehouse = Warehouse(settings.warehouse)
        self._at = start
        self._left = steps
        self._now = now
        self._is_live = False
        self._delivery: Delivery | None = None
        self._restaurant_id = market.restaurants[0].restaurant_id

    def step(self, text: str) -> None:
        """Pass on."""
        self._inner.step(text)

    def node_changed(self, unique_id: str, status: str | None, line: str | None = None, /) -> None:
        """Pass on what the build does; compiling the project is no news."""
        if self.is_building:
            self._inner.node_changed(unique_id, status, line)

    def landing_began(self, batch_id: int, files: int) -> None:
        """Pass on."""
        self._inner.landing_began(batch_id, files)

    def landed(self, batch: LandedBatch) -> None:
        """Pass on."""
        self._inner.landed(batch)

    def batch_began(self, batch_id: int) -> None:
        """Pass on."""
        self._inner.batch_began(batch_id)

    def model_changed(self, unique_id: str, word: str, state: ModelState | None = None, /) -> None:
        """Pass on."""
        self._inner.model_changed(unique_id, word, state)

    def check_ended(self, unique_id: str, result: TestResult, /) -> None:
        """Pass on."""
        self._inner.check_ended(unique_id, result)

    def publishing(self, snapshot_id: int | None, /) -> None:
        """Pass on."""
        self._inner.publishing(snapshot_id)

    def project_edited(self, files: Sequence[str], changes: Sequence[PlanChange]) -> None:
        """Pass on."""
        self._inner.project_edited(files, changes)

    def project_refused(self, files: Sequence[str], error: Exception) -> None:
        """Pass on."""
        self._inner.project_refused(files, error)

    def retrying(self, error: BaseException, failures: int, attempts: int) -> None:
        """Pass on."""
        self._inner.retrying(error, failures, attempts)

    def batch_ended(self, outcome: BatchOutcome) -> None:
        """Show the answers of a new snapshot; have the next records delivered."""
        self._inner.batch_ended(outcome)
        if outcome.snapshot is not None:
            self._show(outcome)
        if not self._is_live:
            return
        if self._left > 0:
            if outcome.snapshot is None:
                return
            self._left -= 1
            if self._left == 0:
                self.enough.set()
            else:
                self.deliver(self._at + _PANE)
        elif not self.enough.is_set() and self._now() - self._at >= _BREATH:
            self.deliver(self._now())

    def go_live(self) -> None:
        """From now on records are delivered; the first ones at once."""
        self._is_live = True
        self.enough.clear()
        self.deliver(self._at + _PANE if self._left > 0 else max(self._now(), self._at + _BREATH))

    def deliver(self, until: datetime) -> None:
        """Let the market go on to an instant, and remember what it delivered."""
        self._delivery = self._market.live_step(self._landing, self._at, until)
        self._at = until

    def _show(self, outcome: BatchOutcome) -> None:
        snapshot = outcome.snapshot
        assert snapshot is not None
        name = read_name(self._warehouse, snapshot, self._restaurant_id)
        answers = read_answers(self._warehouse, snapshot, self._restaurant_id)
        what = "the batch build" if snapshot.kind == "build" else f"micro-batch {outcome.batch_id}"
        until = f"{snapshot.as_of:%Y-%m-%d %H:%M} UTC" if snapshot.as_of else "now"
        click.echo()
        if self._delivery is not None:
            click.echo(f"   delivered: {describe_records(self._delivery.counts)}")
            orders = snapshot.landed.get("bronze.orders")
            if orders is not None:
                click.echo(
                    f"   of {orders.produced} order records: {orders.landed} landed, "
                    f"{orders.superseded} superseded, {orders.dead_letters} dead letters"
                )
        for line in render_answers(f"{name}, up to {until}, after {what}", answers):
            click.echo(line)
