"""Builds the texts of the pages of served models: rows, columns, key, age, and a table of rows.

Used by the page of any project; it knows no model by name.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from livemart.serve.auth.callers import Caller
from livemart.serve.page.text import DASH, age, count
from livemart.store.served import ServedModel
from livemart.store.snapshot_view import SnapshotView
from livemart.store.value_forms import json_value

_LONGEST_CELL = 300


@dataclass(frozen=True, slots=True)
class ModelView:
    """A served model as its pages show it.

    `row_count` is a dash for who may not know; `aside` says so if its rows are those of an earlier
    snapshot, else it is empty.
    """

    name: str
    row_count: str
    key: Sequence[str]
    columns: Sequence[tuple[str, str]]
    changed: str
    aside: str


def build_model(view: SnapshotView, model: ServedModel, caller: Caller, now: datetime) -> ModelView:
    """Return a model as its pages show it to a caller at `now`, the wall clock, UTC."""
    aside = ""
    if (set_aside := view.published.refreshed_at(model.name)) is not None:
        since, refreshed_at = set_aside
        rows = "never filled" if refreshed_at is None else f"rows of {age(now - refreshed_at)}"
        aside = f"set aside since snapshot {since}, {rows}"
    changed_at = view.changed_at(model.name, caller.tenants)
    return ModelView(
        name=model.name,
        # Counts the rows of all tenants: only an admin may see it.
        row_count=count(view.row_count(model.name) if caller.is_admin else None),
        key=model.row_key,
        columns=model.columns,
        changed=DASH if changed_at is None else age(now - changed_at),
        aside=aside,
    )


def build_rows(model: ServedModel, rows: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """Return the cells of rows as text, as the API writes them; a dash for NULL.

    Long ones are cut: the API has them whole.
    """
    return [[_cell(row[name], kind) for name, kind in model.columns] for row in rows]


def _cell(value: Any, kind: str) -> str:
    if isinstance(value, bytes | bytearray | memoryview):
        return f"{count(len(value))} bytes"
    plain = json_value(value, kind)
    if plain is None:
        return DASH
    text = plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False)
    return text if len(text) <= _LONGEST_CELL else f"{text[:_LONGEST_CELL]}\N{HORIZONTAL ELLIPSIS}"
