"""Reads the policies of a model, `config.meta.livemart`.

Used when the manifest is read. Every mistake is reported, with its place and the nearest word.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import get_args

from livemart.errors import ConfigError, nearest
from livemart.project.graph import FilledBy, OnError, Policy, Stages, Ties
from livemart.project.yaml_places import Mistakes, Where, place_of

POLICIES: tuple[str, ...] = get_args(Policy)
_WORDS: Mapping[str, tuple[str, ...]] = {
    "refresh": POLICIES,
    "on_error": get_args(OnError),
    "ties": get_args(Ties),
    "stages": get_args(Stages),
    "filled_by": get_args(FilledBy),
}


@dataclass(frozen=True, slots=True)
class ModelPolicy:
    """The settings of a model for livemart."""

    refresh: Policy = "auto"
    on_error: OnError = "set_aside"
    ties: Ties = "any"
    stages: Stages = "auto"
    filled_by: FilledBy | None = None


def parse_model_policy(meta: object, where: Where | str) -> tuple[ModelPolicy, list[ConfigError]]:
    """Return the policies of a model and every mistake.

    Args:
        meta: value of `config.meta.livemart` of a model, or None.
    """
    mistakes = Mistakes(place_of(where))
    if meta is None:
        return ModelPolicy(), []
    if not isinstance(meta, Mapping):
        hint = "write `livemart: {refresh: auto}`"
        mistakes.refuse("MODEL_NOT_A_MAPPING", ("meta",), f"found {meta!r}", hint)
        return ModelPolicy(), mistakes.errors
    keys = (*_WORDS, "page")
    hint = f"the keys on a model are {', '.join(f'`{name}`' for name in keys)}"
    mistakes.refuse_unknown("MODEL_KEY_UNKNOWN", meta, keys, hint)
    words = {}
    for key, choices in _WORDS.items():
        if key not in meta:
            continue
        if (word := meta[key]) in choices:
            words[key] = word
            continue
        mistakes.refuse(
            "MODEL_POLICY_UNKNOWN",
            ("meta", key),
            f"found {word}{nearest(str(word), choices)}",
            f"write one of {', '.join(choices)}",
        )
    return ModelPolicy(**words), mistakes.errors
