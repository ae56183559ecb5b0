"""Variants are equal by value, whatever their bytes, and Python reads what Spark reads."""

from __future__ import annotations

import json
import struct
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import combinations
from typing import Any

import pytest
from pyspark.sql.variant_utils import VariantUtils

from livemart.arrow.variant_values import MOST_LEVELS, python_value, value_identity

NO_NAMES = b"\x01\x00\x00"


def parsed(text: str) -> tuple[bytes, bytes]:
    """Return value and metadata as PySpark's own builder makes them of JSON."""
    return VariantUtils.parse_json(text)


def scalar(kind: int, content: bytes = b"") -> tuple[bytes, bytes]:
    return bytes([kind << 2]) + content, NO_NAMES


def micros(number: int) -> bytes:
    return number.to_bytes(8, "little", signed=True)


def deep(levels: int) -> tuple[bytes, bytes]:
    """Return lists in one another, deeper than PySpark's builder goes."""
    value = b"\x03\x00\x00"
    for _ in range(levels - 1):
        value = b"\x0f\x01" + bytes(4) + len(value).to_bytes(4, "little") + value
    return value, NO_NAMES


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (parsed('{"a":1,"b":{"c":2,"d":[]}}'), parsed('{"b":{"d":[],"c":2},"a":1}')),
        (scalar(3, b"\x01"), scalar(6, b"\x01" + bytes(7))),
        (scalar(8, b"\x02" + (150).to_bytes(4, "little")), parsed("1.5")),
        (scalar(8, b"\x00" + (10).to_bytes(4, "little")), scalar(9, b"\x01" + micros(100))),
        ((b"\x05a", NO_NAMES), scalar(16, b"\x01\x00\x00\x00a")),
        (scalar(7, struct.pack("<d", float("nan"))), scalar(7, b"\x01" + bytes(5) + b"\xf8\xff")),
        # A dictionary of names may hold some that this value does not use.
        (parsed('{"n":1}'), (b"\x02\x01\x01\x00\x02\x0c\x01", b"\x01\x02\x00\x01\x02zn")),
        (deep(3000), deep(3000)),
    ],
)
def test_values_that_no_function_tells_apart_are_equal(
    one: tuple[bytes, bytes], other: tuple[bytes, bytes]
) -> None:
    assert value_identity(*one) == value_identity(*other)


def test_values_that_a_function_tells_apart_differ() -> None:
    texts = (
        "null true false 1 2 -1 1.0 1.5 1e0 0 0e0 -0e0 [] {} [1] [[1]] [1,2] [12] [2,1] [null]"
        ' "" "1" "1.0" "null" "[]" "2024-01-01" {"a":1} {"a":1.0} {"b":1} {"a":1,"b":1}'
        ' {"a":{"b":1}} {"a":[]} {"a":"1"} ["a",1] {"":1} {"a":null}'
    )
    days = (19_723).to_bytes(4, "little")
    values = [parsed(text) for text in texts.split()]
    values += [scalar(11, days), scalar(5, days), scalar(14, struct.pack("<f", 1.0))]
    values += [scalar(kind, micros(5)) for kind in (12, 13, 17, 18, 19)]
    values += [scalar(15, b"\x01\x00\x00\x001"), scalar(20, bytes(16)), (b"\xff", NO_NAMES)]

    same = [
        (one, other)
        for one, other in combinations(values, 2)
        if value_identity(*one) == value_identity(*other)
    ]

    assert same == []


@pytest.mark.parametrize(
    ("variant", "expected"),
    [
        (parsed('{"b":[1,"é\\n",null,true],"a":{}}'), {"a": {}, "b": [1, "é\n", None, True]}),
        (parsed("1.50"), Decimal("1.5")),
        (parsed("9" * 38), Decimal("9" * 38)),
        (parsed('""'), ""),
        (scalar(8, b"\x00" + (100).to_bytes(4, "little")), Decimal(100)),
        (scalar(14, struct.pack("<f", 0.1)), 0.1),
        (scalar(11, (19_723).to_bytes(4, "little")), date(2024, 1, 1)),
        (scalar(11, (2_932_897).to_bytes(4, "little")), "10000-01-01"),
        (scalar(12, micros(1)), datetime(1970, 1, 1, 0, 0, 0, 1, tzinfo=UTC)),
        (scalar(13, micros(0)), datetime(1970, 1, 1)),
        (scalar(12, micros(253_402_300_800_000_000)), "10000-01-01T00:00:00.000000Z"),
        (scalar(17, micros(3_600_000_000)), "01:00:00.000000"),
        (scalar(19, micros(1)), "1970-01-01T00:00:00.000000001"),
        (scalar(15, b"\x02\x00\x00\x00\x00\xff"), b"\x00\xff"),
        (scalar(20, bytes(15) + b"\x01"), "00000000-0000-0000-0000-000000000001"),
    ],
)
def test_python_reads_what_spark_reads(variant: tuple[bytes, bytes], expected: Any) -> None:
    found = python_value(*variant)

    assert (type(found), found) == (type(expected), expected)


def test_many_long_names_are_read() -> None:
    value = {f"{'n' * 300}{number}": [number] * 300 for number in range(70)}

    assert python_value(*parsed(json.dumps(value))) == value


@pytest.mark.parametrize(
    "variant", [(b"", b""), (b"\xff", NO_NAMES), deep(MOST_LEVELS + 2), scalar(6, b"\x01")]
)
def test_what_cannot_be_read_is_an_error_of_its_own(variant: tuple[bytes, bytes]) -> None:
    with pytest.raises(ValueError, match="variant"):
        python_value(*variant)
