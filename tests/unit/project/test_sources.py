from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from livemart.project.graph import Arrival, Column, EnvelopeOptions
from livemart.project.sources import parse_source_spec
from livemart.project.yaml_places import Where, node_lines
from tests.models import stream_spec
from tests.record_logs import install_kind

COLUMNS = (
    Column("order_id", "string"),
    Column("ordered_at", "timestamp"),
    Column("updated_at", "timestamp"),
    Column("op", "string"),
    Column("items", "array<struct<dish_id:bigint>>"),
)
YAML = """
sources:
  - name: ordering
    tables:
      - name: dishes
      - name: orders
        config:
          event_time: orderd_at
          meta:
            livemart:
              path: orders/*.jsonl
              kays: [order_id]
        columns:
          - {name: order_id, data_type: string}
          - {name: _origin, data_type: string}
"""


def test_defaults_are_filled_in() -> None:
    expected = stream_spec(path="orders/*.jsonl")

    actual, mistakes = parse_source_spec({"path": "orders/*.jsonl"}, COLUMNS, "m.yml: orders")

    assert (actual, mistakes) == (expected, [])


def test_an_envelope_says_order_and_deletes_itself() -> None:
    meta = {
        "path": "cdc/*.jsonl",
        "keys": ["order_id"],
        "apply_as_deletes": "op = 'hidden'",
        "envelope": "debezium",
        "envelope_options": {"schemas": True, "table": "public.orders", "timestamp_digits": 3},
    }
    keyless = {name: it for name, it in meta.items() if name not in ("keys", "apply_as_deletes")}

    keyed, _ = parse_source_spec(meta, COLUMNS, "m.yml: orders")
    history, _ = parse_source_spec(keyless, COLUMNS, "m.yml: orders")

    assert keyed is not None and history is not None
    assert keyed.row_rules.sequence_by == ("_sequence",)
    assert keyed.row_rules.apply_as_deletes == "_operation = 'd' or (op = 'hidden')"
    assert keyed.record_rules.envelope_options == EnvelopeOptions(
        table="public.orders", schemas=True, timestamp_digits=(("*", 3),)
    )
    assert (history.row_rules.sequence_by, history.row_rules.apply_as_deletes) == ((), None)


def test_every_key_is_read() -> None:
    meta = {
        "format": "csv",
        "path": "orders/*.csv",
        "keys": ["order_id"],
        "sequence_by": "updated_at",
        "apply_as_deletes": "op = 'd'",
        "event_time_is_fixed": True,
        "schema_drift": "evolve",
        "max_future": "90 minutes",
        "horizon": "48 hours",
        "lateness": "measured",
        "max_files_per_trigger": 10,
    }
    expected = stream_spec(
        format="csv",
        path="orders/*.csv",
        keys=("order_id",),
        sequence_by=("updated_at",),
        apply_as_deletes="op = 'd'",
        event_time_is_fixed=True,
        schema_drift="evolve",
        max_future=timedelta(minutes=90),
        horizon=timedelta(hours=48),
        lateness="measured",
        max_files_per_trigger=10,
    )

    actual, mistakes = parse_source_spec(meta, COLUMNS, "m.yml: orders", event_time="ordered_at")

    assert (actual, mistakes) == (expected, [])


@pytest.mark.parametrize(
    ("meta", "codes", "words"),
    [
        ({"pth": "x"}, ["SOURCE_KEY_UNKNOWN", "SOURCE_VALUE_INVALID"], "did you mean path?"),
        ({"path": "x", "format": "jsno"}, ["SOURCE_VALUE_INVALID"], "did you mean json?"),
        ({"path": "/etc/x"}, ["SOURCE_VALUE_INVALID"], "'/etc/x'"),
        ({"path": "a/../b"}, ["SOURCE_VALUE_INVALID"], "'a/../b'"),
        ({"path": "a/**/*.csv"}, ["SOURCE_VALUE_INVALID"], "'a/**/*.csv'"),
        ({"path": "_a/*.csv"}, ["SOURCE_VALUE_INVALID"], "'_a/*.csv'"),
        ({"path": "x", "keys": ["order_id"]}, ["SOURCE_KEYS_INCOMPLETE"], "without sequence_by"),
        ({"path": "x", "sequence_by": ["updated_at"]}, ["SOURCE_KEYS_INCOMPLETE"], "without keys"),
        (
            {"path": "x", "keys": ["items"], "sequence_by": ["op"]},
            ["SOURCE_COLUMN_INVALID"],
            "type",
        ),
        (
            {"path": "x", "keys": ["orderid"], "sequence_by": ["op"]},
            ["SOURCE_COLUMN_UNKNOWN"],
            "did you mean order_id?",
        ),
        (
            {"path": "x", "max_files_per_trigger": 1, "max_bytes_per_trigger": 1},
            ["SOURCE_LIMITS_CONFLICT"],
            "max_files_per_trigger",
        ),
        (
            {"path": "x", "max_records_per_trigger": 1, "max_bytes_per_trigger": 1, "keys": "a"},
            ["SOURCE_COLUMN_UNKNOWN", "SOURCE_KEYS_INCOMPLETE", "SOURCE_LIMITS_CONFLICT"],
            "max_bytes_per_trigger and max_records_per_trigger",
        ),
        ({"path": "x", "max_files_per_trigger": 0}, ["SOURCE_VALUE_INVALID"], "found 0"),
        ({"path": "x", "max_future": "2 daze"}, ["SOURCE_VALUE_INVALID"], "2 daze"),
        ({"path": "x", "event_time_is_fixed": "yes"}, ["SOURCE_VALUE_INVALID"] * 2, "'yes'"),
        (
            {
                "path": "x",
                "keys": "order_id",
                "sequence_by": "op",
                "apply_as_deletes": "itms = 'd'",
            },
            ["SOURCE_COLUMN_UNKNOWN"],
            "did you mean items?",
        ),
        (
            {"path": "x", "keys": "order_id", "sequence_by": "op", "apply_as_deletes": "op = ("},
            ["SOURCE_VALUE_INVALID"],
            "op = (",
        ),
        ("orders", ["SOURCE_NOT_A_MAPPING"], "'orders'"),
    ],
)
def test_a_mistake_names_the_word_and_the_nearest_valid_one(
    meta: Any, codes: list[str], words: str
) -> None:
    spec, mistakes = parse_source_spec(meta, COLUMNS, "m.yml: source ordering.orders")
    actual = [
        mistake.code for mistake in mistakes if "event_time_is_fixed without" not in str(mistake)
    ]

    assert spec is None
    assert actual == codes
    assert words in "\n".join(map(str, mistakes))


def test_all_mistakes_are_reported_at_once_each_with_its_line() -> None:
    columns = (Column("order_id", "string"), Column("_origin", "string"))
    where = Where(
        "models/s.yml",
        "source ordering.orders",
        node_lines(YAML, ("sources", "ordering"), ("tables", "orders")),
    )
    meta = {"path": "orders/*.jsonl", "kays": ["order_id"]}
    expected = [
        ("SOURCE_KEY_UNKNOWN", "models/s.yml:12: source ordering.orders: meta.livemart.kays"),
        ("SOURCE_COLUMN_RESERVED", "models/s.yml:15: source ordering.orders: columns._origin"),
        ("SOURCE_COLUMN_UNKNOWN", "models/s.yml:8: source ordering.orders: event_time"),
    ]

    _, mistakes = parse_source_spec(meta, columns, where, event_time="orderd_at")
    actual = [(mistake.code, mistake.message.rpartition(": found")[0]) for mistake in mistakes]

    assert actual == expected


def test_a_kind_is_one_of_those_that_packages_offer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_kind(tmp_path, monkeypatch, "outbox", "nowhere:Outbox")

    spec, mistakes = parse_source_spec(
        {"kind": "outbox", "options": {"table": "t", "port": 1}, "max_records_per_trigger": 5},
        COLUMNS,
        "models/_sources.yml: shop.sales",
    )

    assert mistakes == []
    assert spec is not None
    assert spec.arrival == Arrival(
        "outbox", options=(("port", 1), ("table", "t")), max_records_per_trigger=5
    )


def test_installed_packages_are_looked_into_once_for_all_sources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[str] = []

    def look(group: str) -> list[object]:
        looks.append(group)
        return []

    monkeypatch.setattr("livemart.project.sources.entry_points", look)
    monkeypatch.syspath_prepend(str(tmp_path))

    for name in ("sales", "shops"):
        parse_source_spec({"path": "a/*"}, COLUMNS, f"models/_sources.yml: shop.{name}")

    assert looks == ["livemart.sources"]


@pytest.mark.parametrize(
    ("meta", "message"),
    [
        ({"kind": "outbax", "path": "a/*"}, "found 'outbax', did you mean outbox"),
        ({"kind": "outbox", "path": "a/*"}, "path, but the source is of kind outbox"),
        ({"kind": "outbox", "max_files_per_trigger": 1}, "max_files_per_trigger, but the source"),
        ({"kind": "outbox", "format": "parquet"}, "found 'parquet'"),
        ({"kind": "outbox", "options": {"a": [None]}}, "options: a: found NoneType"),
        ({"kind": "outbox", "options": ["a"]}, "options: found no mapping"),
        ({"path": "a/*", "options": {"a": 1}}, "options, but the source is of kind files"),
    ],
)
def test_settings_of_another_kind_are_mistakes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, meta: dict[str, object], message: str
) -> None:
    install_kind(tmp_path, monkeypatch, "outbox", "nowhere:Outbox")

    _, mistakes = parse_source_spec(meta, COLUMNS, "models/_sources.yml: shop.sales")

    assert [message in str(mistake) for mistake in mistakes] == [True]
