"""A Kafka broker of the tests' own: one process in a temporary folder, without a ZooKeeper."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from uuid import uuid4

from livemart.spark.java import require_java
from tests.ports import silent_port
from tests.services.maven import jars_of
from tests.waits import PATIENCE_S, wait_until

# It lives for minutes and, in tests, holds little.
MEMORY = "256m"
JVM_OPTIONS = (f"-Xmx{MEMORY}", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")
_STARTED = "Kafka Server started"
_ATTEMPTS = 5


class Kafka:
    """A broker that a test may kill, stop and start again; it keeps its address.

    Args:
        folder: where it keeps everything.
        settings: of the broker, beside its own.
        memory: of its JVM.

    Attributes:
        address: `host:port` for clients.
        jars: the folder with Kafka's jars.
    """

    def __init__(
        self, folder: Path, settings: Mapping[str, str] | None = None, memory: str = MEMORY
    ) -> None:
        self.jars = jars_of("kafka")
        self.address = ""
        self._folder = folder
        self._settings = dict(settings or {})
        self._memory = memory
        self._server: subprocess.Popen[bytes] | None = None

    def create(self) -> None:
        """Make its storage and start it, at ports at which nobody listens."""
        for attempt in range(_ATTEMPTS):
            with ExitStack() as stack:
                port, controller_port = (stack.enter_context(silent_port()) for _ in range(2))
            self.address = f"127.0.0.1:{port}"
            self._write_settings(port, controller_port)
            self._format()
            if self._is_started():
                return
            # Somebody else took a port in between.
            if "Address already in use" not in self._log() or attempt == _ATTEMPTS - 1:
                raise AssertionError(f"Kafka did not start:\n{self._log()}")

    def start(self) -> None:
        """Start it again where it was, and wait until it takes requests."""
        assert self._is_started(), f"Kafka did not start:\n{self._log()}"

    def stop(self) -> None:
        """Stop it in order."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End it as a crash would."""
        self._end(signal.SIGKILL)

    def _is_started(self) -> bool:
        log = self._folder / "server.log"
        log.write_bytes(b"")
        self._server = self._run_java("kafka.Kafka", [str(self._folder / "server.properties")])
        server = self._server
        wait_until(lambda: _STARTED in self._log() or server.poll() is not None)
        return server.poll() is None

    def _end(self, number: int) -> None:
        if self._server is not None:
            self._server.send_signal(number)
            self._server.wait(timeout=PATIENCE_S)
            self._server = None

    def _format(self) -> None:
        name = ["-t", uuid4().hex[:22], "--standalone", "--ignore-formatted"]
        properties = ["-c", str(self._folder / "server.properties")]
        run = self._run_java("kafka.tools.StorageTool", ["format", *name, *properties])
        assert run.wait(timeout=PATIENCE_S) == 0, self._log()

    def _run_java(self, main: str, arguments: Sequence[str]) -> subprocess.Popen[bytes]:
        log4j = f"-Dlog4j2.configurationFile={self._folder / 'log4j2.properties'}"
        command = [
            str(require_java()),
            *JVM_OPTIONS,
            f"-Xmx{self._memory}",
            log4j,
            "-cp",
            f"{self.jars}/*",
            main,
            *arguments,
        ]
        with (self._folder / "server.log").open("ab") as log:
            # Ctrl-C is for whoever started it, and needs it until its own end.
            return subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )

    def _log(self) -> str:
        return (self._folder / "server.log").read_text(errors="replace")

    def _write_settings(self, port: int, controller_port: int) -> None:
        listeners = f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}"
        settings = {
            "node.id": "1",
            "process.roles": "broker,controller",
            "listeners": listeners,
            "advertised.listeners": listeners,
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.bootstrap.servers": f"127.0.0.1:{controller_port}",
            "log.dirs": str(self._folder / "data"),
            "offsets.topic.num.partitions": "1",
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.num.partitions": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "share.coordinator.state.topic.num.partitions": "1",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
            "auto.create.topics.enable": "false",
            # A broker that was killed is taken for running until then.
            "broker.session.timeout.ms": "2000",
            "broker.heartbeat.interval.ms": "500",
            # Half of the heap by default.
            "log.cleaner.dedupe.buffer.size": "2000000",
            **self._settings,
        }
        text = "".join(f"{name}={value}\n" for name, value in settings.items())
        (self._folder / "server.properties").write_text(text)
        # Says when the server takes requests.
        write_log_settings(self._folder, "kafka.server.KafkaRaftServer")


def write_log_settings(folder: Path, told: str) -> None:
    """Write `log4j2.properties`: warnings of all, and what one class tells of its work."""
    (folder / "log4j2.properties").write_text(
        "rootLogger.level=warn\nrootLogger.appenderRef.out.ref=out\n"
        "appender.out.type=Console\nappender.out.name=out\n"
        "appender.out.layout.type=PatternLayout\n"
        "appender.out.layout.pattern=%d %p %c{1}: %m%n\n"
        f"logger.server.name={told}\nlogger.server.level=info\n"
    )


@contextmanager
def running_kafka(
    folder: Path, settings: Mapping[str, str] | None = None, memory: str = MEMORY
) -> Iterator[Kafka]:
    """Start a broker, yield it, and end it.

    Raises:
        NotInstalledError: its jars cannot be had.
    """
    broker = Kafka(folder, settings, memory)
    try:
        broker.create()
        yield broker
    finally:
        broker.kill()
