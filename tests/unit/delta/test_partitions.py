"""Partition values: the same from table to log and back."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from livemart.arrow.change_sets import as_added
from livemart.delta.log import log_name
from livemart.delta.partitions import (
    BLANKS,
    FarPartitionError,
    blank_columns,
    is_blank,
    partition_text,
    partition_value,
    split_partitions,
)
from livemart.delta.warehouse import Warehouse
from livemart.errors import RefreshError
from tests.bag_histories import weights_of
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
    text = partition_text(pa.scalar(value, kind))

    assert text is not None
    assert partition_value(text, kind).as_py() == value


_AT, _LOCAL = pa.timestamp("us", tz="UTC"), pa.timestamp("us")


@pytest.mark.parametrize(
    ("number", "kind", "text"),
    [
        (2_932_897, pa.date32(), "+10000-01-01"),
        (-719_163, pa.date32(), "0000-12-31"),
        (-721_354, pa.date32(), "-0005-01-01"),
        (253_402_300_800_000_001, _AT, "+10000-01-01T00:00:00.000001Z"),
        (-1, _AT, "1969-12-31T23:59:59.999999Z"),
        (0, _AT, "1970-01-01T00:00:00.000000Z"),
        (253_402_300_800_000_010, _LOCAL, "+10000-01-01 00:00:00.00001"),
        (-62_167_219_200_000_001, _LOCAL, "-0001-12-31 23:59:59.999999"),
        (0, _LOCAL, "1970-01-01 00:00:00"),
        # Here Spark 4.2.0 writes year and era without the era: 0002, which is another moment.
        (-62_167_219_200_000_001, _AT, "-0001-12-31T23:59:59.999999Z"),
    ],
)
def test_days_and_times_are_spelled_as_spark_spells_them_in_any_year(
    number: int, kind: pa.DataType, text: str
) -> None:
    counted = pa.int32() if pa.types.is_date32(kind) else pa.int64()
    value = pa.scalar(number, counted).cast(kind)

    assert partition_text(value) == text
    assert partition_value(text, kind) == value


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (0.1, pa.float32(), "0.1"),
        (16_777_216.0, pa.float32(), "1.6777216E7"),
        (-3.4028234663852886e38, pa.float32(), "-3.4028235E38"),
        (9_999_999.0, pa.float64(), "9999999.0"),
        (123_456_789.125, pa.float64(), "1.23456789125E8"),
        (1e-3, pa.float64(), "0.001"),
        (1e-4, pa.float64(), "1.0E-4"),
        (-0.0, pa.float64(), "-0.0"),
        (float("-inf"), pa.float64(), "-Infinity"),
        (Decimal("0E-18"), pa.decimal128(38, 18), "0E-18"),
        (Decimal("-1E-18"), pa.decimal128(38, 18), "-1E-18"),
        (Decimal("0.00"), pa.decimal128(10, 2), "0.00"),
    ],
)
def test_numbers_are_spelled_as_spark_spells_them(
    value: object, kind: pa.DataType, text: str
) -> None:
    """Else Spark's OPTIMIZE takes files of one value for files of two partitions."""
    assert partition_text(pa.scalar(value, kind)) == text
    assert partition_value(text, kind) == pa.scalar(value, kind)


@pytest.mark.parametrize("day", [95_026_600, -96_465_700])
def test_a_day_by_which_no_reader_but_spark_could_open_the_table_is_refused(
    warehouse: Warehouse, day: int
) -> None:
    """deltalake 1.6.6 has no days of such years, and refuses the log."""
    schema = pa.schema([("id", pa.int64()), ("day", pa.date32())])
    warehouse.create(RELATION, schema, partition_by=["day"])
    for number, days in enumerate((2_932_897, day), 1):
        row = pa.table({"id": [number], "day": pa.array([days], pa.int32()).cast(pa.date32())})
        if number == 1:
            warehouse.commit(RELATION, as_added(row), tag(number))
        else:
            with pytest.raises(FarPartitionError, match=r"PARTITION_VALUES_LOST: .*found day = "):
                warehouse.commit(RELATION, as_added(row), tag(number))

    assert warehouse.read(RELATION).column("day").cast(pa.int32()).to_pylist() == [2_932_897]
    # Spark writes such a day all the same.
    entry = warehouse.path(RELATION) / log_name(1)
    entry.write_text(entry.read_text().replace('"+10000-01-01"', '"+300000-01-01"'))
    with pytest.raises(RefreshError, match=r"PARTITION_VALUES_LOST.*found \+300000-01-01, a date"):
        Warehouse(warehouse.root).read(RELATION)


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
