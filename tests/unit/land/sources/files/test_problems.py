"""Landing stops for lost or changed files, and for drift."""

from __future__ import annotations

import errno
import json
import os
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Never, cast

import pytest

from livemart.delta.warehouse import Warehouse
from livemart.errors import SourceError
from livemart.land.landing import Landing
from livemart.land.sources.files import folder, lines
from livemart.land.sources.files.blocks import read_blocks
from livemart.land.sources.files.folder import LandingFolder
from livemart.land.sources.files.problems import FolderAwayError
from livemart.project.graph import Column, SourceTable
from livemart.run.replays import is_retriable
from tests.models import stream_spec

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NO_SPARK = cast("SparkSession", None)
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
SALES = SourceTable(
    unique_id="source.mini.shop.sales",
    source_name="shop",
    name="sales",
    schema="bronze",
    identifier="sales",
    columns=(Column("sale_id", "string"), Column("amount", "int")),
    event_time=None,
    loaded_at_field=None,
    stream=stream_spec(path="sales/*.jsonl"),
    file="models/_sources.yml",
)
STRICT = replace(SALES, stream=stream_spec(SALES.stream, schema_drift="fail"))


class Place:
    """A warehouse and a landing folder."""

    def __init__(self, root: Path) -> None:
        self.warehouse, self.landing = root / "warehouse", root / "landing"
        (self.landing / "sales").mkdir(parents=True)

    def deliver(self, name: str, *records: dict[str, object]) -> Path:
        path = self.landing / "sales" / name
        path.write_text("".join(json.dumps(record) + "\n" for record in records))
        return path

    def land(self, batch_id: int, *files: Path, source: SourceTable = SALES) -> None:
        tables = Warehouse(self.warehouse)
        landing = Landing(NO_SPARK, tables, self.landing, [source], now=lambda: NOON)
        landing.create_tables()
        landing.land_files(batch_id, {source.relation: list(files)})

    def rows(self, relation: str, *columns: str) -> list[tuple[object, ...]]:
        found = Warehouse(self.warehouse).read(relation, columns=list(columns)).to_pylist()
        return sorted((tuple(row.values()) for row in found), key=str)

    def forget(self, relation: str) -> None:
        """Leave the batch's manifest and take its rows away: a crash before they were landed."""
        folder = self.warehouse / relation.replace(".", "/")
        for path in sorted(folder.rglob("*"), reverse=True):
            path.unlink() if path.is_file() else path.rmdir()
        folder.rmdir()


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_a_file_that_changed_before_its_replay_is_noticed(place: Place) -> None:
    path = place.deliver("1.jsonl", {"sale_id": "a", "amount": 1})
    place.land(0, path)
    place.forget("bronze.sales")
    place.deliver("1.jsonl", {"sale_id": "b", "amount": 22})

    with pytest.raises(SourceError, match=r"sales/1\.jsonl") as caught:
        place.land(0, path)

    assert caught.value.code == "SOURCE_FILE_CHANGED"


def test_a_large_file_that_was_touched_before_its_replay_is_noticed(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder, "_DIGEST_BLOCK", 1)
    path = place.deliver("1.jsonl", *({"sale_id": f"{n}", "amount": 1} for n in range(9)))
    os.utime(path, ns=(0, 1_000_000_000))
    place.land(0, path)
    place.forget("bronze.sales")
    os.utime(path, ns=(0, 1_000_000_001))

    expected = r"modified at 1970-01-01T00:00:01\.000000000Z .* now at \S+\.000000001Z"
    with pytest.raises(SourceError, match=expected) as caught:
        place.land(0, path)

    assert caught.value.code == "SOURCE_FILE_CHANGED"
    os.utime(path, ns=(0, 1_000_000_000))
    place.land(0, path)
    assert len(place.rows("bronze.sales", "sale_id")) == 9


def test_a_file_that_is_gone_before_its_replay_is_noticed(place: Place) -> None:
    path = place.deliver("1.jsonl", {"sale_id": "a", "amount": 1})
    place.land(0, path)
    place.forget("bronze.sales")
    path.unlink()

    with pytest.raises(SourceError, match="is missing before it has landed") as caught:
        place.land(0, path)

    assert caught.value.code == "SOURCE_FILE_CHANGED"


@pytest.mark.parametrize("when", ["identify", "read"])
def test_a_file_that_may_not_be_read_is_named_and_tried_again(
    place: Place, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    path = place.deliver("1.jsonl", {"sale_id": "a", "amount": 1})

    def refused(*_: object) -> Never:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    with monkeypatch.context() as patch, pytest.raises(SourceError) as caught:
        if when == "identify":
            patch.setattr(LandingFolder, "identify", refused)
        else:
            patch.setattr(lines, "read_blocks", refused)
        place.land(0, path)

    assert str(caught.value).startswith("SOURCE_FILE_UNREADABLE: sales/1.jsonl: Permission denied")
    assert is_retriable(caught.value)
    place.land(0, path)
    assert place.rows("bronze.sales", "sale_id") == [("a",)]


def test_a_file_that_goes_between_the_look_and_the_reading_is_noticed(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = place.deliver("1.jsonl", {"sale_id": "a", "amount": 1})

    def gone(*arguments: Any) -> Any:
        path.unlink(missing_ok=True)
        return read_blocks(*arguments)

    monkeypatch.setattr(lines, "read_blocks", gone)

    with pytest.raises(
        SourceError, match=r"sales/1\.jsonl: was delivered, and is missing"
    ) as caught:
        place.land(0, path)

    assert caught.value.code == "SOURCE_FILE_CHANGED"


def test_an_error_of_another_file_stays_what_it_is(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = place.deliver("1.jsonl", {"sale_id": "a", "amount": 1})

    def full(*_: object) -> Never:
        raise OSError(errno.ENOSPC, "No space left on device", "/elsewhere/part")

    monkeypatch.setattr(LandingFolder, "identify", full)

    with pytest.raises(OSError, match="No space left"):
        place.land(0, path)


def test_a_source_that_may_not_drift_stops_before_it_lands_anything(place: Place) -> None:
    path = place.deliver("1.jsonl", {"sale_id": "a"}, {"sale_id": "b", "tip": 2, "to": 1})

    for _ in range(2):
        with pytest.raises(SourceError, match=r"sales/1\.jsonl:2: found fields tip, to") as caught:
            place.land(0, path, source=STRICT)

        assert caught.value.code == "SCHEMA_DRIFT"
        assert place.rows("bronze.sales", "sale_id") == []
        assert place.rows("bronze._dead_letters", "reason", "origin", "record", "detail") == [
            (
                "SCHEMA_DRIFT",
                "sales/1.jsonl:2",
                '{"sale_id": "b", "tip": 2, "to": 1}',
                "found fields tip, to",
            )
        ]


def test_dead_letters_of_a_stop_are_taken_back_when_the_batch_lands(place: Place) -> None:
    path = place.deliver("1.jsonl", {"sale_id": "a"}, {"sale_id": "b", "tip": 2}, {"sale_id": {}})
    with pytest.raises(SourceError, match="found fields tip"):
        place.land(0, path, source=STRICT)
    wider = replace(STRICT, columns=(*STRICT.columns, Column("tip", "int")))

    for _ in range(2):
        place.land(0, path, source=wider)

        assert place.rows("bronze.sales", "sale_id", "tip") == [("a", None), ("b", 2)]
        assert place.rows("bronze._dead_letters", "reason", "origin") == [
            ("TYPE_MISMATCH", "sales/1.jsonl:3")
        ]


def test_a_file_whose_folder_is_away_is_waited_for_and_lands_when_it_is_back(place: Place) -> None:
    path = place.deliver("1.jsonl", {"sale_id": "a", "amount": 1})
    path.parent.rename(place.landing / "_unmounted")

    with pytest.raises(SourceError, match=r"sales/1.jsonl: its folder below .* is not there") as e:
        place.land(0, path)
    (place.landing / "_unmounted").rename(path.parent)
    place.land(0, path)

    assert (e.value.code, is_retriable(e.value)) == ("SOURCE_FILE_UNREADABLE", True)
    assert isinstance(e.value, FolderAwayError)
    assert place.rows("bronze.sales", "sale_id") == [("a",)]
