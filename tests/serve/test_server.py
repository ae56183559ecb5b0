"""`serve` as a process: the way in, clean ends, and what is refused at the start."""

from __future__ import annotations

import asyncio
import re
import resource
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx2
import pyarrow as pa
import pytest
from click.testing import CliRunner
from sqlalchemy import event

from livemart.cli.commands import cli
from livemart.errors import ConfigError, StateError
from livemart.publish.publisher import confirm
from livemart.serve import server as server_module
from livemart.serve.server import open_server
from livemart.settings import Settings
from livemart.store.connections import open_engine
from livemart.store.reader import StoreReader
from livemart.store.snapshot_view import SnapshotView
from livemart.store.store import Store
from tests.serve.apps import Site, bearer, make_settings, server, site
from tests.serve.live.events import open_stream
from tests.serve.processes import serving
from tests.store.postgres import Postgres
from tests.store.silent_proxy import silent_proxy
from tests.store.stores import fill_store, make_snapshot, reference_tables
from tests.waits import PATIENCE_S, wait_until

# Only that nothing else gives up a client who takes nothing.
_IMPATIENT = """
import sys
from livemart.cli.commands import cli
from livemart.serve import server
from livemart.serve.live import streams

server._PATIENCE_S = 0.5
streams._SEND_TIMEOUT_S = 3_600
cli(sys.argv[1:], prog_name="livemart")
"""


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGTERM, 143), pytest.param(signal.SIGINT, 130, marks=pytest.mark.extended)],
)
def test_it_ends_at_once_with_clients_connected(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    warehouse = tmp_path / "warehouse"
    fill_store(f"sqlite:///{warehouse}/_livemart/serving.db", reference_tables([]))

    async def watch(process: subprocess.Popen[str], port: int) -> list[tuple[object, bool]]:
        address = ("127.0.0.1", port)
        paths = ["/v1/restaurants/r1/stream", "/v1/models/restaurant_top_dishes/stream"] * 10
        async with asyncio.TaskGroup() as group:
            opened = asyncio.Semaphore(0)

            async def listen(path: str) -> tuple[object, bool]:
                async with open_stream(address, path) as stream:
                    assert await stream.next() is not None
                    opened.release()
                    return await stream.next(), stream.has_ended

            tasks = [group.create_task(listen(path)) for path in paths]
            for _ in paths:
                await opened.acquire()
            process.send_signal(number)
            await asyncio.to_thread(process.wait, PATIENCE_S)
        return [task.result() for task in tasks]

    with serving(warehouse) as (process, port, said):
        last = asyncio.run(watch(process, port))

    assert process.returncode == code
    # Each got an end event: none was cut off when the server's patience ended.
    assert last == [(None, True)] * 20
    assert not [line for line in said if "timeout graceful shutdown exceeded" in line]


def test_it_ends_under_load_and_cuts_no_answer_off(tmp_path: Path) -> None:
    """Reads, and a publication that ends only after the server."""
    warehouse, tables = tmp_path / "warehouse", reference_tables([])
    url = f"sqlite:///{warehouse}/_livemart/serving.db"
    fill_store(url, tables)
    is_over, is_written, may_go_on = threading.Event(), threading.Event(), threading.Event()
    statuses: list[int] = []
    path = "/v1/restaurants/r1/metrics"

    def publish() -> None:
        def step(name: str) -> None:
            if name == "publish.in_transaction":
                is_written.set()
                assert may_go_on.wait(PATIENCE_S)

        fill_store(url, tables, snapshot_id=2, step=step)

    def read(port: int) -> None:
        with httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE_S) as client:
            while not is_over.is_set():
                try:
                    statuses.append(client.get(path).status_code)
                except httpx2.TransportError:
                    # Between two answers of a connection that is closed; none is cut off.
                    return

    with serving(warehouse) as (process, port, said), ThreadPoolExecutor(5) as pool:
        work = [pool.submit(publish), *(pool.submit(read, port) for _ in range(4))]
        try:
            assert is_written.wait(PATIENCE_S)
            wait_until(lambda: len(statuses) > 40)
            process.send_signal(signal.SIGTERM)
            process.wait(PATIENCE_S)
        finally:
            is_over.set()
            may_go_on.set()
        for each in work:
            each.result(PATIENCE_S)

    with closing(StoreReader.open(url)) as reader:
        newest = reader.newest()
    assert process.returncode == 143
    assert set(statuses) == {200}
    assert newest is not None and newest.snapshot_id == 2
    assert not [line for line in said if "request_failed" in line]


def test_it_ends_though_a_client_takes_nothing(tmp_path: Path) -> None:
    warehouse, tables = tmp_path / "warehouse", reference_tables([])
    tables["wide"] = pa.table({"n": range(4_000), "text": ["x" * 2_000] * 4_000})
    fill_store(f"sqlite:///{warehouse}/_livemart/serving.db", tables)

    with (
        serving(warehouse, program=_IMPATIENT) as (process, port, said),
        socket.socket() as stalled,
    ):
        # The kernel buffers only a small part.
        stalled.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        stalled.settimeout(PATIENCE_S)
        stalled.connect(("127.0.0.1", port))
        stalled.sendall(b"GET /v1/models/wide/stream?after=0 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert stalled.recv(1)
        process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE_S)

    assert process.returncode == 143
    # To give up who takes nothing is no fault.
    assert not [line for line in said if "request_failed" in line]


# Nothing but the end of the server gives up a slow client, or a store that says nothing.
_ENDLESS = """
import sys
from livemart.cli.commands import cli
from livemart.serve import server
from livemart.serve.connections import protocol
from livemart.serve.live import streams
from livemart.store import connections, sessions

server._PATIENCE_S = server._LAST_READINGS_S = 0.5
streams._SEND_TIMEOUT_S = sessions.SILENT_S = connections._CONNECT_SECONDS = 3_600
protocol.HEAD_S = protocol.BODY_S = protocol.TAKEN_S = protocol.STALLED_S = 3_600
cli(sys.argv[1:], prog_name="livemart")
"""
_LOGGED = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z (info|warning) [a-z_]+( |$)")
_HOST = b"Host: localhost\r\n"
_POST = b"POST /login HTTP/1.1\r\n" + _HOST + b"Content-Type: application/x-www-form-urlencoded\r\n"
_PULL = b"GET /v1/models/wide?limit=10000 HTTP/1.1\r\n" + _HOST + b"\r\n"
_SLOW_CLIENTS = {
    "silent": b"",
    "half a header": b"GET /healthz HTTP/1.1\r\nHo",
    "half a body": _POST + b"Content-Length: 90\r\n\r\ntoken=x",
    "half a chunk": _POST + b"Transfer-Encoding: chunked\r\n\r\n5\r\ntok",
    "a body that is asked for": _POST + b"Expect: 100-continue\r\nContent-Length: 7\r\n\r\n",
    "an untaken answer": _PULL,
    "untaken answers": _PULL * 3,
    "an untaken stream": b"GET /v1/models/wide/stream?after=0 HTTP/1.1\r\n" + _HOST + b"\r\n",
    "a stream of states": b"GET /v1/restaurants/r1/stream HTTP/1.1\r\n" + _HOST + b"\r\n",
    "a stream of changes": b"GET /v1/models/wide/stream HTTP/1.1\r\n" + _HOST + b"\r\n",
    "an answered request": b"GET /healthz HTTP/1.1\r\n" + _HOST + b"\r\n",
}
_ANSWERED = tuple(name for name in _SLOW_CLIENTS if name.startswith(("a stream", "an ", "unt")))


def test_the_patience_of_an_end_fits_into_that_of_docker() -> None:
    """10 s: what is left is for the end of the process."""
    assert server_module._PATIENCE_S + server_module._LAST_READINGS_S <= 8


# 8 s: a process, and half a second of patience.
@pytest.mark.extended
def test_it_ends_without_a_traceback_beside_slow_clients_of_every_kind(tmp_path: Path) -> None:
    warehouse, tables = tmp_path / "warehouse", reference_tables([])
    tables["wide"] = pa.table({"n": range(4_000), "text": ["x" * 2_000] * 4_000})
    fill_store(f"sqlite:///{warehouse}/_livemart/serving.db", tables)

    with serving(warehouse, program=_ENDLESS) as (process, port, said), ExitStack() as stack:
        for name, request in _SLOW_CLIENTS.items():
            client = stack.enter_context(socket.socket())
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            client.settimeout(PATIENCE_S)
            client.connect(("127.0.0.1", port))
            client.sendall(request)
            if name in _ANSWERED:
                assert client.recv(12) == b"HTTP/1.1 200", name
        process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE_S)

    assert process.returncode == 143
    assert [line for line in said[2:] if not _LOGGED.match(line) or "Traceback" in line] == []
    assert len(said) < 10


# 5 s.
@pytest.mark.extended
def test_it_ends_though_readings_wait_for_a_store_that_says_nothing(
    tmp_path: Path, postgres: Postgres
) -> None:
    """Python would wait for the threads that read: as long as the store says nothing."""
    warehouse = tmp_path / "warehouse"
    warehouse.mkdir()
    direct = postgres.new_store()
    fill_store(direct, reference_tables([]))
    with silent_proxy(postgres) as proxy, ExitStack() as stack:
        flags = ("--store", proxy.url(direct))
        process, port, said = stack.enter_context(serving(warehouse, *flags, program=_ENDLESS))
        path = "/v1/restaurants/r1/metrics"
        assert httpx2.get(f"http://127.0.0.1:{port}{path}", timeout=PATIENCE_S).status_code == 200
        proxy.silence()
        clients = []
        for path in ("/v1/models/restaurant_top_dishes", "/v1/restaurants/r2/metrics", "/r/r1"):
            clients.append(stack.enter_context(socket.create_connection(("127.0.0.1", port))))
            clients[-1].sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE_S)

    assert process.returncode == 143
    assert [line for line in said[2:] if not _LOGGED.match(line) or "Traceback" in line] == []


def test_it_serves_before_there_is_a_store_and_shows_what_another_process_fills(
    tmp_path: Path,
) -> None:
    warehouse = tmp_path / "warehouse"
    with serving(warehouse) as (_, port, said):
        with httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE_S) as client:
            assert client.get("/healthz").status_code == 200
            assert client.get("/readyz").status_code == 503

            fill_store(f"sqlite:///{warehouse}/_livemart/serving.db", reference_tables([]))
            wait_until(lambda: client.get("/readyz").status_code == 200)

            assert client.get("/v1/restaurants/r1/metrics").json()["snapshot_id"] == 1
        wait_until(lambda: len(said) > 1)
    assert "no token exists yet: every user of this machine may see everything" in said[1]


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.com"])
def test_a_network_is_refused_before_there_is_a_token(tmp_path: Path, host: str) -> None:
    flags = ["--warehouse", str(tmp_path), "--host", host, "--port", "0"]

    answer = CliRunner().invoke(cli, ["serve", *flags])

    assert answer.exit_code == 2
    assert answer.stderr.startswith(
        f"TOKENS_NEEDED: host: found {host}, which other machines can reach"
    )
    assert "next: run `livemart token create --admin --name me`" in answer.stderr


def test_a_proxy_is_refused_before_there_is_a_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its requests come from this machine, and it need not say that it passes them on."""
    monkeypatch.setenv("LIVEMART_PUBLIC_URL", "https://sales.example")

    answer = CliRunner().invoke(cli, ["serve", "--warehouse", str(tmp_path), "--port", "0"])

    assert answer.exit_code == 2
    found = "TOKENS_NEEDED: public_url: found https://sales.example, which other machines can reach"
    assert answer.stderr.startswith(found)


def test_with_a_token_a_network_is_served_to_those_who_have_one(tmp_path: Path) -> None:
    warehouse = tmp_path / "warehouse"
    made = CliRunner().invoke(
        cli, ["token", "create", "--name", "me", "--admin", "--warehouse", str(warehouse)]
    )
    settings = make_settings(tmp_path, host="0.0.0.0", port=0)
    fill_store(str(settings.store_url), reference_tables([]))

    with open_server(settings, lambda: None) as greeting:
        port = re.findall(r"\d+", greeting)[-1]
        with httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE_S) as client:
            path = "/v1/restaurants/r1/metrics"
            answers = [client.get(path), client.get(path, headers=bearer(made.stdout.strip()))]

    assert [answer.status_code for answer in answers] == [401, 200]


def test_a_taken_address_is_an_error_before_anything_else(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        flags = ["--warehouse", str(tmp_path), "--port", str(other.getsockname()[1])]

        answer = CliRunner().invoke(cli, ["serve", *flags])

    assert answer.exit_code == 2
    assert answer.stderr.startswith("ADDRESS_TAKEN: host, port: found 127.0.0.1:")


def test_without_a_store_there_is_nothing_to_serve(tmp_path: Path) -> None:
    flags = ["--warehouse", str(tmp_path), "--store", "none", "--port", "0"]

    answer = CliRunner().invoke(cli, ["serve", *flags])

    assert (answer.exit_code, answer.stderr.partition(":")[0]) == (2, "STORE_NOT_SET")


def test_a_server_that_ends_by_itself_is_told_and_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object, **__: object) -> None:
        return

    monkeypatch.setattr(server_module._Server, "serve", fail)
    told = threading.Event()

    with (
        pytest.raises(StateError, match="SERVER_ENDED"),
        open_server(make_settings(tmp_path, port=0), told.set),
    ):
        assert told.wait(PATIENCE_S)


def test_the_block_of_a_server_ends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listeners: list[socket.socket] = []
    bind = server_module._bind

    @contextmanager
    def note_listener(settings: Settings) -> Iterator[socket.socket]:
        with bind(settings) as listener:
            listeners.append(listener)
            yield listener

    monkeypatch.setattr(server_module, "_bind", note_listener)
    with (
        server(tmp_path) as (host, port),
        socket.create_connection((host, port), PATIENCE_S) as client,
    ):
        client.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert client.recv(12) == b"HTTP/1.1 200"
        kept = client.dup()

    # Neither listens any more, nor talks; the port itself may be another's by now.
    assert [listener.fileno() for listener in listeners] == [-1]
    with kept:
        kept.settimeout(PATIENCE_S)
        assert list(iter(lambda: kept.recv(4_096), b""))


@pytest.mark.parametrize("path", ["/v1/restaurants/r1/metrics", "/r/r1"])
def test_a_reading_that_outlasts_the_server_has_its_connection_to_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    """Waiting clients are asked to come back."""
    fill_store(str(make_settings(tmp_path).store_url), reference_tables([]))
    is_reading, may_end, opened = threading.Event(), threading.Event(), list[object]()
    found: list[object] = []
    read_snapshot = StoreReader.snapshot

    def open_reader(url: str) -> StoreReader:
        engine = open_engine(url)
        event.listen(engine, "connect", lambda connection, _: opened.append(connection))
        event.listen(engine, "close", lambda connection, _: opened.remove(connection))
        return StoreReader(engine)

    @contextmanager
    def read_slowly(self: StoreReader) -> Iterator[SnapshotView]:
        with read_snapshot(self) as view:
            is_reading.set()
            assert may_end.wait(PATIENCE_S)
            found.append(view.models().keys())
            yield view

    monkeypatch.setattr(StoreReader, "open", open_reader)
    monkeypatch.setattr(StoreReader, "snapshot", read_slowly)
    monkeypatch.setattr(server_module, "_PATIENCE_S", 0.1)
    with ThreadPoolExecutor(1) as pool:
        try:
            with server(tmp_path) as (host, port):
                asked = pool.submit(httpx2.get, f"http://{host}:{port}{path}", timeout=PATIENCE_S)
                assert is_reading.wait(PATIENCE_S)
            answer = asked.result(PATIENCE_S)
            # A look of the hub may have been under way, too.
            wait_until(lambda: len(opened) == 1)
        finally:
            may_end.set()
        wait_until(lambda: opened == [])

    assert (answer.status_code, answer.json()["code"]) == (503, "SERVER_ENDING")
    assert answer.headers["retry-after"] == "5"
    assert found == [reference_tables([]).keys()]


def test_a_server_may_hold_as_many_files_open_as_it_takes_streams(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = 6_000 if hard == resource.RLIM_INFINITY else min(6_000, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(1_024, hard), hard))
    try:
        with server(tmp_path):
            raised, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    assert raised == most


def test_a_stale_snapshot_is_not_ready_and_still_answers(tmp_path: Path) -> None:
    now = [datetime(2026, 3, 2, 12, tzinfo=UTC)]
    with site(tmp_path, now=lambda: now[0], every="5s") as one:
        fill_store(one.url, reference_tables([]), now=now[0])
        one.until(lambda: one.shows(1))
        assert one.client.get("/readyz").json()["status"] == "ready"

        now[0] += timedelta(seconds=14)
        assert one.client.get("/readyz").json()["status"] == "ready"

        now[0] += timedelta(seconds=1)

        answer = one.client.get("/readyz")
        assert (answer.status_code, answer.json()["code"]) == (503, "STORE_STALE")
        assert answer.json()["detail"] == (
            "the pipeline has been silent for 15s; it should report every 5s"
        )
        assert one.client.get("/v1/restaurants/r1/metrics").status_code == 200


def test_a_clock_that_jumps_back_does_not_make_a_pipeline_that_stopped_ready(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, passed = [datetime(2026, 3, 2, 12, tzinfo=UTC)], [0.0]
    with site(tmp_path, now=lambda: now[0], every="5s") as one:
        fill_store(one.url, reference_tables([]), now=now[0])
        one.until(lambda: one.shows(1))
        monkeypatch.setattr(one.hub, "_clock", lambda: passed[0])

        now[0] -= timedelta(days=1)
        ready = one.client.get("/readyz").json()
        text = one.client.get("/metrics").text
        passed[0] += 15

        assert (ready["status"], ready["staleness_s"]) == ("ready", 0)
        assert "livemart_staleness_seconds 0.0" in text
        assert one.client.get("/readyz").json()["code"] == "STORE_STALE"


def test_intervals_without_orders_are_live_until_the_pipeline_stops(tmp_path: Path) -> None:
    start = datetime(2026, 3, 2, 12, tzinfo=UTC)
    now, tables = [start], reference_tables([])

    def figure(one: Site) -> float:
        (found,) = re.findall(
            r"(?m)^livemart_staleness_seconds (\S+)$", one.client.get("/metrics").text
        )
        return float(found)

    with (
        site(tmp_path, now=lambda: now[0], every="5s") as one,
        closing(Store.open(one.url)) as store,
    ):
        fill_store(one.url, tables, now=start)
        one.until(lambda: one.shows(1))
        path = "/v1/restaurants/r1/metrics"
        first = one.client.get(path)
        answers = []
        for _ in range(10):
            now[0] += timedelta(seconds=5)
            assert confirm(store, make_snapshot(1, tables), now[0])
            one.until(lambda: one.hub.checked_at == now[0])
            answers.append(one.client.get("/readyz"))
        was, again = figure(one), one.client.get(path)

        now[0] += timedelta(seconds=16)

        stopped = one.client.get("/readyz")
        is_late = figure(one)

    assert [answer.status_code for answer in answers] == [200] * 10
    assert (was, is_late) == (0.0, 16.0)
    assert (again.headers["etag"], again.content) == (first.headers["etag"], first.content)
    assert (stopped.status_code, stopped.json()["code"]) == (503, "STORE_STALE")


def test_a_snapshot_that_is_published_again_is_another_answer(tmp_path: Path) -> None:
    """After a repaired store, or another exposure, its id is the same."""
    tables = reference_tables([])
    dishes = {"restaurant_top_dishes": tables.pop("restaurant_top_dishes")}
    with site(tmp_path) as one:
        fill_store(one.url, tables)
        one.until(lambda: one.shows(1))
        before = one.client.get("/v1/models")

        fill_store(one.url, tables | dishes)

        tag = {"If-None-Match": before.headers["etag"]}
        one.until(lambda: one.client.get("/v1/models", headers=tag).status_code == 200)
        after = one.client.get("/v1/models").json()
        assert one.client.get("/v1/models/restaurant_top_dishes").status_code == 200
    assert {model["name"] for model in after["models"]} == tables.keys() | dishes.keys()


def test_measurements_tell_what_the_server_does(tmp_path: Path) -> None:
    with site(tmp_path) as one:
        fill_store(one.url, reference_tables([]))
        one.until(lambda: one.shows(1))
        one.client.get("/v1/restaurants/r1/metrics")
        one.client.get("/v1/restaurants/r9/metrics")
        one.client.get("/v1/x/<script>")

        text = one.client.get("/metrics").text

    route = 'route="/v1/restaurants/{restaurant_id}/metrics"'
    assert f'livemart_requests_total{{{route},status="200"}} 1.0' in text
    assert f'livemart_requests_total{{{route},status="404"}} 1.0' in text
    assert 'livemart_requests_total{route="none",status="404"} 1.0' in text
    assert "livemart_snapshot_id 1.0" in text
    assert "livemart_store_up 1.0" in text
    assert "livemart_staleness_seconds" in text


def test_settings_are_checked_before_the_store_is_asked(tmp_path: Path) -> None:
    settings = make_settings(tmp_path, store="none")

    with pytest.raises(ConfigError, match="STORE_NOT_SET"), open_server(settings, lambda: None):
        pass
