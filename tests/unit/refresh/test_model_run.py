"""What a micro-batch reads for a single value."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from livemart.delta.tags import Tag
from livemart.delta.warehouse import Warehouse
from livemart.refresh.inputs import BatchInputs, FallBack

RELATION = "bronze.my_clock"
SCHEMA = pa.schema([("clock_id", pa.string()), ("as_of", pa.int64())])


@pytest.mark.parametrize("rows", [0, 2])
def test_a_clock_of_the_project_must_hold_one_row(tmp_path: Path, rows: int) -> None:
    warehouse = Warehouse(tmp_path)
    warehouse.create(RELATION, SCHEMA)
    keys = [str(number) for number in range(rows)]
    written = pa.table({"clock_id": keys, "as_of": [7] * rows}, schema=SCHEMA)
    warehouse.overwrite(RELATION, written, Tag("t", 0, {}))
    version = warehouse.version(RELATION)

    with pytest.raises(FallBack) as caught:
        BatchInputs(warehouse, {}, {RELATION: version}).one_value(RELATION, version, "as_of")

    assert caught.value.reason.code == "CLOCK_NOT_ONE_ROW"
    assert caught.value.reason.message == f"bronze.my_clock has {rows} rows"


def test_the_value_of_a_clock_of_one_row_is_read(tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path)
    warehouse.create(RELATION, SCHEMA)
    written = pa.table({"clock_id": ["only"], "as_of": [7]}, schema=SCHEMA)
    warehouse.overwrite(RELATION, written, Tag("t", 0, {}))
    version = warehouse.version(RELATION)

    assert (
        BatchInputs(warehouse, {}, {RELATION: version}).one_value(RELATION, version, "as_of") == 7
    )
