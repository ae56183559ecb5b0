"""Options of a Kafka source: all mistakes at once, no secret in any text."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from livemart.errors import ConfigError
from livemart.land.sources.kafka.client import KafkaUnreadableError
from livemart.land.sources.kafka.log import KafkaLog
from tests.deliveries import Shop, source

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
