"""Whether a model's columns may follow from those of an input that changed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from livemart.delta.tags import Tag
from livemart.delta.warehouse import Warehouse
from livemart.errors import RefreshError
from livemart.plan.plan import Inputs
from livemart.plan.planner import plan_query
from livemart.plan.reasons import Inapplicable
from livemart.plan.sql.flatten import flatten
from livemart.refresh.inputs import PinnedInputs
from livemart.refresh.pinned_table import PinnedTable

RELATION = "mart.totals"
SMALL = pa.schema([("id", pa.int64()), ("name", pa.string())])


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    warehouse = Warehouse(tmp_path)
    warehouse.create(RELATION, SMALL)
    return warehouse


def changed(warehouse: Warehouse, sql: str, *, views: dict[str, str] | None = None) -> str | None:
    inputs = PinnedInputs(warehouse, {RELATION: 0}, {RELATION: warehouse.version(RELATION)})
    reason = inputs.schemas.changed(flatten(sql, views or {}))
    return None if reason is None else f"{reason.code}: {reason.message}"


def add_note(warehouse: Warehouse) -> None:
    warehouse.add_columns(RELATION, [pa.field("note", pa.string())], Tag("t", 0, {}))


def test_a_column_that_came_changes_the_models_that_read_every_column(warehouse: Warehouse) -> None:
    add_note(warehouse)

    found = changed(warehouse, "select * from mart.totals")

    assert found == "FINGERPRINT_CHANGED: columns of mart.totals changed: note"
    assert changed(warehouse, "select id, count(*) as n from mart.totals group by 1") is None


def test_a_star_in_a_view_counts(warehouse: Warehouse) -> None:
    add_note(warehouse)

    found = changed(
        warehouse, "select id from mart.seen", views={"mart.seen": "select * from mart.totals"}
    )

    assert found is not None


def test_a_column_that_came_changes_the_models_whose_names_it_may_take_over(
    warehouse: Warehouse,
) -> None:
    add_note(warehouse)
    inner = "select 1 from mart.totals as t where t.id = o.id and t.name ="

    found = changed(warehouse, f"select id from m.orders as o where exists ({inner} Note)")

    assert found == "FINGERPRINT_CHANGED: columns of mart.totals changed: note"
    assert changed(warehouse, f"select id from m.orders as o where exists ({inner} o.note)") is None


def test_columns_that_change_places_change_the_models_that_read_by_place(tmp_path: Path) -> None:
    other, warehouse = Warehouse(tmp_path / "other"), Warehouse(tmp_path)
    other.create(RELATION, pa.schema([*reversed(SMALL)]))
    warehouse.create(RELATION, SMALL)
    # As a table that Spark replaces.
    logs = [it.path(RELATION) / "_delta_log" for it in (other, warehouse)]
    shutil.copyfile(logs[0] / f"{0:020d}.json", logs[1] / f"{1:020d}.json")

    found = changed(warehouse, "select a from mart.totals as t (a, b)")

    assert found == "FINGERPRINT_CHANGED: columns of mart.totals changed: id, name"
    assert changed(warehouse, "select id, name from mart.totals") is None


def test_another_type_changes_every_reader(tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path)
    warehouse.create(RELATION, SMALL)
    retype(warehouse, "long", "string")

    found = changed(warehouse, "select id from mart.totals")

    assert found == "FINGERPRINT_CHANGED: columns of mart.totals changed: id"


def test_another_type_of_a_column_that_a_query_does_not_need_changes_nothing(
    tmp_path: Path,
) -> None:
    warehouse = Warehouse(tmp_path)
    warehouse.create(RELATION, SMALL)
    retype(warehouse, "long", "string")
    inputs = PinnedInputs(warehouse, {RELATION: 0}, {RELATION: 1})
    flat = flatten("select name from mart.totals", {})

    reasons = [
        inputs.schemas.changed(flat, {0: frozenset(names)}) for names in (["name"], ["name", "id"])
    ]

    assert [reason and reason.message for reason in reasons] == [
        None,
        "columns of mart.totals changed: id",
    ]


def retype(warehouse: Warehouse, old: str, new: str) -> None:
    """Write a commit that gives the column `id` another type, as an overwrite by Spark does."""
    log = warehouse.path(RELATION) / "_delta_log"
    lines = (log / f"{0:020d}.json").read_text().splitlines()
    metadata = next(line for line in lines if '"metaData"' in line)
    retyped = metadata.replace(f'\\"type\\":\\"{old}\\"', f'\\"type\\":\\"{new}\\"')
    assert retyped != metadata
    (log / f"{1:020d}.json").write_text(retyped + "\n")


def test_a_commit_of_rows_alone_changes_no_columns(warehouse: Warehouse) -> None:
    rows = pa.table({"id": [1], "name": ["a"]}, schema=SMALL)
    warehouse.overwrite(RELATION, rows, Tag("t", 0, {}))

    assert changed(warehouse, "select * from mart.totals") is None


CLOCK = "bronze.my_clock"
CLOCK_SCHEMA = pa.schema([("clock_id", pa.string()), ("as_of", pa.int64())])


@pytest.mark.parametrize("rows", [0, 2])
def test_a_clock_of_the_project_must_hold_one_row(tmp_path: Path, rows: int) -> None:
    warehouse = Warehouse(tmp_path)
    warehouse.create(CLOCK, CLOCK_SCHEMA)
    keys = [str(number) for number in range(rows)]
    written = pa.table({"clock_id": keys, "as_of": [7] * rows}, schema=CLOCK_SCHEMA)
    warehouse.overwrite(CLOCK, written, Tag("t", 0, {}))
    version = warehouse.version(CLOCK)

    with pytest.raises(Inapplicable) as caught:
        PinnedInputs(warehouse, {}, {}).one_value(PinnedTable(warehouse, CLOCK, version), "as_of")

    assert caught.value.reason.code == "CLOCK_NOT_ONE_ROW"
    assert caught.value.reason.message == f"bronze.my_clock has {rows} rows"


def test_the_value_of_a_clock_of_one_row_is_read(tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path)
    warehouse.create(CLOCK, CLOCK_SCHEMA)
    written = pa.table({"clock_id": ["only"], "as_of": [7]}, schema=CLOCK_SCHEMA)
    warehouse.overwrite(CLOCK, written, Tag("t", 0, {}))
    version = warehouse.version(CLOCK)

    clock = PinnedTable(warehouse, CLOCK, version)

    assert PinnedInputs(warehouse, {}, {}).one_value(clock, "as_of").as_py() == 7


def test_an_input_whose_changes_are_gone_is_recomputed_from(warehouse: Warehouse) -> None:
    for number in range(3):
        rows = pa.table({"id": [number], "name": ["a"]}, schema=SMALL)
        warehouse.overwrite(RELATION, rows, Tag("t", number, {}))
    DeltaTable(str(warehouse.path(RELATION))).create_checkpoint()
    for version in range(3):
        (warehouse.path(RELATION) / "_delta_log" / f"{version:020d}.json").unlink()
    warehouse.create("mart.most", pa.schema([("name", pa.string()), ("most", pa.int64())]))
    old = {RELATION: 0, "mart.most": 0}
    inputs = PinnedInputs(Warehouse(warehouse.root), old, {RELATION: 3})
    plan = plan_query(
        "select name, max(id) as most from mart.totals group by 1", Inputs({RELATION: SMALL.names})
    )

    with pytest.raises(RefreshError) as caught:
        inputs.resolve(plan, "mart.most")

    assert caught.value.code == "CDF_UNAVAILABLE"


@pytest.mark.parametrize(
    ("columns", "old", "new", "expected"),
    [
        (["n"], {RELATION: 0}, {}, f"INPUT_NOT_IN_DELTA: {RELATION} is not a Delta table"),
        (["n"], {}, {RELATION: 0}, f"CDF_UNAVAILABLE: {RELATION} was rebuilt"),
        # Lasting reasons are reported before those that the next batch does not meet.
        (["n", "(id + 1)"], {}, {RELATION: 0}, "PARSE_UNSUPPORTED: column (id + 1) comes from"),
    ],
)
def test_why_a_model_cannot_start_from_its_tables(
    warehouse: Warehouse,
    columns: list[str],
    old: dict[str, int],
    new: dict[str, int],
    expected: str,
) -> None:
    warehouse.create("mart.most", pa.schema([(name, pa.int64()) for name in columns]))
    inputs = PinnedInputs(warehouse, {"mart.most": 0} | old, new)
    plan = plan_query("select max(id) as n from mart.totals", Inputs({RELATION: SMALL.names}))

    with pytest.raises(Inapplicable) as caught:
        inputs.resolve(plan, "mart.most")

    assert str(caught.value).startswith(expected)


def test_a_version_whose_log_is_gone_is_no_missing_table(warehouse: Warehouse) -> None:
    rows = pa.table({"id": [1], "name": ["a"]}, schema=SMALL)
    warehouse.overwrite(RELATION, rows, Tag("t", 1, {}))
    DeltaTable(str(warehouse.path(RELATION))).create_checkpoint()
    (warehouse.path(RELATION) / "_delta_log" / f"{0:020d}.json").unlink()

    with pytest.raises(RefreshError) as caught:
        Warehouse(warehouse.root).read(RELATION, 0)

    assert caught.value.code == "VERSION_GONE"
