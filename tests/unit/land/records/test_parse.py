"""Records of each format become judged rows."""

from __future__ import annotations

import gzip
import json
import random
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from livemart.land.records import parse
from livemart.land.records.by_columns import read_one_by_one
from livemart.land.records.judge import KEPT_RECORD_BYTES, MAX_RECORD_BYTES, Rules
from livemart.land.records.parse import RECORD_FORMATS
from livemart.land.records.untyped_values import first_name
from livemart.land.sources.files.lines import read_lines
from livemart.land.sources.files.parts import FilePart
from livemart.project.graph import RowRules
from livemart.project.sources import FORMATS
from tests.unit.land.records.rows import NOON, codes, good, group_of, read

GROUP = group_of({"text": "string"})
KINDS = {
    "text": "string",
    "flag": "boolean",
    "tiny": "tinyint",
    "number": "int",
    "big": "bigint",
    "share": "double",
    "small": "float",
    "price": "decimal(10,2)",
    "count": "decimal(38,0)",
    "day": "date",
    "moment": "timestamp",
    "local": "timestamp_ntz",
    "items": "array<struct<dish_id:bigint,unit_price:decimal(10,2),at:timestamp>>",
    "tags": "map<string,int>",
    "blob": "binary",
}


@pytest.mark.parametrize("format", ["json", "csv"])
def test_a_long_file_comes_in_several_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format: str
) -> None:
    monkeypatch.setattr(parse, "_RUN_RECORDS", 2)
    content = {"json": '{"text":"x"}\n' * 5, "csv": "text\n" + "x\n" * 5}[format]
    path = tmp_path / "a"
    path.write_text(content)

    tables = list(FilePart("a", path).read(group_of({"text": "string"}, format)))

    assert [table.num_rows for table in tables] == [2, 2, 1]
    assert all(table.schema.equals(tables[0].schema) for table in tables)


def test_a_json_array_is_read_as_its_elements(tmp_path: Path) -> None:
    content = '[{"text":"a"},\n {"text":1}, 7,\n {"text":["x"]} ,{"text":"b"}\n]\n'

    table = read(GROUP, tmp_path / "a.json", content)

    assert good(table, "_origin", "text") == [
        ("a.json:1", "a"),
        ("a.json:2", "1"),
        ("a.json:5", "b"),
    ]
    assert codes(table) == [None, None, "MALFORMED_RECORD", "TYPE_MISMATCH", None]
    # In CSV it is a field like any other.
    rows = read(group_of({"[text": "string"}, "csv"), tmp_path / "a.csv", "[text\na\n")
    assert good(rows, "[text") == ["a"]


def test_an_empty_file_has_no_records(tmp_path: Path) -> None:
    for format in ("json", "csv"):
        table = read(group_of({"text": "string"}, format), tmp_path / "a", "\n\n")

        assert table.num_rows == 0


def test_blanks_round_a_line_of_json_are_not_part_of_the_record(tmp_path: Path) -> None:
    table = read(GROUP, tmp_path / "a.jsonl", ' {"text":"a"}\t\r\n  x  \n')

    assert good(table, "text") == ["a"]
    assert codes(table) == [None, "MALFORMED_RECORD"]
    assert table.column("_record").to_pylist() == [None, "x"]


def test_every_format_that_a_project_may_name_has_a_reader() -> None:
    assert tuple(RECORD_FORMATS) == FORMATS


@pytest.mark.parametrize(
    ("name", "written", "expected"),
    [
        ("text", '"a\\u00e9\\n"', "aé\n"),
        ("text", "1.50", "1.50"),
        ("text", "true", "true"),
        ("flag", "true", True),
        ("flag", '"False"', False),
        ("number", "-7", -7),
        ("number", "1.0", 1),
        ("number", "2e3", 2000),
        ("number", '"12"', 12),
        ("big", "9223372036854775807", 9223372036854775807),
        ("share", "0.1", 0.1),
        ("share", "1e308", 1e308),
        ("price", "0.1", Decimal("0.10")),
        ("price", '"12.5"', Decimal("12.50")),
        ("price", "1.1000", Decimal("1.10")),
        ("price", "99999999.99", Decimal("99999999.99")),
        ("price", "99999999.990000000000000000000000", Decimal("99999999.99")),
        ("count", "9" * 38, Decimal("9" * 38)),
        ("day", '"2026-02-28"', date(2026, 2, 28)),
        ("moment", '"2026-03-01T12:00:00Z"', NOON),
        ("moment", '"2026-03-01 12:00"', NOON),
        ("moment", '"2026-03-01"', NOON - timedelta(hours=12)),
        ("moment", '"2026-03-01T14:00:00.000001+02:00"', NOON + timedelta(microseconds=1)),
        ("moment", '"2026-03-01T12:00:00.1234567Z"', NOON + timedelta(microseconds=123456)),
        ("local", '"2026-03-01T12:00:00"', datetime(2026, 3, 1, 12)),
        ("items", "[]", []),
        (
            "items",
            '[null,{"unit_price":2}]',
            [None, {"dish_id": None, "unit_price": Decimal("2.00"), "at": None}],
        ),
        ("tags", '{"b":2,"a":null}', [("b", 2), ("a", None)]),
        ("blob", '"aGk="', b"hi"),
        ("price", "null", None),
    ],
)
def test_a_value_that_fits_is_kept_exactly(
    tmp_path: Path, name: str, written: str, expected: Any
) -> None:
    group = group_of({name: KINDS[name]})

    table = read(group, tmp_path / "a.jsonl", f'{{"{name}":{written}}}')

    assert codes(table) == [None]
    assert good(table, name) == [expected]


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("text", '{"a":1}'),
        ("flag", "1"),
        ("tiny", "128"),
        ("number", "2147483648"),
        ("number", "1.5"),
        ("number", '"many"'),
        ("number", "true"),
        ("number", "1e400000000"),
        ("number", "1e99999999999999999999"),
        ("price", "0e99999999999999999999"),
        ("tags", '{"a":1e99999999999999999999}'),
        ("share", "1e400"),
        ("share", '"NaN"'),
        ("share", '"Infinity"'),
        ("small", "1e39"),
        ("price", "0.005"),
        ("price", "100000000"),
        ("price", "99999999.999999999999999999999999"),
        ("count", "1" + "0" * 38),
        ("price", '"NaN"'),
        ("day", '"2026-02-30"'),
        ("moment", '"2026-13-01T00:00:00Z"'),
        ("moment", '"2026-03-01T24:00:00Z"'),
        ("moment", '"2026-03-01T12:00:00+19:00"'),
        ("moment", '"yesterday"'),
        ("moment", "1772366400"),
        ("local", '"2026-03-01T12:00:00Z"'),
        ("items", '{"dish_id":1}'),
        ("items", '[{"dish_id":"x"}]'),
        ("tags", "[1]"),
        ("blob", '"?"'),
        ("blob", '"é"'),
    ],
)
def test_a_value_that_does_not_fit_is_a_type_mismatch(
    tmp_path: Path, name: str, written: str
) -> None:
    group = group_of({name: KINDS[name]})

    table = read(group, tmp_path / "a.jsonl", f'{{"{name}":{written}}}')

    assert codes(table) == ["TYPE_MISMATCH"]
    assert table.column("_record").to_pylist() == [f'{{"{name}":{written}}}']


@pytest.mark.parametrize(
    "raw",
    [
        b"{",
        b"[1]",
        b"null",
        b'"text"',
        b"{} {}",
        b'{"text":NaN}',
        b'{"text":"a","text":"b"}',
        b'{"other":{"a":1,"a":2}}',
        b'{"text":"\xff"}',
        b'{"text":"a\x00b"}',
        b'{"text":"a\\u0000b"}',
        b'{"text":"\\ud800"}',
        b'{"other":["\\udc00"]}',
        b'{"\\ud800":1,"\\ud800":2}',
        b'{"\\u0000":1,"\\u0000":2}',
        b'{"text":"a\tb"}',
        b'{"text":' + b"[" * 100 + b"]" * 100 + b"}",
        b'{"text":' + b"[" * 100_000,
    ],
)
def test_a_broken_line_is_malformed_and_its_neighbours_land(tmp_path: Path, raw: bytes) -> None:
    group = group_of({"text": "string"})

    table = read(
        group, tmp_path / "a.jsonl", b'{"text":"before"}\n' + raw + b'\n{"text":"after"}\n'
    )

    assert codes(table) == [None, "MALFORMED_RECORD", None]
    assert good(table, "text") == ["before", "after"]


def test_a_record_too_large_is_cut_and_its_size_kept(tmp_path: Path) -> None:
    raw = b'{"text":"' + b"x" * 10_000_000 + b'"}'
    group = group_of({"text": "string"})

    table = read(group, tmp_path / "a.jsonl", raw + b'\n{"text":"after"}')

    assert len(raw) > MAX_RECORD_BYTES
    assert codes(table) == ["RECORD_TOO_LARGE", None]
    assert table.column("_record_bytes")[0].as_py() == len(raw)
    assert len(table.column("_record")[0].as_py()) == KEPT_RECORD_BYTES


def test_a_line_longer_than_memory_should_hold_is_counted_and_cut(tmp_path: Path) -> None:
    record = {"text": "x" * 9_000_000}
    content = json.dumps(record).encode() + b'\r\n{"text":"after"}'
    group = group_of({"text": "string"})

    table = read(group, tmp_path / "a.jsonl", content)

    assert codes(table) == ["RECORD_TOO_LARGE", None]
    assert good(table, "_origin", "text") == [("a.jsonl:2", "after")]
    assert table.column("_record_bytes").to_pylist()[0] == content.index(b"\n")
    assert len(table.column("_record").to_pylist()[0]) == KEPT_RECORD_BYTES
    runs = list(read_lines(tmp_path / "a.jsonl"))
    assert max(len(line) for run in runs for _, line in run.lines) < 3_000_000


def test_a_detail_is_cut_however_long_the_name_that_it_quotes(tmp_path: Path) -> None:
    name = "k" * 100_000
    group = group_of({"text": "string"})

    table = read(group, tmp_path / "a.jsonl", f'{{"{name}":1,"{name}":2}}')

    assert len(table.column("_detail_0").to_pylist()[0]) == 1_000


def test_bounds_beyond_the_calendar_bound_nothing(tmp_path: Path) -> None:
    ages = timedelta(days=5_000_000)
    rules = Rules(RowRules(max_future=ages, horizon=ages), "moment")
    group = group_of({"moment": "timestamp"}, "json", rules)

    table = read(group, tmp_path / "a.jsonl", '{"moment":"0001-01-01"}\n{"moment":"9999-01-01"}')

    assert codes(table) == [None, None]


def test_unknown_fields_are_rescued_under_their_path(tmp_path: Path) -> None:
    raw = '{"items":[{"dish_id":1},{"dish_id":2,"note":"hot"}],"tip":1.50,"who":{"a":[1]},"x":null}'
    group = group_of({"items": "array<struct<dish_id:bigint>>"})
    expected = {"items[1].note": "hot", "tip": "1.50", "who": '{"a":[1]}', "x": None}

    table = read(group, tmp_path / "a.jsonl", raw)

    assert dict(good(table, "_rescued_data")[0]) == expected


def test_fields_of_any_names_are_rescued_under_different_paths(tmp_path: Path) -> None:
    raw = """
        {"s": {"x": 1, "b": 2, "a.b": 3}, "s.b": 4, "m": {"k": {"n": 5}, "k.n": {"y": 6}},
         "[": 7, "`q": 8, "o`": 9, "d.e": {"x": 1, "n": 10}}
    """
    kinds = {"s": "struct<x:int>", "m": "map<string,struct<y:int>>", "d.e": "struct<x:int>"}
    expected = {
        "s.b": "2",
        "s.`a.b`": "3",
        "`s.b`": "4",
        "m.k.n": "5",
        "`[`": "7",
        "```q`": "8",
        "o`": "9",
        "`d.e`.n": "10",
    }

    table = read(group_of(kinds), tmp_path / "a.jsonl", raw.replace("\n", " "))

    assert good(table, "_rescued_data") == [sorted(expected.items())]
    # Each path begins at the field that it says.
    assert [first_name(path) for path in expected] == [
        *("s", "s", "s.b", "m", "[", "`q", "o`", "d.e")
    ]


def test_origin_is_file_and_line_and_blank_lines_count_as_lines(tmp_path: Path) -> None:
    content = b'\xef\xbb\xbf{"text":"a"}\r\n\n   \n{"text":"b"}'

    table = read(group_of({"text": "string"}), tmp_path / "a.jsonl", content)

    assert good(table, "_origin", "text") == [("a.jsonl:1", "a"), ("a.jsonl:4", "b")]


def test_gzip_is_read_as_its_content_and_a_torn_end_is_noticed(tmp_path: Path) -> None:
    chance = random.Random(7)
    lines = [json.dumps({"text": f"{number:06d}{chance.random()}"}) for number in range(5_000)]
    whole = gzip.compress("\n".join(lines[:2_500]).encode() + b"\n")
    whole += gzip.compress("\n".join(lines[2_500:]).encode())
    group = group_of({"text": "string"})

    complete = read(group, tmp_path / "a.jsonl.gz", whole)
    torn = read(group, tmp_path / "b.jsonl.gz", whole[:-2_000])

    assert (len(complete), set(codes(complete))) == (5_000, {None})
    assert codes(torn).count("MALFORMED_RECORD") == 1
    assert 2_500 < len(torn) < 5_000


def test_rules_are_judged_for_each_source_of_the_group(tmp_path: Path) -> None:
    keyed = Rules(RowRules(("id",), ("at",), horizon=timedelta(days=2)), "at")
    group = group_of({"id": "string", "at": "timestamp"}, "json", keyed, Rules(RowRules()))
    content = "\n".join(
        [
            '{"id":"a","at":"2026-03-01T13:00:00Z"}',
            '{"id":"b","at":"2026-03-01T13:00:00.000001Z"}',
            '{"id":"c","at":"2026-02-27T12:00:00Z"}',
            '{"id":"d","at":"2026-02-27T11:59:59Z"}',
            '{"at":"2026-03-01T12:00:00Z"}',
            '{"id":"f"}',
        ]
    )

    table = read(group, tmp_path / "a.jsonl", content)

    assert codes(table) == [
        None,
        "FUTURE_EVENT_TIME",
        None,
        "TOO_LATE",
        "NULL_KEY",
        "NULL_SEQUENCE",
    ]
    assert table.column("_code_1").null_count == 6


@pytest.mark.parametrize("seed", range(4))
def test_arrow_and_the_exact_reader_agree_on_mutated_records(seed: int) -> None:
    kinds = {name: kind for name, kind in KINDS.items() if name not in ("tags", "blob")}
    group = group_of(kinds)
    source = random.Random(seed)
    lines = [(number, _mutated(source)) for number in range(1, 1_500)]

    fast = parse.read_json_lines(group, lines)
    exact = read_one_by_one(group, lines, parse.parse_object)

    assert fast.lines == exact.lines
    assert fast.rows.combine_chunks().equals(exact.rows)
    assert [(each.line, each.code) for each in fast.refused] == [
        (each.line, each.code) for each in exact.refused
    ]


@pytest.mark.parametrize(
    "kind", ["decimal(38,18)", "decimal(38,38)", "decimal(38,2)", "decimal(38,0)", "decimal(10,2)"]
)
def test_arrow_and_the_exact_reader_agree_on_decimals_of_any_size(kind: str) -> None:
    """By pyarrow 26, 744725468780829334838 is 64160734938952407911.25... in decimal(38,18)."""
    group = group_of({"id": "int", "price": kind, "prices": f"array<{kind}>"})
    source = random.Random(kind)
    numbers = ["744725468780829334838", "1e-49", '"1e-99"']
    for _ in range(400):
        digits = str(source.randrange(10 ** source.randint(1, 39)))
        places = source.randint(0, min(20, len(digits) - 1))
        whole, part = digits[: len(digits) - places], digits[len(digits) - places :]
        number = f"{source.choice(['-', ''])}{whole}{'.' if part else ''}{part}"
        if source.random() < 0.3:
            number += f"e{source.choice([-60, -40, -20, -3, 0, 3, 20])}"
        numbers.append(source.choice([number, f'"{number}"']))

    for number in numbers:
        # Two lines: one is always read exactly.
        lines = [(1, f'{{"price":{number},"prices":[{number}]}}'.encode()), (2, b'{"id":2}')]
        fast = parse.read_json_lines(group, lines)
        exact = read_one_by_one(group, lines, parse.parse_object)

        assert fast.rows.equals(exact.rows), number
        assert fast.refused == exact.refused, number


def _mutated(source: random.Random) -> bytes:
    moment = datetime(2026, 3, 1, tzinfo=UTC) + timedelta(seconds=source.randrange(10**6))
    record = {
        "text": source.choice(["a", "ü", "", None]),
        "flag": source.choice([True, False, None]),
        "tiny": source.choice([1, 127, 128]) if source.random() < 0.02 else 5,
        "number": source.randrange(1000),
        "big": source.randrange(2**40),
        "share": source.random(),
        "small": source.random(),
        "price": source.choice([1, 2.5, "3.25", 10.10]),
        "day": "2026-03-01",
        "moment": moment.isoformat(),
        "local": source.choice([None, "2026-03-01T00:00:00.5"]),
        "items": source.choice([None, [], [{"dish_id": 1, "unit_price": 2.5, "at": None}]]),
    }
    raw = bytearray(json.dumps(record).encode())
    if source.random() < 0.02:
        fragments = [
            b"null",
            b"{",
            b"}",
            b'"',
            b",",
            b"\\",
            b"1",
            b"\xff",
            b"\x00",
            b"1e999",
            b"[]",
        ]
        for _ in range(source.randint(1, 3)):
            place = source.randrange(len(raw))
            raw[place : place + source.randint(0, 3)] = source.choice(fragments)
    return bytes(raw).strip() or b"x"


def test_rows_come_out_in_the_declared_types(tmp_path: Path) -> None:
    group = group_of(KINDS)

    table = read(group, tmp_path / "a.jsonl", "{}\n")

    assert table.schema.field("price").type == pa.decimal128(10, 2)
    assert table.schema.field("moment").type == pa.timestamp("us", tz="UTC")
    assert table.select(group.schema.names).to_pylist() == [dict.fromkeys(KINDS)]
