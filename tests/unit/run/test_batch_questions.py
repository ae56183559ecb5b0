"""Which models wait for other SQL."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from livemart.project.graph import Project
from livemart.project.questions import Question
from livemart.refresh.context import SqlChanged
from livemart.run.batch_questions import BatchQuestions
from tests.models import make_model

VIEW = make_model("model.m.pivot", materialized="view")
READERS = [make_model(f"model.m.r{n}", depends_on=(VIEW.unique_id,)) for n in range(2)]
OTHER = make_model("model.m.other")


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
