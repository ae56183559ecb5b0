"""The placeholder of an unchanged value is distinguished from a value."""

from __future__ import annotations

import json
from typing import Any

import pytest

from livemart.land.records.debezium.change_record import ChangeRecords
from livemart.land.records.exact_values import MalformedError
from livemart.project.graph import EnvelopeOptions
from livemart.project.spark_types import parse_type
from tests.change_records import change, mysql

PLACEHOLDER = "__debezium_unavailable_value"


def fields(record: Any, kind: str = "string", **options: Any) -> dict[str, Any]:
    columns = [("id", parse_type("bigint")), ("x", parse_type(kind))]
    reader = ChangeRecords(columns, ("id",), EnvelopeOptions(**options))
    return reader.fields(json.dumps(record).encode())


@pytest.mark.parametrize(
    "value",
    [
        PLACEHOLDER,
        "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ==",
        "5f5f646562657a69756d5f756e617661696c61626c655f76616c7565",
        [PLACEHOLDER],
        list(PLACEHOLDER.encode()),
        {PLACEHOLDER: PLACEHOLDER},
    ],
)
def test_each_form_of_an_unavailable_value(value: Any) -> None:
    actual = fields(change("u", 1, {"id": 1, "x": value, "unknown": value}))

    assert actual.keys() == {"id", "_operation", "_sequence", "_kept_values"}
    # Drift may make a column of the other one.
    assert actual["_kept_values"] == {"x": None, "unknown": None}


@pytest.mark.parametrize("value", ["", f"{PLACEHOLDER} ", None, 95, [95, 95], ["a"], [], {"a": 1}])
def test_other_values_are_values(value: Any) -> None:
    actual = fields(change("u", 1, {"id": 1, "x": value}), "array<string>")

    assert "x" in actual
    assert actual["_kept_values"] is None


WITHOUT_BYTES = {"id": 1, "x": None}


@pytest.mark.parametrize("mode", ["base64", "base64-url-safe"])
def test_null_is_refused_where_it_may_stand_for_bytes_that_were_left(mode: str) -> None:
    with pytest.raises(MalformedError, match=r"x: null, which .*REPLICA IDENTITY FULL"):
        fields(change("u", 1, WITHOUT_BYTES), "binary", binary_handling=mode)


def test_null_is_refused_if_the_schema_of_the_record_says_that_bytes_are_a_text() -> None:
    x = {"field": "x", "type": "string", "optional": True}
    after = {"field": "after", "type": "struct", "fields": [x]}
    record = {
        "schema": {"type": "struct", "fields": [after]},
        "payload": change("u", 1, WITHOUT_BYTES),
    }

    with pytest.raises(MalformedError, match="x: null, which"):
        fields(record, "binary", schemas=True)
    x["type"] = "bytes"
    assert fields(record, "binary", schemas=True)["x"] is None


@pytest.mark.parametrize(
    ("record", "kind", "mode"),
    [
        (change("u", 1, WITHOUT_BYTES), "binary", "bytes"),
        (change("u", 1, WITHOUT_BYTES), "binary", "hex"),
        (change("u", 1, WITHOUT_BYTES), "string", "base64"),
        (change("u", 1, {"id": 1}), "binary", "base64"),
        (change("c", 1, WITHOUT_BYTES), "binary", "base64"),
        (change("r", 1, WITHOUT_BYTES), "binary", "base64"),
        (change("u", 1, WITHOUT_BYTES, {"id": 1, "x": "AA=="}), "binary", "base64"),
        (change("u", mysql("bin.000001", 4), WITHOUT_BYTES), "binary", "base64"),
    ],
)
def test_null_is_null_elsewhere(record: Any, kind: str, mode: str) -> None:
    assert fields(record, kind, binary_handling=mode).get("x") is None


def test_a_change_has_the_place_that_its_transaction_says() -> None:
    record = change("u", mysql("bin.000001", 4), {"id": 1})
    transaction = {"id": "x", "total_order": 12, "data_collection_order": 3}

    first, later = (
        fields(it)["_sequence"] for it in (record, record | {"transaction": transaction})
    )

    assert (first, later) == (
        "0000000001.0000000000000004.00000000.1",
        "0000000001.0000000000000004.000000000012.1",
    )


def test_a_message_without_json_in_it_is_refused() -> None:
    with pytest.raises(MalformedError, match="at character 1"):
        fields({"topic": "t", "key": None, "payload": "Struct{before=null}"})


def test_the_row_of_a_table_may_have_a_column_topic() -> None:
    assert fields(change("c", 1, {"id": 1, "topic": "a", "value": "b"}))["topic"] == "a"
