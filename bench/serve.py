"""`make bench-serve`: what a reader of the page waits for.

A server in a separate process, on one core: dashboard reads at a steady rate while snapshots are
published. Then the same reads beside silent connections and a greedy token, which asks again at
once on many connections. It asks first for as many rows as an answer may have, then for an answer
that the server has in memory. Then the time from a commit in the store to the last of many push
clients. Then a small pull and a copy of all rows of a model, beside plain SQL on the same rows in
PostgreSQL. With `--pipeline` (needs Java) also the time from a file in the landing folder to a push
client of `up`. JSON lines on standard output, progress on standard error.

A read is timed from the instant it was due: a slow answer is not hidden by those behind it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import resource
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from bench.pulls import measure_peer, measure_pulls
from bench.refresh import report, working_folder
from bench.serving_store import restaurant_id
from livemart.serve.auth.tokens import TokenStore

ROOT = Path(__file__).resolve().parents[1]
_CONNECTIONS = 64
_KINDS = ("metrics", "top-dishes", "trend")
# A page's requests: the tiles and dishes with each button, the trend now and then.
_WEIGHTS = (45, 45, 10)
_WINDOWS = ("1h", "24h", "168h")
# By name of the figures, what the greedy caller asks for.
_GREEDY_PATHS = {
    "beside_others": "/v1/models/restaurant_sales_trend?limit=10000",
    "beside_quick": f"/v1/restaurants/{restaurant_id(0)}/metrics?window=24h",
}
# How nice the clients beside are: timed reads come first where both want the same processor.
NICE = 10
# The benchmark itself opens these beside connections.
_FEW_FILES = 100

Address = tuple[str, int]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print the figures."""
    parser = argparse.ArgumentParser(prog="python -m bench.serve", description=__doc__)
    parser.add_argument("--restaurants", type=int, default=200)
    parser.add_argument("--rate", type=int, default=200, help="reads a second")
    parser.add_argument("--seconds", type=int, default=60, help="how long reads are counted")
    parser.add_argument("--warm-up", type=int, default=10, help="seconds before they count")
    parser.add_argument("--every", type=float, default=30, help="seconds between two snapshots")
    parser.add_argument("--idle", type=int, default=6_000, help="silent connections beside reads")
    parser.add_argument("--greedy", type=int, default=50, help="connections of the greedy caller")
    parser.add_argument("--clients", type=int, default=2_000, help="push clients")
    parser.add_argument("--snapshots", type=int, default=10, help="that push clients wait for")
    parser.add_argument("--pipeline", action="store_true", help="from a file to the page, too")
    parser.add_argument("--files", type=int, default=40, help="that --pipeline waits for")
    parser.add_argument("--folder", type=Path, help="where to work (1 GB); made and removed")
    given = parser.parse_args(arguments)
    require_files(max(given.idle, given.clients) + _CONNECTIONS + _FEW_FILES)
    with working_folder(given.folder) as folder:
        warehouse = folder / "warehouse"
        url = f"sqlite:///{warehouse}/_livemart/serving.db"
        run_publisher(url, given.restaurants, 1)
        given.token, given.greedy_token = make_tokens(url)
        say("filled the store")
        with serving(warehouse) as (address, used_s):
            count = round((given.seconds + given.warm_up) / given.every) + 1
            with publishing(url, given.restaurants, count, given.every):
                took = asyncio.run(read_steadily(address, given))
            say(f"{len(took)} reads")
            # The whole of it, with warming up and with the answers computed again at each snapshot.
            report(
                "read_server_cpu_ms",
                used_s() / (given.rate * (given.seconds + given.warm_up)) * 1_000,
            )
            report("read_p50_ms", percentile(took, 0.5) * 1_000)
            report("read_p99_ms", percentile(took, 0.99) * 1_000)
            report("read_slowest_ms", max(took) * 1_000)
        for name, path in _GREEDY_PATHS.items():
            greedy = (given.greedy_token, path, str(given.greedy))
            with (
                serving(warehouse) as (address, _),
                beside("bench.silent", address, str(given.idle)) as end_silent,
                beside("bench.greedy", address, *greedy) as end_greedy,
            ):
                slower = asyncio.run(read_steadily(address, given))
                answers, idle = end_greedy(), end_silent()
            say(f"{len(slower)} reads beside silent connections {idle} and {answers}")
            report(f"read_{name}_p99_ms", percentile(slower, 0.99) * 1_000)
            ratio = percentile(slower, 0.95) / percentile(took, 0.95)
            report(f"read_{name}_over_alone_p95", ratio)
            report(f"{name}_greedy_answers", answers.get("200", 0))
            for measure in ("most", "mean"):
                report(f"{name}_idle_connections_{measure}", idle[measure])
        with serving(warehouse) as (address, used_s):
            last, half, cpu = asyncio.run(push_to_all(address, url, given, used_s))
            report(f"push_{given.clients}_clients_s", median(last))
            report(f"push_{given.clients}_clients_slowest_s", max(last))
            report(f"push_{given.clients}_half_of_them_s", median(half))
            report(f"push_{given.clients}_server_cpu_s", median(cpu))
        with serving(warehouse) as (address, _):
            own = measure_pulls(address, given.token, given.restaurants)
        say("pulled rows")
        peer = measure_peer(given.restaurants)
        for name, value in own.items():
            report(name, value)
            if peer is not None:
                report(f"postgres_{name}", peer[name])
                report(f"{name}_over_postgres", value / peer[name])
        if given.pipeline:
            from bench.freshness import measure_freshness

            delays = measure_freshness(folder / "live", given.files, say)
            report("file_to_page_p50_s", percentile(delays, 0.5))
            report("file_to_page_p95_s", percentile(delays, 0.95))
            report("file_to_page_slowest_s", max(delays))
    return 0


async def read_steadily(address: Address, given: argparse.Namespace) -> list[float]:
    """Return the seconds of each read that counts, from the instant it was due."""
    chance = random.Random(20260301)
    idle: asyncio.Queue[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = asyncio.Queue()
    for _ in range(_CONNECTIONS):
        idle.put_nowait(await asyncio.open_connection(*address))
    took: list[float] = []

    async def read(path: str, due: float, counts: bool) -> None:
        reader, writer = await idle.get()
        request = request_of(address, path, given.token)
        try:
            writer.write(request)
            status, _ = await read_answer(reader)
        except (OSError, asyncio.IncompleteReadError):
            # It had been silent, and made room for another one.
            reader, writer = await asyncio.open_connection(*address)
            writer.write(request)
            status, _ = await read_answer(reader)
        if status != 200:
            raise RuntimeError(f"{path}: {status}")
        if counts:
            took.append(time.perf_counter() - due)
        idle.put_nowait((reader, writer))

    start = time.perf_counter() + 0.1
    async with asyncio.TaskGroup() as group:
        for number in range(given.rate * (given.warm_up + given.seconds)):
            due = start + number / given.rate
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            kind = chance.choices(_KINDS, _WEIGHTS)[0]
            restaurant = restaurant_id(chance.randrange(given.restaurants))
            path = f"/v1/restaurants/{restaurant}/{kind}?window={chance.choice(_WINDOWS)}"
            group.create_task(read(path, due, number >= given.rate * given.warm_up))
    while not idle.empty():
        idle.get_nowait()[1].close()
    return took


@contextmanager
def beside(module: str, address: Address, *arguments: str) -> Iterator[Callable[[], Any]]:
    """Run a client in a separate process; yield a function that ends it and returns its figures.

    The block begins with the client's first line: a busy machine starts it late.
    """
    command = [sys.executable, "-m", module, address[0], str(address[1]), *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert process.stdout is not None

    def end() -> Any:
        process.terminate()
        return json.loads(process.communicate(timeout=60)[0])

    try:
        if not process.stdout.readline():
            raise RuntimeError(f"{module} ended with {process.wait(30)} before it was connected")
        yield end
    finally:
        process.kill()
        process.wait(30)


@asynccontextmanager
async def cancelled(coroutines: Sequence[Coroutine[None, None, None]]) -> AsyncIterator[None]:
    """Run coroutines beside the block, and cancel them behind it."""
    tasks = [asyncio.create_task(each) for each in coroutines]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def require_files(count: int) -> None:
    """Let this process open so many files, or refuse: fewer clients would be measured as more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < count:
        if hard != resource.RLIM_INFINITY and hard < count:
            raise SystemExit(
                f"open files: found at most {hard:,}, and {count:,} are needed\n"
                "  next: raise the hard limit (`ulimit -Hn`), or lower --idle and --clients"
            )
        resource.setrlimit(resource.RLIMIT_NOFILE, (count, hard))


def request_of(address: Address, path: str, token: str) -> bytes:
    """Return the bytes that ask for a path."""
    lines = [f"GET {path} HTTP/1.1", f"Host: {address[0]}", f"Authorization: Bearer {token}"]
    return "\r\n".join([*lines, "", ""]).encode()


def make_tokens(url: str) -> tuple[str, str]:
    """Return two tokens that may read everything: the dashboard's and the greedy one."""
    with closing(TokenStore(url)) as tokens:
        one, other = (tokens.create(name, is_admin=True)[0] for name in ("dashboard", "greedy"))
    return one, other


async def read_answer(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """Return status and body of an answer whose head says how long it is."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = head.lower().split(b"content-length: ")[1].split(b"\r\n")[0]
    return int(head[9:12]), await reader.readexactly(int(length))


async def push_to_all(
    address: Address, url: str, given: argparse.Namespace, used_s: Callable[[], float]
) -> tuple[list[float], list[float], list[float]]:
    """Return, by snapshot, seconds from its commit to the last client and to half, and of CPU."""
    arrivals: dict[int, list[float]] = {}
    connected = 0

    async def listen(number: int) -> None:
        nonlocal connected
        restaurant = restaurant_id(number % given.restaurants)
        window = _WINDOWS[number % len(_WINDOWS)]
        reader, writer = await asyncio.open_connection(*address)
        path = f"/v1/restaurants/{restaurant}/stream?window={window}"
        writer.write(request_of(address, path, given.token))
        try:
            while line := await reader.readline():
                if line.startswith(b"id: "):
                    arrivals.setdefault(int(line[4:].rpartition(b"-")[2]), []).append(
                        time.monotonic()
                    )
                elif line.startswith(b"data: "):
                    connected += 1
        finally:
            writer.close()

    clients = []
    for number in range(given.clients):
        clients.append(asyncio.create_task(listen(number)))
        await asyncio.sleep(0.002)
    while connected < given.clients:
        await asyncio.sleep(0.1)
    say(f"{given.clients} push clients are connected")
    last, half, cpu = [], [], []
    for _ in range(given.snapshots):
        before = used_s()
        committed = await asyncio.to_thread(run_publisher, url, given.restaurants, 1)
        ((number, at),) = committed.items()
        while len(arrivals.get(number, ())) < given.clients:
            await asyncio.sleep(0.01)
        last.append(max(arrivals[number]) - at)
        half.append(median(arrivals[number]) - at)
        cpu.append(used_s() - before)
        say(f"snapshot {number}: {last[-1]:.3f} s to the last client, {cpu[-1]:.2f} s of CPU")
        await asyncio.sleep(1)
    for client in clients:
        client.cancel()
    await asyncio.gather(*clients, return_exceptions=True)
    return last, half, cpu


@contextmanager
def serving(warehouse: Path) -> Iterator[tuple[Address, Callable[[], float]]]:
    """Run `livemart serve` on one core; yield its address, and what tells its seconds of CPU."""
    command = [sys.executable, str(ROOT / "runner.py"), "serve", "--warehouse", str(warehouse)]
    process = subprocess.Popen([*command, "--port", "0"], stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(process.pid, cores[:1])
        greeting = process.stderr.readline()
        address = "127.0.0.1", int(greeting.strip().rstrip("/").rpartition(":")[2])
        began = cpu_seconds(process.pid)
        yield address, lambda: cpu_seconds(process.pid) - began
    finally:
        process.terminate()
        process.wait(30)
        process.stderr.close()


@contextmanager
def publishing(url: str, restaurants: int, count: int, every_s: float) -> Iterator[None]:
    """Publish in the background, and wait for the end."""
    process = subprocess.Popen(
        _publisher(url, restaurants, count, every_s), stdout=subprocess.DEVNULL, cwd=ROOT
    )
    try:
        yield
    finally:
        process.terminate()
        process.wait(30)


def run_publisher(url: str, restaurants: int, count: int) -> dict[int, float]:
    """Publish; return the instant of each commit by snapshot."""
    done = subprocess.run(
        _publisher(url, restaurants, count, 0), stdout=subprocess.PIPE, check=True, cwd=ROOT
    )
    found = [json.loads(line) for line in done.stdout.splitlines()]
    return {each["snapshot_id"]: each["committed_s"] for each in found}


def cpu_seconds(pid: int) -> float:
    """Return the seconds of CPU that a process has used: what a busy machine does not change."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value that `share` of all values do not exceed: the nearest rank.

    >>> percentile([3.0, 1.0, 2.0, 4.0], 0.5)
    2.0
    """
    ranked = sorted(values)
    return ranked[max(0, -(-len(ranked) * round(share * 1_000) // 1_000) - 1)]


def say(text: str) -> None:
    """Tell the progress, and how busy the machine is: figures of a busy one say little."""
    load = ", ".join(f"{each:.1f}" for each in os.getloadavg())
    print(f"{text} (load {load})", file=sys.stderr, flush=True)


def _publisher(url: str, restaurants: int, count: int, every_s: float) -> list[str]:
    arguments = [url, str(restaurants), str(count), str(every_s)]
    return [sys.executable, "-m", "bench.serving_store", *arguments]


if __name__ == "__main__":
    sys.exit(main())
