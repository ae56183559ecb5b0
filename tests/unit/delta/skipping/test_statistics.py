"""Bounds of files: never narrower than their rows."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.dataset as pds
import pytest
from deltalake import write_deltalake

from livemart.arrow.change_sets import as_added
from livemart.delta.log import log_name
from livemart.delta.warehouse import Warehouse
from tests.other_readers import AWKWARD, WITH_NAN, Columns, files_of
from tests.unit.delta.small_tables import RELATION, tag


def test_a_filter_keeps_the_last_microsecond_of_a_file_that_spark_wrote(
    warehouse: Warehouse,
) -> None:
    """Spark cuts a timestamp's maximum to milliseconds; deltalake's dataset then loses rows."""
    last = datetime(2026, 1, 1, 23, 59, 59, 999_999, tzinfo=UTC)
    schema = pa.schema([("at", pa.timestamp("us", tz="UTC"))])
    warehouse.overwrite(RELATION, pa.table({"at": [last]}, schema=schema), tag(1))
    entry = warehouse.path(RELATION) / log_name(1)
    written = entry.read_text()
    entry.write_text(written.replace("2026-01-02T00:00:00.000Z", "2026-01-01T23:59:59.999Z"))
    assert entry.read_text() != written
    cold = Warehouse(warehouse.root)

    found = cold.read(
        RELATION, filter=pds.field("at") > pa.scalar(last.replace(microsecond=999_500))
    )

    assert found.num_rows == 1


@pytest.mark.parametrize(
    "written",
    [
        # In New York clocks were 4:56:02 behind, in Amsterdam 0:19:32 ahead.
        "1883-11-18T12:03:57.000-04:56",
        "1883-11-18T17:19:31.000+00:19",
    ],
)
def test_a_filter_keeps_old_times_of_a_file_that_spark_wrote_in_a_zone(
    warehouse: Warehouse, written: str
) -> None:
    """Spark leaves the seconds of an offset out, in both bounds."""
    moment = datetime(1883, 11, 18, 16, 59, 59, tzinfo=UTC)
    schema = pa.schema([("at", pa.timestamp("us", tz="UTC"))])
    warehouse.overwrite(RELATION, pa.table({"at": [moment]}, schema=schema), tag(1))
    entry = warehouse.path(RELATION) / log_name(1)
    before = entry.read_text()
    entry.write_text(before.replace("1883-11-18T16:59:59.000Z", written))
    assert entry.read_text() != before
    cold = Warehouse(warehouse.root)

    found = cold.read(RELATION, filter=pds.field("at") == pa.scalar(moment, schema.types[0]))

    assert found.num_rows == 1
    assert cold.newest(RELATION, "at") == moment


def test_a_column_named_like_a_field_of_a_struct_is_read_without_bounds(
    warehouse: Warehouse,
) -> None:
    """The log's statistics, laid flat, give both of them one name."""
    rows = pa.table({"a": pa.array([{"b": 1}], pa.struct([("b", pa.int64())])), "a.b": [7]})
    warehouse.overwrite(RELATION, rows, tag(1))

    assert warehouse.read(RELATION, filter=pds.field("a.b") == 7).to_pylist() == rows.to_pylist()
    assert warehouse.files(RELATION).bounds.highest("a.b") is None


def test_the_newest_value_is_that_of_a_row_not_of_the_statistics(warehouse: Warehouse) -> None:
    """Files say no more than milliseconds."""
    schema = pa.schema([("at", pa.timestamp("us", tz="UTC")), ("day", pa.date32())])
    moments = [datetime(2026, 1, 1, 12, 0, 0, micros, tzinfo=UTC) for micros in (1_200, 1_400)]
    rows = pa.table({"at": [*moments, None], "day": [moments[0].date(), None, None]}, schema=schema)
    warehouse.overwrite(RELATION, rows.slice(0, 0), tag(1))
    assert warehouse.newest(RELATION, "at") is None
    warehouse.overwrite(RELATION, rows, tag(2))

    assert warehouse.newest(RELATION, "at") == moments[1]
    assert warehouse.newest(RELATION, "day") == moments[0].date()
    assert warehouse.newest(RELATION, "at", 1) is None


@pytest.mark.parametrize("moment", [datetime.min, datetime.max])
def test_the_newest_value_may_be_the_first_or_the_last_that_there_is(
    warehouse: Warehouse, moment: datetime
) -> None:
    """A bound that is widened by milliseconds is outside of Python's years."""
    schema = pa.schema([("at", pa.timestamp("us", tz="UTC")), ("day", pa.date32())])
    row = {"at": moment.replace(tzinfo=UTC), "day": moment.date()}
    warehouse.overwrite(RELATION, pa.Table.from_pylist([row], schema=schema), tag(1))

    assert {name: warehouse.newest(RELATION, name) for name in row} == row


@pytest.mark.parametrize("columns", [AWKWARD, WITH_NAN], ids=["awkward", "with NaN"])
def test_filters_are_right_by_the_bounds_of_another_writer(
    warehouse: Warehouse, columns: Columns
) -> None:
    """deltalake 1.6.6 cuts texts, spells decimals as JSON floats, and leaves NaN out."""
    files = files_of(columns)
    path = warehouse.path(RELATION)
    for rows in files:
        write_deltalake(str(path), rows, mode="append")
    whole = pds.dataset(pa.concat_tables(files))

    for name, (kind, values) in columns.items():
        held = {repr(it): it for file in values for it in file if it is not None}
        if pa.types.is_nested(kind):
            continue
        for value in held.values():
            field, scalar = pds.field(name), pa.scalar(value, kind)
            for passes in (field == scalar, field > scalar, field <= scalar, field.is_null()):
                found = warehouse.read(RELATION, columns=["n"], filter=passes).column("n")
                expected = whole.to_table(columns=["n"], filter=passes).column("n")
                assert sorted(found.to_pylist()) == sorted(expected.to_pylist())


def test_the_newest_value_is_found_below_a_bound_that_is_wide(warehouse: Warehouse) -> None:
    """Another writer's bounds may be as wide as it likes."""
    moment = datetime(2026, 1, 1, 12, tzinfo=UTC)
    schema = pa.schema([("at", pa.timestamp("us", tz="UTC"))])
    warehouse.overwrite(RELATION, pa.table({"at": [moment]}, schema=schema), tag(1))
    entry = warehouse.path(RELATION) / log_name(1)
    written = entry.read_text().replace(
        '"maxValues\\":{\\"at\\":\\"2026', '"maxValues\\":{\\"at\\":\\"2027'
    )
    assert "2027" in written
    entry.write_text(written)

    assert Warehouse(warehouse.root).newest(RELATION, "at") == moment


def test_a_file_can_hold_a_value_below_another_unless_its_bounds_say_more(
    warehouse: Warehouse,
) -> None:
    schema = pa.schema([("day", pa.date32()), ("days", pa.list_(pa.date32()))])
    warehouse.create(RELATION, schema)
    rows = pa.table({"day": pa.array([5, None], pa.int32()), "days": pa.nulls(2)}).cast(schema)
    warehouse.commit(RELATION, as_added(rows), tag(1))
    bounds = warehouse.files(RELATION).bounds

    for first, may_be in ((5, False), (6, True)):
        scalar = pa.scalar(first, pa.int32()).cast(pa.date32())
        assert bounds.may_begin_before("day", scalar).tolist() == [may_be]
    assert bounds.may_begin_before("days", None).tolist() == [True]
