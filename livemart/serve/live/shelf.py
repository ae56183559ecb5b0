"""Caches results by snapshot: those of the newest, and of the one that is being prepared.

Used by `Readings`. While a snapshot is prepared, readers still have all results of the one before.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from livemart.store.served import PublicationId, Published

_Result = TypeVar("_Result")
# Results of one snapshot; the longest trend is 25 kB, so all of them are 125 MB at most.
_MOST_KEPT = 5_000


@dataclass(frozen=True, slots=True)
class Answer(Generic[_Result]):
    """A result, and the snapshot it was read from."""

    published: Published
    value: _Result


class Shelf:
    """Keeps results by snapshot and key; nothing here reads."""

    def __init__(self) -> None:
        self._answers: dict[PublicationId, tuple[Published, dict[Hashable, Answer[Any]]]] = {}

    def find(self, key: Hashable, newest: Published) -> Answer[Any] | None:
        """Return the result of the newest snapshot, else that of a later one, if it is kept."""
        of_newest = self._answers.get(newest.identity)
        if of_newest is not None and (answer := of_newest[1].get(key)) is not None:
            return answer
        for published, answers in self._answers.values():
            if published.is_later_than(newest) and key in answers:
                return answers[key]
        return None

    def keep(self, key: Hashable, answer: Answer[Any], newest: Published | None) -> None:
        """Keep a result, unless it is of a snapshot before the newest; forget those that are.

        Two epochs have no order: only the last that came is kept.
        """
        if newest is not None and newest.is_later_than(answer.published):
            return
        identity = answer.published.identity
        for other, (published, _) in list(self._answers.items()):
            is_over = newest is not None and newest.is_later_than(published)
            # The same snapshot, published again.
            is_replaced = published.snapshot_id == answer.published.snapshot_id and other not in (
                identity,
                newest and newest.identity,
            )
            if is_over or is_replaced or published.epoch != answer.published.epoch:
                del self._answers[other]
        _, answers = self._answers.setdefault(identity, (answer.published, {}))
        answers[key] = answer
        if len(answers) > _MOST_KEPT:
            del answers[next(iter(answers))]
