"""Which models wait for other SQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from livemart.delta.warehouse import Warehouse
from livemart.project.graph import Project
from livemart.project.questions import Question
from livemart.refresh.context import SqlChanged
from livemart.run import batch_questions
from livemart.run.batch_questions import BatchQuestions, renew_test_tables
from tests.models import make_model

VIEW = make_model("model.m.pivot", materialized="view")
READERS = [make_model(f"model.m.r{n}", depends_on=(VIEW.unique_id,)) for n in range(2)]
OTHER = make_model("model.m.other")
PROJECT = SimpleNamespace(
    models={"model.watch.log": make_model("model.watch.log")},
    sources={"source.watch.raw.seen": SimpleNamespace(relation="raw.seen")},
)


def test_what_reads_a_view_with_other_sql_waits_until_that_is_adopted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nodes = {it.unique_id: it for it in (VIEW, *READERS, OTHER)}
    asked = {VIEW.unique_id: (Question("relation", "m.t", ""),)}
    project = Project("m", ".", "m", {}, nodes, {}, {}, questions=asked)
    runtime = SimpleNamespace(dbt=SimpleNamespace(project=project), project=project)
    questions = BatchQuestions(cast(Any, runtime), asks_all=True)
    monkeypatch.setattr(questions, "_answered", lambda *_: Question("relation", "m.t", "other"))
    monkeypatch.setattr(questions, "_compile_again", frozenset)

    def waits(unique_id: str) -> bool:
        try:
            questions.ask(unique_id, cast(Any, None), asks_all=True)
        except SqlChanged:
            return True
        return False

    first, second = (it.unique_id for it in READERS)
    asked_for = (first, second, OTHER.unique_id, first)
    assert [waits(it) for it in asked_for] == [True, True, False, True]
    questions.begin_again()
    assert [waits(it) for it in (first, second, OTHER.unique_id)] == [False, False, False]


@pytest.fixture
def dropped(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    names: list[str] = []
    monkeypatch.setattr(batch_questions, "_drop", lambda spark, warehouse, name: names.append(name))
    return names


def _renew(root: Path, made: Mapping[str, Sequence[str]]) -> None:
    spark: Any = None
    renew_test_tables(spark, Warehouse(root), cast("Any", PROJECT), made)


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
