"""Finds settings of other databases that dbt-spark fails on: a database, and grants.

Used when the manifest is read. dbt-spark's own error of a database names no file, and does not come
while livemart holds dbt: see `attached`. Spark's error of a grant comes once the table is made.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from livemart.errors import ConfigError, first_names
from livemart.project.declared.node_files import NodeFiles
from livemart.project.declared.setting_places import setting_place
from livemart.project.yaml_places import by_line

_GRANTING = ("apply_grants", "default__apply_grants", "spark__apply_grants")
_LEAVE_OUT = "leave `{}` out, or set it only for other targets, by `target.type`: "


def database_mistakes(manifest: Any, files: NodeFiles) -> Iterator[ConfigError]:
    """Yield DATABASE_SET for each line that gives a database to nodes or sources.

    dbt-spark takes a database that is the schema for none.

    Args:
        manifest: dbt's.
        files: of the project.
    """
    names = ("database", "target_database")
    settings = [
        (node, setting_place(node, files, *names) or _macro(manifest), str(node.database))
        for node in (*manifest.nodes.values(), *manifest.sources.values())
        if node.database and node.database != node.schema and node.config.enabled
    ]
    hint = _LEAVE_OUT.format("database") + "Spark has schemas alone"
    for message in _by_line("database", settings, files):
        yield ConfigError("DATABASE_SET", message, hint=hint)


def grant_mistakes(manifest: Any, nodes: Iterable[Any], files: NodeFiles) -> Iterator[ConfigError]:
    """Yield GRANTS_SET for each line that grants rights on tables, unless the project has a macro.

    Args:
        manifest: dbt's.
        nodes: the enabled ones.
        files: of the project.
    """
    if any(it.name in _GRANTING and it.package_name != "dbt" for it in manifest.macros.values()):
        return
    settings = [
        (node, setting_place(node, files, "grants"), str(dict(node.config.grants)))
        for node in nodes
        if getattr(node.config, "grants", None) and node.config.materialized != "ephemeral"
    ]
    hint = _LEAVE_OUT.format("grants") + "Spark knows no users here; access tokens say who may read"
    for message in _by_line("grants", settings, files):
        yield ConfigError("GRANTS_SET", message, hint=hint)


def _by_line(
    setting: str, places: Iterable[tuple[Any, str | None, str]], files: NodeFiles
) -> Iterator[str]:
    """Yield a message for each line and value, with the first nodes that it holds for."""
    names: dict[tuple[str, str], list[str]] = defaultdict(list)
    for node, place, value in places:
        label = f"{node.resource_type} {'.'.join(node.unique_id.split('.')[2:])}"
        names[place or files.of(node), value].append(label)
    messages = (
        f"{place}: found {setting} {value}, of {first_names(sorted(labels))}"
        for (place, value), labels in names.items()
    )
    yield from sorted(messages, key=by_line)


def _macro(manifest: Any) -> str | None:
    """Return the place of the project's own macro that names databases; None without one."""
    macro = manifest.find_generate_macro_by_name("database", manifest.metadata.project_name)
    if macro is None or macro.package_name != manifest.metadata.project_name:
        return None
    return f"{macro.original_file_path}: macro {macro.name}"
