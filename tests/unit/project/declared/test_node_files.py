"""A file of a package is named where the package is, and not as one of the project itself."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

from livemart.project.dbt import Dbt
from livemart.project.declared.node_files import NodeFiles

PROFILE = "m: {target: a, outputs: {a: {type: spark, method: session, schema: m, host: localhost}}}"


def test_files_are_named_from_the_folder_of_the_project(tmp_path: Path) -> None:
    files = NodeFiles(tmp_path, "m")
    own = SimpleNamespace(
        package_name="m", original_file_path="models/a.sql", patch_path="m://models/a.yml"
    )
    other = SimpleNamespace(
        package_name="crm", original_file_path="./dbt_project.yml", patch_path=None
    )

    assert (files.of(own), files.describing(own)) == ("models/a.sql", "models/a.yml")
    assert (files.of(other), files.describing(other)) == ("dbt_packages/crm/dbt_project.yml", None)
    (tmp_path / "dbt_project.yml").write_text("packages-install-path: lib\n")
    assert files.of(other) == "lib/crm/dbt_project.yml"


def test_mistakes_in_a_package_are_not_placed_in_a_file_of_the_project(tmp_path: Path) -> None:
    package = tmp_path / "dbt_packages" / "crm"
    for folder, name in ((tmp_path, "m"), (package, "crm")):
        (folder / "models").mkdir(parents=True)
        (folder / "seeds").mkdir()
        (folder / "dbt_project.yml").write_text(
            f"name: {name}\nprofile: m\nmodels: {{{name}: {{+schema: of_{name}}}}}"
        )
    (tmp_path / "profiles.yml").write_text(PROFILE)
    (tmp_path / "packages.yml").write_text("packages: [{local: dbt_packages/crm}]")
    (tmp_path / "models" / "a.yml").write_text("models:\n- name: a\n  description: mine\n")
    (tmp_path / "models" / "a.sql").write_text("{{ config(materialized='tabel') }} select 1 as x")
    (package / "models" / "a.yml").write_text(
        "\n\nmodels:\n- name: a\n  config: {meta: {livemart: {refresh: never}}}\n"
        "  columns:\n  - name: x\n    data_tests:\n    - unique: {config: {error_if: many}}\n"
    )
    (package / "models" / "a.sql").write_text("\n{{ config(materialized='tabel') }} select 1 as x")
    (package / "seeds" / "s.csv").write_text("a,a\n")

    _, mistakes = Dbt(tmp_path).parse()

    assert sorted(str(mistake.message).partition(": ")[0] for mistake in mistakes) == [
        "dbt_packages/crm/models/a.sql:2",
        "dbt_packages/crm/models/a.yml:5",
        "dbt_packages/crm/models/a.yml:9",
        "dbt_packages/crm/seeds/s.csv:1",
        "models/a.sql:1",
    ]


def test_a_mistake_in_the_sql_of_a_model_is_not_placed_in_its_yaml(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "dbt_project.yml").write_text(
        "name: m\nprofile: m\nmodels:\n  m:\n    +meta: {livemart: {ties: none}}\n"
    )
    (tmp_path / "profiles.yml").write_text(PROFILE)
    (tmp_path / "models" / "a.yml").write_text("models:\n- name: a\n  description: x\n- name: b\n")
    (tmp_path / "models" / "a.sql").write_text(
        "\n{{ config(tblproperties={'delta.appendOnly': 'true'}) }} select 1 as x"
    )

    _, mistakes = Dbt(tmp_path).parse()

    assert [mistake.message.partition(": found")[0] for mistake in mistakes] == [
        "dbt_project.yml:5: model a: meta.livemart.ties",
        "models/a.sql:2: model a: tblproperties",
    ]
