"""Dbt models and streams as tests need them."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from livemart.project.graph import Model, StreamSpec

# dbt asks the database for its count while it compiles the model.
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


def stream_spec(stream: StreamSpec | None = None, **settings: Any) -> StreamSpec:
    """Return a stream with these settings of `meta.livemart`, and those of `stream` or defaults."""
    stream = stream or StreamSpec()
    parts = {part.name: getattr(stream, part.name) for part in fields(stream)}
    for name, part in parts.items():
        names = settings.keys() & {it.name for it in fields(part)}
        parts[name] = replace(part, **{it: settings.pop(it) for it in names})
    assert not settings, settings
    return StreamSpec(**parts)
