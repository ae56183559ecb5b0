from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from livemart.errors import ConfigErrors
from livemart.project.dbt import Dbt

_JAFFLE = Path(__file__).parents[3] / "projects" / "jaffle"


def test_each_line_that_sets_a_database_is_named_before_anything_runs(tmp_path: Path) -> None:
    folder = shutil.copytree(_JAFFLE, tmp_path / "jaffle")
    project = folder / "dbt_project.yml"
    project.write_text(
        project.read_text().replace("    +schema: raw", "    +schema: raw\n    +database: lake")
    )
    (folder / "macros" / "names.sql").write_text(
        "{% macro generate_database_name(name=none, node=none) %}{{ name or '' }}{% endmacro %}"
    )
    models = folder / "models"
    (models / "own.sql").write_text("\n{{ config(database='own') }} select 1 as id")
    (models / "same.sql").write_text("{{ config(database='jaffle') }} select 1 as id")
    (models / "listed.sql").write_text("select 1 as id")
    (models / "listed.yml").write_text(
        "models:\n  - name: listed\n    config:\n      database: listed\n"
        "sources:\n  - name: raw\n    database: far\n    tables: [{name: a}, {name: b}]\n"
        "  - name: away\n    database: beyond\n    tables: [{name: c}]\n"
    )

    with pytest.raises(ConfigErrors) as caught:
        Dbt(folder).load()

    assert [error.message for error in caught.value.errors if error.code == "DATABASE_SET"] == [
        "dbt_project.yml:22: found database lake, of seed raw_customers, seed raw_orders, "
        "seed raw_payments",
        "models/listed.yml:4: found database listed, of model listed",
        "models/listed.yml:7: found database far, of source raw.a, source raw.b",
        "models/listed.yml:10: found database beyond, of source away.c",
        "models/own.sql:2: found database own, of model own",
    ]


@pytest.mark.extended
def test_a_macro_that_gives_all_nodes_a_database_is_named(tmp_path: Path) -> None:
    folder = shutil.copytree(_JAFFLE, tmp_path / "jaffle")
    (folder / "macros" / "names.sql").write_text(
        "{% macro generate_database_name(name=none, node=none) %}lake{% endmacro %}"
    )

    with pytest.raises(ConfigErrors, match=r"macros/names\.sql: macro generate_database_name"):
        Dbt(folder).load()


def test_grants_are_refused_with_their_line_unless_a_macro_does_the_work(tmp_path: Path) -> None:
    folder = shutil.copytree(_JAFFLE, tmp_path / "jaffle")
    project = folder / "dbt_project.yml"
    project.write_text(
        project.read_text().replace(
            "    marts:\n", "    marts:\n      +grants: {select: [reporter]}\n"
        )
    )
    (folder / "models" / "own.sql").write_text(
        "{{ config(grants={} if target.type == 'spark' else {'select': ['a']}) }} select 1 as id"
    )

    with pytest.raises(ConfigErrors) as caught:
        Dbt(folder).load()

    (error,) = caught.value.errors
    assert error.code == "GRANTS_SET"
    assert error.message.startswith(
        "dbt_project.yml:16: found grants {'select': ['reporter']}, of model customers, model "
    )

    (folder / "macros" / "grants.sql").write_text(
        "{% macro spark__apply_grants(relation, grant_config, should_revoke=True) %}{% endmacro %}"
    )
    assert Dbt(folder).load().models
