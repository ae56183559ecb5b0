"""Makes the environment: .venv from the lock, the Delta jars, and the command itself.

Used by `make` before every target that needs it. It runs on a bare Python and does only what is not
done yet: a second call compares one stamp and ends.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
VENV_PYTHON = VENV / "bin" / "python"
LOCK = ROOT / "requirements" / "dev.lock"
STAMP = VENV / "livemart.stamp"
OLDEST = (3, 11)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--without-java", action="store_true", help="what unit tests need, no jars")
    options = parser.parse_args()
    if sys.version_info < OLDEST:
        return _go_on_with_newer_python()

    sys.path.insert(0, str(ROOT))
    from livemart.errors import LivemartError

    try:
        if not options.without_java:
            from livemart.spark.java import require_java

            require_java()
        _install()
        if not options.without_java:
            _require_jars()
    except LivemartError as error:
        return _stop(f"{error.code}: {error.message}; {error.hint}", error.exit_code)
    except subprocess.CalledProcessError as error:
        return _stop(
            f"setup stopped: {' '.join(map(str, error.cmd))} ended with {error.returncode}", 2
        )
    return 0


def _go_on_with_newer_python() -> int:
    """Hand over to the newest suitable interpreter on PATH, if the one that runs is too old."""
    for minor in (11, 12, 13, 14):
        newer = shutil.which(f"python3.{minor}")
        if newer:
            return subprocess.call([newer, *sys.argv])
    version = ".".join(map(str, sys.version_info[:3]))
    return _stop(
        f"PYTHON_TOO_OLD: {sys.executable} is Python {version}, need 3.11 or newer; install one, "
        "or name it: make PYTHON=/path/to/python3.11 demo",
        2,
    )


def _install() -> None:
    stamp = _stamp()
    if STAMP.is_file() and STAMP.read_text() == stamp and VENV_PYTHON.exists():
        return
    if not _is_usable(VENV_PYTHON):
        _say("making .venv")
        _make_venv()
    pip = [VENV_PYTHON, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    _say(f"installing {LOCK.relative_to(ROOT)} into .venv (once, some minutes)")
    _run([*pip, "--no-compile", "--require-hashes", "--no-deps", "-r", LOCK])
    # pip compiles one module after another; some that packages hold as samples do not compile.
    compiling = [str(VENV_PYTHON), "-m", "compileall", "-qq", "-j", "0", str(VENV / "lib")]
    subprocess.run(compiling, stdout=subprocess.DEVNULL, check=False)
    # The build backend came with the lock: nothing is downloaded to build. The clone is put on the
    # module path itself: dbt looks there for its plugins, and sees none behind an import hook.
    on_path = ["--config-settings", "editable_mode=compat"]
    _run([*pip, "--no-deps", "--no-build-isolation", *on_path, "--editable", ROOT])
    STAMP.write_text(stamp)


def _make_venv() -> None:
    made = subprocess.run(
        [sys.executable, "-m", "venv", "--clear", VENV], capture_output=True, text=True
    )
    if made.returncode:
        from livemart.errors import ConfigError

        raise ConfigError(
            "VENV_UNAVAILABLE",
            f"{sys.executable} -m venv: {(made.stdout + made.stderr).strip().splitlines()[0]}",
            hint="install Python's venv module (Debian: apt-get install python3-venv)",
        )


def _require_jars() -> None:
    from livemart.errors import ConfigError
    from livemart.spark.jars import find_jars, is_named, resolve_jars

    try:
        find_jars()
    except ConfigError:
        if is_named(None):
            raise
        _say("fetching the two Delta jars (once)")
        resolve_jars()
        find_jars()


def _stamp() -> str:
    """Return what the environment is made from: the lock, the package's metadata and its place."""
    digest = hashlib.sha256(str(ROOT).encode())
    for path in (LOCK, ROOT / "pyproject.toml"):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _is_usable(python: Path) -> bool:
    if not python.exists():
        return False
    check = f"import sys, pip; sys.exit(sys.version_info < {OLDEST})"
    return subprocess.run([python, "-c", check], capture_output=True).returncode == 0


def _run(command: list[object]) -> None:
    subprocess.run([str(part) for part in command], check=True, cwd=ROOT, env=dict(os.environ))


def _say(text: str) -> None:
    sys.stderr.write(f"setup: {text}\n")
    sys.stderr.flush()


def _stop(text: str, code: int) -> int:
    sys.stderr.write(f"{text}\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
