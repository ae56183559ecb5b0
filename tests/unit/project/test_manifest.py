from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, Literal

import pytest
from dbt.artifacts.resources.v1.config import NodeConfig

from livemart.project.graph import Column, DataTest
from livemart.project.manifest import _columns, prepare_nodes, primary_key


def _node(*columns: str, key: Sequence[str] = (), column_key: str | None = None) -> Any:
    constraint = SimpleNamespace(type="primary_key", columns=list(key))
    return SimpleNamespace(
        constraints=[constraint] if key else [],
        columns={
            name: SimpleNamespace(
                constraints=[SimpleNamespace(type="primary_key")] if name == column_key else []
            )
            for name in columns
        },
    )


def _test(
    kind: str,
    column: str | None = None,
    *,
    severity: Literal["error", "warn"] = "error",
    error_if: str = "!= 0",
    arguments: Mapping[str, object] | None = None,
) -> DataTest:
    return DataTest(
        unique_id=f"test.{kind}.{column}",
        name=kind,
        kind=kind,
        column_name=column,
        arguments=arguments or {},
        severity=severity,
        compiled_code="",
        depends_on=(),
        attached_to="model.a",
        file="",
        error_if=error_if,
    )


def test_a_declared_key_comes_before_tested_ones() -> None:
    tests = [_test("unique", "b"), _test("not_null", "b")]

    assert primary_key(_node("a", "b", key=["a"]), tests) == ("a",)
    assert primary_key(_node("a", "b", column_key="a"), tests) == ("a",)


def test_a_declared_key_may_be_quoted() -> None:
    assert primary_key(_node("größe", key=["`größe`", "a"]), []) == ("größe", "a")
    tests = [_test("unique", "`a``b`"), _test("not_null", "`a``b`")]
    assert primary_key(_node("a`b"), tests) == ("a`b",)


def test_fields_of_structs_keep_their_letter_case() -> None:
    """They are the names of a record's fields."""
    declared = SimpleNamespace(data_type="ARRAY<struct<unitPrice:int>>")
    node = SimpleNamespace(columns={"Items": declared})

    assert _columns(node) == (Column("Items", "ARRAY<struct<unitPrice:int>>"),)


def test_of_two_keys_the_first_column_is_taken() -> None:
    tests = [_test(kind, column) for column in ("`B`", "a") for kind in ("unique", "not_null")]

    assert primary_key(_node("a", "b"), tests) == ("a",)


@pytest.mark.parametrize(
    "tests",
    [
        [_test("unique", "a")],
        [_test("not_null", "a")],
        [_test("unique", "a", severity="warn"), _test("not_null", "a")],
        [_test("unique", "a"), _test("not_null", "a", severity="warn")],
        [_test("unique", "a", error_if="> 10"), _test("not_null", "a")],
        [replace(_test("unique", "a"), fail_calc="max(n_records) - 2"), _test("not_null", "a")],
        [replace(_test("unique", "a"), is_usual=False), _test("not_null", "a")],
        [_test("accepted_values", "a", arguments={"values": ["x"]})],
    ],
)
def test_what_is_not_proven_is_no_key(tests: list[DataTest]) -> None:
    assert primary_key(_node("a"), tests) == ()


@pytest.mark.parametrize(
    ("kind", "argument"),
    [
        ("unique_combination_of_columns", "combination_of_columns"),
        ("unique_combination", "columns"),
    ],
)
def test_the_shortest_tested_combination_is_a_key(kind: str, argument: str) -> None:
    tests = [
        _test(kind, arguments={argument: ["a", "b", "c"]}),
        _test(kind, arguments={argument: ["A", "`b`"]}),
    ]

    assert primary_key(_node("a", "b", "c"), tests) == ("a", "b")


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ({}, {"file_format": "delta"}),
        (
            {"file_format": "parquet", "partition_by": ["day"]},
            {"file_format": "delta", "partition_by": ["day"]},
        ),
        (
            {"partition_by": {"field": "day", "data_type": "date", "granularity": "day"}},
            {"file_format": "delta", "partition_by": None},
        ),
    ],
)
def test_every_table_is_delta_and_a_partition_of_bigquery_is_none(
    written: dict[str, Any], expected: dict[str, Any]
) -> None:
    """dbt-spark 1.11 would take the keys of the mapping for columns."""
    config = NodeConfig(_extra=written)
    node = SimpleNamespace(config=config, resource_type="model", schema="s", alias="t")
    node.depends_on = SimpleNamespace(nodes=[])

    prepare_nodes(SimpleNamespace(nodes={"model.p.t": node}, sources={}))

    assert {name: config.get(name) for name in expected} == expected
