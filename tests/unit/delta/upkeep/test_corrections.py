"""Files that others wrote are given statistics by which no reader loses rows; no row changes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as pds
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from livemart.arrow.bags import WEIGHT
from livemart.delta.log import log_name
from livemart.delta.warehouse import Warehouse
from livemart.epoch import day_text
from tests.bag_histories import bag_of
from tests.disagreeing_values import BEYOND_PYTHON
from tests.other_readers import AWKWARD, WITH_NAN, files_of, publish
from tests.unit.delta.small_tables import RELATION, tag

NAN = float("nan")


def misstated(warehouse: Warehouse, rows: pa.Table, statistics: Mapping[str, Any]) -> Path:
    """Write a table of one file, of which the log says this."""
    warehouse.overwrite(RELATION, rows, tag(1))
    path = warehouse.path(RELATION) / log_name(1)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        if "add" in line:
            line["add"]["stats"] = json.dumps(statistics)
    path.write_text("\n".join(map(json.dumps, lines)))
    return warehouse.path(RELATION)


@pytest.mark.parametrize(
    ("values", "low", "high"),
    [
        # Spark gives none of a boolean; livemart gave none of a decimal.
        (pa.array([True, False]), {}, {}),
        (pa.array([Decimal("1.25"), None]), {}, {}),
        # Spark writes NaN as a bound, and nothing is below it in Arrow.
        (pa.array([1.5, NAN]), {"c": 1.5}, {"c": "NaN"}),
        # Nor has it one of a struct of NULLs.
        (pa.array([None, None], pa.struct([("x", pa.int64())])), {}, {}),
    ],
    ids=["boolean", "decimal", "NaN", "struct"],
)
def test_a_filter_finds_rows_once_the_file_is_corrected(
    warehouse: Warehouse, values: pa.Array, low: dict[str, Any], high: dict[str, Any]
) -> None:
    rows = pa.table({"c": values, "k": [1, 2]})
    statistics = {"numRecords": 2, "minValues": {"k": 1, **low}, "maxValues": {"k": 2, **high}}
    if not pa.types.is_nested(values.type):
        statistics["nullCount"] = {"c": values.null_count, "k": 0}
    path = misstated(warehouse, rows, statistics)
    cold = Warehouse(warehouse.root)
    passes = pds.field("c") == rows["c"][0] if rows["c"][0].is_valid else pds.field("c").is_null()
    assert DeltaTable(path).to_pyarrow_dataset().to_table(filter=passes).num_rows == 0

    assert cold.correct(RELATION) == (1, True)

    found = DeltaTable(path).to_pyarrow_dataset().to_table(filter=passes)
    assert found.column("k").to_pylist()[0] == 1
    assert cold.version(RELATION) == 2
    assert cold.correct(RELATION) == (0, True)
    assert bag_of(cold.read(RELATION)) == bag_of(rows)


@pytest.mark.parametrize("days", BEYOND_PYTHON["day"])
def test_a_file_with_days_that_python_does_not_have_is_read_once_it_is_corrected(
    warehouse: Warehouse, days: int
) -> None:
    """With their bounds as Spark 4.2 writes them, deltalake 1.6.6 opens no dataset."""
    rows = pa.table({"c": pa.array([days, None], pa.int32()).cast(pa.date32()), "k": [1, 2]})
    low, high = ({"k": key, "c": day_text(days)} for key in (1, 2))
    counts = {"numRecords": 2, "nullCount": {"k": 0, "c": 1}}
    path = misstated(warehouse, rows, {**counts, "minValues": low, "maxValues": high})
    cold = Warehouse(warehouse.root)

    assert cold.correct(RELATION) == (1, True)

    dataset = DeltaTable(path).to_pyarrow_dataset()
    found = dataset.to_table(filter=pds.field("c") == rows["c"][0])
    assert found.column("k").to_pylist() == [1]
    assert cold.correct(RELATION) == (0, True)


def test_a_correction_is_no_change(warehouse: Warehouse) -> None:
    rows = pa.table({"c": [True, False], "k": [1, 2]})
    said = {"numRecords": 2, "minValues": {"k": 1}, "maxValues": {"k": 2}, "nullCount": {"c": 0}}
    misstated(warehouse, rows, said)
    cold = Warehouse(warehouse.root)

    cold.correct(RELATION)

    assert cold.data_changed_between(RELATION, 1, 2) == []
    assert cold.newest_alike(RELATION, 1) == 2
    assert cold.changes(RELATION, 1, 2).num_rows == 0
    assert cold.changes(RELATION, 0, 2).column(WEIGHT).to_pylist() == [1, 1]
    assert cold.is_tagged(RELATION, tag(1))
    assert cold.row_count(RELATION) == 2


def test_files_without_a_column_that_came_later_tell_its_nulls(warehouse: Warehouse) -> None:
    rows = pa.table({"k": [1, 2]})
    warehouse.overwrite(RELATION, rows, tag(1))

    warehouse.add_columns(RELATION, [pa.field("later", pa.int64())], tag(2))

    dataset = DeltaTable(str(warehouse.path(RELATION))).to_pyarrow_dataset()
    assert dataset.to_table(filter=pds.field("later").is_null()).num_rows == 2
    assert dataset.to_table(filter=pds.field("later").is_valid()).num_rows == 0


def test_a_file_that_misleads_by_itself_is_written_again(warehouse: Warehouse) -> None:
    """As an earlier version wrote it: bounds that pass over NaN."""
    rows = pa.table({"real": [NAN, 1.0], "k": [1, 2]})
    warehouse.overwrite(RELATION, rows, tag(1))
    path = warehouse.path(RELATION)
    (file,) = path.glob("*.parquet")
    pq.write_table(rows, file, store_schema=False)
    cold = Warehouse(warehouse.root)

    assert cold.correct(RELATION) == (0, True)
    assert cold.correct(RELATION, looks_into_files=True) == (1, True)

    assert cold.correct(RELATION, looks_into_files=True) == (0, True)
    (new,) = [it for it in path.glob("*.parquet") if it != file]
    group = pq.ParquetFile(new).metadata.row_group(0)
    assert group.column(0).statistics is None
    assert bag_of(cold.read(RELATION)) == bag_of(rows)
    assert cold.changes(RELATION, 1, 2).num_rows == 0


@pytest.mark.parametrize(
    "column",
    [
        pa.array([[1.0]], pa.list_(pa.float64())),
        pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int32())),
        pa.array([{"x": [1]}], pa.struct([("x", pa.list_(pa.int64()))])),
        pa.array([b"x"], pa.binary()),
    ],
    ids=lambda column: str(column.type),
)
def test_a_table_without_a_column_that_has_bounds_needs_no_correction(
    warehouse: Warehouse, column: pa.Array
) -> None:
    warehouse.overwrite(RELATION, pa.table({"c": column}), tag(1))

    assert warehouse.correct(RELATION, looks_into_files=True) == (0, True)


def test_what_there_is_no_time_for_is_left(warehouse: Warehouse) -> None:
    rows = pa.table({"c": [True, False], "k": [1, 2]})
    misstated(warehouse, rows, {"numRecords": 2, "minValues": {"k": 1}, "maxValues": {"k": 2}})
    cold = Warehouse(warehouse.root)

    assert cold.correct(RELATION, seconds=-1) == (0, False)
    assert cold.correct(RELATION) == (1, True)


def test_files_of_the_small_lane_need_no_correction(tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path)
    for name, columns in (("awkward", AWKWARD), ("nan", WITH_NAN)):
        publish(warehouse, f"mart.{name}", files_of(columns))

        assert warehouse.correct(f"mart.{name}", looks_into_files=True) == (0, True)
