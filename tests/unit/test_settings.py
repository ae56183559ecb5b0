"""Flags, then environment, then livemart.yml, then defaults; all mistakes at once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from livemart.delta.properties import RETENTION
from livemart.delta.tags import Tag
from livemart.delta.warehouse import Warehouse
from livemart.errors import ConfigError, ConfigErrors
from livemart.settings import Selection, Settings, load_settings
from livemart.storage.location import Location
from tests.storages import memory_place  # noqa: F401


def test_a_flag_wins_over_the_environment_over_the_file_over_the_default(tmp_path: Path) -> None:
    (tmp_path / "livemart.yml").write_text("every: 1m\npane: 2m\nmemory: 1g\n")
    environ = {"LIVEMART_EVERY": "10m", "LIVEMART_PANE": "3m"}
    expected = (timedelta(minutes=20), timedelta(minutes=3), "1g", 100_000)

    found = load_settings({"every": "20m"}, environ=environ, directory=tmp_path)

    assert (found.every, found.pane, found.memory, found.small_lane_rows) == expected


def test_paths_of_flags_start_from_the_working_folder_those_of_the_file_from_its_own(
    tmp_path: Path,
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "livemart.yml").write_text("warehouse: wh\n")

    found = load_settings(
        {"project_dir": "project", "landing": "in"}, environ={}, directory=tmp_path
    )

    assert found.project_dir == project
    assert found.warehouse == project / "wh"
    assert found.landing == tmp_path / "in"


def test_defaults_lie_below_the_working_folder(tmp_path: Path) -> None:
    found = load_settings({}, environ={}, directory=tmp_path)

    assert (found.warehouse, found.landing) == (tmp_path / "warehouse", tmp_path / "landing")


@pytest.mark.parametrize("name", ["a%2Fb", "[eu]", "a^b", "a|b", "a\\b", "a\nb", "\udcff"])
def test_a_warehouse_whose_path_deltalake_reads_otherwise_is_refused(
    name: str, tmp_path: Path
) -> None:
    # deltalake 1.6.6 decodes %2F twice, so that `%252F` is a slash as well. It fails at a
    # bracket, spelled %5B or not: no spelling of such a path is read as it is.
    with pytest.raises(ConfigErrors, match=r"--warehouse: found .*\n.*take a folder without"):
        load_settings({"warehouse": name}, environ={}, directory=tmp_path)


@pytest.mark.parametrize("name", ["a b", "a#b?c&d", "a%", "100%zz", "a+b:c", "größe 日本", "{a*}'"])
def test_a_warehouse_may_have_signs_that_deltalake_reads_as_they_are(
    name: str, tmp_path: Path
) -> None:
    settings = load_settings({"warehouse": name}, environ={}, directory=tmp_path)
    warehouse = Warehouse(settings.warehouse)
    rows = pa.table({"n": [1, 2]})

    warehouse.create("mart.numbers", rows.schema)
    warehouse.overwrite("mart.numbers", rows, Tag("app", 1))

    assert warehouse.read("mart.numbers").num_rows == 2
    assert (tmp_path / name / "mart" / "numbers" / "_delta_log").is_dir()


@pytest.mark.parametrize(
    "flags, said",
    [
        ({"landing": "s3://mart/a:b"}, "--landing: found 's3://mart/a:b'"),
        ({"landing": "gs://mart/landing"}, "--landing: found 'gs://mart/landing'"),
        ({"project_dir": "s3://mart/project"}, "--project-dir: found 's3://mart/project'"),
        ({"jars": "s3://mart/jars"}, "--jars: found 's3://mart/jars'"),
        ({"warehouse": "gs://mart/eu"}, "--warehouse: found 'gs://mart/eu'"),
        ({"warehouse": "abfss://mart@eu"}, "--warehouse: found 'abfss://mart@eu'"),
        ({"warehouse": "s3://mart/a%41"}, "--warehouse: found 's3://mart/a%41'"),
        ({"warehouse": "s3://key:secret@mart/eu"}, r"found 's3://key:\*\*\*@mart/eu'"),
        ({"warehouse": "s3://mart/eu?sig=secret"}, "found 's3://mart/eu'"),
    ],
)
def test_a_url_that_cannot_be_used_is_refused_without_its_secret(
    flags: dict[str, object], said: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigErrors, match=said) as caught:
        load_settings(flags, environ={}, directory=tmp_path)

    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("lacks, said", [("obstore", "pip install"), ("a key", "set AWS_ACCESS_")])
def test_what_a_bucket_needs_is_missed_with_all_other_mistakes(
    lacks: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID", raising=False)
    if lacks == "obstore":
        monkeypatch.setattr("livemart.extras.find_spec", lambda name: None)

    with pytest.raises(ConfigErrors) as caught:
        load_settings({"warehouse": "s3://mart", "every": "soon"}, environ={}, directory=tmp_path)

    hints = [error.hint for error in caught.value.errors]
    assert len(hints) == 2
    assert any(hint.startswith(said) for hint in hints)


def test_a_warehouse_may_be_in_a_bucket(
    tmp_path: Path,
    memory_place: Location,  # noqa: F811
) -> None:
    settings = load_settings({"warehouse": "s3://mart/eu/"}, environ={}, directory=tmp_path)

    assert settings.warehouse == memory_place
    assert str(tmp_path) not in str(settings.store_url)
    assert settings.model_dump(mode="json")["warehouse"] == "s3://mart/eu"


def test_an_instant_without_a_zone_is_utc(tmp_path: Path) -> None:
    expected = datetime(2026, 3, 1, 11, tzinfo=UTC)

    bare = load_settings({"as_of": "2026-03-01T11:00:00"}, environ={}, directory=tmp_path)
    zoned = load_settings({"as_of": "2026-03-01T12:00:00+01:00"}, environ={}, directory=tmp_path)

    assert (bare.as_of, zoned.as_of) == (expected, expected)


@pytest.mark.parametrize("text", ["2026-03-01", "20260301", "2026-03-01T00:00:00.000000000Z"])
def test_an_instant_in_the_file_is_read_as_on_the_command_line(text: str, tmp_path: Path) -> None:
    (tmp_path / "livemart.yml").write_text(f"as_of: {text}\n")

    in_file = load_settings({}, environ={}, directory=tmp_path)
    given = load_settings({"as_of": text}, environ={}, directory=tmp_path)

    assert in_file.as_of == given.as_of == datetime(2026, 3, 1, tzinfo=UTC)


@pytest.mark.parametrize("text", ["2026-03-01T12:00:00.1234567Z", "1772000000", "{a: 1}"])
def test_an_instant_in_the_file_is_neither_cut_nor_guessed(text: str, tmp_path: Path) -> None:
    (tmp_path / "livemart.yml").write_text(f"as_of: {text}\n")

    with pytest.raises(ConfigErrors, match=r"livemart\.yml:1: as_of: found [0-9'{]"):
        load_settings({}, environ={}, directory=tmp_path)


def test_an_instant_of_a_merged_mapping_is_utc(tmp_path: Path) -> None:
    (tmp_path / "livemart.yml").write_text("<<: {as_of: 2026-03-01T12:00:00}\n")

    merged = load_settings({}, environ={}, directory=tmp_path)

    assert merged.as_of == datetime(2026, 3, 1, 12, tzinfo=UTC)


def test_a_day_of_no_calendar_is_a_mistake_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "livemart.yml").write_text("vars: {since: 2026-02-30}\n")

    with pytest.raises(ConfigErrors, match=r"livemart\.yml: day .* month"):
        load_settings({}, environ={}, directory=tmp_path)


@pytest.mark.parametrize("text", ["x 3", "- a", "{a: "])
def test_vars_that_are_no_mapping_are_told_what_to_write(text: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigErrors) as caught:
        load_settings({"vars": text}, environ={}, directory=tmp_path)

    (error,) = caught.value.errors
    assert error.message.startswith(f"--vars: found {text!r}")
    assert error.hint.startswith("write a YAML mapping, such as 'name: value'")


@pytest.mark.parametrize("named", ["DBT_TARGET_PATH", "LIVEMART_TARGET_PATH"])
def test_dbts_variable_names_the_folder_of_artifacts(named: str, tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "livemart.yml").write_text("target_path: written\n")
    flags = {"project_dir": "shop"}

    settings = load_settings(flags, environ={named: "built"}, directory=tmp_path)

    # dbt's own starts from the project, as everything in it does.
    folder = tmp_path / "shop" if named.startswith("DBT") else tmp_path
    assert settings.target_path == folder / "built"


def test_variables_are_a_yaml_mapping(tmp_path: Path) -> None:
    found = load_settings({"vars": "{hours: [1, 2]}"}, environ={}, directory=tmp_path)

    assert found.vars == {"hours": [1, 2]}


def test_a_working_folder_that_is_gone_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()

    with pytest.raises(ConfigError, match="WRONG_SETTING: the working folder was removed"):
        load_settings({}, environ={})


def test_properties_of_spark_are_texts_wherever_they_are_written(tmp_path: Path) -> None:
    written = "{spark.executor.cores: 2, spark.dynamicAllocation.enabled: true}"
    (tmp_path / "livemart.yml").write_text(f"spark_conf: {written}\n")
    expected = {"spark.executor.cores": "2", "spark.dynamicAllocation.enabled": "true"}

    in_file = load_settings({}, environ={}, directory=tmp_path)
    by_flag = load_settings({"spark_conf": written}, environ={}, directory=tmp_path / "other")

    assert in_file.spark_conf == by_flag.spark_conf == expected
    assert "executor" not in repr(in_file)


@pytest.mark.parametrize(
    ("conf", "hint"),
    [
        ("executor.memory: 2g", "write names of Spark's properties, such as spark.executor.memory"),
        ("spark.executor.memory: [s3cret]", "write a text, a number, true or false for spark.exec"),
        ("spark.driver.memory: 8g", "leave out spark.driver.memory: set `memory` instead"),
        ("spark.sql.ansi.enabled: s3cret", "leave out spark.sql.ansi.enabled: livemart sets it"),
    ],
)
def test_a_property_that_no_project_may_set_is_refused_without_its_value(
    conf: str, hint: str, tmp_path: Path
) -> None:
    for flags in ({"spark_conf": conf}, {}):
        (tmp_path / "livemart.yml").write_text("" if flags else f"spark_conf: {{{conf}}}\n")
        with pytest.raises(ConfigErrors) as caught:
            load_settings(flags, environ={}, directory=tmp_path)

        (error,) = caught.value.errors
        assert error.code == "WRONG_SETTING"
        assert error.hint.startswith(hint)
        assert "s3cret" not in str(error)


def test_all_mistakes_are_reported_at_once_with_place_and_nearest_word(tmp_path: Path) -> None:
    (tmp_path / "livemart.yml").write_text("pane: 5m\nclok: wall\nmemory: lots\n")
    environ = {"LIVEMART_WAREHOSE": "/x", "LIVEMART_LANE": "smal"}

    with pytest.raises(ConfigErrors) as raised:
        load_settings({"every": "soon"}, environ=environ, directory=tmp_path)

    text = str(raised.value)
    assert len(raised.value.errors) == 5
    assert "UNKNOWN_SETTING: environment: found LIVEMART_WAREHOSE" in text
    assert "livemart.yml:2: clok: unknown setting, did you mean clock?" in text
    assert "WRONG_SETTING: livemart.yml:3: memory: found 'lots'" in text
    assert "WRONG_SETTING: LIVEMART_LANE: found 'smal', did you mean small?" in text
    assert "WRONG_SETTING: --every: found 'soon'" in text


def test_a_selector_stands_alone(tmp_path: Path) -> None:
    flags = {"selector": "nightly", "exclude": ("orders",)}

    with pytest.raises(ConfigErrors) as raised:
        load_settings(flags, environ={}, directory=tmp_path)

    (error,) = raised.value.errors
    assert error.message == "--selector: found 'nightly' beside --exclude orders"
    assert load_settings({"selector": "nightly"}, environ={}).selector == "nightly"


def test_a_state_is_a_folder_that_holds_a_manifest(tmp_path: Path) -> None:
    with pytest.raises(ConfigErrors, match=r"--state: found .*earlier"):
        load_settings({"state": "earlier"}, environ={}, directory=tmp_path)
    (tmp_path / "earlier").mkdir()
    (tmp_path / "earlier" / "manifest.json").touch()
    flags = {"state": "earlier", "select": ("state:modified+",)}

    settings = load_settings(flags, environ={}, directory=tmp_path)

    assert settings.selection.arguments == [
        *("--select", "state:modified+"),
        *("--state", str(tmp_path / "earlier")),
    ]
    assert not Selection(state=tmp_path)


def test_variables_of_other_programs_are_left_alone(tmp_path: Path) -> None:
    environ = {"LIVEMART_IVY_SETTINGS": "/x", "LIVEMART_FAILPOINT": "batch.end"}

    assert load_settings({}, environ=environ, directory=tmp_path).pane == timedelta(minutes=5)


def test_a_file_that_is_no_mapping_is_a_mistake(tmp_path: Path) -> None:
    (tmp_path / "livemart.yml").write_text("- every\n")

    with pytest.raises(ConfigErrors, match=r"livemart.yml:1: found list"):
        load_settings({}, environ={}, directory=tmp_path)


def test_a_file_that_is_no_yaml_is_a_mistake(tmp_path: Path) -> None:
    (tmp_path / "livemart.yml").write_text("every: [\n")

    with pytest.raises(ConfigErrors, match="WRONG_SETTING"):
        load_settings({}, environ={}, directory=tmp_path)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("none", None),
        ("sqlite:///served.db", "sqlite:////start/served.db"),
        ("sqlite:////var/served.db", "sqlite:////var/served.db"),
        ("postgresql://joe@db/sales", "postgresql+psycopg://joe@db/sales"),
        ("postgresql+psycopg://joe@db/sales", "postgresql+psycopg://joe@db/sales"),
    ],
)
def test_a_store_is_a_file_a_database_or_none(given: str, expected: str | None) -> None:
    found = load_settings({"store": given}, environ={}, directory=Path("/start"))

    assert found.store_url == expected


def test_the_store_lies_in_the_warehouse_by_default(tmp_path: Path) -> None:
    found = load_settings({"warehouse": "wh"}, environ={}, directory=tmp_path)

    assert found.store_url == f"sqlite:///{tmp_path}/wh/_livemart/serving.db"


def test_a_password_is_not_shown(tmp_path: Path) -> None:
    url = "mysql://joe:s3cret@db/sales"

    with pytest.raises(ConfigErrors) as raised:
        load_settings({"store": url}, environ={}, directory=tmp_path)
    settings = load_settings(
        {"store": "postgresql://joe:s3cret@db/sales"}, environ={}, directory=tmp_path
    )

    assert "mysql://joe:***@db/sales" in str(raised.value)
    assert "s3cret" not in str(raised.value) + repr(settings)


def test_settings_of_serving_are_checked_like_all_others(tmp_path: Path) -> None:
    flags = {"port": "70000", "tenant_column": "a; drop", "public_url": "sales", "session_hours": 0}

    with pytest.raises(ConfigErrors) as raised:
        load_settings(flags, environ={}, directory=tmp_path)

    assert [error.code for error in raised.value.errors] == ["WRONG_SETTING"] * len(flags)


def test_an_empty_variable_of_a_path_is_none(tmp_path: Path) -> None:
    settings = load_settings({}, environ={"LIVEMART_JARS": ""}, directory=tmp_path)

    assert settings.jars is None


def test_a_secret_that_is_wrong_is_not_shown(tmp_path: Path) -> None:
    with pytest.raises(ConfigErrors) as raised:
        load_settings({}, environ={"LIVEMART_SESSION_KEY": "too short"}, directory=tmp_path)
    held = load_settings({}, environ={"LIVEMART_SESSION_KEY": "s" * 32}, directory=tmp_path)

    assert "LIVEMART_SESSION_KEY: found '9 characters'" in str(raised.value)
    assert "too short" not in str(raised.value) and "s" * 32 not in repr(held)


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ({}, timedelta(hours=24)),
        ({"retention": "30 days"}, timedelta(hours=24)),
        ({"retention": "2h"}, timedelta(hours=2)),
        ({"retention": "2h", "change_retention": "3 days"}, timedelta(days=3)),
    ],
)
def test_changes_are_kept_for_a_day_within_the_retention_unless_set(
    flags: dict[str, str], expected: timedelta, tmp_path: Path
) -> None:
    settings = load_settings(flags, environ={}, directory=tmp_path)

    assert settings.kept_changes == expected


def test_tables_are_made_with_the_usual_retention() -> None:
    assert Settings().retention == RETENTION


@pytest.mark.parametrize(
    ("given", "expected"), [(None, None), ("512m", 512 << 20), ("2g", 2 << 30), ("0m", 0)]
)
def test_the_cache_is_given_in_megabytes_or_gigabytes(
    given: str | None, expected: int | None, tmp_path: Path
) -> None:
    assert load_settings({"cache": given}, environ={}, directory=tmp_path).cache_bytes == expected
    with pytest.raises(ConfigErrors, match=r"--cache.*'5 GB'"):
        load_settings({"cache": "5 GB"}, environ={}, directory=tmp_path)


def test_a_path_that_the_user_does_not_name_is_no_named_setting(tmp_path: Path) -> None:
    (tmp_path / "livemart.yml").write_text("landing: arriving\n")

    settings = load_settings({"warehouse": "w"}, environ={}, directory=tmp_path)

    assert settings.model_fields_set == {"warehouse", "landing"}
    assert settings.project_dir == tmp_path


@pytest.mark.parametrize(
    ("name", "value", "step"),
    [
        ("as_of", "yesterday", "next: write a time, such as 2026-03-01T12:00"),
        ("as_of", "0001-01-01T00:00+14:00", "next: write a time, such as 2026-03-01T12:00"),
        ("memory", "3 GB", "next: write a size, such as 512m or 3g"),
        ("cache", "1gb", "next: write a size, such as 512m or 3g"),
        ("tenant_column", "shop id", "next: write the name of a column"),
        ("public_url", "shop.example", "next: write an address, such as https://"),
    ],
)
def test_a_value_of_no_known_form_is_answered_with_an_example(
    name: str, value: str, step: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigErrors) as caught:
        load_settings({name: value}, environ={}, directory=tmp_path)

    assert f"--{name.replace('_', '-')}: found {value!r}" in str(caught.value)
    assert step in str(caught.value)


@pytest.mark.parametrize("name", ["warehouse", "landing", "project_dir", "profiles_dir"])
def test_a_file_in_the_place_of_a_folder_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").touch()

    with pytest.raises(ConfigErrors, match="next: name a folder: a file of this name exists"):
        load_settings({name: "notes.txt"}, environ={}, directory=tmp_path)
