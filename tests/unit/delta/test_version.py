"""The files of a version, and what is read of them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as pds
import pytest
from deltalake import DeltaTable

from livemart.arrow.bags import NEW_COUNT, OLD_COUNT
from livemart.arrow.change_sets import as_added
from livemart.delta import version
from livemart.delta.row_filter import IsIn, RowFilter
from livemart.delta.table_schema import require_own_days
from livemart.delta.warehouse import Warehouse
from livemart.errors import RefreshError
from tests.unit.delta.small_tables import RELATION, SMALL, diff, tag

_FILTER = RowFilter(
    (
        (
            IsIn("day", pa.array(["a"]), has_null=False),
            IsIn("n", pa.array([0, 1, 2, 3]), has_null=False),
        ),
    )
)


def test_a_filter_reads_only_files_that_can_hold_its_rows(warehouse: Warehouse) -> None:
    warehouse.create(RELATION, SMALL)
    for batch in range(4):
        warehouse.commit(RELATION, diff((batch, "a", 0, 1)), tag(batch))
    (wanted,) = DeltaTable(str(warehouse.path(RELATION))).file_uris(file_pruning_predicate="id = 3")
    for file in warehouse.path(RELATION).glob("*.parquet"):
        if not wanted.endswith(file.name):
            file.unlink()

    found = warehouse.read(RELATION, filter=pds.field("id") == 3, columns=["name", "id"])

    assert found.to_pylist() == [{"name": "a", "id": 3}]


@pytest.mark.parametrize(
    "text", ["é" * 60, "a" + "é" * 60, "a" + "麺" * 40, "a" + "\U00020bb7" * 30]
)
def test_rows_are_found_by_long_texts_of_any_character(warehouse: Warehouse, text: str) -> None:
    """pyarrow 26 spells a filter with its texts cut at a hundred bytes: within a character, too."""
    warehouse.create(RELATION, SMALL)
    warehouse.commit(RELATION, diff((1, text, 0, 1), (2, f"{text}b", 0, 1)), tag(1))
    wanted = RowFilter(((IsIn("name", pa.array([text, "b"]), has_null=False),),))
    expression = wanted.expression()
    assert expression is not None

    for filter in (wanted, expression):
        assert warehouse.read(RELATION, columns=["id"], filter=filter).to_pylist() == [{"id": 1}]
    (part,) = warehouse.files(RELATION, 1).batches(["id"], expression, 10)
    assert part.to_pylist() == [{"id": 1}]


def test_what_is_read_again_is_what_is_stored(warehouse: Warehouse) -> None:
    kinds = pa.schema(
        [("at", pa.timestamp("us", tz="UTC")), ("day", pa.string()), ("n", pa.int64())]
    )
    warehouse.create(RELATION, kinds, partition_by=["day"])
    noon = datetime(2026, 3, 1, 12, tzinfo=UTC)

    def rows(batch: int, old: int, new: int) -> pa.Table:
        days = ["a", "b", None]
        values = [(noon.replace(minute=batch), day, batch) for day in days]
        table = pa.Table.from_pylist(
            [dict(zip(kinds.names, value, strict=True)) for value in values], kinds
        )
        for name, count in ((OLD_COUNT, old), (NEW_COUNT, new)):
            table = table.append_column(name, pa.repeat(pa.scalar(count, pa.int64()), 3))
        return table

    for batch in range(6):
        warehouse.commit(RELATION, rows(batch, 0, 1), tag(2 * batch))
        if batch > 1:
            warehouse.commit(RELATION, rows(batch - 1, 1, 0), tag(2 * batch + 1))
        for _ in range(3):
            passing = (pds.field("n") <= 3) & (pds.field("day") == "a")
            warm = warehouse.read(RELATION, filter=passing, columns=["n", "day", "at"])
            cold = Warehouse(warehouse.root).read(
                RELATION, filter=passing, columns=["n", "day", "at"]
            )
            assert warm.sort_by("n").equals(cold.sort_by("n"))
            kept = warehouse.read(RELATION, filter=_FILTER, columns=["n", "day", "at"])
            assert kept.sort_by("n").equals(cold.sort_by("n"))


@pytest.mark.parametrize("most", [1, 3, 100])
def test_rows_come_a_part_at_a_time_and_are_those_of_a_read(
    warehouse: Warehouse, most: int
) -> None:
    warehouse.create(RELATION, SMALL, partition_by=["name"])
    for batch in range(4):
        warehouse.commit(
            RELATION, diff(*((10 * batch + it, "ab"[it % 2], 0, 1) for it in range(8))), tag(batch)
        )
    warehouse.add_columns(RELATION, [pa.field("more", pa.int64())], tag(5))
    passing = (pds.field("id") >= 12) & (pds.field("name") == "b")

    parts = list(warehouse.files(RELATION).batches(["more", "id"], passing, most))

    assert max(part.num_rows for part in parts) <= most
    expected = warehouse.read(RELATION, columns=["more", "id"], filter=passing)
    assert pa.concat_tables(parts).sort_by("id").equals(expected.sort_by("id"))


def test_rows_of_one_filter_are_found_once_for_all_columns_and_versions(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    warehouse.create(RELATION, SMALL)
    for batch in range(3):
        warehouse.commit(RELATION, diff((batch, "a", 0, 1), (batch, "b", 0, 1)), tag(batch))
    passing = pds.field("name") == "b"
    for _ in range(2):
        warehouse.read(RELATION, filter=passing)
    looked_at: list[int] = []
    places_of_rows = version._places_of_rows

    def look(tables: list[pa.Table], filter: pds.Expression) -> list[Any]:
        looked_at.append(len(tables))
        return places_of_rows(tables, filter)

    monkeypatch.setattr(version, "_places_of_rows", look)

    ids = warehouse.read(RELATION, filter=pds.field("name") == "b", columns=["id"])
    warehouse.commit(RELATION, diff((3, "b", 0, 1)), tag(3))
    for _ in range(2):
        later = warehouse.read(RELATION, filter=passing, columns=["name", "id"])
    other = warehouse.read(RELATION, filter=pds.field("name") == "a", columns=["id"])

    assert sorted(ids["id"].to_pylist()) == [0, 1, 2]
    assert sorted(later["id"].to_pylist()) == [0, 1, 2, 3]
    assert sorted(other["id"].to_pylist()) == [0, 1, 2]
    # The last file holds no such name, by its statistics.
    assert looked_at == [0, 1, 0, 3]


def test_the_share_of_nulls_is_that_of_the_statistics(warehouse: Warehouse) -> None:
    kinds = pa.schema(
        [("id", pa.int64()), ("who.id", pa.int64()), ("who", pa.struct([("id", pa.int64())]))]
    )
    warehouse.create(RELATION, kinds)
    empty = warehouse.files(RELATION).null_share("id")
    rows = [{"id": number or None, "who": {"id": 1}} for number in range(4)]
    for batch, row in enumerate(rows):
        change = as_added(pa.Table.from_pylist([row], kinds))
        warehouse.commit(RELATION, change, tag(batch))

    files = warehouse.files(RELATION)

    assert (empty, files.null_share("id")) == (None, 0.25)
    # Statistics do not tell the two apart, or have nothing.
    assert (files.null_share("who.id"), files.null_share("who")) in [(None, None), (1.0, None)]


@pytest.mark.parametrize("spelled", ["file://{}", "file:{}", "{}"])
def test_files_of_another_table_are_read_by_spark_alone(warehouse: Warehouse, spelled: str) -> None:
    """A shallow clone of Spark 4.2.0 with Delta 4.4.0 names them by their whole path."""
    warehouse.create(RELATION, SMALL)
    warehouse.commit(RELATION, diff((1, "a", 0, 1)), tag(1))
    folder = warehouse.path(RELATION)
    (file,) = folder.glob("*.parquet")
    entry = folder / "_delta_log" / f"{1:020}.json"
    whole = spelled.format(file.rename(folder.parent / file.name))
    entry.write_text(entry.read_text().replace(f'"{file.name}"', f'"{whole}"'))
    clone = Warehouse(warehouse.root)

    with pytest.raises(RefreshError, match=r"TABLE_NOT_READABLE.*files of another table"):
        clone.read(RELATION)
    assert not clone.files(RELATION).is_plain


def test_a_file_with_times_in_a_struct_is_looked_into_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Delta's log holds no bounds of them, which would rule out the calendar of Spark 2."""
    seen = pa.struct([("at", pa.timestamp("us", "UTC"))])
    schema = pa.schema([("id", pa.int64()), ("seen", seen)])
    rows = pa.table({"id": [1], "seen": [{"at": datetime(2026, 3, 1, tzinfo=UTC)}]}, schema=schema)
    looks: list[str] = []

    def look(footer: Any, columns: Any) -> None:
        looks.append(footer.created_by)
        require_own_days(footer, columns)

    monkeypatch.setattr(version, "require_own_days", look)
    writer = Warehouse(tmp_path)
    writer.create(RELATION, schema)
    writer.commit(RELATION, as_added(rows), tag(1))
    reader = Warehouse(tmp_path)

    for warehouse, expected in ((writer, 0), (reader, 1)):
        looks.clear()
        for _ in range(3):
            assert warehouse.read(RELATION, filter=pds.field("id") == 1).equals(rows)
        assert len(looks) == expected


def test_what_is_known_of_files_does_not_grow_with_each_commit(warehouse: Warehouse) -> None:
    warehouse.create(RELATION, SMALL)
    sizes = []
    for batch in range(40):
        before = [(0, f"{batch - 1}", 1, 0)] if batch else []
        warehouse.commit(RELATION, diff(*before, (0, f"{batch}", 0, 1)), tag(batch), key=["id"])
        for _ in range(2):
            assert warehouse.read(RELATION, filter=pds.field("id") == 0).num_rows == 1
        shared, changes = warehouse._tables._handle(RELATION).shared, warehouse._changes
        places = [len(it.places) for _, it in shared.matches._recent]
        known = (shared.fragments, shared.own_days, shared.wide, changes._changes._tables)
        sizes.append(sum(places) + sum(map(len, known)))

    assert max(sizes[20:]) <= max(sizes[:20])
