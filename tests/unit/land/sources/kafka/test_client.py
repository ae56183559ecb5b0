"""A cluster that is away is an error that says why, within a time, and nothing on the terminal."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import OFFSET_INVALID, KafkaError, TopicPartition

from livemart.land.sources.kafka.client import KafkaClient, KafkaUnreadableError, is_denial
from livemart.land.sources.kafka.log import KafkaLog
from tests.ports import silent_port
from tests.waits import wait_until


def told(ask: Callable[[], Any]) -> str:
    """Return the error of a call that must end with one."""
    with pytest.raises(KafkaUnreadableError) as caught:
        ask()
    return str(caught.value)


# 2 s.
def test_an_address_that_nobody_listens_at_is_told_with_its_cause(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    for name in ("_ANSWER_S", "_SILENCE_S", "_GLANCE_S"):
        monkeypatch.setattr(f"livemart.land.sources.kafka.client.{name}", 0.2)
    with silent_port() as port:
        log = KafkaLog(servers=f"127.0.0.1:{port}", topics=["orders"])
        by_pattern = KafkaLog(servers=f"127.0.0.1:{port}", pattern="orders")
        # However long the system takes to refuse.
        wait_until(lambda: "refused" in told(log.starts))
        wait_until(lambda: "refused" in told(by_pattern.starts))
        wait_until(lambda: "refused" in told(lambda: list(log.read("orders/0", 0, 1))))
        assert log.written_at("orders/0", 0) is None

    assert "".join(capfd.readouterr()) == ""


def test_what_the_client_says_is_told_without_secrets() -> None:
    client = KafkaClient("127.0.0.1:1", {}, {"sasl.password": "hunter2"})
    client._client_errors.append(
        KafkaError(KafkaError._ALL_BROKERS_DOWN, "no such user: me:hunter2")
    )

    assert str(client._error("it failed")) == "it failed; no such user: me:***"


@pytest.mark.parametrize("is_newest", [True, False])
def test_a_partition_between_two_leaders_is_not_taken_for_an_emptied_one(
    is_newest: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers: dict[TopicPartition, Future[Any]] = {}
    for number, offset in enumerate((20, OFFSET_INVALID)):
        answers[TopicPartition("orders", number)] = Future()
        answers[TopicPartition("orders", number)].set_result(SimpleNamespace(offset=offset))
    monkeypatch.setattr(KafkaClient, "_asked", lambda *_: answers)
    client = KafkaClient("127.0.0.1:1", {}, {})

    text = told(lambda: client.offsets([("orders", 0), ("orders", 1)], newest=is_newest))

    assert text == "orders/1: no broker says where it begins or ends"


@pytest.mark.parametrize(
    ("code", "text", "expected"),
    [
        (KafkaError._AUTHENTICATION, "SASL authentication error: Authentication failed", True),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, "Broker: Topic authorization failed", True),
        (KafkaError._SSL, "SSL handshake failed: error: certificate verify failed: broker", True),
        # A broker that is killed while one connects.
        (KafkaError._SSL, "SSL handshake failed: Disconnected", False),
        (KafkaError._TRANSPORT, "Connect to ipv4#127.0.0.1:1 failed: refused", False),
        (KafkaError._AUTHENTICATION, "Failed to acquire SASL OAUTHBEARER token: no route", False),
        (
            KafkaError._AUTHENTICATION,
            "SASL PLAIN mechanism handshake failed: Local: Broker transport failure: broker's"
            " supported mechanisms: ",
            False,
        ),
        (
            KafkaError._AUTHENTICATION,
            "SASL PLAIN mechanism handshake failed: Broker: Unsupported SASL mechanism: broker's"
            " supported mechanisms: SCRAM-SHA-256",
            True,
        ),
    ],
)
def test_only_what_no_waiting_mends_is_a_denial(code: int, text: str, expected: bool) -> None:
    assert is_denial(KafkaError(code, text)) is expected
    client = KafkaClient("127.0.0.1:1", {}, {})
    client._on_error(KafkaError(code, text))
    assert isinstance(client._error("no answer"), PermissionError) is expected
