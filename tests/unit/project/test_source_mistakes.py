"""What an analyst writes wrongly below `meta.livemart` is reported with its place, all at once."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from livemart.project.graph import Column
from livemart.project.sources import parse_source_spec
from livemart.project.yaml_places import Where, source_lines

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
    where = Where("a.yml", "orders", source_lines(text, "ordering", "orders"))

    _, [mistake] = parse_source_spec(
        {"path": "orders/*.jsonl", "squence_by": ["updated_at"]}, COLUMNS, where
    )

    assert mistake.message.startswith("a.yml:10: orders: meta.livemart.squence_by: ")
    assert "did you mean sequence_by?" in mistake.message


def test_what_is_right_comes_back_whole() -> None:
    spec, mistakes = parse_source_spec(KEYED, COLUMNS, "a.yml: orders", event_time="ordered_at")

    assert mistakes == []
    assert spec is not None
    assert (spec.format, spec.keys, spec.sequence_by) == ("json", ("order_id",), ("updated_at",))
