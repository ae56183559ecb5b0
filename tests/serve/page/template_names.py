"""Reads the values of a page as its template does: a member of a dict by its name."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any


def by_name(values: Any) -> Any:
    """Return dicts, also those in dicts and lists, with their members as attributes."""
    if isinstance(values, dict):
        return SimpleNamespace(**{name: by_name(value) for name, value in values.items()})
    return [by_name(value) for value in values] if isinstance(values, list) else values
