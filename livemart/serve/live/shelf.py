"""Results as long as they are of use: those of the newest snapshot, and of one that comes next.

While a snapshot is prepared, readers still have all of the one before at hand.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from livemart.store.served import PublicationId, Published

Result = TypeVar("Result")
# Results of one snapshot; the longest trend is 25 kB, so all of them are 125 MB at most.
_MOST_KEPT = 5_000


@dataclass(frozen=True, slots=True)
class Answer(Generic[Result]):
    """A result, and the snapshot it was read from."""

    published: Published
    value: Result


class Shelf:
    """Keeps results by snapshot and key; nothing here reads."""

    def __init__(self) -> None:
        self._boards: dict[PublicationId, tuple[Published, dict[Hashable, Answer[Any]]]] = {}

    def find(self, key: Hashable, newest: Published) -> Answer[Any] | None:
        """Return the result of the newest snapshot, else that of a later one, if it is kept."""
        own = self._boards.get(newest.identity)
        if own is not None and (found := own[1].get(key)) is not None:
            return found
        for published, board in self._boards.values():
            if published.is_later_than(newest) and key in board:
                return board[key]
        return None

    def keep(self, key: Hashable, answer: Answer[Any], newest: Published | None) -> None:
        """Keep a result, unless it is of a snapshot before the newest; forget what is.

        Of two epochs nobody can tell which is the later one: only the last that came is kept.
        """
        state = answer.published.identity
        if newest is not None and newest.is_later_than(answer.published):
            return
        for other, (published, _) in list(self._boards.items()):
            is_over = newest is not None and newest.is_later_than(published)
            is_other = published.snapshot_id == answer.published.snapshot_id and other not in (
                state,
                newest and newest.identity,
            )
            if is_over or is_other or published.epoch != answer.published.epoch:
                del self._boards[other]
        _, board = self._boards.setdefault(state, (answer.published, {}))
        board[key] = answer
        if len(board) > _MOST_KEPT:
            del board[next(iter(board))]
