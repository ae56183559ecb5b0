"""Models that exposures name are served if their rows are stored."""

from __future__ import annotations

import yaml

from livemart.project.graph import Exposure, Materialized, Model, Project
from livemart.publish.exposures import ServedSpec, exposure_to_paste, served_models
from tests.models import make_model


def gold_model(
    package: str, name: str, materialized: Materialized = "table", identifier: str | None = None
) -> Model:
    return make_model(
        f"model.{package}.{name}",
        schema="Gold",
        identifier=identifier or name,
        materialized=materialized,
        primary_key=("id",),
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
        [gold_model("shop", "sales"), gold_model("shop", "hidden")],
        ("model.shop.sales",),
        ("model.shop.sales", "source.shop.raw", "model.shop.unknown"),
    )
    expected = ServedSpec("sales", "model.shop.sales", "gold.sales", ("id",), "at")

    assert served_models(project) == ((expected,), ())


def test_views_are_named_as_not_served() -> None:
    models = [gold_model("shop", "a", "view"), gold_model("shop", "b", "ephemeral")]
    project = make_project(models, ("model.shop.b", "model.shop.a"))

    assert served_models(project) == ((), ("model.shop.a", "model.shop.b"))


def test_two_models_of_one_name_go_by_their_identifiers() -> None:
    models = [
        gold_model("shop", "sales", identifier="shop_sales"),
        gold_model("bar", "sales", identifier="bar_sales"),
        gold_model("bar", "tips", identifier="bar_tips"),
    ]
    project = make_project(models, tuple(model.unique_id for model in models))

    specs, _ = served_models(project)

    assert [spec.name for spec in specs] == ["bar_sales", "tips", "shop_sales"]


def test_seeds_and_incremental_models_are_stored() -> None:
    models = [gold_model("shop", "a", "seed"), gold_model("shop", "b", "incremental")]
    project = make_project(models, ("model.shop.a", "model.shop.b"))

    assert [spec.name for spec in served_models(project)[0]] == ["a", "b"]


def test_an_exposure_to_paste_names_the_last_models() -> None:
    nodes = [
        "seed.m.shops",
        "model.m.a",
        "model.m.b.v2",
        "snapshot.m.history",
        "model.m.c",
        "model.m.d",
    ]

    pasted = yaml.safe_load(exposure_to_paste(nodes))
    empty = yaml.safe_load(exposure_to_paste(["seed.m.shops"]))

    assert pasted["exposures"][0]["depends_on"] == ["ref('b', v=2)", "ref('c')", "ref('d')"]
    assert empty["exposures"][0]["depends_on"] == ["ref('name_of_a_model')"]
