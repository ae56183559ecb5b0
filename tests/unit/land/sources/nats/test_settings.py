"""All mistakes in a stream's options are reported at once, without secrets."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

from livemart.errors import ConfigError
from livemart.land.sources.nats.log import NatsLog


def mistakes(**options: Any) -> list[str]:
    given = {"servers": "nats://a:4222", "stream": "ORDERS"} | options
    with pytest.raises(ValueError) as caught:
        NatsLog(**given)
    return str(caught.value).split("; ")


def test_options_that_are_right_open_a_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NATS_PASSWORD", "hunter2")
    (tmp_path / "ca.pem").touch()

    log = NatsLog(
        "nats://a:4222, tls://b",
        "ORDERS",
        ["orders.*", "refunds.>"],
        {"tls_ca": str(tmp_path / "ca.pem"), "tls_first": True, "user": "livemart"},
        {"password": "NATS_PASSWORD"},
    )

    # It goes to Spark's workers.
    data = pickle.dumps(log)
    assert pickle.loads(data) == log
    assert b"hunter2" not in data
    monkeypatch.delenv("NATS_PASSWORD")
    with pytest.raises(LookupError, match="no environment variable NATS_PASSWORD"):
        pickle.loads(data).__post_init__()


def test_all_mistakes_are_told() -> None:
    assert mistakes(
        servers="",
        stream="a.b",
        subjects="orders",
        client={"tls_frist": True, "tls_first": 1, "tls_ca": "/no/ca.pem", "domain": ""},
        secrets={"passwort": "A", "user": "B"},
        name="a/b",
    ) == [
        "servers: write `nats://host:port`, several with commas",
        "stream: found 'a.b': a stream's name has no blanks, dots, *, > and slashes",
        "subjects: write a list of subjects, `[orders.*, refunds.>]`",
        "name: found 'a/b': write a word without blanks, / and @",
        "client: found tls_frist, did you mean tls_first?: the settings are credentials, domain, "
        "inbox_prefix, nkey, tls_ca, tls_cert, tls_first, tls_hostname, tls_key, user",
        "client: tls_first: found 1: write true or false",
        "client: tls_ca: found no file /no/ca.pem",
        "client: domain: found '': write a text",
        "secrets: found passwort, did you mean password?: the secrets are password, token, user",
    ]


@pytest.mark.parametrize(
    "options",
    [
        {"servers": "nats://a:4222,nats://livemart:hunter2@b:4222"},
        {"client": {"password": "hunter2"}},
        {"client": {"token": "hunter2"}},
        {"secrets": {"password": "hunter2 with a blank"}},
    ],
)
def test_a_secret_that_stands_in_an_option_is_refused_and_not_shown(options: Any) -> None:
    (mistake,) = mistakes(**options)

    assert "environment variable" in mistake
    assert "hunter2" not in mistake


def test_without_its_extra_the_command_that_installs_it_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("livemart.extras.find_spec", lambda _: None)

    with pytest.raises(ConfigError, match="EXTRA_MISSING") as caught:
        NatsLog("nats://a:4222", "ORDERS")

    assert caught.value.hint == "pip install 'livemart[nats]'"
