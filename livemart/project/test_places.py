"""Finds the line at which a data test, or a line of compiled SQL, is written.

Used where a test fails, and where something is said of SQL. dbt names the file alone: a file of
YAML holds many tests, and jinja writes lines of SQL that no file has.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from livemart.project.graph import DataTest, Project
from livemart.project.yaml_places import data_test_line

# The groups of a YAML file whose nodes may have tests.
_GROUPS = {"model": "models", "seed": "seeds", "snapshot": "snapshots"}


def place_of_test(project: Project, test: DataTest) -> str:
    """Return file and line of a test, or the file alone where the line is not found.

    `models/schema.yml:14`: of a generic test where it is listed, of a test that is a file of SQL
    its first line.
    """
    if test.kind is None:
        return f"{test.file}:1"
    line = None
    if test.attached_to is not None:
        text = _text_of(project, test.file)
        if text is None:
            return test.file
        steps = _steps(project, test.attached_to)
        words = {test.name, *_words(test.arguments.values())}
        line = data_test_line(text, steps, test.column_name, test.kind, words)
    return test.file if line is None else f"{test.file}:{line}"


def place_of_setting(project: Project, test: DataTest, setting: str) -> str | None:
    """Return file and line of a setting of a test, None if the test's own file does not have it."""
    text = _text_of(project, test.file) or ""
    line: int | None = None
    if test.kind is None:
        if (written := re.search(rf"\b{setting}\s*=", text)) is not None:
            line = text.count("\n", 0, written.start()) + 1
    elif test.attached_to is not None:
        steps = _steps(project, test.attached_to)
        words = {test.name, *_words(test.arguments.values())}
        line = data_test_line(text, steps, test.column_name, test.kind, words, setting)
    return None if line is None else f"{test.file}:{line}"


def written_line(project: Project, file: str, code: str, line: int) -> int | None:
    """Return where a line of compiled SQL is in its file; None if jinja wrote it.

    It is the same line where the file cannot be read.
    """
    text = _text_of(project, file)
    if text is None:
        return line
    lines = code.splitlines()
    shown = lines[line - 1].strip() if 0 < line <= len(lines) else ""
    stripped_lines = enumerate(map(str.strip, text.splitlines()), 1)
    places = [place for place, stripped in stripped_lines if shown and stripped == shown]
    if line in places:
        return line
    return places[0] if len(places) == 1 else None


def _text_of(project: Project, file: str) -> str | None:
    """Return the text of a file, None if it is elsewhere, as those of some packages."""
    try:
        return Path(project.directory, file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None


def _words(values: Iterable[object]) -> Iterator[str]:
    for value in values:
        if isinstance(value, list | tuple):
            yield from _words(value)
        elif isinstance(value, Mapping):
            yield from _words(value.values())
        else:
            yield str(value)


def _steps(project: Project, attached_to: str) -> list[tuple[str, str]]:
    """Return group and name on the way to the tested node."""
    if (source := project.sources.get(attached_to)) is not None:
        return [("sources", source.source_name), ("tables", source.name)]
    group = _GROUPS.get(attached_to.partition(".")[0], "models")
    # A model of several versions is declared once.
    return [(group, attached_to.split(".")[2])]
