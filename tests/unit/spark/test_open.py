"""Opening Spark for a command: what is missing is said before a JVM starts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from livemart.errors import ConfigError
from livemart.spark import open as opening
from livemart.spark.open import open_session
from livemart.spark.terminal import Prepared

SETTINGS = Prepared(Path("/w"), Path("/jars"), "local[1]", "1g")


def test_java_and_jars_come_before_the_session(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []
    monkeypatch.setattr(opening, "require_java", lambda: calls.append("java"))
    monkeypatch.setattr(opening, "require_jars", lambda folder: (folder / "delta.jar",))
    monkeypatch.setattr(
        opening, "create_session", lambda *given, **named: calls.append((given, named))
    )

    extra = {"spark.ui.enabled": "false"}

    open_session(SETTINGS, extra, is_short=True)

    named = {
        "master": "local[1]",
        "memory": "1g",
        "extra": extra,
        "lock": None,
        "is_short": True,
        "folder": None,
    }
    assert calls == ["java", ((Path("/w"), (Path("/jars/delta.jar"),)), named)]


def test_missing_jars_stop_it_before_a_session(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(opening, "require_java", lambda: None)
    monkeypatch.setattr(opening, "create_session", lambda *_, **__: pytest.fail("started"))

    with pytest.raises(ConfigError, match="JARS_MISSING"):
        open_session(Prepared(Path("/w"), tmp_path, "local[1]", "1g"))
