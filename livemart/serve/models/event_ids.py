"""Writes how far a client of a change stream is as an id that tells it nothing else.

A position counts the changes of all tenants, so its numbers would tell how much others changed. An
id is sealed for one model and the tenants that its reader may see: to any other it is none.
"""

from __future__ import annotations

from dataclasses import dataclass

from livemart.serve.auth.seal import Seal
from livemart.store.positions import Position

# A position of no history that is kept: the stream begins with all rows.
_BEGINNING = Position(0, "")


@dataclass(frozen=True, slots=True)
class EventIds:
    """The ids of the changes of `model` to who may see the rows of `tenants`; None is all."""

    seal: Seal
    model: str
    tenants: frozenset[str] | None

    def write(self, position: Position) -> str:
        """Return the id of the event behind which a client is at `position`."""
        return self.seal.close(position.to_bytes(), *self._purpose)

    def read(self, text: str) -> Position:
        """Return the position that `text` is the id of; `0` is before all rows.

        Raises:
            ProblemError: POSITION_REFUSED.
        """
        if text == "0":
            return _BEGINNING
        plain = self.seal.open(text, *self._purpose)
        if plain is None:
            # A side process only writes ids, and needs nothing of HTTP.
            from livemart.serve.http.problems import ProblemError

            raise ProblemError(
                "POSITION_REFUSED",
                "Last-Event-ID, after: send back the id of an event of this stream to this token, "
                f"or after=0 to begin with all rows; found {text[:80]!r}",
            )
        return Position.from_bytes(plain)

    @property
    def _purpose(self) -> tuple[object, ...]:
        return "changes", self.model, None if self.tenants is None else sorted(self.tenants)
