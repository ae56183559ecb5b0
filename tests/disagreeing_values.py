"""Values on which engines disagree, by type: what the tests draw where any value will do.

Each is a value of Arrow, and can be written as Spark SQL (`spark_text`) and as the field of a JSON
record that lands (`landed_value`). There are bounds of types, both zeros and NaN. The order of some
texts differs by bytes, by UTF-16 and by collation, or only behind the 32nd character. Some instants
exist twice in a zone or not at all, or are too far for nanoseconds; some values are empty or NULL
inside of others.
"""

from __future__ import annotations

import math
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

# The session zones of the tests: none, one with daylight saving, one whose saving is half an hour.
# In the last two the year 1 and the end of the year 9999 are outside of these years.
ZONES = ("UTC", "America/New_York", "Australia/Lord_Howe")

_EPOCH = datetime(1970, 1, 1)
_LONG = "x" * 40


@dataclass(frozen=True, slots=True)
class Kind:
    """A type and its values. They are what `pyarrow.array` takes; NULL is none of them."""

    spark: str
    arrow: pa.DataType
    values: tuple[Any, ...]


def _integer(spark: str, arrow: pa.DataType, bits: int, *others: int) -> Kind:
    return Kind(spark, arrow, (-(2 ** (bits - 1)), -1, 0, 1, 2 ** (bits - 1) - 1, *others))


def _instants() -> tuple[datetime, ...]:
    """Return local times: as they are for `timestamp_ntz`, taken for UTC for `timestamp`."""
    moment = timedelta(microseconds=1)
    return (
        datetime(1, 1, 1),
        # The last day of the Julian calendar, and the first one of the Gregorian.
        datetime(1582, 10, 4, 23, 59, 59),
        datetime(1582, 10, 15),
        datetime(1600, 2, 29, 12, 0, 0, 999_999),
        # Before local time was by zones: offsets with seconds.
        datetime(1883, 11, 18, 16, 59, 59),
        _EPOCH - moment,
        _EPOCH,
        # New York: 02:30 is missing, as is the hour from 7:00Z; 01:30 comes twice, at 5:30Z, 6:30Z.
        datetime(2026, 3, 8, 2, 30),
        datetime(2026, 3, 8, 7),
        datetime(2026, 11, 1, 1, 30),
        datetime(2026, 11, 1, 5, 30),
        datetime(2026, 11, 1, 6, 30),
        # Lord Howe: half an hour is missing from 15:30Z, and comes twice before and from 15:00Z.
        datetime(2026, 10, 3, 15, 30) - moment,
        datetime(2026, 10, 3, 15, 30),
        datetime(2026, 4, 4, 14, 45),
        datetime(2026, 4, 4, 15, 15),
        # The last one that fits into nanoseconds, in microseconds, and the next.
        datetime(2262, 4, 11, 23, 47, 16, 854_775),
        datetime(2262, 4, 11, 23, 47, 16, 854_776),
        datetime(9999, 12, 31),
        datetime(9999, 12, 31, 23, 59, 59, 999_999),
    )


_INNER = pa.struct([("tag", pa.string()), ("seen", pa.map_(pa.string(), pa.int32()))])
# By the name of a column.
KINDS: Mapping[str, Kind] = {
    "flag": Kind("boolean", pa.bool_(), (True, False)),
    "tiny": _integer("tinyint", pa.int8(), 8),
    "small": _integer("smallint", pa.int16(), 16),
    "whole": _integer("int", pa.int32(), 32, 2**24 + 1),
    "big": _integer("bigint", pa.int64(), 64, 2**53 + 1),
    "half": Kind(
        "float",
        pa.float32(),
        tuple(
            float(np.float32(text))
            for text in ("0", "-0.0", "nan", "inf", "-inf", "1e-45", "-3.4028235e38", "0.1", "1.5")
        ),
    ),
    "real": Kind(
        "double",
        pa.float64(),
        (0.0, -0.0, math.nan, math.inf, -math.inf, 5e-324, -1.7976931348623157e308, 0.1, 1.5, 3.0),
    ),
    "money": Kind(
        "decimal(10,2)",
        pa.decimal128(10, 2),
        tuple(map(Decimal, ("-99999999.99", "-0.01", "0.00", "0.01", "2.50", "99999999.99"))),
    ),
    "huge": Kind(
        "decimal(38,0)", pa.decimal128(38, 0), tuple(map(Decimal, (1 - 10**38, 0, 1, 10**38 - 1)))
    ),
    "fine": Kind(
        "decimal(38,18)",
        pa.decimal128(38, 18),
        tuple(Decimal(f"{units}e-18") for units in (1 - 10**38, -1, 0, 10**17, 10**38 - 1)),
    ),
    "word": Kind(
        "string",
        pa.string(),
        (
            *("", " ", "a", "a ", "A", "B", "a\u0308", "ä", "ß", "SS", "10", "9", "NULL", "null"),
            # As UTF-8 the first is the least of the three, as UTF-16 the greatest.
            *("\uff5e", "\U0001f355", "\U00020bb7"),
            *(_LONG, f"{_LONG}a", f"{_LONG}b", "\uffff" * 33, "\U0010ffff" * 33),
            *(
                'O\'Brien \\ "x"',
                "a\tb",
                "line\nline",
                "a\u2028b\x85c",
                "a b/c%20d=é",
                "2026-03-01",
                "NaN",
            ),
        ),
    ),
    "day": Kind(
        "date",
        pa.date32(),
        (
            *(date(1, 1, 1), date(1582, 10, 4), date(1582, 10, 15), date(1600, 2, 29)),
            *(date(1969, 12, 31), date(1970, 1, 1), date(2026, 3, 8), date(2026, 11, 1)),
            *(date(2262, 4, 12), date(9999, 12, 31)),
        ),
    ),
    "at": Kind(
        "timestamp",
        pa.timestamp("us", tz="UTC"),
        tuple(instant.replace(tzinfo=UTC) for instant in _instants()),
    ),
    "local_at": Kind("timestamp_ntz", pa.timestamp("us"), _instants()),
    "token": Kind(
        "binary",
        pa.binary(),
        (b"", b"\x00", b"\x00\x00", b"\x7f", b"\x80", b"\xff\xfe", b"a'b", b"\xff" * 40),
    ),
    "reals": Kind(
        "array<double>",
        pa.list_(pa.float64()),
        ([], [None], [0.0], [-0.0], [math.nan], [None, 1.5], [1.5, None]),
    ),
    "labels": Kind(
        "map<string,int>",
        pa.map_(pa.string(), pa.int32()),
        (
            *([], [("", 1)], [("a", None)], [("a", 1)]),
            *([("a", 1), ("b", None)], [("b", None), ("a", 1)]),
        ),
    ),
    "place": Kind(
        "struct<city:string,tags:array<string>,rate:double>",
        pa.struct([("city", pa.string()), ("tags", pa.list_(pa.string())), ("rate", pa.float64())]),
        (
            {"city": None, "tags": None, "rate": None},
            {"city": "", "tags": [], "rate": 0.0},
            {"city": "", "tags": [], "rate": -0.0},
            {"city": "x", "tags": ["", None], "rate": math.nan},
        ),
    ),
    "items": Kind(
        "array<struct<tag:string,seen:map<string,int>>>",
        pa.list_(_INNER),
        (
            *([], [None], [{"tag": None, "seen": None}], [{"tag": "", "seen": []}]),
            [{"tag": "x", "seen": [("a", 1), ("b", None)]}],
            [{"tag": "x", "seen": [("b", None), ("a", 1)]}, None],
        ),
    ),
}
# Spark SQL alone: Arrow has no such type.
VARIANTS = (
    *("parse_json('null')", "parse_json('1')", "parse_json('1.0')", "parse_json('\"1\"')"),
    *("parse_json('[]')", "parse_json('{}')", 'parse_json(\'{"a": [null, {"b": -0.0}]}\')'),
    # The same fields in two orders.
    *('parse_json(\'{"a": 1, "b": "x"}\')', 'parse_json(\'{"b": "x", "a": 1}\')'),
    *("cast(double('NaN') as variant)", "cast(-0.0D as variant)", "cast(0.0D as variant)"),
    *("cast(date'1582-10-04' as variant)", "cast('1582-10-04' as variant)"),
    *("cast(timestamp'9999-12-31 23:59:59.999999Z' as variant)", "cast(X'00ff' as variant)"),
    *("cast(9.99 as variant)", "cast(9.990 as variant)", "cast(array(1, null) as variant)"),
)
# Instants and days that Spark and Arrow hold, and Python does not: microseconds and days from 1970.
BEYOND_PYTHON: Mapping[str, tuple[int, ...]] = {
    "at": (-62_135_596_800_000_001, 253_402_300_800_000_000, 3 * 10**18),
    "local_at": (-62_135_596_800_000_001, 253_402_300_800_000_000, 3 * 10**18),
    "day": (-719_163, 2_932_897, 10**7),
}


def array(name: str, values: Sequence[Any]) -> pa.Array:
    """Return values, or None, of a column as Arrow holds them."""
    return pa.array(values, KINDS[name].arrow)


def spark_text(value: Any, kind: pa.DataType) -> str:
    """Return a value as an expression of Spark SQL, of just this type, in any session zone."""
    spark = _spark_type(kind)
    if value is None:
        return f"cast(null as {spark})"
    if pa.types.is_map(kind):
        if not value:
            return f"cast(map() as {spark})"
        parts = [
            spark_text(part, inner)
            for entry in value
            for part, inner in zip(entry, (kind.key_type, kind.item_type), strict=True)
        ]
        return f"map({', '.join(parts)})"
    if pa.types.is_list(kind):
        if not value:
            return f"cast(array() as {spark})"
        return f"array({', '.join(spark_text(part, kind.value_type) for part in value)})"
    if pa.types.is_struct(kind):
        parts = [f"'{field.name}', {spark_text(value[field.name], field.type)}" for field in kind]
        return f"named_struct({', '.join(parts)})"
    if pa.types.is_timestamp(kind):
        if kind.tz:
            return f"timestamp_micros({microseconds(value)})"
        return f"cast('{_written(value)}' as timestamp_ntz)"
    if pa.types.is_date32(kind):
        return f"date_from_unix_date({days(value)})"
    if pa.types.is_binary(kind):
        return f"X'{value.hex()}'"
    if pa.types.is_string(kind):
        return "'" + "".join(map(_escaped, value)) + "'"
    return (
        f"cast('{value:f}' as {spark})"
        if isinstance(value, Decimal)
        else f"cast('{value}' as {spark})"
    )


def drawn(name: str, *parts: str) -> str:
    """Return SQL that draws a value of a column, or NULL, by expressions: equal ones give equal."""
    kind = KINDS[name]
    texts = [spark_text(value, kind.arrow) for value in (*kind.values, None)]
    place = f"1 + pmod(hash({', '.join(parts)}, '{name}'), {len(texts)})"
    return f"element_at(array({', '.join(texts)}), {place})"


def drawn_variant(*parts: str) -> str:
    """Return SQL that draws a VARIANT, or NULL, as `drawn` draws other values."""
    place = f"1 + pmod(hash({', '.join(parts)}, 'variant'), {len(VARIANTS) + 1})"
    return f"element_at(array({', '.join(VARIANTS)}, cast(null as variant)), {place})"


def landed_value(value: Any, kind: pa.DataType) -> Any:
    """Return a value as a JSON record holds it; ValueError for a number that is none in JSON."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if pa.types.is_map(kind):
        return {key: landed_value(item, kind.item_type) for key, item in value}
    if pa.types.is_list(kind):
        return [landed_value(part, kind.value_type) for part in value]
    if pa.types.is_struct(kind):
        return {field.name: landed_value(value[field.name], field.type) for field in kind}
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{value} is no number of JSON")
        return value
    if isinstance(value, bytes):
        return b64encode(value).decode()
    if isinstance(value, datetime):
        return _written(value) + ("Z" if value.tzinfo else "")
    return str(value)


def microseconds(value: datetime | int) -> int:
    """Return the microseconds of a time since the first moment of 1970."""
    if isinstance(value, int):
        return value
    return (value.replace(tzinfo=None) - _EPOCH) // timedelta(microseconds=1)


def days(value: date | int) -> int:
    """Return the days since the first one of 1970."""
    return value if isinstance(value, int) else (value - _EPOCH.date()).days


def is_grouped_by_spark(name: str) -> bool:
    """Return True if Spark groups, joins and sorts by a column: if no map is in it."""
    return "map<" not in KINDS[name].spark


def _spark_type(kind: pa.DataType) -> str:
    if pa.types.is_map(kind):
        return f"map<{_spark_type(kind.key_type)},{_spark_type(kind.item_type)}>"
    if pa.types.is_list(kind):
        return f"array<{_spark_type(kind.value_type)}>"
    if pa.types.is_struct(kind):
        return f"struct<{','.join(f'{part.name}:{_spark_type(part.type)}' for part in kind)}>"
    return next(known.spark for known in KINDS.values() if known.arrow == kind)


def _written(value: datetime) -> str:
    return f"{value.year:04}-{value:%m-%dT%H:%M:%S.%f}"


def _escaped(character: str) -> str:
    if character in "'\\\"":
        return "\\" + character
    code = ord(character)
    return character if 32 <= code < 127 else f"\\U{code:08x}"
