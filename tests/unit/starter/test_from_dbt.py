"""`init --from-dbt` says what a project has and needs, and changes no file that is there."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from itertools import takewhile
from pathlib import Path

import pytest
import yaml

from livemart.errors import ConfigError
from livemart.project.dbt import Dbt
from livemart.settings import load_settings
from livemart.starter.from_dbt import adapt_project, describe_sources, ensure_profile

_JAFFLE = Path(__file__).parents[2] / "projects" / "jaffle"
_THRIFT = "{type: spark, method: thrift, schema: sales, host: cluster}"
_SESSION = "{type: spark, method: session, schema: sales, host: NA}"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder without profiles, which is where we are."""
    monkeypatch.delenv("DBT_PROFILES_DIR", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home" / ".dbt").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "home")
    return tmp_path / "home"


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    folder = tmp_path / "a shop"
    _write(
        folder,
        {
            "dbt_project.yml": "name: shop\nversion: '1.0'\nprofile: warehouse\n",
            "models/_sources.yml": """
sources:
  - name: till
    schema: raw
    tables:
      - name: orders
        loaded_at_field: loaded_at
        columns:
          - {name: order_id, data_type: string, data_tests: [unique]}
          - {name: ordered_at, data_type: timestamp}
          - {name: changed_at, data_type: timestamp}
          - {name: note}
      - name: visits
""",
            "models/totals.sql": "select count(*) as n from {{ source('till', 'orders') }}",
            "models/newest.sql": (
                "{{ config(materialized='incremental') }} "
                "select * from {{ source('till', 'orders') }}"
                "{% if is_incremental() %} where ordered_at > (select 1){% endif %}"
            ),
        },
    )
    return folder


def _write(folder: Path, texts: Mapping[str, str]) -> None:
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def _profile(output: str, name: str = "dev") -> str:
    return f"warehouse: {{target: dev, outputs: {{{name}: {output}}}}}\n"


def _adapt(folder: Path) -> str:
    said: list[str] = []
    adapt_project(load_settings({"project_dir": str(folder)}, environ={}), said.append)
    return "\n".join(said)


def test_a_project_without_a_profile_gets_one_and_a_report(shop: Path, home: Path) -> None:
    report = _adapt(shop)

    file = shop / "profiles" / "profiles.yml"
    assert yaml.safe_load(file.read_text())["warehouse"]["outputs"]["local"]["method"] == "session"
    assert f"profile warehouse: wrote {file}, method session" in report
    assert "sources: 2, of which livemart lands 0" in report
    assert "till.orders (models/_sources.yml) is read where it is, WAREHOUSE/raw/orders" in report
    assert "event_time: ordered_at   # when it happened: check" in report
    assert "keys: [order_id]" in report
    assert "sequence_by: [changed_at]   # which of two versions is newer: check" in report
    assert "# columns that need a data_type, too: note" in report
    assert "path: visits/*.jsonl" in report
    assert "models: 1 incremental, 1 view; 1 tests, 0 exposures" in report
    assert "incremental: newest: kept fresh from the full SQL" in report
    assert "no exposure: nothing is served" in report
    pasted = report.partition("that are to be read:\n")[2]
    block = "\n".join(takewhile(lambda line: line.startswith("    "), pasted.splitlines()))
    assert yaml.safe_load(block)["exposures"][0]["depends_on"] == ["ref('newest')"]
    assert f"next: livemart build --project-dir '{shop}'" in report


@pytest.mark.extended
def test_what_is_filled_in_is_accepted(shop: Path, home: Path) -> None:
    report = _adapt(shop)
    block = report.partition("fill in:\n")[2].partition("\n  till.visits")[0]
    source = yaml.safe_load((shop / "models" / "_sources.yml").read_text())
    orders = source["sources"][0]["tables"][0]
    orders |= yaml.safe_load(block)
    orders["columns"][-1]["data_type"] = "string"
    (shop / "models" / "_sources.yml").write_text(yaml.safe_dump(source))

    again = _adapt(shop)

    assert "of which livemart lands 1\n  till.orders: orders/*.jsonl" in again


@pytest.mark.extended
def test_jaffle_is_read_with_its_seeds_snapshots_and_strategies(tmp_path: Path) -> None:
    folder = tmp_path / "jaffle"
    shutil.copytree(_JAFFLE, folder, ignore=shutil.ignore_patterns("target", "logs"))
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}

    report = _adapt(folder)

    assert "profiles.yml: method session, as livemart needs it" in report
    assert "snapshot: customer_history: made by dbt in `livemart build`" in report
    assert "\ndaily_orders " in report
    assert {path: path.read_bytes() for path in before} == before


@pytest.mark.extended
@pytest.mark.parametrize("file", ["profiles.yml", "profiles/profiles.yml"])
def test_a_profile_of_the_projects_own_is_never_changed(file: str, shop: Path, home: Path) -> None:
    _write(shop, {file: _profile(_THRIFT)})

    report = _adapt(shop)

    assert (shop / file).read_text() == _profile(_THRIFT)
    assert [path.relative_to(shop).as_posix() for path in shop.rglob("profiles.yml")] == [file]
    assert (
        "    livemart: {type: spark, method: session, schema: sales, host: NA, threads: 1}"
        in report
    )
    assert "--target livemart" in report
    assert f"`target: livemart` in {shop / 'livemart.yml'}" in report


@pytest.mark.extended
def test_a_profile_elsewhere_is_not_changed_and_one_is_made_beside_the_project(
    shop: Path, home: Path
) -> None:
    _write(home, {".dbt/profiles.yml": _profile(_THRIFT)})

    advice = ensure_profile(shop, None, "warehouse")

    assert advice.written
    written = yaml.safe_load((shop / "profiles" / "profiles.yml").read_text())
    assert written["warehouse"]["outputs"]["local"]["schema"] == "sales"
    assert (home / ".dbt" / "profiles.yml").read_text() == _profile(_THRIFT)


@pytest.mark.extended
def test_another_target_of_method_session_is_named(shop: Path, home: Path) -> None:
    both = f"warehouse: {{target: dev, outputs: {{dev: {_THRIFT}, here: {_SESSION}}}}}\n"
    _write(shop, {"profiles/profiles.yml": both})

    report = _adapt(shop)

    assert "target here: method session" in report
    assert report.endswith("--target here")


@pytest.mark.extended
def test_a_profile_is_what_dbt_takes_it_for(
    shop: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = "{prod: " + _SESSION + ", dev: {type: spark, method: \"{{ env_var('M', 'session') }}\","
    both += " schema: sales, host: NA}}"
    target = "\"{{ env_var('WHERE', 'dev') }}\""
    _write(shop, {"dbt_project.yml": "name: shop\nprofile: \"{{ env_var('P', 'warehouse') }}\"\n"})
    _write(home, {".dbt/profiles.yml": f"warehouse: {{target: {target}, outputs: {both}}}\n"})

    rendered = _adapt(shop)
    monkeypatch.setenv("P", "other")
    unknown = ensure_profile(shop, None, "{{ env_var('P', 'warehouse') }}")

    assert "method session, as livemart needs it" in rendered
    assert rendered.endswith(f"next: livemart build --project-dir '{shop}'")
    assert not (shop / "profiles").exists()
    assert (unknown.written, unknown.paste is None) == (False, False)


def test_what_the_sql_of_a_spark_elsewhere_means_is_taken_over(shop: Path, home: Path) -> None:
    settings = {"spark.sql.session.timeZone": "Europe/Lisbon", "spark.executor.memory": "8g"}
    thrift = {**yaml.safe_load(_THRIFT), "server_side_parameters": settings}
    profile = {"warehouse": {"target": "dev", "outputs": {"dev": thrift}}}
    _write(shop, {"profiles.yml": yaml.safe_dump(profile)})

    pasted = yaml.safe_load(str(ensure_profile(shop, None, "warehouse").paste))
    (shop / "profiles.yml").unlink()
    _write(home, {".dbt/profiles.yml": yaml.safe_dump(profile)})
    ensure_profile(shop, None, "warehouse")

    written = yaml.safe_load((shop / "profiles" / "profiles.yml").read_text())
    of_sql = {"spark.sql.session.timeZone": "Europe/Lisbon"}
    assert pasted["livemart"]["server_side_parameters"] == of_sql
    assert written["warehouse"]["outputs"]["local"]["server_side_parameters"] == of_sql


@pytest.mark.parametrize("text", ["warehouse: {target: dev}\n", "warehouse:\n", "- warehouse\n"])
def test_an_entry_that_is_no_profile_is_one_to_replace(text: str, shop: Path, home: Path) -> None:
    _write(shop, {"profiles.yml": text})

    advice = ensure_profile(shop, None, "warehouse")

    assert advice.replaces == text.startswith("warehouse")
    assert yaml.safe_load(str(advice.paste))["warehouse"]["target"] == "local"


@pytest.mark.extended
def test_a_profile_of_another_name_is_one_to_paste(shop: Path, home: Path) -> None:
    _write(shop, {"profiles.yml": "other: {}\n"})

    advice = ensure_profile(shop, None, "warehouse")

    assert advice.target is None
    assert yaml.safe_load(str(advice.paste))["warehouse"]["target"] == "local"


@pytest.mark.extended
def test_a_profile_that_cannot_be_made_is_one_to_paste(shop: Path, home: Path) -> None:
    # Not even root writes below a file.
    (shop / "profiles").write_text("a file")

    report = _adapt(shop)

    assert f"{shop}/profiles/profiles.yml cannot be made (File exists)" in report
    pasted = report.partition("--profiles-dir\n")[2].partition("\nsources: 2")[0]
    assert yaml.safe_load(pasted)["warehouse"]["outputs"]["local"]["method"] == "session"
    assert "strategies" in report
    assert [path.name for path in home.iterdir()] == [".dbt"]


@pytest.mark.extended
def test_a_project_that_asks_spark_is_described_all_the_same(shop: Path, home: Path) -> None:
    _write(shop, {"models/asks.sql": "{% set found = run_query('select 1') %} select 1 as one"})

    report = _adapt(shop)

    assert "sources: 2, of which livemart lands 0" in report
    assert "models ask Spark while dbt compiles them; `livemart plan` starts one" in report


@pytest.mark.extended
def test_what_does_not_compile_is_an_error_after_the_report(shop: Path, home: Path) -> None:
    _write(
        shop,
        {
            "models/asks.sql": "{% set found = run_query('select 1') %} select 1 as one",
            "models/broken.sql": "{{ exceptions.raise_compiler_error('no') if execute }}",
        },
    )
    said: list[str] = []

    with pytest.raises(ConfigError) as caught:
        adapt_project(load_settings({"project_dir": str(shop)}, environ={}), said.append)

    assert caught.value.code == "DBT_FAILED"
    # A model that asks is none to correct.
    assert "broken" in str(caught.value) and "asks" not in str(caught.value)
    assert any(text.startswith("sources: 2") for text in said)
    assert any(text.startswith("strategies: models ask Spark") for text in said)


@pytest.mark.extended
def test_a_source_names_the_seed_that_would_fill_it(shop: Path, home: Path) -> None:
    (shop / "models" / "newest.sql").unlink()
    seeds = "seeds: {shop: {orders: {+schema: raw, +enabled: \"{{ var('samples', false) }}\"}}}\n"
    _write(
        shop,
        {
            "dbt_project.yml": (shop / "dbt_project.yml").read_text() + seeds,
            "macros/schemas.sql": (
                "{% macro generate_schema_name(name, node) %}{{ name or 'mart' }}{% endmacro %}"
            ),
            "seeds/orders.csv": "order_id\n1\n",
            "seeds/visits.csv": "visit_id\n1\n",
        },
    )

    report = _adapt(shop)

    assert (
        "till.orders (models/_sources.yml) is a table that a disabled seed would fill, "
        "seeds/orders.csv: enable the seed"
    ) in report
    assert (
        "till.visits (models/_sources.yml) is raw.visits, and the seed seeds/visits.csv is "
        "mart.visits. It fills the source if both are in one schema"
    ) in report
    # Its models are views.
    assert "with the model to be read, materialized as a table: a view is not served:" in report


@pytest.mark.parametrize("text", ["name: [shop", "name: shop\nvars: {since: 2026-02-30}"])
def test_a_folder_without_a_project_and_yaml_that_is_none_are_errors(
    text: str, shop: Path, home: Path
) -> None:
    with pytest.raises(ConfigError) as missing:
        _adapt(home)
    _write(shop, {"dbt_project.yml": text})
    with pytest.raises(ConfigError) as broken:
        _adapt(shop)

    assert missing.value.code == "DBT_PROJECT_NOT_FOUND"
    assert "livemart init FOLDER" in missing.value.hint
    assert broken.value.code == "YAML_INVALID"


def test_a_source_of_a_package_is_landed_by_a_file_of_ones_own(tmp_path: Path) -> None:
    package = tmp_path / "dbt_packages" / "shop"
    for folder in (tmp_path / "models", tmp_path / "profiles", package / "models"):
        folder.mkdir(parents=True)
    for folder, name in ((tmp_path, "mart"), (package, "shop")):
        (folder / "dbt_project.yml").write_text(f"name: {name}\nversion: '1.0'\nprofile: mart\n")
    (tmp_path / "packages.yml").write_text("packages: [{local: dbt_packages/shop}]\n")
    output = "{type: spark, method: session, schema: a, host: NA}"
    (tmp_path / "profiles" / "profiles.yml").write_text(
        f"mart: {{target: local, outputs: {{local: {output}}}}}\n"
    )
    (package / "models" / "sources.yml").write_text(
        "sources: [{name: till, tables: [{name: sales, columns: "
        "[{name: id, data_type: string}, {name: at, data_type: timestamp}]}]}]\n"
    )
    (package / "models" / "net.sql").write_text("select * from {{ source('till', 'sales') }}")
    project, _ = Dbt(tmp_path).parse()

    advice = describe_sources(project)
    lines = [line[6:] for line in advice.splitlines() if line.startswith(" " * 6)]
    (tmp_path / "models" / "till.yml").write_text("\n".join([*lines, ""]))
    after, mistakes = Dbt(tmp_path).parse()

    assert "till.sales (dbt_packages/shop/models/sources.yml of package shop)" in advice
    assert "    overrides: shop" in lines
    assert mistakes == []
    assert "of which livemart lands 1" in describe_sources(after)
    # As every message about the model says.
    assert after.models["model.shop.net"].file == "dbt_packages/shop/models/net.sql"
