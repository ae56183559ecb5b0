from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from livemart.settings import Settings
from livemart.spark import env
from livemart.spark.env import environment_lines

_JAFFLE = Path(__file__).parents[2] / "projects" / "jaffle"


@pytest.fixture(autouse=True)
def jars(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tier without Spark needs no jars."""
    monkeypatch.setattr(
        env, "require_jars", lambda folder, scheme: (Path("/jars/a.jar"), Path("/jars/b.jar"))
    )


def _evaluated(settings: Settings, **environment: str) -> dict[str, str]:
    """Return the environment of a shell that evaluated the lines."""
    lines = "\n".join(environment_lines(settings))
    dump = f"{sys.executable} -c 'import json, os; print(json.dumps(dict(os.environ)))'"
    ran = subprocess.run(
        ["sh", "-eu", "-c", f'eval "$LINES"\n{dump}'],
        env={**os.environ, **environment, "LINES": lines},
        capture_output=True,
        text=True,
        check=True,
    )
    return dict(json.loads(ran.stdout))


def test_the_shell_reads_every_value_as_it_was_written(tmp_path: Path) -> None:
    warehouse = tmp_path / 'Joe\'s $HOME `x` "w"'
    project = tmp_path / "my project; true"
    shutil.copytree(_JAFFLE, project, ignore=shutil.ignore_patterns("target"))
    settings = Settings(project_dir=project, warehouse=warehouse, target="dev")

    actual = _evaluated(settings, SPARK_REMOTE="sc://gone:1")

    assert actual["DBT_PROJECT_DIR"] == str(project)
    assert actual["DBT_PROFILES_DIR"] == str(project)
    assert actual["DBT_TARGET"] == "dev"
    assert json.loads(actual["LIVEMART_DBT"])["warehouse"] == str(warehouse)
    assert "SPARK_REMOTE" not in actual


def test_the_spark_configuration_names_jars_catalog_and_warehouse(tmp_path: Path) -> None:
    settings = Settings(project_dir=_JAFFLE, warehouse=tmp_path)

    folder = Path(_evaluated(settings)["SPARK_CONF_DIR"])

    lines = (folder / "spark-defaults.conf").read_text().splitlines()
    options = dict(line.split(" ", 1) for line in lines)
    assert options["spark.driver.extraClassPath"] == "/jars/a.jar:/jars/b.jar"
    assert options["spark.sql.warehouse.dir"] == str(tmp_path)
    assert options["spark.sql.catalogImplementation"] == "in-memory"
    assert (folder / "log4j2.properties").is_file()


def test_the_module_path_is_not_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings(project_dir=_JAFFLE, warehouse=tmp_path)
    root = str(Path(env.__file__).parents[2])
    monkeypatch.setenv("PYTHONPATH", "/theirs")

    once = _evaluated(settings)["PYTHONPATH"]
    monkeypatch.setenv("PYTHONPATH", once)
    twice = _evaluated(settings)["PYTHONPATH"]

    assert once == twice == f"{root}:/theirs"
