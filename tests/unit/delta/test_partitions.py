"""Partition values: the same from table to log and back."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from livemart.delta.partitions import (
    BLANKS,
    blank_columns,
    is_blank,
    partition_text,
    partition_value,
    split_partitions,
)
from livemart.delta.warehouse import Warehouse
from tests.bag_histories import (
    weights_of,
)
from tests.unit.delta.small_tables import RELATION, SMALL, diff, tag


@pytest.mark.parametrize("blank", BLANKS)
def test_some_texts_in_a_partition_column_are_null_as_spark_writes_them(
    warehouse: Warehouse, blank: str
) -> None:
    warehouse.create(RELATION, SMALL, partition_by=["name"])

    warehouse.commit(RELATION, diff((1, blank, 0, 1)), tag(1))

    assert warehouse.read(RELATION).to_pylist() == [{"id": 1, "name": None}]
    assert weights_of(warehouse.changes(RELATION, 0, 1)) == {(1, None): 1}


def test_what_is_stored_as_null_and_where() -> None:
    schema = pa.schema([("k", pa.string()), ("day", pa.date32()), ("n", pa.string())])

    assert blank_columns(schema, ("day", "k")) == {"k"}
    assert is_blank(pa.array(["", " ", None, BLANKS[1]])).to_pylist() == [True, False, True, True]


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("a b/ü", pa.string()),
        (-3, pa.int32()),
        (True, pa.bool_()),
        (date(2026, 3, 1), pa.date32()),
        (datetime(2026, 3, 1, 12, 0, 0, 5, tzinfo=UTC), pa.timestamp("us", tz="UTC")),
        (datetime(2026, 3, 1, 12), pa.timestamp("us")),
        (datetime(826, 3, 1, 12, tzinfo=UTC), pa.timestamp("us", tz="UTC")),
        (Decimal("1.50"), pa.decimal128(10, 2)),
        (1.5, pa.float64()),
    ],
)
def test_a_value_survives_the_spelling_of_the_log(value: object, kind: pa.DataType) -> None:
    text = partition_text(value)

    assert text is not None
    assert partition_value(text, kind).as_py() == value


def test_rows_are_split_by_all_partition_columns_in_their_order() -> None:
    rows = pa.table({"day": ["a", "b", "a", None], "shop": [1, 1, 2, 1], "n": [1, 2, 3, 4]})

    parts = list(split_partitions(rows, ["day", "shop"]))

    by_values = {tuple(values.values()): part.column("n").to_pylist() for values, part in parts}
    assert by_values == {
        ("a", "1"): [1],
        ("a", "2"): [3],
        ("b", "1"): [2],
        (None, "1"): [4],
    }
    assert list(split_partitions(rows, ())) == [({}, rows)]
    assert list(split_partitions(rows.slice(0, 0), ())) == []
