"""Consistency under fire: readers and push clients while a writer publishes, and is killed twice.

Every figure of a snapshot is its number, so one that was mixed shows. Every row of a change stream
is computed again, so a change that was missed or came twice shows. The writer waits for the slowest
client: each sees at least every third snapshot, however slow the machine is.
"""

from __future__ import annotations

import asyncio
import json
import random
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from livemart.serve.auth.tokens import TokenStore
from tests.conftest import IS_NIGHTLY
from tests.publish.fire_publisher import RESTAURANTS, balances, publish
from tests.serve.apps import bearer, make_settings
from tests.serve.live.events import Event, open_stream
from tests.serve.processes import serving

READERS, CLIENTS, SNAPSHOTS = (200, 500, 50) if IS_NIGHTLY else (40, 100, 24)
# So far may the writer be ahead of the slowest client.
LEAD = 3
ROOT = Path(__file__).resolve().parents[2]
# The command itself; only that a slow machine is not a store that does not answer.
_PATIENT = """
import sys
from livemart.cli.commands import cli
from livemart.serve import server
from livemart.store import connections

server._PATIENCE_S = connections._BUSY_SECONDS = 600
cli(sys.argv[1:], prog_name="livemart")
"""


@dataclass(slots=True)
class Fire:
    """Shared by all clients: the address, their token, and the answers."""

    address: tuple[str, int]
    headers: Mapping[str, Mapping[str, str]]
    # The newest snapshot that each client saw.
    seen: list[int] = field(default_factory=lambda: [0] * (READERS + CLIENTS))
    pulls: int = 0
    events: int = 0
    resumed: int = 0

    @property
    def allowed(self) -> int:
        """The snapshot up to which the writer may go; none before each client saw the first."""
        slowest = min(self.seen)
        return slowest and slowest + LEAD


class Breaks:
    """When a client breaks off: drawn beforehand, so not by how many events there are.

    Args:
        chance: of this client.
        latest: how many events after a snapshot, at most.
    """

    def __init__(self, chance: random.Random, latest: int = 0) -> None:
        drawn = (n for n in range(2, SNAPSHOTS) if chance.random() < 0.25)
        self._left = [(number, chance.randint(0, latest)) for number in drawn]

    def is_due(self, seen: int) -> bool:
        """Return True if it breaks off after this event."""
        if not self._left or seen < self._left[0][0]:
            return False
        number, events = self._left[0]
        self._left[0] = number, events - 1
        if events:
            return False
        self._left = [each for each in self._left if each[0] > seen]
        return True


def assert_whole(body: Mapping[str, Any]) -> None:
    """Fail if a figure is of another snapshot than the body says."""
    number = body["snapshot_id"]
    figures: list[Any] = []
    if "metrics" in body:
        figures += [each["value"] for each in body["metrics"].values()]
        figures += [body["metrics"]["order_count"]["previous"]]
    figures += [dish["quantity_sold"] for dish in body.get("top_dishes", ())]
    if "trend_point" in body:
        figures.append(body["trend_point"]["order_count"])
    if "points" in body:
        figures.append(body["points"][-1]["order_count"])
    for row in body.get("rows", ()):
        figures.append(row.get("order_count", row.get("quantity_sold")))
    assert {int(float(figure)) for figure in figures} == {number}, body


@asynccontextmanager
async def connection(
    address: tuple[str, int],
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection(*address)
    try:
        yield reader, writer
    finally:
        writer.close()


async def read_on(fire: Fire, client: int, chance: random.Random) -> None:
    """Pull over one connection to the last snapshot; those of one reader never go back."""
    restaurant = chance.choice(RESTAURANTS)
    headers = fire.headers[chance.choice([restaurant, "admin"])]
    of_restaurant = [
        f"/v1/restaurants/{restaurant}/{kind}?window={window}"
        for kind in ("metrics", "top-dishes", "trend")
        for window in ("1h", "24h", "168h")
    ]
    of_model = [
        f"/v1/models/{name}?key=restaurant_id:{restaurant}"
        for name in ("restaurant_order_metrics", "restaurant_top_dishes", "restaurant_sales_trend")
    ]
    seen, tags = 0, dict[str, tuple[str, int]]()
    async with connection(fire.address) as (reader, writer):
        while seen < SNAPSHOTS:
            path = chance.choice([*of_restaurant, *of_model])
            sent = {"Host": "127.0.0.1", **headers}
            if path in tags and chance.random() < 0.5:
                sent["If-None-Match"] = tags[path][0]
            lines = "".join(f"{name}: {value}\r\n" for name, value in sent.items())
            writer.write(f"GET {path} HTTP/1.1\r\n{lines}\r\n".encode())
            head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            found = {n.lower(): v for n, _, v in (line.partition(": ") for line in head[1:])}
            status = int(head[0].split()[1])
            if status == 304:
                number = tags[path][1]
            else:
                assert status == 200, (head, path)
                body = json.loads(await reader.readexactly(int(found["content-length"])))
                assert_whole(body)
                number = body["snapshot_id"]
                tags[path] = found["etag"], number
                assert found["etag"].startswith(f'"{number}-')
            assert number >= seen, (path, number, seen)
            seen = fire.seen[client] = number
            fire.pulls += 1
            await asyncio.sleep(chance.uniform(0.1, 0.5))


async def watch_state(fire: Fire, client: int, chance: random.Random) -> None:
    """Follow the state of a restaurant to the last snapshot, breaking off at times."""
    restaurant, window = chance.choice(RESTAURANTS), chance.choice(["1h", "24h", "168h"])
    path = f"/v1/restaurants/{restaurant}/stream?window={window}"
    breaks = Breaks(chance)
    seen, position = 0, None
    while seen < SNAPSHOTS:
        headers = dict(fire.headers[restaurant])
        if position is not None:
            headers["Last-Event-ID"] = position
            fire.resumed += 1
        async with open_stream(fire.address, path, headers) as stream:
            assert stream.status == 200
            async for event in stream.events():
                assert_whole(event.data)
                position = str(event.event_id)
                assert event.data["snapshot_id"] == int(position.rpartition("-")[2]) > seen
                seen = fire.seen[client] = event.data["snapshot_id"]
                fire.events += 1
                if seen == SNAPSHOTS or breaks.is_due(seen):
                    break


async def watch_changes(fire: Fire, client: int, chance: random.Random) -> None:
    """Follow every change to the last snapshot, breaking off anywhere; keep the rows."""
    restaurant = chance.choice(RESTAURANTS)
    is_admin = chance.random() < 0.2
    headers = dict(fire.headers["admin" if is_admin else restaurant])
    shown = RESTAURANTS if is_admin else [restaurant]
    breaks = Breaks(chance, latest=3)
    rows: dict[tuple[str, int], int] = {}
    ids: set[str] = set()
    position, seen = "0", 0
    while seen < SNAPSHOTS:
        headers["Last-Event-ID"] = position
        fire.resumed += seen > 0
        async with open_stream(fire.address, "/v1/models/balances/stream", headers) as stream:
            assert stream.status == 200
            async for event in stream.events():
                if event.event_id is not None:
                    assert event.event_id not in ids, event
                    ids.add(event.event_id)
                    position = event.event_id
                fire.events += 1
                if event.kind == "snapshot":
                    seen = fire.seen[client] = event.data["snapshot_id"]
                    expected = {
                        (each, slot): value
                        for each in shown
                        for slot, value in balances(each, seen).items()
                    }
                    assert rows == expected, (restaurant, seen)
                else:
                    assert seen == 0 or event.kind != "reset", (event, position)
                    keep(rows, event)
                if seen == SNAPSHOTS or breaks.is_due(seen):
                    break


def keep(rows: dict[tuple[str, int], int], event: Event) -> None:
    """Do to `rows` what an event says; each operation must fit what is there."""
    if event.kind == "reset":
        rows.clear()
        return
    row, op = event.data["row"], event.data["op"]
    key = row["restaurant_id"], row["slot"]
    assert (key in rows) == (op != "insert"), (event, rows)
    if op == "delete":
        del rows[key]
        return
    assert rows.get(key) != row["value"], event
    rows[key] = row["value"]


async def write(fire: Fire, url: str) -> list[int | None]:
    """Publish to the end; the writer is killed in a transaction, and again right behind one."""
    codes: list[int | None] = []
    for failpoint in (f"publish.in_transaction:{SNAPSHOTS // 3}", "publish.after:5", "none"):
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.publish.fire_publisher"),
            *(url, str(SNAPSHOTS), failpoint),
            cwd=ROOT,
            stdin=asyncio.subprocess.PIPE,
        )
        assert process.stdin is not None
        told, end = 0, asyncio.create_task(process.wait())
        while not end.done():
            if told < fire.allowed:
                told = fire.allowed
                process.stdin.write(f"{told}\n".encode())
            await asyncio.wait([end], timeout=0.02)
        process.stdin.close()
        codes.append(end.result())
    return codes


async def burn(fire: Fire, url: str, seed: int) -> list[int | None]:
    """Run all clients and the writer."""
    kinds = [*[read_on] * READERS, *[watch_changes, watch_state] * (CLIENTS // 2)]
    async with asyncio.TaskGroup() as group:
        for client, follow in enumerate(kinds):
            group.create_task(follow(fire, client, random.Random(f"{seed}/{client}")))
        return await write(fire, url)


def test_no_snapshot_is_mixed_and_no_change_is_missed_or_repeated(tmp_path: Path) -> None:
    seed = random.randrange(10**6) if IS_NIGHTLY else 7
    print(f"seed {seed}")
    url = str(make_settings(tmp_path).store_url)
    publish(url, 1)
    tokens = TokenStore(url)
    headers = {name: bearer(tokens.create(name, tenants=[name])[0]) for name in RESTAURANTS} | {
        "admin": bearer(tokens.create("admin", is_admin=True)[0])
    }
    tokens.close()
    with serving(tmp_path / "warehouse", program=_PATIENT) as (process, port, said):
        fire = Fire(("127.0.0.1", port), headers)

        codes = asyncio.run(burn(fire, url, seed))

        assert process.poll() is None
        assert not [line for line in said if "request_failed" in line or "Traceback" in line]
    print(f"{fire.pulls} pulls, {fire.events} events, {fire.resumed} resumed")
    assert codes == [-signal.SIGKILL, -signal.SIGKILL, 0]
    # A client that breaks off in the first half does so before it sees the last snapshot.
    assert fire.pulls > READERS and fire.resumed > CLIENTS // 4
