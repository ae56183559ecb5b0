"""Finds nodes and sources with a database, each with the line that sets it.

Used when the manifest is read. Spark has schemas alone, and dbt-spark's own error, which names no
file, does not come while livemart holds dbt: see `attached`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from livemart.errors import ConfigError
from livemart.project.declared.setting_places import setting_place

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
            place = setting_place(node, root, "database", "target_database")
            place = place or _macro(manifest) or node.original_file_path
            label = f"{node.resource_type} {'.'.join(node.unique_id.split('.')[2:])}"
            names[place, str(database)].append(label)
    for (place, database), labels in sorted(names.items()):
        labels.sort()
        more = f" and {len(labels) - _SHOWN} more" if len(labels) > _SHOWN else ""
        yield ConfigError(
            "DATABASE_SET",
            f"{place}: found database {database}, of {', '.join(labels[:_SHOWN])}{more}",
            hint="leave `database` out, or set it only for other targets, by `target.type`: "
            "Spark has schemas alone",
        )


def _macro(manifest: Any) -> str | None:
    """Return the place of the project's own macro that names databases; None without one."""
    macro = manifest.find_generate_macro_by_name("database", manifest.metadata.project_name)
    if macro is None or macro.package_name != manifest.metadata.project_name:
        return None
    return f"{macro.original_file_path}: macro {macro.name}"
