"""Defines column types that compare, sort and keep values alike on SQLite and PostgreSQL.

Used by the tables of the store. SQLite lacks decimals, times and NaN: each has a form there that
compares as the value itself does.
"""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from decimal import Context, Decimal
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeDecorator, TypeEngine

from livemart.epoch import epoch_micros, epoch_moment
from livemart.store.value_forms import decimal_size

_POSTGRESQL = "postgresql"
# More digits than any decimal of Spark has, so that nothing is rounded on the way.
_CONTEXT = Context(prec=80)


class PlainText(TypeDecorator[str]):
    """Text ordered by code point. PostgreSQL cannot store NUL: it becomes U+FFFD there."""

    impl = sa.Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return sa.Text(collation="C") if dialect.name == _POSTGRESQL else sa.Text()

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        return value if value is None else stored_text(value, dialect.name)


def stored_text(text: str, dialect_name: str) -> str:
    """Return a text as a database holds it; see `PlainText`."""
    return text.replace("\0", "\ufffd") if dialect_name == _POSTGRESQL else text


class Instant(TypeDecorator[datetime]):
    """A moment, UTC, to the microsecond; on SQLite microseconds since 1970."""

    impl = sa.BigInteger
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        if dialect.name == _POSTGRESQL:
            return sa.DateTime(timezone=True)
        return sa.BigInteger()

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> Any:
        if value is None or dialect.name == _POSTGRESQL:
            return value
        return epoch_micros(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        if isinstance(value, datetime):
            return value.astimezone(UTC)
        return epoch_moment(value)


class ExactDecimal(TypeDecorator[Decimal]):
    """A decimal with all its digits; on SQLite text, which a float never touches.

    Order on SQLite needs the collation `livemart_decimal`; see `in_order`.
    """

    impl = sa.Text
    cache_ok = True

    def __init__(self, precision: int, scale: int) -> None:
        super().__init__()
        self.precision = precision
        self.scale = scale
        self._unit = Decimal(1).scaleb(-scale)

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        if dialect.name == _POSTGRESQL:
            return sa.Numeric(self.precision, self.scale)
        return sa.Text()

    def process_bind_param(self, value: Decimal | int | None, dialect: Dialect) -> Any:
        if value is None or dialect.name == _POSTGRESQL:
            return value
        # Zero has one text, as it has one value.
        exact = Decimal(value) or Decimal(0)
        fitted = exact.quantize(self._unit, context=_CONTEXT)
        # A value between two of this scale equals none of them.
        return format(fitted if fitted == exact else exact, "f")

    def process_result_value(self, value: Any, dialect: Dialect) -> Decimal | None:
        return None if value is None else Decimal(value)


class _PlainDouble(sa.types.UserDefinedType[float]):
    """A column of doubles that passes values on; SQLAlchemy's own converts them to float."""

    cache_ok = True

    def get_col_spec(self, **_: Any) -> str:
        return "DOUBLE PRECISION"


class Float(TypeDecorator[float]):
    """A double. SQLite turns NaN into NULL, so NaN is text there, behind all numbers."""

    impl = sa.Double
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return sa.Double() if dialect.name == _POSTGRESQL else _PlainDouble()

    def process_bind_param(self, value: float | None, dialect: Dialect) -> Any:
        if value is not None and dialect.name != _POSTGRESQL and math.isnan(value):
            return "NaN"
        return value

    def process_result_value(self, value: Any, dialect: Dialect) -> float | None:
        return None if value is None else float(value)


class Json(TypeDecorator[Any]):
    """A JSON value as text, written in one way only."""

    impl = sa.Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:
        return None if value is None else write_json(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:
        return None if value is None else json.loads(value)


def write_json(value: Any) -> str:
    """Return compact JSON; text beyond ASCII is escaped, NUL too, so every database takes it."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def sql_type(kind: str) -> TypeEngine[Any]:
    """Return the type of a served column of this kind."""
    if size := decimal_size(kind):
        return ExactDecimal(*size)
    column_type: TypeEngine[Any] = _TYPES.get(kind, PlainText)()
    return column_type


_TYPES: dict[str, type[TypeEngine[Any]]] = {
    "bigint": sa.BigInteger,
    "int": sa.Integer,
    "float": Float,
    "double": Float,
    "boolean": sa.Boolean,
    "date": sa.Date,
    "timestamp": Instant,
    "timestamp_ntz": Instant,
    "json": Json,
    "binary": sa.LargeBinary,
}


def in_order(column: sa.ColumnElement[Any], dialect_name: str) -> sa.ColumnElement[Any]:
    """Return the expression that sorts a column by its values, not by their text."""
    if isinstance(column.type, ExactDecimal) and dialect_name != _POSTGRESQL:
        return sa.collate(sa.type_coerce(column, sa.Text), "livemart_decimal")
    return column


def compare_decimals(left: str, right: str) -> int:
    """Compare two decimals written as text (the collation `livemart_decimal`)."""
    first, second = Decimal(left), Decimal(right)
    return (first > second) - (first < second)
