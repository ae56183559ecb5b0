"""Spells the names of columns in trees: one spelling for each, which Spark reads as that name.

Used by the planner and wherever it makes a column. Expressions are compared by their text, so a
name is quoted or not by what it is, however the analyst wrote it.
"""

from __future__ import annotations

import re
from functools import lru_cache

from sqlglot import Dialect, TokenType, exp

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Spark calls these without brackets; as columns they need quotes.
_CALLED = re.compile(r"current_\w+|session_user|user|localtime|localtimestamp", re.IGNORECASE)
_WRITTEN = "written_name"


@lru_cache(maxsize=4096)
def is_plain(name: str) -> bool:
    """Return True for a name that needs no quotes: `null` would be no column without.

    >>> is_plain("order_id"), is_plain("null"), is_plain("größe")
    (True, False, False)
    """
    if not _PLAIN.fullmatch(name) or _CALLED.fullmatch(name):
        return False
    (token, *_) = Dialect.get_or_raise("spark").tokenize(name)
    return bool(token.token_type is TokenType.VAR)


def column(name: str, table: str | None = None) -> exp.Column:
    """Return a column reference."""
    return exp.Column(this=_identifier(name), table=None if table is None else _identifier(table))


def note_names(tree: exp.Expr) -> None:
    """Note how each name is written, before the parser takes all of them to lower case."""
    for identifier in tree.find_all(exp.Identifier):
        identifier.meta[_WRITTEN] = identifier.name


def even_out(tree: exp.Expr) -> None:
    """Give each name its one spelling.

    A name behind a dot that follows a value stays as it is written: it may be a key of a map, whose
    letter case matters.
    """
    for identifier in tree.find_all(exp.Identifier):
        if isinstance(identifier.parent, exp.Dot) and identifier.arg_key == "expression":
            identifier.set("this", identifier.meta.get(_WRITTEN, identifier.name))
        identifier.set("quoted", not is_plain(identifier.name))


def _identifier(name: str) -> exp.Identifier:
    return exp.Identifier(this=name, quoted=not is_plain(name))
