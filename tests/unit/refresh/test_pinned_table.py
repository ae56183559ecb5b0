"""A table at one version, and its columns by name."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from livemart.delta.row_filter import EVERY_ROW
from livemart.delta.tags import Tag
from livemart.delta.warehouse import Warehouse
from livemart.plan.reasons import Inapplicable
from livemart.refresh.pinned_table import PinnedTable

SCHEMA = pa.schema([("Shop", pa.string()), ("n", pa.int64())])


def table(folder: Path) -> PinnedTable:
    warehouse = Warehouse(folder)
    warehouse.create("m.shops", SCHEMA)
    for n in (1, 2):
        rows = pa.table({"Shop": ["a"], "n": [n]}, schema=SCHEMA)
        warehouse.overwrite("m.shops", rows, Tag("t", n, {}))
    return PinnedTable(warehouse, "m.shops", 1)


def test_a_later_commit_is_not_seen(tmp_path: Path) -> None:
    shops = table(tmp_path)

    assert shops.read(EVERY_ROW, ["n"]).to_pylist() == [{"n": 1}]
    assert shops.row_count == 1


def test_a_column_is_found_whatever_its_letter_case(tmp_path: Path) -> None:
    shops = table(tmp_path)

    assert shops.names["sHOP"] == "Shop"
    assert shops.fields["shop"].type == pa.string()


def test_a_column_that_is_not_stored_is_a_reason_to_recompute(tmp_path: Path) -> None:
    with pytest.raises(Inapplicable) as caught:
        table(tmp_path).fields["city"]

    assert caught.value.reason.message == "column city is not stored"


def test_texts_of_a_partition_column_may_be_held_as_null(tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path)
    warehouse.create("m.shops", SCHEMA, partition_by=["Shop", "n"])

    assert PinnedTable(warehouse, "m.shops", 0).blank_columns == {"Shop"}
    assert table(tmp_path / "other").blank_columns == frozenset()
