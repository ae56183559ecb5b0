"""What exposures name is served, if its rows are stored."""

from __future__ import annotations

from livemart.project.graph import Exposure, Materialized, Model, Project
from livemart.publish.exposures import served_models
from livemart.publish.served import ServedSpec


def make_model(
    package: str, name: str, materialized: Materialized = "table", identifier: str | None = None
) -> Model:
    return Model(
        unique_id=f"model.{package}.{name}",
        name=name,
        schema="Gold",
        identifier=identifier or name,
        materialized=materialized,
        language="sql",
        compiled_code="select 1",
        depends_on=(),
        columns=(),
        primary_key=("id",),
        partition_by=(),
        is_contracted=False,
        policy="auto",
        file="",
        event_time="at",
    )


def make_project(models: list[Model], *exposures: tuple[str, ...]) -> Project:
    return Project(
        name="shop",
        directory="",
        target_schema="gold",
        sources={},
        models={model.unique_id: model for model in models},
        tests={},
        exposures={
            f"exposure.shop.{number}": Exposure(f"exposure.shop.{number}", str(number), nodes)
            for number, nodes in enumerate(exposures)
        },
    )


def test_a_model_that_two_exposures_name_is_served_once() -> None:
    project = make_project(
        [make_model("shop", "sales"), make_model("shop", "hidden")],
        ("model.shop.sales",),
        ("model.shop.sales", "source.shop.raw", "model.shop.unknown"),
    )
    expected = ServedSpec("sales", "model.shop.sales", "gold.sales", ("id",), "at")

    assert served_models(project) == ((expected,), ())


def test_views_are_named_as_not_served() -> None:
    models = [make_model("shop", "a", "view"), make_model("shop", "b", "ephemeral")]
    project = make_project(models, ("model.shop.b", "model.shop.a"))

    assert served_models(project) == ((), ("model.shop.a", "model.shop.b"))


def test_two_models_of_one_name_go_by_their_identifiers() -> None:
    models = [
        make_model("shop", "sales", identifier="shop_sales"),
        make_model("bar", "sales", identifier="bar_sales"),
        make_model("bar", "tips", identifier="bar_tips"),
    ]
    project = make_project(models, tuple(model.unique_id for model in models))

    specs, _ = served_models(project)

    assert [spec.name for spec in specs] == ["bar_sales", "tips", "shop_sales"]


def test_seeds_and_incremental_models_are_stored() -> None:
    models = [make_model("shop", "a", "seed"), make_model("shop", "b", "incremental")]
    project = make_project(models, ("model.shop.a", "model.shop.b"))

    assert [spec.name for spec in served_models(project)[0]] == ["a", "b"]
