"""Replaces dbt's own functions while sqlfluff lints, so that linting needs no database."""

from __future__ import annotations

from pathlib import Path

import yaml

_PROJECT = Path(__file__).resolve().parents[2] / "dbt_project.yml"
_VARS = yaml.safe_load(_PROJECT.read_text(encoding="utf-8"))["vars"]


def var(name: str, default: object = None) -> object:
    """Return the project's own value, so that loops over it are linted as they compile."""
    return _VARS.get(name, default)
