"""A replay reads the record counts of a commit back."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from livemart.arrow.change_sets import as_added
from livemart.delta.tags import Tag, Tags
from livemart.delta.warehouse import Warehouse
from livemart.land.commit_note import Landed, noted, read_note
from livemart.state.counts import Counts
from livemart.state.drift import DriftedField, DriftKind

EVENTS = "bronze.events"
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    warehouse = Warehouse(tmp_path)
    warehouse.create(EVENTS, pa.schema([("id", pa.int64())]))
    return warehouse


def commit(warehouse: Warehouse, tag: Tag, rows: int) -> None:
    warehouse.commit(EVENTS, as_added(pa.table({"id": list(range(rows))})), tag)


@pytest.mark.parametrize("newest", [NOON, None])
def test_a_note_is_read_back(warehouse: Warehouse, newest: datetime | None) -> None:
    drift = (DriftedField(DriftKind.ADDED, "tip"), DriftedField(DriftKind.MISSING, "a", "b?"))
    landed = Landed(Counts(5, 3, 1, 1), newest, drift)
    commit(warehouse, noted(Tags("epoch", 4).rows(EVENTS), landed), 3)

    assert read_note(warehouse, EVENTS, 4, before=0) == landed


def test_the_note_of_another_batch_or_before_the_batch_is_not_taken(warehouse: Warehouse) -> None:
    commit(warehouse, noted(Tags("epoch", 4).rows(EVENTS), Landed(Counts(3, 3))), 3)
    commit(warehouse, noted(Tags("epoch", 5).rows(EVENTS), Landed(Counts(1, 1))), 1)

    assert read_note(warehouse, EVENTS, 4, before=0) == Landed(Counts(3, 3))
    assert read_note(warehouse, EVENTS, 4, before=1) == Landed(Counts())
