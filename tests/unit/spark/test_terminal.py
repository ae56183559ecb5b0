"""Each dbt of a prepared terminal checks again which process holds the warehouse."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import dbt_livemart
from livemart.errors import StateError
from livemart.settings import Settings
from livemart.spark import terminal as terminal_module
from livemart.spark.terminal import Terminal, prepare_dbt
from livemart.state.lock import is_held


@pytest.fixture
def sparks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Records openings and ends, instead of a Spark."""
    said: list[str] = []

    def session(name: str) -> Any:
        said.append(name)
        return SimpleNamespace(stop=lambda: said.append(f"{name} ended"))

    monkeypatch.setattr("livemart.spark.session.open_session", lambda *_, **__: session("own"))
    monkeypatch.setattr("livemart.spark.catalog.register", lambda *_: said.append("registered"))
    monkeypatch.setattr("livemart.spark.catalog.save_views", lambda *_: said.append("saved"))
    monkeypatch.setattr(terminal_module, "join", lambda *_: session("joined"))
    monkeypatch.delenv("SPARK_REMOTE", raising=False)
    return said


def test_a_free_warehouse_is_held_until_dbt_ends(sparks: list[str], tmp_path: Path) -> None:
    terminal = Terminal(Settings(warehouse=tmp_path))

    assert terminal.session() is terminal.session()
    held = is_held(tmp_path)
    terminal.close()

    assert (held, is_held(tmp_path)) == (True, False)
    assert sparks == ["own", "registered", "saved", "own ended"]


def test_the_next_dbt_joins_the_stream_that_has_begun_meanwhile(
    sparks: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_REMOTE", "")
    monkeypatch.setattr(terminal_module, "who_holds", lambda _: "a stream")
    monkeypatch.setattr(terminal_module, "connect_url", lambda *_: "sc://127.0.0.1:15002")

    terminal = Terminal(Settings(warehouse=tmp_path))
    terminal.session()
    terminal.close()

    assert sparks == ["joined", "joined ended"]
    assert not is_held(tmp_path)


def test_a_holder_that_nobody_can_join_is_named(
    sparks: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(terminal_module, "who_holds", lambda _: "a build")
    monkeypatch.setattr(terminal_module, "connect_url", lambda *_: None)

    with pytest.raises(StateError, match="RUNNER_LIVES"):
        Terminal(Settings(warehouse=tmp_path)).session()

    assert sparks == []


def test_a_terminal_that_was_not_prepared_knows_of_no_warehouse(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("LIVEMART_DBT", raising=False)
    monkeypatch.setattr(terminal_module, "attach", lambda *_: pytest.fail("attached"))

    prepare_dbt({})
    dbt_livemart.LivemartPlugin("shop").initialize()
