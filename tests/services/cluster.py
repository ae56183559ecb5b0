"""A standalone cluster of Spark on this machine: a master and two workers, each a process."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyspark

from tests.waits import PATIENCE_S, wait_until

# A worker has memory for one executor of this size.
EXECUTOR = "512m"
_HOME = Path(pyspark.__file__).parent
_URL = re.compile(r"Starting Spark master at (spark://\S+)")


@dataclass(frozen=True, slots=True)
class Cluster:
    """The cluster's address, and the processes of its workers."""

    url: str
    workers: tuple[int, ...]

    def executors(self) -> list[int]:
        """Return the processes of the executors that live."""
        return [child for worker in self.workers for child in _children(worker)]

    def kill_an_executor(self) -> None:
        """Kill one, as a machine does that has no memory left; the worker starts another."""
        os.kill(self.executors()[0], signal.SIGKILL)


@contextmanager
def standalone_cluster(folder: Path, *wrapper: str) -> Iterator[Cluster]:
    """Start a cluster whose logs and scratch files are in `folder`; stop it at the end.

    Args:
        folder: exists.
        wrapper: a command that runs each worker.
    """
    with ExitStack() as stack:
        master = _daemon(stack, folder, "master", (), "master.Master", "--port", "0")
        url = _found(master, _URL)
        workers = []
        for number in range(2):
            scratch = folder / f"worker-{number}"
            resources = ("--cores", "1", "--memory", EXECUTOR, "--work-dir", str(scratch))
            log = _daemon(stack, folder, scratch.name, wrapper, "worker.Worker", *resources, url)
            _found(log, re.compile("Successfully (registered) with master"))
            workers.append(log[0].pid)
        yield Cluster(url, tuple(workers))


def _daemon(
    stack: ExitStack, folder: Path, name: str, wrapper: tuple[str, ...], *words: str
) -> tuple[subprocess.Popen[bytes], Path]:
    kind, *options = words
    script = (str(_HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{kind}")
    log = folder / f"{name}.log"
    environ = {
        **os.environ,
        "SPARK_HOME": str(_HOME),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "128m",
    }
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*wrapper, *script, "--host", "127.0.0.1", "--webui-port", "0", *options],
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    stack.callback(process.wait, PATIENCE_S)
    stack.callback(process.terminate)
    return process, log


def _found(daemon: tuple[subprocess.Popen[bytes], Path], pattern: re.Pattern[str]) -> str:
    process, log = daemon

    def is_there() -> bool:
        assert process.poll() is None, log.read_text()
        return pattern.search(log.read_text()) is not None

    wait_until(is_there)
    match = pattern.search(log.read_text())
    assert match is not None
    return match[1]


def _children(parent: int) -> list[int]:
    listed = Path(f"/proc/{parent}/task").glob("*/children")
    return [int(word) for path in listed for word in path.read_text().split()]
