"""Reads `config.meta.livemart` of a model: how it may be refreshed.

Used when the manifest is read. Every mistake is reported, with its place and the nearest word.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

from livemart.errors import ConfigError, nearest
from livemart.project.graph import Policy
from livemart.project.yaml_places import Where, place_of

POLICIES: tuple[str, ...] = get_args(Policy)


def parse_model_policy(meta: object, where: Where | str) -> tuple[Policy, list[ConfigError]]:
    """Return the refresh policy of a model and every mistake; the only key is `refresh`.

    Args:
        meta: value of `config.meta.livemart` of a model, or None.
        where: place of the model, for messages.
    """
    place = place_of(where)
    if meta is None:
        return "auto", []
    if not isinstance(meta, Mapping):
        mistake = ConfigError(
            "MODEL_NOT_A_MAPPING",
            f"{place.at('meta')}: found {meta!r}",
            hint="write `livemart: {refresh: auto}`",
        )
        return "auto", [mistake]
    mistakes = [
        ConfigError(
            "MODEL_KEY_UNKNOWN",
            f"{place.at('meta', str(key))}: found key {key}{nearest(str(key), ('refresh',))}",
            hint="the only key on a model is `refresh`",
        )
        for key in meta
        if key != "refresh"
    ]
    policy = meta.get("refresh", "auto")
    if policy not in POLICIES:
        mistakes.append(
            ConfigError(
                "MODEL_POLICY_UNKNOWN",
                f"{place.at('meta', 'refresh')}: found {policy}{nearest(str(policy), POLICIES)}",
                hint=f"write one of {', '.join(POLICIES)}",
            )
        )
        return "auto", mistakes
    return policy, mistakes
