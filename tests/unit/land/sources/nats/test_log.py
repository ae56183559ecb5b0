"""A plan asks a server once what its stream holds, and knows what a compacted one leaves out."""

from __future__ import annotations

from typing import Any

import pytest
from nats.js import api

from livemart.errors import SourceError
from livemart.land.sources import log_deliveries
from livemart.land.sources.log_deliveries import LogDeliveries
from livemart.land.sources.nats.client import StreamBounds, is_compacted
from livemart.land.sources.nats.log import NatsLog
from livemart.land.sources.record_log import LogProgress


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

    first = deliveries.plan(["bronze.orders"], LogProgress(), None)
    second = deliveries.plan(
        ["bronze.orders"], LogProgress.of(first.offsets, first.identities), None
    )

    assert server.asked == 2
    assert [it.delivery and it.delivery.receipt["read"] for it in (first, second)] == [
        {"ORDERS": [1, 2]},
        {"ORDERS": [2, 3]},
    ]


class Bucket:
    """A server with a key-value bucket: both keys were written again since record 2 was read."""

    def __init__(self, *, is_compacted: bool) -> None:
        self.is_compacted = is_compacted

    def bounds(self) -> StreamBounds:
        return StreamBounds(5, 7, "then", self.is_compacted)


def test_what_newer_messages_of_a_subject_replaced_is_no_loss(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(NatsLog, "_client", Bucket(is_compacted=True))
    deliveries = LogDeliveries("nats", NatsLog("nats://nowhere:4222", "ORDERS"))
    reached = LogProgress.of({"ORDERS": 3}, {"ORDERS": "then"})

    new = deliveries.plan(["bronze.orders"], LogProgress(), None).delivery
    later = deliveries.plan(["bronze.orders"], reached, None).delivery

    assert new is not None and new.receipt == {
        "read": {"ORDERS": [5, 7]},
        "lost": [],
        "identities": {"ORDERS": "then"},
    }
    assert later is not None and later.receipt["read"] == {"ORDERS": [3, 7]}
    assert deliveries.check(later, 1) is later


def test_what_ran_out_before_it_was_read_stops_landing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NatsLog, "_client", Bucket(is_compacted=False))
    monkeypatch.setattr(log_deliveries, "_BETWEEN_LOOKS_S", 0)
    deliveries = LogDeliveries("nats", NatsLog("nats://nowhere:4222", "ORDERS"))
    reached = LogProgress.of({"ORDERS": 3}, {"ORDERS": "then"})

    with pytest.raises(SourceError, match="records 3 to 4 had expired"):
        deliveries.plan(["bronze.orders"], reached, None)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, False),
        ({"max_msgs_per_subject": 1}, True),
        ({"allow_rollup_hdrs": True}, True),
        ({"max_msgs_per_subject": 5, "max_age": 60.0}, False),
        ({"max_msgs_per_subject": 1, "max_msgs": 1_000}, False),
        ({"max_msgs_per_subject": 1, "max_bytes": 1_000, "discard": "new"}, True),
        ({"max_msgs_per_subject": 1, "discard": "new", "discard_new_per_subject": True}, False),
    ],
)
def test_a_stream_is_compacted_if_messages_go_by_newer_ones_alone(
    settings: dict[str, Any], expected: bool
) -> None:
    config = api.StreamConfig.from_response(settings)

    assert is_compacted(config) == expected
