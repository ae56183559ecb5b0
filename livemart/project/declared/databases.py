"""Finds nodes and sources with a database, each with the line that sets it.

Used when the manifest is read. Spark has schemas alone, and dbt-spark's own error, which names no
file, does not come while livemart holds dbt: see `attached`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from livemart.errors import ConfigError
from livemart.project.yaml_places import folder_setting_line, node_lines

_PROJECT_FILE = "dbt_project.yml"
_NAMES = ("database", "target_database")
_IN_SQL = re.compile(r"\b(?:database|target_database)\s*=", re.I)
_SHOWN = 3


def database_mistakes(manifest: Any, root: Path) -> Iterator[ConfigError]:
    """Yield DATABASE_SET for each line that gives a database to nodes or sources.

    dbt-spark takes a database that is the schema for none.

    Args:
        manifest: dbt's.
        root: folder of the project.
    """
    names: dict[tuple[str, str], list[str]] = defaultdict(list)
    for node in (*manifest.nodes.values(), *manifest.sources.values()):
        database = node.database
        if database and database != node.schema and node.config.enabled:
            label = f"{node.resource_type} {'.'.join(node.unique_id.split('.')[2:])}"
            names[_place(node, manifest, root), str(database)].append(label)
    for (place, database), labels in sorted(names.items()):
        labels.sort()
        more = f" and {len(labels) - _SHOWN} more" if len(labels) > _SHOWN else ""
        yield ConfigError(
            "DATABASE_SET",
            f"{place}: found database {database}, of {', '.join(labels[:_SHOWN])}{more}",
            hint="leave `database` out, or set it only for other targets, by `target.type`: "
            "Spark has schemas alone",
        )


def _place(node: Any, manifest: Any, root: Path) -> str:
    """Return `file:line` of a node's database, or the file of the node if the line is not known."""
    kind = str(node.resource_type)
    name = node.source_name if kind == "source" else node.name
    for file, text in _texts(node, root):
        line = None
        if file == _PROJECT_FILE:
            line = folder_setting_line(text, f"{kind}s", node.fqn, _NAMES)
        elif file.endswith((".yml", ".yaml")):
            lines = node_lines(text, (f"{kind}s", name))
            line = next((lines[key,] for key in _NAMES if (key,) in lines), None)
        elif (found := _IN_SQL.search(text)) is not None:
            line = text.count("\n", 0, found.start()) + 1
        if line is not None:
            return f"{file}:{line}"
    macro = manifest.find_generate_macro_by_name("database", manifest.metadata.project_name)
    if macro is not None and macro.package_name == manifest.metadata.project_name:
        return f"{macro.original_file_path}: macro {macro.name}"
    return str(node.original_file_path)


def _texts(node: Any, root: Path) -> Iterator[tuple[str, str]]:
    """Yield the files that may set a node's database, the most special one first."""
    patch = (getattr(node, "patch_path", None) or "").partition("://")[2]
    files: Iterable[str] = (node.original_file_path, patch, _PROJECT_FILE)
    for file in dict.fromkeys(filter(None, files)):
        try:
            yield file, (root / file).read_text(encoding="utf-8")
        except (OSError, ValueError):
            continue
