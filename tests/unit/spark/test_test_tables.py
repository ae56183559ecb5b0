"""Tables that tests made in an earlier batch are dropped, and none that belong to the project."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from livemart.delta.warehouse import Warehouse
from livemart.spark import test_tables
from tests.models import make_model

PROJECT = SimpleNamespace(
    models={"model.watch.log": make_model("model.watch.log")},
    sources={"source.watch.raw.seen": SimpleNamespace(relation="raw.seen")},
)


@pytest.fixture
def dropped(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    names: list[str] = []
    monkeypatch.setattr(test_tables, "_drop", lambda spark, warehouse, name: names.append(name))
    return names


def _renew(root: Path, made: Mapping[str, Sequence[str]]) -> None:
    spark: Any = None
    test_tables.renew_test_tables(spark, Warehouse(root), cast("Any", PROJECT), made)


def test_the_tables_of_a_test_last_until_it_makes_others_or_is_gone(
    tmp_path: Path, dropped: list[str]
) -> None:
    _renew(tmp_path, {"test.a": ["watch.a1", "watch.x1"], "test.b": ["watch.b1"]})
    assert dropped == []

    # A batch that is run again makes the same tables.
    _renew(tmp_path, {"test.a": ["watch.a1", "watch.x1"], "test.b": ["watch.b1"]})
    assert dropped == []

    # A table that another test makes now is none of an earlier batch.
    _renew(tmp_path, {"test.a": ["watch.a2"], "test.b": ["watch.x1", "watch.b1"]})
    assert dropped == ["watch.a1"]

    _renew(tmp_path, {"test.b": []})
    assert dropped == ["watch.a1", "watch.a2", "watch.b1", "watch.x1"]

    _renew(tmp_path, {})
    assert len(dropped) == 4


def test_a_table_of_the_project_is_never_dropped(tmp_path: Path, dropped: list[str]) -> None:
    _renew(tmp_path, {"test.a": ["watch.log", "raw.seen", "watch.a1"]})
    _renew(tmp_path, {})

    assert dropped == ["watch.a1"]
