"""Dbt models as tests need them."""

from __future__ import annotations

from typing import Any

from livemart.project.graph import Model

# What it counts is asked of the database while dbt compiles it.
ASKING = (
    "{% if execute %}"
    "{% set found = run_query('select count(*) as n from ' ~ ref('raw_customers')) %}"
    "{% set count = found.columns['n'].values()[0] %}"
    "{% endif %}"
    "select id, {{ count }} as known from {{ ref('raw_customers') }}"
)


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
