"""A broker that asks for a login: the password is in an environment variable and nowhere else."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from livemart.errors import SourceError
from tests.integration.land.test_kafka_faults import events, orders, shop_of
from tests.services.kafka import running_kafka
from tests.services.topics import create_topic, send

pytestmark = pytest.mark.extended
_CLIENT = "livemart.land.sources.kafka.client"
PASSWORD = "hunter2-and-more"


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker that refuses a login is given up after seconds."""
    monkeypatch.setattr(f"{_CLIENT}._ANSWER_S", 5.0)


def command_lines() -> bytes:
    """Return what a list of processes would show."""
    lines = b""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        # It may have ended since.
        with suppress(OSError):
            lines += path.read_bytes()
    return lines


def test_a_password_is_nowhere_but_in_its_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, impatient: None, capfd: Any
) -> None:
    users = f'user_livemart="{PASSWORD}" user_admin="admin"'
    login = "org.apache.kafka.common.security.plain.PlainLoginModule required"
    listener = {
        "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.plaintext.plain.sasl.jaas.config": (
            f'{login} username="admin" password="admin" {users};'
        ),
    }
    security = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}
    client = {**security, "sasl.username": "livemart"}
    admin: dict[str, Any] = {**security, "sasl.username": "admin", "sasl.password": "admin"}
    options = {
        "client": frozenset(client.items()),
        "secrets": frozenset({("sasl.password", "KAFKA_PASSWORD")}),
    }
    (tmp_path / "broker").mkdir()
    root = tmp_path / "shop"
    root.mkdir()
    with running_kafka(tmp_path / "broker", listener) as kafka:
        topic = create_topic(kafka, **admin)
        send(kafka, topic, *orders("a"), "{broken", settings=admin)
        monkeypatch.setenv("KAFKA_PASSWORD", f"{PASSWORD}-wrong")
        with pytest.raises(SourceError, match=r"SOURCE_UNREADABLE.*[Aa]uthentication") as caught:
            shop_of(root, kafka, topics=(topic,), **options).land(0)
        monkeypatch.setenv("KAFKA_PASSWORD", PASSWORD)
        shop = shop_of(root, kafka, topics=(topic,), **options)
        shop.land(0)
        said = capfd.readouterr()
        commands = command_lines()

    assert events(shop) == ["a"]
    kept = [path for path in root.rglob("*") if path.is_file()]
    assert len(kept) > 5
    assert [path for path in kept if PASSWORD.encode() in path.read_bytes()] == []
    assert PASSWORD not in f"{caught.value} {caught.value!r} {said}"
    assert PASSWORD.encode() not in commands
