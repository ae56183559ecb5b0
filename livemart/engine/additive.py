"""Additive groups: stored totals plus the signed change, in one statement."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from livemart.engine.arrow_types import spark_schema
from livemart.engine.differences import quoted, typed_columns
from livemart.engine.tables import NEW_COUNT, OLD_COUNT
from livemart.plan.signed import Output


def combined_groups(
    schema: pa.Schema, outputs: Sequence[Output], sides: Sequence[tuple[str, int]], stored: str
) -> str:
    """Return SQL that moves stored groups by a signed change.

    Args:
        schema: columns of the model.
        outputs: the role of each.
        sides: the model's query over touched rows with its sign, +1 as they are, -1 as they were.
        stored: view or subquery of the model's rows, at least those of every group that changes.

    Returns:
        Columns of the model plus `_old_count`, `_new_count` (one row for each row that leaves,
        with 1 and 0, and for each that comes, with 0 and 1) and `_doubtful`: true where the change
        alone does not say whether a sum became NULL, or a count fell below zero.
    """
    roles = {output.name.lower(): output for output in outputs}
    kinds = {field.name: field.dataType.simpleString() for field in spark_schema(schema).fields}
    named = [(field.name, roles[field.name.lower()]) for field in schema]
    keys = [name for name, output in named if output.role == "key"]
    measures = [(name, output) for name, output in named if output.role != "key"]
    rows = next(name for name, output in measures if output.role == "count_rows")
    change = _change(schema, keys, measures, sides)
    join = " and ".join(f"t.{quoted(key)} <=> d.{quoted(key)}" for key in keys) or "true"
    count = f"(coalesce(t.{quoted(rows)}, 0) + d.{_moved(rows)})"
    values, doubts = [], [f"{count} < 0", f"(t.{quoted(rows)} is null and {count} = 0)"]
    for name, output in measures:
        value = f"coalesce(t.{quoted(name)}, 0) + d.{_moved(name)}"
        if output.role == "sum" and not output.is_never_null:
            gained, lost = f"d.{_gained(name)}", f"d.{_lost(name)}"
            total = f"(t.{quoted(name)} is not null)"
            doubts.append(f"({lost} and not {gained} and {count} > 0 and {value} = 0)")
            doubts.append(f"({lost} and t.{quoted(rows)} is not null and not {total})")
            value = f"case when {total} or {gained} then {value} end"
        values.append(f"cast({value} as {kinds[name]}) as {quoted(name)}")
    old_row = ", ".join(f"t.{quoted(name)} as {quoted('old ' + name)}" for name, _ in measures)
    key_list = ", ".join(f"d.{quoted(key)}" for key in keys)
    joined = (
        f"select {', '.join(filter(None, [key_list, ', '.join(values), old_row]))},"
        f" t.{quoted(rows)} is not null as _stored, {count} > 0 as _present,"
        f" ({' or '.join(doubts)}) as _doubtful"
        f" from ({change}) as d left join {stored} as t on {join}"
    )
    differs = " or ".join(
        f"not ({quoted(name)} <=> {quoted('old ' + name)})" for name, _ in measures
    )
    # One pass over the joined groups: each yields the row that leaves and the row that comes.
    leaving = f"named_struct({_pairs(schema, keys, 'old ')}, '{OLD_COUNT}', 1L, '{NEW_COUNT}', 0L)"
    coming = f"named_struct({_pairs(schema, keys, '')}, '{OLD_COUNT}', 0L, '{NEW_COUNT}', 1L)"
    changes = (
        f"filter(array(case when _stored then {leaving} end, case when _present then {coming} end),"
        " row -> row is not null)"
    )
    return (
        f"select moved.*, _doubtful from (select _doubtful, explode_outer({changes}) as moved"
        f" from ({joined}) where _doubtful or not (_stored and _present) or {differs})"
    )


def _pairs(schema: pa.Schema, keys: Sequence[str], prefix: str) -> str:
    return ", ".join(
        f"{_text(name)}, {quoted(name if name in keys else prefix + name)}" for name in schema.names
    )


def _change(
    schema: pa.Schema,
    keys: Sequence[str],
    measures: Sequence[tuple[str, Output]],
    sides: Sequence[tuple[str, int]],
) -> str:
    """Return SQL for the net change of each group; groups whose change is zero are left out."""
    stacked = " union all ".join(
        f"select {typed_columns(schema, 'q')}, {sign} as _sign from ({query}) as q"
        for query, sign in sides
    )
    parts = [quoted(key) for key in keys]
    moved = []
    for name, output in measures:
        parts.append(f"sum(_sign * coalesce({quoted(name)}, 0)) as {_moved(name)}")
        moved.append(f"sum(_sign * coalesce({quoted(name)}, 0)) <> 0")
        if output.role == "sum" and not output.is_never_null:
            present = f"{quoted(name)} is not null"
            parts.append(f"bool_or(_sign > 0 and {present}) as {_gained(name)}")
            parts.append(f"bool_or(_sign < 0 and {present}) as {_lost(name)}")
            moved.append(f"bool_or(_sign > 0 and {present}) <> bool_or(_sign < 0 and {present})")
    grouped = f" group by {', '.join(map(quoted, keys))}" if keys else ""
    return f"select {', '.join(parts)} from ({stacked}){grouped} having {' or '.join(moved)}"


def _moved(name: str) -> str:
    return quoted("moved " + name)


def _gained(name: str) -> str:
    return quoted("gained " + name)


def _lost(name: str) -> str:
    return quoted("lost " + name)


def _text(name: str) -> str:
    return "'" + name.replace("\\", "\\\\").replace("'", "\\'") + "'"
