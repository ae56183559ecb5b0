"""Topics of Kafka land as record logs. The test of the gate takes 20 s, with the broker."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.change_records import change, changes, framed, row
from tests.deliveries import Shop, lines, order, source
from tests.project_run import ROOT
from tests.services.kafka import Kafka
from tests.services.topics import create_topic, send

# Lands one micro-batch in a separate process, which a failpoint may kill.
_LAND = """
import sys
from pathlib import Path
from tests.integration.land.test_kafka import shop_of

shop_of(Path(sys.argv[1]), *sys.argv[2:]).land(0)
"""


def shop_of(root: Path, servers: str, orders: str, cdc: str) -> Shop:
    """Orders by key and as events, and the changes of a table, each from its topic."""

    def of(topic: str) -> dict[str, Any]:
        options = (("servers", servers), ("topics", (topic,)))
        return {"path": "", "kind": "kafka", "options": options}

    keyed = source("orders", keys=("order_id",), **of(orders))
    events = source("order_events", **of(orders))
    changed = changes("changed", **of(cdc))
    return Shop(None, root, (keyed, events, changed))


def land_killed(failpoint: str, *arguments: object) -> None:
    """Land a micro-batch in a process that is killed at a failpoint."""
    command = [sys.executable, "-c", _LAND, *map(str, arguments)]
    environment = {"LIVEMART_FAILPOINT": failpoint, "PATH": "/usr/bin:/bin"}
    run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert run.returncode == -signal.SIGKILL, run.stderr


def test_records_and_changes_land_once_though_landing_is_killed(
    kafka: Kafka, tmp_path: Path
) -> None:
    orders, cdc = create_topic(kafka, partitions=2), create_topic(kafka)
    send(kafka, orders, *lines([order("a"), order("b")]), "{broken", "")
    send(kafka, orders, *lines([order("c")]), partition=1)
    update = framed(change("u", 200, row(1, "paid")), frame=1)
    removed = json.dumps(change("d", 300))
    keys = ['{"id": 1}', '{"id": 1}', '{"id": 2}', '{"id": 2}', '{"id": 2}']
    inserts = [framed(change("c", 100 + it, row(it)), frame=0) for it in (1, 2)]
    send(kafka, cdc, inserts[0], update, inserts[1], removed, None, keys=keys)
    land_killed("landing.after_table.1", tmp_path, kafka.address, orders, cdc)
    # Records that arrive meanwhile belong to the next batch.
    send(kafka, orders, *lines([order("a", 1, status="paid")]))
    shop = shop_of(tmp_path, kafka.address, orders, cdc)

    first, second, third = (shop.land(batch).counts for batch in range(3))

    assert [it["bronze.order_events"].produced for it in (first, second, third)] == [5, 1, 0]
    assert shop.rows("order_events", "_origin", "order_id") == [
        (f"{orders}/0@0", "a"),
        (f"{orders}/0@1", "b"),
        (f"{orders}/0@4", "a"),
        (f"{orders}/1@0", "c"),
    ]
    assert shop.rows("orders", "order_id", "status") == [
        *(("a", "paid"), ("b", "placed"), ("c", "placed"))
    ]
    # Deleted with nothing but the key of the message.
    assert shop.rows("changed", "id", "status") == [(1, "paid")]
    assert first["bronze.changed"].superseded == 3
    assert shop.rows("_dead_letters", "source", "origin", "reason") == [
        (f"bronze.{name}", f"{orders}/0@{offset}", "MALFORMED_RECORD")
        for name in ("order_events", "orders")
        for offset in (2, 3)
    ]
