"""A NATS server of the tests' own, with JetStream: one process in a temporary folder."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import nats
from nats.js import JetStreamContext

from tests.project_run import ROOT
from tests.services.maven import NotInstalledError
from tests.waits import PATIENCE_S, wait_until

_T = TypeVar("_T")

_VERSION = "v2.15.2"
_PACKAGE = f"github.com/nats-io/nats-server/v2@{_VERSION}"
_HOW = "apt-get install nats-server, or install Go"


class Nats:
    """A server that a test may kill and start again; it keeps its address and what it holds.

    Attributes:
        address: `nats://host:port`.
        admin: arguments of a connection that may do everything.
    """

    def __init__(self, folder: Path, settings: str = "", **admin: Any) -> None:
        self.address = ""
        self.admin = admin
        self._program = nats_server()
        self._folder = folder
        self._settings = settings
        self._port = -1
        self._server: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, the first time at a port that is free, and wait until it takes requests."""
        (self._folder / "server.conf").write_text(
            f"host: 127.0.0.1\nport: {self._port}\n"
            f"jetstream {{store_dir: {self._folder / 'data'}}}\n{self._settings}\n"
        )
        path = self._folder / "server.log"
        with path.open("wb") as log:
            command = [str(self._program), "--config", str(self._folder / "server.conf")]
            server = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self._server = server
        wait_until(lambda: "Server is ready" in path.read_text() or server.poll() is not None)
        (address,) = re.findall(r"client connections on (\S+)", path.read_text()) or [""]
        assert address, f"nats-server did not start:\n{path.read_text()}"
        self.address = f"nats://{address}"
        self._port = int(address.rpartition(":")[2])

    @property
    def version(self) -> tuple[int, ...]:
        """Its version, as numbers."""
        said = subprocess.run([self._program, "--version"], check=True, capture_output=True)
        return tuple(map(int, re.findall(r"\d+", said.stdout.decode())[:3]))

    def kill(self) -> None:
        """End it as a crash would."""
        if self._server is not None:
            self._server.send_signal(signal.SIGKILL)
            self._server.wait(timeout=PATIENCE_S)
            self._server = None

    def do(self, what: Callable[[JetStreamContext], Awaitable[_T]]) -> _T:
        """Return what is done by a connection that may do everything."""

        async def run() -> _T:
            client = await nats.connect(self.address, **self.admin)
            try:
                return await what(client.jetstream())
            finally:
                await client.close()

        return asyncio.run(run())

    def make_stream(self, name: str, **settings: Any) -> None:
        """Make a stream of the subjects `<name>.>`."""
        self.do(lambda stream: stream.add_stream(name=name, subjects=[f"{name}.>"], **settings))

    def publish(self, subject: str, contents: Sequence[str], **headers: str) -> None:
        """Publish messages in order, each with the headers."""

        async def run(stream: JetStreamContext) -> None:
            for content in contents:
                await stream.publish(subject, content.encode(), headers=headers or None)

        self.do(run)


def nats_server() -> Path:
    """Return the program: of the system, or built by Go once.

    Raises:
        NotInstalledError: it cannot be had.
    """
    if found := shutil.which("nats-server"):
        return Path(found)
    folder = ROOT / ".cache" / "services" / f"nats-server-{_VERSION}"
    if not (folder / "nats-server").exists():
        go = shutil.which("go")
        if go is None:
            raise NotInstalledError(f"nats-server is not installed ({_HOW})")
        sys.stderr.write("setup: building nats-server for the tests (once, a minute)\n")
        environment = os.environ | {"GOBIN": str(folder)}
        run = subprocess.run(
            [go, "install", _PACKAGE], env=environment, capture_output=True, text=True
        )
        if run.returncode:
            last = (run.stderr.strip() or "no output").splitlines()[-1]
            raise NotInstalledError(f"nats-server: go: {last} ({_HOW})")
    return folder / "nats-server"


@contextmanager
def running_nats(folder: Path, settings: str = "", **admin: Any) -> Iterator[Nats]:
    """Start a server, yield it, and end it.

    Raises:
        NotInstalledError: it cannot be had.
    """
    server = Nats(folder, settings, **admin)
    try:
        server.start()
        yield server
    finally:
        server.kill()
