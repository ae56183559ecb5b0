"""A plan asks a server once what its stream holds."""

from __future__ import annotations

import pytest

from livemart.land.sources.log_deliveries import LogDeliveries
from livemart.land.sources.nats.client import StreamBounds
from livemart.land.sources.nats.log import NatsLog
from livemart.land.sources.record_log import Reached


class Server:
    """A server whose stream has a message more each time it is asked."""

    def __init__(self) -> None:
        self.asked = 0

    def bounds(self) -> StreamBounds:
        self.asked += 1
        return StreamBounds(1, 1 + self.asked, "then")


def test_a_plan_is_of_what_the_stream_holds_at_one_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server()
    monkeypatch.setattr(NatsLog, "_client", server)
    deliveries = LogDeliveries("nats", NatsLog("nats://nowhere:4222", "ORDERS"))

    first = deliveries.plan(["bronze.orders"], Reached(), None)
    second = deliveries.plan(["bronze.orders"], Reached.of(first.offsets, first.identities), None)

    assert server.asked == 2
    assert [it.delivery and it.delivery.receipt["read"] for it in (first, second)] == [
        {"ORDERS": [1, 2]},
        {"ORDERS": [2, 3]},
    ]
