"""Shows a change as a reader sees it who has only the rows that fulfil conditions.

Used by the snapshot view. A row that begins to fulfil them is an insert, one that no longer does a
delete: so the reader gets the changes of exactly these rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from livemart.store.column_types import stored_text
from livemart.store.predicates import COMPARE, ColumnCondition
from livemart.store.served import Change, ServedModel
from livemart.store.value_forms import parse_served_value

# Returns True if a row, as the change log holds it, fulfils all conditions.
Judgment = Callable[[Mapping[str, Any]], bool]


def row_test(
    served: ServedModel, conditions: Sequence[ColumnCondition], dialect_name: str
) -> Judgment:
    """Return the test of rows by conditions; see `ColumnCondition`.

    `dialect_name`: of the database, whose rows and changes hold some texts otherwise.
    """
    kinds = served.kinds
    tests = [
        (condition.column, _value_test(kinds[condition.column], condition, dialect_name))
        for condition in conditions
    ]
    return lambda row: all(test(row[name]) for name, test in tests)


def seen_as(change: Change, before: Mapping[str, Any] | None, fulfils: Judgment) -> Change | None:
    """Return a change for a reader of the rows that fulfil conditions; None if it sees none.

    Args:
        change: of a row.
        before: the values that an update replaced.
        fulfils: the test of a row.
    """
    is_in = fulfils(change.row)
    if change.op != "update":
        return change if is_in else None
    old = {**change.row, **(before or {})}
    was_in = fulfils(old)
    if was_in and is_in:
        return change
    if is_in:
        return replace(change, op="insert")
    return replace(change, op="delete", row=old) if was_in else None


def _value_test(kind: str, condition: ColumnCondition, dialect_name: str) -> Callable[[Any], bool]:
    if condition.operator == "is":
        return lambda plain: (plain is None) is condition.value

    def held(value: Any) -> Any:
        return _in_order(stored_text(value, dialect_name) if kind == "string" else value)

    if condition.operator == "in":
        values = set(map(held, condition.value))
        return lambda plain: plain is not None and _stored(kind, plain) in values
    compare, bound = COMPARE[condition.operator], held(condition.value)
    return lambda plain: plain is not None and bool(compare(_stored(kind, plain), bound))


def _stored(kind: str, plain: Any) -> Any:
    """Return the compared form of a value that the change log holds as JSON."""
    is_written = isinstance(plain, str) and kind != "string"
    return _in_order(parse_served_value(kind, plain) if is_written else plain)


def _in_order(value: Any) -> Any:
    """Return a key by which Python compares as the databases do: NaN is above all numbers."""
    if isinstance(value, float):
        return (True, 0.0) if math.isnan(value) else (False, value)
    return value
