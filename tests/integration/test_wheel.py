"""The wheel and the sdist hold all that livemart needs, nothing else, and work without a clone."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import urllib.error
import urllib.request
import zipfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from livemart.extras import EXTRAS
from livemart.spark.jars import jar_cache
from tests.commands import Running
from tests.integration.starter_orders import orders_by_shop

ROOT = Path(__file__).resolve().parents[2]
_FILES = ("pyproject.toml", "README.md", "LICENSE", "dbt_livemart.py", "runner.py")
_FOLDERS = ("livemart", "demo", "bench", "scripts", "models")
_BUILD = (
    "import sys; from setuptools import build_meta;"
    "print(getattr(build_meta, sys.argv[1])(sys.argv[2]), file=sys.stderr)"
)


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sdist, built from a copy: a build leaves folders behind."""
    folder = tmp_path_factory.mktemp("sdist")
    clone = folder / "clone"
    clone.mkdir()
    for name in _FILES:
        shutil.copy(ROOT / name, clone / name)
    for name in _FOLDERS:
        ignored = shutil.ignore_patterns("__pycache__", "target")
        shutil.copytree(ROOT / name, clone / name, ignore=ignored)
    return _built(clone, "build_sdist", folder)


@pytest.fixture(scope="module")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from the sdist as `pip install` of the sdist does."""
    folder = tmp_path_factory.mktemp("wheel")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    return _built(folder / sdist.name.removesuffix(".tar.gz"), "build_wheel", folder)


def _built(project: Path, hook: str, folder: Path) -> Path:
    _run([sys.executable, "-c", _BUILD, hook, folder], project)
    suffix = ".whl" if hook == "build_wheel" else ".tar.gz"
    return next(path for path in folder.iterdir() if path.name.endswith(suffix))


def _run(command: Sequence[object], folder: Path, **environment: str) -> str:
    """Return the output of a command that knows nothing of this process's environment."""
    ran = subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
    )
    assert ran.returncode == 0, ran.stdout
    return ran.stdout


def test_the_wheel_holds_the_package_as_it_is_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    in_clone = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "livemart").rglob("*")
        if path.is_file() and not {"__pycache__", "target", "logs"} & set(path.parts)
    }

    assert names == in_clone | {"dbt_livemart.py"}
    assert {
        "livemart/py.typed",
        "livemart/spark/log4j2.properties",
        "livemart/project/clock_macros/dbt_project.yml",
        "livemart/project/spark_macros/macros/storage.sql",
        "livemart/serve/page/templates/page.html",
        "livemart/serve/page/static/page.js",
        "livemart/starter/shop/dbt_project.yml",
        "livemart/starter/shop/gitignore",
    } <= names


def test_the_sdist_holds_what_the_wheel_is_built_from(sdist: Path, wheel: Path) -> None:
    with tarfile.open(sdist) as archive:
        in_sdist = {name.partition("/")[2] for name in archive.getnames()}
    with zipfile.ZipFile(wheel) as archive:
        in_wheel = {name for name in archive.namelist() if ".dist-info/" not in name}

    assert in_wheel <= in_sdist
    assert {"pyproject.toml", "README.md", "LICENSE"} <= in_sdist
    assert not any(name.startswith(("tests/", "demo/", "bench/", "models/")) for name in in_sdist)


def test_the_metadata_name_pythons_and_extras(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith("/METADATA"))
        lines = archive.read(name).decode().partition("\n\n")[0].splitlines()

    assert "Requires-Python: >=3.11" in lines
    for minor in (11, 12, 13):
        assert f"Classifier: Programming Language :: Python :: 3.{minor}" in lines
    offered = {line.split()[1] for line in lines if line.startswith("Provides-Extra: ")}
    assert offered == EXTRAS.keys() | {"dev"}
    # An engine without them has none of their packages.
    required = [line for line in lines if line.startswith("Requires-Dist: ")]
    for package in ("uvicorn", "sqlalchemy"):
        (line,) = [line for line in required if f" {package}" in line]
        assert "extra ==" in line


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with the wheel; what it depends on is this environment's."""
    environment = tmp_path_factory.mktemp("fresh") / "venv"
    _run([sys.executable, "-m", "venv", "--without-pip", environment], environment.parent)
    pip = [sys.executable, "-m", "pip", "--python", environment / "bin" / "python"]
    quiet = ["--quiet", "--no-deps", "--no-index", "--disable-pip-version-check"]
    _run([*pip, "install", *quiet, wheel], environment.parent)
    packages = next(environment.glob("lib/python*/site-packages"))
    (packages / "rest.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return environment


def test_the_command_works_without_a_clone(installed: Path, tmp_path: Path) -> None:
    python = installed / "bin" / "python"
    for command in ([installed / "bin" / "livemart"], [python, "-m", "livemart"]):
        assert _run([*command, "--version"], tmp_path) == "livemart, version 0.1.0\n"
    place = _run([python, "-c", "import livemart; print(livemart.__file__)"], tmp_path)

    assert place.startswith(str(installed))


# 40 s.
@pytest.mark.processes
def test_a_first_project_is_planned_and_served_and_its_page_follows(
    installed: Path, tmp_path: Path
) -> None:
    livemart, project = installed / "bin" / "livemart", tmp_path / "my shop"
    # No home that could be written: what is kept for a user is then done without.
    environment = {"HOME": "/dev/null/home", "LIVEMART_JARS": str(jar_cache())}
    environment["LIVEMART_JVM_OPTIONS"] = os.environ["LIVEMART_JVM_OPTIONS"]

    _run([livemart, "init", project.name], tmp_path, **environment)
    planned = _run([livemart, "plan"], project, **environment)

    assert re.search(r"^shop_top_products +region ", planned, re.MULTILINE)
    assert not (project / "warehouse").exists()
    command = [str(livemart), "up", "--every", "1s", "--port", "0"]
    environment["PATH"] = os.environ["PATH"]
    up = Running(command, project, environment, tmp_path / "up.log")
    try:
        up.wait_until(lambda: "serving http://127.0.0.1:" in up.output())
        address = re.findall(r"serving (http://\S+)/", up.output())[0]
        counts = orders_by_shop(project)
        up.wait_until(lambda: _served_orders(address) == counts)
        with urllib.request.urlopen(f"{address}/", timeout=60) as page:
            assert b"/models/shop_top_products" in page.read()

        _run([sys.executable, "deliver.py"], project)

        assert orders_by_shop(project) != counts
        up.wait_until(lambda: _served_orders(address) == orders_by_shop(project))
        assert up.stop() == 143
    finally:
        up.kill()


def _served_orders(address: str) -> Mapping[str, int]:
    """Return the orders of each shop that the API knows of; none as long as it knows no model."""
    counts: Counter[str] = Counter()
    try:
        with urllib.request.urlopen(f"{address}/v1/models/shop_hours", timeout=60) as answer:
            for row in json.load(answer)["rows"]:
                counts[row["shop_id"]] += row["order_count"]
    except urllib.error.HTTPError:
        return {}
    return counts


@pytest.mark.parametrize("version", ["3.12", "3.13"])
def test_a_newer_python_compiles_every_module(version: str, wheel: Path, tmp_path: Path) -> None:
    python = _python(version)
    if python is None:
        pytest.skip(f"no Python {version} on this machine")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)

    _run([python, "-W", "error", "-m", "compileall", "-q", tmp_path], tmp_path)


# 5 minutes each: PySpark comes as its source alone.
@pytest.mark.extended
@pytest.mark.processes
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13"])
def test_pip_installs_it_with_all_it_needs_and_a_first_project_is_built(
    version: str, wheel: Path, tmp_path: Path
) -> None:
    python = sys.executable if sys.version.startswith(version) else _python(version)
    if python is None:
        pytest.skip(f"no Python {version} on this machine")
    pins = re.findall(
        r"^([\w.\[\]-]+==[^\\\n]+?) \\$",
        (ROOT / "requirements" / "dev.lock").read_text(encoding="utf-8"),
        re.M,
    )
    assert len(pins) > 100
    (tmp_path / "pins.txt").write_text("".join(f"{pin}\n" for pin in pins))
    _run([python, "-m", "venv", "--without-pip", "venv"], tmp_path)
    pip = [sys.executable, "-m", "pip", "--python", tmp_path / "venv" / "bin" / "python"]
    # Its index and proxy may be in the environment.
    _run(
        [*pip, "install", "--quiet", "-c", "pins.txt", f"{wheel}[serve]"],
        tmp_path,
        **{name: text for name, text in os.environ.items() if name not in ("PATH", "HOME")},
        PIP_CACHE_DIR=str(Path.home() / ".cache" / "pip"),
    )
    livemart, environment = tmp_path / "venv" / "bin" / "livemart", {"HOME": str(tmp_path)}

    _run([livemart, "init", "shop"], tmp_path, **environment)
    # The jars are fetched by this very command.
    built = _run([livemart, "build"], tmp_path / "shop", **environment, **_proxies())

    assert "snapshot_published" in built


def _proxies() -> dict[str, str]:
    names = ("HTTPS_PROXY", "https_proxy", "LIVEMART_IVY_SETTINGS", "JAVA_HOME")
    return {name: os.environ[name] for name in names if name in os.environ}


def _python(version: str) -> str | None:
    """Return the interpreter of a version, also one that pyenv keeps; None if there is none."""
    shim = shutil.which(f"python{version}")
    if shim is None:
        return None
    said = subprocess.run(
        [shim, "-c", "import sys; print(sys.executable)"],
        env={**os.environ, "PYENV_VERSION": version},
        capture_output=True,
        text=True,
    )
    return said.stdout.strip() if said.returncode == 0 else None
