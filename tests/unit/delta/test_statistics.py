"""Bounds of files: never narrower than their rows."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.dataset as pds

from livemart.delta.log import log_path
from livemart.delta.warehouse import Warehouse
from tests.unit.delta.small_tables import RELATION, tag


def test_a_filter_keeps_the_last_microsecond_of_a_file_that_spark_wrote(
    warehouse: Warehouse,
) -> None:
    """Spark cuts a timestamp's maximum to milliseconds; deltalake's dataset then loses rows."""
    last = datetime(2026, 1, 1, 23, 59, 59, 999_999, tzinfo=UTC)
    schema = pa.schema([("at", pa.timestamp("us", tz="UTC"))])
    warehouse.overwrite(RELATION, pa.table({"at": [last]}, schema=schema), tag(1))
    entry = log_path(warehouse.path(RELATION), 1)
    written = entry.read_text()
    entry.write_text(written.replace("2026-01-02T00:00:00.000Z", "2026-01-01T23:59:59.999Z"))
    assert entry.read_text() != written
    cold = Warehouse(warehouse.root)

    found = cold.read(
        RELATION, filter=pds.field("at") > pa.scalar(last.replace(microsecond=999_500))
    )

    assert found.num_rows == 1


def test_a_column_named_like_a_field_of_a_struct_is_read_without_bounds(
    warehouse: Warehouse,
) -> None:
    """The log's statistics, laid flat, give both of them one name."""
    rows = pa.table({"a": pa.array([{"b": 1}], pa.struct([("b", pa.int64())])), "a.b": [7]})
    warehouse.overwrite(RELATION, rows, tag(1))

    assert warehouse.read(RELATION, filter=pds.field("a.b") == 7).to_pylist() == rows.to_pylist()
    assert warehouse.highest(RELATION, "a.b") is None


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
