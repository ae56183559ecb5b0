"""SQL that Spark cannot parse is refused with file and line; what the planner cannot is not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from livemart.errors import ConfigError, PlanError
from livemart.project.graph import Project
from livemart.run import syntax
from livemart.run.syntax import refuse_syntax_errors
from tests.unit.plan.test_project_plans import policy_project

_BROKEN = "select a,\nfrom raw.t where and x"


def _project(folder: Path, code: str, text: str | None = None) -> Project:
    """A project of one model, whose file holds `text` (the compiled SQL if None)."""
    project = policy_project("auto")
    ((unique_id, model),) = project.models.items()
    (folder / model.file).parent.mkdir(parents=True, exist_ok=True)
    (folder / model.file).write_text(code if text is None else text)
    models = {unique_id: replace(model, compiled_code=code)}
    return replace(project, directory=str(folder), models=models)


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every text that Spark is asked about; it refuses line 2 of each."""
    asked: list[str] = []

    def answer(spark: object, text: str) -> tuple[int | None, str]:
        asked.append(text)
        return 2, "[PARSE_SYNTAX_ERROR] Syntax error at or near 'x'."

    monkeypatch.setattr(syntax, "syntax_error", answer)
    return asked


def _session() -> Any:
    return object()


def test_a_mistake_has_its_line_in_the_file(tmp_path: Path, refused: list[str]) -> None:
    written = "{{ config(materialized='table') }}\n\nselect a,\nfrom raw.t where and x\n"

    with pytest.raises(PlanError) as caught:
        refuse_syntax_errors(_project(tmp_path, _BROKEN, written), _session)

    assert caught.value.code == "SYNTAX_ERROR"
    assert caught.value.message == (
        "models/totals.sql:4: `from raw.t where and x`: "
        "[PARSE_SYNTAX_ERROR] Syntax error at or near 'x'."
    )
    assert caught.value.exit_code == 1


def test_a_line_that_jinja_has_written_is_one_of_the_compiled_sql(
    tmp_path: Path, refused: list[str]
) -> None:
    written = "select a,\nfrom {{ source('raw', 't') }} where and x\n"

    with pytest.raises(PlanError, match=r"line 2 of its compiled SQL: `from raw\.t where and x`"):
        refuse_syntax_errors(_project(tmp_path, _BROKEN, written), _session)


def test_spark_is_not_asked_about_what_the_planner_reads(
    tmp_path: Path, refused: list[str]
) -> None:
    refuse_syntax_errors(_project(tmp_path, "select 1 as n"), lambda: pytest.fail("started"))

    assert refused == []


def test_what_spark_reads_is_left_to_the_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(syntax, "syntax_error", lambda spark, text: None)

    refuse_syntax_errors(_project(tmp_path, _BROKEN), _session)


def test_where_spark_cannot_be_started_nothing_is_refused(
    tmp_path: Path, refused: list[str]
) -> None:
    def no_java() -> Any:
        raise ConfigError("JAVA_MISSING", "no java", hint="install it")

    refuse_syntax_errors(_project(tmp_path, _BROKEN), no_java)

    assert refused == []


@pytest.mark.parametrize("code", ["select a,, b\nfrom raw.t", "select a,\nfrom raw.t"])
def test_spark_is_asked_about_a_list_with_an_empty_item(
    tmp_path: Path, refused: list[str], code: str
) -> None:
    with pytest.raises(PlanError, match="SYNTAX_ERROR"):
        refuse_syntax_errors(_project(tmp_path, code), _session)

    assert refused == [code]


def test_an_ephemeral_model_without_a_reader_is_not_looked_at(
    tmp_path: Path, refused: list[str]
) -> None:
    project = _project(tmp_path, "-- later")
    ((key, model),) = project.models.items()
    unread = replace(project, models={key: replace(model, materialized="ephemeral")})

    refuse_syntax_errors(unread, _session)

    assert refused == []
