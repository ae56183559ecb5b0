"""Random histories of bags of rows: rows of every type that come, go, repeat and change."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from livemart.arrow.bags import NEW_COUNT, OLD_COUNT, WEIGHT
from livemart.delta.partitions import BLANKS
from tests.disagreeing_values import KINDS

Row = tuple[Any, ...]

COUNTS = [pa.field(OLD_COUNT, pa.int64()), pa.field(NEW_COUNT, pa.int64())]
# Column: the kind of its values. Types that cannot be partition columns are not in `region`.
_DRAWN = {
    "name": "word",
    "region": "word",
    "small": "whole",
    "big": "big",
    "amount": "fine",
    "is_new": "flag",
    "ratio": "real",
    "ratio32": "half",
    "day": "day",
    "at": "at",
    "local_at": "local_at",
    "token": "token",
    "items": "items",
    "place": "place",
    "extra": "labels",
}
_VALUES: Mapping[str, tuple[pa.DataType, list[Any]]] = {
    **{
        name: (
            KINDS[kind].arrow,
            [value for value in KINDS[kind].values if name != "region" or value not in BLANKS],
        )
        for name, kind in _DRAWN.items()
    },
    "scores": (
        pa.struct([("all", pa.list_(pa.float64())), ("best", pa.map_(pa.string(), pa.float32()))]),
        [
            {"all": [0.0, None, math.nan], "best": [("k", 0.0), ("l", 1.5)]},
            {"all": [-0.0, None, math.nan], "best": [("k", 0.0), ("l", 1.5)]},
            {"all": [0.0, None, math.nan], "best": [("k", -0.0), ("l", 1.5)]},
            {"all": [0.0, None, math.nan], "best": [("l", 1.5), ("k", 0.0)]},
        ],
    ),
}
SCHEMA = pa.schema([(name, kind) for name, (kind, _) in _VALUES.items()])


@dataclass(frozen=True)
class Step:
    """One change set, and the bag it leads to."""

    diff: pa.Table
    bag: Counter[Row]


def canonical(value: Any, *, identical: bool = True) -> Any:
    """Return a hashable value, equal where values are identical, or where Spark has them equal."""

    def part(value: Any) -> Any:
        return canonical(value, identical=identical)

    if isinstance(value, float):
        if identical and value == 0:
            return str(value)
        return "NaN" if math.isnan(value) else value + 0.0
    if isinstance(value, datetime):
        return value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
    if isinstance(value, dict):
        return tuple(map(part, value.values()))
    if isinstance(value, list) and not identical and value and isinstance(value[0], tuple):
        # Entries of a map.
        return tuple(sorted(map(part, value), key=lambda entry: str(entry[0])))
    if isinstance(value, list | tuple):
        return tuple(map(part, value))
    if isinstance(value, bytearray):
        return bytes(value)
    return value


def bag_of(table: pa.Table, *, identical: bool = True) -> Counter[Row]:
    """Count the rows of a table: those that are identical, or else equal, are one."""
    columns = [column.to_pylist() for column in table.columns]
    return Counter(canonical(list(row), identical=identical) for row in zip(*columns, strict=True))


def weights_of(changes: pa.Table) -> dict[Row, int]:
    """Return the weight of each row of a net change; a row that comes twice is an error."""
    weights = changes.column(WEIGHT).to_pylist()
    rows = list(bag_per_row(changes.drop_columns([WEIGHT])))
    assert len(set(rows)) == len(rows)
    return dict(zip(rows, weights, strict=True))


def bag_per_row(table: pa.Table) -> Iterator[Row]:
    """Yield each row's canonical form, in order."""
    for position in range(table.num_rows):
        (row,) = bag_of(table.slice(position, 1))
        yield row


def difference(old: Counter[Row], new: Counter[Row]) -> dict[Row, int]:
    """Return new minus old, without zeros."""
    weights = {row: new[row] - old[row] for row in old.keys() | new.keys()}
    return {row: weight for row, weight in weights.items() if weight}


def keyless_history(seed: int, steps: int, schema: pa.Schema = SCHEMA) -> Iterator[Step]:
    """Yield up to `steps` change sets of a table without key: copies come and go."""
    chance = random.Random(seed)
    bag: Counter[Row] = Counter()
    shown: dict[Row, list[Any]] = {}
    for _ in range(steps):
        changed: dict[Row, tuple[list[Any], int, int]] = {}
        for _ in range(chance.randint(1, 12)):
            is_old = shown and chance.random() < 0.6
            values = chance.choice(list(shown.values())) if is_old else _values(chance, schema)
            (row,) = bag_of(_table([values], schema))
            new_count = chance.choice([0, 0, 1, 1, 2, 3])
            if row not in changed and new_count != bag[row]:
                changed[row] = (values, bag[row], new_count)
        bag = bag.copy()
        for row, (values, _, new_count) in changed.items():
            bag[row] = new_count
            shown[row] = values
        bag = +bag
        if changed:
            yield Step(_diff(list(changed.values()), schema), bag)


def keyed_history(
    seed: int, steps: int, key: tuple[str, ...], schema: pa.Schema = SCHEMA
) -> Iterator[Step]:
    """Yield up to `steps` change sets of a table with a key; NULL is a key like others."""
    chance = random.Random(seed)
    state: dict[Row, list[Any]] = {}
    key_schema = pa.schema([schema.field(name) for name in key])
    for _ in range(steps):
        changes: list[tuple[list[Any], int, int]] = []
        touched: set[Row] = set()
        state = dict(state)
        for _ in range(chance.randint(1, 12)):
            values = _values(chance, schema)
            if state and chance.random() < 0.5:
                old = chance.choice(list(state.values()))
                values = [
                    before if name in key else after
                    for name, before, after in zip(schema.names, old, values, strict=True)
                ]
            parts = [values[schema.get_field_index(name)] for name in key]
            (found_by,) = bag_of(_table([parts], key_schema), identical=False)
            if found_by in touched:
                continue
            touched.add(found_by)
            stored = state.pop(found_by, None)
            goes = stored is not None and chance.random() < 0.3
            if not goes:
                state[found_by] = values
            if stored is not None and not goes:
                rows = [bag_of(_table([part], schema)) for part in (stored, values)]
                if rows[0] == rows[1]:
                    continue
            if stored is not None:
                changes.append((stored, 1, 0))
            if not goes:
                changes.append((values, 0, 1))
        chance.shuffle(changes)
        if changes:
            yield Step(_diff(changes, schema), bag_of(_table(list(state.values()), schema)))


def _values(chance: random.Random, schema: pa.Schema) -> list[Any]:
    return [
        None if chance.random() < 0.15 else chance.choice(_VALUES[name][1]) for name in schema.names
    ]


def _table(rows: list[list[Any]], schema: pa.Schema) -> pa.Table:
    arrays = [
        pa.array([row[position] for row in rows], field.type)
        for position, field in enumerate(schema)
    ]
    return pa.table(arrays, schema=schema)


def _diff(changes: list[tuple[list[Any], int, int]], schema: pa.Schema) -> pa.Table:
    rows = [[*values, old, new] for values, old, new in changes]
    return _table(rows, pa.schema([*schema, *COUNTS]))
