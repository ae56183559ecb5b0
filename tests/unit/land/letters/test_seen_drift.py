"""How the records of a batch differ from the columns: each way by its name."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from livemart.arrow.change_sets import as_added
from livemart.delta.tags import Tag
from livemart.delta.version import TableVersion
from livemart.delta.warehouse import Warehouse
from livemart.land.letters.seen_drift import MOST_FIELDS, Sightings, seen_drift
from livemart.state.drift import DriftedField, DriftKind

KNOWN = ["id", "status", "items", "_batch_id"]


@pytest.fixture
def before(tmp_path: Path) -> TableVersion:
    """A table of which every row has an id, and one of two a status."""
    warehouse = Warehouse(tmp_path)
    rows = pa.table({"id": [1, 2], "status": ["a", None]})
    warehouse.create("bronze.orders", rows.schema)
    warehouse.commit("bronze.orders", as_added(rows), Tag("t", 0))
    return warehouse.files("bronze.orders")


def seen(before: TableVersion, **sightings: object) -> list[tuple[str, str, str]]:
    values: dict[str, object] = {"rescued": (), "misfits": (), "records": 0, "filled": {}}
    drift = seen_drift(Sightings(**(values | sightings)), before, KNOWN)  # type: ignore[arg-type]
    return [(field.kind.value, field.name, field.note) for field in drift]


def test_rescued_fields_are_added_case_changed_or_nested(before: TableVersion) -> None:
    rescued = [
        "tip",
        "Status",
        "items[0].note",
        "items[12].note",
        "`items.x`",
        "`St[`",
        "_batch_id",
    ]

    assert seen(before, rescued=rescued) == [
        ("added", "_batch_id", ""),
        ("added", "`St[`", ""),
        ("added", "`items.x`", ""),
        ("added", "tip", ""),
        ("case-changed", "Status", "the column is status"),
        ("nested", "items[].note", ""),
    ]


def test_values_that_do_not_fit_are_incompatible_or_wider(before: TableVersion) -> None:
    misfits = [
        "id does not fit int",
        "items[0].n does not fit int, it is wider than the declared type: declare bigint",
        "items[7].n does not fit int, it is wider than the declared type: declare bigint",
        "no such detail",
    ]

    assert seen(before, misfits=misfits) == [
        ("incompatible", "id", "with int"),
        ("wider", "items[].n", "than int: declare bigint"),
    ]


def test_a_column_is_missing_only_where_chance_does_not_leave_it_out(before: TableVersion) -> None:
    def missing(records: int, **filled: int) -> list[tuple[str, str, str]]:
        return seen(before, records=records, filled=filled)

    assert missing(1, id=0) == [("missing", "id", "")]
    assert missing(19, status=0) == []
    assert missing(20, status=0) == [("missing", "status", "")]
    assert missing(99, status=1, id=99) == []
    assert missing(0, id=0) == []
    # A struct has no statistics.
    assert missing(99, items=0) == []


def test_one_name_for_another_may_be_a_new_name(before: TableVersion) -> None:
    assert seen(before, rescued=["number"], records=1, filled={"id": 0}) == [
        ("added", "number", ""),
        ("missing", "id", "renamed to number?"),
    ]


def test_of_very_many_fields_the_first_are_told_and_how_many_more(before: TableVersion) -> None:
    drift = seen(before, rescued=[f"f{number:04}" for number in range(1_500)] + ["x" * 500])

    assert len(drift) == MOST_FIELDS + 1
    assert drift[-1] == ("added", "… and 1,481 more", "")


def test_a_long_name_is_cut(before: TableVersion) -> None:
    assert seen_drift(Sightings(["x" * 500], (), 0, {}), before, KNOWN) == (
        DriftedField(DriftKind.ADDED, "x" * 100 + "..."),
    )
