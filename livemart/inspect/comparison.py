"""Compares two bags of rows both ways, exactly or within a stated tolerance.

Used by `verify`. Only doubles that a model computes, also in arrays and structs, and columns of
class approximate have a tolerance. Columns that a model passes on (`plan/passed_on`) are compared
as identical, all others as equal.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from livemart.spark.differences import comparable, has_time, holds_float, holds_map, signs_of_zeros
from livemart.spark_sql import literal, quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row
    from pyspark.sql.types import DataType, StructField, StructType

# Sums of doubles depend on the order of the rows: two full builds differ in the last digits.
DOUBLE_TOLERANCE = 1e-9
# Terms that cancel out leave a rest of this size where another order of the rows leaves zero.
ZERO_TOLERANCE = 1e-12
# Three standard errors of a sketch of 2^12 registers.
ESTIMATE_TOLERANCE = 0.05
EXAMPLES = 20
# Besides maps Spark puts these in no order.
_WITHOUT_ORDER = re.compile(r"\b(?:variant|interval(?! )|geo\w+)")
# Beside the columns of a table: no name of the analyst's begins so.
_SIDE = "__livemart_side"
_VALUES = "__livemart_values"
_SIGNS = "__livemart_signs"


@dataclass(frozen=True, slots=True)
class Difference:
    """A row that one side has more often. `side`: `stored` or `recomputed`."""

    side: str
    count: int
    row: Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class Differences:
    """The differences of two bags: columns, and up to 20 of `count` rows."""

    columns: tuple[str, ...]
    count: int
    examples: tuple[Difference, ...]
    tolerances: Mapping[str, float]

    @property
    def is_equal(self) -> bool:
        """True if nothing differs."""
        return not self.columns and self.count == 0


class _Loose(NamedTuple):
    """A column that is compared within a tolerance: SQL of its value, and that value's type."""

    value: str
    kind: DataType
    tolerance: float


def compare(
    stored: DataFrame,
    recomputed: DataFrame,
    approximate: Mapping[str, str],
    passed_on: Collection[str] = (),
) -> Differences:
    """Compare two bags of rows, column by name, schema included (but not nullability).

    Args:
        approximate: columns (lower case) from sketches and the like, with the function's name.
        passed_on: columns (lower case) whose values are those of an input, bit for bit.
    """
    columns = _schema_differences(stored.schema, recomputed.schema)
    if columns:
        return Differences(columns, 0, (), {})
    _, loose = _columns(stored, approximate, passed_on)
    tolerances = {name: column.tolerance for name, column in loose.items()}
    different = different_rows(stored, recomputed, approximate, passed_on)
    shown_columns = [_shown(field) for field in different.schema.fields]
    rows = different.limit(EXAMPLES + 1).selectExpr(*shown_columns).collect()
    count = len(rows) if len(rows) <= EXAMPLES else different.count()
    shown = {name: _texts(rows, name) for row in rows[:1] for name in row.asDict()}
    for field in stored.schema.fields:
        if field.name in shown and field.dataType.simpleString() == "variant":
            shown[field.name] = _variant_texts(rows, field.name)
    examples = tuple(
        Difference(
            "stored" if row[_SIDE] > 0 else "recomputed",
            abs(int(row[_SIDE])),
            {name: texts[place] for name, texts in shown.items() if name != _SIDE},
        )
        for place, row in enumerate(rows[:EXAMPLES])
    )
    return Differences((), count, examples, tolerances)


def _shown(field: StructField) -> str:
    """Return SQL of a column to be listed: Python has no time before the year 1 or after 9999."""
    name = quoted(field.name)
    return f"cast({name} as string) as {name}" if has_time(field.dataType) else name


def _texts(rows: Sequence[Row], name: str) -> list[str | None]:
    return [None if row[name] is None else str(row[name]) for row in rows]


def _variant_texts(rows: Sequence[Row], name: str) -> list[str | None]:
    """Return variants as JSON; with their type where it alone tells two of them apart."""
    types: dict[str, set[str]] = {}
    for row in rows:
        types.setdefault(row[name].json, set()).add(row[name].type)
    return [
        f"{json} ({kind})" if len(types[json]) > 1 else json
        for json, kind in (row[name] for row in rows)
    ]


def different_rows(
    stored: DataFrame,
    recomputed: DataFrame,
    approximate: Mapping[str, str],
    passed_on: Collection[str] = (),
) -> DataFrame:
    """Return the rows that one side has more often, with its exact columns under their names."""
    exact, loose = _columns(stored, approximate, passed_on)
    signs = signs_passed_on(stored.schema, passed_on)
    keys = exact | {f"{_SIGNS}_{place}": sql for place, sql in enumerate(signs.values())}
    if loose:
        return _differing_groups(stored, recomputed, exact, keys, loose)
    return _differing_rows(stored, recomputed, exact, keys)


def in_any_order(schema: StructType, listed: Mapping[str, str | None]) -> list[str]:
    """Return a select list of all columns, with the elements of some lists in order.

    Args:
        listed: by name in lower case, what separates the elements of a text; None for an array.
    """
    columns = []
    for field in schema.fields:
        value = quoted(field.name)
        if field.name.lower() in listed:
            separator = listed[field.name.lower()]
            if separator is not None:
                value = f"split({value}, {literal(re.escape(separator))})"
            columns.append(f"array_sort({value}) as {quoted(field.name)}")
        else:
            columns.append(value)
    return columns


def can_be_sorted(kind: DataType) -> bool:
    """Return True for a text, and for an array whose elements Spark can put in order."""
    from pyspark.sql.types import ArrayType, StringType

    is_comparable = not holds_map(kind) and not _WITHOUT_ORDER.search(kind.simpleString())
    return isinstance(kind, StringType) or (isinstance(kind, ArrayType) and is_comparable)


def signs_passed_on(schema: StructType, passed_on: Collection[str]) -> dict[str, str]:
    """Return, by name, SQL that distinguishes the zeros of each column that is passed on."""
    return {
        field.name: signs_of_zeros(quoted(field.name), field.dataType)
        for field in schema.fields
        if field.name.lower() in passed_on and holds_float(field.dataType)
    }


def _columns(
    stored: DataFrame, approximate: Mapping[str, str], passed_on: Collection[str]
) -> tuple[dict[str, str], dict[str, _Loose]]:
    """Return SQL of the exact columns, and the others."""
    from pyspark.sql.types import DoubleType

    exact: dict[str, str] = {}
    loose: dict[str, _Loose] = {}
    for field in stored.schema.fields:
        kind, name = field.dataType.simpleString(), quoted(field.name)
        function = approximate.get(field.name.lower())
        is_computed = field.name.lower() not in passed_on
        if function is not None and kind == "binary":
            family = "theta" if function.startswith("theta") else "hll"
            estimate = f"cast({family}_sketch_estimate({name}) as double)"
            loose[field.name] = _Loose(estimate, DoubleType(), ESTIMATE_TOLERANCE)
        elif function is not None and _is_number(kind):
            loose[field.name] = _Loose(f"cast({name} as double)", DoubleType(), ESTIMATE_TOLERANCE)
        elif kind in ("double", "float") and is_computed:
            # Both zeros are one value here: rows are paired in an order that tells them apart.
            value = f"if({name} = 0, 0D, cast({name} as double))"
            loose[field.name] = _Loose(value, DoubleType(), DOUBLE_TOLERANCE)
        elif not holds_map(field.dataType) and (
            # Rows are paired in an order, and Spark has none for maps.
            function is not None or (is_computed and holds_float(field.dataType))
        ):
            tolerance = DOUBLE_TOLERANCE if function is None else ESTIMATE_TOLERANCE
            loose[field.name] = _Loose(name, field.dataType, tolerance)
        else:
            exact[field.name] = comparable(name, field.dataType, in_order=not is_computed)
    return exact, loose


def _differing_rows(
    stored: DataFrame, recomputed: DataFrame, exact: Mapping[str, str], keys: Mapping[str, str]
) -> DataFrame:
    """EXCEPT ALL in both directions in one pass: rows by how much more often `stored` has them.

    `keys`: the exact columns, and what tells apart those that are equal.
    """
    names = ", ".join(map(quoted, keys))
    return stored.sparkSession.sql(
        f"select {_any_of(exact)}, sum({_SIDE}) as {_SIDE} from ("
        f"select {_selected(keys)}, 1 as {_SIDE} from {{stored}} "
        f"union all select {_selected(keys)}, -1 as {_SIDE} from {{recomputed}}"
        f") group by {names} having sum({_SIDE}) <> 0",
        stored=stored,
        recomputed=recomputed,
    )


def _differing_groups(
    stored: DataFrame,
    recomputed: DataFrame,
    exact: Mapping[str, str],
    keys: Mapping[str, str],
    loose: Mapping[str, _Loose],
) -> DataFrame:
    """Rows equal in their exact columns are paired in order of the others, and these compared."""
    values = ", ".join(f"{column.value} as {quoted(name)}" for name, column in loose.items())
    names = ", ".join(map(quoted, keys))
    hidden = ", ".join(quoted(name) for name in keys if name not in exact)
    selected = "".join(f"{part}, " for part in (_any_of(exact), hidden) if part)

    def grouped(side: str) -> str:
        columns = f"{_selected(keys)}, " if keys else ""
        return (
            f"select {selected}sort_array(collect_list({_VALUES})) as {_VALUES} from ("
            f"select {columns}struct({values}) as {_VALUES} from {{{side}}}"
            f"){f' group by {names}' if keys else ''}"
        )

    joined = " and ".join(f"s.{quoted(name)} <=> r.{quoted(name)}" for name in keys) or "true"
    far = " or ".join(
        _far(column.kind, f"a.{quoted(name)}", f"b.{quoted(name)}", column.tolerance)
        for name, column in loose.items()
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


def _far(kind: DataType, left: str, right: str, tolerance: float, depth: int = 0) -> str:
    """Return SQL that is true if two values differ by more than the tolerance, at any depth."""
    from pyspark.sql.types import ArrayType, DoubleType, FloatType, NumericType, StructType

    if isinstance(kind, ArrayType):
        a, b = f"a{depth}", f"b{depth}"
        element = _far(kind.elementType, a, b, tolerance, depth + 1)
        inside = (
            f"size({left}) <> size({right})"
            f" or exists(zip_with({left}, {right}, ({a}, {b}) -> {element}), is_far -> is_far)"
        )
    elif isinstance(kind, StructType):
        names = [quoted(field.name) for field in kind.fields]
        parts = (
            _far(field.dataType, f"{left}.{name}", f"{right}.{name}", tolerance, depth)
            for name, field in zip(names, kind.fields, strict=True)
        )
        inside = " or ".join(parts)
    elif isinstance(kind, (DoubleType, FloatType)) or (
        isinstance(kind, NumericType) and tolerance == ESTIMATE_TOLERANCE
    ):
        a, b = f"cast({left} as double)", f"cast({right} as double)"
        limit = f"greatest({ZERO_TOLERANCE}D, {tolerance}D * greatest(abs({a}), abs({b})))"
        # Neither an infinite difference nor NaN is near, though Spark says that NaN <= NaN.
        near = f"abs({a} - {b}) <= {limit} and abs({a} - {b}) < double('infinity')"
        return f"not ({left} <=> {right} or coalesce({near}, false))"
    else:
        return f"not ({left} <=> {right})"
    return f"(({left} is null) <> ({right} is null) or coalesce({inside}, false))"


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


def _any_of(columns: Mapping[str, str]) -> str:
    # As a separate key, GROUP BY shows -0.0 as 0.0.
    return ", ".join(f"any_value({quoted(name)}) as {quoted(name)}" for name in columns)


def _selected(columns: Mapping[str, str]) -> str:
    return ", ".join(f"{sql} as {quoted(name)}" for name, sql in columns.items())
