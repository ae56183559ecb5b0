"""Features that need an extra name it before anything starts."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from click.testing import CliRunner
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from livemart.cli.commands import cli
from livemart.errors import ConfigErrors
from livemart.extras import EXTRAS, require_extra
from livemart.settings import load_settings

_ROOT = Path(__file__).resolve().parents[2]
_EXTRAS = tomllib.loads((_ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]


def test_each_extra_is_checked_for_what_it_brings() -> None:
    users = _EXTRAS.keys() - {"dev"}
    expected = {name: [Requirement(line).name for line in _EXTRAS[name]] for name in users}

    distributions = packages_distributions()
    actual = {
        name: [canonicalize_name(distributions[module][0]) for module in modules]
        for name, modules in EXTRAS.items()
    }

    assert actual == expected


def test_the_developers_environment_has_them_all() -> None:
    assert f"livemart[{','.join(EXTRAS)}]" in _EXTRAS["dev"]
    for name in EXTRAS:
        require_extra(name)


@pytest.mark.parametrize("command", ["serve", "up", "token list"])
def test_without_the_web_server_the_command_names_the_extra(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("livemart.extras.find_spec", _absent)

    answer = CliRunner().invoke(cli, command.split())

    assert answer.exit_code == 2
    assert answer.stderr == (
        "EXTRA_MISSING: extra serve: found no fastapi, uvicorn\n"
        "  next: pip install 'livemart[serve]'\n"
    )
    assert list(tmp_path.iterdir()) == []


def _absent(name: str) -> object | None:
    return None if name in ("fastapi", "uvicorn") else object()


# dbt-core needs Jinja and Babel, too.
_ENGINE = """
import importlib, pkgutil, sys
import livemart
for name in {absent}:
    sys.modules[name] = None
loaded = []
for module in pkgutil.walk_packages(livemart.__path__, "livemart."):
    if not module.name.startswith(("livemart.serve", "livemart.store", "livemart.publish")):
        loaded.append(importlib.import_module(module.name).__name__)
from livemart.publish.publications import Publications
from livemart.settings import load_settings
print(len(loaded), load_settings({{}}, environ={{}}).store_url)
"""


def test_the_engine_is_there_without_what_serves() -> None:
    absent = sorted(set(EXTRAS["serve"]) - {"jinja2", "babel"})

    said = subprocess.run(
        [sys.executable, "-c", _ENGINE.format(absent=absent)], capture_output=True, text=True
    )

    assert said.stderr == ""
    count, _, url = said.stdout.strip().partition(" ")
    assert int(count) > 150
    assert url == "None"


def test_a_store_that_nothing_can_open_is_a_wrong_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("livemart.extras.find_spec", _absent)

    with pytest.raises(ConfigErrors, match="WRONG_SETTING") as caught:
        load_settings({"store": "postgresql://owner@host/mart"}, environ={})

    assert caught.value.hint == "pip install 'livemart[serve]', or write none"
