"""Options of a Kafka source: all mistakes at once, no secret in any text."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
import yaml

from livemart.errors import ConfigError
from livemart.land.sources.kafka.client import KafkaUnreadableError
from livemart.land.sources.kafka.log import KafkaLog
from livemart.project.graph import Column
from livemart.project.record_logs.options import plain_option
from livemart.project.sources import parse_source_spec
from tests.deliveries import Shop, source

DOCUMENT = Path(__file__).resolve().parents[5] / "docs" / "sources.md"

GOOD: dict[str, Any] = {"servers": "127.0.0.1:1", "topics": ["orders"]}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"servers": ""}, "servers: write `host:port`"),
        ({"topics": "orders"}, "topics: write a list"),
        ({"topics": []}, "write either `topics`"),
        ({"pattern": "o.*"}, "write either `topics`"),
        ({"topics": [], "pattern": "("}, "pattern: found '('"),
        ({"name": "a/b"}, "name: found 'a/b'"),
        ({"client": {"group.id": "x"}}, "client: group.id is set by livemart"),
        ({"client": {"linger.ms": ["x"]}}, "client: linger.ms: write a text"),
        ({"client": {"no.such.setting": 1}}, 'No such configuration property: "no.such.setting"'),
        ({"client": {"a": 1}, "secrets": {"a": "B"}}, "secrets: a is in `client` as well"),
        ({"secrets": {"sasl.password": "hunter-2"}}, "sasl.password: write the name of an env"),
        ({"secrets": {"sasl.password": "NO_SUCH_ONE"}}, "no environment variable NO_SUCH_ONE"),
        ({"client": {"sasl.password": "hunter-2"}}, "client: sasl.password is a secret"),
        ({"client": "hunter-2"}, "client: write settings of librdkafka"),
    ],
)
def test_a_mistake_is_told_without_a_secret(options: dict[str, Any], expected: str) -> None:
    with pytest.raises((ValueError, LookupError, KafkaUnreadableError)) as caught:
        KafkaLog(**GOOD | options)

    assert expected in str(caught.value)
    assert "hunter" not in str(caught.value)


def test_all_mistakes_are_told_at_once_before_anything_runs(tmp_path: Any) -> None:
    options = (("servers", ""), ("topics", ()), ("client", frozenset({("ssl.key.password", "x")})))

    with pytest.raises(ConfigError) as caught:
        Shop(None, tmp_path, [source("orders", kind="kafka", path="", options=options)])

    assert caught.value.code == "SOURCE_KIND_BROKEN"
    for expected in ("servers: ", "write either", "ssl.key.password is a secret"):
        assert expected in caught.value.message


def test_without_its_extra_the_kind_says_what_to_install(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("livemart.extras.missing_modules", lambda extra: ["confluent_kafka"])
    options = (("servers", "a:1"), ("topics", ("orders",)))

    with pytest.raises(ConfigError, match="EXTRA_MISSING") as caught:
        Shop(None, tmp_path, [source("orders", kind="kafka", path="", options=options)])

    assert caught.value.hint == "pip install 'livemart[kafka]'"


def test_the_source_of_the_documents_opens(monkeypatch: pytest.MonkeyPatch) -> None:
    section = DOCUMENT.read_text().partition("\n## Kafka\n")[2]
    block = section.partition("```yaml\n")[2].partition("```")[0]
    table = yaml.safe_load(block)["sources"][0]["tables"][0]
    columns = tuple(Column(it["name"], it["data_type"]) for it in table["columns"])
    meta = table["config"]["meta"]["livemart"]

    spec, mistakes = parse_source_spec(meta, columns, "models/_sources.yml: ordering.orders")

    assert mistakes == []
    assert spec is not None
    assert spec.row_rules.apply_as_deletes == "`is_deleted` = true"
    with pytest.raises(LookupError, match="KAFKA_PASSWORD"):
        KafkaLog(**{name: plain_option(value) for name, value in spec.arrival.options})
    monkeypatch.setenv("KAFKA_PASSWORD", "hunter2")
    log = KafkaLog(**{name: plain_option(value) for name, value in spec.arrival.options})
    assert log.topics == ["orders"]


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("start", "erliest"),
        ("start", 17),
        ("start", {"orders/0": -1}),
        ("start", {"orders/0": "17"}),
        ("end", "latest"),
    ],
)
def test_a_place_in_a_log_is_a_word_a_time_or_offsets(option: str, value: object) -> None:
    with pytest.raises(ValueError, match=rf"^{option}: "):
        KafkaLog(**GOOD | {option: value})


def test_what_is_pickled_for_workers_holds_no_connection_and_no_secret(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KAFKA_PASSWORD", "hunter2")
    log = KafkaLog(**GOOD, secrets={"sasl.password": "KAFKA_PASSWORD"}, name="shop")

    data = pickle.dumps(log)

    assert b"hunter2" not in data
    assert pickle.loads(data) == log
    assert "hunter2" not in repr(log)
    assert log._place("shop/or/ders/12") == ("or/ders", 12)
    assert log._name("or/ders", 12) == "shop/or/ders/12"
