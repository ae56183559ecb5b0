"""Parses Spark SQL as a tree for the analysis; parts that change no row are left out.

Used wherever SQL is looked at. A construct that the parser does not know is a reason, not an error.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import pairwise
from typing import TypeVar

from sqlglot import Dialect, Token, TokenType, exp
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.optimizer.qualify import qualify

from livemart.errors import first_lines
from livemart.plan.reasons import refusal
from livemart.plan.sql.generated_columns import move_generators
from livemart.plan.sql.pivots import write_pivots
from livemart.plan.sql.struct_fields import name_fields
from livemart.plan.sql.written import WrittenParser, cut_texts, plain_text
from livemart.spark_sql import quoted

# Unknown syntax is a reason in the plan, not a line on the user's terminal.
logging.getLogger("sqlglot").setLevel(logging.CRITICAL)

_Tree = TypeVar("_Tree", bound=exp.Expr)

# Words that hold a query modifier or, before a bracket, name a function.
_BEFORE_FUNCTION = frozenset({TokenType.GROUP_BY, TokenType.COMMA})
# No item of a list begins so.
_NO_ITEM = frozenset(
    {
        *(TokenType.COMMA, TokenType.R_PAREN, TokenType.SEMICOLON, TokenType.FROM),
        *(TokenType.WHERE, TokenType.GROUP_BY, TokenType.HAVING, TokenType.ORDER_BY),
    }
)


def parse(text: str) -> exp.Expr:
    """Return the tree of one statement, without hints; tokens keep their offsets in `text`.

    Raises:
        Inapplicable: PARSE_UNSUPPORTED, for text that cannot be parsed or holds pipes.
    """
    try:
        tokens = tokens_of(text)
        _refuse_pipes(tokens)
        trees = WrittenParser(dialect="spark").parse([*tokens], text)
        if len(trees) != 1 or trees[0] is None:
            raise ParseError("not one statement")
        cut_texts(trees[0], tokens, text)
    except (SqlglotError, RecursionError) as error:
        raise refusal("PARSE_UNSUPPORTED", first_lines(error)) from error
    tree = trees[0]
    for hint in list(tree.find_all(exp.Hint)):
        hint.pop()
    return tree


def qualified(tree: _Tree, schema: Mapping[str, object], *, expand_stars: bool = True) -> _Tree:
    """Return a tree in which each column names its table and each star its columns.

    Args:
        tree: of a query; it is changed.
        schema: the columns of each table, by the name that the query calls it.
        expand_stars: else stars stay as they are written.
    """
    write_pivots(tree, schema)
    move_generators(tree)
    name_fields(tree, schema)
    return qualify(
        tree,
        schema=dict(schema),
        dialect="spark",
        expand_stars=expand_stars,
        validate_qualify_columns=False,
        quote_identifiers=False,
        identify=False,
    )


def words_of(text: str) -> str:
    """Return a text without comments, a blank between words, key words in lower case.

    >>> words_of("SELECT  a -- the first")
    'select a'
    """
    return plain_text(tokens_of(text), text)


def statement(text: str) -> str:
    """Return a text up to the semicolon that ends it.

    >>> statement("select 1 ; -- done")
    'select 1'
    """
    text = text.strip()
    try:
        tokens = tokens_of(text)
    except SqlglotError:
        return text.rstrip(";").rstrip()
    end = len(text)
    for token in reversed(tokens):
        if token.token_type is not TokenType.SEMICOLON:
            break
        end = token.start
    return text[:end].rstrip()


def selected(text: str, names: Iterable[str], alias: str) -> str:
    """Return SQL that yields some columns of a text, in this order; its lines stay in place."""
    listed = ", ".join(map(quoted, names))
    return f"select {listed} from ({statement(text)}\n) as {alias}"


# A way to cut a query looks at the same text many times.
@lru_cache(maxsize=16)
def tokens_of(text: str) -> tuple[Token, ...]:
    """Return the tokens of a text, without its comments; they keep their offsets."""
    tokens: list[Token] = list(Dialect.get_or_raise("spark").tokenize(text))
    for token in tokens:
        # The parser hands the list itself on to its tree, which adds to it.
        token.comments = []
    for place in range(1, len(tokens) - 1):
        before, token, after = tokens[place - 1 : place + 2]
        if (
            token.token_type is TokenType.WINDOW
            and before.token_type in _BEFORE_FUNCTION
            and after.token_type is TokenType.L_PAREN
        ):
            token.token_type = TokenType.VAR
    return tuple(tokens)


def has_empty_item(text: str) -> bool:
    """Return True if a comma has no item behind it, which the parser passes over.

    >>> [has_empty_item(text) for text in ("select a,, b from t", "select a, b from t", "")]
    [True, False, False]
    """
    kinds = [*(token.token_type for token in tokens_of(text)), TokenType.SEMICOLON]
    return any(kind is TokenType.COMMA and after in _NO_ITEM for kind, after in pairwise(kinds))


def _refuse_pipes(tokens: Iterable[Token]) -> None:
    for token in tokens:
        if token.token_type is TokenType.PIPE_GT:
            raise refusal("PARSE_UNSUPPORTED", "|> has no rule", token.line)
