"""A Kafka broker of the tests' own: one process in a temporary folder, without a ZooKeeper."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from uuid import uuid4

from tests.ports import silent_port
from tests.services.java_server import MEMORY, JavaServer
from tests.services.maven import jars_of
from tests.waits import PATIENCE_S

_STARTED = "Kafka Server started"


class Kafka(JavaServer):
    """A broker that keeps its address.

    Args:
        folder: where it keeps everything.
        settings: of the broker, beside its own.
        memory: of its JVM.
        joins: another broker, whose cluster it joins as the second; the other keeps what the
            cluster knows of itself, and must live.

    Attributes:
        address: `host:port` for clients.
    """

    def __init__(
        self,
        folder: Path,
        settings: Mapping[str, str] | None = None,
        memory: str = MEMORY,
        joins: Kafka | None = None,
    ) -> None:
        # Says when the server takes requests.
        super().__init__(folder, jars_of("kafka"), "kafka.server.KafkaRaftServer", memory)
        self.address = ""
        self._settings = dict(settings or {})
        self._joins = joins
        self._cluster: str = joins._cluster if joins else uuid4().hex[:22]
        self._controller = ""

    def prepare(self) -> None:
        """Make its storage."""
        with ExitStack() as stack:
            port, controller_port = (stack.enter_context(silent_port()) for _ in range(2))
        self.address = f"127.0.0.1:{port}"
        self._controller = f"127.0.0.1:{controller_port}"
        self._write_settings()
        how = ["--no-initial-controllers" if self._joins else "--standalone", "--ignore-formatted"]
        which = ["-t", self._cluster, "-c", str(self.folder / "server.properties")]
        run = self.run_java("kafka.tools.StorageTool", "format", *how, *which)
        assert run.wait(timeout=PATIENCE_S) == 0, self.log()

    def command(self) -> Sequence[str]:
        """Return the main class and its arguments."""
        return "kafka.Kafka", str(self.folder / "server.properties")

    def answers(self) -> bool:
        """Return whether it takes requests."""
        return _STARTED in self.log()

    def _write_settings(self) -> None:
        listeners, roles, controller = f"PLAINTEXT://{self.address}", "broker", self._controller
        if self._joins is None:
            listeners += f",CONTROLLER://{controller}"
            roles += ",controller"
        else:
            controller = self._joins._controller
        settings = {
            "node.id": "2" if self._joins else "1",
            "process.roles": roles,
            "listeners": listeners,
            "advertised.listeners": listeners,
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.bootstrap.servers": controller,
            "log.dirs": str(self.folder / "data"),
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
        (self.folder / "server.properties").write_text(text)


@contextmanager
def running_kafka(
    folder: Path,
    settings: Mapping[str, str] | None = None,
    memory: str = MEMORY,
    joins: Kafka | None = None,
) -> Iterator[Kafka]:
    """Start a broker, yield it, and end it.

    Raises:
        NotInstalledError: its jars cannot be had.
    """
    broker = Kafka(folder, settings, memory, joins)
    try:
        broker.create()
        yield broker
    finally:
        broker.kill()
