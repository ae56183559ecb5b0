"""Random histories of bags of rows: rows of every type that come, go, repeat and change."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from livemart.arrow.bags import NEW_COUNT, OLD_COUNT, WEIGHT

Row = tuple[Any, ...]

COUNTS = [pa.field(OLD_COUNT, pa.int64()), pa.field(NEW_COUNT, pa.int64())]
_ITEM = pa.struct([("dish", pa.string()), ("price", pa.decimal128(10, 2))])
_VALUES: Mapping[str, tuple[pa.DataType, list[Any]]] = {
    "name": (pa.string(), ["", "a", 'O\'Brien \\ "x"', "ünïcode " * 9, "z\U0001f355"]),
    "region": (pa.string(), ["north", "a b/c%d'é=", "ü" * 40]),
    "small": (pa.int32(), [-(2**31), 0, 7, 2**31 - 1]),
    "big": (pa.int64(), [-(2**63), 0, 1, 2**63 - 1]),
    "amount": (
        pa.decimal128(20, 3),
        [Decimal("-1.500"), Decimal(0), Decimal("99999999999999.999")],
    ),
    "is_new": (pa.bool_(), [True, False]),
    "ratio": (pa.float64(), [0.0, -0.0, math.nan, math.inf, 1.5]),
    "ratio32": (pa.float32(), [0.0, -0.0, math.nan, -2.25]),
    "day": (pa.date32(), [date(1969, 12, 31), date(2026, 1, 1), date(2026, 1, 2)]),
    "at": (
        pa.timestamp("us", tz="UTC"),
        [
            datetime(2026, 1, 1, 23, 59, 59, 999_999, tzinfo=UTC),
            datetime(2026, 1, 2, tzinfo=UTC),
            datetime(1969, 12, 31, 23, 59, 59, 999_001, tzinfo=UTC),
        ],
    ),
    "local_at": (
        pa.timestamp("us"),
        [datetime(2026, 1, 1, 23, 59, 59, 999_999), datetime(2026, 3, 29, 2, 30)],
    ),
    "token": (pa.binary(), [b"", b"\x00\xff", b"a'b"]),
    "items": (
        pa.list_(_ITEM),
        [[], [None], [{"dish": "a", "price": Decimal("1.10")}, {"dish": None, "price": None}]],
    ),
    "place": (
        pa.struct([("city", pa.string()), ("tags", pa.list_(pa.string()))]),
        [{"city": None, "tags": None}, {"city": "x", "tags": ["t", None]}],
    ),
    "extra": (
        pa.map_(pa.string(), pa.int32()),
        [[], [("k", 1), ("l", None)], [("l", None), ("k", 1)], [("k", 2)]],
    ),
}
SCHEMA = pa.schema([(name, kind) for name, (kind, _) in _VALUES.items()])


@dataclass(frozen=True)
class Step:
    """One change set, and the bag it leads to."""

    diff: pa.Table
    bag: Counter[Row]


def canonical(value: Any) -> Any:
    """Return a hashable value, equal where Spark's GROUP BY sees equal values."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    if isinstance(value, datetime):
        return value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
    if isinstance(value, dict):
        return tuple(canonical(part) for part in value.values())
    if isinstance(value, list):
        return tuple(canonical(part) for part in value)
    if isinstance(value, bytearray):
        return bytes(value)
    return value


def bag_of(table: pa.Table) -> Counter[Row]:
    """Count the rows of a table; entries of maps in any order are the same row."""
    maps = [pa.types.is_map(field.type) for field in table.schema]
    columns = [column.to_pylist() for column in table.columns]
    bag: Counter[Row] = Counter()
    for values in zip(*columns, strict=True):
        row = [
            tuple(sorted((key, canonical(item)) for key, item in value))
            if is_map and value is not None
            else canonical(value)
            for value, is_map in zip(values, maps, strict=True)
        ]
        bag[tuple(row)] += 1
    return bag


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
            (identity,) = bag_of(_table([parts], key_schema))
            if identity in touched:
                continue
            touched.add(identity)
            stored = state.pop(identity, None)
            goes = stored is not None and chance.random() < 0.3
            if not goes:
                state[identity] = values
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
