"""Secrets are named by environment variables, and shown in no text."""

from __future__ import annotations

import pytest

from livemart.land.secrets import read_secrets, redacted


def test_of_secrets_that_hold_each_other_no_part_is_shown() -> None:
    secrets = {"sasl.password": "hunter", "ssl.key.password": "hunter2", "empty": ""}

    assert redacted("hunter2, hunter and hunted", secrets) == "***, *** and hunted"


def test_secrets_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_PASSWORD", "hunter2")

    assert read_secrets({"sasl.password": "KAFKA_PASSWORD"}) == {"sasl.password": "hunter2"}
    with pytest.raises(LookupError, match="KAFKA_PASWORD, did you mean KAFKA_PASSWORD"):
        read_secrets({"sasl.password": "KAFKA_PASWORD"})
