"""Reads large answers in processes beside the server: all threads of one share an interpreter.

Used by `Readings`. A side process is started when it is first needed, and gives way to the server
where both want the same processor. It ends with the server, however that ends, and when nothing was
asked for a while.
"""

from __future__ import annotations

import os
import pickle
import socket
import subprocess
import sys
import traceback
from collections.abc import Callable
from contextlib import closing, suppress
from multiprocessing.connection import Connection
from queue import LifoQueue
from typing import Any

import structlog

from livemart.serve.live.fair_threads import FairThreads
from livemart.serve.live.shelf import Answer
from livemart.store.reader import StoreReader

# A caller has one large answer at a time, and one page of changes, which is soon read.
MOST_PROCESSES = 2
_NICE = 5
_IDLE_S = 300.0
# An answer takes some seconds, and a statement of a reader is canceled after 30. One that takes
# longer hangs, as a process does that is stopped, or whose disk does not answer.
_HANGS_AFTER_S = 180.0


class SideProcessError(Exception):
    """Two side processes in a row ended over one reading, or there shall be none any more."""


class SideProcesses:
    """The side processes of a server.

    `threads` are as many as there may be processes: each of them waits for one.

    Args:
        url: of the store.
    """

    def __init__(self, url: str) -> None:
        self.threads = FairThreads(MOST_PROCESSES, "side")
        self._url = url
        self._is_closed = False
        # The one that was used last is used first: as long as one is enough, there is one.
        self._free: LifoQueue[_SideProcess] = LifoQueue()
        self._all = tuple(_SideProcess() for _ in range(MOST_PROCESSES))
        for process in self._all:
            self._free.put(process)

    def read(self, function: Callable[..., Any], *arguments: Any) -> Answer[Any]:
        """Return `function(view, *arguments)` of the newest snapshot; for one of `threads`.

        Args:
            function: of a module. It, what it is given and what it returns are pickled.
            arguments: behind the view.

        Raises:
            SideProcessError: the reading ends the process that does it.
            Whatever the reading raises.
        """
        process = self._free.get()
        try:
            for _ in range(2):
                if self._is_closed:
                    break
                try:
                    reply = process.ask(self._url, (function, arguments))
                except (EOFError, OSError):
                    code = process.forget()
                    if code and not self._is_closed:
                        structlog.get_logger().warning("side_process_ended", exit_code=code)
                    continue
                if isinstance(reply, Answer):
                    return reply
                error, where = reply
                error.add_note(where)
                raise error
            raise SideProcessError(f"{function.__name__}: no side process answers")
        finally:
            self._free.put(process)

    def close(self) -> None:
        """End the processes, whatever they read."""
        self._is_closed = True
        for process in self._all:
            process.kill()
        self.threads.close()


class _SideProcess:
    """A place for one process, which may have ended, or never begun."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Connection | None = None

    def ask(self, url: str, question: object) -> Answer[Any] | tuple[Exception, str]:
        if self._connection is None:
            self._connection = self._start()
            self._connection.send(url)
        self._connection.send(question)
        if not self._connection.poll(_HANGS_AFTER_S):
            self.kill()
            raise EOFError
        reply: Answer[Any] | tuple[Exception, str] = self._connection.recv()
        return reply

    def _start(self) -> Connection:
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", __name__],
                stdin=theirs.fileno(),
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                # Ctrl-C reaches every process of a terminal; this one ends with its socket.
                start_new_session=True,
            )
        return Connection(ours.detach())

    def forget(self) -> int:
        """Let go of a process that has closed its end of the socket; return its exit code."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        return 0 if self._process is None else self._process.wait()

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()


def answer_server() -> None:
    """Answer the server at the other end of the standard input, until it is gone or silent."""
    os.nice(_NICE)
    with (
        Connection(sys.stdin.fileno()) as server,
        suppress(EOFError, OSError),
        closing(StoreReader.open(server.recv())) as reader,
    ):
        while server.poll(_IDLE_S):
            server.send_bytes(_answer(reader, *server.recv()))


def _answer(reader: StoreReader, function: Callable[..., Any], arguments: tuple[Any, ...]) -> bytes:
    """Return, pickled, the answer, or the error and its traceback."""
    try:
        with reader.snapshot() as view:
            return pickle.dumps(Answer(view.published, function(view, *arguments)))
    except Exception as error:
        return pickle.dumps((error, traceback.format_exc()))


if __name__ == "__main__":
    answer_server()
