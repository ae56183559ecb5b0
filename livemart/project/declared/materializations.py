"""Finds models with a materialization that neither dbt-spark nor the project has.

Used when the manifest is read: dbt itself refuses such a model when it runs it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, get_args

from livemart.errors import ConfigError, nearest
from livemart.project.declared.project_files import ProjectFiles
from livemart.project.declared.setting_places import setting_place
from livemart.project.graph import Materialized

_OF_MODELS = ("table", "view", "incremental", "ephemeral")
# dbt has it for every adapter, and leaves its SQL to the adapter: dbt-spark has none.
_WITHOUT_SQL = {"materialized_view": "get_create_materialized_view_as_sql"}


def materialization_mistakes(
    manifest: Any, nodes: Iterable[Any], files: ProjectFiles
) -> Iterator[ConfigError]:
    """Yield MATERIALIZATION_UNKNOWN for each model that no materialization makes.

    Args:
        manifest: dbt's.
        nodes: the enabled ones.
        files: of the project.
    """
    for node in nodes:
        word = str(node.config.materialized)
        if str(node.resource_type) != "model" or word in get_args(Materialized):
            continue
        if _is_known(manifest, word):
            continue
        place = setting_place(node, files, "materialized") or files.of(node)
        yield ConfigError(
            "MATERIALIZATION_UNKNOWN",
            f"{place}: model {node.name}: found materialized {word}{nearest(word, _OF_MODELS)}",
            hint="write `table`, which livemart keeps fresh, or view, incremental or ephemeral",
        )


def _is_known(manifest: Any, word: str) -> bool:
    project = manifest.metadata.project_name
    macro = manifest.find_materialization_macro_by_name(project, word, "spark")
    if macro is not None and macro.package_name == "dbt" and word in _WITHOUT_SQL:
        return any(it.name == f"spark__{_WITHOUT_SQL[word]}" for it in manifest.macros.values())
    return macro is not None
