"""JSON is read as it is written or refused with a reason; types nest."""

from __future__ import annotations

from typing import Any

import pytest

from livemart.land.records.exact_values import TEXT, MalformedError, converter, parse_json
from livemart.land.records.untyped_values import MisfitError, Number
from livemart.limits import MAX_NESTING
from livemart.project.spark_types import SparkType, parse_type


def test_numbers_stay_as_they_are_written() -> None:
    value = parse_json(b'[1.50, -0, 1e400, "1.50"]')

    assert value == ["1.50", "-0", "1e400", "1.50"]
    assert [type(item) for item in value] == [Number, Number, Number, str]


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b'{"a":1,"b":2,"a":1}', "key a twice"),
        (b"[Infinity]", "Infinity is not JSON"),
        (b'"\xff"', "invalid UTF-8 at byte 1"),
        (b'"\\u0000"', "a NUL character"),
        (b'{"\\udc00":1}', "half a surrogate pair"),
        (b"[1,]", "at character 4"),
        (b"[" * (MAX_NESTING + 1) + b"]" * (MAX_NESTING + 1), "more than 64 levels deep"),
    ],
)
def test_what_is_not_one_json_value_is_refused_with_its_reason(raw: bytes, reason: str) -> None:
    with pytest.raises(MalformedError, match=reason):
        parse_json(raw)


def test_only_brackets_that_nest_count_as_depth() -> None:
    deep = b"[" * MAX_NESTING + b"]" * MAX_NESTING
    quoted = b'["' + b"[" * 100 + b'\\"{",' + b",".join([b"{}"] * 100) + b"]"

    assert parse_json(deep) is not None
    assert len(parse_json(quoted)) == 101


@pytest.mark.parametrize("value", [None, "a", Number("1.0"), [Number("1")], {"a": None}])
def test_a_column_that_drift_brought_takes_any_value(value: Any) -> None:
    text = converter(SparkType(TEXT), True)(value, "tip", {})

    assert text is None or type(text) in (str, Number)


def test_a_misfit_and_a_rescued_field_are_named_by_their_path() -> None:
    convert = converter(parse_type("array<struct<sizes:map<string,int>>>"), True)
    rescued: dict[str, str | None] = {}

    rows = convert(
        [None, {"sizes": {"b": "2", "a": None}, "note": Number("1.0")}], "items", rescued
    )

    # Entries of a map stay in the order of delivery.
    assert rows == [None, {"sizes": [("b", 2), ("a", None)]}]
    assert rescued == {"items[1].note": "1.0"}
    with pytest.raises(MisfitError, match=r'^items\[0\]\.sizes\.a: "x" does not fit int$'):
        convert([{"sizes": {"a": "x"}}], "items", {})
