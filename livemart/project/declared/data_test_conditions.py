"""Finds `warn_if` and `error_if` of data tests that are no comparison.

Used when the project is read. The words go behind a count in a statement of Spark, whose error
names neither the setting nor its place.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from livemart.errors import ConfigError, first_names
from livemart.project.declared.node_files import PROJECT_FILE, NodeFiles
from livemart.project.graph import Project
from livemart.project.test_places import place_of_setting, place_of_test
from livemart.project.yaml_places import by_line, folder_setting_line

_SETTINGS = ("warn_if", "error_if")
_COMPARISON = re.compile(
    r"\s*(?:<=>|<>|[<>!=]=|[<>=]|[-+*/%&|^]|(?:not\s+)?(?:between|in|like|rlike)\b|is\b|div\b)\s*\S",
    re.IGNORECASE,
)


def condition_mistakes(manifest: Any, project: Project, files: NodeFiles) -> Iterator[ConfigError]:
    """Yield TEST_CONDITION_INVALID for each line with a condition that compares nothing.

    Args:
        manifest: dbt's.
        project: whose tests are looked at.
        files: of the project.
    """
    names: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for test in project.tests.values():
        for setting in _SETTINGS:
            value = str(getattr(test, setting))
            if not compares(value):
                place = place_of_setting(project, test, setting)
                if place is None:
                    node = manifest.nodes[test.unique_id]
                    place = _of_folder(node, files, setting) or place_of_test(project, test)
                names[place, setting, value].append(test.name)
    by_place = sorted(names.items(), key=lambda it: (by_line(it[0][0]), it[0]))
    for (place, setting, value), tests in by_place:
        yield ConfigError(
            "TEST_CONDITION_INVALID",
            f"{place}: test {first_names(tests)}: {setting}: found {value}",
            hint='write a comparison with the count of rows, such as ">10" or "!= 0"',
        )


def compares(condition: str) -> bool:
    """Return True if a condition begins with a word or sign that compares.

    >>> compares("> 10"), compares("between 1 and 5"), compares("many"), compares("10")
    (True, True, False, False)
    """
    return _COMPARISON.match(condition) is not None


def _of_folder(node: Any, files: NodeFiles, setting: str) -> str | None:
    text = files.text(PROJECT_FILE)
    for section in ("data_tests", "tests"):
        if (line := folder_setting_line(text, section, node.fqn, (setting,))) is not None:
            return f"{PROJECT_FILE}:{line}"
    return None
