"""A server that is killed under load has stored what it acknowledged, each record once."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from threading import Event, Thread

import httpx2

from livemart.serve.auth.tokens import TokenStore
from tests.integration.mini import PROJECT
from tests.project_run import copy_project
from tests.serve.apps import bearer, make_settings
from tests.waits import wait_until


class Till:
    """Sends one record after the other, each under a key, and again until it is acknowledged."""

    def __init__(self, number: int, headers: dict[str, str]) -> None:
        self.number, self.headers = number, headers
        self.acknowledged: list[str] = []
        self.port, self.stop = 0, Event()
        self.thread = Thread(target=self._run)

    def _run(self) -> None:
        count = 0
        with httpx2.Client(timeout=5) as client:
            while not self.stop.is_set():
                sale = f"{self.number}-{count}"
                record = {"sale_id": sale, "shop_id": "a", "updated_at": "2026-03-01T12:00:00Z"}
                try:
                    answer = client.post(
                        f"http://127.0.0.1:{self.port}/v1/ingest/sales",
                        content=json.dumps(record),
                        headers=self.headers | {"Idempotency-Key": sale},
                    )
                except httpx2.HTTPError:
                    self.stop.wait(0.2)
                    continue
                assert answer.status_code == 200, answer.text
                self.acknowledged.append(sale)
                count += 1


def start(folder: Path) -> tuple[subprocess.Popen[bytes], int]:
    places = ["--warehouse", str(folder / "warehouse"), "--landing", str(folder / "landing")]
    command = [sys.executable, "-m", "livemart", "serve", "--http-ingest", "--port", "0", *places]
    command += ["--project-dir", str(folder / "project")]
    told = folder / "stderr"
    with told.open("w") as stderr:
        process = subprocess.Popen(command, stderr=stderr, cwd=folder)
    port = re.compile(r"127\.0\.0\.1:(\d+)")
    wait_until(lambda: process.poll() is not None or bool(port.search(told.read_text())))
    (number,) = port.findall(told.read_text())
    return process, int(number)


# 15 s.
def test_what_was_acknowledged_is_stored_once(tmp_path: Path) -> None:
    copy_project(PROJECT, tmp_path / "project")
    url = make_settings(tmp_path).store_url
    assert url is not None
    tokens = TokenStore(url)
    text, _ = tokens.create("till", sources=["sales"])
    tokens.close()
    process, port = start(tmp_path)
    headers = bearer(text) | {"Content-Type": "application/x-ndjson"}
    tills = [Till(number, headers) for number in range(8)]
    for till in tills:
        till.port = port
        till.thread.start()
    for goal in (80,):
        wait_until(lambda goal=goal: sum(len(it.acknowledged) for it in tills) > goal)  # type: ignore[misc]
        process.send_signal(signal.SIGKILL)
        process.wait()
        process, port = start(tmp_path)
        for till in tills:
            till.port = port
    wait_until(lambda: sum(len(it.acknowledged) for it in tills) > 160)
    for till in tills:
        till.stop.set()
        till.thread.join()
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=30) == 143

    lines = [
        json.loads(line)["sale_id"]
        for path in (tmp_path / "landing" / "sales").glob("*.jsonl")
        for line in path.read_text().splitlines()
    ]
    acknowledged = [sale for till in tills for sale in till.acknowledged]
    assert Counter(lines) == Counter(acknowledged)
