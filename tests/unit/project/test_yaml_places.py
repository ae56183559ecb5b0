from __future__ import annotations

import pytest

from livemart.project.yaml_places import (
    Where,
    folder_setting_line,
    keys_of_other_types,
    line_below,
    livemart_misspelled,
    node_lines,
    place_of,
)

YAML = """\
sources:
  - name: ordering
    tables:
      - name: dishes
      - name: orders
        config:
          event_time: ordered_at
          meta:
            livemart:
              path: orders/*.jsonl
        columns:
          - {name: order_id, data_type: string}
models:
  - name: totals
    config: {meta: {livemart: {refresh: strict}}}
"""


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (("meta", "path"), "s.yml:10: orders: meta.livemart.path"),
        (("meta", "keys"), "s.yml:9: orders: meta.livemart.keys"),
        (("event_time",), "s.yml:7: orders: event_time"),
        (("columns", "order_id"), "s.yml:12: orders: columns.order_id"),
        (("freshness",), "s.yml:5: orders: freshness"),
    ],
)
def test_a_key_is_shown_with_its_line_or_that_of_its_parent(
    path: tuple[str, ...], expected: str
) -> None:
    where = Where(
        "s.yml", "orders", node_lines(YAML, ("sources", "ordering"), ("tables", "orders"))
    )

    assert where.at(*path) == expected


def test_a_model_has_lines_as_a_source_has() -> None:
    where = Where("s.yml", "totals", node_lines(YAML, ("models", "totals")))

    assert where.at("meta", "refresh") == "s.yml:15: totals: meta.livemart.refresh"


@pytest.mark.parametrize("text", ["", "sources: [", "sources: {}", "models: [{name: other}]"])
def test_a_text_without_the_node_has_no_lines(text: str) -> None:
    assert node_lines(text, ("sources", "ordering"), ("tables", "orders")) == {}
    assert node_lines(text, ("models", "totals")) == {}


def test_a_string_is_file_and_node_in_one() -> None:
    assert place_of("s.yml: orders") == Where("s.yml", "orders")


def test_a_key_that_must_mean_livemart_is_a_mistake_inside_meta_and_beside_it() -> None:
    place = Where("s.yml", "orders", {("config.meta", "livmart"): 3})

    mistakes = livemart_misspelled("CODE", {"livmart": {}, "owner": 1}, {"livemart": {}}, place)

    assert [mistake.message for mistake in mistakes] == [
        "s.yml:3: orders: config.meta.livmart: found key livmart, did you mean livemart?",
        "s.yml: orders: livemart: found key livemart beside meta",
    ]


def test_a_key_that_merges_is_none_that_is_looked_for() -> None:
    """YAML has no value for `<<` and `=` as keys."""
    text = "models:\n- on: 1\n  <<: {a: 2}\n  =: 3"

    lines = [line_below(text, ["models", "0", key]) for key in ("True", "<<", "none")]

    assert lines == [2, 3, 2]


def test_an_anchor_that_is_a_part_of_itself_is_searched_once() -> None:
    assert keys_of_other_types("a: &a\n  7: x\n  d: *a\n") == [("7", 2)]


def test_the_last_of_a_key_that_comes_twice_has_the_line() -> None:
    text = "models:\n  shop: {}\n  shop:\n    +schema: b\n    +schema: c\n"

    assert folder_setting_line(text, "models", ["shop"], ["schema"]) == 5
    assert node_lines("models:\n- name: a\n  tags: x\n  tags: y", ("models", "a"))["tags",] == 4
