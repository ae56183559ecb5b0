"""Compares two bags of rows both ways, exactly or within a stated tolerance.

Used by `verify`. Only sums of doubles and columns of class approximate have a tolerance.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from livemart.spark.differences import comparable
from livemart.spark_sql import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

# Sums of doubles depend on the order of the rows: two full builds differ in the last digits.
DOUBLE_TOLERANCE = 1e-9
# Three standard errors of a sketch of 2^12 registers.
ESTIMATE_TOLERANCE = 0.05
EXAMPLES = 20
# Beside the columns of a table: no name of the analyst's begins so.
_SIDE = "__livemart_side"
_VALUES = "__livemart_values"


@dataclass(frozen=True, slots=True)
class Difference:
    """A row that one side has more often. `side`: `stored` or `recomputed`."""

    side: str
    count: int
    row: Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class Differences:
    """All that tells two bags apart: columns, and up to 20 of `count` rows."""

    columns: tuple[str, ...]
    count: int
    examples: tuple[Difference, ...]
    tolerances: Mapping[str, float]

    @property
    def is_equal(self) -> bool:
        """True if nothing differs."""
        return not self.columns and self.count == 0


def compare(
    stored: DataFrame, recomputed: DataFrame, approximate: Mapping[str, str]
) -> Differences:
    """Compare two bags of rows, column by name, schema included (but not nullability).

    Args:
        approximate: columns (lower case) from sketches and the like, with the function's name.
    """
    columns = _schema_differences(stored.schema, recomputed.schema)
    if columns:
        return Differences(columns, 0, (), {})
    _, loose = _columns(stored, approximate)
    tolerances = {name: tolerance for name, (_, tolerance) in loose.items()}
    different = different_rows(stored, recomputed, approximate)
    rows = different.limit(EXAMPLES + 1).collect()
    count = len(rows) if len(rows) <= EXAMPLES else different.count()
    examples = tuple(
        Difference(
            "stored" if row[_SIDE] > 0 else "recomputed",
            abs(int(row[_SIDE])),
            {
                name: None if row[name] is None else str(row[name])
                for name in row.asDict()
                if name != _SIDE
            },
        )
        for row in rows[:EXAMPLES]
    )
    return Differences((), count, examples, tolerances)


def different_rows(
    stored: DataFrame, recomputed: DataFrame, approximate: Mapping[str, str]
) -> DataFrame:
    """Return what one side has more often, with its exact columns under their names."""
    exact, loose = _columns(stored, approximate)
    if loose:
        return _differing_groups(stored, recomputed, exact, loose)
    return _differing_rows(stored, recomputed, exact)


def _columns(
    stored: DataFrame, approximate: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, tuple[str, float]]]:
    """Return SQL of the exact columns, and of the others with their tolerance."""
    exact: dict[str, str] = {}
    loose: dict[str, tuple[str, float]] = {}
    for field in stored.schema.fields:
        kind, name = field.dataType.simpleString(), quoted(field.name)
        function = approximate.get(field.name.lower())
        if function is not None and kind == "binary":
            family = "theta" if function.startswith("theta") else "hll"
            loose[field.name] = (
                f"cast({family}_sketch_estimate({name}) as double)",
                ESTIMATE_TOLERANCE,
            )
        elif function is not None and _is_number(kind):
            loose[field.name] = (f"cast({name} as double)", ESTIMATE_TOLERANCE)
        elif kind in ("double", "float"):
            loose[field.name] = (f"cast({name} as double)", DOUBLE_TOLERANCE)
        else:
            exact[field.name] = comparable(name, field.dataType)
    return exact, loose


def _differing_rows(
    stored: DataFrame, recomputed: DataFrame, exact: Mapping[str, str]
) -> DataFrame:
    """EXCEPT ALL in both directions in one pass: rows by how much more often `stored` has them."""
    names = ", ".join(quoted(name) for name in exact)
    return stored.sparkSession.sql(
        f"select {names}, sum({_SIDE}) as {_SIDE} from ("
        f"select {_selected(exact)}, 1 as {_SIDE} from {{stored}} "
        f"union all select {_selected(exact)}, -1 as {_SIDE} from {{recomputed}}"
        f") group by {names} having sum({_SIDE}) <> 0",
        stored=stored,
        recomputed=recomputed,
    )


def _differing_groups(
    stored: DataFrame,
    recomputed: DataFrame,
    exact: Mapping[str, str],
    loose: Mapping[str, tuple[str, float]],
) -> DataFrame:
    """Rows equal in their exact columns are paired in order of the others, and these compared."""
    values = ", ".join(f"{sql} as {quoted(name)}" for name, (sql, _) in loose.items())
    names = ", ".join(quoted(name) for name in exact)

    def grouped(side: str) -> str:
        columns = f"{_selected(exact)}, " if exact else ""
        keys = f"{names}, " if exact else ""
        return (
            f"select {keys}sort_array(collect_list({_VALUES})) as {_VALUES} from ("
            f"select {columns}struct({values}) as {_VALUES} from {{{side}}}"
            f"){f' group by {names}' if exact else ''}"
        )

    joined = " and ".join(f"s.{quoted(name)} <=> r.{quoted(name)}" for name in exact) or "true"
    far = " or ".join(
        f"not (a.{q} <=> b.{q} or coalesce(abs(a.{q} - b.{q}) <= "
        f"{tolerance} * greatest(abs(a.{q}), abs(b.{q})), false))"
        for name, (_, tolerance) in loose.items()
        for q in (quoted(name),)
    )
    shown = "".join(
        f"coalesce(s.{quoted(name)}, r.{quoted(name)}) as {quoted(name)}, " for name in exact
    )
    return stored.sparkSession.sql(
        f"select {shown}s.{_VALUES} as stored_values, r.{_VALUES} as recomputed_values, "
        f"case when r.{_VALUES} is null or size(s.{_VALUES}) >= size(r.{_VALUES}) then 1 else -1 "
        "end "
        f"as {_SIDE} "
        f"from ({grouped('stored')}) s full outer join ({grouped('recomputed')}) r on {joined} "
        f"where s.{_VALUES} is null or r.{_VALUES} is null"
        f" or size(s.{_VALUES}) <> size(r.{_VALUES}) or exists("
        f"zip_with(s.{_VALUES}, r.{_VALUES}, (a, b) -> {far}), is_far -> is_far)",
        stored=stored,
        recomputed=recomputed,
    )


def _schema_differences(stored: StructType, recomputed: StructType) -> tuple[str, ...]:
    left = {field.name.lower(): field.dataType.simpleString() for field in stored.fields}
    right = {field.name.lower(): field.dataType.simpleString() for field in recomputed.fields}
    return tuple(
        f"{name}: stored {left.get(name, 'no such column')}, "
        f"recomputed {right.get(name, 'no such column')}"
        for name in dict.fromkeys([*left, *right])
        if left.get(name) != right.get(name)
    )


def _is_number(kind: str) -> bool:
    return kind in ("tinyint", "smallint", "int", "bigint", "float", "double") or kind.startswith(
        "decimal"
    )


def _selected(columns: Mapping[str, str]) -> str:
    return ", ".join(f"{sql} as {quoted(name)}" for name, sql in columns.items())
