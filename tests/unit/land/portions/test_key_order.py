"""Ranges hold every record of their keys, in the order of arrival, whatever the portions were."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from livemart.land.portions.key_order import KeyOrder


@pytest.mark.parametrize("seed", range(10))
def test_each_key_is_in_one_range_and_nothing_is_lost(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    kinds: list[Any] = [
        lambda: chance.randrange(40),
        lambda: chance.choice("abcdé") * chance.randrange(3),
        lambda: chance.choice([float("nan"), -0.0, 0.0, 1.5, -7.0]),
        lambda: chance.randrange(40).to_bytes(2),
    ]
    keys = chance.sample(range(len(kinds)), chance.choice([1, 2]))
    order = KeyOrder(tmp_path / "rows", [f"k{n}" for n in keys], chance.choice([1, 10, 1_000]))
    arrived: list[Any] = []
    for _ in range(chance.randrange(1, 6)):
        rows = [
            {f"k{n}": kinds[n]() for n in keys} | {"number": len(arrived) + n}
            for n in range(chance.choice([0, 1, 30, 200]))
        ]
        arrived += rows
        schema = pa.Table.from_pylist([{f"k{n}": kinds[n]() for n in keys} | {"number": 0}]).schema
        order.add(pa.Table.from_pylist(rows, schema=schema))

    ranges = [table.to_pylist() for table in order.ranges()]

    everything = [row for rows in ranges for row in rows]
    assert sorted(str(row) for row in everything) == sorted(str(row) for row in arrived)
    home: dict[str, int] = {}
    for number, rows in enumerate(ranges):
        assert [row["number"] for row in rows] == sorted(row["number"] for row in rows)
        for row in rows:
            key = str([row[f"k{n}"] for n in keys]).replace("-0.0", "0.0")
            assert home.setdefault(key, number) == number


def test_a_column_that_comes_later_is_null_before(tmp_path: Path) -> None:
    order = KeyOrder(tmp_path / "rows", ["id"], 10)
    order.add(pa.table({"id": [2]}))
    order.add(pa.table({"id": [1], "tip": ["x"]}))

    (rows,) = order.ranges()

    assert rows.to_pylist() == [{"id": 2, "tip": None}, {"id": 1, "tip": "x"}]


def test_without_records_there_is_no_range(tmp_path: Path) -> None:
    order = KeyOrder(tmp_path / "rows", ["id"], 10)
    order.add(pa.table({"id": pa.array([], pa.int64())}))

    assert list(order.ranges()) == []
    assert not (tmp_path / "rows").exists()
