from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from livemart.project.declared.node_files import NodeFiles
from livemart.project.declared.setting_places import setting_place

NODE = SimpleNamespace(
    resource_type="model",
    name="totals",
    package_name="shop",
    patch_path="shop://models/x.yml",
    original_file_path="models/totals.sql",
    fqn=["shop", "totals"],
)


@pytest.mark.parametrize(
    ("written", "place"),
    [
        ({"models/totals.sql": "\n{{ config(schema='a') }}"}, "models/totals.sql:2"),
        (
            {"models/x.yml": "models:\n- name: totals\n  config:\n    schema: a\n"},
            "models/x.yml:4",
        ),
        (
            {"dbt_project.yml": "models:\n  +schema: a\n  shop:\n    +schema: b\n"},
            "dbt_project.yml:4",
        ),
        ({"dbt_project.yml": "models: {other: {schema: a}}\n"}, None),
    ],
)
def test_a_setting_is_found_in_the_file_that_gives_it(
    tmp_path: Path, written: dict[str, str], place: str | None
) -> None:
    (tmp_path / "models").mkdir()
    for file, text in written.items():
        (tmp_path / file).write_text(text)

    assert setting_place(NODE, NodeFiles(tmp_path, "shop"), "schema") == place


@pytest.mark.parametrize(
    ("written", "place"),
    [
        # That of the project comes before all that the package says.
        ({"dbt_project.yml": "models: {shop: {schema: a}}\n"}, "dbt_project.yml:1"),
        (
            {
                "models/x.yml": "models:\n- name: totals\n  schema: a\n",
                "dbt_packages/shop/models/x.yml": "models:\n\n- name: totals\n  schema: a\n",
            },
            "dbt_packages/shop/models/x.yml:4",
        ),
        (
            {"dbt_packages/shop/dbt_project.yml": "models:\n  shop:\n    +schema: b\n"},
            "dbt_packages/shop/dbt_project.yml:3",
        ),
        ({"models/totals.sql": "{{ config(schema='a') }}"}, None),
    ],
)
def test_a_setting_of_a_packages_model_is_found_in_the_files_of_the_package(
    tmp_path: Path, written: dict[str, str], place: str | None
) -> None:
    for file, text in written.items():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(text)

    assert setting_place(NODE, NodeFiles(tmp_path, "mart"), "schema") == place
