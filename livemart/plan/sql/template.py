"""Builds SQL with holes for relations, which are filled when it is run.

Used wherever the engine writes SQL over relations whose names it does not know yet. Nothing is
looked for in a text that was put together before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

_Hole = TypeVar("_Hole")
_Other = TypeVar("_Other")


@dataclass(frozen=True)
class Template(Generic[_Hole]):
    """SQL in pieces: texts, and between two of them a hole that says which relation fills it."""

    pieces: tuple[str | _Hole, ...]

    @property
    def holes(self) -> tuple[_Hole, ...]:
        """The holes to fill, in order of appearance."""
        return tuple(piece for piece in self.pieces if not isinstance(piece, str))

    def render(self, name_of: Callable[[_Hole], str]) -> str:
        """Return the SQL, with the name of a relation, or a subquery, in each hole."""
        return "".join(piece if isinstance(piece, str) else name_of(piece) for piece in self.pieces)

    def over(self, relation_of: Callable[[_Hole], Template[_Other]]) -> Template[_Other]:
        """Return the SQL over relations that have holes themselves."""
        return template(
            *(piece if isinstance(piece, str) else relation_of(piece) for piece in self.pieces)
        )

    def __str__(self) -> str:
        return self.render(str)


def template(*parts: str | Template[_Hole]) -> Template[_Hole]:
    """Return texts and templates one behind the other; texts without a hole between are one.

    >>> template("select * from (", template("select 1"), ")")
    Template(pieces=('select * from (select 1)',))
    """
    pieces: list[str | _Hole] = []
    texts: list[str] = []
    for part in parts:
        for piece in (part,) if isinstance(part, str) else part.pieces:
            if isinstance(piece, str):
                texts.append(piece)
            else:
                # A query that is cut and joined many times would grow by each empty text.
                pieces += ["".join(texts), piece] if any(texts) else [piece]
                texts = []
    pieces += ["".join(texts)] if any(texts) else []
    return Template(tuple(pieces))


def separated(separator: str, parts: Iterable[Template[_Hole]]) -> Template[_Hole]:
    """Return templates with a text between each two."""
    pieces: list[str | Template[_Hole]] = []
    for part in parts:
        pieces += [separator, part] if pieces else [part]
    return template(*pieces)
