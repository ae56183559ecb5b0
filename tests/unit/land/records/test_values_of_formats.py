"""A value of any type of a format lands as the documents say, the fast way and the exact way.

Each cell goes both ways: alone and among many, in a file and in a message, with a field that no
column names and without.
"""

from __future__ import annotations

import io
import json
import math
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from livemart.land.records.judge import Group
from livemart.land.records.messages.message import Message
from livemart.land.records.messages.read import read_messages
from livemart.land.records.origin import Place
from livemart.land.records.schema import RecordSchema
from tests.deliveries import NOON, source
from tests.unit.land.records.rows import group_of, read

MISFIT, MALFORMED = "TYPE_MISMATCH", "MALFORMED_RECORD"
ID = UUID("00112233-4455-6677-8899-aabbccddeeff")
MOMENT = datetime(2026, 3, 1, 12, 0, 0, 123_456, tzinfo=UTC)
LOCAL = MOMENT.replace(tzinfo=None)
MICROS = 1_772_366_400_123_456
DAYS = 20_513
INFINITY = 2**63 - 1
MONTH = bytes([1, 0, 0, 0, 2, 0, 0, 0, 0xAC, 0x0D, 0, 0])
FAR = "+294247-01-10T04:00:54.775807"


def shown(value: Any) -> str:
    """Return a value bit for bit; both names of UTC are one."""
    return repr(value).replace(repr(ZoneInfo("UTC")), repr(UTC))


def outcome(row: dict[str, Any]) -> Any:
    """Return what a record became: its value, bit for bit, or its reason."""
    return row["_code_0"] or shown(row["x"])


def fixed(*values: bytes) -> pa.Array:
    return pa.array(values, pa.binary(len(values[0])))


def count(value: int, kind: pa.DataType) -> pa.Array:
    return pa.array([value], pa.int32() if kind.bit_width == 32 else pa.int64()).view(kind)


def extension(kind: pa.DataType, value: Any) -> pa.Array:
    return pa.ExtensionArray.from_storage(kind, pa.array([value], kind.storage_type))


NANOS, MILLIS, SECONDS = pa.timestamp("ns", "UTC"), pa.timestamp("ms", "UTC"), pa.timestamp("s")
MICROSECONDS, NO_ZONE = pa.timestamp("us", "UTC"), pa.timestamp("us")
TAGS = pa.map_(pa.string(), pa.int32())

PARQUET: list[tuple[str, pa.Array, dict[str, Any]]] = [
    ("bool", pa.array([True]), {"boolean": True, "string": "true", "int": MISFIT}),
    ("int8", pa.array([-1], pa.int8()), {"tinyint": -1, "bigint": -1, "double": -1.0}),
    ("uint8", pa.array([200], pa.uint8()), {"tinyint": MISFIT, "smallint": 200, "string": "200"}),
    ("uint16", pa.array([65_535], pa.uint16()), {"smallint": MISFIT, "int": 65_535}),
    ("uint32", pa.array([2**32 - 1], pa.uint32()), {"int": MISFIT, "bigint": 2**32 - 1}),
    (
        "uint64",
        pa.array([2**64 - 1], pa.uint64()),
        {"bigint": MISFIT, "decimal(20,0)": Decimal(2**64 - 1), "string": str(2**64 - 1)},
    ),
    (
        "int64",
        pa.array([2**53 + 1]),
        {"int": MISFIT, "double": float(2**53), "decimal(18,2)": Decimal(f"{2**53 + 1}.00")},
    ),
    ("float16", pa.array([1.5], pa.float16()), {"float": 1.5, "double": 1.5, "int": MISFIT}),
    (
        "float32",
        pa.array([0.1], pa.float32()),
        {
            "float": pa.scalar(0.1, pa.float32()).as_py(),
            "double": 0.10000000149011612,
            "decimal(10,1)": MISFIT,
        },
    ),
    (
        "double",
        pa.array([0.15]),
        {
            "double": 0.15,
            "float": pa.scalar(0.15, pa.float32()).as_py(),
            "decimal(10,2)": Decimal("0.15"),
            "decimal(10,1)": MISFIT,
            "string": "0.15",
        },
    ),
    ("-0.0", pa.array([-0.0]), {"double": -0.0, "float": -0.0, "string": "-0.0", "int": 0}),
    ("-0.0 of float32", pa.array([-0.0], pa.float32()), {"double": -0.0, "float": -0.0}),
    ("NaN", pa.array([math.nan]), {"double": MISFIT, "float": MISFIT, "string": "NaN"}),
    ("infinite", pa.array([-math.inf]), {"double": MISFIT, "decimal(10,2)": MISFIT}),
    ("1e300", pa.array([1e300]), {"float": MISFIT, "double": 1e300, "decimal(38,0)": MISFIT}),
    (
        "decimal of INT32",
        pa.array([Decimal("1.50")], pa.decimal32(9, 2)),
        {"decimal(9,2)": Decimal("1.50"), "decimal(5,1)": Decimal("1.5"), "int": MISFIT},
    ),
    (
        "decimal of INT64",
        pa.array([Decimal("1.55")], pa.decimal64(18, 2)),
        {"decimal(10,2)": Decimal("1.55"), "decimal(10,1)": MISFIT, "double": 1.55},
    ),
    (
        "decimal of FLBA",
        pa.array([Decimal("-1234567890123456789012345678901234.5678")], pa.decimal128(38, 4)),
        {
            "decimal(38,4)": Decimal("-1234567890123456789012345678901234.5678"),
            "decimal(38,5)": MISFIT,
            "string": "-1234567890123456789012345678901234.5678",
        },
    ),
    (
        "decimal256",
        pa.array([Decimal("1.500"), Decimal(f"{10**50}.5")][:1], pa.decimal256(60, 3)),
        {"decimal(10,2)": Decimal("1.50"), "string": "1.500"},
    ),
    (
        "decimal256 beyond 38 digits",
        pa.array([Decimal(10**50)], pa.decimal256(60, 3)),
        {"decimal(38,0)": MISFIT, "string": f"{10**50}.000"},
    ),
    ("string", pa.array(["a"]), {"string": "a", "binary": MISFIT, "int": MISFIT}),
    ("number in a string", pa.array(["12"]), {"string": "12", "int": 12, "double": 12.0}),
    ("empty string", pa.array([""]), {"string": "", "int": None, "date": None}),
    ("large string", pa.array(["a"], pa.large_string()), {"string": "a"}),
    ("string with NUL", pa.array(["a\0"]), {"string": MALFORMED}),
    ("no UTF-8", pa.array([b"\xff"]).view(pa.string()), {"string": MALFORMED}),
    ("dictionary", pa.array(["a"]).dictionary_encode(), {"string": "a"}),
    ("JSON", extension(pa.json_(), '{"a": 1}'), {"string": '{"a": 1}', "struct<a:int>": MISFIT}),
    ("bytes", pa.array([b"\xff\0"]), {"binary": b"\xff\0", "string": MISFIT, "int": MISFIT}),
    ("bytes of text", pa.array([b"a"]), {"binary": b"a", "string": "a"}),
    # The base64 of some bytes would be the digits 1234.
    ("bytes like digits", pa.array([b"\xd7\x6d\xf8"]), {"int": MISFIT, "string": MISFIT}),
    ("no bytes", pa.array([b""]), {"binary": b"", "string": "", "array<binary>": None}),
    ("fixed bytes", fixed(b"\xff\1"), {"binary": b"\xff\1", "string": MISFIT}),
    ("UUID", extension(pa.uuid(), ID.bytes), {"string": str(ID), "binary": ID.bytes}),
    ("date", count(DAYS, pa.date32()), {"date": date(2026, 3, 1), "string": "2026-03-01"}),
    ("date as a time", count(DAYS, pa.date32()), {"timestamp": datetime(2026, 3, 1, tzinfo=UTC)}),
    ("date infinity", count(2**31 - 1, pa.date32()), {"date": MISFIT, "string": "+5881580-07-11"}),
    ("date64", count(DAYS * 86_400_000, pa.date64()), {"date": date(2026, 3, 1)}),
    (
        "timestamp",
        count(MICROS, MICROSECONDS),
        {
            "timestamp": MOMENT,
            "timestamp_ntz": MISFIT,
            "date": MISFIT,
            "bigint": MISFIT,
            "string": "2026-03-01T12:00:00.123456+00:00",
        },
    ),
    (
        "timestamp without a zone",
        count(MICROS, NO_ZONE),
        {"timestamp": MOMENT, "timestamp_ntz": LOCAL, "string": "2026-03-01T12:00:00.123456"},
    ),
    (
        "nanoseconds",
        count(MICROS * 1_000 + 789, NANOS),
        {"timestamp": MOMENT, "string": "2026-03-01T12:00:00.123456789+00:00"},
    ),
    (
        "nanoseconds before 1970",
        count(-1, NANOS),
        {"timestamp": datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)},
    ),
    ("milliseconds", count(0, MILLIS), {"timestamp": datetime(1970, 1, 1, tzinfo=UTC)}),
    ("seconds", count(0, SECONDS), {"timestamp_ntz": datetime(1970, 1, 1)}),
    ("infinity", count(INFINITY, NO_ZONE), {"timestamp": MISFIT, "string": FAR}),
    ("milliseconds beyond", count(INFINITY, MILLIS), {"timestamp": MISFIT}),
    ("time", count(1_500_000, pa.time64("us")), {"string": "00:00:01.500000", "int": MISFIT}),
    ("time in milliseconds", count(1_500, pa.time32("ms")), {"string": "00:00:01.500000"}),
    ("time in nanoseconds", count(1, pa.time64("ns")), {"string": "00:00:00.000000001"}),
    ("time 24:00", count(86_400_000_000, pa.time64("us")), {"string": "24:00:00"}),
    ("time as a timestamp", count(0, pa.time64("us")), {"timestamp": MISFIT}),
    ("duration", count(1_500, pa.duration("us")), {"bigint": 1_500, "string": "1500"}),
    (
        "list",
        pa.array([[1, None]]),
        {"array<int>": [1, None], "array<string>": ["1", None], "string": MISFIT},
    ),
    ("list of times", pa.array([[0, INFINITY]], pa.list_(NO_ZONE)), {"array<timestamp>": MISFIT}),
    ("list of bytes", pa.array([[b"a"]]), {"array<binary>": [b"a"], "array<string>": ["a"]}),
    ("fixed list", pa.array([[1, 2]], pa.list_(pa.int32(), 2)), {"array<int>": [1, 2]}),
    (
        "map",
        pa.array([[("b", 1), ("a", None)]], TAGS),
        {"map<string,int>": [("b", 1), ("a", None)], "string": MISFIT, "struct<b:int>": {"b": 1}},
    ),
    ("map of a key twice", pa.array([[("b", 1), ("b", 1)]], TAGS), {"map<string,int>": MALFORMED}),
    (
        "map of whole numbers",
        pa.array([[(7, -0.0)]], pa.map_(pa.int32(), pa.float64())),
        {"map<string,double>": [("7", -0.0)]},
    ),
    (
        "struct",
        pa.array([{"a": -0.0, "b": b"x"}]),
        {
            "struct<a:double,b:binary>": {"a": -0.0, "b": b"x"},
            "map<string,string>": [("a", "-0.0"), ("b", "x")],
        },
    ),
    (
        "VARIANT, as pyarrow reads it",
        pa.array([{"metadata": b"\1\0\0", "value": b"\x0c\1"}]),
        {
            "string": MISFIT,
            "struct<metadata:binary,value:binary>": {"metadata": b"\1\0\0", "value": b"\x0c\1"},
        },
    ),
    ("null", pa.nulls(1), {"string": None, "int": None, "timestamp": None, "array<int>": None}),
]


@pytest.mark.parametrize(
    ("column", "kind", "expected"),
    [
        pytest.param(column, kind, expected, id=f"{name} as {kind}")
        for name, column, kinds in PARQUET
        for kind, expected in kinds.items()
    ],
)
def test_a_value_of_parquet(tmp_path: Path, column: pa.Array, kind: str, expected: Any) -> None:
    group = group_of({"x": kind}, "parquet")
    many = pa.chunked_array([column] * 3, column.type)
    rows: list[dict[str, Any]] = []
    for content in (
        {"x": column},
        {"x": many},
        # The fast reader reads no row that has a field beside its columns.
        {"x": many, "more": pa.array([1, 2, 3])},
        {"x": many, "more": pa.array([None, 2, None])},
    ):
        data = io.BytesIO()
        pq.write_table(pa.table(content), data)
        rows += read(group, tmp_path / "a", data.getvalue()).to_pylist()

    wanted = expected if expected in (MISFIT, MALFORMED) else shown(expected)
    assert [outcome(row) for row in rows] == [wanted] * 10
    assert len({row["_detail_0"] for row in rows}) == 1


def test_an_interval_of_parquet_is_text_or_its_bytes(tmp_path: Path) -> None:
    """As DuckDB 2.0 writes it; pyarrow 26 reads its twelve bytes as such."""
    duckdb = pytest.importorskip("duckdb")
    path = tmp_path / "intervals"
    interval = "interval '1 month 2 days 3.5 seconds' as x"
    duckdb.sql(f"copy (select {interval}) to '{path}' (format parquet)")

    def landed(kind: str) -> Any:
        rows = read(group_of({"x": kind}, "parquet"), tmp_path / "a", path.read_bytes())
        return [outcome(row) for row in rows.to_pylist()]

    assert landed("string") == ["'P1M2DT3.5S'"]
    assert landed("binary") == [repr(MONTH)]
    assert landed("bigint") == [MISFIT]


def logical(kind: str, of: str, /, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": of, **more}


def decimal_of(kind: str, scale: int, /, **more: Any) -> dict[str, Any]:
    return logical(kind, "decimal", precision=20, scale=scale, **more)


AVRO: list[tuple[str, Any, Any, dict[str, Any]]] = [
    ("boolean", "boolean", True, {"boolean": True, "string": "true"}),
    ("int", "int", 7, {"int": 7, "tinyint": 7, "double": 7.0, "string": "7"}),
    ("long", "long", 2**40, {"bigint": 2**40, "int": MISFIT}),
    ("float", "float", 0.5, {"float": 0.5, "double": 0.5, "decimal(2,1)": Decimal("0.5")}),
    ("double", "double", -0.0, {"double": -0.0, "string": "-0.0"}),
    ("NaN", "double", math.nan, {"double": MISFIT}),
    ("bytes", "bytes", b"\xff\0", {"binary": b"\xff\0", "string": MISFIT}),
    ("bytes of text", "bytes", b"a", {"binary": b"a", "string": "a"}),
    ("string", "string", "a\0", {"string": MALFORMED}),
    (
        "enum",
        {"type": "enum", "name": "e", "symbols": ["a", "b"]},
        "b",
        {"string": "b", "int": MISFIT},
    ),
    (
        "map",
        {"type": "map", "values": "int"},
        {"b": 1, "a": 2},
        {"map<string,int>": [("b", 1), ("a", 2)]},
    ),
    ("union", ["int", "string"], "a", {"string": "a", "int": MISFIT}),
    ("date", logical("int", "date"), DAYS, {"date": date(2026, 3, 1), "string": "2026-03-01"}),
    (
        "date beyond",
        logical("int", "date"),
        2**31 - 1,
        {"date": MISFIT, "string": "+5881580-07-11"},
    ),
    (
        "timestamp-millis",
        logical("long", "timestamp-millis"),
        MICROS // 1_000,
        {"timestamp": MOMENT.replace(microsecond=123_000), "timestamp_ntz": MISFIT},
    ),
    (
        "timestamp-micros",
        logical("long", "timestamp-micros"),
        MICROS,
        {"timestamp": MOMENT, "string": "2026-03-01T12:00:00.123456+00:00", "bigint": MISFIT},
    ),
    (
        "timestamp-nanos",
        logical("long", "timestamp-nanos"),
        MICROS * 1_000 + 789,
        {"timestamp": MOMENT, "string": "2026-03-01T12:00:00.123456789+00:00"},
    ),
    (
        "timestamp-nanos before 1970",
        logical("long", "timestamp-nanos"),
        -1,
        {"timestamp": datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)},
    ),
    ("timestamp beyond", logical("long", "timestamp-micros"), INFINITY, {"timestamp": MISFIT}),
    (
        "timestamp of year 0",
        logical("long", "timestamp-millis"),
        -62_135_596_800_001,
        {"timestamp": MISFIT},
    ),
    (
        "local-timestamp-micros",
        logical("long", "local-timestamp-micros"),
        MICROS,
        {"timestamp_ntz": LOCAL, "timestamp": MOMENT},
    ),
    (
        "local-timestamp-nanos",
        logical("long", "local-timestamp-nanos"),
        MICROS * 1_000 + 789,
        {"timestamp_ntz": LOCAL},
    ),
    (
        "local-timestamp beyond",
        logical("long", "local-timestamp-micros"),
        INFINITY,
        {"string": FAR},
    ),
    ("time-millis", logical("int", "time-millis"), 1_500, {"string": "00:00:01.500000"}),
    ("time-micros", logical("long", "time-micros"), 1_500_001, {"string": "00:00:01.500001"}),
    ("time 24:00", logical("long", "time-micros"), 86_400_000_000, {"string": "24:00:00"}),
    ("time of no day", logical("int", "time-millis"), -1, {"string": "-00:00:00.001000"}),
    (
        "decimal of bytes",
        decimal_of("bytes", 2),
        b"\x00\x9b",
        {"decimal(10,2)": Decimal("1.55"), "decimal(10,1)": MISFIT, "string": "1.55"},
    ),
    (
        "decimal of fixed",
        decimal_of("fixed", 2, name="f", size=9),
        b"\xff" * 8 + b"\x7f",
        {"decimal(3,2)": Decimal("-1.29")},
    ),
    (
        "big-decimal",
        logical("bytes", "big-decimal"),
        b"\x04\x00\x9b\x04",
        {"decimal(10,2)": Decimal("1.55"), "decimal(10,1)": MISFIT, "string": "1.55"},
    ),
    (
        "no big-decimal",
        logical("bytes", "big-decimal"),
        b"",
        {"decimal(10,2)": MISFIT, "string": MISFIT},
    ),
    ("uuid", logical("string", "uuid"), str(ID).upper(), {"string": str(ID), "binary": ID.bytes}),
    ("no uuid", logical("string", "uuid"), "none", {"string": "none"}),
    (
        "uuid of fixed",
        logical("fixed", "uuid", name="u", size=16),
        ID.bytes,
        {"string": str(ID), "binary": ID.bytes},
    ),
    # These sixteen bytes are text, too.
    (
        "uuid like text",
        logical("fixed", "uuid", name="u", size=16),
        b"0123456789abcdef",
        {"string": "30313233-3435-3637-3839-616263646566"},
    ),
    (
        "duration",
        logical("fixed", "duration", name="d", size=12),
        MONTH,
        {"string": "P1M2DT3.5S", "binary": MONTH, "bigint": MISFIT},
    ),
    ("unknown logical type", logical("int", "dozen"), 12, {"int": 12}),
]


@pytest.mark.parametrize(
    ("schema", "encoded", "kind", "expected"),
    [
        pytest.param(schema, encoded, kind, expected, id=f"{name} as {kind}")
        for name, schema, encoded, kinds in AVRO
        for kind, expected in kinds.items()
    ],
)
def test_a_value_of_avro(
    tmp_path: Path, schema: Any, encoded: Any, kind: str, expected: Any
) -> None:
    """In a file beside other records, and in a message."""
    fields = [{"name": "n", "type": "int"}, {"name": "x", "type": ["null", schema]}]
    whole = {"type": "record", "name": "r", "fields": fields}
    records = [{"n": 1, "x": None}, {"n": 2, "x": encoded}, {"n": 3, "x": None}]
    data, message = io.BytesIO(), io.BytesIO()
    fastavro.writer(data, whole, records)
    fastavro.schemaless_writer(message, whole, records[1])
    columns = {"n": "int", "x": kind}

    rows = read(group_of(columns, "avro"), tmp_path / "a", data.getvalue()).to_pylist()
    each = source("r", columns, format="avro", avro_schema=json.dumps(whole))
    group = Group.of([each], RecordSchema.of(each), NOON)
    (judged,) = read_messages(group, Place("r/0", "@"), [Message(0, message.getvalue(), b"k")])
    (row,) = judged.to_pylist()

    assert [outcome(it) for it in (rows[0], rows[2])] == ["None", "None"]
    wanted = expected if expected in (MISFIT, MALFORMED) else shown(expected)
    assert [outcome(rows[1]), outcome(row)] == [wanted, wanted]
    assert rows[1]["_detail_0"] == row["_detail_0"]
    if wanted in (MISFIT, MALFORMED):
        # The record of a letter is whole.
        assert json.loads(rows[1]["_record"])["n"] == 2


def test_a_text_of_avro_that_is_no_utf_8_takes_no_record_behind_it(tmp_path: Path) -> None:
    schema = {"type": "record", "name": "r", "fields": [{"name": "x", "type": "string"}]}
    data = io.BytesIO()
    fastavro.writer(data, schema, [{"x": text} for text in ("one", "two", "six")])

    rows = read(
        group_of({"x": "string"}, "avro"),
        tmp_path / "a",
        data.getvalue().replace(b"two", b"t\xffo"),
    )

    assert [outcome(row) for row in rows.to_pylist()] == ["'one'", MALFORMED, "'six'"]
    assert rows.column("_detail_0")[1].as_py().startswith("invalid UTF-8")


FLOAT_MAX = 3.4028234663852886e38
BESIDE_HALVES = {
    "1.00000005960464477539062500000001": 1.00000011920928955078125,
    "1.00000005960464477539062500000000": 1.0,
    "1.00000017881393432617187499999999": 1.00000011920928955078125,
    "7.038531e-26": 7.038530691851209e-26,
    "340282356779733661637539395458142568447.9": FLOAT_MAX,
}
JSON: list[tuple[str, dict[str, Any]]] = [
    ("0.15", {"decimal(10,1)": MISFIT, "decimal(10,2)": Decimal("0.15"), "double": 0.15}),
    ("0.10", {"decimal(10,1)": Decimal("0.1"), "string": "0.10", "decimal(38,0)": MISFIT}),
    ("12.50", {"string": "12.50", "int": MISFIT, "double": 12.5}),
    ("1e400", {"double": MISFIT, "float": MISFIT, "decimal(38,0)": MISFIT, "string": "1e400"}),
    ("1e39", {"float": MISFIT, "double": 1e39}),
    ("1e-400", {"double": 0.0, "decimal(10,2)": MISFIT}),
    # The largest float, as C writes it with nine digits.
    ("3.40282347e+38", {"float": FLOAT_MAX, "double": 3.40282347e38}),
    ("3.4028236e+38", {"float": MISFIT}),
    # The double of each is halfway between two floats: only the text shows which one is nearer.
    *((text, {"float": single}) for text, single in BESIDE_HALVES.items()),
    *((f'"{text}"', {"float": single}) for text, single in BESIDE_HALVES.items()),
    (
        "12345678901234567890",
        {
            "bigint": MISFIT,
            "decimal(20,0)": Decimal("12345678901234567890"),
            "double": 12345678901234567890.0,
            "string": "12345678901234567890",
        },
    ),
    ("9223372036854775807", {"bigint": 2**63 - 1, "int": MISFIT}),
    ("9223372036854775808", {"bigint": MISFIT, "decimal(38,0)": Decimal(2**63)}),
    (
        "-0.0",
        {
            "double": -0.0,
            "float": -0.0,
            "int": 0,
            "decimal(10,2)": Decimal("0.00"),
            "string": "-0.0",
        },
    ),
    ("-0", {"double": -0.0, "int": 0, "string": "-0"}),
    ("1.0", {"bigint": 1, "int": 1, "decimal(10,0)": Decimal(1)}),
    ("1e2", {"bigint": 100, "decimal(10,2)": Decimal("100.00"), "string": "1e2"}),
    ("1.5", {"bigint": MISFIT}),
    ("99999999.995", {"decimal(10,2)": MISFIT}),
    ("NaN", {"double": MALFORMED, "string": MALFORMED, "int": MALFORMED}),
    ("Infinity", {"double": MALFORMED}),
    ("-Infinity", {"double": MALFORMED, "float": MALFORMED, "decimal(10,2)": MALFORMED}),
    (
        "01",
        {"int": MALFORMED, "double": MALFORMED, "decimal(10,2)": MALFORMED, "string": MALFORMED},
    ),
    ("+1", {"int": MALFORMED, "double": MALFORMED}),
    (".5", {"double": MALFORMED, "decimal(10,2)": MALFORMED}),
    ("1.", {"double": MALFORMED, "int": MALFORMED}),
    ('"NaN"', {"double": MISFIT, "string": "NaN"}),
    ('"1.50"', {"double": 1.5, "decimal(10,2)": Decimal("1.50"), "int": MISFIT}),
    ('" 1"', {"int": MISFIT, "double": MISFIT, "string": " 1"}),
    ('"a\\u0000"', {"string": MALFORMED}),
    ('"\\ud800"', {"string": MALFORMED}),
    ("true", {"boolean": True, "string": "true", "int": MISFIT}),
    ('"9999-12-31"', {"date": date(9999, 12, 31), "timestamp": datetime(9999, 12, 31, tzinfo=UTC)}),
    ('"10000-01-01"', {"date": MISFIT, "timestamp": MISFIT, "string": "10000-01-01"}),
    ('"+10000-01-01T00:00:00Z"', {"timestamp": MISFIT}),
    ('"0000-01-01"', {"date": MISFIT, "timestamp": MISFIT}),
    ('"0001-01-01T00:00:00+01:00"', {"timestamp": MISFIT}),
    ('"9999-12-31T23:59:59.999999-01:00"', {"timestamp": MISFIT}),
    ('"infinity"', {"date": MISFIT, "timestamp": MISFIT}),
    ('"2026-02-30"', {"date": MISFIT, "timestamp": MISFIT}),
    ('"2026-03-01T12:00:00.123456789Z"', {"timestamp": MOMENT, "timestamp_ntz": MISFIT}),
    (
        '"1969-12-31T23:59:59.9999999Z"',
        {"timestamp": datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)},
    ),
    ('"2026-03-01T24:00:00Z"', {"timestamp": MISFIT}),
    ('"2026-03-01T23:59:60Z"', {"timestamp": MISFIT}),
    (
        '{"b":1,"a":-0.0}',
        {
            "map<string,double>": [("b", 1.0), ("a", -0.0)],
            "struct<a:double,b:int>": {"a": -0.0, "b": 1},
            "string": MISFIT,
        },
    ),
    ('{"a":1,"a":1}', {"map<string,int>": MALFORMED, "struct<a:int>": MALFORMED}),
    ("null", {"int": None, "string": None, "map<string,int>": None}),
]


@pytest.mark.parametrize(
    ("written", "kind", "expected"),
    [
        pytest.param(written, kind, expected, id=f"{written} as {kind}")
        for written, kinds in JSON
        for kind, expected in kinds.items()
    ],
)
def test_a_value_of_json(tmp_path: Path, written: str, kind: str, expected: Any) -> None:
    group = group_of({"x": kind})
    line = f'{{"x":{written}}}\n'

    alone = read(group, tmp_path / "a", line).to_pylist()
    # So many records are given to the fast reader first.
    among = read(group, tmp_path / "a", line * 30).to_pylist()

    wanted = expected if expected in (MISFIT, MALFORMED) else shown(expected)
    assert [outcome(row) for row in alone + among] == [wanted] * 31
    assert len({row["_detail_0"] for row in alone + among}) == 1


CSV: list[tuple[str, dict[str, Any]]] = [
    ("0.15", {"decimal(10,1)": MISFIT, "decimal(10,2)": Decimal("0.15"), "double": 0.15}),
    ("0.10", {"decimal(10,1)": Decimal("0.1"), "string": "0.10"}),
    ("1e400", {"double": MISFIT, "decimal(38,0)": MISFIT, "string": "1e400"}),
    ("3.40282347e+38", {"float": FLOAT_MAX}),
    *((text, {"float": single}) for text, single in BESIDE_HALVES.items()),
    (
        "12345678901234567890",
        {
            "bigint": MISFIT,
            "decimal(20,0)": Decimal("12345678901234567890"),
            "double": 12345678901234567890.0,
        },
    ),
    ("-0.0", {"double": -0.0, "float": -0.0, "int": 0, "string": "-0.0"}),
    ("-0", {"double": -0.0, "int": 0, "decimal(10,2)": Decimal("0.00")}),
    ("1.0", {"bigint": 1}),
    ("1e2", {"bigint": 100, "decimal(10,2)": Decimal("100.00")}),
    ("01", {"int": 1, "string": "01", "decimal(10,2)": Decimal("1.00"), "double": 1.0}),
    ("+1", {"int": 1, "string": "+1", "double": 1.0}),
    (".5", {"double": 0.5, "int": MISFIT}),
    ("NaN", {"double": MISFIT, "string": "NaN"}),
    ("nan", {"double": MISFIT, "float": MISFIT}),
    ("inf", {"double": MISFIT}),
    ("-Infinity", {"double": MISFIT}),
    ("1_000", {"int": MISFIT, "double": MISFIT, "decimal(10,0)": MISFIT}),
    ("0x10", {"int": MISFIT, "double": MISFIT}),
    ("TRUE", {"boolean": True, "string": "TRUE"}),
    ("a\0", {"string": MALFORMED}),
    ("9999-12-31", {"date": date(9999, 12, 31), "timestamp": datetime(9999, 12, 31, tzinfo=UTC)}),
    ("10000-01-01", {"date": MISFIT, "timestamp": MISFIT}),
    ("infinity", {"date": MISFIT, "timestamp": MISFIT}),
    ("2026-03-01T12:00:00.123456789Z", {"timestamp": MOMENT}),
]


@pytest.mark.parametrize(
    ("written", "kind", "expected"),
    [
        pytest.param(written, kind, expected, id=f"{written} as {kind}".replace("\0", "NUL"))
        for written, kinds in CSV
        for kind, expected in kinds.items()
    ],
)
def test_a_value_of_csv(tmp_path: Path, written: str, kind: str, expected: Any) -> None:
    group = group_of({"x": kind, "n": "int"}, "csv")

    alone = read(group, tmp_path / "a", f"x,n\n{written},1\n").to_pylist()
    among = read(group, tmp_path / "a", "x,n\n" + f"{written},1\n" * 30).to_pylist()

    wanted = expected if expected in (MISFIT, MALFORMED) else shown(expected)
    assert [outcome(row) for row in alone + among] == [wanted] * 31
    assert len({row["_detail_0"] for row in alone + among}) == 1
