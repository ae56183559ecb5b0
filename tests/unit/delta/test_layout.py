"""Files stay small, and rows of like time stay together."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from livemart.delta.layout import ROWS_PER_FILE, crowded, lay_out, order_column

AT = pa.timestamp("us", tz="UTC")
SCHEMA = pa.schema([("id", pa.int64()), ("seen_at", AT), ("paid_at", AT), ("name", pa.string())])


def test_the_order_is_by_a_time_of_the_key_before_any_time_before_a_number() -> None:
    numbers = pa.schema([("name", pa.string()), ("id", pa.int32())])

    found = [
        order_column(SCHEMA, ("id", "paid_at")),
        order_column(SCHEMA, ("id",)),
        order_column(numbers, ("name", "id")),
        order_column(numbers, ("name",)),
    ]

    assert found == ["paid_at", "seen_at", "id", None]


def test_a_file_too_large_is_cut_evenly_by_time() -> None:
    rows = ROWS_PER_FILE * 2 + 2
    shuffled = np.random.default_rng(1).permutation(rows)
    table = pa.table({"at": pa.array(shuffled).cast(AT)})

    files = lay_out([], table, "at")

    assert [file.num_rows for file in files] == [21846, 21846, 21846]
    bounds = [pc.min_max(file.column("at")).as_py() for file in files]
    assert bounds[0]["max"] < bounds[1]["min"] and bounds[1]["max"] < bounds[2]["min"]


def test_a_late_row_goes_to_the_file_of_its_time_a_new_one_to_a_new_file() -> None:
    old = table_of(range(0, 20_000))
    older = table_of(range(-20_000, -10_000))

    files = lay_out([old, older], table_of([-15_000, 7, 20_000, -5_000, None]), "at")

    assert [file.num_rows for file in files] == [20_001, 10_001, 3]


def test_small_files_and_new_rows_become_one_file() -> None:
    files = lay_out([table_of([1]), table_of([3])], table_of([2]), "at")

    assert [file.num_rows for file in files] == [3]


def test_nothing_makes_no_file() -> None:
    assert lay_out([table_of([])], table_of([]), "at") == []


def test_only_files_of_like_size_in_one_partition_are_too_many() -> None:
    rows = np.array([1] * 15 + [5_000] * 15 + [1] * 16 + [100_000] * 20 + [-1] * 20)
    partitions = np.array([0] * 30 + [1] * 16 + [0] * 40)

    mask = crowded(rows, partitions)

    assert np.flatnonzero(mask).tolist() == list(range(30, 46))


def table_of(seconds: range | list[int | None]) -> pa.Table:
    times = [None if s is None else datetime.fromtimestamp(s + 10**9, UTC) for s in seconds]
    return pa.table({"at": pa.array(times, AT)})
