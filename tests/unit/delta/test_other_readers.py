"""Other readers of a table that the small lane writes find the same rows with and without bounds.

deltalake 1.6.6 (its Arrow dataset, and DataFusion), DuckDB 2.0 over that dataset, as the documents
say, and Polars 2.1. They read NaN and zeros differently: each is compared with itself.
"""

from __future__ import annotations

from pathlib import Path

import polars
import pyarrow as pa
import pytest
from deltalake import DeltaTable

from livemart.delta.partitions import BLANKS
from livemart.delta.tags import Tag
from livemart.delta.warehouse import Warehouse
from tests.disagreeing_values import BEYOND_PYTHON, KINDS, array
from tests.other_readers import (
    AWKWARD,
    DISAGREEING,
    OPERATORS,
    READERS,
    WITH_NAN,
    Columns,
    files_of,
    predicates,
    publish,
    random_files,
    without_bounds,
)

_CASES = [
    # DuckDB sees bounds as deltalake interprets them.
    pytest.param("deltalake", AWKWARD, ("=",), id="deltalake"),
    pytest.param("deltalake", WITH_NAN, OPERATORS, id="deltalake, NaN"),
    *(
        pytest.param(reader, columns, OPERATORS, id=f"{reader}, {name}", marks=pytest.mark.extended)
        for reader in READERS
        for name, columns in (("all", AWKWARD), ("all with NaN", WITH_NAN))
    ),
]


@pytest.mark.parametrize(("reader", "columns", "operators"), _CASES)
def test_a_filter_on_any_column_finds_its_rows(
    tmp_path: Path, reader: str, columns: Columns, operators: tuple[str, ...]
) -> None:
    files = files_of(columns)
    published = publish(Warehouse(tmp_path), "mart.awkward", files)
    ask = READERS[reader](published, columns)
    right = READERS[reader](without_bounds(tmp_path / "boundless", files), columns)

    asked = list(predicates(columns, operators))
    wrong = [
        (asked_for, found, expected)
        for asked_for in asked
        if (found := ask(*asked_for)) != (expected := right(*asked_for))
    ]

    assert wrong == []
    assert len(asked) > 20


@pytest.mark.extended
@pytest.mark.parametrize("table", DISAGREEING)
@pytest.mark.parametrize("reader", READERS)
def test_a_filter_finds_whatever_values_engines_disagree_on(
    tmp_path: Path, reader: str, table: str
) -> None:
    columns = DISAGREEING[table]
    files = random_files(columns, seed=1)
    published = publish(Warehouse(tmp_path), "mart.disagreeing", files)
    ask = READERS[reader](published, columns)
    right = READERS[reader](without_bounds(tmp_path / "boundless", files), columns)

    asked = list(predicates(columns, ("=", ">")))
    answers = [(it, ask(*it), right(*it)) for it in asked]

    assert [it for it in answers if it[1] != it[2]] == []
    assert sum(bool(found) for _, found, _ in answers) > len(asked) / 2


@pytest.mark.parametrize("reader", READERS)
def test_times_that_python_does_not_have_hide_no_row(tmp_path: Path, reader: str) -> None:
    numbers = pa.table({"n": pa.array(range(3), pa.int64())})
    for name, values in BEYOND_PYTHON.items():
        kind, last = KINDS[name].arrow, KINDS[name].values[-1]
        moments = pa.array([*values[:2], None], pa.int32() if name == "day" else pa.int64())
        rows = numbers.append_column("t", moments.cast(kind))
        columns: Columns = {"n": (pa.int64(), [[1]]), "t": (kind, [[last]])}
        ask = READERS[reader](publish(Warehouse(tmp_path), f"mart.{name}", [rows]), columns)

        assert ask("n", ">", 0) == [1, 2]
        assert ask("t", "is null", None) == [2]
        # The last one of the year 9999.
        assert ask("t", ">", last) == [1]


@pytest.mark.parametrize("name", ["word", "money", "day", "local_at"])
def test_values_of_any_partition_are_read(tmp_path: Path, name: str) -> None:
    """Polars 2.1 takes them from the names of folders, deltalake 1.6.6 from the log."""
    # A folder has 255 bytes at most; of -1.50 deltalake makes -1.-50, and fails.
    held = [it for it in KINDS[name].values if len(str(it).encode()) < 60 and it not in BLANKS]
    if name == "money":
        held = [it for it in held if it >= 0]
    values = array(name, [*held, None])
    rows = pa.table({"n": pa.array(range(len(values)), pa.int64()), name: values})
    warehouse = Warehouse(tmp_path)
    warehouse.create("mart.parts", rows.schema, partition_by=[name])
    warehouse.overwrite("mart.parts", rows, Tag("e/parts/0", 1))
    folder = str(warehouse.path("mart.parts"))

    found = polars.scan_delta(folder).sort("n").collect()
    dataset = DeltaTable(folder).to_pyarrow_dataset().to_table().sort_by("n")

    assert found[name].to_list() == values.to_pylist()
    assert dataset.column(name).to_pylist() == values.to_pylist()
