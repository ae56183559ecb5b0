"""Data files: what is written is read back, and the log's statistics never exclude a row."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from livemart.delta.log import Action
from livemart.delta.parquet import (
    in_parallel,
    open_file,
    read_change_file,
    write_change_files,
    write_files,
)
from livemart.delta.partitions import PartitionValues
from livemart.storage.opening import open_storage
from livemart.storage.storage import Storage
from tests.services.bucket import Buckets
from tests.storages import bucket_server, storage_in_bucket  # noqa: F401

SCHEMA = pa.schema(
    [
        ("name", pa.string()),
        ("at", pa.timestamp("us", tz="UTC")),
        ("day", pa.date32()),
        ("number", pa.int64()),
        ("amount", pa.decimal128(10, 2)),
        ("tags", pa.list_(pa.string())),
    ]
)
ROW: dict[str, Any] = {
    "name": "x" * 40,
    "at": datetime(2026, 3, 1, 12, 0, 0, 999_999, tzinfo=UTC),
    "day": date(2026, 3, 1),
    "number": -(2**62),
    "amount": Decimal("1.25"),
    "tags": ["a", None],
}


def written_files(
    table: Storage, parts: Sequence[tuple[PartitionValues, pa.Table]]
) -> Sequence[Action]:
    """Write a file for each part; all of its columns have statistics."""
    return write_files(table, parts, parts[0][1].column_names)


def statistics_of(tmp_path: Path, *rows: dict[str, Any]) -> dict[str, Any]:
    (action,) = written_files(
        open_storage(tmp_path), [({}, pa.Table.from_pylist(list(rows), SCHEMA))]
    )
    statistics: dict[str, Any] = json.loads(action["add"]["stats"])
    return statistics


def test_rows_are_read_back_with_their_partition(tmp_path: Path) -> None:
    rows = pa.Table.from_pylist([ROW, dict.fromkeys(SCHEMA.names)], SCHEMA)
    region = pa.field("region", pa.string())

    (action,) = written_files(open_storage(tmp_path), [({"region": "é/1 %"}, rows)])

    read = read_change_file(open_storage(tmp_path), action["add"], SCHEMA.append(region))
    assert read.drop_columns(["region"]).to_pylist() == rows.to_pylist()
    assert read.column("region").to_pylist() == ["é/1 %"] * 2


def test_a_dictionary_is_made_of_values_that_repeat(tmp_path: Path) -> None:
    count = 20_000
    keys, statuses = (pa.array(range(n)).cast(pa.string()) for n in (count, 3))
    rows = pa.table(
        {
            "key": keys,
            "status": statuses.take(pa.array(np.arange(count) % 3)),
            "tags": pa.array([["a", "b"]] * count),
            "nothing": pa.nulls(count, pa.string()),
        }
    )

    (action,) = written_files(open_storage(tmp_path), [({}, rows)])

    written = pq.ParquetFile(tmp_path / action["add"]["path"]).metadata.row_group(0)
    columns = [written.column(number) for number in range(written.num_columns)]
    has_dictionary = {it.path_in_schema.split(".")[0]: it.has_dictionary_page for it in columns}
    assert has_dictionary == {"key": False, "status": True, "tags": False, "nothing": True}
    assert read_change_file(open_storage(tmp_path), action["add"], rows.schema).equals(rows)


def test_the_largest_file_of_a_commit_speaks_for_all_of_them(tmp_path: Path) -> None:
    """Three different rows say nothing about a table, wherever they are among the others."""
    large = pa.table({"status": ["open", "held"] * 50})
    small = pa.table({"status": ["open", "held", "closed"]})

    actions = written_files(open_storage(tmp_path), [({}, small), ({}, large), ({}, small)])

    paths = [tmp_path / action["add"]["path"] for action in actions]
    columns = [pq.ParquetFile(path).metadata.row_group(0).column(0) for path in paths]
    assert [column.has_dictionary_page for column in columns] == [True] * 3


def test_a_change_file_keeps_its_kinds_and_lacks_later_columns(tmp_path: Path) -> None:
    rows = pa.table({"number": [1], "_change_type": ["insert"]})
    (action,) = write_change_files(open_storage(tmp_path), [({}, rows)])
    later = pa.schema(
        [("number", pa.int64()), ("later", pa.string()), ("_change_type", pa.string())]
    )

    read = read_change_file(open_storage(tmp_path), action["cdc"], later)

    assert read.to_pylist() == [{"number": 1, "later": None, "_change_type": "insert"}]


def test_bounds_of_texts_and_times_are_widened_never_cut(tmp_path: Path) -> None:
    statistics = statistics_of(tmp_path, ROW)

    low, high = statistics["minValues"], statistics["maxValues"]
    assert low["name"] <= ROW["name"] <= high["name"]
    assert low["at"] == "2026-03-01T12:00:00.999Z"
    assert high["at"] == "2026-03-01T12:00:01.000Z"
    assert (low["number"], high["number"]) == (ROW["number"], ROW["number"])
    assert (low["day"], high["day"]) == ("2026-03-01", "2026-03-01")
    assert (low["amount"], high["amount"]) == (1.25, 1.25)
    assert "tags" not in low


def test_bounds_are_those_of_the_rows(tmp_path: Path) -> None:
    """Parquet names them, but for long texts; a column `a.b` is no field of a struct."""
    numbers = [None, -3, 7, 5]
    rows = pa.table(
        {
            **{str(kind): pa.array(numbers, kind) for kind in (pa.int8(), pa.int16(), pa.int32())},
            "int64": pa.array([None, -(2**63), 2**63 - 1, 0]),
            "day": pa.array(numbers, pa.int32()).cast(pa.date32()),
            "local": pa.array(numbers).cast(pa.timestamp("us")),
            "text": ["é", "z", None, "Z"],
            "long": ["a" * 5_000, "b", "b" * 5_000, None],
            "a.b": [3, 1, 2, 4],
            "a": pa.array([{"b": 9}] * 4),
        }
    )

    (action,) = written_files(open_storage(tmp_path), [({}, rows)])

    statistics = json.loads(action["add"]["stats"])
    low, high = statistics["minValues"], statistics["maxValues"]
    assert [(low[name], high[name]) for name in ("int8", "int16", "int32")] == [(-3, 7)] * 3
    assert (low["int64"], high["int64"]) == (-(2**63), 2**63 - 1)
    assert (low["day"], high["day"]) == ("1969-12-29", "1970-01-08")
    assert (low["local"], high["local"]) == ("1969-12-31T23:59:59.999", "1970-01-01T00:00:00.001")
    assert (low["text"], high["text"]) == ("Z", "é")
    assert (low["long"], high["long"][:32]) == ("a" * 32, "b" * 32)
    assert (low["a.b"], high["a.b"]) == (1, 4)


def test_a_column_with_nan_has_no_bounds_in_its_file(tmp_path: Path) -> None:
    """pyarrow's bounds exclude NaN; for Spark 4.2 and DuckDB 2.0 it is above all numbers."""
    nan = float("nan")
    rows = pa.table(
        {
            "real": [nan, 1.0],
            "half": pa.array([1.0, nan], pa.float32()),
            "whole": [1, 2],
            "usual": [0.5, 1.5],
            "list": [[1.0], [nan, None]],
            "pair": [{"x": nan, "y": 1.0}, None],
            "map": pa.array([[("a", nan)], None], pa.map_(pa.string(), pa.float64())),
            "words": [["a"], ["b"]],
            "a.b": [1.0, nan],
            "a": [{"b": 1.0}, {"b": 2.0}],
        }
    )

    (action,) = written_files(open_storage(tmp_path), [({}, rows)])

    group = pq.ParquetFile(tmp_path / action["add"]["path"]).metadata.row_group(0)
    bounded = {
        column.path_in_schema
        for place in range(group.num_columns)
        if (column := group.column(place)).statistics is not None and column.statistics.has_min_max
    }
    assert bounded == {
        *("whole", "usual", "pair.y", "map.key_value.key", "words.list.element"),
    }
    # deltalake takes a bound that is missing for NULL and skips the file: so none is there.
    assert json.loads(action["add"]["stats"]) == {
        "numRecords": 2,
        "nullCount": {"real": 0, "half": 0, "whole": 0, "usual": 0, "a.b": 0},
    }


def test_no_dictionary_holds_a_zero(tmp_path: Path) -> None:
    """Spark 4.2 looks for 0.0 in a dictionary by its bits, and passes over -0.0; so for -0.0."""
    zeros = {"real": [0.0, 1.0] * 50, "half": pa.array([1.0, -0.0] * 50, pa.float32())}
    usual = {"same": [2.0, 1.0] * 50, "list": [[-0.0]] * 100, "pair": [{"x": -0.0}] * 100}
    rows = pa.table({**zeros, **usual})

    # The largest part speaks for what repeats, each for its zeros.
    actions = written_files(
        open_storage(tmp_path), [({}, rows.set_column(0, "real", rows["same"])), ({}, rows)]
    )

    has_dictionary = []
    for action in actions:
        group = pq.ParquetFile(tmp_path / action["add"]["path"]).metadata.row_group(0)
        columns = [group.column(place) for place in range(group.num_columns)]
        has_dictionary.append({it.path_in_schema for it in columns if it.has_dictionary_page})
    assert has_dictionary == [{"real", "same"}, {"same"}]


def test_a_column_that_is_named_as_the_field_of_a_struct_gives_it_no_dictionary(
    tmp_path: Path,
) -> None:
    rows = pa.table({"pair.x": ["a"] * 100, "pair": [{"x": -0.0}] * 100, "other": ["b"] * 100})

    (action,) = written_files(open_storage(tmp_path), [({}, rows)])

    group = pq.ParquetFile(tmp_path / action["add"]["path"]).metadata.row_group(0)
    columns = [group.column(place) for place in range(group.num_columns)]
    assert [it.has_dictionary_page for it in columns] == [False, False, True]


def test_files_have_no_bounds_of_pages_and_no_bloom_filters(tmp_path: Path) -> None:
    """Readers would skip pages by them, but livemart does not ensure that they are true."""
    rows = pa.Table.from_pylist([ROW] * 100, SCHEMA)

    (action,) = written_files(open_storage(tmp_path), [({}, rows)])

    group = pq.ParquetFile(tmp_path / action["add"]["path"]).metadata.row_group(0)
    columns = [group.column(place) for place in range(group.num_columns)]
    assert not any(it.has_column_index or it.has_offset_index for it in columns)


def test_nulls_are_counted_and_bound_nothing(tmp_path: Path) -> None:
    statistics = statistics_of(tmp_path, dict.fromkeys(SCHEMA.names), dict.fromkeys(SCHEMA.names))

    assert statistics["numRecords"] == 2
    assert statistics["nullCount"]["name"] == 2
    assert not {"minValues", "maxValues"} & statistics.keys()


def test_work_in_parallel_keeps_the_order_and_its_error() -> None:
    assert in_parallel(lambda number: number * 2, range(20)) == list(range(0, 40, 2))
    with pytest.raises(ZeroDivisionError):
        in_parallel(lambda number: 1 // number, [1, 0, 2])


@pytest.mark.extended
def test_a_small_file_of_a_bucket_comes_in_one_request(
    bucket_server: Buckets,  # noqa: F811
) -> None:
    table = storage_in_bucket(bucket_server)
    [action] = written_files(table, [({}, pa.table({"number": [1, 2]}))])
    added = action["add"]
    requests = bucket_server.count()["requests"]

    with open_file(table, added["path"], added["size"], pre_buffer=True) as file:
        assert file.read().to_pylist() == [{"number": 1}, {"number": 2}]
    assert bucket_server.count()["requests"] == requests + 1
    with open_file(table, added["path"], None, pre_buffer=True) as file:
        assert file.read().to_pylist() == [{"number": 1}, {"number": 2}]
    with pytest.raises(FileNotFoundError):
        open_file(table, "missing.parquet", 100, pre_buffer=True)
