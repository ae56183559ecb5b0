"""Keeps the processes of `up` running: starts, restarts and ends them.

Neither Spark nor the server runs in the supervisor, and the processes do not know each other. So a
crash, a hang or the memory of one does not affect the other.

`Life` decides when a process is started, restarted, killed, or given up, by pure rules: all times
are seconds of one monotonic clock.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import timedelta
from enum import Enum, auto
from threading import Event
from typing import Any

import structlog

from livemart.cli.health_probe import HealthProbe
from livemart.cli.tether import READY

# A process that lived so long did not end because of its start.
LONG_LIFE_S = 60.0
LONGEST_PAUSE_S = 60.0
# A server without an answer for so long hangs: its longest work takes less than a second.
SILENCE_S = 15.0
# Its first answer may take longer: it imports modules and opens its store.
START_S = 60.0
# Greater codes belong to processes that were ended from outside.
_LAST_OWN_CODE = 128
_TICK_S = 0.1
# A busy machine may delay the supervisor itself, which then misses answers.
_LONG_TICK_S = 1.0
# From the end of its patience to SIGKILL; the micro-batch is given up before.
_LAST_WORD_S = 3.0
# The exit code that is noted when no process could be started.
_NOT_STARTED = -1


class NextStep(Enum):
    """The supervisor's next step with a process."""

    WAIT = auto()
    START = auto()
    KILL = auto()
    GIVE_UP = auto()


@dataclass(frozen=True, slots=True)
class Life:
    """The state of a supervised process and of its predecessors.

    `exit_code` is None while it runs, and negative if a signal ended it. `answered_at` is None if
    the process is not probed, and in the future while it starts. `was_ready`: it, or a predecessor,
    was ready. `short_lives` counts the last processes in a row that ended within `LONG_LIFE_S`.
    """

    began_at: float | None = None
    ended_at: float | None = None
    exit_code: int | None = None
    answered_at: float | None = None
    was_ready: bool = False
    short_lives: int = 0

    def begun(self, now: float, *, is_asked: bool = False) -> Life:
        """Return the life of the next process, which starts now; `is_asked`: it is probed."""
        answered_at = now + START_S - SILENCE_S if is_asked else None
        return replace(self, began_at=now, ended_at=None, exit_code=None, answered_at=answered_at)

    def ready(self, now: float) -> Life:
        """Return the life of a process that became ready."""
        answered_at = None if self.answered_at is None else now
        return replace(self, was_ready=True, answered_at=answered_at)

    def ended(self, now: float, exit_code: int) -> Life:
        """Return the life of a process that has ended."""
        is_short = self.began_at is None or now - self.began_at < LONG_LIFE_S
        short_lives = self.short_lives + 1 if is_short else 0
        return replace(self, ended_at=now, exit_code=exit_code, short_lives=short_lives)

    @property
    def pause_s(self) -> float:
        """Seconds from its end to the next start: 1 at first, then doubled each time."""
        return min(2.0 ** min(max(self.short_lives - 1, 0), 10), LONGEST_PAUSE_S)


def next_step(life: Life, now: float) -> NextStep:
    """Return the next step with a process.

    A process that exits before any of them was ready is given up: it would end again, and has
    printed the reason. Later every end is followed by a restart.
    """
    if life.began_at is None:
        return NextStep.START
    if life.exit_code is None or life.ended_at is None:
        is_silent = life.answered_at is not None and now - life.answered_at > SILENCE_S
        return NextStep.KILL if is_silent else NextStep.WAIT
    if not life.was_ready and 0 <= life.exit_code <= _LAST_OWN_CODE:
        return NextStep.GIVE_UP
    return NextStep.START if now - life.ended_at >= life.pause_s else NextStep.WAIT


@dataclass(eq=False)
class SupervisedProcess:
    """A process that is restarted whenever it ends.

    Args:
        name: the name of the process in the log.
        command: starts the process; its standard input is a socket, see `tether`.
        environment: variables in addition to those of this process.
        probe: checks the server that the process runs, if it runs one.
    """

    name: str
    command: Sequence[str]
    _: KW_ONLY
    environment: Mapping[str, str] = field(default_factory=dict)
    probe: HealthProbe | None = None
    life: Life = field(default=Life(), init=False)
    _process: subprocess.Popen[bytes] | None = field(default=None, init=False)
    _tether: socket.socket | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._log = structlog.get_logger().bind(process=self.name)

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def is_settled(self) -> bool:
        """Whether later processes may start."""
        return self.life.was_ready or self.life.ended_at is not None

    def start(self, now: float) -> None:
        """Start the process."""
        self._close()
        self.life = self.life.begun(now, is_asked=self.probe is not None)
        try:
            self._tether, theirs = socket.socketpair()
            self._tether.setblocking(False)
            with theirs:
                self._process = subprocess.Popen(
                    self.command,
                    stdin=theirs.fileno(),
                    env={**os.environ, **self.environment},
                    # Ctrl-C reaches every process of a terminal; the supervisor passes it on.
                    preexec_fn=_ignore_interrupt,
                )
        except OSError as error:
            # No memory, or no descriptor: there may be some in a minute.
            self.life = self.life.ended(now, _NOT_STARTED)
            self._log.warning("process_not_started", error=str(error))

    def look(self, now: float, slept_s: float = 0.0) -> None:
        """Note whether the process has ended, is ready, or has answered.

        `slept_s`: how long the supervisor could not look; this is not a silence of the process.
        """
        if self._process is None or self.life.exit_code is not None:
            return
        code = self._process.poll()
        with suppress(OSError):
            if self._tether is not None and self._tether.recv(64).startswith(READY):
                self.life = self.life.ready(now)
        if code is not None:
            self.life = self.life.ended(now, code)
            if next_step(self.life, now) is not NextStep.GIVE_UP:
                pause_s = round(self.life.pause_s)
                self._log.warning("process_ended", **_how(code), next_start_s=pause_s)
            self._close()
        elif self.probe is not None and self.life.answered_at is not None:
            is_answered = self.probe.is_answered(now)
            answered_at = now if is_answered else self.life.answered_at + slept_s
            self.life = replace(self.life, answered_at=answered_at)

    def kill_hung(self) -> None:
        """Kill a process that does not answer."""
        self._log.warning("process_hangs", unanswered="/healthz")
        self.send(signal.SIGKILL)

    def send(self, number: signal.Signals) -> None:
        """Send the process a signal, if it runs."""
        if self.is_running and self._process is not None:
            self._process.send_signal(number)

    def wait(self) -> None:
        """Wait until the process has ended, and release it."""
        if self._process is not None:
            self._process.wait()
        self._close()

    def _close(self) -> None:
        if self._tether is not None:
            self._tether.close()
            self._tether = None
        if self.probe is not None:
            self.probe.close()


def supervise(
    processes: Sequence[SupervisedProcess], stop: Event, abandon: Event, patience: timedelta
) -> int | None:
    """Keep processes running until `stop` is set, then end them all.

    A process is started once the previous one is ready, or has ended.

    Args:
        processes: in the order of their start.
        stop: ends them as by SIGTERM.
        abandon: sends SIGTERM again, which gives up the work in progress.
        patience: how long they may continue after `stop`. A process that runs `_LAST_WORD_S`
            longer is killed.

    Returns:
        The exit code of a process that ended by itself before it was ready; None after `stop`.
    """
    looked_at = time.monotonic()
    try:
        while not stop.is_set():
            now = time.monotonic()
            slept_s = now - looked_at if now - looked_at > _LONG_TICK_S else 0.0
            looked_at = now
            is_next = True
            for process in processes:
                process.look(now, slept_s)
                match next_step(process.life, now):
                    case NextStep.START if is_next or process.life.began_at is not None:
                        process.start(now)
                    case NextStep.KILL:
                        process.kill_hung()
                    case NextStep.GIVE_UP:
                        return process.life.exit_code
                is_next = is_next and process.is_settled
            stop.wait(_TICK_S)
        return None
    finally:
        _end(processes, abandon, patience)


def run_once(command: Sequence[str]) -> int:
    """Run a command and return its exit code, as a shell reports it."""
    code = subprocess.run(command, preexec_fn=_ignore_interrupt).returncode
    return code if code >= 0 else 128 - code


def _end(processes: Sequence[SupervisedProcess], abandon: Event, patience: timedelta) -> None:
    for process in processes:
        process.send(signal.SIGTERM)
    ends_at = time.monotonic() + patience.total_seconds() + _LAST_WORD_S
    is_given_up = False
    while any(process.is_running for process in processes):
        if abandon.is_set() and not is_given_up:
            is_given_up = True
            ends_at = min(ends_at, time.monotonic() + _LAST_WORD_S)
            for process in processes:
                process.send(signal.SIGTERM)
        if time.monotonic() > ends_at:
            for process in processes:
                process.send(signal.SIGKILL)
        time.sleep(_TICK_S / 2)
    for process in processes:
        process.wait()


def _how(code: int) -> dict[str, Any]:
    """Return how a process ended, as keys of its event."""
    return {"exit_code": code} if code >= 0 else {"signal": -code}


def _ignore_interrupt() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
