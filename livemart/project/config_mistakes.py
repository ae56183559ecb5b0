"""Finds each mistake in a configuration that dbt has refused, by file and line.

Used when dbt cannot begin to parse. dbt names the first mistake, without a line, and blames
`dbt_project.yml` for other files. So dbt reads each part alone here.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

from livemart.errors import causes
from livemart.project.yaml_places import line_below, text_of

_PACKAGE_HINT = (
    "write `packages:` in one of packages.yml and dependencies.yml, and below it each package as "
    "`package: owner/name` with `version`, `git: URL` with `revision`, or `local: folder`"
)


def config_mistakes(root: Path, renderer: Any) -> Iterator[tuple[str, str]]:
    """Yield the message of each mistake and the next step; none if each part is right alone.

    Args:
        root: folder of the project.
        renderer: dbt's, of `dbt_project.yml`.
    """
    from dbt.config.project import PartialProject

    def read(file: str, path: list[str], value: object, packages: Any) -> Iterator[str]:
        """Yield the message for a part that dbt cannot read; `path` is the way to it."""
        project = PartialProject.from_dicts(
            str(root),
            {"name": "project"},
            packages,
            None,
            packages_specified_path=file,
        )
        try:
            project.render(renderer)
        except Exception as error:
            yield _message(root / file, path, value, error)

    declaring = []
    for file in ("packages.yml", "dependencies.yml"):
        content, torn = _content(root / file)
        if torn:
            yield torn, _PACKAGE_HINT
            continue
        if file == "dependencies.yml" and isinstance(content, dict):
            # Its other keys are not dbt's own.
            content = {key: value for key, value in content.items() if key == "packages"}
        for path, value, packages in _packages(content):
            for message in read(file, path, value, packages):
                yield message, _PACKAGE_HINT
        if isinstance(content, dict) and "packages" in content:
            declaring.append(f"{file}:{line_below(text_of(root / file), ['packages'])}")
    if len(declaring) > 1:
        yield f"{declaring[0]}: found `packages` in {declaring[1]} too", _PACKAGE_HINT


def _packages(content: object) -> Iterator[tuple[list[str], object, Any]]:
    """Yield the path and the value of each part of `packages.yml`, and the part as dbt reads it.

    dbt adds to an entry that it reads.
    """
    if not isinstance(content, dict):
        if content is not None:
            yield [], content, content
        return
    for key, value in content.items():
        if key == "packages" and isinstance(value, list):
            for position, entry in enumerate(value):
                yield [key, str(position)], entry, {key: [deepcopy(entry)]}
        else:
            yield [str(key)], value, {key: value}


def _content(file: Path) -> tuple[Any, str | None]:
    """Return the content of a YAML file as dbt reads it, and why it cannot read it."""
    from dbt.config import project

    module: Any = project
    try:
        return module.load_yml_dict(str(file)), None
    except Exception as error:
        return None, f"{file}: {error}"


def _message(file: Path, path: list[str], value: object, error: Exception) -> str:
    """Return the place of a part, and the reason why dbt refuses it."""
    *_, reason = causes(error)
    below = [str(step) for step in getattr(reason, "path", None) or ()][len(path) :]
    words = getattr(reason, "message", None) or getattr(reason, "msg", None) or str(reason)
    if isinstance(reason, KeyError):
        words = f"found no {reason.args[0]} in {value!r}"
    elif getattr(reason, "validator", "") == "anyOf" or isinstance(
        reason, AttributeError | TypeError
    ):
        # The own words of these are of dbt's code or repeat more than the value.
        words = f"nothing below `{path[0]}`" if value is None else f"found {value!r}"
    return f"{file}:{line_below(text_of(file), [*path, *below])}: {words}"
