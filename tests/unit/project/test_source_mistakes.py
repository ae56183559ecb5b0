"""All mistakes below `meta.livemart` are reported at once, with their places."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from livemart.project.graph import Column
from livemart.project.sources import parse_source_spec
from livemart.project.yaml_places import Where, node_lines

COLUMNS = (
    Column("order_id", "string"),
    Column("ordered_at", "timestamp"),
    Column("updated_at", "timestamp"),
    Column("labels", "map<string, string>"),
)
KEYED: Mapping[str, object] = {
    "path": "orders/*.jsonl",
    "keys": ["order_id"],
    "sequence_by": ["updated_at"],
}


@pytest.mark.parametrize(
    ("meta", "expected"),
    [
        ("orders/*.jsonl", ["SOURCE_NOT_A_MAPPING"]),
        ({**KEYED, "sequence": ["updated_at"]}, ["SOURCE_KEY_UNKNOWN"]),
        ({**KEYED, "format": "xml"}, ["SOURCE_VALUE_INVALID"]),
        ({"keys": ["order_id"], "sequence_by": ["updated_at"]}, ["SOURCE_VALUE_INVALID"]),
        ({**KEYED, "horizon": "soon"}, ["SOURCE_VALUE_INVALID"]),
        ({**KEYED, "keys": ["order"]}, ["SOURCE_COLUMN_UNKNOWN"]),
        ({**KEYED, "keys": ["labels"]}, ["SOURCE_COLUMN_INVALID"]),
        ({"path": "a/*.csv", "keys": ["order_id"]}, ["SOURCE_KEYS_INCOMPLETE"]),
        ({"path": "a/*.csv", "apply_as_deletes": "order_id = 'd'"}, ["SOURCE_KEYS_INCOMPLETE"]),
        (
            {**KEYED, "max_files_per_trigger": 10, "max_bytes_per_trigger": 1000},
            ["SOURCE_LIMITS_CONFLICT"],
        ),
        (
            {**KEYED, "keys": ["order"], "schema_drift": "ignore"},
            ["SOURCE_COLUMN_UNKNOWN", "SOURCE_VALUE_INVALID"],
        ),
    ],
)
def test_each_mistake_has_its_code_and_all_are_found(meta: object, expected: list[str]) -> None:
    spec, mistakes = parse_source_spec(meta, COLUMNS, "a.yml: orders", event_time="ordered_at")

    assert spec is None
    assert sorted(mistake.code for mistake in mistakes) == expected
    assert all(mistake.message.startswith("a.yml: orders: ") for mistake in mistakes)


CHANGES = (
    Column("id", "bigint"),
    Column("total", "decimal(10,2)"),
    Column("placed_at", "timestamp"),
    Column("days", "array<date>"),
)
ENVELOPE: Mapping[str, object] = {"path": "a/*", "keys": ["id"], "envelope": "debezium"}


@pytest.mark.parametrize(
    ("meta", "expected"),
    [
        ({"envelope": "debeziums"}, "envelope: found 'debeziums', did you mean debezium?"),
        ({"format": "csv"}, "envelope: envelope, but the records are of format csv"),
        ({"sequence_by": ["id"]}, "sequence_by: found ['id']"),
        ({"envelope_options": "schemas"}, "envelope_options: found 'schemas'"),
        ({"envelope_options": {"tables": "a"}}, "found tables, did you mean table?"),
        ({"envelope_options": {"schemas": "yes"}}, "found schemas 'yes'"),
        ({"envelope_options": {"table": 7}}, "found table 7"),
        ({"envelope_options": {"decimal_handling": "exact"}}, "found decimal_handling 'exact'"),
        ({"envelope_options": {"binary_handling": None}}, "found binary_handling None"),
        ({"envelope_options": {"timestamp_digits": 10}}, "found timestamp_digits 10"),
        ({"envelope_options": {"timestamp_digits": {"at": 3}}}, "found column at"),
    ],
)
def test_a_mistake_of_an_envelope_is_told(meta: Mapping[str, object], expected: str) -> None:
    spec, mistakes = parse_source_spec({**ENVELOPE, **meta}, CHANGES, "a.yml: orders")

    assert spec is None
    assert any(f"a.yml: orders: meta.livemart.{expected}" in it.message for it in mistakes) or any(
        f"a.yml: orders: meta.livemart.envelope_options: {expected}" in it.message
        for it in mistakes
    )


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (
            {},
            [
                "no decimal_handling, and column total is of type decimal(10,2)",
                "no time_precision, and column placed_at is of type timestamp",
                "no time_precision, and column days is of type array<date>",
            ],
        ),
        (
            {"decimal_handling": "string", "time_precision": "adaptive"},
            ["no timestamp_digits, and column placed_at is of type timestamp"],
        ),
        (
            {
                "decimal_handling": "string",
                "time_precision": "adaptive",
                "timestamp_digits": {"days": 3},
            },
            ["no timestamp_digits, and column placed_at is of type timestamp"],
        ),
        ({"schemas": True}, []),
        ({"decimal_handling": "double", "time_precision": "connect"}, []),
        (
            {
                "decimal_handling": "precise",
                "time_precision": "adaptive",
                "timestamp_digits": {"placed_at": 3},
            },
            [],
        ),
    ],
)
def test_what_nothing_tells_how_to_read_is_told(
    options: Mapping[str, object], expected: list[str]
) -> None:
    meta = {**ENVELOPE, "envelope_options": options}

    _, mistakes = parse_source_spec(meta, CHANGES, "a.yml: orders")

    place = "a.yml: orders: meta.livemart.envelope_options: "
    assert [it.message for it in mistakes] == [f"{place}{finding}" for finding in expected]


def test_columns_of_an_envelope_are_reserved_where_there_is_one() -> None:
    columns = [Column("id", "bigint"), Column("_Sequence", "string")]

    _, mistakes = parse_source_spec(ENVELOPE, columns, "a.yml: orders")
    _, without = parse_source_spec({"path": "a/*"}, columns, "a.yml: orders")
    _, alone = parse_source_spec(
        {"path": "a/*", "envelope_options": {"schemas": True}}, columns, "a.yml: orders"
    )

    assert [it.code for it in mistakes] == ["SOURCE_COLUMN_RESERVED"]
    assert without == []
    assert [it.code for it in alone] == ["SOURCE_VALUE_INVALID"]


def test_a_misspelled_key_is_shown_with_its_line_and_the_nearest_word() -> None:
    text = """
sources:
  - name: ordering
    tables:
      - name: orders
        config:
          meta:
            livemart:
              path: orders/*.jsonl
              squence_by: [updated_at]
"""
    where = Where(
        "a.yml", "orders", node_lines(text, ("sources", "ordering"), ("tables", "orders"))
    )

    _, [mistake] = parse_source_spec(
        {"path": "orders/*.jsonl", "squence_by": ["updated_at"]}, COLUMNS, where
    )

    assert mistake.message.startswith("a.yml:10: orders: meta.livemart.squence_by: ")
    assert "did you mean sequence_by?" in mistake.message


def test_what_is_right_comes_back_whole() -> None:
    spec, mistakes = parse_source_spec(KEYED, COLUMNS, "a.yml: orders", event_time="ordered_at")

    assert mistakes == []
    assert spec is not None
    rules = spec.row_rules
    assert (rules.keys, rules.sequence_by) == (("order_id",), ("updated_at",))
    assert spec.record_rules.format == "json"
