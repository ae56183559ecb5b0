"""Decides `apply_as_deletes`, a condition on a row: by Arrow where that is equal, else by Spark."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import sqlglot
from sqlglot import exp

from livemart.spark.arrow_views import to_view

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_POSITION = "_position"
Mask = Callable[[pa.Table], Any]


def holds(condition: str | None, rows: pa.Table, spark: SparkSession) -> np.ndarray:
    """Return where a condition is true (boolean array); NULL is not true.

    Args:
        condition: SQL on the columns of `rows`; None holds nowhere.
        rows: at least the columns that it names.
        spark: asked only if Arrow has no such operation, or not Spark's.
    """
    if condition is None or not rows.num_rows:
        return np.zeros(rows.num_rows, dtype=bool)
    mask = compile_condition(condition, rows.schema)
    if mask is not None:
        return np.asarray(pc.fill_null(mask(rows), False))
    return _by_spark(condition, rows, spark)


def compile_condition(condition: str, schema: pa.Schema) -> Mask | None:
    """Return the condition as a function on tables, None if only Spark can evaluate it.

    Known: comparisons of string, integer and boolean columns with a literal of their type, IN,
    IS NULL, AND, OR, NOT.
    """
    # Escapes in literals are read by Spark alone.
    if "\\" in condition:
        return None
    return _compile(sqlglot.parse_one(condition, dialect="spark"), schema)


def _by_spark(condition: str, rows: pa.Table, spark: SparkSession) -> np.ndarray:
    names = {
        column.parts[0].name.lower()
        for column in sqlglot.parse_one(condition, dialect="spark").find_all(exp.Column)
    }
    view = f"_livemart_rows_{uuid.uuid4().hex}"
    used = rows.select([name for name in rows.column_names if name.lower() in names])
    positions = pa.array(np.arange(rows.num_rows), pa.int64())
    to_view(spark, view, used.append_column(_POSITION, positions))
    try:
        matching = spark.sql(f"select {_POSITION} from {view} where {condition}").toArrow()
    finally:
        spark.catalog.dropTempView(view)
    mask = np.zeros(rows.num_rows, dtype=bool)
    mask[matching.column(_POSITION).to_numpy()] = True
    return mask


def _compile(node: exp.Expr, schema: pa.Schema) -> Mask | None:
    match node:
        case exp.Paren():
            return _compile(node.this, schema)
        case exp.Not():
            inner = _compile(node.this, schema)
            return None if inner is None else lambda rows: pc.invert(inner(rows))
        case exp.And() | exp.Or():
            left, right = _compile(node.left, schema), _compile(node.right, schema)
            if left is None or right is None:
                return None
            join = pc.and_kleene if isinstance(node, exp.And) else pc.or_kleene
            return lambda rows: join(left(rows), right(rows))
        case exp.EQ() | exp.NEQ():
            return _comparison(node, schema)
        case exp.In() if node.expressions and not node.args.get("query"):
            return _membership(node, schema)
        case exp.Is() if isinstance(node.expression, exp.Null):
            name = _column(node.this, schema)
            return None if name is None else lambda rows: pc.is_null(rows.column(name))
        case exp.Column():
            name = _column(node, schema)
            if name is None or not pa.types.is_boolean(schema.field(name).type):
                return None
            return lambda rows: rows.column(name)
        case _:
            return None


def _comparison(node: exp.Binary, schema: pa.Schema) -> Mask | None:
    name = _column(node.left, schema)
    value = None if name is None else _literal(node.right, schema.field(name).type)
    if name is None or value is None:
        return None
    compare = pc.equal if isinstance(node, exp.EQ) else pc.not_equal
    return lambda rows: compare(rows.column(name), value)


def _membership(node: exp.In, schema: pa.Schema) -> Mask | None:
    name = _column(node.this, schema)
    if name is None:
        return None
    values = [_literal(item, schema.field(name).type) for item in node.expressions]
    literals = [value for value in values if value is not None]
    if len(literals) < len(values):
        return None
    return lambda rows: reduce(
        pc.or_kleene, (pc.equal(rows.column(name), value) for value in literals)
    )


def _column(node: exp.Expr, schema: pa.Schema) -> str | None:
    if not isinstance(node, exp.Column) or len(node.parts) != 1:
        return None
    lowered = node.name.lower()
    return next((name for name in schema.names if name.lower() == lowered), None)


def _literal(node: exp.Expr, kind: pa.DataType) -> pa.Scalar | None:
    if pa.types.is_string(kind) and isinstance(node, exp.Literal) and node.is_string:
        return pa.scalar(node.this, kind)
    if pa.types.is_integer(kind) and isinstance(node, exp.Literal) and not node.is_string:
        # A longer one is a decimal.
        is_long = node.this.isdigit() and int(node.this) < 2**63
        return pa.scalar(int(node.this), pa.int64()) if is_long else None
    if pa.types.is_boolean(kind) and isinstance(node, exp.Boolean):
        return pa.scalar(bool(node.this), kind)
    return None
