"""Prints the settings of a terminal for plain dbt on the project: `eval "$(livemart env)"`.

Used by the command `env`.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path

from livemart.project.profiles import find_profiles
from livemart.settings import Settings
from livemart.spark.connect import connect_url
from livemart.spark.jars import require_jars
from livemart.spark.session import session_settings
from livemart.spark.terminal import TERMINAL
from livemart.state.atomic_files import replace_file
from livemart.state.lock import who_holds
from livemart.state.places import LocalFolder
from livemart.storage.location import Location, StoragePlace

_OF_SESSION = {"warehouse", "jars", "master", "memory", "spark_conf"}


def environment_lines(settings: Settings) -> list[str]:
    """Return shell lines that prepare a terminal, each to be evaluated unchanged.

    The folder `warehouse/_livemart/conf` is written with Spark's settings. Each dbt then decides
    by itself which of the two ways it goes: its own Spark or that of a living runner.

    Raises:
        ConfigError: no project, no profiles, or no jars.
    """
    jars = require_jars(settings.jars, Location.of(settings.farthest).scheme)
    profiles = find_profiles(settings.project_dir, settings.profiles_dir)
    with_jars = settings.model_copy(update={"jars": jars[0].parent})
    variables = {
        "DBT_PROJECT_DIR": str(settings.project_dir),
        TERMINAL: with_jars.model_dump_json(include=_OF_SESSION),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_CONF_DIR": str(_write_configuration(settings.warehouse, jars, settings.memory)),
    }
    if settings.master.startswith("local"):
        variables["SPARK_LOCAL_IP"] = "127.0.0.1"
    if profiles is not None:
        variables["DBT_PROFILES_DIR"] = str(profiles)
    if settings.target is not None:
        variables["DBT_TARGET"] = settings.target
    if url := connect_url(settings.warehouse, who_holds(settings.warehouse)):
        variables["SPARK_REMOTE"] = url
    lines = [f"export {name}={shlex.quote(value)}" for name, value in variables.items()]
    if "SPARK_REMOTE" not in variables:
        lines.append("unset SPARK_REMOTE")
    # dbt finds its plugins, ours among them, on the module path.
    lines.append(_prepended("PYTHONPATH", Path(__file__).resolve().parents[2]))
    scripts = Path(sys.executable).parent
    if shutil.which("dbt") != str(scripts / "dbt"):
        lines.append(_prepended("PATH", scripts))
    return lines


def _prepended(name: str, folder: Path) -> str:
    """Return a line that puts `folder` first, once."""
    rest = [part for part in os.environ.get(name, "").split(os.pathsep) if part]
    parts = [str(folder), *(part for part in rest if part != str(folder))]
    return f"export {name}={shlex.quote(os.pathsep.join(parts))}"


def _write_configuration(warehouse: StoragePlace, jars: tuple[Path, ...], memory: str) -> Path:
    """Write `spark-defaults.conf` and `log4j2.properties`, for `pyspark` or `spark-sql` by hand."""
    folder = LocalFolder(warehouse).spark_conf
    folder.mkdir(parents=True, exist_ok=True)
    options = session_settings(warehouse, jars) | {"spark.driver.memory": memory}
    # As java.util.Properties reads a value.
    escaped = {name: value.replace("\\", "\\\\") for name, value in options.items()}
    lines = [f"{name} {value}\n" for name, value in sorted(escaped.items())]
    replace_file(folder / "spark-defaults.conf", "".join(lines))
    log4j = Path(__file__).with_name("log4j2.properties")
    replace_file(folder / "log4j2.properties", log4j.read_text())
    return folder
