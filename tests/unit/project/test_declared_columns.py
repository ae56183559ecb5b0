from __future__ import annotations

import pytest

from livemart.project.declared_columns import DeclaredColumns, outer_type
from livemart.project.graph import Column
from livemart.project.yaml_places import Mistakes, Where

COLUMNS = (
    Column("order_id", "string"),
    Column("ordered_at", "timestamp"),
    Column("items", "array<struct<dish_id:bigint>>"),
)


def _codes(*columns: Column) -> list[str]:
    mistakes = Mistakes(Where("a.yml", "orders"))
    DeclaredColumns(columns, mistakes).check()
    return [error.code for error in mistakes.errors]


def test_names_and_types_that_spark_reads_are_taken() -> None:
    assert _codes(*COLUMNS) == []


@pytest.mark.parametrize("kind", ["variant", "array<VARIANT>", "struct<a:variant>"])
def test_a_variant_is_refused_with_the_way_out(kind: str) -> None:
    mistakes = Mistakes(Where("a.yml", "orders"))

    DeclaredColumns([Column("body", kind)], mistakes).check()

    (error,) = mistakes.errors
    assert error.code == "SOURCE_COLUMN_INVALID"
    assert error.hint is not None and "declare string" in error.hint and "parse_json" in error.hint


@pytest.mark.parametrize(
    ("kind", "near"),
    [
        ("datetime", "timestamp"),
        ("varchar(20)", "string"),
        ("array<text>", "string"),
        ("int64", "bigint"),
        ("strng", "string"),
    ],
)
def test_a_type_of_another_database_names_the_one_of_spark(kind: str, near: str) -> None:
    mistakes = Mistakes(Where("a.yml", "orders"))

    DeclaredColumns([Column("body", kind)], mistakes).check()

    (error,) = mistakes.errors
    assert f"did you mean {near}?" in error.message


@pytest.mark.parametrize(
    "name",
    ["größe", "日本", "İd", "order", "null", "a`b", "a.b", "it's", "50%", "1st", "_weight", "w0"],
)
def test_a_name_that_delta_takes_is_taken(name: str) -> None:
    assert _codes(*COLUMNS, Column(name, "string")) == []
    assert _codes(*COLUMNS, Column("nested", f"struct<`{name.replace('`', '``')}`:int>")) == []


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (Column("_Landed_At", "timestamp"), "SOURCE_COLUMN_RESERVED"),
        (Column("_record", "string"), "SOURCE_COLUMN_RESERVED"),
        (Column("_code_12", "string"), "SOURCE_COLUMN_RESERVED"),
        (Column("_change_type", "string"), "SOURCE_COLUMN_RESERVED"),
        (Column("__livemart_weight", "string"), "SOURCE_COLUMN_RESERVED"),
        *((Column(f"a{sign}b", "string"), "SOURCE_COLUMN_INVALID") for sign in " ,;{}()=\n\t\0"),
        (Column("", "string"), "SOURCE_COLUMN_INVALID"),
        (Column("nested", "array<struct<`a b`:int>>"), "SOURCE_COLUMN_INVALID"),
        (Column("nested", "map<string,struct<`a;b`:int>>"), "SOURCE_COLUMN_INVALID"),
        (Column("Order_ID", "string"), "SOURCE_COLUMN_INVALID"),
        (Column("untyped", None), "SOURCE_COLUMN_INVALID"),
        (Column("mistyped", "strng"), "SOURCE_COLUMN_INVALID"),
    ],
)
def test_a_column_that_cannot_be_landed_is_refused(column: Column, expected: str) -> None:
    assert _codes(*COLUMNS, column) == [expected]


def test_a_source_without_columns_is_refused() -> None:
    assert _codes() == ["SOURCE_COLUMN_INVALID"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ordered_at", []),
        ("order", ["SOURCE_COLUMN_UNKNOWN"]),
        ("items", ["SOURCE_COLUMN_INVALID"]),
    ],
)
def test_a_key_must_be_declared_and_ordered(name: str, expected: list[str]) -> None:
    mistakes = Mistakes(Where("a.yml", "orders"))

    DeclaredColumns(COLUMNS, mistakes).require_ordered(name, ("meta", "keys"))

    assert [error.code for error in mistakes.errors] == expected


@pytest.mark.parametrize(
    ("data_type", "expected"),
    [("Array<string>", "array"), ("decimal(10,2)", "decimal"), (" date ", "date")],
)
def test_the_outer_type_is_the_first_word(data_type: str, expected: str) -> None:
    assert outer_type(data_type) == expected
