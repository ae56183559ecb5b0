"""A server in Java that a test starts, kills, stops and starts again: one process in a folder."""

from __future__ import annotations

import signal
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path

from livemart.spark.java import require_java
from tests.waits import PATIENCE_S, wait_until

# It lives for minutes and, in tests, holds little.
MEMORY = "256m"
_OPTIONS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")
_ATTEMPTS = 5


class JavaServer(ABC):
    """A server; its address is its own.

    Args:
        folder: where it keeps everything, `server.log` too.
        jars: the folder with its jars.
        logged: the class whose messages are logged in addition to warnings.
        memory: of its JVM.
    """

    def __init__(self, folder: Path, jars: Path, logged: str, memory: str = MEMORY) -> None:
        self.jars = jars
        self.folder = folder
        self._logged = logged
        self._memory = memory
        self._process: subprocess.Popen[bytes] | None = None

    @abstractmethod
    def prepare(self) -> None:
        """Choose ports without a listener, and write the settings."""

    @abstractmethod
    def command(self) -> Sequence[str]:
        """Return the main class and its arguments."""

    @abstractmethod
    def answers(self) -> bool:
        """Return whether it takes requests."""

    def create(self) -> None:
        """Start it for the first time."""
        (self.folder / "log4j2.properties").write_text(
            "rootLogger.level=warn\nrootLogger.appenderRef.out.ref=out\n"
            "appender.out.type=Console\nappender.out.name=out\n"
            "appender.out.layout.type=PatternLayout\n"
            "appender.out.layout.pattern=%d %p %c{1}: %m%n\n"
            f"logger.server.name={self._logged}\nlogger.server.level=info\n"
        )
        for attempt in range(_ATTEMPTS):
            self.prepare()
            if self._is_started():
                return
            # Somebody else took a port in between.
            if "Address already in use" not in self.log() or attempt == _ATTEMPTS - 1:
                raise AssertionError(f"{self.folder.name} did not start:\n{self.log()}")

    def start(self) -> None:
        """Start it again where it was, and wait until it takes requests."""
        assert self._is_started(), f"{self.folder.name} did not start:\n{self.log()}"

    def stop(self) -> None:
        """Stop it in order."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End it as a crash would."""
        self._end(signal.SIGKILL)

    def log(self) -> str:
        """Return what it has said since it was started."""
        return (self.folder / "server.log").read_text(errors="replace")

    def run_java(self, main: str, *arguments: str) -> subprocess.Popen[bytes]:
        """Start a program of its jars, which writes to its log."""
        log4j = f"-Dlog4j2.configurationFile={self.folder / 'log4j2.properties'}"
        jvm = [str(require_java()), f"-Xmx{self._memory}", *_OPTIONS, log4j]
        with (self.folder / "server.log").open("ab") as log:
            # Ctrl-C is for the process that started it, and needs it until its own end.
            return subprocess.Popen(
                [*jvm, "-cp", f"{self.jars}/*", main, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _is_started(self) -> bool:
        (self.folder / "server.log").write_bytes(b"")
        process = self._process = self.run_java(*self.command())
        wait_until(lambda: process.poll() is not None or self.answers())
        return process.poll() is None

    def _end(self, number: int) -> None:
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait(timeout=PATIENCE_S)
            self._process = None
