"""Computes a digest of everything that a project is compiled and planned from.

Used by the cache of the compiled project, and by `refresh` to see whether there is anything to do.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from livemart.run.input_files import Look
from livemart.settings import Settings

_ENV_VAR = re.compile(r"""\benv_var\b(?:\s*\(\s*(['"])(?P<name>\w+)\1\s*[,)])?""")
_ASKING = (".sql", ".yml", ".yaml")
# Larger ones are known by size and time.
_READ_BYTES = 1 << 20
# Settings that dbt and the planner get beside the files. Macros know the warehouse's path.
_SETTINGS = {"project_dir", "profiles_dir", "target_path", "target", "vars", "warehouse"}
_INSTALLED = (".dist-info", ".egg-info")
# This package's files: its code, and the macros that it gives to dbt.
_PACKAGE = Path(__file__).parents[2]
_CODE = (".py", ".sql", ".yml")


def environment_names(paths: Iterable[str]) -> set[str] | None:
    """Return the variables that files of a project ask for; None if it computes names of some."""
    names: set[str] = set()
    for path in paths:
        if not path.endswith(_ASKING):
            continue
        if os.stat(path).st_size > _READ_BYTES:
            return None
        text = Path(path).read_text(encoding="utf-8", errors="replace")
        asked = [match["name"] for match in _ENV_VAR.finditer(text)]
        if None in asked:
            return None
        names.update(asked)
    return names


def project_digest(settings: Settings, look: Look) -> str | None:
    """Return a digest that changes if a project may be compiled or planned differently.

    It covers settings, environment, files, the version of Python, the code of this package, and the
    versions of all packages installed beside it. None for a project that computes names of
    variables: all of them never stay the same, as the process itself sets some.

    Args:
        settings: of the run.
        look: at the files of the project.

    Raises:
        OSError: a file was removed since.
    """
    if (names := environment_names(look)) is None:
        return None
    # dbt reads its own variables, which begin so.
    names.update(name for name in os.environ if name.startswith("DBT_"))
    parts = [
        settings.model_dump(mode="json", include=_SETTINGS),
        {name: os.environ.get(name) for name in sorted(names)},
        sys.version,
        sorted(set(_installed())),
        _engine(),
        [(path, _content(path)) for path in sorted(look)],
    ]
    return hashlib.sha256(json.dumps(parts, default=str).encode()).hexdigest()


def _content(path: str) -> object:
    """Return a digest of a file's content: a clone or a copy has other times."""
    status = os.stat(path)
    if status.st_size > _READ_BYTES:
        return status.st_size, status.st_mtime_ns
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def _installed() -> Iterator[str]:
    """Yield name and version of each package that can be imported, as its folder says them."""
    for folder in sys.path:
        try:
            names = os.listdir(folder or ".")
        except OSError:
            # The path is an archive, or does not exist.
            continue
        yield from (name for name in names if name.endswith(_INSTALLED))


def _engine() -> str:
    digest = hashlib.sha256()
    for path in sorted(path for path in _PACKAGE.rglob("*") if path.suffix in _CODE):
        status = path.stat()
        digest.update(
            f"{path.relative_to(_PACKAGE)} {status.st_size} {status.st_mtime_ns}\n".encode()
        )
    return digest.hexdigest()
