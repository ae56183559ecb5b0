from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from livemart.check.proofs import Prover
from livemart.errors import ConfigError, ConfigErrors
from livemart.plan.project_plans import ProjectPlans
from livemart.project.dbt import Dbt
from livemart.project.declared.model_sql import sql_mistakes
from livemart.project.manifest import read_manifest
from livemart.project.questions import relation_question
from livemart.publish.exposures import served_models
from livemart.settings import Selection
from livemart.state.project_graph import graph_of

_JAFFLE = Path(__file__).parents[3] / "projects" / "jaffle"
_EMPTY = {
    "commented": "-- select 1 as a\n/* later */",
    "rendered": "{{ config(materialized='table') }}{# later #}{% if 1 > 2 %}select 1{% endif %}",
    # Spark is given their SQL as a part of their readers'.
    "read": "{{ config(materialized='ephemeral') }} -- later",
    "read_below": "{{ config(materialized='ephemeral') }}{# later #}",
    "tested": "{{ config(materialized='ephemeral') }} -- later",
    "blank_but_read": " \n",
}
_READERS = {
    "reader_of_blank": "select * from {{ ref('blank_but_read') }}",
    "reader": "select * from {{ ref('read') }}, {{ ref('between') }}",
    "between": "{{ config(materialized='ephemeral') }} select * from {{ ref('read_below') }}",
    # It reads another one, but no node reads it.
    "unread_reader": "{{ config(materialized='ephemeral') }} select * from {{ ref('unused') }}",
}


def test_a_model_without_sql_is_refused_before_anything_runs(tmp_path: Path) -> None:
    folder = shutil.copytree(_JAFFLE, tmp_path / "jaffle")
    for name, text in {**_EMPTY, **_READERS}.items():
        (folder / "models" / f"{name}.sql").write_text(text)
    (folder / "models" / "marked.sql").write_text("\ufeffselect 1 as a")
    # dbt passes over a blank file.
    (folder / "models" / "blank.sql").write_text("\n")
    (folder / "tests" / "none.sql").write_text("select * from {{ ref('tested') }}")
    # No model reads it, so Spark is never given its SQL.
    (folder / "models" / "unused.sql").write_text("{{ config(materialized='ephemeral') }} -- later")
    (folder / "models" / "unread.sql").write_text(
        "\ufeff{{ config(materialized='ephemeral') }} select 1 as a"
    )

    with pytest.raises(ConfigErrors) as caught:
        Dbt(folder).load()

    found = {error.message.partition(": found")[0]: error for error in caught.value.errors}
    assert {error.code for error in found.values()} == {"MODEL_NOT_SQL"}
    names = sorted([*_EMPTY, "marked"])
    assert sorted(found) == [f"models/{name}.sql:1: model {name}" for name in names]
    assert "BOM" in found["models/marked.sql:1: model marked"].hint
    assert (
        "with those that read it" in found["models/blank_but_read.sql:1: model blank_but_read"].hint
    )


def test_a_blank_file_that_no_model_reads_is_no_model(tmp_path: Path) -> None:
    """dbt passes over it, and the table that a data test reads does not exist."""
    folder = shutil.copytree(_JAFFLE, tmp_path / "jaffle")
    (folder / "models" / "blank.sql").write_text(" \n")
    (folder / "models" / "blank.yml").write_text(
        "models: [{name: blank, columns: [{name: a, data_tests: [not_null, unique]}]}]\n"
        "exposures: [{name: e, type: dashboard, owner: {name: x}, depends_on: [ref('blank')]}]\n"
    )
    dbt = Dbt(folder)

    project = dbt.load()

    assert "model.jaffle.blank" not in project.models
    attached = [test.kind for test in project.tests.values() if test.name.endswith("_blank_a")]
    assert sorted(map(str, attached)) == ["not_null", "unique"]
    assert "blank" not in {model.name for model in served_models(project)[0]}
    assert "e" in {node.name for node in graph_of(project).nodes}
    assert Prover(ProjectPlans(project)).fingerprints.keys() == project.tests.keys()
    with pytest.raises(ConfigError, match="SELECTION_EMPTY"):
        dbt.selection(Selection(("blank",)))


def test_a_model_may_be_empty_as_long_as_its_question_has_no_answer(tmp_path: Path) -> None:
    """A union of all tables of a schema has none before the first batch."""
    project, _ = Dbt(_JAFFLE, target_dir=tmp_path).parse()
    model = replace(project.models["model.jaffle.orders"], compiled_code="-- no table yet")

    assert [it.code for it in sql_mistakes(model, "sql", has_asked=False)] == ["MODEL_NOT_SQL"]
    assert [*sql_mistakes(model, "sql", has_asked=True)] == []


@pytest.mark.extended
def test_an_ephemeral_model_may_be_empty_as_long_as_its_reader_has_no_answer(
    tmp_path: Path,
) -> None:
    """dbt asks for the reader, and compiles the ephemeral model into it."""
    folder = shutil.copytree(_JAFFLE, tmp_path / "jaffle")
    (folder / "models" / "read.sql").write_text("{{ config(materialized='ephemeral') }} -- later")
    (folder / "models" / "reader.sql").write_text("select * from {{ ref('read') }}")
    dbt = Dbt(folder)
    dbt.parse()
    manifest, compiled = dbt._dbt.manifest, {"model.jaffle.read": " -- later"}

    def codes(**options: Any) -> list[str]:
        _, mistakes = read_manifest(
            manifest, compiled, directory=str(folder), target_schema="jaffle", **options
        )
        return [it.code for it in mistakes]

    assert codes() == ["MODEL_NOT_SQL"]
    question = relation_question("raw.later", None)
    assert codes(questions={"model.jaffle.reader": (question,)}) == []
