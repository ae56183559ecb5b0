"""Asks other readers of a Delta table, and makes a table of awkward values to ask them for.

A reader that is misled is found by the same table without any bounds: it must answer the same of
both tables, however it reads NaN and both zeros.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import polars
import pyarrow as pa
import pyarrow.dataset as pds
import pyarrow.parquet as pq
from deltalake import DeltaTable, QueryBuilder
from deltalake.schema import Schema as DeltaSchema

from livemart.arrow.bags import NEW_COUNT, OLD_COUNT
from livemart.delta.tags import Tag
from livemart.delta.warehouse import Warehouse
from tests.disagreeing_values import KINDS

INF, NAN = float("inf"), float("nan")
NINES = Decimal("9" * 38)
_STRUCT = pa.struct([("x", pa.float64()), ("y", pa.string())])

# By column: type, and the values of three files. An additional column is `n`, 0 to 8.
AWKWARD: Mapping[str, tuple[pa.DataType, Sequence[Sequence[Any]]]] = {
    "whole": (pa.int64(), [[-(2**63), 0, None], [1, 2, 3], [2**63 - 1] * 3]),
    "tiny": (pa.int8(), [[-128, None, 0], [None] * 3, [127, 1, 1]]),
    "money": (
        pa.decimal128(10, 2),
        [[Decimal("-0.01"), Decimal("0.00"), None], [Decimal("99999999.99")] * 3, [None] * 3],
    ),
    "wide": (
        pa.decimal128(38, 0),
        [[Decimal(f"-{NINES}"), None, None], [Decimal(0), Decimal(1), None], [NINES] * 3],
    ),
    "fine": (
        pa.decimal128(38, 38),
        [[Decimal(f"0.{NINES}"), Decimal(0), None], [Decimal("1E-38")] * 3, [None] * 3],
    ),
    "real": (pa.float64(), [[1.0, 0.5, None], [5e-324, -INF, INF], [0.1, 1e308, 2.0]]),
    "half": (pa.float32(), [[0.1, -1.5, None], [INF, 1e38, 3.0], [-INF, None, None]]),
    "zero": (pa.float64(), [[0.0] * 3, [-0.0] * 3, [0.0, -0.0, None]]),
    "text": (
        pa.string(),
        [["", "é" * 40, None], ["\U0001f600" * 40, "z", "\uffff"], ["\U0010ffff" * 40, "~", "a\0"]],
    ),
    "flag": (pa.bool_(), [[True] * 3, [False, None, False], [None] * 3]),
    "bytes": (pa.binary(), [[b"", b"\xff" * 40, None], [b"a", b"b", b"\0"], [None] * 3]),
    "day": (
        pa.date32(),
        [[date.min, date(1582, 10, 4), None], [date(1970, 1, 1)] * 3, [date.max] * 3],
    ),
    "at": (
        pa.timestamp("us", tz="UTC"),
        [
            [datetime.min.replace(tzinfo=UTC), datetime(1600, 2, 29, 1, 2, 3, 4, UTC), None],
            [datetime(2026, 3, 1, 12, 0, 0, 999_999, UTC)] * 3,
            [datetime.max.replace(tzinfo=UTC)] * 3,
        ],
    ),
    "clock": (
        pa.timestamp("us"),
        [[datetime.min, None, None], [datetime(1969, 12, 31, 23, 59, 59, 1)] * 3, [datetime.max]],
    ),
    "void": (pa.int32(), [[None] * 3] * 3),
    "pair": (_STRUCT, [[{"x": 1.0, "y": "a"}, None, {"x": None, "y": "é"}], [None] * 3, [None]]),
    "list": (pa.list_(pa.float64()), [[[NAN, -0.0], [], None], [[None], [1.0], None], [None] * 3]),
    "map": (pa.map_(pa.string(), pa.float64()), [[[("a", NAN)], [], None], [None] * 3, [None] * 3]),
}
# In a separate table: in a file with NaN no column has bounds.
WITH_NAN: Mapping[str, tuple[pa.DataType, Sequence[Sequence[Any]]]] = {
    "real": (pa.float64(), [[1.0, 0.5, None], [NAN, 0.1, INF], [NAN] * 3]),
    "half": (pa.float32(), [[NAN, 1.5, None], [3.0, 4.0, -0.0], [None, NAN, 2.0]]),
    "word": (pa.string(), [["a", "b", "c"], ["d", "e", "f"], ["g", "h", "i"]]),
    "pair": (_STRUCT, [[{"x": NAN, "y": "a"}, None, {"x": 1.0, "y": "b"}], [None] * 3, [None] * 3]),
}
Columns = Mapping[str, tuple[pa.DataType, Sequence[Sequence[Any]]]]
_PLAIN = {name: kind for name, kind in KINDS.items() if not pa.types.is_nested(kind.arrow)}
# By table: columns of the values on which engines disagree. Floats, as they hold NaN, are apart.
DISAGREEING: Mapping[str, Columns] = {
    table: {
        name: (kind.arrow, [kind.values])
        for name, kind in _PLAIN.items()
        if pa.types.is_floating(kind.arrow) == (table == "floating")
    }
    for table in ("exact", "floating")
}

OPERATORS = ("=", ">", ">=", "<", "<=")


def files_of(columns: Columns) -> list[pa.Table]:
    """Return the rows of each of the three files; the last value of a column fills it up."""
    files = []
    for place in range(3):
        arrays: dict[str, pa.Array] = {"n": pa.array(range(3 * place, 3 * place + 3), pa.int64())}
        for name, (kind, values) in columns.items():
            held = list(values[place])
            arrays[name] = pa.array(held + held[-1:] * (3 - len(held)), kind)
        files.append(pa.table(arrays))
    return files


def random_files(columns: Columns, seed: int) -> list[pa.Table]:
    """Return the rows of three files, of values of the columns and NULL, drawn by the seed."""
    chance = random.Random(seed)
    count = 20
    return [
        pa.table(
            {
                "n": pa.array(range(start, start + count), pa.int64()),
                **{
                    name: pa.array(chance.choices([*values[0], None], k=count), kind)
                    for name, (kind, values) in columns.items()
                },
            }
        )
        for start in range(0, 3 * count, count)
    ]


def publish(warehouse: Warehouse, relation: str, files: Sequence[pa.Table]) -> str:
    """Commit each of these tables to one table as the small lane does; return its folder."""
    warehouse.create(relation, files[0].schema)
    for number, rows in enumerate(files):
        ones = pa.repeat(pa.scalar(1, pa.int64()), rows.num_rows)
        zeros = pa.repeat(pa.scalar(0, pa.int64()), rows.num_rows)
        diff = rows.append_column(OLD_COUNT, zeros).append_column(NEW_COUNT, ones)
        warehouse.commit(relation, diff, Tag(f"e/{relation}/0", number))
    return str(warehouse.path(relation))


def without_bounds(folder: Path, files: Sequence[pa.Table]) -> str:
    """Make the same table without a bound or a dictionary anywhere; return its folder."""
    DeltaTable.create(str(folder), DeltaSchema.from_arrow(files[0].schema))
    lines = []
    for number, rows in enumerate(files):
        path = folder / f"{number}.parquet"
        pq.write_table(
            rows,
            path,
            write_statistics=False,
            use_dictionary=False,
            store_schema=False,
            coerce_timestamps="us",
        )
        add = {"path": path.name, "partitionValues": {}, "size": path.stat().st_size}
        lines.append(json.dumps({"add": {**add, "modificationTime": 1, "dataChange": True}}))
    (folder / "_delta_log" / f"{1:020}.json").write_text("\n".join(lines))
    return str(folder)


def predicates(
    columns: Columns, operators: Sequence[str] = OPERATORS
) -> Iterator[tuple[str, str, Any]]:
    """Yield column, operator and value of filters: each value that a column holds, and NULL."""
    for name, (kind, values) in columns.items():
        yield name, "is null", None
        yield name, "is not null", None
        if pa.types.is_nested(kind):
            continue
        held = {repr(value): value for file in values for value in file if value is not None}
        for value in held.values():
            for operator in operators:
                yield name, operator, value


def _by_arrow(folder: str, columns: Columns) -> Callable[[str, str, Any], list[int]]:
    dataset = DeltaTable(folder).to_pyarrow_dataset()
    operators = {"=": "__eq__", ">": "__gt__", ">=": "__ge__", "<": "__lt__", "<=": "__le__"}

    def ask(name: str, operator: str, value: Any) -> list[int]:
        field = pds.field(name)
        if value is None:
            passes = field.is_null() if operator == "is null" else field.is_valid()
        else:
            passes = getattr(field, operators[operator])(pa.scalar(value, columns[name][0]))
        return sorted(dataset.to_table(columns=["n"], filter=passes).column("n").to_pylist())

    return ask


def _by_pandas(folder: str, columns: Columns) -> Callable[[str, str, Any], list[int]]:
    table = DeltaTable(folder)

    def ask(name: str, operator: str, value: Any) -> list[int]:
        passes: Any = (
            pds.field(name).is_null() if operator == "is null" else pds.field(name).is_valid()
        )
        if value is not None:
            passes = [(name, operator, pa.scalar(value, columns[name][0]))]
        return sorted(table.to_pandas(columns=["n"], filters=passes)["n"].to_list())

    return ask


def _by_duckdb(folder: str, columns: Columns) -> Callable[[str, str, Any], list[int]]:
    connection = duckdb.connect()
    connection.execute("set timezone = 'UTC'")
    connection.register("published", DeltaTable(folder).to_pyarrow_dataset())

    def ask(name: str, operator: str, value: Any) -> list[int]:
        asked = f'"{name}" {operator}'
        if value is not None:
            kind = columns[name][0]
            shown = _shown(value)
            if pa.types.is_binary(kind):
                asked += f" unhex('{value.hex()}')"
            elif pa.types.is_string(kind):
                asked += " '{}'".format(_quoted(value).replace("\0", "' || chr(0) || '"))
            else:
                asked += f" '{shown}'::{_DUCKDB_TYPES.get(kind, kind)}"
        rows = connection.execute(f"select n from published where {asked} order by n").fetchall()
        return [row[0] for row in rows]

    return ask


def _by_datafusion(folder: str, columns: Columns) -> Callable[[str, str, Any], list[int]]:
    builder = QueryBuilder().register("published", DeltaTable(folder))

    def ask(name: str, operator: str, value: Any) -> list[int]:
        asked = f'"{name}" {operator}'
        if value is not None:
            kind = columns[name][0]
            if pa.types.is_binary(kind):
                asked += f" X'{value.hex()}'"
            elif pa.types.is_timestamp(kind):
                ticks = pa.scalar(value, kind).cast(pa.int64()).as_py()
                zone = 'Some("UTC")' if kind.tz else "None"
                asked += f" arrow_cast({ticks}, 'Timestamp(Microsecond, {zone})')"
            elif pa.types.is_string(kind):
                asked += f" '{_quoted(value)}'"
            else:
                spelled = _DATAFUSION_TYPES.get(kind) or _spelled(kind)
                asked += f" arrow_cast('{_shown(value)}', '{spelled}')"
        found = builder.execute(f"select n from published where {asked} order by n").read_all()
        return [int(number) for number in pa.table(found).column("n").to_pylist()]

    return ask


def _by_polars(folder: str, columns: Columns) -> Callable[[str, str, Any], list[int]]:
    published = polars.scan_delta(folder)
    kinds = published.collect_schema()
    compared = {"=": "eq", ">": "gt", ">=": "ge", "<": "lt", "<=": "le"}

    def ask(name: str, operator: str, value: Any) -> list[int]:
        column = polars.col(name)
        if value is None:
            passes = column.is_null() if operator == "is null" else column.is_not_null()
        else:
            # A plain literal: what is computed is not compared with bounds.
            passes = getattr(column, compared[operator])(polars.lit(value, kinds[name]))
        return sorted(published.filter(passes).select("n").collect()["n"].to_list())

    return ask


_DUCKDB_TYPES = {
    pa.int64(): "bigint",
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.decimal128(10, 2): "decimal(10, 2)",
    pa.decimal128(38, 0): "decimal(38, 0)",
    pa.decimal128(38, 18): "decimal(38, 18)",
    pa.decimal128(38, 38): "decimal(38, 38)",
    pa.float64(): "double",
    pa.float32(): "float",
    pa.bool_(): "boolean",
    pa.date32(): "date",
    pa.timestamp("us", tz="UTC"): "timestamptz",
    pa.timestamp("us"): "timestamp",
}
_DATAFUSION_TYPES = {pa.bool_(): "Boolean", pa.date32(): "Date32"}


def _quoted(text: str) -> str:
    return text.replace("'", "''")


def _shown(value: Any) -> str:
    match value:
        case datetime():
            return value.isoformat(sep=" ")
        case Decimal():
            return format(value, "f")
        case _:
            return str(value)


def _spelled(kind: pa.DataType) -> str:
    if pa.types.is_decimal(kind):
        return f"Decimal128({kind.precision}, {kind.scale})"
    return {"double": "Float64", "float": "Float32"}.get(str(kind), str(kind).capitalize())


READERS = {
    "deltalake": _by_arrow,
    "pandas": _by_pandas,
    "duckdb": _by_duckdb,
    "datafusion": _by_datafusion,
    "polars": _by_polars,
}
