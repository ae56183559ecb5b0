"""Records the events of a run and passes them on to its watcher.

Used by what follows a run beside its watcher: the notes of the run, and the word at its end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

# Whatever a run tells of its course.
Told = TypeVar("Told")
Heard = Callable[[str, tuple[Any, ...]], None]


def listening(watcher: Told, heard: Heard) -> Told:
    """Return a proxy of the watcher: `heard` is given name and arguments first."""
    return cast(Told, _Listener(watcher, heard))


class _Listener:
    """Passes every call on, and tells of it."""

    def __init__(self, watcher: object, heard: Heard) -> None:
        self._watcher = watcher
        self._heard = heard

    def __getattr__(self, name: str) -> Any:
        member = getattr(self._watcher, name)
        if not callable(member):
            return member

        def tell(*arguments: Any, **named: Any) -> Any:
            self._heard(name, arguments)
            return member(*arguments, **named)

        return tell
