"""Writes a small project over sample data, which builds, streams and serves as it is.

Used by the command `init`. It writes into an empty folder only, so nothing is ever overwritten.
"""

from __future__ import annotations

import re
import runpy
import shlex
import unicodedata
from datetime import UTC, datetime
from pathlib import Path

from livemart.errors import ConfigError, first_names
from livemart.project.dbt_invocations import reserved_names

_TEMPLATE = Path(__file__).with_name("shop")
_PLACEHOLDER = "PROJECT_NAME"
# As dbt reads a project's name.
_NAME = re.compile(r"[^\d\W]\w*")
# Packages that dbt and livemart bring along, dbt's old name for settings, and what YAML reads as
# something else.
_TAKEN = {
    *("dbt", "dbt_spark", "livemart_clock", "livemart_spark", "config"),
    *("null", "true", "false", "yes", "no", "on", "off", "y", "n"),
}
_HARMLESS = (".git", ".DS_Store")


def write_project(folder: Path, name: str | None = None, *, now: datetime | None = None) -> str:
    """Write the project and its sample records, and return the project's name.

    Args:
        folder: where to write; made if it is not there, else it must be empty.
        name: the project's name for dbt; None takes it from the folder.
        now: where the sample orders end; None is the time of the machine.

    Raises:
        ConfigError: PROJECT_NAME_INVALID, FOLDER_NOT_EMPTY, PROJECT_NOT_WRITTEN.
    """
    name = project_name(folder) if name is None else _checked(name)
    try:
        _require_empty(folder)
        for template in sorted(path for path in _TEMPLATE.rglob("*") if path.is_file()):
            if "__pycache__" in template.parts:
                continue
            place = folder / template.relative_to(_TEMPLATE)
            if place.name == "gitignore":
                place = place.with_name(".gitignore")
            place.parent.mkdir(parents=True, exist_ok=True)
            text = template.read_text(encoding="utf-8")
            place.write_text(text.replace(_PLACEHOLDER, name), encoding="utf-8")
        deliver = runpy.run_path(str(_TEMPLATE / "deliver.py"))
        deliver["deliver_history"](folder / "landing", now or datetime.now(UTC))
    except OSError as error:
        raise ConfigError(
            "PROJECT_NOT_WRITTEN",
            f"{error.filename or folder}: {error.strerror or error}",
            hint="name a folder that you may write to",
        ) from error
    return name


def project_name(folder: Path) -> str:
    """Return a name for dbt that is like the folder's: blanks and signs become underscores.

    >>> project_name(Path("2024 My-Shop"))
    'project_2024_my_shop'
    """
    word = unicodedata.normalize("NFC", folder.absolute().name).lower()
    word = re.sub(r"\W+", "_", word).strip("_")
    if not _NAME.fullmatch(word):
        word = f"project_{word}" if word else "my_project"
    return f"{word}_project" if _is_taken(word) else word


def _is_taken(name: str) -> bool:
    return name.lower() in _TAKEN | reserved_names()


def _checked(name: str) -> str:
    is_taken = _is_taken(name)
    if _NAME.fullmatch(name) and not is_taken:
        return name
    why = "a word of dbt, livemart or YAML" if is_taken else "no name for dbt"
    raise ConfigError(
        "PROJECT_NAME_INVALID",
        f"--name: found {name!r}, {why}",
        hint="write letters, digits and underscores, not a digit first, such as "
        + project_name(Path("/", name.replace("/", "_"))),
    )


def _require_empty(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise ConfigError(
            "FOLDER_NOT_EMPTY", f"{folder}: found a file", hint="name a folder that does not exist"
        )
    entries = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    entries = [name for name in entries if name not in _HARMLESS]
    if not entries:
        return
    hint = "name an empty or new folder"
    if "dbt_project.yml" in entries:
        place = shlex.quote(str(folder))
        hint = f"for the existing dbt project: livemart init --from-dbt {place}"
    raise ConfigError("FOLDER_NOT_EMPTY", f"{folder}: found {first_names(entries)}", hint=hint)
