"""Clients that say nothing, or too slowly: real sockets against a real server.

A server in a separate process with few descriptors, or in a thread with short patience.
"""

from __future__ import annotations

import re
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx2
import pyarrow as pa
import pytest

from livemart.serve import server as server_module
from livemart.serve.connections import protocol
from tests.serve.apps import server
from tests.serve.processes import serving
from tests.serve.test_up_command import up
from tests.store.stores import fill_store, reference_tables
from tests.waits import PATIENCE_S, wait_until

# The command itself, with few descriptors. `PATCH`: what else is another.
_FEW_FILES = """
import resource
import sys
from livemart.cli.commands import cli
from livemart.serve import server
from livemart.serve.connections import kept

resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, FILES))
PATCH
cli(sys.argv[1:], prog_name="livemart")
"""
_READ = "/v1/restaurants/r1/metrics"
_STREAM = b"GET /v1/restaurants/r1/stream HTTP/1.1\r\nHost: localhost\r\n\r\n"


def few_files(files: int, patch: str = "") -> str:
    return _FEW_FILES.replace("FILES", str(files)).replace("PATCH", patch)


@contextmanager
def flood(port: int, count: int, said: bytes = b"", source: str = "127.0.0.1") -> Iterator[None]:
    """Hold connections that say no more than `said`; the server may have ended some."""
    with ExitStack() as stack:
        for _ in range(count):
            one = stack.enter_context(socket.socket())
            one.bind((source, 0))
            one.settimeout(PATIENCE_S)
            one.connect(("127.0.0.1", port))
            if said:
                one.sendall(said)
        yield


def statuses(port: int, *paths: str) -> list[int]:
    """Return the answers, each from a separate connection."""
    base = f"http://127.0.0.1:{port}"
    return [httpx2.get(base + path, timeout=PATIENCE_S).status_code for path in paths]


def all_of(client: socket.socket) -> bytes:
    try:
        return b"".join(iter(lambda: client.recv(65_536), b""))
    except ConnectionResetError:
        return b"reset"


def filled(folder: Path) -> Path:
    warehouse = folder / "warehouse"
    fill_store(f"sqlite:///{warehouse}/_livemart/serving.db", reference_tables([]))
    return warehouse


def test_who_asks_is_answered_beside_more_silent_connections_than_there_are_descriptors(
    tmp_path: Path,
) -> None:
    """Without the limits a server answered no client here.

    At 6,200 connections and 1,024 descriptors it wrote 123 MB of log in the one minute watched.
    """
    with (
        serving(filled(tmp_path), program=few_files(256)) as (process, port, log),
        flood(port, 300),
        flood(port, 300, b"GET /healthz HTTP/1.1\r\nHo"),
    ):
        answered = [status for _ in range(3) for status in statuses(port, "/healthz", _READ)]
        text = httpx2.get(f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE_S).text
        process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE_S)

    assert answered == [200] * 6
    assert "livemart_connections 128.0" in text
    assert process.returncode == 143
    ended = [line for line in log if "connection_ended reason=silent" in line]
    assert len(ended) == 1 and len(log) < 10


def test_descriptors_that_others_took_cost_no_lines_and_silent_connections_alone(
    tmp_path: Path,
) -> None:
    """asyncio 3.11 goes on to accept where there is no descriptor, as often as its backlog says."""
    program = few_files(256, "kept._KEPT_FILES = 0")
    with serving(filled(tmp_path), program=program) as (_, port, log), flood(port, 400):
        answered = statuses(port, "/healthz", _READ)

    assert answered == [200, 200]
    assert any("reason=no_files" in line for line in log)
    assert len(log) < 10


def test_where_all_connections_are_busy_health_is_answered_and_all_else_refused(
    tmp_path: Path,
) -> None:
    """And one address cannot have them all; a proxy that is trusted brings those of many."""
    with serving(filled(tmp_path), program=few_files(128)) as (_, port, log):
        with flood(port, 100, _STREAM, source="127.0.0.2"), socket.socket() as greedy:
            beside_one_address = statuses(port, _READ, "/healthz")
            greedy.bind(("127.0.0.2", 0))
            greedy.settimeout(PATIENCE_S)
            greedy.connect(("127.0.0.1", port))
            refused = all_of(greedy)

        def is_alone() -> bool:
            text = httpx2.get(f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE_S).text
            return "livemart_connections 1.0\n" in text

        # None of the next ones may be refused for one of these that is still to leave.
        wait_until(is_alone)

        def read() -> httpx2.Response:
            return httpx2.get(f"http://127.0.0.1:{port}{_READ}", timeout=PATIENCE_S)

        with ExitStack() as held:

            def is_full() -> bool:
                # A stream that has not begun yet is silent, and gives its place to who asks.
                held.enter_context(flood(port, 1, _STREAM))
                return read().status_code == 503

            held.enter_context(flood(port, 63, _STREAM))
            wait_until(is_full)
            problem = read()
            on_reserve = statuses(port, "/healthz", "/readyz")
        wait_until(lambda: read().status_code == 200)

    assert beside_one_address == on_reserve == [200, 200]
    assert refused.startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
    assert b"Retry-After: 5\r\n" in refused and b'"TOO_MANY_CONNECTIONS"' in refused
    assert problem.json()["code"] == "TOO_MANY_CONNECTIONS"
    assert (problem.headers["retry-after"], problem.headers["connection"]) == ("5", "close")
    assert not [line for line in log if "request_failed" in line]


@pytest.fixture
def impatient(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, int]]:
    """A server that waits for a moment only, and looks at its deadlines all the time."""
    monkeypatch.setattr(protocol, "HEAD_S", 0.3)
    monkeypatch.setattr(protocol, "BODY_S", 0.3)
    monkeypatch.setattr(protocol, "TAKEN_S", 0.3)
    monkeypatch.setattr(protocol, "STALLED_S", 0.3)
    monkeypatch.setattr(protocol, "BYTES_A_SECOND", 1 << 40)
    monkeypatch.setattr(server_module, "_DEADLINES_EVERY", 1)
    tables = reference_tables([])
    tables["wide"] = pa.table({"n": range(4_000), "text": ["x" * 2_000] * 4_000})
    fill_store(f"sqlite:///{tmp_path}/warehouse/_livemart/serving.db", tables)
    with server(tmp_path) as address:
        yield address


_HOST = b"Host: localhost\r\n"
_POST = b"POST /login HTTP/1.1\r\n" + _HOST
_FORM = b"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 90\r\n\r\ntoken=x"


_CHUNK = b"Transfer-Encoding: chunked\r\n\r\n5\r\ntok"
_REQUESTS = {
    "nothing": b"",
    "half a header": b"GET /healthz HTTP/1.1\r\nHo",
    "half a body": _POST + _FORM,
    "half a chunk": _POST + _FORM.partition(b"Content-Length")[0] + _CHUNK,
}


def test_a_request_that_does_not_come_ends_its_connection(
    impatient: tuple[str, int], capfd: pytest.CaptureFixture[str]
) -> None:
    with ExitStack() as stack:
        clients = {
            name: stack.enter_context(socket.create_connection(impatient, PATIENCE_S))
            for name in _REQUESTS
        }
        for name, client in clients.items():
            client.sendall(_REQUESTS[name])
        answers = {name: all_of(client) for name, client in clients.items()}

    assert answers.pop("nothing") == b""
    for answer in answers.values():
        assert answer.startswith(b"HTTP/1.1 408 ") and b'"REQUEST_TIMEOUT"' in answer
    assert b'"instance": "/login"' in answers["half a body"]
    assert "Traceback" not in capfd.readouterr().err


def test_bytes_that_come_one_by_one_keep_no_connection(impatient: tuple[str, int]) -> None:
    """After an answer, too: uvicorn's own limit ends with the first byte that comes."""
    with socket.create_connection(impatient, PATIENCE_S) as client:
        client.sendall(b"GET /healthz HTTP/1.1\r\n" + _HOST + b"\r\n")
        assert client.recv(12) == b"HTTP/1.1 200"
        is_over = threading.Event()

        def drip() -> None:
            try:
                client.sendall(b"GET / HTTP/1.1\r\nA: ")
                while not is_over.wait(0.05):
                    client.sendall(b"x")
            except OSError:
                return

        dripping = threading.Thread(target=drip)
        dripping.start()
        try:
            rest = all_of(client)
        finally:
            is_over.set()
            dripping.join(PATIENCE_S)

    assert b"HTTP/1.1 408 " in rest or rest == b"reset"


def test_who_takes_nothing_of_an_answer_is_cut_off(impatient: tuple[str, int]) -> None:
    """A body that is written as a whole, and a stream."""
    paths = ("/v1/models/wide?limit=10000", "/v1/models/wide/stream?after=0")
    with ExitStack() as stack:
        for path in paths:
            stalled = stack.enter_context(socket.socket())
            stalled.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            stalled.settimeout(PATIENCE_S)
            stalled.connect(impatient)
            stalled.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            assert stalled.recv(12) == b"HTTP/1.1 200"

        def are_ended() -> bool:
            text = httpx2.get(f"http://127.0.0.1:{impatient[1]}/metrics", timeout=PATIENCE_S).text
            return 'livemart_connections_ended_total{reason="slow_reader"} 2.0' in text

        wait_until(are_ended)


_PULL = b"GET /v1/models/wide?limit=10000 HTTP/1.1\r\nHost: localhost\r\n"


def test_who_asks_again_before_it_takes_an_answer_has_no_more_time_for_that(
    impatient: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The deadline of the server alone: a client that takes single bytes has none of the kernel."""
    monkeypatch.setattr(protocol, "_limit_silence", lambda _: None)
    with socket.socket() as stalled:
        stalled.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        stalled.settimeout(PATIENCE_S)
        stalled.connect(impatient)
        stalled.sendall((_PULL + b"\r\n") * 3)
        assert stalled.recv(12) == b"HTTP/1.1 200"

        def is_ended() -> bool:
            text = httpx2.get(f"http://127.0.0.1:{impatient[1]}/metrics", timeout=PATIENCE_S).text
            return 'livemart_connections_ended_total{reason="slow_reader"} 1.0' in text

        wait_until(is_ended)


@pytest.mark.extended
def test_requests_that_come_at_once_are_answered_one_after_the_other(
    impatient: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each answer is far more than the sockets hold."""
    monkeypatch.setattr(protocol, "TAKEN_S", PATIENCE_S)
    monkeypatch.setattr(protocol, "STALLED_S", PATIENCE_S)
    with socket.create_connection(impatient, PATIENCE_S) as client:
        client.sendall((_PULL + b"\r\n") * 2 + _PULL + b"Connection: close\r\n\r\n")
        answers = all_of(client)

    assert answers.count(b"HTTP/1.1 200 OK") == 3
    assert answers.count(b'"is_truncated":false') == 3
    assert len(answers) > 3 * 4_000 * 2_000


def test_who_is_slow_within_reason_is_answered(
    impatient: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protocol, "HEAD_S", PATIENCE_S)
    monkeypatch.setattr(protocol, "BODY_S", PATIENCE_S)
    with socket.create_connection(impatient, PATIENCE_S) as client:
        for letter in b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n":
            client.sendall(bytes([letter]))
        answer = all_of(client)

    assert answer.startswith(b"HTTP/1.1 200 ")


@pytest.mark.extended
def test_10_000_idle_connections_change_nothing(tmp_path: Path) -> None:
    with serving(filled(tmp_path)) as (process, port, log), flood(port, 10_000):
        answered = [status for _ in range(20) for status in statuses(port, "/healthz", _READ)]
        process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE_S)

    assert answered == [200] * 40
    assert process.returncode == 143
    assert len(log) < 10


@pytest.mark.extended
def test_silent_connections_stop_neither_process_of_up(tmp_path: Path) -> None:
    """A server that does not answer `/healthz` would be killed, and the engine would go on alone.

    Before there were limits, such connections took the descriptors of a refresh in one process.
    """
    with up(tmp_path, files=256) as process:
        assert process.stdout is not None and process.stderr is not None
        port = int(re.findall(r"\d+", process.stderr.readline())[-1])
        engine = process.stdout.readline()
        with flood(port, 300), flood(port, 300, b"GET /healthz HTTP/1.1\r\nHo"):
            answered = [status for _ in range(20) for status in statuses(port, "/healthz")]
        process.send_signal(signal.SIGTERM)
        rest, said = process.communicate(timeout=PATIENCE_S)

    assert answered == [200] * 20
    assert engine.startswith("streams ") and rest == "stream ended\nruntime closed\n"
    assert process.returncode == 143
    assert "process_hangs" not in said and "process_ended" not in said
    assert said.count("connection_ended") <= 2 and "Traceback" not in said
