"""Columns that are converted together hold what the conversion of each value gives."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from livemart.land.records.by_columns import convert_columns, read_one_by_one, require_size
from livemart.land.records.exact_values import TooLargeError, parse_json
from livemart.land.records.judge import MAX_RECORD_BYTES, Group, with_rescued
from livemart.land.records.parse import parse_object
from livemart.land.records.runs import CutLine
from livemart.land.records.untyped_values import MisfitError, Rescued, compact
from tests.unit.land.records.rows import group_of

KINDS = {
    "text": "string",
    "flag": "boolean",
    "tiny": "tinyint",
    "big": "bigint",
    "share": "double",
    "small": "float",
    "price": "decimal(10,2)",
    "all_places": "decimal(4,4)",
    "day": "date",
    "moment": "timestamp",
    "local": "timestamp_ntz",
    "tags": "map<string,int>",
    "items": "array<struct<n:int,at:timestamp>>",
    "blob": "binary",
}
# Each is written as some producer does.
WRITTEN = [
    *("null", "true", "false", '"true"', '"False"', '""', '"x"', '"é\\n"', "{}", "[]", "[1]"),
    *("1", "-0", "0", '"007"', "1.0", "2e3", '"1e2"', "12.50", '"12.50"', "1.005"),
    *("127", "128", "-128", "9223372036854775807", "9223372036854775808", "0.1", "1e309", '"NaN"'),
    *("99999999.99", "100000000", "0.12345", "0.1234", "1e-400", '" 1"', '"+1"', '"1_0"'),
    *('"2026-03-01"', '"2026-3-1"', '"2026-02-30"', '"0000-01-01"', '"9999-12-31"'),
    *('"2026-03-01T12:00:00Z"', '"2026-03-01 12:00:00"', '"2026-03-01T12:00:00.1234567+02:00"'),
    *('"2026-03-01T12:00:00.123456789Z"', '"2026-03-01T12:00:00.1234567890Z"'),
    *('"2026-03-01T12:00:00+0200"', '"2026-03-01 12:00:00-05"', '"2026-03-01T12:00"'),
    *('"2026-03-01T24:00:00Z"', '"2026-03-01T12:00:60Z"', '"2026-03-01T12:00:00+19:00"'),
    *('"0001-01-01T00:00:00+05:00"', '"9999-12-31T23:59:59.999999Z"', '"2026-03-01T12:00:00,5Z"'),
    *('{"a": 1}', '{"a": "x"}', '[{"n": 1, "at": "2026-03-01T12:00:00Z", "z": 1}]', '[{"n": "x"}]'),
]


def alone(group: Group, records: list[dict[str, Any]]) -> tuple[pa.Table, dict[int, str]]:
    """Return rows and refusals of records that are converted one by one, value by value."""
    values, rescued, refused = [], [], {}
    for position, record in enumerate(records):
        unknown: Rescued = {name: compact(record[name]) for name in record.keys() - KINDS.keys()}
        try:
            row = [
                None if record.get(name) is None else convert(record[name], name, unknown)
                for name, convert in group.converters
            ]
        except MisfitError as error:
            refused[position] = str(error)
        else:
            values.append(row)
            rescued.append(unknown)
    columns = [
        pa.array([row[place] for row in values], field.type)
        for place, field in enumerate(group.schema.arrow)
    ]
    return with_rescued(group, columns, rescued), refused


def same(group: Group, records: list[dict[str, Any]]) -> bool:
    """Return True if both ways give the same, and fail if they do not."""
    rows, refused = convert_columns(group, records)
    expected, reasons = alone(group, records)
    assert {position: str(error) for position, error in refused.items()} == reasons
    assert rows.schema.equals(expected.schema)
    # As texts, two zeros differ, and a value that is no number equals itself.
    assert list(map(str, rows.to_pylist())) == list(map(str, expected.to_pylist()))
    return bool(refused)


@pytest.mark.gate_takes_every(2)
@pytest.mark.parametrize("empty_is_null", [False, True])
@pytest.mark.parametrize("name", KINDS)
def test_each_value_is_read_as_it_is_alone_among_plain_ones(name: str, empty_is_null: bool) -> None:
    group = group_of(KINDS)
    rules = replace(group.record_rules, empty_is_null=empty_is_null)
    group = replace(group, record_rules=rules)
    values = [parse_json(f'{{"{name}": {text}, "more": {text}}}'.encode()) for text in WRITTEN]

    assert [same(group, [value]) for value in values].count(False) > 2
    same(group, values)
    # Values that Arrow may convert together, if it takes each of them.
    for first in () if empty_is_null else values:
        for second in values[::13]:
            same(group, [first, second])


def test_plain_columns_are_converted_together(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = {
        "text": "a",
        "flag": True,
        "price": "1.50",
        "moment": "2026-03-01 12:00:00.123456789",
        "day": "2026-03-01",
        "tip": "2",
    }
    kinds = {name: kind for name, kind in KINDS.items() if name in plain}
    group = group_of(kinds)
    monkeypatch.setattr(
        type(group), "converters", [(name, lambda *_: 1 / 0) for name, _ in group.converters]
    )

    rows, refused = convert_columns(group, [plain, {}])

    assert refused == {}
    assert rows["_rescued_data"].to_pylist() == [[("tip", "2")], None]
    assert str(rows["moment"][0].as_py()) == "2026-03-01 12:00:00.123456+00:00"


def test_columns_that_are_read_already_keep_the_rows_that_fit() -> None:
    group = group_of({"id": "int", "n": "int"})
    ready = {"id": pa.array([1, 2, 3], pa.int32())}

    rows, refused = convert_columns(
        group, [{"n": "1"}, {"n": "x"}, {"z": None}], ready=ready, keeps_null=False
    )

    assert list(refused) == [1]
    assert rows.select(["id", "n"]).to_pylist() == [{"id": 1, "n": 1}, {"id": 3, "n": None}]
    assert rows["_rescued_data"].null_count == 2


def test_random_runs_are_converted_as_their_records_are() -> None:
    chance, group = random.Random(7), group_of(KINDS)
    for _ in range(200):
        some = chance.sample(WRITTEN, 4)
        records = []
        for _ in range(chance.randrange(1, 9)):
            names = chance.sample([*KINDS, "more", "other"], 5)
            text = ", ".join(f'"{name}": {chance.choice(some)}' for name in names)
            records.append(parse_json(f"{{{text}}}".encode()))
        same(group, records)


def test_a_record_that_is_refused_leaves_the_others_in_their_places() -> None:
    records = [
        (3, b'{"id": "a", "n": 1}'),
        (4, b"{"),
        (7, b'{"id": "b", "n": "x"}'),
        (8, b" " * (MAX_RECORD_BYTES + 1)),
        (9, b'{"id": "c", "tip": 2}'),
    ]

    chunk = read_one_by_one(group_of({"id": "string", "n": "int"}), records, parse_object)

    assert list(chunk.lines) == [3, 9]
    assert [chunk.record(row) for row in (0, 1)] == [records[0][1], records[4][1]]
    assert chunk.rows.to_pylist() == [
        {"id": "a", "n": 1, "_rescued_data": None},
        {"id": "c", "n": None, "_rescued_data": [("tip", "2")]},
    ]
    assert [(it.line, it.code, it.record) for it in chunk.refused] == [
        (4, "MALFORMED_RECORD", b"{"),
        (7, "TYPE_MISMATCH", records[2][1]),
        (8, "RECORD_TOO_LARGE", records[3][1]),
    ]


def test_the_size_of_a_line_that_is_cut_is_that_of_it_all() -> None:
    require_size(b" " * MAX_RECORD_BYTES)
    with pytest.raises(TooLargeError, match="5000000 bytes"):
        require_size(CutLine.of(b" " * (MAX_RECORD_BYTES + 1), 5_000_000))
