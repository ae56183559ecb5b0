"""Prints expressions in the words of the analyst: the text between their columns is cut from SQL.

Used wherever the planner prints an expression or compares two. The parser gives many functions and
literals of Spark another meaning, or drops an argument: what is printed from its tree alone may be
another expression. Only columns are replaced; what the planner puts together is printed around the
cut pieces.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlglot import Dialect, Token, TokenType, exp
from sqlglot.errors import ParseError
from sqlglot.generators.spark import SparkGenerator
from sqlglot.parsers.spark import SparkParser

_SPAN = "span"
_CUT = "cut"
_CALL = "call"
# A path from a node to one below it: names of arguments, and places where these are lists.
_Path = tuple[tuple[str, int | None], ...]
# Every production of the parser that gives an expression with nothing else around it.
_PRODUCTIONS = (
    "_parse_disjunction", "_parse_conjunction", "_parse_equality", "_parse_comparison",
    "_parse_range", "_parse_bitwise", "_parse_term", "_parse_factor", "_parse_exponent",
    "_parse_unary", "_parse_type", "_parse_column", "_parse_function", "_parse_primary",
)  # fmt: skip
_VERBATIM = frozenset(
    {
        TokenType.STRING, TokenType.RAW_STRING, TokenType.IDENTIFIER, TokenType.VAR,
        TokenType.NUMBER,
    }
)  # fmt: skip
# The first of three arguments is the unit, a word.
_UNIT_FIRST = frozenset(
    {"DATEADD", "DATE_ADD", "TIMESTAMPADD", "DATEDIFF", "DATE_DIFF", "TIMESTAMPDIFF"}
)
# A word after one of these is a name, whatever else it may be.
_BEFORE_NAME = frozenset({TokenType.ALIAS, TokenType.DOT, TokenType.LT, TokenType.COLON})


@dataclass(frozen=True, slots=True)
class _Cut:
    """The text of an expression: pieces, and between each two the path of a printed part."""

    pieces: tuple[str, ...]
    paths: tuple[_Path, ...]

    def __deepcopy__(self, memo: object) -> _Cut:
        return self


class WrittenParser(SparkParser):
    """Spark's parser that notes the span of each expression, and loses no argument."""

    def _parse_function_call(
        self,
        functions: dict[str, Callable[..., Any]] | None = None,
        anonymous: bool = False,
        optional_parens: bool = True,
        any_token: bool = False,
    ) -> exp.Expr | None:
        first, name = self._index, self._curr.text.upper() if self._curr else ""
        options = (optional_parens, any_token)
        node = super()._parse_function_call(functions, anonymous, *options)
        if node is None or anonymous or name not in self.FUNCTION_PARSERS:
            return node
        # Some calls have their own parser, which may pass over an argument.
        end = self._index
        self._retreat(first)
        try:
            plain = super()._parse_function_call(functions, True, *options)
        except ParseError:
            plain = None
        if plain is None or self._index != end or _places(plain) <= _places(node):
            self._retreat(end)
            return node
        return plain


def _spanned(name: str) -> Callable[..., Any]:
    production = getattr(SparkParser, name)

    def parse(self: WrittenParser, *args: Any, **options: Any) -> Any:
        first = self._index
        node = production(self, *args, **options)
        if isinstance(node, exp.Expr) and self._index > first:
            if name == "_parse_function":
                node.meta[_CALL] = True
            begin = self._tokens[first].start
            if args and isinstance(args[0], exp.Expr):
                begin = min(begin, args[0].meta.get(_SPAN, (begin, 0))[0])
            node.meta[_SPAN] = (begin, self._tokens[self._index - 1].end + 1)
        return node

    return parse


def _lossless(name: str, build: Callable[..., exp.Expr]) -> Callable[..., exp.Expr]:
    """Return a builder that leaves a call as it is written where the parser's drops a column."""

    def call(args: list[exp.Expr], **options: Any) -> exp.Expr:
        values = args[1:] if name in _UNIT_FIRST and len(args) == 3 else args
        columns = {
            id(column) for arg in values if arg is not None for column in arg.find_all(exp.Column)
        }
        node = build(args, **options)
        built_columns = (
            {id(column) for column in node.find_all(exp.Column)}
            if isinstance(node, exp.Expr)
            else columns
        )
        if columns <= built_columns:
            return node
        return exp.Anonymous(this=name.lower(), expressions=args)

    return call


for _name in _PRODUCTIONS:
    setattr(WrittenParser, _name, _spanned(_name))
WrittenParser.FUNCTIONS = {
    name: _lossless(name, build) for name, build in SparkParser.FUNCTIONS.items()
}


def cut_texts(tree: exp.Expr, tokens: Sequence[Token], text: str) -> None:
    """Note on every expression below `tree` the text it was read from, and forget the spans."""
    words = _words(tokens, text)
    starts = sorted(words)
    for node in tree.walk():
        span = node.meta.get(_SPAN)
        if span is None or isinstance(node, exp.Column | exp.Query | exp.Subquery | exp.Star):
            continue
        below = sorted(_below(node, ()), key=lambda item: item[1])
        if any(end == 0 for _, (_, end) in below):
            # A column without a position: the parser does not report one.
            continue
        pieces, paths, position = [], [], span[0]
        for path, (begin, end) in below:
            if begin < position:
                # One argument that is in the tree twice.
                continue
            pieces.append(_between(words, starts, position, begin))
            paths.append(path)
            position = end
        if position <= span[1]:
            pieces.append(_between(words, starts, position, span[1]))
            node.meta[_CUT] = _Cut(tuple(pieces), tuple(paths))


def span_of(node: exp.Expr) -> tuple[int, int] | None:
    """Return the place of an expression in the text that it was parsed from, None if unknown."""
    span: tuple[int, int] | None = node.meta.get(_SPAN)
    return span


def plain_text(tokens: Sequence[Token], text: str) -> str:
    """Return the words of a text with a blank between each two; comments are left out."""
    return " ".join(word for _, word in _words(tokens, text).values())


def _below(node: exp.Expr, path: _Path) -> Iterator[tuple[_Path, tuple[int, int]]]:
    """Yield path and span of the nearest expressions below a node that have a span."""
    for name, value in node.args.items():
        children = enumerate(value) if isinstance(value, list) else [(None, value)]
        for place, child in children:
            if not isinstance(child, exp.Expr):
                continue
            there = (*path, (name, place))
            span = child.meta.get(_SPAN)
            if span is None and isinstance(child, exp.Column):
                span = _span_of(child)
            if span is not None:
                yield there, span
            else:
                yield from _below(child, there)


def _places(node: exp.Expr) -> set[object]:
    return {column.parts[0].meta.get("start") for column in node.find_all(exp.Column)}


def _span_of(column: exp.Column) -> tuple[int, int]:
    """Return the place of the names of a column; (0, 0) if the parser does not report it."""
    parts = column.parts
    begin, end = parts[0].meta.get("start"), parts[-1].meta.get("end")
    return (0, 0) if begin is None or end is None else (int(begin), int(end) + 1)


def _words(tokens: Sequence[Token], text: str) -> dict[int, tuple[int, str]]:
    """Return the end and the text of each token by its start; names of functions in lower case."""
    words: dict[int, tuple[int, str]] = {}
    for place, token in enumerate(tokens):
        if token.start in words:
            # `10L` is three tokens at one place.
            continue
        word = text[token.start : token.end + 1]
        after = tokens[place + 1].token_type if place + 1 < len(tokens) else None
        is_name = place > 0 and tokens[place - 1].token_type in _BEFORE_NAME
        is_call = after is TokenType.L_PAREN and token.token_type is not TokenType.IDENTIFIER
        if not is_name and (is_call or token.token_type not in _VERBATIM):
            word = word.lower() if word.isalpha() or is_call else word
        words[token.start] = (token.end + 1, word)
    return words


def _between(words: dict[int, tuple[int, str]], starts: Sequence[int], begin: int, end: int) -> str:
    """Return the tokens from `begin` to `end`; one blank for all text between two.

    `starts`: of all tokens, in order.
    """
    text, position = "", begin
    for start in starts[bisect_left(starts, begin) : bisect_left(starts, end)]:
        stop, word = words[start]
        text += (" " if start > position else "") + word
        position = stop
    return text + (" " if end > position else "")


class _WrittenGenerator(SparkGenerator):
    """Prints pieces of the analyst's text as they were written."""

    def sql(
        self, expression: str | exp.Expr | None, key: str | None = None, comment: bool = True
    ) -> str:
        if key is None and isinstance(expression, exp.Expr):
            cut: _Cut | None = expression.meta.get(_CUT)
            if cut is not None and (children := _at(expression, cut.paths)) is not None:
                printed = [self.sql(child) for child in children]
                return "".join(
                    text for pair in zip(cut.pieces, [*printed, ""], strict=True) for text in pair
                )
        return str(super().sql(expression, key, comment))


def _at(node: exp.Expr, paths: Sequence[_Path]) -> list[exp.Expr] | None:
    """Return the node at each path now; None if the tree has another shape by now."""
    children = []
    for path in paths:
        child: object = node
        for name, place in path:
            value = child.args.get(name) if isinstance(child, exp.Expr) else None
            if place is None:
                child = value
            else:
                child = value[place] if isinstance(value, list) and place < len(value) else None
        if not isinstance(child, exp.Expr):
            return None
        children.append(child)
    return children


_SPARK = Dialect.get_or_raise("spark")


def is_atom(expr: exp.Expr) -> bool:
    """Return True for an expression that needs no brackets around it in place of a column."""
    return bool(expr.meta.get(_CALL)) or isinstance(
        expr, exp.Column | exp.Literal | exp.Paren | exp.Null | exp.Boolean | exp.Dot
    )


def sql_of(expr: exp.Expr) -> str:
    """Return Spark SQL, as it was written but for its columns; equal text means equal values."""
    return str(_WrittenGenerator(dialect=_SPARK, comments=False).sql(expr.copy()))
