"""A client that asks for far more than others keeps only itself waiting: against a real server."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pyarrow as pa
import pytest
from starlette.requests import Request

from livemart.serve.auth import callers
from livemart.serve.auth.callers import Caller
from livemart.serve.auth.tokens import TokenStore
from livemart.serve.http.held_bytes import HeldBytes
from livemart.store.snapshot_view import SnapshotView
from tests.serve.apps import bearer, make_settings, server
from tests.store.stores import fill_store, reference_tables
from tests.waits import PATIENCE_S, wait_until

_ROWS = "/v1/models/restaurant_top_dishes"


@contextmanager
def slow_for(monkeypatch: pytest.MonkeyPatch, tenant: str) -> Iterator[threading.Event]:
    """Let no reading of the rows of a tenant end before the event is set."""
    may_end, read = threading.Event(), SnapshotView.row_slices

    def row_slices(view: SnapshotView, *arguments: Any, **named: Any) -> Any:
        if named["tenants"] == {tenant}:
            assert may_end.wait(PATIENCE_S)
        return read(view, *arguments, **named)

    monkeypatch.setattr(SnapshotView, "row_slices", row_slices)
    try:
        yield may_end
    finally:
        may_end.set()


def test_others_are_served_while_a_greedy_token_waits_and_one_too_many_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four threads read the store: without turns, the fifth slow pull kept everybody waiting."""
    url = make_settings(tmp_path).store_url
    assert url is not None
    fill_store(url, reference_tables([]))
    with closing(TokenStore(url)) as tokens:
        greedy, other = (bearer(tokens.create("x", tenants=[name])[0]) for name in ("r1", "r2"))
        admin = bearer(tokens.create("x", is_admin=True)[0])

    with (
        server(tmp_path, caller_waiting_pulls=8, caller_rows=10_000) as (host, port),
        slow_for(monkeypatch, "r1") as may_end,
        ThreadPoolExecutor(10) as clients,
        ExitStack() as stack,
    ):

        def get(headers: dict[str, str], path: str = _ROWS) -> httpx2.Response:
            url = f"http://{host}:{port}{path}"
            return httpx2.get(url, headers=headers, timeout=PATIENCE_S)

        assert get(other).status_code == 200
        pulls = [clients.submit(get, greedy) for _ in range(10)]
        # Streams that begin with all rows have separate turns, and no more threads.
        streams = [stack.enter_context(socket.create_connection((host, port))) for _ in range(3)]
        for number, stream in enumerate(streams):
            path = f"{_ROWS}/stream?after=0&dish_rank=gte.{number}"
            head = f"Host: localhost\r\nAuthorization: {greedy['Authorization']}"
            stream.sendall(f"GET {path} HTTP/1.1\r\n{head}\r\n\r\n".encode())
        wait_until(lambda: "livemart_waiting_pulls 9.0" in get(admin, "/metrics").text)
        refused, served = get(greedy), [get(other) for _ in range(3)]
        healthy = [get({}, path).status_code for path in ("/healthz", "/readyz")]
        was_waiting = not any(pull.done() for pull in pulls)
        may_end.set()
        answers = [pull.result().status_code for pull in pulls]
        told = get(admin, "/metrics").text

    assert was_waiting
    assert [answer.status_code for answer in served] == [200] * 3 and healthy == [200, 200]
    assert (refused.status_code, refused.json()["code"]) == (429, "TOO_MANY_AT_ONCE")
    assert refused.headers["retry-after"] == "1"
    assert '"pulls";r=0' in refused.headers["ratelimit"]
    assert served[0].headers["ratelimit-policy"] == (
        '"rows";q=10000;w=60;qu="rows", "pulls";q=10;qu="concurrent-requests"'
    )
    assert '"pulls";r=10' in served[0].headers["ratelimit"]
    assert answers == [200] * 10
    assert 'livemart_refused_pulls_total{reason="at_once"} 1.0' in told
    assert "livemart_waiting_pulls 0.0" in told


def test_requests_of_a_greedy_token_do_not_begin_before_anothers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are in memory, and quick. In the order of their arrival all 50 came first."""
    url = str(make_settings(tmp_path).store_url)
    fill_store(url, reference_tables([]))
    with closing(TokenStore(url)) as tokens:
        (greedy, greedy_id), (other, other_id) = (
            (text, token.token_id)
            for text, token in (tokens.create(name, is_admin=True) for name in ("greedy", "other"))
        )
    begun: list[str | None] = []
    is_begun, may_go_on = threading.Event(), threading.Event()
    find_caller = callers.current_caller

    def note_begin(request: Request) -> Caller:
        caller = find_caller(request)
        begun.append(caller.token_id)
        is_begun.set()
        assert may_go_on.wait(PATIENCE_S)
        return caller

    monkeypatch.setattr(callers, "current_caller", note_begin)
    with server(tmp_path) as address, ExitStack() as stack:

        def ask(client: socket.socket, path: str, token: str) -> None:
            head = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}"
            client.sendall(f"{head}\r\n\r\n".encode())

        clients = []
        for _ in range(51):
            clients.append(stack.enter_context(socket.create_connection(address, PATIENCE_S)))
            ask(clients[-1], "/healthz", "")
            answer = b""
            while not answer.endswith(b"}"):
                answer += clients[-1].recv(4_096)
        # The event loop waits in the first one until all have arrived, the other's last.
        ask(clients[0], "/v1/models", greedy)
        assert is_begun.wait(PATIENCE_S)
        for client in clients[1:-1]:
            ask(client, "/v1/models", greedy)
        ask(clients[-1], "/v1/models", other)
        may_go_on.set()
        for client in clients:
            assert client.recv(12) == b"HTTP/1.1 200"

    assert (begun.count(greedy_id), begun.count(other_id)) == (50, 1)
    assert begun.index(other_id) <= 2


@pytest.mark.extended
def test_answers_that_no_client_takes_hold_a_bounded_memory_and_no_other_client_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pulls and streams of 8 MB each. Without the bound 60 pulls of 16 MB took 600 MB of memory."""
    held, count = HeldBytes(20 << 20), 4_000
    monkeypatch.setattr("livemart.serve.app.HeldBytes", lambda: held)
    url = str(make_settings(tmp_path).store_url)
    wide = pa.table({"n": range(count), "text": ["x" * 2_000] * count})
    fill_store(url, {"wide": wide}, {"wide": ("n",)})
    with closing(TokenStore(url)) as tokens:
        greedy, other = (tokens.create(name, is_admin=True)[0] for name in ("greedy", "other"))

    with server(tmp_path) as address, ExitStack() as stack:

        def ask(path: str) -> socket.socket:
            client = stack.enter_context(socket.socket())
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            client.settimeout(PATIENCE_S)
            client.connect(address)
            head = f"Host: localhost\r\nAuthorization: Bearer {greedy}"
            client.sendall(f"GET /v1/models/wide{path} HTTP/1.1\r\n{head}\r\n\r\n".encode())
            assert client.recv(12) == b"HTTP/1.1 200"
            return client

        def follow(conditions: str) -> socket.socket:
            stream, said = ask(f"/stream?after=0&{conditions}"), b""
            while b"event: reset" not in said:
                said += stream.recv(65_536)
            return stream

        most = 0
        for number in range(3):
            ask("?limit=10000")
            follow(f"n=gte.-{number}")
            most = max(most, held.total)

        base = f"http://{address[0]}:{address[1]}"
        answer, metrics = (
            httpx2.get(f"{base}{path}", headers=bearer(other), timeout=PATIENCE_S)
            for path in ("/v1/models/wide?limit=10000", "/metrics")
        )
        # A stream that is dropped ends as any other, and its client comes back.
        first = follow("n=lt.4000")
        for number in range(2):
            follow(f"n=lt.{5_000 + number}")
        rest = b"".join(iter(lambda: first.recv(65_536), b""))

    assert most <= 20 << 20
    assert answer.status_code == 200 and len(answer.json()["rows"]) == count
    assert 'livemart_connections_ended_total{reason="memory_full"}' in metrics.text
    assert rest.endswith(b"0\r\n\r\n") and rest.count(b"event: change") < count
