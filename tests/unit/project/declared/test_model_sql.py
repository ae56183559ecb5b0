from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from livemart.errors import ConfigErrors
from livemart.project.dbt import Dbt
from livemart.project.declared.model_sql import sql_mistakes

_JAFFLE = Path(__file__).parents[3] / "projects" / "jaffle"
_EMPTY = {
    "commented": "-- select 1 as a\n/* later */",
    "rendered": "{{ config(materialized='table') }}{# later #}{% if 1 > 2 %}select 1{% endif %}",
}


def test_a_model_without_sql_is_refused_before_anything_runs(tmp_path: Path) -> None:
    folder = shutil.copytree(_JAFFLE, tmp_path / "jaffle")
    for name, text in _EMPTY.items():
        (folder / "models" / f"{name}.sql").write_text(text)
    (folder / "models" / "marked.sql").write_text("\ufeffselect 1 as a")
    # dbt passes over a blank file.
    (folder / "models" / "blank.sql").write_text("\n")
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


def test_a_model_may_be_empty_as_long_as_its_question_has_no_answer(tmp_path: Path) -> None:
    """A union of all tables of a schema has none before the first batch."""
    project, _ = Dbt(_JAFFLE, target_dir=tmp_path).parse()
    model = replace(project.models["model.jaffle.orders"], compiled_code="-- no table yet")

    assert [it.code for it in sql_mistakes(model, "sql", has_asked=False)] == ["MODEL_NOT_SQL"]
    assert [*sql_mistakes(model, "sql", has_asked=True)] == []
