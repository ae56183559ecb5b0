"""Whatever a project is compiled and planned from changes its digest, and nothing else does."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from livemart.run.input_files import project_files
from livemart.run.project_cache import inputs
from livemart.run.project_cache.inputs import environment_names, project_digest
from livemart.settings import load_settings

_FILES = {
    "dbt_project.yml": "name: m\nprofile: m\n",
    "profiles.yml": "m: {schema: \"{{ env_var('SHOP_SCHEMA', '') }}\"}\n",
    "selectors.yml": "selectors: []\n",
    "models/totals.sql": "select 1 as n",
    "models/totals.yml": "models: [{name: totals}]\n",
    "macros/cents.sql": "{% macro cents() %}100{% endmacro %}",
    "seeds/rates.csv": "currency,rate\nEUR,1\n",
    "dbt_packages/utils/macros/star.sql": "{% macro star() %}*{% endmacro %}",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in _FILES.items():
        path = tmp_path / "project" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def _digest(folder: Path, **flags: object) -> str | None:
    places = {"project_dir": folder / "project", "warehouse": folder / "warehouse"}
    settings = load_settings({**places, **flags}, environ={})
    look = project_files(settings).look()
    return project_digest(settings, look)


@pytest.mark.parametrize("name", sorted(_FILES))
def test_an_edit_of_a_file_is_noticed(folder: Path, name: str) -> None:
    before, path = _digest(folder), folder / "project" / name

    seen = path.stat()
    path.write_text(path.read_text().swapcase())
    os.utime(path, ns=(seen.st_atime_ns, seen.st_mtime_ns))

    assert _digest(folder) != before


def test_a_file_that_comes_or_goes_is_noticed(folder: Path) -> None:
    before = _digest(folder)

    (folder / "project" / "models" / "new.sql").write_text("")
    came = _digest(folder)
    (folder / "project" / "models" / "new.sql").unlink()
    (folder / "project" / "models" / "totals.yml").unlink()

    assert len({before, came, _digest(folder)}) == 3


@pytest.mark.parametrize("name", ["SHOP_SCHEMA", "DBT_TARGET", "DBT_ENV_CUSTOM_ENV_TEAM"])
def test_a_variable_that_is_read_is_noticed(
    folder: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.delenv(name, raising=False)
    without = _digest(folder)
    monkeypatch.setenv(name, "a")
    one = _digest(folder)
    monkeypatch.setenv(name, "b")

    assert len({without, one, _digest(folder)}) == 3


@pytest.mark.parametrize(
    "flags",
    [
        {"vars": {"a": 1}},
        {"target": "prod"},
        {"profiles_dir": "elsewhere"},
        {"target_path": "elsewhere"},
        {"warehouse": "other"},
    ],
    ids=str,
)
def test_what_the_command_line_says_of_the_project_is_noticed(
    folder: Path, flags: dict[str, object]
) -> None:
    folder.joinpath("elsewhere").mkdir()
    folder.joinpath("elsewhere", "profiles.yml").write_text(_FILES["profiles.yml"])
    paths = {name: folder / it if isinstance(it, str) else it for name, it in flags.items()}

    assert _digest(folder, **paths if "target" not in flags else flags) != _digest(folder)


def test_another_python_or_package_is_noticed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = folder / "site-packages"
    (installed / "dbt_core-1.11.2.dist-info").mkdir(parents=True)
    monkeypatch.syspath_prepend(installed)
    before = _digest(folder)

    (installed / "dbt_core-1.11.2.dist-info").rename(installed / "dbt_core-1.11.3.dist-info")
    other_package = _digest(folder)
    monkeypatch.setattr(sys, "version", "3.99.0 (main)")

    assert len({before, other_package, _digest(folder)}) == 3


@pytest.mark.parametrize("name", ["plan/planner.py", "project/clock_macros/macros/as_of.sql"])
def test_another_state_of_this_package_is_noticed(
    folder: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    path = folder / "package" / name
    path.parent.mkdir(parents=True)
    path.write_text("1")
    monkeypatch.setattr(inputs, "_PACKAGE", folder / "package")
    before = _digest(folder)

    path.write_text("12")

    assert _digest(folder) != before


def _touch(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.utime(folder / "project" / "models" / "totals.sql", (1, 1))


def _set_other(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDITOR", "another")


def _write_result(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "project" / "target").mkdir(exist_ok=True)
    (folder / "project" / "target" / "manifest.json").write_text("{}")


@pytest.mark.parametrize("change", [_touch, _set_other, _write_result])
def test_what_makes_no_other_project_is_none(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[Path, pytest.MonkeyPatch], None],
) -> None:
    before = _digest(folder)

    change(folder, monkeypatch)

    assert _digest(folder) == before


def test_variables_are_found_by_name_or_are_not_known(tmp_path: Path) -> None:
    one, other = tmp_path / "one.sql", tmp_path / "other.yml"
    one.write_text("{{ env_var('B') }} {{ env_var(\"A\", 'x') }}")
    other.write_text("x: 1")

    assert environment_names(map(str, (one, other))) == {"A", "B"}

    for computed in ("name", "'A_' ~ target.name", "'A' if x else 'B'", "'a'|upper"):
        other.write_text(f"{{{{ env_var({computed}) }}}}")
        assert environment_names(map(str, (one, other))) is None
