"""Which rows were changed though they were final, and how late that was."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from livemart.delta.tags import Tag
from livemart.delta.warehouse import Warehouse
from livemart.inspect.corrections import Correction, find_corrections, render_corrections
from livemart.plan.plan import FinalFlag, Full, Plan
from livemart.plan.stored_queries import stored_queries
from livemart.project.graph import Project, SourceTable
from livemart.state.snapshots import ModelState, Snapshot
from tests.models import make_model

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
MARKS = "livemart.watermarks"
KEY = "model.m.windows"
FLAG = FinalFlag("is_final", "window_end", MARKS, "complete_to")
INSTANT = pa.timestamp("us", tz="UTC")
SCHEMA = pa.schema(
    [
        ("window_end", INSTANT),
        ("shop", pa.string()),
        ("orders", pa.int64()),
        ("is_final", pa.bool_()),
    ]
)
Row = tuple[int, str, int, bool]


class Batches:
    """Snapshots of one model of windows, whose rows are given with minutes after noon."""

    def __init__(self, root: Path) -> None:
        self.warehouse = Warehouse(root)
        self.snapshots: list[Snapshot] = []
        marks = SourceTable(
            *("source.m.livemart.watermarks", "livemart", "watermarks", "livemart", "watermarks"),
            *((), None, None, None, ""),
            is_watermarks=True,
        )
        self.project = Project(
            "m", ".", "m", {marks.unique_id: marks}, {KEY: make_model(KEY)}, {}, {}
        )
        self.plan = Plan(Full(()), unique_key=("window_end", "shop", "is_final"), final_flag=FLAG)

    def take(self, mark: int, *rows: Row) -> None:
        table = pa.Table.from_pylist(
            [
                dict(zip(SCHEMA.names, (NOON + timedelta(minutes=end), *others), strict=True))
                for end, *others in rows
            ],
            schema=SCHEMA,
        )
        self.write(mark, table)

    def write(self, mark: int, table: pa.Table) -> None:
        number = len(self.snapshots) + 1
        moment = pa.table({"complete_to": pa.array([NOON + timedelta(minutes=mark)], INSTANT)})
        relation = self.project.models[KEY].relation
        version = self._write(relation, table, number)
        state = ModelState(version, "f", "signed", None, 1, 1, 1, "t")
        sources = {MARKS: self._write(MARKS, moment, number)}
        self.snapshots.insert(
            0,
            Snapshot(
                *(number, "e", number, "refresh", None, sources, {KEY: state}, {}, "published"),
                *(NOON, NOON + timedelta(minutes=number)),
            ),
        )

    def _write(self, relation: str, rows: pa.Table, number: int) -> int:
        return self.warehouse.overwrite(relation, rows, Tag(f"e/{relation}/1", number, {})).version

    def find(self) -> Any:
        stored = stored_queries(self.project, {KEY: self.plan})
        return find_corrections(self.warehouse, self.project, stored, self.snapshots, None)


@pytest.fixture
def batches(tmp_path: Path) -> Batches:
    batches = Batches(tmp_path)
    batches.take(4, (5, "a", 2, False), (5, "b", 1, False), (10, "a", 1, False))
    return batches


def test_a_window_that_becomes_final_is_not_corrected(batches: Batches) -> None:
    batches.take(7, (5, "a", 3, True), (5, "b", 1, True), (10, "a", 2, False))

    found = batches.find()

    assert found.rows == ()
    assert render_corrections(found) == "no final window was corrected"


def test_another_sign_of_zero_is_a_change_and_nan_is_none() -> None:
    before, after = {"d": -0.0, "n": float("nan")}, {"d": 0.0, "n": float("nan")}

    correction = Correction("windows", 1, NOON, None, None, {}, before, after)

    assert list(correction.changes) == ["d"]


def test_rows_without_a_key_may_hold_lists_and_nan(tmp_path: Path) -> None:
    batches = Batches(tmp_path)
    batches.plan = replace(batches.plan, unique_key=())
    place = pa.struct([("tags", pa.list_(pa.string())), ("rate", pa.float64())])
    schema = pa.schema([("window_end", INSTANT), ("place", place), ("is_final", pa.bool_())])
    for tag in ("x", "y"):
        row = {"window_end": NOON, "place": {"tags": [tag], "rate": math.nan}, "is_final": True}
        batches.write(7, pa.Table.from_pylist([row], schema=schema))

    changed = [(row.old, row.new) for row in batches.find().rows]

    tags = [[row and row["place"]["tags"] for row in rows] for rows in changed]
    assert tags == [[None, ["y"]], [["x"], None]]


@pytest.mark.parametrize("kind", [pa.date32(), pa.timestamp("us")])
def test_a_window_may_end_with_a_day_or_a_time_that_names_no_zone(
    kind: pa.DataType, tmp_path: Path
) -> None:
    batches = Batches(tmp_path)
    ends = pa.array([NOON.replace(hour=0, tzinfo=None)], pa.timestamp("us")).cast(kind)
    for shops in (["a"], ["b"]):
        columns = {"window_end": ends, "shop": shops, "is_final": [True]}
        batches.write(7, pa.table(columns))

    found = batches.find()

    passed = timedelta(hours=12, minutes=7)
    assert [(row.key["shop"], row.late_by) for row in found.rows] == [("b", passed), ("a", passed)]
    assert "2026-03-01 00:00:00  12h 7m" in render_corrections(found)


def test_columns_may_be_in_any_letter_case(tmp_path: Path) -> None:
    batches = Batches(tmp_path)
    for orders in (1, 2):
        names = ["Window_End", "Shop", "Orders", "Is_Final"]
        columns = [pa.array([NOON], INSTANT), ["a"], [orders], [True]]
        batches.write(7, pa.table(columns, names=names))

    (row,) = batches.find().rows

    assert (row.late_by, row.key["Shop"]) == (timedelta(minutes=7), "a")
    assert row.changes == {"Orders": (1, 2)}


def test_no_row_was_final_before_the_model_said_so(tmp_path: Path) -> None:
    batches = Batches(tmp_path)
    for shop in ("a", "b"):
        batches.write(7, pa.table({"window_end": pa.array([NOON], INSTANT), "shop": [shop]}))

    found = batches.find()

    assert (found.rows, found.unknown) == ((), {})


def test_final_rows_that_change_come_or_go_are_corrections(batches: Batches) -> None:
    batches.take(7, (5, "a", 3, True), (5, "b", 1, True), (10, "a", 2, False))
    batches.take(9, (5, "a", 4, True), (5, "c", 1, True), (10, "a", 2, False), (15, "a", 1, False))

    found = batches.find()

    late = timedelta(minutes=2)
    assert {
        row.key["shop"]: (row.snapshot_id, row.late_by, dict(row.changes)) for row in found.rows
    } == {
        "a": (3, late, {"orders": (3, 4)}),
        "b": (3, late, {"orders": (1, None), "is_final": (True, None)}),
        "c": (3, late, {"orders": (None, 1), "is_final": (None, True)}),
    }
    lines = render_corrections(found).splitlines()
    assert "windows  2026-03-01 12:05:00  2m" in lines[1]
    assert "orders 3 -> 4" in lines[1]
    assert lines[-1].startswith("the latest came 2m after the watermark")
    assert found.to_json()["corrections"][0]["late_by_s"] == 120


def test_a_rebuilt_model_is_not_compared(batches: Batches) -> None:
    batches.take(7, (5, "a", 3, True))
    batches.take(9, (5, "a", 4, True))
    newest = batches.snapshots[0]
    rebuilt = replace(newest.models[KEY], generation=2)
    batches.snapshots[0] = replace(newest, models={KEY: rebuilt})

    assert batches.find().rows == ()


def test_snapshots_whose_history_is_gone_are_named(batches: Batches) -> None:
    batches.take(7, (5, "a", 3, True))
    batches.snapshots[1] = replace(batches.snapshots[1], sources={})

    assert render_corrections(batches.find()).splitlines()[-1] == (
        "windows: the changes of 1 snapshot are no longer kept (2 to 2)"
    )


def test_a_project_without_flags_is_told_how_to_get_one(batches: Batches) -> None:
    batches.plan = replace(batches.plan, final_flag=None)

    assert "is_final('window_end')" in render_corrections(batches.find())
