"""The encoding of Avro messages is set once; mistakes are reported before anything runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from livemart.project.graph import Column
from livemart.project.sources import parse_source_spec
from tests.record_logs import install_kind

COLUMNS = (Column("order_id", "string"),)
WHERE = "models/_sources.yml: shop.orders"
SCHEMA = {"type": "record", "name": "o", "fields": [{"name": "order_id", "type": "string"}]}

LOGIN = {"user": "REGISTRY_USER", "password": "REGISTRY_PASSWORD"}
REGISTRY = {"format": "avro", "schema_registry": "https://registry:8081"}


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_kind(tmp_path / "site", monkeypatch, "outbox", "nowhere:Outbox")
    (tmp_path / "schemas").mkdir()
    (tmp_path / "schemas" / "order.avsc").write_text(json.dumps(SCHEMA))
    (tmp_path / "schemas" / "broken.avsc").write_text("{")
    tree = {**SCHEMA, "fields": [{"name": "of", "type": ["null", "o"]}]}
    (tmp_path / "schemas" / "tree.avsc").write_text(json.dumps(tree))


@pytest.mark.parametrize(
    ("meta", "expected"),
    [
        ({"format": "avro"}, "no schema"),
        (
            {"format": "avro", "avro_schema": "schemas/order.avsc", "schema_registry": "schemas"},
            "avro_schema and schema_registry",
        ),
        ({"avro_schema": "schemas/order.avsc"}, "found avro_schema, "),
        ({"format": "avro", "avro_schema": 7}, "found 7"),
        ({"format": "avro", "avro_schema": "schemas/no.avsc"}, "no.avsc: FileNotFoundError"),
        ({"format": "avro", "avro_schema": "schemas/broken.avsc"}, "broken.avsc: JSONDecodeError"),
        ({"format": "avro", "avro_schema": "schemas/tree.avsc"}, "a schema that sets an end"),
        ({"format": "avro", "schema_registry": "nowhere"}, "found 'nowhere', which is no folder"),
        ({"format": "avro", "schema_registry": "http://me:hunter2@a/"}, "a user or password"),
        ({"kind": "files", "path": "a/*", "avro_schema": "x"}, "avro_schema, but the source is of"),
        (
            {"kind": "files", "path": "a/*", "format": "avro", "envelope": "debezium"},
            "of format avro",
        ),
        ({"format": "csv", "envelope": "debezium"}, "envelope, but the records are of format csv"),
        (
            {"format": "avro", "schema_registry": "schemas", "registry_secrets": LOGIN},
            "no address of a schema registry",
        ),
        ({"registry_secrets": LOGIN}, "no address of a schema registry"),
        ({**REGISTRY, "registry_secrets": {"user": "ME"}}, "not user and password"),
        ({**REGISTRY, "registry_secrets": {**LOGIN, "password": "hunter2!"}}, "no name of an envi"),
    ],
)
def test_a_mistake_is_told(tmp_path: Path, meta: dict[str, object], expected: str) -> None:
    given = {"kind": "outbox", **meta}

    _, mistakes = parse_source_spec(given, COLUMNS, WHERE, root=tmp_path)

    assert [expected in str(mistake) for mistake in mistakes] == [True]
    assert "hunter2" not in str(mistakes)


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("avro_schema", "schemas/order.avsc", json.dumps(SCHEMA)),
        ("schema_registry", "https://registry:8081/", "https://registry:8081/"),
        ("schema_registry", "schemas", "{root}/schemas"),
    ],
)
def test_files_are_named_from_the_project(
    tmp_path: Path, key: str, value: str, expected: str
) -> None:
    meta = {"kind": "outbox", "format": "avro", key: value}

    spec, mistakes = parse_source_spec(meta, COLUMNS, WHERE, root=tmp_path)

    assert mistakes == []
    assert spec is not None
    assert getattr(spec.record_rules, key) == expected.replace("{root}", str(tmp_path))


def test_a_login_is_named_by_environment_variables(tmp_path: Path) -> None:
    meta = {"kind": "outbox", **REGISTRY, "registry_secrets": LOGIN}

    spec, mistakes = parse_source_spec(meta, COLUMNS, WHERE, root=tmp_path)

    assert mistakes == []
    assert spec is not None
    assert spec.record_rules.registry_secrets == tuple(LOGIN.items())


def test_changes_in_avro_say_their_types_themselves(tmp_path: Path) -> None:
    columns = (*COLUMNS, Column("total", "decimal(10,2)"), Column("at", "timestamp"))
    meta = {"kind": "outbox", **REGISTRY, "envelope": "debezium", "keys": ["order_id"]}

    spec, mistakes = parse_source_spec(meta, columns, WHERE, root=tmp_path)

    assert mistakes == []
    assert spec is not None
    assert (spec.record_rules.format, spec.record_rules.envelope) == ("avro", "debezium")
