"""Extreme numbers of streams, tenants and rows have the effects that operations.md describes."""

from __future__ import annotations

import socket
from contextlib import ExitStack, closing
from pathlib import Path

import httpx2
import pyarrow as pa
import pytest

from livemart.serve.auth.tokens import TokenStore
from tests.attacks.test_silence import filled
from tests.serve.processes import serving
from tests.store.stores import KEYS, fill_store, reference_tables
from tests.waits import PATIENCE_S

STREAM = b"GET /v1/restaurants/r1/stream HTTP/1.1\r\nHost: localhost\r\n\r\n"


def most_memory_mb(process_id: int) -> int:
    """Return the most memory that a process held so far."""
    (line,) = [
        line
        for line in Path(f"/proc/{process_id}/status").read_text().splitlines()
        if line.startswith("VmHWM:")
    ]
    return int(line.split()[1]) // 1024


def children_of(process_id: int) -> list[int]:
    """Return the ids of the processes that a process has started."""
    files = Path(f"/proc/{process_id}/task").glob("*/children")
    return [int(child) for file in files for child in file.read_text().split()]


@pytest.mark.extended
def test_of_10_000_streams_those_with_room_are_open_and_the_others_refused(tmp_path: Path) -> None:
    """Each has a descriptor: there are as many as the system and its limit of 6,000 allow."""
    folder = filled(tmp_path)
    url = f"sqlite:///{folder}/_livemart/serving.db"
    begins: dict[bytes, int] = {}
    with serving(folder) as (_, port, log), ExitStack() as stack:
        clients = []
        for number in range(10_000):
            one = stack.enter_context(socket.socket())
            # One address has only its own share.
            one.bind((f"127.0.1.{1 + number % 50}", 0))
            one.settimeout(PATIENCE_S)
            one.connect(("127.0.0.1", port))
            one.sendall(STREAM)
            begin = one.recv(12)
            begins[begin] = begins.get(begin, 0) + 1
            if begin == b"HTTP/1.1 200":
                clients.append(one)
        health = httpx2.get(f"http://127.0.0.1:{port}/healthz", timeout=PATIENCE_S).status_code
        fill_store(url, reference_tables([]), snapshot_id=2)
        for one in (clients[0], clients[-1]):
            told = b""
            while b"-2\n" not in told:
                told += one.recv(65_536)

    # No others than these two, however few descriptors there are.
    assert begins[b"HTTP/1.1 200"] + begins[b"HTTP/1.1 503"] == 10_000
    assert 400 <= begins[b"HTTP/1.1 200"] <= 5_000
    assert health == 200
    assert len(log) < 20 and not [line for line in log if "Traceback" in line]


@pytest.mark.extended
def test_100_000_tenants_are_published_and_each_reads_the_own_rows(tmp_path: Path) -> None:
    ids = [f"r{number}" for number in range(100_000)]
    tables = {
        **reference_tables([]),
        "sales": pa.table({"restaurant_id": ids, "amount": range(100_000)}),
    }
    folder = tmp_path / "warehouse"
    url = f"sqlite:///{folder}/_livemart/serving.db"
    fill_store(url, tables, {**KEYS, "sales": ("restaurant_id",)})
    with closing(TokenStore(url)) as tokens:
        token, _ = tokens.create("one", tenants=["r77777"])
        many, _ = tokens.create("many", tenants=ids[:1_000])
    with serving(folder) as (process, port, _):
        before = most_memory_mb(process.pid)
        base, found = f"http://127.0.0.1:{port}", []
        for text in (token, many):
            headers = {"Authorization": f"Bearer {text}"}
            path = f"{base}/v1/models/sales?limit=10000"
            found.append(httpx2.get(path, headers=headers, timeout=PATIENCE_S).json()["rows"])
        grown = most_memory_mb(process.pid) - before

    assert found[0] == [{"restaurant_id": "r77777", "amount": 77_777}]
    assert sorted(row["amount"] for row in found[1]) == list(range(1_000))
    assert grown < 100


@pytest.mark.extended
def test_a_store_of_any_size_costs_the_server_what_an_answer_does(tmp_path: Path) -> None:
    """Rows are read a few at a time, an answer ends at 16 MiB, no larger model is sent whole."""
    count = 12_000
    wide = pa.table({"n": range(count), "text": [f"{n:020000}" for n in range(count)]})
    folder = tmp_path / "warehouse"
    fill_store(f"sqlite:///{folder}/_livemart/serving.db", {"wide": wide}, {"wide": ("n",)})
    size = (folder / "_livemart" / "serving.db").stat().st_size >> 20
    del wide
    arrow, found, grown = "application/vnd.apache.arrow.stream", [], []
    with serving(folder) as (process, port, _), httpx2.Client(timeout=PATIENCE_S) as client:
        path = f"http://127.0.0.1:{port}/v1/models/wide"

        def ask(query: str, form: str) -> tuple[int, str | None, int]:
            answer = client.get(path + query, headers={"Accept": form, "Accept-Encoding": "gzip"})
            return answer.status_code, answer.headers.get("livemart-truncated"), len(answer.content)

        before = most_memory_mb(process.pid)
        few = ask("?key=n:3", "application/json")
        # Many rows start the side process, however small they are.
        ask("?limit=10000&select=n", arrow)
        (side,) = children_of(process.pid)
        side_before = most_memory_mb(side)
        for form in (arrow, "application/json", "text/csv"):
            found.append(ask("?limit=10000", form))
            of_side = most_memory_mb(side) - side_before
            grown.append((most_memory_mb(process.pid) - before, of_side))
        refused = ask("/stream?after=0", "text/event-stream")

    assert few[:2] == (200, "false") and refused[0] == 422
    for status, truncated, length in found:
        assert (status, truncated) == (200, "true") and 15 << 20 < length < 30 << 20
    assert size > 220
    # An answer without an end would hold 200 MB twice, as rows and as text.
    for of_server, of_side in grown:
        assert of_server < size / 3 and of_side < size * 0.75, (size, grown)
