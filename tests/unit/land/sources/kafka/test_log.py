"""A plan asks a cluster once for its topics; later reads ask again."""

from __future__ import annotations

import pickle
from collections.abc import Sequence

from livemart.land.sources.kafka.client import KafkaTopic
from livemart.land.sources.kafka.log import KafkaLog
from livemart.land.sources.log_deliveries import LogDeliveries
from livemart.land.sources.record_log import LogProgress

Places = Sequence[tuple[str, int]]


class Cluster:
    """A cluster of the topic `orders`, which has a partition more each time it is asked."""

    def __init__(self) -> None:
        self.asked = 0

    def names(self) -> list[str]:
        return ["orders", "other"]

    def topics(self, names: Sequence[str]) -> dict[str, KafkaTopic]:
        self.asked += 1
        return {name: KafkaTopic("id", tuple(range(self.asked))) for name in names}

    def offsets(self, places: Places, *, newest: bool) -> dict[tuple[str, int], int]:
        return dict.fromkeys(places, 10 if newest else 0)


def test_a_plan_is_of_the_topics_of_one_moment() -> None:
    cluster = Cluster()
    log = KafkaLog("nowhere:1", pattern="ord.*", name="shop")
    log.__dict__["_client"] = cluster
    deliveries = LogDeliveries("kafka", log)

    first = deliveries.plan(["bronze.orders"], LogProgress(), None)
    second = deliveries.plan(
        ["bronze.orders"], LogProgress.of(first.offsets, first.identities), None
    )

    assert cluster.asked == 2
    assert first.ends == {"shop/orders/0": 10}
    assert second.identities == {"shop/orders/0": "id", "shop/orders/1": "id"}
    assert second.delivery is not None
    assert second.delivery.receipt["read"] == {"shop/orders/1": [0, 10]}
    assert pickle.loads(pickle.dumps(log.steady())) == log
