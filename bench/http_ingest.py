"""Orders over HTTP: how soon a request is acknowledged, and how many orders come in in a second.

A separate server with a project of `livemart init`, and senders that each send one request after
the other. Acknowledged records are durable: the files are counted at the end.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import quantiles
from threading import Thread

import httpx2

from bench.refresh import report

_SECONDS = 10.0
_WAIT_S = 60.0
# Senders, and orders of a request: tills, and a collector that sends by the hundred.
LOADS = ((8, 1), (32, 1), (4, 100))


def measure_http(folder: Path) -> bool:
    """Report latency and throughput of each load; return True if all acknowledged is stored."""
    project = folder / "shop"
    _command(["init", str(project)])
    token = _command(["token", "create", "--name", "bench", "--ingest", "orders"], project)
    token = token.split()[-1]
    server = _Server(project)
    try:
        is_whole = True
        for senders, orders in LOADS:
            before = _stored(project)
            latencies = _load(server.address, token, senders, orders)
            count = len(latencies) * orders
            label = f"http_ingest_{senders}x{orders}"
            report(f"{label}_p50_ms", quantiles(latencies, n=100)[49] * 1_000)
            report(f"{label}_p99_ms", quantiles(latencies, n=100)[98] * 1_000)
            report(f"{label}_orders_per_s", count / _SECONDS)
            is_whole &= _stored(project) - before == count
    finally:
        server.stop()
    return is_whole


class _Server:
    """`livemart serve --http-ingest` on a port that it chooses."""

    def __init__(self, project: Path) -> None:
        log = project / "serve.log"
        with log.open("w") as stderr:
            arguments = [*_livemart("serve"), "--http-ingest", "--port", "0"]
            self._process = subprocess.Popen(arguments, cwd=project, stderr=stderr)
        waited_until = time.monotonic() + _WAIT_S
        while (port := re.search(r"127\.0\.0\.1:(\d+)", log.read_text())) is None:
            if time.monotonic() > waited_until or self._process.poll() is not None:
                raise SystemExit(f"the server does not start: {log.read_text()}")
            time.sleep(0.1)
        self.address = f"http://127.0.0.1:{port[1]}"

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(_WAIT_S)


def _load(address: str, token: str, senders: int, orders: int) -> list[float]:
    """Return the seconds of each request that was acknowledged."""
    latencies: list[list[float]] = [[] for _ in range(senders)]
    ends_at = time.monotonic() + _SECONDS

    def send(number: int) -> None:
        headers = {
            "Authorization": f"Bearer {token}",
            "Content-Type": "application/x-ndjson",
        }
        with httpx2.Client(timeout=_WAIT_S, headers=headers) as client:
            while time.monotonic() < ends_at:
                first = len(latencies[number]) * orders
                lines = [_order(f"{number}-{first + n}") for n in range(orders)]
                began = time.perf_counter()
                answer = client.post(f"{address}/v1/ingest/orders", content="\n".join(lines))
                if answer.status_code != 200:
                    raise SystemExit(answer.text)
                latencies[number].append(time.perf_counter() - began)

    threads = [Thread(target=send, args=(number,)) for number in range(senders)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [seconds for each in latencies for seconds in each]


def _order(order_id: str) -> str:
    at = "2026-03-01T12:00:00Z"
    order: Mapping[str, object] = {
        "order_id": order_id,
        "shop_id": "market",
        "product_id": "p2",
        "status": "paid",
        "quantity": 1,
        "amount": "3.60",
        "ordered_at": at,
        "updated_at": at,
    }
    return json.dumps(order)


def _stored(project: Path) -> int:
    """Return the lines of the files that were handed over."""
    folder = project / "landing"
    return sum(
        path.read_bytes().count(b"\n") for path in folder.rglob("*") if path.suffix == ".jsonl"
    )


def _command(arguments: Sequence[str], project: Path | None = None) -> str:
    done = subprocess.run(
        _livemart(*arguments), cwd=project, check=True, capture_output=True, text=True
    )
    return done.stdout


def _livemart(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "livemart", *arguments]
