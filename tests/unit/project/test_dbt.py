from __future__ import annotations

import json
import os
import pickle
import shutil
import subprocess
import sys
import textwrap
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from unittest.mock import MagicMock

import pytest
import yaml
from structlog.testing import capture_logs

from livemart.errors import ConfigError, ConfigErrors, LivemartError
from livemart.project.dbt import Dbt
from livemart.project.graph import Column, DataTest, Project
from livemart.project.profiles import find_profiles
from livemart.settings import Selection

_DISABLED_KINDS = (
    *("models", "seeds", "snapshots", "sources", "exposures", "data_tests", "unit_tests"),
)
_JAFFLE = Path(__file__).parents[2] / "projects" / "jaffle"


@pytest.fixture(scope="module")
def dbt(tmp_path_factory: pytest.TempPathFactory) -> Dbt:
    folder = tmp_path_factory.mktemp("projects") / "jaffle"
    shutil.copytree(_JAFFLE, folder, ignore=shutil.ignore_patterns("target"))
    return Dbt(folder)


@pytest.fixture(scope="module")
def project(dbt: Dbt) -> Project:
    return dbt.load()


@pytest.fixture
def jaffle(tmp_path: Path, dbt: Dbt, project: Project) -> Path:
    """A copy to be changed, with what dbt keeps of the files that stay as they are."""
    assert project.models
    return shutil.copytree(dbt.project_dir, tmp_path / "jaffle")


def _code(project: Project, name: str) -> str:
    code = project.models[f"model.jaffle.{name}"].compiled_code
    assert code is not None
    return code


def test_models_come_after_what_they_read(project: Project) -> None:
    order = list(project.models)

    for position, unique_id in enumerate(order):
        inputs = [name for name in project.models[unique_id].depends_on if name in order]
        assert all(order.index(name) < position for name in inputs)


def test_an_incremental_model_is_compiled_as_for_a_full_refresh(project: Project) -> None:
    assert "max(ordered_at)" not in _code(project, "orders")
    assert "max(order_date)" not in _code(project, "daily_orders")


def test_an_ephemeral_model_is_compiled_by_itself_and_into_its_users(project: Project) -> None:
    assert "sum(amount)" in _code(project, "order_payments")
    assert "__dbt__cte__order_payments as (" in _code(project, "orders")


def test_a_second_load_gives_the_same_project(dbt: Dbt, project: Project) -> None:
    assert dbt.load() == project


def test_custom_schemas_and_aliases_name_the_relation(project: Project) -> None:
    expected = {
        "model.jaffle.customers": "jaffle_analytics.dim_customers",
        "model.jaffle.stg_orders": "jaffle_staging.stg_orders",
        "seed.jaffle.raw_orders": "jaffle_raw.raw_orders",
        "snapshot.jaffle.customer_history": "jaffle_history.customer_history",
    }

    actual = {unique_id: project.models[unique_id].relation for unique_id in expected}

    assert actual == expected
    assert project.target_schema == "jaffle"


def test_keys_come_from_constraints_and_tests(project: Project) -> None:
    keys = {model.name: model.primary_key for model in project.models.values()}

    assert keys["customers"] == ("customer_id",)  # constraint
    assert keys["orders"] == ("order_id",)  # unique and not_null
    assert keys["raw_customers"] == ("id",)
    assert keys["daily_orders"] == ("customer_id", "order_date")  # unique_combination_of_columns
    assert keys["stg_customers"] == ()


def test_columns_have_their_types_as_they_are_written(project: Project) -> None:
    orders = project.models["model.jaffle.orders"]
    payments = project.models["seed.jaffle.raw_payments"]

    assert orders.columns[0] == Column("order_id", "BIGINT")
    assert payments.columns[-1] == Column("rate", "decimal(18, 6)")


def test_a_seed_has_the_columns_of_its_file(project: Project) -> None:
    orders = project.models["seed.jaffle.raw_orders"]
    payments = project.models["seed.jaffle.raw_payments"]
    files = {seed.identifier: _JAFFLE / seed.file for seed in (orders, payments)}

    for seed in (orders, payments):
        header = files[seed.identifier].read_text().splitlines()[0]
        assert [column.name for column in seed.columns] == header.split(",")


def test_policies_partitions_and_contracts_are_read(project: Project) -> None:
    customers = project.models["model.jaffle.customers"]

    assert customers.policy == "full"
    assert customers.is_contracted
    assert project.models["model.jaffle.daily_orders"].partition_by == ("order_date",)


def test_descriptions_and_the_sql_as_written_are_read(project: Project) -> None:
    customers = project.models["model.jaffle.customers"]

    assert customers.description == "One row per customer"
    assert customers.column_descriptions == {"customer_name": "As on the first order"}
    assert "ref('stg_customers')" in customers.raw_code
    assert project.models["seed.jaffle.raw_customers"].raw_code == ""


def test_all_tables_are_delta_for_dbt_as_well(project: Project) -> None:
    """dbt-spark 1.11 refuses a dbt snapshot of another format, and describes no column of it."""
    assert {model.config["file_format"] for model in project.models.values()} == {"delta"}


def test_data_tests_of_a_disabled_model_are_disabled_as_well(project: Project) -> None:
    # dbt leaves them in its manifest, with empty SQL: run, each would be an error.
    assert "model.jaffle.old_orders" not in project.models
    assert not [test.name for test in project.tests.values() if "old_order" in test.name]
    assert all(test.compiled_code for test in project.tests.values())


def test_a_model_has_its_entry_in_yaml_whichever_file_was_written_first(jaffle: Path) -> None:
    """dbt 1.11.16 keeps neither contract nor data tests if its YAML was there before its SQL."""
    entry = {
        "name": "later",
        "config": {"contract": {"enforced": True}},
        "columns": [{"name": "id", "data_type": "int", "data_tests": ["unique"]}],
    }
    (jaffle / "models" / "later.yml").write_text(yaml.safe_dump({"models": [entry]}))
    Dbt(jaffle).parse()
    (jaffle / "models" / "later.sql").write_text("select 1 as id")

    project, _ = Dbt(jaffle).parse()

    assert project.models["model.jaffle.later"].is_contracted
    assert [it.name for it in project.tests.values() if "later" in it.name] == ["unique_later_id"]


@pytest.mark.extended
def test_whatever_dbt_calls_disabled_is_no_part_of_the_project(
    jaffle: Path, project: Project
) -> None:
    """By its file, its YAML, dbt_project.yml and a variable; dbt 1.11 keeps the tests as nodes."""
    ways = {
        "by_file": "{{ config(enabled=false) }} ",
        "by_yaml": "",
        "by_project": "",
        "by_var": "",
    }
    written: dict[str, list[object]] = {kind: [] for kind in _DISABLED_KINDS}
    for way, config in ways.items():
        enabled = {"by_yaml": False, "by_var": "{{ var('with_off', false) }}"}.get(way)
        said = {} if enabled is None else {"config": {"enabled": enabled}}
        tested = {"columns": [{"name": "id", "data_tests": ["unique"]}]} | said
        (jaffle / "models" / "off" / way).mkdir(parents=True)
        (jaffle / "models" / "off" / way / f"{way}.sql").write_text(f"{config}select 1 as id")
        (jaffle / "tests" / f"off_{way}.sql").write_text(f"{config}select 1 as id")
        (jaffle / "snapshots" / f"off_{way}_history.sql").write_text(
            f"{{% snapshot off_{way}_history %}} {config}"
            "{{ config(unique_key='id', strategy='check', check_cols='all') }} select 1 as id"
            "{% endsnapshot %}"
        )
        written["models"].append({"name": way} | tested)
        written["data_tests"].append({"name": f"off_{way}"} | said)
        written["snapshots"].append({"name": f"off_{way}_history"} | tested)
        if way == "by_file":
            # The others have no file to say it in.
            continue
        (jaffle / "seeds" / f"off_{way}.csv").write_text("id\n1\n")
        written["seeds"].append({"name": f"off_{way}"} | tested)
        written["sources"].append({"name": f"off_{way}", "tables": [{"name": "others"} | tested]})
        named = {"name": f"off_{way}"}
        owned = named | {"owner": {"name": "Owner"}}
        written["exposures"].append({"type": "dashboard"} | owned | said)
        given = {"given": [], "expect": {"rows": [{"customer_id": 7}]}}
        if said:
            written["unit_tests"].append({"model": "customers"} | named | given | said)
    (jaffle / "models" / "off.yml").write_text(yaml.safe_dump({"version": 2} | written))
    settings = yaml.safe_load((jaffle / "dbt_project.yml").read_text())
    names = {"models": "off", "snapshots": "off_by_project_history"}
    for kind in _DISABLED_KINDS:
        name = names.get(kind, "off_by_project")
        off = {"+enabled": False}
        settings.setdefault(kind, {}).setdefault("jaffle", {})[name] = (
            {"by_project": off} if kind == "models" else off
        )
    (jaffle / "dbt_project.yml").write_text(yaml.safe_dump(settings))

    dbt = Dbt(jaffle)
    found, mistakes = dbt.parse()

    counts = {"model": 5, "snapshot": 4, "test": 4, "seed": 3, "source": 3, "exposure": 3}
    disabled = Counter(key.partition(".")[0] for key in dbt._dbt.manifest.disabled)
    assert disabled == counts | {"unit_test": 2}
    assert not mistakes
    assert found.models.keys() == project.models.keys()
    assert found.sources.keys() == project.sources.keys()
    assert found.exposures.keys() == project.exposures.keys()
    assert found.tests.keys() == project.tests.keys()


def test_a_test_says_what_it_is_attached_to_and_when_it_fails(project: Project) -> None:
    def data_test(start: str) -> DataTest:
        return next(test for test in project.tests.values() if test.name.startswith(start))

    accepted = data_test("accepted_values")
    singular = data_test("no_negative_amount")

    assert (accepted.kind, accepted.column_name, accepted.severity, accepted.warn_if) == (
        "accepted_values",
        "status",
        "warn",
        ">1",
    )
    assert accepted.attached_to == "model.jaffle.stg_orders"
    assert (singular.kind, singular.attached_to, singular.severity) == (None, None, "warn")
    assert "jaffle_analytics.orders" in singular.compiled_code
    assert all(test.is_usual for test in project.tests.values())


def test_exposures_are_read(project: Project) -> None:
    (exposure,) = project.exposures.values()

    assert (exposure.name, exposure.depends_on) == ("owners_page", ("model.jaffle.customers",))


def test_a_selection_names_models_seeds_and_snapshots(dbt: Dbt) -> None:
    actual = dbt.selection(Selection(("+stg_orders",), ("tag:none",)))

    assert actual == {"model.jaffle.stg_orders", "seed.jaffle.raw_orders"}
    with pytest.raises(
        ConfigError,
        match=r"SELECTION_EMPTY: .* no model, seed or dbt snapshot, did you mean stg_orders\?",
    ):
        dbt.selection(Selection(("stg_order",)))
    with pytest.raises(ConfigError, match=r"dbt snapshot\n"):
        # A data test has a name that is nearer, but cannot be selected.
        dbt.selection(Selection(("unique_orders_order_i",)))


def test_a_word_of_a_selection_that_names_nothing_beside_others_is_logged(dbt: Dbt) -> None:
    with capture_logs() as logs:
        dbt.selection(Selection(("stg_orders stg_order tag:none",), ("custmers",)))

    assert [(log["event"], log["word"], log["hint"]) for log in logs] == [
        ("selection_names_nothing", "stg_order", "did you mean stg_orders?"),
        ("selection_names_nothing", "tag:none", None),
        ("selection_names_nothing", "custmers", "did you mean customers?"),
    ]


def test_a_path_of_models_that_does_not_exist_is_named_where_no_model_is_found(
    tmp_path: Path,
) -> None:
    (tmp_path / "dbt_project.yml").write_text(
        "name: few\nprofile: jaffle\nmodel-paths: [shelves, \"{{ 'see' ~ 'ds' }}\", "
        '"{{ target.name }}"]\n'
    )
    shutil.copy(_JAFFLE / "profiles.yml", tmp_path)
    (tmp_path / "seeds").mkdir()
    with capture_logs() as logs:
        Dbt(tmp_path).load()

    assert [(log["event"], log["path"]) for log in logs] == [
        ("model_path_missing", path) for path in ("shelves", "dev")
    ]


def test_a_selector_names_what_selectors_yml_says(jaffle: Path) -> None:
    (jaffle / "selectors.yml").write_text(
        "selectors: [{name: few, definition: {method: fqn, value: stg_orders, parents: true}}]\n"
    )
    dbt = Dbt(jaffle)
    dbt.load()

    assert dbt.selection(Selection(selector="few")) == {
        "model.jaffle.stg_orders",
        "seed.jaffle.raw_orders",
    }
    with pytest.raises(ConfigError, match="Could not find selector named fewer") as caught:
        dbt.selection(Selection(selector="fewer"))
    assert caught.value.hint.startswith("name a selector of selectors.yml")


def test_a_state_is_compared_with_the_manifest_of_an_earlier_run(jaffle: Path) -> None:
    earlier = jaffle / "earlier"
    earlier.mkdir()
    dbt = Dbt(jaffle)
    dbt.load()
    shutil.copy(dbt.target_dir / "manifest.json", earlier)
    model = next(jaffle.glob("models/**/stg_orders.sql"))
    model.write_text(f"{model.read_text()}\n-- edited")
    edited = Dbt(jaffle)
    edited.load()

    assert "model.jaffle.orders" in edited.selection(Selection(("state:modified+",), state=earlier))
    assert edited.selection(Selection(("state:modified",), state=earlier)) == {
        "model.jaffle.stg_orders"
    }
    for method in ("state:modified+", "result:error", "source_status:fresher"):
        with pytest.raises(ConfigError) as raised:
            edited.selection(Selection((method,)))
        assert "--state DIR" in raised.value.hint
    with pytest.raises(ConfigError) as raised:
        edited.selection(Selection(("result:error",), state=earlier))
    assert "put run_results.json of that run" in raised.value.hint


def test_a_time_zone_that_is_none_is_refused_before_anything_runs(jaffle: Path) -> None:
    profile = jaffle / "profiles.yml"
    loaded = yaml.safe_load(profile.read_text())
    for output in loaded["jaffle"]["outputs"].values():
        output["server_side_parameters"] = {"spark.sql.session.timeZone": "Europe/Lisbonn"}
    profile.write_text(yaml.safe_dump(loaded))

    _, (mistake,) = Dbt(jaffle).parse()

    assert mistake.code == "SESSION_SETTING_REFUSED"
    assert mistake.message == (
        "profiles.yml: server_side_parameters: spark.sql.session.timeZone: found no time zone "
        "Europe/Lisbonn, did you mean Europe/Lisbon?"
    )


@pytest.mark.extended
def test_other_rows_of_a_seed_are_another_checksum(jaffle: Path, project: Project) -> None:
    with (jaffle / "seeds" / "raw_orders.csv").open("a") as file:
        file.write("5,1,2026-01-04 00:00:00.000000,placed,13\n")

    changed = Dbt(jaffle).load().models

    differing = {
        unique_id
        for unique_id, model in project.models.items()
        if model.config.get("checksum") != changed[unique_id].config.get("checksum")
    }
    assert differing == {"seed.jaffle.raw_orders"}


def test_the_environment_and_the_target_change_the_compiled_code(
    jaffle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = jaffle / "models" / "marts" / "said.sql"
    path.write_text("select '{{ env_var('SAID', 'nothing') }}' as a, '{{ target.name }}' as b")
    profiles = jaffle / "profiles.yml"
    profiles.write_text(
        f"{profiles.read_text()}    prod: {{type: spark, method: session, host: x, schema: p}}\n"
    )
    monkeypatch.setenv("SAID", "one")
    first = Dbt(jaffle).load()
    monkeypatch.setenv("SAID", "two")
    second = Dbt(jaffle, target="prod").load()

    assert (_code(first, "said"), _code(second, "said")) == (
        "select 'one' as a, 'dev' as b",
        "select 'two' as a, 'prod' as b",
    )


def test_what_the_project_or_the_environment_would_leave_out_is_there(
    jaffle: Path, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    (jaffle / "selectors.yml").write_text(
        "selectors: [{name: few, default: true, definition: 'stg_orders'}]\n"
    )
    for name in ("DBT_EMPTY", "DBT_DEFER", "DBT_ENGINE_EMPTY", "DBT_WARN_ERROR"):
        monkeypatch.setenv(name, "true")
    monkeypatch.setenv("DBT_RESOURCE_TYPES", "seed")
    # No test reads its output.
    (jaffle / "analyses").mkdir()
    (jaffle / "analyses" / "broken.sql").write_text(
        "{% if execute %}{{ exceptions.raise_compiler_error('no') }}{% endif %}"
    )

    loaded = Dbt(jaffle).load()

    assert loaded.models.keys() == project.models.keys()
    assert {key: model.compiled_code for key, model in loaded.models.items()} == {
        key: model.compiled_code for key, model in project.models.items()
    }
    assert os.environ["DBT_RESOURCE_TYPES"] == "seed"


def test_livemarts_macros_come_before_dbt_sparks_and_after_the_projects(jaffle: Path) -> None:
    (jaffle / "models" / "marts" / "said.sql").write_text(
        "{{ config(file_format='parquet', location_root='/elsewhere') }}"
        "select '{{ file_format_clause() | trim }}' as a, \"{{ location_clause() | trim }}\" as b"
    )
    first = Dbt(jaffle, warehouse=jaffle / "w").load()
    (jaffle / "macros" / "clauses.sql").write_text(
        "{% macro spark__file_format_clause() %}using ours{% endmacro %}"
    )
    second = Dbt(jaffle, warehouse=jaffle / "w").load()

    place = f"location '{jaffle}/w/jaffle_analytics/said'"
    assert _code(first, "said") == f"select 'using delta' as a, \"{place}\" as b"
    assert _code(second, "said") == f"select 'using ours' as a, \"{place}\" as b"


def test_a_test_of_some_rows_proves_no_key(jaffle: Path) -> None:
    path = jaffle / "models" / "marts" / "schema.yml"
    some = "[{unique: {config: {where: 'order_id > 1'}}}, not_null]"
    path.write_text(path.read_text().replace("[unique, not_null]", some))

    assert Dbt(jaffle).load().models["model.jaffle.orders"].primary_key == ()


def test_a_package_that_is_not_installed_is_told(jaffle: Path) -> None:
    shutil.rmtree(jaffle / "vendored")

    with pytest.raises(ConfigError) as caught:
        Dbt(jaffle).load()

    assert caught.value.code == "DBT_FAILED"
    assert caught.value.hint == f"install them, without Spark: dbt deps --project-dir {jaffle}"


@pytest.mark.extended
def test_vars_change_the_compiled_code(jaffle: Path) -> None:
    project = Dbt(jaffle, vars={"smallest_amount": 7}).load()

    assert "amount >= 7" in _code(project, "order_payments")


def _break_two_models(jaffle: Path) -> None:
    for name in ("stg_orders", "stg_customers"):
        file = jaffle / "models" / "staging" / f"{name}.sql"
        file.write_text(file.read_text() + "{% if execute %}{{ no_such_macro() }}{% endif %}")


def _break_the_yaml(jaffle: Path) -> None:
    (jaffle / "models" / "staging" / "schema.yml").write_text("version: 2\nmodels: [name: }")


def _add_torn_yaml(jaffle: Path) -> None:
    """dbt has read all other files before, so it reads none of them."""
    (jaffle / "models" / "torn.yml").write_text("models: [")


def _name_a_missing_model(jaffle: Path) -> None:
    (jaffle / "models" / "marts" / "more.sql").write_text("select * from {{ ref('nowhere') }}")


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (_break_two_models, ["stg_orders.sql", "stg_customers.sql", "no_such_macro"]),
        (_break_the_yaml, ["staging/schema.yml", "line 2"]),
        (_add_torn_yaml, ["models/torn.yml", "line 2"]),
        (_name_a_missing_model, ["more", "nowhere"]),
    ],
)
def test_dbt_mistakes_are_reported_in_its_own_words(
    jaffle: Path, spoil: Callable[[Path], None], words: list[str]
) -> None:
    spoil(jaffle)

    with pytest.raises(ConfigError) as caught:
        Dbt(jaffle).load()

    assert caught.value.code == "DBT_FAILED"
    assert [word for word in words if word not in str(caught.value)] == []


_METRIC = """
models:
  - name: time_spine
    time_spine: {standard_granularity_column: day}
    columns: [{name: day, granularity: day}]
semantic_models:
  - name: orders
    model: ref('stg_orders')
    defaults: {agg_time_dimension: ordered_at}
    entities: [{name: order_id, type: primary}]
    dimensions: [{name: ordered_at, type: time, type_params: {time_granularity: day}}]
    measures: [{name: order_total, agg: sum}]
metrics:
  - {name: revenue__total, label: Total, type: simple, type_params: {measure: order_total}}
"""


def test_the_reasons_that_dbt_gave_before_its_error_are_kept(jaffle: Path) -> None:
    (jaffle / "models" / "time_spine.sql").write_text("select date'2026-01-01' as day")
    (jaffle / "models" / "_metrics.yml").write_text(_METRIC)

    with pytest.raises(ConfigError) as caught:
        Dbt(jaffle).load()

    assert caught.value.code == "DBT_FAILED"
    # dbt's exception says no more than that the validation has failed.
    assert "revenue__total" in caught.value.message


def test_mistakes_for_livemart_are_reported_together_with_their_lines(jaffle: Path) -> None:
    (jaffle / "models" / "sources.yml").write_text(
        "version: 2\n"
        "sources:\n"
        "  - name: raw\n"
        "    tables:\n"
        "      - name: events\n"
        "        config:\n"
        "          meta:\n"
        "            livemart:\n"
        "              path: events/*.jsonl\n"
        "              keyz: [id]\n"
        "        columns:\n"
        "          - {name: id, data_type: bigint}\n"
    )
    customers = jaffle / "models" / "marts" / "customers.sql"
    customers.write_text(customers.read_text().replace("'full'", "'fulll'"))
    (jaffle / "models" / "paged.sql").write_text("select 1 as id")
    (jaffle / "models" / "pages.yml").write_text(
        "version: 2\n"
        "models:\n"
        "  - name: paged\n"
        "    config: {contract: {enforced: true}}\n"
        "    meta:\n"
        "      livemart:\n"
        "        page:\n"
        "          formats:\n"
        "            idd: percent\n"
        "    columns: [{name: id, data_type: int}]\n"
        "exposures:\n"
        "  - name: board\n"
        "    type: dashboard\n"
        "    owner: {name: a, email: a@b.c}\n"
        "    depends_on: [ref('paged')]\n"
        "    meta: {livemart: {page: {title: x}}}\n"
    )

    with pytest.raises(ConfigErrors) as caught:
        Dbt(jaffle).load()

    codes = [error.code for error in caught.value.errors]
    assert sorted(codes) == [
        "MODEL_POLICY_UNKNOWN",
        "PAGE_INVALID",
        "PAGE_INVALID",
        "SOURCE_KEY_UNKNOWN",
    ]
    assert "models/pages.yml:9: model paged: meta.livemart.page.formats.idd" in str(caught.value)
    assert "models/pages.yml:16: exposure board: meta.livemart" in str(caught.value)
    assert "models/sources.yml:10" in str(caught.value)
    assert "did you mean full?" in str(caught.value)


def test_names_that_differ_by_letter_case_alone_are_refused_with_their_files(jaffle: Path) -> None:
    """dbt 1.11 takes all of these for two; Spark 4.2 takes them for one."""
    models = jaffle / "models"
    (models / "marts" / "Dim.sql").write_text("{{ config(alias='Dim_Customers') }} select 1 as id")
    (models / "marts" / "Orders.sql").write_text("{{ config(enabled=false) }} select 1 as id")
    (models / "twice.sql").write_text("select 1 as id")
    (models / "twice.yml").write_text(
        "version: 2\n"
        "models:\n"
        "  - name: twice\n"
        "    config: {contract: {enforced: true}}\n"
        "    columns:\n"
        "      - {name: id, data_type: int}\n"
        "      - {name: id, data_type: bigint}\n"
        "      - {name: Id, data_type: int}\n"
        "sources:\n"
        "  - name: raw\n"
        "    tables:\n"
        "      - name: events\n"
        "        config: {meta: {livemart: {path: 'events/*.jsonl'}}}\n"
        "        columns:\n"
        "          - {name: id, data_type: int}\n"
        "          - {name: id, data_type: bigint}\n"
        "      - name: others\n"
        "        columns: [{name: id}, {name: ID}]\n"
    )
    (jaffle / "seeds" / "shops.csv").write_text("id,Name,NAME\n1,a,b\n")

    with pytest.raises(ConfigErrors) as caught:
        Dbt(jaffle).load()

    assert sorted(str(error).splitlines()[0] for error in caught.value.errors) == [
        "MODEL_COLUMN_TWICE: models/twice.yml:7: model twice: columns.id: found id more than once",
        "MODEL_COLUMN_TWICE: models/twice.yml:8: model twice: columns.Id: found Id beside id",
        "MODEL_COLUMN_TWICE: seeds/shops.csv:1: seed shops: columns.NAME: found NAME beside Name",
        "NAMES_CLASH: models/marts/customers.sql: model customers: found table "
        "jaffle_analytics.dim_customers, and model Dim (models/marts/Dim.sql) has "
        "jaffle_analytics.Dim_Customers: they are the same table",
        "SOURCE_COLUMN_INVALID: models/twice.yml:16: source raw.events: columns.id: "
        "found id more than once",
        "SOURCE_COLUMN_INVALID: models/twice.yml:18: source raw.others: columns.ID: "
        "found ID beside id",
    ]


def test_tables_that_would_have_other_rows_are_refused_together(jaffle: Path) -> None:
    (jaffle / "models" / "a.sql").write_text(
        "{{ config(materialized='table', partition_by=['k'], contract={'enforced': true}, "
        "tblproperties={'delta.appendOnly': 'true', 'delta.checkpointInterval': '5'}) }} "
        "select X'FF' as k, 1 as n"
    )
    (jaffle / "models" / "a.yml").write_text(
        "models: [{name: a, columns: [{name: k, data_type: binary}, {name: n, data_type: int}]}]\n"
    )
    (jaffle / "seeds" / "prices.csv").write_text("n,price\n1,2.50\n")
    (jaffle / "seeds" / "prices.yml").write_text(
        "seeds:\n  - name: prices\n    config:\n"
        "      column_types: {n: int64, price: 'decimal(10,2)', elsewhere: text}\n"
    )
    profiles = find_profiles(jaffle, None)
    assert profiles is not None
    path = profiles / "profiles.yml"
    profile = yaml.safe_load(path.read_text())
    (outputs,) = (it["outputs"] for it in profile.values() if "outputs" in it)
    for output in outputs.values():
        output["server_side_parameters"] = {
            "spark.databricks.delta.properties.defaults.enableDeletionVectors": "true",
        }
    path.write_text(yaml.safe_dump(profile))

    with pytest.raises(ConfigErrors) as caught:
        Dbt(jaffle).load()

    found = [(error.code, error.message.partition(": found ")) for error in caught.value.errors]
    assert [
        (code, place, what.split(":")[0].split(",")[0]) for code, (place, _, what) in found
    ] == [
        ("SEED_TYPE_UNKNOWN", "seeds/prices.yml:4: seed prices: column_types.n", "int64"),
        (
            "TABLE_PROPERTY_REFUSED",
            "models/a.sql:1: model a: tblproperties",
            "delta.appendOnly",
        ),
        ("PARTITION_VALUES_LOST", "models/a.sql:1: model a: partition_by", "k"),
        (
            "TABLE_PROPERTY_REFUSED",
            "profiles.yml: server_side_parameters: "
            "spark.databricks.delta.properties.defaults.enableDeletionVectors",
            "delta.enableDeletionVectors",
        ),
    ]


def test_a_misspelled_or_misplaced_livemart_is_reported_with_its_line(jaffle: Path) -> None:
    (jaffle / "models" / "sources.yml").write_text(
        "version: 2\n"
        "sources:\n"
        "  - name: raw\n"
        "    tables:\n"
        "      - name: events\n"
        "        config:\n"
        "          meta:\n"
        "            owner: someone\n"
        "            livemrt: {path: 'events/*.jsonl'}\n"
        "      - name: visits\n"
        "        config:\n"
        "          livemart: {path: 'visits/*.jsonl'}\n"
    )
    customers = jaffle / "models" / "marts" / "customers.sql"
    text = customers.read_text()
    customers.write_text(text.replace("livemart", "Livemart"))
    assert "livemart" in text

    with pytest.raises(ConfigErrors) as caught:
        Dbt(jaffle).load()

    messages = sorted(error.message for error in caught.value.errors)
    assert messages[1:] == [
        "models/sources.yml:12: source raw.visits: livemart: found key livemart beside meta",
        "models/sources.yml:9: source raw.events: config.meta.livemrt: found key livemrt, "
        "did you mean livemart?",
    ]
    assert messages[0].endswith("found key Livemart, did you mean livemart?")
    assert "customers" in messages[0]


def test_a_source_is_landed_or_a_seed_or_filled_by_others(jaffle: Path) -> None:
    (jaffle / "models" / "sources.yml").write_text(
        "version: 2\n"
        "sources:\n"
        "  - name: raw\n"
        "    schema: Bronze\n"
        "    tables:\n"
        "      - name: events\n"
        "        config: {meta: {livemart: {path: 'events/*.jsonl'}}}\n"
        "        columns: [{name: id, data_type: BIGINT}]\n"
        "      - name: by_hand\n"
        "  - name: seeded\n"
        "    schema: JAFFLE_raw\n"
        "    tables: [{name: raw_orders, columns: [{name: id, data_tests: [unique]}]}]\n"
        "  - name: livemart\n"
        "    tables: [{name: clock, columns: [{name: as_of, data_type: timestamp}]}]\n"
    )
    path = jaffle / "models" / "staging" / "stg_orders.sql"
    path.write_text(path.read_text().replace("ref('raw_orders')", "source('seeded', 'raw_orders')"))

    project = Dbt(jaffle).load()

    # The readers of the source wait for the seed, and its tests are those of the seed.
    seed = "seed.jaffle.raw_orders"
    assert "source.jaffle.seeded.raw_orders" not in project.sources
    assert project.models["model.jaffle.stg_orders"].depends_on == (seed,)
    tests = [it for key, it in project.tests.items() if "source_unique" in key]
    assert [(it.attached_to, it.depends_on) for it in tests] == [(seed, (seed,))]
    events = project.sources["source.jaffle.raw.events"]
    assert events.stream is not None
    assert (events.relation, events.stream.arrival.path) == ("bronze.events", "events/*.jsonl")
    assert events.columns == (Column("id", "BIGINT"),)
    assert project.sources["source.jaffle.raw.by_hand"].stream is None
    assert project.clock is project.sources["source.jaffle.livemart.clock"]


def test_a_model_that_asks_the_database_needs_spark(jaffle: Path) -> None:
    (jaffle / "models" / "marts" / "more.sql").write_text(
        "{% set found = run_query('select 1') %} select 1 as one"
    )

    with pytest.raises(ConfigError) as caught:
        Dbt(jaffle).load()

    assert caught.value.code == "DBT_NEEDS_SPARK"


def test_a_spark_that_cannot_be_started_is_no_mistake_of_the_models_that_ask(jaffle: Path) -> None:
    for name in ("more", "most"):
        (jaffle / "models" / "marts" / f"{name}.sql").write_text(
            "{% if execute %}{% do run_query('select 1') %}{% endif %} select 1 as one"
        )
    missing = LivemartError("JAVA_MISSING", "found no bin/java", hint="install Java")
    session = MagicMock(side_effect=missing)

    with pytest.raises(LivemartError) as caught:
        Dbt(jaffle, session=session).load()

    assert caught.value is missing
    session.assert_called_once()


def test_an_analysis_that_asks_the_database_starts_no_spark(jaffle: Path) -> None:
    shutil.rmtree(jaffle / "snapshots")
    (jaffle / "analyses").mkdir()
    (jaffle / "analyses" / "asking.sql").write_text("{% set n = run_query('select 1') %} select 1")
    session = MagicMock()
    asking = Dbt(jaffle, session=session)

    assert asking.load().models

    session.assert_not_called()
    assert asking.is_repeatable


def test_without_any_profiles_the_message_is_one_to_copy(
    jaffle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (jaffle / "profiles.yml").unlink()
    monkeypatch.delenv("DBT_PROFILES_DIR", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)

    with pytest.raises(ConfigError, match=str(tmp_path / ".dbt")) as caught:
        find_profiles(jaffle, None)

    assert caught.value.code == "PROFILES_NOT_FOUND"
    _, _, example = caught.value.hint.partition("\n")
    name = yaml.safe_load((jaffle / "dbt_project.yml").read_text())["profile"]
    (jaffle / "profiles.yml").write_text(textwrap.dedent(example).replace("NAME", name))
    assert Dbt(jaffle).load().models


def test_the_manifest_is_written_beside_what_dbt_keeps(jaffle: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"

    Dbt(jaffle, target_dir=elsewhere).load()

    manifest = json.loads((elsewhere / "manifest.json").read_text())
    assert manifest["nodes"]["model.jaffle.orders"]["compiled_code"]
    assert (elsewhere / "livemart" / "partial_parse.msgpack").exists()
    assert not (elsewhere / "livemart" / "run_results.json").exists()


@pytest.mark.extended
def test_the_files_of_a_project_are_named_where_it_lies_now(jaffle: Path) -> None:
    dbt = Dbt(jaffle)
    dbt.load()
    (jaffle / "macros" / "more.sql").write_text("{% macro more() %}1{% endmacro %}")
    dbt.load()

    files = dbt.files_read()

    assert {str(path) for path in (jaffle / "models").rglob("*.sql")} <= files
    assert str(jaffle / "macros" / "more.sql") in files
    assert all(Path(path).is_file() for path in files)
    assert not any("global_project" in path or "clock_macros" in path for path in files)


def _repeats(folder: Path, change: Callable[[Path], object]) -> bool:
    shutil.rmtree(folder / "snapshots")
    change(folder)
    again = Dbt(folder, session=lambda: pytest.fail("it asks"))
    again.load()
    return again.is_repeatable


def test_a_project_of_tables_and_views_follows_from_its_files(jaffle: Path) -> None:
    assert _repeats(jaffle, lambda folder: None)


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("models/stamped.sql", "select '{{ run_started_at }}' as at"),
        ("models/hooked.sql", "{{ config(pre_hook='set a.b=1') }} select 1 as n"),
        (
            "snapshots/history.sql",
            "{% snapshot history %}{{ config(target_schema='h', strategy='check', check_cols='all',"
            " unique_key='id') }} select 1 as id{% endsnapshot %}",
        ),
    ],
)
def test_a_project_that_needs_dbt_in_each_run_is_not_repeatable(
    jaffle: Path, file: str, text: str
) -> None:
    def write(folder: Path) -> None:
        (folder / file).parent.mkdir(exist_ok=True)
        (folder / file).write_text(text)

    assert not _repeats(jaffle, write)


def test_a_project_that_asks_the_warehouse_is_not_repeatable(jaffle: Path) -> None:
    shutil.rmtree(jaffle / "snapshots")
    asks = "{% if execute %}{% do run_query('select 1') %}{% endif %} select 1 as n"
    (jaffle / "models" / "asking.sql").write_text(asks)
    # Without rows and columns.
    spark = MagicMock()
    asking = Dbt(jaffle, session=lambda: spark)

    asking.load()

    assert not asking.is_repeatable


def test_a_project_that_another_process_has_compiled_needs_no_dbt(
    dbt: Dbt, project: Project, tmp_path: Path
) -> None:
    kept = tmp_path / "kept"
    kept.write_bytes(pickle.dumps((project, dbt.files_read(), dbt.artifact)))
    code = """
        import pickle, sys
        from pathlib import Path
        from livemart.project.dbt import Dbt
        kept, folder, target = map(Path, sys.argv[1:])
        project, files, artifact = pickle.loads(kept.read_bytes())
        dbt = Dbt(folder, target_dir=target)
        assert dbt.resume(project, files, artifact) is dbt.project
        assert dbt.run_dependent == frozenset()
        assert (dbt.files_read(), dbt.is_repeatable) == (files, True)
        assert not sys.modules.keys() & {"dbt", "dbt.cli.main", "jinja2", "agate"}
    """
    places = map(str, (kept, dbt.project_dir, tmp_path / "target"))

    subprocess.run([sys.executable, "-c", textwrap.dedent(code), *places], check=True)

    assert (tmp_path / "target" / "manifest.json").read_bytes() == dbt.artifact


def test_a_model_in_python_is_refused_with_its_file_before_anything_runs(jaffle: Path) -> None:
    for name in ("scored", "scaled"):
        (jaffle / "models" / f"{name}.py").write_text(
            "def model(dbt, session):\n    return dbt.ref('orders')\n"
        )

    with pytest.raises(ConfigErrors) as caught:
        Dbt(jaffle).load()

    assert [(error.code, error.message.partition(":")[0]) for error in caught.value.errors] == [
        ("MODEL_NOT_SQL", "models/scaled.py"),
        ("MODEL_NOT_SQL", "models/scored.py"),
    ]


def test_columns_that_no_table_takes_are_refused_with_their_place(jaffle: Path) -> None:
    (jaffle / "seeds" / "prices.csv").write_text('id,"net, price",\n1,2.50,\n')
    (jaffle / "models" / "a.sql").write_text("{{ config(materialized='table') }} select 1 as `a b`")
    (jaffle / "models" / "a.yml").write_text(
        "models:\n- name: a\n  config: {contract: {enforced: true}}\n"
        "  columns:\n  - {name: a b, data_type: int, quote: true}\n"
        "  - name: c\n"
    )

    _, mistakes = Dbt(jaffle).parse()

    assert [(mistake.code, mistake.message) for mistake in mistakes] == [
        (
            "MODEL_COLUMN_INVALID",
            "seeds/prices.csv:1: seed prices: columns.net, price: found `net, price`",
        ),
        ("MODEL_COLUMN_INVALID", "models/a.yml:5: model a: columns.a b: found `a b`"),
        ("MODEL_COLUMN_INVALID", "models/a.yml:6: model a: columns.c: found no data_type"),
    ]


def test_models_that_read_each_other_are_named(jaffle: Path) -> None:
    (jaffle / "models" / "x.sql").write_text("select * from {{ ref('y') }}")
    (jaffle / "models" / "y.sql").write_text("select * from {{ ref('x') }}")

    with pytest.raises(ConfigError) as caught:
        Dbt(jaffle).load()

    assert caught.value.code == "DBT_FAILED"
    assert caught.value.message.partition(": ")[0] == "models/x.sql"
    assert "model.jaffle.x -> model.jaffle.y -> model.jaffle.x" in caught.value.message


def test_a_strategy_of_another_adapter_does_not_count(jaffle: Path) -> None:
    models = jaffle / "models"
    config = "{{ config(materialized='incremental', incremental_strategy='delete+insert'%s) }}"
    (models / "x.sql").write_text(config % "" + "select 1 as a")
    (models / "kept.sql").write_text(config % ", full_refresh=false" + "select 1 as a")

    project, mistakes = Dbt(jaffle).parse()

    assert mistakes == []
    assert "incremental_strategy" not in project.models["model.jaffle.x"].config
    # dbt adds to it, and has to know how.
    assert project.models["model.jaffle.kept"].config["incremental_strategy"] == "delete+insert"
