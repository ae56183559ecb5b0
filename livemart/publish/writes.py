"""Plans the writes of a publication, before the store is locked.

Used by the publisher. A model is copied whole unless its net change is known to fit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import pyarrow as pa

from livemart.arrow.bags import WEIGHT
from livemart.errors import LivemartError
from livemart.publish.exposures import ServedSpec
from livemart.state.snapshots import ModelState, Snapshot
from livemart.store.served import ServedModel
from livemart.store.store import StoredModel, StoreState
from livemart.store.value_forms import TIMESTAMPS, kind_of


class ServedTables(Protocol):
    """The tables of served models, as columns of the relation plus `WEIGHT` (bigint, never 0)."""

    def change(self, relation: str, from_version: int, to_version: int) -> pa.Table:
        """Return the net change between two versions, a row for each distinct row.

        Raises:
            RefreshError: CDF_UNAVAILABLE, also if a column has another type, as a struct with a
                field more; TABLE_MISSING, VERSION_GONE.
        """

    def rows(self, relation: str, version: int) -> Iterator[pa.Table]:
        """Yield all rows of a version, no more at once than memory should hold.

        There is always a first table. Equal rows may come more than once.

        Raises:
            RefreshError: TABLE_MISSING, VERSION_GONE.
        """


# Other types are no ids; a model with such a column is for administrators alone.
_TENANT_KINDS = frozenset({"string", "int", "bigint"})
_TIME_KINDS = frozenset({*TIMESTAMPS, "date"})


@dataclass(frozen=True, slots=True)
class ModelWrite:
    """A model to be written: `change` onto `stored`, or all rows if that is None."""

    spec: ServedSpec
    state: ModelState
    stored: StoredModel | None
    change: pa.Table | None


def base_of(state: StoreState, snapshot: Snapshot, *, is_start: bool) -> StoreState | None:
    """Return the state to build upon; None if the store is further than the snapshot.

    A store of another log, or of one that was set back, has nothing to build upon: `published` is
    None then. Models whose table is gone are left out.
    """
    nothing = replace(state, published=None, models={})
    if state.published is None:
        return nothing
    is_ahead = state.published.snapshot_id > snapshot.snapshot_id
    if state.published.epoch == snapshot.epoch and is_ahead:
        return nothing if is_start else None
    if state.published.epoch != snapshot.epoch and (
        is_ahead or state.published.snapshot_id == snapshot.snapshot_id
    ):
        return nothing
    whole = {
        name: stored
        for name, stored in state.models.items()
        if stored.layout.table_name in state.table_names
    }
    return replace(state, models=whole)


def is_published(base: StoreState, snapshot: Snapshot) -> bool:
    """Return whether readers of this store see the snapshot already."""
    return base.published is not None and (base.published.snapshot_id, base.published.epoch) == (
        snapshot.snapshot_id,
        snapshot.epoch,
    )


def plan_writes(
    base: StoreState,
    snapshot: Snapshot,
    served: Sequence[ServedSpec],
    tables: ServedTables,
    tenant_column: str | None,
) -> list[ModelWrite]:
    """Return the models whose rows or form differ from the snapshot's, with their net changes.

    A model is copied whole if the store lacks it, or if its table, SQL, key or columns are others.
    So it is if its version went back, or if its net change can no longer be read.
    """
    writes = []
    for spec in served:
        state = snapshot.models.get(spec.unique_id)
        if state is None:
            continue
        stored = base.models.get(spec.name)
        change = None
        if stored is not None and _fits(stored, spec, state, tenant_column):
            if stored.table_version == state.version:
                continue
            if stored.table_version < state.version and not is_published(base, snapshot):
                change = _read(tables, spec, stored, state)
        writes.append(ModelWrite(spec, state, stored, change))
    return writes


def form_of(spec: ServedSpec, schema: pa.Schema, tenant_column: str | None) -> ServedModel:
    """Return the form in which a model is served: its columns, its key if they have it, its time.

    Args:
        spec: as the project declares the model.
        schema: the model's columns plus `WEIGHT`.
        tenant_column: name of the column that holds a tenant's id; None if there are none.
    """
    columns = _columns(schema)
    kinds = dict(columns)
    names = {name.lower(): name for name, _ in columns}
    key = [names.get(name.lower()) for name in spec.row_key]
    row_key = tuple(name for name in key if name is not None and kinds[name] != "json")
    if len(row_key) != len(spec.row_key):
        row_key = ()
    times = [name for name in row_key if kinds[name] in TIMESTAMPS]
    event_time = names.get((spec.event_time or "").lower())
    if event_time is not None and kinds[event_time] in _TIME_KINDS:
        times.insert(0, event_time)
    return ServedModel(
        name=spec.name,
        columns=columns,
        row_key=row_key,
        tenant_column=_tenant(columns, tenant_column),
        time_column=times[0] if times else None,
    )


def _fits(
    stored: StoredModel, spec: ServedSpec, state: ModelState, tenant_column: str | None
) -> bool:
    model = stored.layout.model
    return (stored.relation, stored.table_id, stored.fingerprint) == (
        spec.relation,
        state.table_id,
        state.fingerprint,
    ) and (stored.declared_key, stored.event_time, model.tenant_column) == (
        spec.row_key,
        spec.event_time,
        _tenant(model.columns, tenant_column),
    )


def _read(
    tables: ServedTables, spec: ServedSpec, stored: StoredModel, state: ModelState
) -> pa.Table | None:
    """Return the net change since the stored version; None if it does not fit the stored table."""
    try:
        change = tables.change(spec.relation, stored.table_version, state.version)
    except LivemartError:
        return None
    return change if _columns(change.schema) == stored.layout.model.columns else None


def _columns(schema: pa.Schema) -> tuple[tuple[str, str], ...]:
    return tuple((field.name, kind_of(field.type)) for field in schema if field.name != WEIGHT)


def _tenant(columns: Sequence[tuple[str, str]], name: str | None) -> str | None:
    if name is None:
        return None
    columns_of_name = [
        column
        for column, kind in columns
        if column.lower() == name.lower() and kind in _TENANT_KINDS
    ]
    return columns_of_name[0] if columns_of_name else None
