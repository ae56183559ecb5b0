"""Setup on a machine that lacks something ends with one sentence and exit code 2."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = ROOT / "scripts" / "setup.py"


@pytest.fixture
def setup_module() -> ModuleType:
    spec = importlib.util.spec_from_file_location("livemart_setup", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run_setup(**environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, SCRIPT],
        env={"PATH": os.environ["PATH"]} | environment,
        capture_output=True,
        text=True,
    )


def test_a_missing_java_is_one_sentence(tmp_path: Path) -> None:
    done = run_setup(JAVA_HOME=str(tmp_path))

    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("JAVA_MISSING: ")


def test_a_wrong_java_is_one_sentence(tmp_path: Path) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n")
    java.chmod(0o755)

    done = run_setup(JAVA_HOME=str(tmp_path))

    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "found Java 11, need Java 17, 21 or 25" in done.stderr


def test_an_old_python_is_one_sentence(
    setup_module: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(setup_module, "OLDEST", (99, 0))
    monkeypatch.setattr(sys, "argv", [str(SCRIPT)])
    monkeypatch.setenv("PATH", str(tmp_path))

    code = setup_module.main()

    assert code == 2
    assert capsys.readouterr().err.startswith("PYTHON_TOO_OLD: ")


def test_a_python_without_venv_is_told_what_to_install(
    setup_module: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "python3"
    broken.write_text("#!/bin/sh\necho 'ensurepip is not available' >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(broken))
    monkeypatch.setattr(setup_module, "VENV", tmp_path / "venv")

    with pytest.raises(Exception, match="VENV_UNAVAILABLE") as caught:
        setup_module._make_venv()

    assert "python3-venv" in caught.value.hint  # type: ignore[attr-defined]


def test_an_environment_of_this_lock_is_not_made_again(
    setup_module: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stamp = tmp_path / "stamp"
    stamp.write_text(setup_module._stamp())
    monkeypatch.setattr(setup_module, "STAMP", stamp)
    monkeypatch.setattr(setup_module, "VENV_PYTHON", Path(sys.executable))

    def run(command: list[object]) -> None:
        raise AssertionError(command)

    monkeypatch.setattr(setup_module, "_run", run)

    setup_module._install()


def test_the_lock_has_hashes_and_no_addresses() -> None:
    lock = (ROOT / "requirements" / "dev.lock").read_text(encoding="utf-8")
    packages = [line for line in lock.splitlines() if "==" in line and line[0] not in " #"]

    assert len(packages) > 80
    assert all(line.endswith("\\") for line in packages)
    assert "://" not in lock
    assert "--index-url" not in lock and "--find-links" not in lock
