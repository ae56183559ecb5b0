"""Records of files that know types land as the same records of JSON, or are refused as they are."""

from __future__ import annotations

import io
import json
import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from livemart.land.letters.drift import adopt
from livemart.land.records.exact_values import TEXT
from livemart.land.records.judge import Rules
from livemart.land.records.schema import RecordSchema
from livemart.land.sources.files.parts import FilePart
from livemart.project.graph import RowRules
from livemart.project.spark_types import SparkType
from tests.unit.land.records.rows import codes, good, group_of, read

KINDS = {
    "id": "string",
    "count": "int",
    "price": "decimal(10,2)",
    "share": "double",
    "at": "timestamp",
    "day": "date",
    "flag": "boolean",
    "blob": "binary",
    "items": "array<struct<dish:bigint,price:decimal(10,2)>>",
    "tags": "map<string,int>",
}
NOON = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)
RECORD = {
    "id": "a",
    "count": 7,
    "price": Decimal("1.50"),
    "share": 0.1,
    "at": NOON,
    "day": date(2026, 3, 1),
    "flag": True,
    "blob": b"\xff\0",
    "items": [{"dish": 1, "price": Decimal("2.25")}],
    "tags": {"k": 1},
}
AVRO = {
    "type": "record",
    "name": "order",
    "fields": [
        {"name": name, "type": ["null", kind]}
        for name, kind in {
            "id": "string",
            "count": "int",
            "price": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2},
            "share": "double",
            "at": {"type": "long", "logicalType": "timestamp-micros"},
            "day": {"type": "int", "logicalType": "date"},
            "flag": "boolean",
            "blob": "bytes",
            "items": {
                "type": "array",
                "items": {
                    "type": "record",
                    "name": "item",
                    "fields": [
                        {"name": "dish", "type": "long"},
                        {
                            "name": "price",
                            "type": {
                                "type": "bytes",
                                "logicalType": "decimal",
                                "precision": 10,
                                "scale": 2,
                            },
                        },
                    ],
                },
            },
            "tags": {"type": "map", "values": "int"},
        }.items()
    ],
}
Rows = Sequence[Mapping[str, Any]]


def parquet(rows: Rows, **options: Any) -> bytes:
    columns = {name: [row.get(name) for row in rows] for row in rows for name in row}
    if "tags" in columns:
        pairs = [list(tags.items()) if tags is not None else None for tags in columns["tags"]]
        columns["tags"] = pa.array(pairs, pa.map_(pa.string(), pa.int32()))
    data = io.BytesIO()
    pq.write_table(pa.table(columns), data, **options)
    return data.getvalue()


def avro(rows: Rows, codec: str = "null", schema: Any = AVRO) -> bytes:
    data = io.BytesIO()
    fastavro.writer(data, schema, rows, codec=codec, sync_interval=200)
    return data.getvalue()


def as_json(rows: Rows) -> str:
    def text(value: Any) -> Any:
        if isinstance(value, bytes):
            return "/wA="
        return value.isoformat() if isinstance(value, date) else str(value)

    return "".join(json.dumps(row, default=text) + "\n" for row in rows)


@pytest.mark.parametrize(("record_format", "write"), [("parquet", parquet), ("avro", avro)])
def test_a_record_of_every_type_is_that_of_json(
    tmp_path: Path, record_format: str, write: Callable[[Rows], bytes]
) -> None:
    rows = [RECORD, RECORD | {"id": "b", "items": None, "price": None, "tags": {}}]

    expected = read(group_of(KINDS), tmp_path / "a", as_json(rows))
    table = read(group_of(KINDS, record_format), tmp_path / "a", write(rows))

    assert codes(table) == [None, None]
    assert table.equals(expected)


@pytest.mark.parametrize("codec", ["deflate", "snappy", "zstandard", "lz4", "bzip2", "xz"])
def test_avro_is_read_with_every_codec(tmp_path: Path, codec: str) -> None:
    table = read(group_of(KINDS, "avro"), tmp_path / "a", avro([RECORD], codec))

    assert good(table, "id", "count") == [("a", 7)]


@pytest.mark.parametrize("codec", ["none", "snappy", "gzip", "zstd", "lz4", "brotli"])
def test_parquet_is_read_with_every_codec(tmp_path: Path, codec: str) -> None:
    table = read(group_of(KINDS, "parquet"), tmp_path / "a", parquet([RECORD], compression=codec))

    assert good(table, "id", "count") == [("a", 7)]


def test_what_does_not_fit_is_refused_and_kept_as_json(tmp_path: Path) -> None:
    rows = [{"id": "a", "count": 1}, {"id": "b", "count": 5_000_000_000}, {"id": "c\0", "count": 2}]

    table = read(
        group_of({"id": "string", "count": "int"}, "parquet"), tmp_path / "a", parquet(rows)
    )

    assert codes(table) == [None, "TYPE_MISMATCH", "MALFORMED_RECORD"]
    assert table.column("_record").to_pylist() == [
        *(None, '{"id":"b","count":5000000000}', '{"id":"c\\u0000","count":2}'),
    ]
    assert table.column("_origin").to_pylist() == ["a:1", "a:2", "a:3"]


def test_a_row_that_a_rule_refuses_is_kept_as_json(tmp_path: Path) -> None:
    group = group_of({"id": "string", "n": "bigint"}, "parquet", Rules(RowRules(("id",))))

    table = read(group, tmp_path / "a", parquet([{"id": "a", "n": 1}, {"id": None, "n": 2}]))

    assert codes(table) == [None, "NULL_KEY"]
    assert table.column("_record").to_pylist() == [None, '{"id":null,"n":2}']


def test_types_are_lossless_or_refused(tmp_path: Path) -> None:
    def read_one(kind: str, value: pa.Array) -> Any:
        data = io.BytesIO()
        pq.write_table(pa.table({"x": value}), data)
        table = read(group_of({"x": kind}, "parquet"), tmp_path / "a", data.getvalue())
        return good(table, "x") or codes(table)

    nanoseconds = pa.array([1_700_000_000_123_456_789], pa.timestamp("ns", "UTC"))
    local = pa.array([datetime(2026, 3, 1, 12)], pa.timestamp("ms"))
    moment = datetime.fromtimestamp(1_700_000_000, UTC).replace(microsecond=123_456)
    assert read_one("timestamp", nanoseconds) == [moment]
    # A time without a zone is UTC, as in every format.
    assert read_one("timestamp", local) == [datetime(2026, 3, 1, 12, tzinfo=UTC)]
    assert read_one("bigint", pa.array([3], pa.int8())) == [3]
    assert read_one("int", pa.array([3.0])) == [3]
    assert read_one("int", pa.array([3.5])) == ["TYPE_MISMATCH"]
    assert read_one("double", pa.array([math.nan])) == ["TYPE_MISMATCH"]
    assert read_one("float", pa.array([0.1], pa.float32())) == [pytest.approx(0.1)]
    assert read_one("decimal(10,2)", pa.array([Decimal("1.500")])) == [Decimal("1.50")]
    assert read_one("decimal(10,2)", pa.array([Decimal("1.505")])) == ["TYPE_MISMATCH"]
    assert read_one("string", pa.array([b"text"])) == ["text"]
    assert read_one("string", pa.array(["a"]).dictionary_encode()) == ["a"]
    assert read_one("string", pa.array([12])) == ["12"]
    assert read_one("date", pa.array(["2026-03-01"])) == [date(2026, 3, 1)]


def test_columns_that_nobody_declared_are_rescued(tmp_path: Path) -> None:
    rows: Rows = [{"id": "a", "tip": 1, "note": None}, {"id": "b", "tip": None, "note": None}]

    for table in (
        read(group_of({"id": "string"}, "parquet"), tmp_path / "a", parquet(rows)),
        read(group_of({"id": "string"}), tmp_path / "a", '{"id":"a","tip":1}\n{"id":"b"}\n'),
    ):
        assert good(table, "id", "_rescued_data") == [("a", [("tip", "1")]), ("b", None)]


def test_a_broken_file_is_a_refusal_with_a_reason(tmp_path: Path) -> None:
    for record_format, data in (("parquet", b"PAR1 no"), ("avro", b"Obj\x01 no"), ("avro", b"{}")):
        table = read(group_of({"id": "string"}, record_format), tmp_path / "a", data)
        assert codes(table) == ["MALFORMED_RECORD"], record_format
        assert table.column("_origin").to_pylist() == ["a:1"]
    for record_format in ("parquet", "avro"):
        assert read(group_of({"id": "string"}, record_format), tmp_path / "a", b"").num_rows == 0


def test_what_is_before_the_tear_lands(tmp_path: Path) -> None:
    rows = [RECORD | {"id": f"{number}"} for number in range(50)]
    data = avro(rows)

    table = read(group_of(KINDS, "avro"), tmp_path / "a", data[: len(data) * 2 // 3])

    count = len(good(table, "id"))
    assert 20 < count < 45
    assert [code for code in codes(table) if code] == ["MALFORMED_RECORD"]


def test_a_broken_row_group_takes_no_other_with_it(tmp_path: Path) -> None:
    rows = [{"id": f"number {number}"} for number in range(30)]
    data = bytearray(parquet(rows, row_group_size=10, compression="none", use_dictionary=False))
    place = data.index(b"number 15")
    data[place - 40 : place + 40] = b"\xff" * 80

    table = read(group_of({"id": "string"}, "parquet"), tmp_path / "a", bytes(data))

    details = [text for text in table.column("_detail_0").to_pylist() if text]
    assert len(details) == 1
    assert details[0].startswith("rows 11 to 20 cannot be read")
    assert len(good(table, "id")) == 20


@pytest.mark.parametrize("seed", range(20))
def test_hostile_bytes_are_refused_and_never_raise(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    rows = [RECORD | {"id": f"{number}"} for number in range(40)]
    for record_format, data in (
        ("parquet", parquet(rows, row_group_size=10)),
        ("avro", avro(rows)),
    ):
        torn = bytearray(data)
        for _ in range(chance.randint(1, 4)):
            place = chance.randrange(len(torn))
            torn[place : place + 3] = chance.randbytes(chance.randint(0, 5))

        table = read(group_of(KINDS, record_format), tmp_path / "a", bytes(torn))

        assert all(
            code is None or detail
            for code, detail in zip(
                codes(table), table.column("_detail_0").to_pylist(), strict=True
            )
        )
        assert table.num_rows


def test_a_map_with_a_key_twice_is_refused_alone(tmp_path: Path) -> None:
    pairs = [[("k", 1)], [("k", 1), ("k", 2)], []]
    data = io.BytesIO()
    pq.write_table(pa.table({"tags": pa.array(pairs, pa.map_(pa.string(), pa.int32()))}), data)

    table = read(group_of({"tags": "map<string,int>"}, "parquet"), tmp_path / "a", data.getvalue())

    assert codes(table) == [None, "MALFORMED_RECORD", None]
    assert good(table, "tags") == [[("k", 1)], []]


def test_an_avro_map_with_a_key_twice_is_refused_alone(tmp_path: Path) -> None:
    fields = [{"name": "tags", "type": {"type": "map", "values": "int"}, "default": {}}]
    parts = [{"name": "key", "type": "string"}, {"name": "value", "type": "int"}]
    # The bytes of a map are those of an array of its entries.
    entries = {"type": "array", "items": {"type": "record", "name": "entry", "fields": parts}}
    records, file = io.BytesIO(), io.BytesIO()
    for tags in [[("k", 1)], [("k", 1), ("a", 0), ("k", 2)], []]:
        pairs = [{"key": key, "value": value} for key, value in tags]
        fastavro.schemaless_writer(records, entries, pairs)
    fastavro.writer(file, {"type": "record", "name": "r", "fields": fields}, [])
    sync = file.getvalue()[-16:]
    for number in (3, len(records.getvalue())):
        fastavro.schemaless_writer(file, "long", number)
    file.write(records.getvalue() + sync)

    table = read(group_of({"tags": "map<string,int>"}, "avro"), tmp_path / "a", file.getvalue())

    assert codes(table) == [None, "MALFORMED_RECORD", None]
    assert table.column("_detail_0")[1].as_py() == "key k twice"
    assert good(table, "tags") == [[("k", 1)], []]


@pytest.mark.parametrize(
    "column",
    [
        pa.array([b"hello", b"\xff", b"\0", b"", None]),
        pa.array([b"1234"], pa.binary(4)),
        pa.array(["", "x", '"q"', None]),
        pa.array([0.1, -0.0, math.nan, None]),
        pa.array([Decimal("1.50"), None]),
        pa.array([True, None]),
        pa.array([NOON, None]),
        pa.array([{"a": b"x", "b": None}, None]),
        pa.array([["a", None], [], None]),
    ],
    ids=lambda column: str(column.type),
)
def test_a_field_is_the_same_text_before_and_after_drift_made_a_column_of_it(
    tmp_path: Path, column: pa.Array
) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"id": list(map(str, range(len(column)))), "note": column}), path)
    declared = group_of({"id": "string"}, "parquet")
    known = RecordSchema((*declared.schema.columns, ("note", SparkType(TEXT))), frozenset({"note"}))

    (first,) = FilePart("a.parquet", path).read(declared)
    (later,) = FilePart("a.parquet", path).read(replace(declared, schema=known))

    adopted = adopt(first, ["note"])
    assert codes(later) == [None] * len(column)
    assert adopted.select(["id", "note"]).equals(later.select(["id", "note"]))
