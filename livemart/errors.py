"""Gives every error a stable code, the finding with its place, and the next step.

Used by all rooms, one class per step; the command line prints the three. A code is never reused.
"""

from __future__ import annotations

import difflib
import errno
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import zip_longest
from typing import Any

_FULL = (errno.ENOSPC, errno.EDQUOT)
# Words of the system, as Spark's JVM and the table library pass them on; of SQLite; of a quota.
FULL_DISK_WORDS = ("No space left on device", "database or disk is full", "Disk quota exceeded")


class LivemartError(Exception):
    """An error with a stable `code`, a `message` (where, then the value found) and a `hint`.

    The command line prints the three and exits with `exit_code`; a traceback only with `--debug`.
    """

    exit_code = 1

    def __init__(self, code: str, message: str, *, hint: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.code}: {self.message}\n  next: {self.hint}"

    def __reduce__(self) -> tuple[Any, ...]:
        # Spark's workers hand theirs to the driver.
        return partial(type(self), hint=self.hint), (self.code, self.message)


class ConfigError(LivemartError):
    """A wrong configuration, found before anything ran."""

    exit_code = 2


class ConfigErrors(ConfigError):
    """All mistakes of a configuration at once."""

    def __init__(self, errors: Sequence[ConfigError]) -> None:
        first = errors[0]
        super().__init__(first.code, first.message, hint=first.hint)
        self.errors = tuple(errors)

    def __str__(self) -> str:
        """Return all errors; of neighbours with one hint, the last alone has it."""
        lines = []
        for error, following in zip_longest(self.errors, self.errors[1:]):
            is_last = following is None or following.hint != error.hint
            lines.append(str(error) if is_last else f"{error.code}: {error.message}")
        return "\n".join(lines)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.errors,)


class StateError(LivemartError):
    """The warehouse, the checkpoint or a lock is not in a state to go on from."""

    exit_code = 2


class StorageError(LivemartError, OSError):
    """A bucket cannot be reached, or refuses a request; handled where an error of a disk is."""


class PlanError(LivemartError):
    """A model cannot be refreshed the way its policy demands."""


class SourceError(LivemartError):
    """A source cannot be landed."""


class RefreshError(LivemartError):
    """A model could not be refreshed. `models`: unique ids of those that are meant, if known."""

    def __init__(self, code: str, message: str, *, hint: str, models: Iterable[str] = ()) -> None:
        super().__init__(code, message, hint=hint)
        self.models = tuple(models)


class PublishError(LivemartError):
    """A snapshot could not be published."""


def causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error, its cause, the cause of that, and so on."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__


def full_disk(error: BaseException) -> BaseException | None:
    """Return the cause of an error that reports a full disk; None if there is none."""
    for cause in causes(error):
        if getattr(cause, "errno", None) in _FULL or any(
            word in str(cause) for word in FULL_DISK_WORDS
        ):
            return cause
    return None


def first_lines(error: object, count: int = 1) -> str:
    """Return the first `count` lines of an error's text, or its type's name if it has none.

    >>> first_lines(KeyError()), first_lines(ValueError("not a number\\nat line 3"))
    ('KeyError', 'not a number')
    """
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return "\n".join(lines[:count])


def fault_text(error: BaseException) -> str:
    """Return the type of an error and the first line of its text.

    >>> fault_text(KeyError("customerkey"))
    "KeyError: 'customerkey'"
    """
    return f"{type(error).__name__}: {first_lines(error)}"


def first_names(names: Sequence[str], most: int = 3) -> str:
    """Return the first `most` names, and how many more there are.

    >>> first_names(["a", "b", "c"], most=2)
    'a, b and 1 more'
    """
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"


def nearest(word: str, choices: Iterable[str]) -> str:
    """Return `, did you mean ...?`, or an empty string.

    >>> nearest("sequence", ("keys", "sequence_by"))
    ', did you mean sequence_by?'
    """
    matches = difflib.get_close_matches(word, list(choices), n=1)
    return f", did you mean {matches[0]}?" if matches else ""
