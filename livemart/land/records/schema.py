"""Gives the columns of a source their Arrow types.

Used by the parser, by the tables that landing makes and by both of its lanes. A declared type has
one Arrow type, whichever lane writes it.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

import pyarrow as pa

from livemart.land.records.exact_values import TEXT
from livemart.project.graph import SourceTable
from livemart.project.landing_columns import (
    BATCH_ID,
    KEPT,
    LANDED_AT,
    OPERATION,
    ORIGIN,
    RESCUED,
    SEQUENCE,
)
from livemart.project.spark_types import SparkType, parse_type

TIMESTAMP = pa.timestamp("us", tz="UTC")
RESCUED_TYPE = pa.map_(pa.string(), pa.string())
LANDING_FIELDS = (
    pa.field(LANDED_AT, TIMESTAMP),
    pa.field(BATCH_ID, pa.int64()),
    pa.field(ORIGIN, pa.string()),
    pa.field(RESCUED, RESCUED_TYPE),
)

LANDING_NAMES = frozenset(field.name for field in LANDING_FIELDS)

_SCALARS = {
    "string": pa.string(),
    TEXT: pa.string(),
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "timestamp": TIMESTAMP,
    "timestamp_ntz": pa.timestamp("us"),
    "binary": pa.binary(),
}


# A column that a record did not hold is among the kept ones, with the sequence of the version whose
# value it keeps; without one if no version is known.
_ENVELOPE = (
    (OPERATION, SparkType("string")),
    (SEQUENCE, SparkType("string")),
    (KEPT, parse_type("map<string,string>")),
)


@dataclass(frozen=True, slots=True)
class Stamp:
    """The micro-batch that rows belong to."""

    batch_id: int
    landed_at: datetime


@dataclass(frozen=True)
class RecordSchema:
    """The columns of a source's records, in order: declared, of its envelope, of drift.

    `undeclared`: names of those of drift. Picklable: Spark's workers parse with it too.
    """

    columns: tuple[tuple[str, SparkType], ...]
    undeclared: frozenset[str] = frozenset()

    @classmethod
    def of(cls, source: SourceTable, added: Sequence[tuple[str, SparkType]] = ()) -> RecordSchema:
        """Return the schema of a source; `added` are columns of its table that it does not name."""
        declared = tuple(
            (column.name, parse_type(column.data_type or "string")) for column in source.columns
        )
        of_envelope = _ENVELOPE if source.stream and source.stream.record_rules.envelope else ()
        return cls((*declared, *of_envelope, *added), frozenset(name for name, _ in added))

    def without(self, names: Container[str]) -> RecordSchema:
        """Return the schema without some columns."""
        left = tuple(column for column in self.columns if column[0] not in names)
        return RecordSchema(left, self.undeclared)

    @property
    def names(self) -> list[str]:
        """Names of the columns, in order."""
        return [name for name, _ in self.columns]

    @cached_property
    def arrow(self) -> pa.Schema:
        """The columns as Arrow types, all nullable."""
        return pa.schema([pa.field(name, arrow_type(kind)) for name, kind in self.columns])

    @cached_property
    def landed(self) -> pa.Schema:
        """Columns of the landed table: those of the records and those that landing adds."""
        return pa.schema([*self.arrow, *LANDING_FIELDS])


def arrow_type(kind: SparkType) -> pa.DataType:
    """Return the Arrow type that tables and Spark use for a declared type."""
    match kind.name:
        case "decimal":
            return pa.decimal128(kind.precision, kind.scale)
        case "array":
            return pa.list_(pa.field("element", _inner(kind)))
        case "map":
            return pa.map_(pa.string(), _inner(kind))
        case "struct":
            return pa.struct([pa.field(name, arrow_type(member)) for name, member in kind.fields])
        case _:
            return _SCALARS[kind.name]


def _inner(kind: SparkType) -> pa.DataType:
    assert kind.element is not None
    return arrow_type(kind.element)
