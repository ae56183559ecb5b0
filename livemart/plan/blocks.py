"""Finds the queries within a query: its subqueries, with the names that each can see.

Used where a query is cut. Places are offsets in the text of a flat query.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import Literal

from sqlglot import Token, TokenType

from livemart.plan.sql.flatten import Flat, Occurrence
from livemart.plan.sql.parse import tokens_of
from livemart.plan.sql.template import Template, template

OPENING = frozenset({TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE})
CLOSING = frozenset({TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE})
_QUERY = frozenset({TokenType.SELECT, TokenType.WITH})
_CLAUSES = frozenset(
    {
        TokenType.SELECT, TokenType.FROM, TokenType.WHERE, TokenType.GROUP_BY, TokenType.HAVING,
        TokenType.QUALIFY, TokenType.ORDER_BY, TokenType.LIMIT, TokenType.ON, TokenType.JOIN,
        TokenType.UNION, TokenType.INTERSECT, TokenType.EXCEPT,
    }
)  # fmt: skip
_WITH = "with"
_OPERATIONS = frozenset({TokenType.UNION, TokenType.INTERSECT, TokenType.EXCEPT})
# A query behind one of these is a branch, is compared by a quantifier, or sees what is before it.
_BEFORE_BRANCH = frozenset(
    {
        TokenType.LATERAL, TokenType.UNION, TokenType.INTERSECT, TokenType.EXCEPT,
        TokenType.DISTINCT, TokenType.ALL, TokenType.ANY, TokenType.SOME, TokenType.ALIAS,
    }
)  # fmt: skip

# The clauses behind the last branch of a union, which order and cut all of its rows.
_BEHIND_UNION = frozenset(
    {
        TokenType.ORDER_BY, TokenType.SORT_BY, TokenType.CLUSTER_BY, TokenType.DISTRIBUTE_BY,
        TokenType.LIMIT, TokenType.OFFSET,
    }
)  # fmt: skip

BlockKind = Literal["top", "cte", "table", "value", "asked", "first", "branch"]


@dataclass(frozen=True, slots=True)
class Block:
    """A query within a text, from `start` to `end`, without brackets around it.

    `kind`: all of the text behind its common table expressions, one of these, an item of FROM, a
    scalar subquery, or one that is asked by IN or EXISTS. Or a branch of a union, the first of
    which names the columns. `depth`: how many queries it is in.
    `sees`: the common table expressions in sight.
    """

    kind: BlockKind
    start: int
    end: int
    depth: int
    sees: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Named:
    """A common table expression; `start`: where its name begins; `stop`: behind its bracket."""

    name: str
    start: int
    stop: int
    body: tuple[int, int]


class Blocks:
    """The queries of one text, the outermost first and the last of each depth first.

    A text with recursive common table expressions, or with some inside of others, has no inner ones
    that see them.
    """

    def __init__(self, flat: Flat) -> None:
        self.flat = flat
        self.tokens = tokens_of(flat.text)
        self._closing = _closings(self.tokens)
        self._named, begin = self._common_tables()
        every = tuple(named.name for named in self._named)
        end = self.tokens[-1].end + 1 if self.tokens else 0
        self.top = Block("top", begin, end, 0, every)

    def __iter__(self) -> Iterator[Block]:
        blocks = [self.top, *self._inner()]
        blocks += [branch for block in blocks for branch in self._branches(block)]
        return iter(sorted(blocks, key=lambda block: (block.depth, -block.start)))

    def standing_alone(self, block: Block) -> Template[Occurrence] | None:
        """Return the text of a block behind the tables that it sees; None if that cannot be."""
        text = self.flat.cut(block.start, block.end)
        if not (needed := self._needed(block.start, block.end, block.sees)):
            return text
        parts: list[str | Template[Occurrence]] = ["with "]
        for number, named in enumerate(table for table in self._named if table.name in needed):
            parts += [", " if number else "", self.flat.cut(named.start, named.stop)]
        if self.flat.text[block.start : block.start + len(_WITH)].lower() != _WITH:
            return template(*parts, "\n", text)
        inner = {named.name for named in Blocks(Flat(text.pieces))._named}
        if not inner or inner & needed:
            # By one of these names it means another table.
            return None
        # As long as it is written: places count from the end.
        rest = self.flat.cut(block.start + len(_WITH), block.end)
        return template(*parts, ",\n", " " * len(_WITH), rest)

    def without_unread(self) -> Flat:
        """Return the query without common table expressions that nothing in it reads."""
        if not self._named:
            return self.flat
        top = self.top
        needed = self._needed(top.start, top.end, top.sees)
        needed_tables = [named for named in self._named if named.name in needed]
        if len(needed_tables) == len(self._named):
            return self.flat
        block = Block(
            "top", top.start, len(self.flat.text), 0, tuple(named.name for named in needed_tables)
        )
        alone = self.standing_alone(block)
        return self.flat if alone is None else numbered(alone)

    def _needed(self, start: int, end: int, sees: Collection[str]) -> set[str]:
        """Return the common table expressions that a part of the text reads, also by others."""
        needed = self._words(start, end) & set(sees)
        for named, read in reversed(self._reads):
            if named in needed:
                needed |= read
        return needed

    @cached_property
    def _reads(self) -> list[tuple[str, set[str]]]:
        """The names of the common table expressions, each with those before it that it reads."""
        names = [named.name for named in self._named]
        return [
            (named.name, self._words(*named.body) & set(names[:place]))
            for place, named in enumerate(self._named)
        ]

    def _words(self, start: int, end: int) -> set[str]:
        return {
            token.text.lower() for token in self.tokens if start <= token.start and token.end < end
        }

    def _common_tables(self) -> tuple[list[_Named], int]:
        """Return the common table expressions in front of a query, and where the query begins."""
        tokens = self.tokens
        if not tokens or tokens[0].token_type is not TokenType.WITH:
            return [], tokens[0].start if tokens else 0
        named_queries: list[_Named] = []
        place = 1
        if tokens[place].token_type is TokenType.RECURSIVE:
            return [], tokens[0].start
        while True:
            name = tokens[place]
            place += 1
            if tokens[place].token_type is TokenType.L_PAREN:
                place = self._closing[place] + 1
            if tokens[place].token_type is TokenType.ALIAS:
                place += 1
            if tokens[place].token_type is not TokenType.L_PAREN:
                return [], tokens[0].start
            closing = self._closing[place]
            body = tokens[place + 1].start, tokens[closing - 1].end + 1
            named_queries.append(
                _Named(name.text.lower(), name.start, tokens[closing].end + 1, body)
            )
            place = closing + 1
            if tokens[place].token_type is not TokenType.COMMA:
                break
            place += 1
        if len({named.name for named in named_queries}) < len(named_queries):
            return [], tokens[0].start
        return named_queries, tokens[place].start

    def _inner(self) -> Iterator[Block]:
        bodies = {named.body[0]: number for number, named in enumerate(self._named)}
        depths: list[int] = []
        # Names that a query within a query gives to others are not known here.
        hidden = 0
        for place, token in enumerate(self.tokens):
            while depths and depths[-1] < place:
                depths.pop()
            if token.token_type is not TokenType.L_PAREN or place not in self._closing:
                continue
            closing = self._closing[place]
            after = self.tokens[place + 1]
            if after.token_type not in _QUERY and not self._is_operation(place):
                continue
            number = bodies.get(after.start)
            around = next(
                (n for n, it in enumerate(self._named) if it.start <= token.start < it.stop), None
            )
            every = tuple(named.name for named in self._named)
            sees = every if around is None else every[:around]
            if number is not None:
                kind: BlockKind | None = "cte"
            else:
                kind = self._kind(place)
            depths.append(closing)
            if kind is not None and place >= hidden:
                end = self.tokens[closing - 1].end + 1
                yield Block(kind, after.start, end, len(depths), sees)
            if after.token_type is TokenType.WITH:
                hidden = max(hidden, closing)

    def _branches(self, block: Block) -> Iterator[Block]:
        """Yield the branches of a union, without the brackets around them."""
        tokens = outside_of_brackets(self.tokens, block.start, block.end)
        kinds = [token.token_type for token in tokens]
        # Behind a star it is a list of columns.
        operations = [
            place
            for place, kind in enumerate(kinds)
            if kind in _OPERATIONS and kinds[place - 1] is not TokenType.STAR
        ]
        if not operations or any(kinds[place] is not TokenType.UNION for place in operations):
            return
        if kinds[0] is TokenType.WITH:
            # They see its names, which are not known here.
            return
        ends = [n for n in range(operations[-1], len(kinds)) if kinds[n] in _BEHIND_UNION]
        stops = [*operations, ends[0] if ends else len(kinds)]
        starts = [0]
        for place in operations:
            is_plain = kinds[place + 1] not in (TokenType.ALL, TokenType.DISTINCT)
            starts.append(place + (1 if is_plain else 2))
        for number, (start, stop) in enumerate(zip(starts, stops, strict=True)):
            first, last = tokens[start], tokens[stop - 1]
            if kinds[start:stop] == [TokenType.L_PAREN, TokenType.R_PAREN]:
                within = [it for it in self.tokens if first.start < it.start < last.start]
                first, last = within[0], within[-1]
            if first.token_type is TokenType.SELECT:
                kind: BlockKind = "branch" if number else "first"
                yield Block(kind, first.start, last.end + 1, block.depth + 1, block.sees)

    def _is_operation(self, place: int) -> bool:
        """Return True for a bracket around a set operation whose first query has its own."""
        first = place + 1
        if self.tokens[first].token_type is not TokenType.L_PAREN or first not in self._closing:
            return False
        behind = self.tokens[self._closing[first] + 1]
        is_query = self.tokens[first + 1].token_type in _QUERY or self._is_operation(first)
        return is_query and behind.token_type in _OPERATIONS

    def _kind(self, place: int) -> BlockKind | None:
        """Return the kind of a query in brackets; None for a branch, or one that may see more."""
        if not place:
            return None
        before = self.tokens[place - 1]
        behind = self.tokens[self._closing[place] + 1 : self._closing[place] + 2]
        is_operand = bool(behind) and behind[0].token_type in _OPERATIONS
        if is_operand and before.token_type is TokenType.L_PAREN:
            return None
        if before.token_type in (TokenType.FROM, TokenType.JOIN):
            return "table"
        if before.token_type in _BEFORE_BRANCH or before.token_type is TokenType.R_PAREN:
            return None
        if before.token_type in (TokenType.IN, TokenType.EXISTS):
            return "asked"
        if before.token_type is TokenType.COMMA:
            depth = 0
            for token in reversed(self.tokens[: place - 1]):
                depth += token.token_type in CLOSING
                if token.token_type in OPENING:
                    if depth == 0:
                        return "value"
                    depth -= 1
                elif depth == 0 and token.token_type in _CLAUSES:
                    is_item = token.token_type in (TokenType.FROM, TokenType.JOIN)
                    return "table" if is_item or token.token_type is TokenType.ON else "value"
        return "value"


def numbered(text: Template[Occurrence]) -> Flat:
    """Return a text whose mentions are numbered in their order."""
    pieces: list[str | Occurrence] = []
    count = 0
    for piece in text.pieces:
        if isinstance(piece, Occurrence):
            piece, count = Occurrence(count, piece.relation, piece.text), count + 1
        pieces.append(piece)
    return Flat(tuple(pieces))


def outside_of_brackets(
    text: str | Sequence[Token], begin: int = 0, end: float = inf
) -> list[Token]:
    """Return the tokens of a piece that are outside of its brackets, and these brackets."""
    depth, outside = 0, []
    for token in tokens_of(text) if isinstance(text, str) else text:
        if begin <= token.start < end:
            depth -= token.token_type in CLOSING
            if depth == 0:
                outside.append(token)
            depth += token.token_type in OPENING
    return outside


def _closings(tokens: Sequence[Token]) -> dict[int, int]:
    opened: list[int] = []
    closings = {}
    for place, token in enumerate(tokens):
        if token.token_type in OPENING:
            opened.append(place)
        elif token.token_type in CLOSING and opened:
            closings[opened.pop()] = place
    return closings
