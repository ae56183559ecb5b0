"""A dbt model as a test needs it."""

from __future__ import annotations

from typing import Any

from livemart.project.graph import Model


def make_model(unique_id: str, **other: Any) -> Model:
    """Return a plain SQL table in the schema that its unique id names, but for what is said."""
    kind, package, name = unique_id.split(".")
    values: dict[str, Any] = {
        "unique_id": unique_id,
        "name": name,
        "schema": package,
        "identifier": name,
        "materialized": "table",
        "language": "sql",
        "compiled_code": "select 1",
        "depends_on": (),
        "columns": (),
        "primary_key": (),
        "partition_by": (),
        "is_contracted": False,
        "policy": "auto",
        "file": f"{kind}s/{name}.sql",
    }
    return Model(**(values | other))
