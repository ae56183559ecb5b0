"""Finds each mistake in a configuration that dbt has refused, by file and line.

Used when dbt cannot begin to parse. dbt names the first mistake, without a line, and blames
`dbt_project.yml` for other files. So dbt reads each part alone here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

from livemart.errors import causes
from livemart.project.declared.node_files import PROJECT_FILE
from livemart.project.yaml_places import line_below, text_of

_LISTS = ("packages", "selectors")
# Errors that have no words for their cause.
_OF_PYTHON = (AttributeError, TypeError, KeyError)
_PACKAGE_FILES = ("packages.yml", "dependencies.yml")
_SELECTOR_FILE = "selectors.yml"
_HINTS = {
    PROJECT_FILE: "correct the setting, or take it out",
    _SELECTOR_FILE: "write each selector below `selectors:` as `- name: NAME` with `definition`: a "
    "text, or a mapping with `method` and `value`, `union` or `intersection`",
    **dict.fromkeys(
        _PACKAGE_FILES,
        "write `packages:` in one of packages.yml and dependencies.yml, and below it each package "
        "as `- package: owner/name` with `version`, `- git: URL` or `- private: owner/name` with "
        "`revision`, `- tarball: URL` with `name`, or `- local: folder`",
    ),
}
# The keys that dbt asks of each file.
_WHOLE: dict[str, dict[str, object]] = {
    PROJECT_FILE: {"name": "project"},
    _SELECTOR_FILE: {"selectors": []},
    **{file: {"packages": []} for file in _PACKAGE_FILES},
}
NOT_IN_UTF8 = "the file is not in UTF-8: save it in UTF-8"


def config_mistakes(root: Path, renderer: Any) -> Iterator[tuple[str, str]]:
    """Yield the message of each mistake and the next step; none if each part is right alone.

    Args:
        root: folder of the project.
        renderer: dbt's, of `dbt_project.yml`.
    """
    from dbt.config.project import PartialProject

    declaring = []
    for file, hint in _HINTS.items():
        content, torn = _content(root / file)
        if torn:
            yield torn, hint
            continue
        if isinstance(content, dict):
            if file == PROJECT_FILE:
                content.setdefault("name", None)
            elif file == "dependencies.yml":
                # Its other keys are not dbt's own.
                content = {key: value for key, value in content.items() if key == "packages"}
            if file in _PACKAGE_FILES and "packages" in content:
                declaring.append(_place(root / file, ["packages"]))
        for path, value, part in _parts(content):
            if isinstance(part, dict):
                part = {**_WHOLE[file], **part}
            project = PartialProject.from_dicts(
                str(root),
                part if file == PROJECT_FILE else _WHOLE[PROJECT_FILE],
                part if file in _PACKAGE_FILES else {},
                part if file == _SELECTOR_FILE else None,
                packages_specified_path=file,
            )
            try:
                project.render(renderer)
            except Exception as error:
                if file != PROJECT_FILE or not isinstance(error, _OF_PYTHON):
                    yield _message(root / file, path, value, error), hint
    if len(declaring) > 1:
        yield f"{declaring[0]}: found `packages` in {declaring[1]} too", hint


def _parts(content: object) -> Iterator[tuple[list[str], Any, Any]]:
    """Yield the path and the value of each part of a file, and the part as dbt reads it.

    dbt adds to an entry that it reads. A selector may name those before it.
    """
    if not isinstance(content, dict):
        if content is not None:
            yield [], content, content
        return
    for key, value in content.items():
        if key not in _LISTS or not isinstance(value, list):
            # As dbt renames it.
            yield [str(key)], value, {"data_tests" if key == "tests" else key: value}
            continue
        before: list[object] = []
        for position, entry in enumerate(value):
            yield [key, str(position)], entry, {key: [*before, deepcopy(entry)]}
            if (
                key == "selectors"
                and isinstance(entry, dict)
                and isinstance(name := entry.get("name"), str)
            ):
                before.append({"name": name, "definition": "*"})


def _content(file: Path) -> tuple[Any, str | None]:
    """Return the content of a YAML file as dbt reads it, and why it cannot read it."""
    from dbt.config import project

    module: Any = project
    try:
        return module.load_yml_dict(str(file)), None
    except UnicodeDecodeError:
        return None, f"{file}: {NOT_IN_UTF8}"
    except Exception as error:
        return None, f"{file}: {error}"


def _message(file: Path, path: list[str], value: Any, error: Exception) -> str:
    """Return the place of a part, and the reason why dbt refuses it."""
    *_, reason = causes(error)
    # The path of an error that is not of a schema is that of a file.
    way = getattr(reason, "path", None)
    below = [*way][len(path) :] if isinstance(way, deque) else []
    if below:
        value = getattr(reason, "instance", value)
    steps = [*path, *map(str, below)]
    words = getattr(reason, "message", None) or getattr(reason, "msg", None) or str(reason)
    if value is None:
        words = f"nothing below `{[step for step in steps if not step.isdigit()][-1]}`"
    elif len(steps) == 1 and steps[0] in _LISTS and isinstance(value, dict):
        words = f"found {value!r}, not a list"
        steps += map(str, [*value][:1])
    elif isinstance(reason, KeyError) and isinstance(value, dict):
        words = f"found no {reason.args[0]} in {value!r}"
    elif getattr(reason, "validator", "") == "anyOf" or isinstance(reason, _OF_PYTHON):
        # The own words of these are of dbt's code or repeat more than the value.
        words = f"found {value!r}"
    setting = f"{'.'.join(steps)}: " if file.name == PROJECT_FILE else ""
    return f"{_place(file, steps)}: {setting}{words}"


def _place(file: Path, steps: Iterable[str]) -> str:
    line = line_below(text_of(file), steps)
    return f"{file}" if line is None else f"{file}:{line}"
