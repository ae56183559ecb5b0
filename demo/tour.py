"""Shows the answers after each snapshot, and lets the market go on.

Used by the demo in the place of a watcher, so that it sees what the terminal tells.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from threading import Event

import click

from demo.answers import describe_records, read_answers, read_name, render_answers
from demo.delivery import Delivery
from demo.market import Market
from livemart.cli.interrupts import SignalEvent
from livemart.delta.warehouse import Warehouse
from livemart.project.node_results import NodeProgress
from livemart.run.events import BatchEnded, BatchOutcome, ReportEvent, RunEvent
from livemart.settings import Settings

_PANE = timedelta(minutes=5)
_BREATH = timedelta(seconds=5)


class Tour:
    """Passes the events of a run on to `inner`, and drives the market by them.

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
        inner: ReportEvent,
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

    def handle(self, event: RunEvent) -> None:
        """Pass on an event, unless it is of compiling the project; go on when a batch has ended."""
        if isinstance(event, NodeProgress) and not self.is_building:
            return
        self._inner(event)
        if isinstance(event, BatchEnded):
            self._batch_ended(event.outcome)

    def _batch_ended(self, outcome: BatchOutcome) -> None:
        """Show the answers of a new snapshot; have the next records delivered."""
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
