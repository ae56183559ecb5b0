"""A column that was taken out of the YAML: models and tests that name it are refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from livemart.errors import RefreshError
from livemart.plan.project_plans import ProjectPlans
from livemart.plan.undeclared_columns import require_declared
from livemart.project.graph import (
    Column,
    DataTest,
    Model,
    Project,
    RowRules,
    SourceTable,
    StreamSpec,
)
from tests.models import make_model

# The landed table holds `tip`, which the YAML does not name.
COLUMNS = {
    "b.sales": ("sale_id", "shop", "tip", "_landed_at", "_batch_id", "_origin"),
    # Stored while the source declared `tip`.
    "m.all_of_it": ("sale_id", "shop", "tip"),
    "m.some": ("shop", "tip"),
}
SOURCE = SourceTable(
    "source.m.b.sales",
    "b",
    "sales",
    "b",
    "sales",
    (Column("Sale_Id", "int"), Column("shop", "string")),
    None,
    None,
    StreamSpec(),
    "models/sources.yml",
)


def model(name: str, sql: str, *parents: str, materialized: str = "table") -> Model:
    return make_model(
        f"model.m.{name}",
        compiled_code=sql,
        depends_on=parents,
        materialized=materialized,
        file=f"models/{name}.sql",
    )


def data_test(name: str, sql: str, *parents: str) -> DataTest:
    return DataTest(
        f"test.m.{name}", name, None, None, {}, "error", sql, parents, None, f"tests/{name}.sql"
    )


def plans_of(
    *models: Model, tests: tuple[DataTest, ...] = (), source: SourceTable = SOURCE
) -> ProjectPlans:
    project = Project(
        "m",
        ".",
        "m",
        {source.unique_id: source},
        {it.unique_id: it for it in models},
        {it.unique_id: it for it in tests},
        {},
    )
    return ProjectPlans(
        project, {key: dict.fromkeys(it, "string") for key, it in COLUMNS.items()}.get
    )


def test_all_models_that_name_a_column_which_no_yaml_declares_are_refused_at_once() -> None:
    staging = model(
        "stg", "select sale_id, tip from b.sales", SOURCE.unique_id, materialized="view"
    )
    plans = plans_of(
        staging,
        model("from_view", "select tip from m.stg", staging.unique_id),
        model(
            "shops",
            "with s as (select * from b.sales) select shop, sum(tip) as tips from s group by 1",
            SOURCE.unique_id,
        ),
        model("all_of_it", "select *, _landed_at as at from b.sales", SOURCE.unique_id),
        model("known", "select SALE_ID, shop, _origin from b.sales", SOURCE.unique_id),
        model("unread", "select nonsense(", SOURCE.unique_id),
    )

    with pytest.raises(RefreshError) as raised:
        require_declared(plans)

    assert raised.value.code == "MODEL_FAILED"
    # The reader of the view has nothing to mend.
    assert raised.value.models == ("model.m.stg", "model.m.shops")
    assert raised.value.message == (
        "models/stg.sql: stg reads tip of b.sales, and models/sources.yml does not declare it\n"
        "models/shops.sql: shops reads tip of b.sales, and models/sources.yml does not declare it"
    )


def test_data_tests_that_name_such_a_column_are_refused_too() -> None:
    staging = model(
        "stg", "select sale_id, tip from b.sales", SOURCE.unique_id, materialized="view"
    )
    plans = plans_of(
        staging,
        tests=(
            data_test("tips", "select 1 from b.sales where tip < 0", SOURCE.unique_id),
            # Nothing to mend here: it is the view that names the column.
            data_test("of_view", "select 1 from m.stg where tip < 0", staging.unique_id),
            data_test("shops", "select shop from b.sales where shop is null", SOURCE.unique_id),
        ),
    )

    with pytest.raises(RefreshError) as raised:
        require_declared(plans)

    assert raised.value.models == ("model.m.stg",)
    assert raised.value.message == (
        "models/stg.sql: stg reads tip of b.sales, and models/sources.yml does not declare it\n"
        "tests/tips.sql: tips reads tip of b.sales, and models/sources.yml does not declare it"
    )


def test_a_stored_model_passes_such_a_column_on_by_a_star() -> None:
    everything = model("all_of_it", "select * except (_origin) from b.sales", SOURCE.unique_id)
    # It names the column itself, so its readers have nothing to mend.
    some = model("some", "select shop, tip from m.all_of_it", everything.unique_id)
    of_some = model("of_some", "select tip from m.some", some.unique_id)
    plans = plans_of(
        everything,
        some,
        of_some,
        model("shops", "select shop, sale_id from m.all_of_it", everything.unique_id),
        tests=(data_test("tips", "select 1 from m.all_of_it where TIP < 0", everything.unique_id),),
    )

    with pytest.raises(RefreshError) as raised:
        require_declared(plans)

    assert raised.value.models == ("model.m.some",)
    reads = (
        "reads tip of m.all_of_it, a column of b.sales, and models/sources.yml does not declare it"
    )
    assert raised.value.message == f"models/some.sql: some {reads}\ntests/tips.sql: tips {reads}"


@pytest.mark.parametrize(
    "source",
    [
        replace(SOURCE, columns=(*SOURCE.columns, Column("TIP", "int"))),
        replace(SOURCE, stream=StreamSpec(row_rules=RowRules(schema_drift="evolve"))),
        replace(SOURCE, stream=None),
    ],
    ids=["declared", "records bring columns", "another program fills it"],
)
def test_a_column_that_is_declared_or_may_come_by_itself_is_read(source: SourceTable) -> None:
    require_declared(
        plans_of(model("tips", "select tip from b.sales", SOURCE.unique_id), source=source)
    )
