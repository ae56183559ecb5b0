"""Finds the sources whose table a seed of the same project fills.

Used when dbt's manifest is read. dbt knows no order between such a seed and the models that read
the source: on a new warehouse they find no table, and later the rows of before.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def seeds_by_source(nodes: Mapping[str, Any], sources: Mapping[str, Any]) -> dict[str, str]:
    """Return the unique id of the seed that fills a source, by that of the source.

    A source with `meta.livemart` is landed, and left out.

    Args:
        nodes: dbt's enabled nodes by unique id.
        sources: dbt's sources by unique id.
    """
    seeds = {
        (node.schema.lower(), node.alias.lower()): key
        for key, node in nodes.items()
        if str(node.resource_type) == "seed"
    }
    filled = {
        key: seeds.get((source.schema.lower(), source.identifier.lower()))
        for key, source in sources.items()
        if "livemart" not in {**source.meta, **source.config.meta}
    }
    return {key: seed for key, seed in filled.items() if seed is not None}


def order_behind_seeds(nodes: Mapping[str, Any], seeds: Mapping[str, str]) -> None:
    """Let dbt build each reader of such a source after its seed; the nodes are changed.

    Args:
        nodes: dbt's nodes by unique id.
        seeds: of `seeds_by_source`.
    """
    for node in nodes.values():
        parents = getattr(node.depends_on, "nodes", [])
        behind = dict.fromkeys(seeds[parent] for parent in parents if parent in seeds)
        parents += [seed for seed in behind if seed not in parents]
