"""Decides when a supervised process is started, restarted, killed, or given up.

Used by the supervisor. Pure rules: all times are seconds of one monotonic clock.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum, auto

# A process that lived so long did not end because of its start.
LONG_LIFE_S = 60.0
LONGEST_PAUSE_S = 60.0
# A server without an answer for so long hangs: its longest work takes less than a second.
SILENCE_S = 15.0
# Its first answer may take longer: it imports modules and opens its store.
START_S = 60.0
# Greater codes belong to processes that were ended from outside.
_LAST_OWN_CODE = 128


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
