"""Finds models and dbt snapshots that are to be made in a way that dbt-spark and the project lack.

Used when the manifest is read: dbt itself refuses such a node when it runs it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, get_args

from livemart.errors import ConfigError, nearest
from livemart.project.declared.node_files import NodeFiles
from livemart.project.declared.setting_places import setting_place
from livemart.project.graph import Materialized

_STRATEGIES = ("timestamp", "check")
_OF_MODELS = ("table", "view", "incremental", "ephemeral")
# dbt has it for every adapter, and leaves its SQL to the adapter: dbt-spark has none.
_WITHOUT_SQL = {"materialized_view": "get_create_materialized_view_as_sql"}


def materialization_mistakes(
    manifest: Any, nodes: Iterable[Any], files: NodeFiles
) -> Iterator[ConfigError]:
    """Yield MATERIALIZATION_UNKNOWN for each model that no materialization makes.

    And for each dbt snapshot whose `strategy` no macro knows.

    Args:
        manifest: dbt's.
        nodes: the enabled ones.
        files: of the project.
    """
    for node in nodes:
        if str(node.resource_type) == "snapshot":
            yield from _unknown_strategy(manifest, node, files)
            continue
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


def _unknown_strategy(manifest: Any, node: Any, files: NodeFiles) -> Iterator[ConfigError]:
    # It may name the package of its macro.
    word = str(node.config.strategy)
    macro = f"snapshot_{word.rpartition('.')[2]}_strategy"
    if not any(it.name == macro for it in manifest.macros.values()):
        place = setting_place(node, files, "strategy") or files.of(node)
        yield ConfigError(
            "MATERIALIZATION_UNKNOWN",
            f"{place}: snapshot {node.name}: found strategy {word}{nearest(word, _STRATEGIES)}",
            hint="write `timestamp` or `check`",
        )


def _is_known(manifest: Any, word: str) -> bool:
    project = manifest.metadata.project_name
    macro = manifest.find_materialization_macro_by_name(project, word, "spark")
    if macro is not None and macro.package_name == "dbt" and word in _WITHOUT_SQL:
        return any(it.name == f"spark__{_WITHOUT_SQL[word]}" for it in manifest.macros.values())
    return macro is not None
