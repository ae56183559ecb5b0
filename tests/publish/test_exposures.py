"""Models that exposures name are served if their rows are stored."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import yaml

from livemart.project.declared.model_page import PageSpec
from livemart.project.graph import DataTest, Exposure, Materialized, Model, Project
from livemart.publish.exposures import ServedSpec, exposure_to_paste, project_pages, served_models
from livemart.store.served import Dashboard, DescribedTest, ModelDescription, ProjectPages
from tests.models import make_model
from tests.store.stores import make_snapshot


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


def make_test(name: str, **other: Any) -> DataTest:
    """Return a test that reads the model `sales`, but for what is said."""
    values = {"depends_on": ("model.shop.sales",), "column_name": None, "attached_to": None}
    return DataTest(
        unique_id=f"test.shop.{name}",
        name=name,
        arguments={},
        severity="error",
        compiled_code="",
        file="",
        **(values | other),
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


def test_a_served_model_is_described_with_the_outcomes_of_a_snapshot() -> None:
    model = replace(
        gold_model("shop", "sales"),
        description="Sales by day",
        column_descriptions={"at": "Of the shop's clock"},
        raw_code="select {{ 1 }}",
    )
    tests = [
        make_test("a", kind="unique", column_name="id", attached_to=model.unique_id),
        make_test("b", kind=None, depends_on=(model.unique_id, "model.shop.orders")),
        make_test("c", kind="unique", attached_to="model.shop.orders", depends_on=("x",)),
        make_test("d", kind="relationships", attached_to="model.shop.orders"),
    ]
    project = replace(
        make_project([model], (model.unique_id,)), tests={test.unique_id: test for test in tests}
    )
    snapshot = replace(make_snapshot(1, ["sales"]), tests={"test.shop.a": "pass"})

    ((spec,), _) = served_models(project)

    assert spec.described_in(snapshot) == ModelDescription(
        "Sales by day",
        {"at": "Of the shop's clock"},
        (
            DescribedTest("a", "unique", "id", "error", "pass"),
            DescribedTest("b", None, None, "error", None),
        ),
        "select {{ 1 }}",
        "select 1",
    )


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


def dashboard(unique_id: str, *nodes: str, kind: str = "dashboard", label: str = "") -> Exposure:
    return Exposure(unique_id, unique_id.rpartition(".")[2], nodes, kind, label, "Text")


def test_dashboards_are_exposures_of_their_type_with_a_served_model() -> None:
    sales = replace(gold_model("shop", "sales"), page=PageSpec(title="Sales"))
    models = [sales, gold_model("shop", "tips"), gold_model("shop", "seen", "view")]
    exposures = [
        dashboard("exposure.shop.day", "model.shop.tips", "model.shop.seen", sales.unique_id),
        dashboard("exposure.shop.twice", sales.unique_id, sales.unique_id, label="Twice?"),
        dashboard("exposure.bar.twice", sales.unique_id),
        dashboard("exposure.shop.views", "model.shop.seen"),
        dashboard("exposure.shop.report", sales.unique_id, kind="analysis"),
    ]
    project = replace(
        make_project(models), exposures={exposure.unique_id: exposure for exposure in exposures}
    )

    pages = project_pages(project, served_models(project)[0])

    assert pages == ProjectPages(
        {"sales": PageSpec(title="Sales")},
        {
            "day": Dashboard("day", "Text", ("tips", "sales")),
            "shop.twice": Dashboard("Twice?", "Text", ("sales",)),
            "bar.twice": Dashboard("twice", "Text", ("sales",)),
        },
    )
