"""Holds the options of a source of another kind than files in a form that can be compared.

Written by the reader of sources, and read where the kind is opened.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def frozen_option(value: object) -> Any:
    """Return a value of YAML as one that can be compared and hashed.

    Raises:
        TypeError: it is no text, number, boolean, list or mapping of such by names.

    >>> frozen_option(["a", {"b": 1}])
    ('a', frozenset({('b', 1)}))
    """
    match value:
        case str() | int() | float():
            return value
        case list():
            return tuple(map(frozen_option, value))
        case Mapping():
            if not all(isinstance(name, str) for name in value):
                raise TypeError("a name that is no text")
            return frozenset((name, frozen_option(option)) for name, option in value.items())
        case _:
            raise TypeError(type(value).__name__)


def plain_option(value: Any) -> Any:
    """Return the value that `frozen_option` was given.

    >>> plain_option(frozen_option(["a", {"b": [1]}]))
    ['a', {'b': [1]}]
    """
    match value:
        case tuple():
            return list(map(plain_option, value))
        case frozenset():
            return {name: plain_option(option) for name, option in sorted(value)}
        case _:
            return value
