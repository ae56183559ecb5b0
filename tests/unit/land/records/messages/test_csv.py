"""A message of CSV holds one record, without a header; more of them are refused as a whole."""

from __future__ import annotations

from livemart.land.records.judge import Group
from livemart.land.records.messages.csv import read_csv_messages
from livemart.land.records.schema import RecordSchema
from livemart.project.spark_types import parse_type
from tests.deliveries import NOON, source

SOURCE = source("orders", {"id": "string", "note": "string", "n": "int"}, format="csv")


def test_fields_stand_in_the_order_of_the_columns_and_a_line_end_is_no_part_of_them() -> None:
    group = Group.of([SOURCE], RecordSchema.of(SOURCE), NOON)
    messages = [(5, b'a,"one\ntwo",1\r\n'), (6, b"b,,2"), (7, b"c,,3\nd,,4\n")]

    chunk = read_csv_messages(group, messages)

    rows = zip(chunk.lines, chunk.rows.select(["id", "note", "n"]).to_pylist(), strict=True)
    assert dict(rows) == {
        5: {"id": "a", "note": "one\ntwo", "n": 1},
        6: {"id": "b", "note": None, "n": 2},
    }
    (refused,) = chunk.refused
    assert (refused.line, refused.record) == (7, messages[2][1])
    assert refused.detail == "2 records of CSV: a message holds one"


def test_a_column_that_drift_brought_is_no_field_of_a_message() -> None:
    schema = RecordSchema.of(SOURCE, [("coupon", parse_type("string"))])

    chunk = read_csv_messages(Group.of([SOURCE], schema, NOON), [(1, b"a,x,1")])

    assert chunk.rows.select(["id", "n", "coupon"]).to_pylist() == [
        {"id": "a", "n": 1, "coupon": None}
    ]
