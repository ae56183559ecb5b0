"""`init` writes a project that dbt and livemart read, for any folder, and overwrites nothing."""

from __future__ import annotations

import json
import runpy
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from livemart.errors import ConfigError
from livemart.plan.project_plans import ProjectPlans
from livemart.project.dbt import Dbt
from livemart.project.dbt_invocations import reserved_names
from livemart.publish.exposures import served_models
from livemart.settings import load_settings
from livemart.starter.new_project import project_name, write_project

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def _orders(path: Path) -> list[Mapping[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_the_project_is_read_and_every_model_is_kept_fresh_by_its_change(tmp_path: Path) -> None:
    folder = tmp_path / "my first shop"

    name = write_project(folder, now=NOW)

    project = Dbt(folder).load()
    plans = ProjectPlans(project).models
    strategies = {
        project.models[unique_id].name: plan.strategy.name for unique_id, plan in plans.items()
    }
    assert (name, project.name) == ("my_first_shop", "my_first_shop")
    assert strategies == {
        "stg_shop__orders": "view",
        "shop_hours": "signed",
        "shop_last_day": "signed",
        "shop_top_products": "region",
    }
    served, left_out = served_models(project)
    assert {spec.name for spec in served if spec.row_key} == set(strategies) - {"stg_shop__orders"}
    assert left_out == ()
    assert load_settings({}, environ={}, directory=folder).tenant_column == "shop_id"


def test_nothing_of_the_template_is_left_in_it(tmp_path: Path) -> None:
    write_project(tmp_path / "shop", now=NOW)

    texts = [path.read_text() for path in (tmp_path / "shop").rglob("*") if path.is_file()]

    assert not any("PROJECT_NAME" in text for text in texts)
    assert "/warehouse/" in (tmp_path / "shop" / ".gitignore").read_text()
    assert not (tmp_path / "shop" / "gitignore").exists()


def test_the_sample_orders_end_now_and_reach_beyond_the_window(tmp_path: Path) -> None:
    write_project(tmp_path, "shop", now=NOW)

    orders = _orders(tmp_path / "landing" / "orders" / "first.jsonl")
    times = [datetime.fromisoformat(order["ordered_at"]) for order in orders]

    assert len({order["order_id"] for order in orders}) == len(orders) == 300
    assert NOW - timedelta(hours=48) <= min(times) < NOW - timedelta(hours=24) < max(times) < NOW
    assert {order["status"] for order in orders} == {"paid", "cancelled"}
    assert len((tmp_path / "landing" / "products" / "first.csv").read_text().splitlines()) == 6


def test_a_further_delivery_has_new_orders_and_a_correction(tmp_path: Path) -> None:
    write_project(tmp_path, "shop", now=NOW)
    deliver = runpy.run_path(str(tmp_path / "deliver.py"))

    path = deliver["deliver_more"](deliver["LANDING"], NOW + timedelta(minutes=5))

    first = _orders(tmp_path / "landing" / "orders" / "first.jsonl")
    *new, corrected = _orders(path)
    assert len(new) == 10
    assert not {order["order_id"] for order in new} & {order["order_id"] for order in first}
    assert corrected["order_id"] == first[0]["order_id"]
    assert corrected["updated_at"] > first[0]["updated_at"]
    assert [file.name for file in path.parent.iterdir() if file.name.startswith(".")] == []


@pytest.mark.parametrize(
    ("folder", "expected"),
    [
        ("shop", "shop"),
        ("My Shop", "my_shop"),
        ("2024-sales", "project_2024_sales"),
        ("größe", "größe"),
        ("...", "my_project"),
        ("dbt", "dbt_project"),
        ("dbt-spark", "dbt_spark_project"),
        ("source", "source_project"),
        ("On", "on_project"),
    ],
)
def test_a_folders_name_is_made_fit_for_dbt(folder: str, expected: str) -> None:
    assert project_name(Path("/home/ann", folder)) == expected


@pytest.mark.parametrize("name", ["my shop", "2shop", "", "dbt", "livemart_spark", "a-b", "Target"])
def test_a_given_name_that_dbt_refuses_is_an_error_with_another(name: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        write_project(tmp_path / "shop", name)

    assert caught.value.code == "PROJECT_NAME_INVALID"
    assert repr(name) in caught.value.message
    assert not (tmp_path / "shop").exists()


def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(ConfigError, match=r"found notes\.txt") as plain:
        write_project(tmp_path)
    (tmp_path / "dbt_project.yml").write_text("name: mine")
    with pytest.raises(ConfigError) as project:
        write_project(tmp_path)
    with pytest.raises(ConfigError) as file:
        write_project(tmp_path / "notes.txt")

    assert {error.value.code for error in (plain, project, file)} == {"FOLDER_NOT_EMPTY"}
    assert "--from-dbt" in project.value.hint
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dbt_project.yml", "notes.txt"]


def test_a_fresh_clone_is_an_empty_folder(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()

    write_project(tmp_path, "shop", now=NOW)

    assert yaml.safe_load((tmp_path / "dbt_project.yml").read_text())["name"] == "shop"


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(ConfigError) as caught:
        write_project(tmp_path / "file" / "shop")

    assert caught.value.code == "PROJECT_NOT_WRITTEN"


def test_no_word_that_dbt_bans_is_a_project() -> None:
    for word in reserved_names():
        assert project_name(Path("/home/ann", word)) not in reserved_names()
