from __future__ import annotations

from dataclasses import replace

import pytest

from livemart.project.graph import Project, SourceTable, StreamSpec
from tests.models import make_model, stream_spec


def _source(schema: str, name: str, *, is_clock: bool = False) -> SourceTable:
    unique_id = f"source.m.{schema}.{name}"
    return SourceTable(
        unique_id, schema, name, schema, name, (), None, None, None, "", is_clock=is_clock
    )


def test_a_relation_is_schema_and_identifier_in_lower_case() -> None:
    model = make_model("model.m.totals", schema="Mart", identifier="Daily_Totals")

    assert model.relation == "mart.daily_totals"
    assert _source("Bronze", "Orders").relation == "bronze.orders"


def test_a_source_with_an_envelope_has_three_columns_more() -> None:
    plain = replace(_source("bronze", "orders"), stream=StreamSpec())
    changes = replace(plain, stream=stream_spec(envelope="debezium"))

    assert plain.added_columns == ("_landed_at", "_batch_id", "_origin", "_rescued_data")
    assert changes.added_columns == (
        *("_operation", "_sequence", "_kept_values"),
        *plain.added_columns,
    )


@pytest.mark.parametrize(
    ("materialized", "expected"),
    [("table", True), ("incremental", True), ("seed", True), ("view", False), ("ephemeral", False)],
)
def test_a_model_is_stored_if_its_rows_are_a_table(materialized: str, expected: bool) -> None:
    assert make_model("model.m.totals", materialized=materialized).is_stored is expected


def test_the_clock_of_a_project_is_the_source_that_says_so() -> None:
    orders, clock = _source("bronze", "orders"), _source("livemart", "clock", is_clock=True)
    project = Project("m", ".", "m", {"o": orders, "c": clock}, {}, {}, {})

    assert project.clock is clock
    assert Project("m", ".", "m", {"o": orders}, {}, {}, {}).clock is None


def test_views_go_with_the_tables_that_they_read_and_tables_do_not() -> None:
    models = [
        make_model("model.m.a"),
        make_model("model.m.seen", materialized="view", depends_on=("model.m.a",)),
        make_model("model.m.inlined", materialized="ephemeral", depends_on=("model.m.seen",)),
        make_model("model.m.b", depends_on=("model.m.inlined",)),
        make_model("model.m.of_b", materialized="view", depends_on=("model.m.b",)),
    ]
    project = Project("m", ".", "m", {}, {model.unique_id: model for model in models}, {}, {})

    assert project.with_views({"model.m.a"}) == {"model.m.a", "model.m.seen", "model.m.inlined"}
