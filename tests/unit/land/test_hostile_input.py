"""Whatever is delivered, landing goes on, and every record is landed, superseded or refused."""

from __future__ import annotations

import gzip
import random
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import IS_NIGHTLY
from tests.deliveries import NOON, Shop, source
from tests.unit.land.records.typed.test_typed_records import avro, parquet

COLUMNS = {
    "order_id": ("string", b'"o%d"'),
    "ordered_at": ("timestamp", b'"2026-03-01T12:00:00Z"'),
    "day": ("date", b'"2026-03-01"'),
    "number": ("bigint", b"3"),
    "price": ("decimal(10,2)", b"1.50"),
    "share": ("double", b"2.5"),
    "small": ("float", b"1.5"),
    "flag": ("boolean", b"true"),
    "blob": ("binary", b'"aGk="'),
    "tags": ("map<string,decimal(5,1)>", b'{"k":1.5}'),
    "items": ("array<struct<dish_id:bigint,unit_price:decimal(10,2)>>", b'[{"dish_id":1}]'),
    "updated_at": ("timestamp", b'"2026-03-01T12:%02d:00Z"'),
    "op": ("string", b'"c"'),
}
VALUES = (
    b"null", b"-1", b"00", b"+1", b".5", b"1_000", b"7.005", b"-0.0", b"2e3", b"9" * 5_000,
    b"1e400", b"-1e-400", b"1e9999999", b"1e99999999999999999999", b"0e99999999999999999999",
    b"NaN", b"-Infinity", b'"NaN"', b'"inf"', "'\u0967'".encode(), '"\uff11"'.encode(), b'"1e400"',
    b"true", b'""', b'" "', b'"!!"', '"\u00e9"'.encode(), b'"a\rb"', b'"a\tb"', b"1 2", b"[1,2",
    b'"\\ud800"', b'"\\u0000"', b'"\x00"', b'"\xff"', b'"\xed\xa0\x80"', b"\xef\xbb\xbf1",
    b"{}", b"[]", b"[null]", b'[{"dish_id":[]}]', b'{"k":1e99999999999999999999}', b'{"":{}}',
    b'"0000-01-01"', b'"0001-01-01T00:00:00+18:00"', b'"9999-12-31T23:59:59-18:00"',
    b'"2026-02-30"', b'"2026-03-01T12:00:60Z"', b'"2026-03-01T12:00:00.1234567890Z"',
    b"[" * 70 + b"]" * 70, b'{"a":' * 70 + b"1" + b"}" * 70, b'"' + b"x" * 9_000 + b'"',
)  # fmt: skip
FIELDS = (
    b'"tip":1', b'"_batch_id":3', b'"_record":1', b'"Order_ID":"x"', b'"":1', b'"order_id":1',
    b'"\\ud800":1,"\\ud800":2', b'"\\u0000":1', b'"%s":1,"%s":2' % (b"k" * 9_000, b"k" * 9_000),
)  # fmt: skip
JSON_LINES = (
    b"", b" ", b"\t\r", b"\x0c", b"null", b"[]", b"{}", b"1", b"{", b"}", b"\x00", b"\x1f\x8b",
    b'{"a":1}{"a":2}', b'{"a":1}\r{"a":2}', b"\xef\xbb\xbf{}", b'{"a":"' + b"y" * (3 << 20),
)  # fmt: skip
CSV_LINES = [b"", b"\r", b",,,", b'"', b'""', b'"a\nb"', b'"' + b"z" * (3 << 20), b"\x00", b"a\rb"]
CSV_FIELDS = [b'"', b'""', b'"a\nb"', b'"a\r\nb"', b'a"b', b'"a"b', b'"open', b"\r", b'"\n\n"', b""]
FRAGMENTS = [b"\x00", b"\xff", b"{", b"}", b'"', b"\\", b"\r", b",", b"null", b"[[[[", b"\x1f\x8b"]
STORED = {"order_id": "string", "number": "int", "updated_at": "timestamp"}
AVRO = {
    "type": "record",
    "name": "row",
    "fields": [
        {"name": "order_id", "type": ["null", "string"]},
        {"name": "number", "type": ["null", "long"]},
        {"name": "updated_at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "tip", "type": ["null", "int"]},
    ],
}
HEADERS = [b'"', b"\x00", b"\xff", b",", b",order_id", b',x"y', b"\r,x"]


@pytest.mark.parametrize(
    "seed",
    [
        *(0, 1),
        *(
            pytest.param(seed, marks=pytest.mark.extended)
            for seed in range(2, 40 if IS_NIGHTLY else 6)
        ),
    ],
)
def test_hostile_files_are_all_accounted_for(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    columns = {name: kind for name, (kind, _) in COLUMNS.items()}
    if seed % 2:
        # Without types that only the exact reader knows, Arrow reads runs of good lines.
        columns = {name: kind for name, kind in columns.items() if name not in ("blob", "tags")}
    specs: dict[str, dict[str, Any]] = {
        "keyed": {"keys": ("order_id",), "horizon": timedelta(days=400)},
        "deleting": {"keys": ("order_id",), "apply_as_deletes": "op = 'd'"},
        "events": {"max_future": None},
        "fixed": {
            "keys": ("order_id",),
            "sequence_by": ("updated_at", "price"),
            "event_time_is_fixed": True,
            "schema_drift": "evolve",
        },
    }
    sources = [
        source(f"{format}_{name}", columns, format=format, path=f"{format}/*", **spec)
        for format in ("json", "csv")
        for name, spec in specs.items()
    ]
    sources += [
        source("text_lines", {"line": "bigint"}, format="text", path="text/*"),
        source("parquet_rows", STORED, format="parquet", path="parquet/*"),
        source("avro_rows", STORED, format="avro", path="avro/*", keys=("order_id",)),
    ]
    shop = Shop(None, tmp_path, sources)
    for batch_id in range(3):
        json_lines = [_json_line(chance, columns) for _ in range(chance.choice([1, 40, 150]))]
        paths = [
            shop.deliver(f"json/{batch_id}", _file(chance, json_lines)),
            shop.deliver(f"csv/{batch_id}", _file(chance, _csv_lines(chance, columns))),
            shop.deliver(f"json/{batch_id}.gz", _torn(chance, json_lines)),
            shop.deliver(f"csv/{batch_id}.gz", _torn(chance, _csv_lines(chance, columns))),
            shop.deliver(f"text/{batch_id}", _file(chance, [*json_lines, b"7", b" 8", b"x9"])),
            shop.deliver(f"parquet/{batch_id}", _changed(chance, parquet(_stored(chance)))),
            shop.deliver(f"avro/{batch_id}", _changed(chance, avro(_stored(chance), "null", AVRO))),
        ]

        counts = shop.land(batch_id, *paths).counts

        letters = [
            name for name, at in shop.rows("_dead_letters", "source", "batch_id") if at == batch_id
        ]
        for name, each in counts.items():
            assert each.produced == each.landed + each.superseded + each.dead_letters, name
            assert min(each.landed, each.superseded, each.dead_letters) >= 0, name
            assert letters.count(name) == each.dead_letters, name
        for format in ("json", "csv"):
            assert len({each.produced for name, each in counts.items() if format in name}) == 1
        written = sum(1 for line in json_lines if line.strip())
        assert counts["bronze.json_events"].produced >= written


def _stored(chance: random.Random) -> list[dict[str, Any]]:
    """Records of a file that has types, of which some fit no column."""
    return [
        {
            "order_id": chance.choice([f"o{number}", None]),
            "number": chance.choice([number, 5_000_000_000, None]),
            "updated_at": NOON,
            "tip": chance.choice([None, 1]),
        }
        for number in range(chance.randint(1, 40))
    ]


def _changed(chance: random.Random, content: bytes) -> bytes:
    torn = bytearray(content)
    if chance.random() < 0.5:
        place = chance.randrange(len(torn))
        torn[place : place + 3] = chance.choice(FRAGMENTS)
    return bytes(torn)


def _json_line(chance: random.Random, columns: dict[str, str]) -> bytes:
    if chance.random() < 0.03:
        return chance.choice(JSON_LINES)
    fields = [b'"%s":%s' % (name.encode(), _value(chance, name)) for name in columns]
    if chance.random() < 0.1:
        fields[chance.randrange(len(fields))] = chance.choice(FIELDS)
    line = bytearray(b"{" + b",".join(fields) + b"}")
    if chance.random() < 0.06:
        place = chance.randrange(len(line))
        line[place : place + chance.randint(0, 5)] = chance.choice(FRAGMENTS)
    return bytes(line)


def _csv_lines(chance: random.Random, columns: dict[str, str]) -> list[bytes]:
    header = ",".join(columns).encode()
    if chance.random() < 0.2:
        header += chance.choice(HEADERS)
    lines = [header]
    for _ in range(chance.choice([1, 40, 150])):
        if chance.random() < 0.03:
            lines.append(chance.choice(CSV_LINES))
        else:
            lines.append(b",".join(_csv_field(chance, name) for name in columns))
    return lines


def _csv_field(chance: random.Random, name: str) -> bytes:
    if chance.random() < 0.01:
        return chance.choice(CSV_FIELDS)
    value = _value(chance, name)
    if value.startswith(b'"') and chance.random() < 0.8:
        return value[1:-1]
    return b'"%s"' % value.replace(b'"', b'""') if b"," in value or b'"' in value else value


def _value(chance: random.Random, name: str) -> bytes:
    if chance.random() < 0.03:
        return chance.choice(VALUES)
    written = COLUMNS[name][1]
    if name == "op":
        return chance.choice([b'"c"', b'"c"', b'"d"'])
    return written % chance.randrange(20) if b"%" in written else written


def _file(chance: random.Random, lines: list[bytes]) -> bytes:
    ending = chance.choice([b"\n", b"\r\n"])
    content = ending.join(lines) + chance.choice([b"", ending])
    return chance.choice([b"", b"\xef\xbb\xbf"]) + content


def _torn(chance: random.Random, lines: list[bytes]) -> bytes:
    content = gzip.compress(_file(chance, lines))
    return content[: chance.randrange(2, len(content) + 1)] + chance.choice([b"", b"", b"garbage"])
