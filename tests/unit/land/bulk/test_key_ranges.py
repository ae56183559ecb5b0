"""Ranges of keys give the result of the whole batch, wherever the cuts are."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

from livemart.land.bulk.key_ranges import (
    ACTION,
    ARRIVED,
    DELETING,
    FORGOTTEN,
    IS_DELETE,
    KIND,
    REFUSED,
    REMEMBERED,
    REMOVED,
    STORED,
    WRITTEN,
    DecideRange,
)
from livemart.land.upsert.upsert import Upsert
from livemart.project.graph import RowRules
from livemart.project.landing_columns import ORIGIN
from tests.conftest import IS_NIGHTLY

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
TIME = pa.timestamp("us", tz="UTC")
NAMES = ("shop", "number", "at", "amount", "updated", ORIGIN)
VERSIONS = pa.schema(
    [
        ("shop", pa.string()),
        ("number", pa.float64()),
        ("at", TIME),
        ("amount", pa.decimal128(10, 2)),
        ("updated", pa.int64()),
        (ORIGIN, pa.string()),
        (KIND, pa.int32()),
        (IS_DELETE, pa.bool_()),
    ]
)
RULES = RowRules(
    keys=("shop", "number"),
    sequence_by=("updated",),
    apply_as_deletes="amount is null",
    event_time_is_fixed=True,
)


def version(kind: int, **values: object) -> dict[str, object]:
    shown = {"shop": "a", "number": 1.0, "at": NOON, "amount": 1, "updated": 1, ORIGIN: "f:1"}
    is_delete = kind == REMEMBERED or values.get("amount", 1) is None
    return shown | values | {KIND: kind, IS_DELETE: is_delete}


def decided(
    rows: list[dict[str, object]], fixed_time: str | None = "at"
) -> Counter[tuple[str, str]]:
    """Return the rows that change with their actions; NaN is written as text."""
    table = pa.Table.from_pylist(rows, VERSIONS)
    decide = DecideRange(Upsert(RULES, fixed_time), tuple(VERSIONS.names), NAMES)
    # Spark hands over a partition in batches, empty ones among them.
    batches = [*table.slice(0, 2).to_batches(), *table.slice(0, 0).to_batches()]
    batches += table.slice(2).to_batches()
    return Counter(
        (str(row.pop(ACTION)), str(sorted(row.items()))) for row in rows_of(decide(iter(batches)))
    )


def rows_of(batches: Iterator[pa.RecordBatch]) -> Iterator[dict[str, object]]:
    for batch in batches:
        yield from batch.to_pylist()


def random_versions(seed: int) -> list[dict[str, object]]:
    """Return versions of few keys with ties, deletes, moved times, and keys that look unlike."""
    draw = random.Random(seed)
    rows = []
    for shop in ("a", "b", "é"):
        for number in (-0.0, 1.5, float("nan")):
            key = {"shop": shop, "number": number}
            known = {"updated": draw.randrange(3), "at": NOON}
            if draw.random() < 0.5:
                rows.append(version(STORED, **key, **known, **{ORIGIN: "old:1"}))
            elif draw.random() < 0.5:
                rows.append(version(REMEMBERED, **key, **known, **{ORIGIN: "old:2"}))
    for line in range(40):
        number = draw.choice([0.0, -0.0, 1.5, float("nan")])
        rows.append(
            version(
                ARRIVED,
                shop=draw.choice(["a", "b", "é"]),
                number=number,
                updated=draw.randrange(4),
                amount=draw.choice([1, 2, None]),
                at=NOON + timedelta(hours=draw.choice([0, 0, 0, 1])),
                **{ORIGIN: f"f{draw.randrange(2)}:{line}"},
            )
        )
    draw.shuffle(rows)
    return rows


@pytest.mark.parametrize("seed", range(200 if IS_NIGHTLY else 20))
@pytest.mark.parametrize("fixed_time", ["at", None])
def test_cuts_between_keys_change_nothing(seed: int, fixed_time: str | None) -> None:
    rows = random_versions(seed)
    whole = decided(rows, fixed_time)
    draw = random.Random(-seed)

    of_part = {("a", "b", "é")[n]: draw.randrange(3) for n in range(3)}
    parts = [[row for row in rows if of_part[str(row["shop"])] == part] for part in range(3)]

    assert sum((decided(part, fixed_time) for part in parts), Counter()) == whole
    assert whole


def test_each_action_names_its_rows() -> None:
    rows = [
        version(STORED, number=1.0, updated=1),
        version(ARRIVED, number=1.0, updated=2, amount=5, **{ORIGIN: "f:2"}),
        version(STORED, number=2.0, updated=1),
        version(ARRIVED, number=2.0, updated=2, amount=None, **{ORIGIN: "f:3"}),
        version(REMEMBERED, number=3.0, updated=1),
        version(ARRIVED, number=3.0, updated=2, amount=None, **{ORIGIN: "f:4"}),
        version(STORED, number=4.0, updated=1),
        version(ARRIVED, number=4.0, updated=2, at=NOON + timedelta(1), **{ORIGIN: "f:5"}),
        version(STORED, number=5.0, updated=3),
        version(ARRIVED, number=5.0, updated=2, **{ORIGIN: "f:6"}),
    ]

    actions = Counter(action for action, _ in decided(rows).elements())

    assert actions == {WRITTEN: 1, REMOVED: 2, DELETING: 2, FORGOTTEN: 1, REFUSED: 1}


def test_an_empty_partition_changes_nothing() -> None:
    assert list(DecideRange(Upsert(RULES, None), tuple(VERSIONS.names), NAMES)(iter([]))) == []
