"""A broker that asks for a login and encrypts: the password is in its variable and nowhere else.

The broker has a certificate of an authority of the test's own, and takes passwords by SCRAM; 20 s.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka.admin import ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion

from livemart.errors import SourceError
from livemart.run.replays import is_retriable
from tests.deliveries import Shop
from tests.integration.land.test_kafka_faults import done, events, orders, shop_of
from tests.services.certificates import Certificates, make_certificates
from tests.services.fixtures import told_where_absent
from tests.services.kafka import Kafka, running_kafka
from tests.services.topics import admin_of, create_topic, send

pytestmark = pytest.mark.extended
_CLIENT = "livemart.land.sources.kafka.client"
_LISTENER = "listener.name.plaintext"
PASSWORD = "hunter2-and-more"


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker that refuses a login is given up after seconds."""
    monkeypatch.setattr(f"{_CLIENT}._ANSWER_S", 5.0)


class Secured(NamedTuple):
    """A broker that encrypts; `admin` are the settings of a client that may do all."""

    kafka: Kafka
    certificates: Certificates
    admin: Mapping[str, Any]


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """A broker to which `livemart` logs in by SCRAM, and an administrator by PLAIN."""
    folder = tmp_path_factory.mktemp("secured")
    login = "org.apache.kafka.common.security.{} required"
    plain = login.format("plain.PlainLoginModule")
    with told_where_absent():
        certificates = make_certificates(folder / "certificates")
        authority, certificate, key = (Path(path) for path in certificates)
        # A key in a file is one of PKCS 8, with its certificates behind it.
        whole = folder / "broker.pem"
        whole.write_text(key.read_text() + certificate.read_text() + authority.read_text())
        settings = {
            "listener.security.protocol.map": "PLAINTEXT:SASL_SSL,CONTROLLER:PLAINTEXT",
            "inter.broker.listener.name": "PLAINTEXT",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
            f"{_LISTENER}.plain.sasl.jaas.config": (
                f'{plain} username="admin" password="admin" user_admin="admin";'
            ),
            f"{_LISTENER}.scram-sha-512.sasl.jaas.config": (
                f"{login.format('scram.ScramLoginModule')};"
            ),
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(whole),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(authority),
        }
        (folder / "broker").mkdir()
        with running_kafka(folder / "broker", settings) as kafka:
            admin = {
                "security.protocol": "SASL_SSL",
                "ssl.ca.location": str(authority),
                "sasl.mechanism": "PLAIN",
                "sasl.username": "admin",
                "sasl.password": "admin",
            }
            info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
            user = UserScramCredentialUpsertion("livemart", info, PASSWORD.encode())
            # Answers come as long as the client is there.
            client = admin_of(kafka, **admin)
            done(client.alter_user_scram_credentials([user]))
            yield Secured(kafka, certificates, admin)


def secured_shop(root: Path, secured: Secured, topic: str, **client: str) -> Shop:
    """A shop that reads a topic as the user `livemart`; `client` are other settings."""
    settings = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "livemart",
        "ssl.ca.location": secured.certificates.authority,
    }
    settings |= {name.replace("_", "."): value for name, value in client.items()}
    root.mkdir(exist_ok=True)
    return shop_of(
        root,
        secured.kafka,
        topics=(topic,),
        client=frozenset(settings.items()),
        secrets=frozenset({("sasl.password", "KAFKA_PASSWORD")}),
    )


def command_lines() -> bytes:
    """Return what a list of processes would show."""
    lines = b""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        # It may have ended since.
        with suppress(OSError):
            lines += path.read_bytes()
    return lines


def test_a_password_is_nowhere_but_in_its_variable(
    secured: Secured,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    impatient: None,
    capfd: Any,
) -> None:
    topic = create_topic(secured.kafka, **secured.admin)
    send(secured.kafka, topic, *orders("a"), "{broken", settings=secured.admin)
    monkeypatch.setenv("KAFKA_PASSWORD", f"{PASSWORD}-wrong")
    with pytest.raises(SourceError, match=r"[Aa]uthentication") as caught:
        secured_shop(tmp_path / "shop", secured, topic).land(0)
    monkeypatch.setenv("KAFKA_PASSWORD", PASSWORD)
    shop = secured_shop(tmp_path / "shop", secured, topic)
    shop.land(0)
    said = capfd.readouterr()
    commands = command_lines()

    # A stream does not wait for another password.
    assert caught.value.code == "SOURCE_ACCESS_DENIED"
    assert not is_retriable(caught.value)
    assert events(shop) == ["a"]
    kept = [path for path in (tmp_path / "shop").rglob("*") if path.is_file()]
    assert len(kept) > 5
    assert [path for path in kept if PASSWORD.encode() in path.read_bytes()] == []
    assert PASSWORD not in f"{caught.value} {caught.value!r} {said}"
    assert PASSWORD.encode() not in commands


@pytest.mark.parametrize(
    ("client", "words"),
    [
        ({"ssl_ca_location": "another"}, "certificate verify failed.*ssl.ca.location"),
        ({"sasl_username": "nobody"}, "[Aa]uthentication failed"),
        ({"sasl_mechanism": "SCRAM-SHA-256"}, "SCRAM-SHA-256"),
    ],
)
def test_a_broker_that_is_not_trusted_or_does_not_trust_ends_the_run(
    secured: Secured,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    impatient: None,
    client: dict[str, str],
    words: str,
) -> None:
    monkeypatch.setenv("KAFKA_PASSWORD", PASSWORD)
    topic = create_topic(secured.kafka, **secured.admin)
    if "ssl_ca_location" in client:
        client = {"ssl_ca_location": make_certificates(tmp_path / "other").authority}

    with pytest.raises(SourceError, match=words) as caught:
        secured_shop(tmp_path / "shop", secured, topic, **client).land(0)

    assert caught.value.code == "SOURCE_ACCESS_DENIED"
    assert "start again" in caught.value.hint
    assert not is_retriable(caught.value)
