"""A reason names file and line as the analyst wrote them, also behind views."""

from __future__ import annotations

from pathlib import Path

import pytest

from livemart.plan.places import reason_place
from livemart.plan.project_plans import ProjectPlans, broken_policies, views_of
from livemart.project.graph import Model, Project
from tests.models import make_model

# A config block leaves the first lines empty.
CONFIGURED = "\n\nselect shop,\n  {} as at\nfrom s.sales\n"


def model(name: str, sql: str, *parents: str, **other: object) -> Model:
    parents = tuple(f"model.m.{parent}" for parent in parents)
    return make_model(f"model.m.{name}", compiled_code=sql, depends_on=parents, **other)


def place_of_reason(*models: Model, directory: str = "nowhere") -> str:
    """Return the place of the first reason of the last model."""
    project = Project("m", directory, "m", {}, {it.unique_id: it for it in models}, {}, {})
    last = models[-1]
    [reason, *_] = ProjectPlans(project).models[last.unique_id].reasons
    return str(reason_place(project, last, views_of(project, last.session), reason.line))


def view(name: str, sql: str, *parents: str) -> Model:
    return model(name, sql, *parents, materialized="view")


@pytest.mark.parametrize(
    ("models", "place"),
    [
        ([model("a", CONFIGURED.format("now()"))], "models/a.sql:4"),
        # Line 4 of the view is line 5 of the text that has it inlined.
        (
            [view("v", CONFIGURED.format("now()")), model("a", "select *\nfrom m.v", "v")],
            "models/v.sql:4",
        ),
        (
            [
                view("v", CONFIGURED.format("1")),
                view("w", "select shop,\n rand() as x from\n m.v", "v"),
                model("a", "select * from m.v as v\njoin m.w as w on v.shop = w.shop", "v", "w"),
            ],
            "models/w.sql:2",
        ),
        (
            [
                view("v", CONFIGURED.format("1")),
                model("a", "\nselect * from m.v\nwhere shop = 'a'\n and now() > at", "v"),
            ],
            "models/a.sql:4",
        ),
    ],
    ids=["a config block", "in a view", "the second view", "below a view"],
)
def test_a_reason_names_the_line_that_was_written(models: list[Model], place: str) -> None:
    assert place_of_reason(*models) == place


def test_a_line_that_jinja_moves_or_writes_is_found_in_the_file_or_said_to_be_compiled(
    tmp_path: Path,
) -> None:
    (tmp_path / "models").mkdir()
    file = tmp_path / "models" / "a.sql"
    file.write_text("select\n  {{ names() }},\n  now() as at,\n  {{ random() }}\nfrom s.sales\n")
    columns = "select\n  a,\n  b,\n  {}\nfrom s.sales\n"

    moved = model("a", columns.format("now() as at,\n  1 as x"))
    written = model("a", columns.format("1 as at,\n  rand() as x"))

    assert place_of_reason(moved, directory=str(tmp_path)) == "models/a.sql:3"
    assert place_of_reason(written, directory=str(tmp_path)) == (
        "models/a.sql: line 5 of its compiled SQL"
    )


def test_a_policy_that_is_not_met_names_its_model_and_the_line_of_the_view() -> None:
    models = [
        view("v", CONFIGURED.format("now()")),
        model("a", "select *\nfrom m.v", "v", policy="incremental"),
    ]
    project = Project("m", ".", "m", {}, {it.unique_id: it for it in models}, {}, {})

    [message] = broken_policies(project, ProjectPlans(project).stored).values()

    assert message.startswith("models/a.sql: refresh: incremental, but EXPRESSION_NOT_DETERMIN")
    assert message.endswith("over the same rows (models/v.sql:4)")


def test_a_reason_without_a_line_names_the_file_alone() -> None:
    written = model("a", "select 1 as x")
    project = Project("m", ".", "m", {}, {written.unique_id: written}, {}, {})

    assert str(reason_place(project, written, {}, None)) == "models/a.sql"
