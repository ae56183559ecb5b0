"""The graph of the project that runs is kept for readers that know no project."""

from __future__ import annotations

from dataclasses import replace

from livemart.project.graph import DataTest, Exposure, Project, SourceTable
from livemart.state.atomic_files import replace_file
from livemart.state.places import StateFolder
from livemart.state.project_graph import (
    GraphNode,
    ProjectGraph,
    keep_graph,
    read_graph,
    serves_nothing,
)
from livemart.storage.location import StoragePlace
from tests.models import make_model


def make_source(name: str, *, is_clock: bool = False) -> SourceTable:
    return SourceTable(
        f"source.shop.{name}", "shop", name, "bronze", name, (), None, None, None, "", is_clock
    )


def make_test(name: str, attached_to: str | None, *reads: str) -> DataTest:
    return DataTest(name, name, None, None, {}, "error", "", reads, attached_to, "")


PROJECT = Project(
    name="shop",
    directory="",
    target_schema="gold",
    sources={
        "source.shop.orders": make_source("orders"),
        "source.shop.clock": make_source("clock", is_clock=True),
    },
    models={
        "model.gold.hours": make_model(
            "model.gold.hours", depends_on=("source.shop.orders", "source.shop.clock")
        )
    },
    tests={
        "test.a": make_test("test.a", "model.gold.hours", "model.gold.hours"),
        "test.b": make_test("test.b", None, "model.gold.hours", "source.shop.orders"),
    },
    exposures={
        "exposure.shop.page": Exposure(
            "exposure.shop.page", "page", ("model.gold.hours",), label="P"
        )
    },
)


def test_the_graph_is_that_of_the_project_that_began_last(place: StoragePlace) -> None:
    assert read_graph(place) is None

    keep_graph(place, PROJECT)
    keep_graph(place, PROJECT)

    assert read_graph(place) == ProjectGraph(
        "shop",
        (
            GraphNode(
                "source.shop.orders", "source", "shop.orders", "bronze.orders", (), ("test.b",)
            ),
            GraphNode(
                "model.gold.hours",
                "table",
                "hours",
                "gold.hours",
                ("source.shop.orders",),
                ("test.a", "test.b"),
            ),
            GraphNode("exposure.shop.page", "exposure", "P", "", ("model.gold.hours",)),
        ),
    )


def test_a_graph_that_cannot_be_read_is_none(place: StoragePlace) -> None:
    replace_file(StateFolder(place).project_graph, '{"nodes": 5}')

    assert read_graph(place) is None


def test_a_project_serves_what_an_exposure_names_if_it_is_a_table(place: StoragePlace) -> None:
    view = replace(PROJECT.models["model.gold.hours"], materialized="view")
    own = replace(view, materialized="other", filled="partly")
    answers = [serves_nothing(place)]

    for project in (
        PROJECT,
        replace(PROJECT, models={own.unique_id: own}),
        replace(PROJECT, exposures={}),
        replace(PROJECT, models={view.unique_id: view}),
    ):
        keep_graph(place, project)
        answers.append(serves_nothing(place))

    assert answers == [False, False, False, True, True]
