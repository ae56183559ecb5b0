"""A stored table as the relations under test read it."""

from __future__ import annotations

from sqlglot import parse_one

from livemart.plan.relations.relation import Expr, Scan


def sales(occurrence: int = 0) -> Scan:
    return Scan(occurrence, "s.sales", ("id", "shop", "at"), [frozenset({"id"})])


def expr(text: str) -> Expr:
    return parse_one(text, dialect="spark")
