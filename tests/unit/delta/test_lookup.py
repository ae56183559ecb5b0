"""Stored rows are found by key in any file, and other files are not opened."""

from __future__ import annotations

import math
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from livemart.arrow.bags import NEW_COUNT, OLD_COUNT
from livemart.delta.lookup import find_stored
from livemart.delta.tags import Tags
from livemart.delta.warehouse import Warehouse

RELATION = "bronze.orders"
SCHEMA = pa.schema([("shop", pa.string()), ("number", pa.int64()), ("note", pa.string())])
KEYS = ["shop", "number"]
_SHOPS = st.sampled_from(["a", "b", "é", ""])
_NUMBERS = st.sampled_from([-1, 0, 1, 2, 2**60])


def fill(warehouse: Warehouse, *files: list[tuple[str, int]]) -> int:
    """Make a table of one file for each list of keys; return its version."""
    warehouse.create(RELATION, SCHEMA)
    for batch, keys in enumerate(files):
        rows = [
            {"shop": shop, "number": number, "note": f"{batch}"} | {OLD_COUNT: 0, NEW_COUNT: 1}
            for shop, number in keys
        ]
        counts = [pa.field(name, pa.int64()) for name in (OLD_COUNT, NEW_COUNT)]
        diff = pa.Table.from_pylist(rows, pa.schema([*SCHEMA, *counts]))
        warehouse.commit(RELATION, diff, Tags("e1", batch).rows(RELATION))
    return warehouse.version(RELATION)


def keys_of(rows: list[tuple[str, int]]) -> pa.Table:
    return pa.Table.from_pylist(
        [dict(zip(KEYS, row, strict=True)) for row in rows],
        pa.schema([SCHEMA.field(name) for name in KEYS]),
    )


# To make a table takes a hundred times as long as to look into it.
@settings(max_examples=20)
@given(
    stored=st.sets(st.tuples(_SHOPS, _NUMBERS)),
    lookups=st.lists(st.lists(st.tuples(_SHOPS, _NUMBERS), max_size=6), min_size=5, max_size=5),
)
def test_exactly_the_rows_of_the_keys_are_found(
    tmp_path_factory: pytest.TempPathFactory,
    stored: set[tuple[str, int]],
    lookups: list[list[tuple[str, int]]],
) -> None:
    warehouse = Warehouse(tmp_path_factory.mktemp("warehouse"))
    order = sorted(stored, key=str)
    version = fill(warehouse, order[::2], order[1::2])

    for looked_for in lookups:
        rows = find_stored(warehouse, RELATION, version, keys_of(looked_for), keys=KEYS)

        found = [(row["shop"], row["number"]) for row in rows.to_pylist()]
        assert sorted(found, key=str) == sorted(stored & set(looked_for), key=str)
        assert rows.schema.names == SCHEMA.names


def test_a_file_whose_statistics_rule_the_keys_out_is_not_opened(tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path)
    version = fill(warehouse, [("a", 1)], [("b", 2)])
    cold = Warehouse(tmp_path)
    kept = [file.path for file in cold.files(RELATION, version).files() if file.rows == 1]
    notes = cold.read(RELATION, version, columns=["shop"]).column(0).to_pylist()
    cold.path(RELATION).joinpath(kept[notes.index("a")]).unlink()

    rows = find_stored(Warehouse(tmp_path), RELATION, version, keys_of([("b", 2)]), keys=KEYS)

    assert rows.column("note").to_pylist() == ["1"]


def test_without_keys_nothing_is_found(tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path)
    version = fill(warehouse, [("a", 1)])

    assert find_stored(warehouse, RELATION, version, keys_of([]), keys=KEYS).num_rows == 0


def test_keys_of_floats_are_equal_as_spark_groups_them(tmp_path: Path) -> None:
    schema = pa.schema([("ratio", pa.float64())])
    warehouse = Warehouse(tmp_path)
    rows = pa.table({"ratio": [0.0, math.nan, 1.5]}, schema=schema)
    warehouse.overwrite(RELATION, rows, Tags("e1", 0).rows(RELATION))
    looked_for = pa.table({"ratio": [-0.0, math.nan]}, schema=schema)

    found = find_stored(
        warehouse, RELATION, warehouse.version(RELATION), looked_for, keys=["ratio"]
    )

    assert str(found.column(0).to_pylist()) == "[0.0, nan]"
