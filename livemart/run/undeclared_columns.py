"""Names the columns of landed tables that no source declares, and the models that do not use them.

Used when a snapshot is drafted. Drift brought such a column (`schema_drift: evolve`), or it was
declared once; a model that lists its columns goes on without it until somebody edits it.
"""

from __future__ import annotations

from livemart.land.tables import undeclared_fields
from livemart.run.runtime import Runtime
from livemart.spark.types import arrow_type_text
from livemart.state.drift import Drift, DriftedField, DriftKind


def undeclared_columns(runtime: Runtime) -> dict[str, Drift]:
    """Return the undeclared columns with their types, by relation, where there are any."""
    columns: dict[str, Drift] = {}
    for unique_id, source in runtime.project.sources.items():
        if source.stream is None:
            continue
        undeclared = undeclared_fields(runtime.warehouse, source)
        if undeclared:
            # A star stands for the columns that the table has by now.
            runtime.plans.renew()
            columns[source.relation] = tuple(
                DriftedField(
                    DriftKind.UNDECLARED,
                    field.name,
                    arrow_type_text(field.type),
                    tuple(
                        runtime.project.models[reader].name
                        for reader in runtime.plans.readers_without(unique_id, field.name)
                    ),
                )
                for field in undeclared
            )
    return columns
