"""Writes where a page of rows ends as a cursor, sealed for one query of one caller's tenants.

Used by pulls. A cursor names the snapshot of the first page of its walk.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from livemart.serve.auth.seal import Seal
from livemart.serve.live.snapshot_json import json_text, to_json
from livemart.store.positions import Position
from livemart.store.row_places import RowPlace, order_columns
from livemart.store.served import ServedModel
from livemart.store.value_forms import json_value, parse_served_value

if TYPE_CHECKING:
    from livemart.serve.http.problems import ProblemError

# Name and kind of each column that rows are ordered by.
OrderKinds = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class RowCursors:
    """The cursors of a query for rows of `model`.

    `tenants`: whose rows; None is all. `question`: all else that decides which rows there are, and
    their order.
    """

    seal: Seal
    model: str
    tenants: frozenset[str] | None
    question: str

    def write(self, snapshot: Position, place: RowPlace, kinds: OrderKinds) -> str:
        """Return the cursor of the rows behind `place`; the walk began at `snapshot`."""
        texts = [
            None if value is None else _text_of(kind, value)
            for (_, kind), value in zip(kinds, place.values, strict=True)
        ]
        plain = [snapshot.snapshot_id, snapshot.mark, place.taken, list(map(list, kinds)), texts]
        return self.seal.close(to_json(plain), *self._purpose)

    def read(self, text: str, kinds: OrderKinds) -> tuple[Position, RowPlace]:
        """Return the snapshot and the place of a cursor.

        Raises:
            ProblemError: POSITION_REFUSED; SNAPSHOT_GONE, if rows have another order by now.
        """
        plain = self.seal.open(text, *self._purpose)
        if plain is None:
            # A side process only writes cursors, and needs nothing of HTTP.
            from livemart.serve.http.problems import ProblemError

            raise ProblemError(
                "POSITION_REFUSED",
                "after: send `next` of the page before back to the same query (select and limit "
                f"may differ), with a token for the same tenants; found {text[:80]!r}",
            )
        snapshot_id, mark, taken, kinds_then, texts = json.loads(plain)
        if kinds_then != list(map(list, kinds)):
            raise snapshot_gone()
        values = tuple(
            None if text is None else _value_of(kind, text)
            for (_, kind), text in zip(kinds, texts, strict=True)
        )
        return Position(snapshot_id, mark), RowPlace(values, taken)

    @property
    def _purpose(self) -> tuple[object, ...]:
        tenants = None if self.tenants is None else sorted(self.tenants)
        return "rows", self.model, tenants, self.question


def order_kinds(model: ServedModel, order_by: Sequence[str]) -> OrderKinds:
    """Return name and kind of each column that rows are ordered by; a row's hash is text."""
    kinds = model.kinds
    return [(name, kinds.get(name, "string")) for name in order_columns(model, order_by)]


def snapshot_gone() -> ProblemError:
    """Return the answer to a cursor of a snapshot whose rows are not stored any more."""
    from livemart.serve.http.problems import ProblemError

    return ProblemError(
        "SNAPSHOT_GONE",
        "rows have changed since the snapshot of the pages before: begin again without after",
    )


def _text_of(kind: str, value: Any) -> str:
    plain = json_value(value, kind)
    return plain if isinstance(plain, str) and kind != "json" else json_text(plain)


def _value_of(kind: str, text: str) -> Any:
    return json.loads(text) if kind == "json" else parse_served_value(kind, text)
