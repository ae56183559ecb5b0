from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from livemart.project.declared.setting_places import setting_place

NODE = SimpleNamespace(
    resource_type="model",
    name="totals",
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

    assert setting_place(NODE, tmp_path, "schema") == place
