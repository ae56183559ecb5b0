"""A Spark without livemart's settings finds the rows of a table that the small lane writes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from livemart.delta.warehouse import Warehouse
from livemart.spark.jars import require_jars
from tests.other_readers import (
    AWKWARD,
    WITH_NAN,
    Columns,
    files_of,
    predicates,
    publish,
    without_bounds,
)
from tests.plain_spark import ask_plain_spark

_TYPES = {
    "string": "string",
    "double": "double",
    "float": "float",
    "bool": "boolean",
    "int64": "bigint",
    "int32": "int",
    "int8": "tinyint",
    "date32[day]": "date",
    "timestamp[us, tz=UTC]": "timestamp",
    "timestamp[us]": "timestamp_ntz",
}
# Fields of structs are pushed down to Parquet as columns are.
_FIELDS = ("pair.x = 1.0D", "pair.x > 0.5D", "pair.x = double('NaN')", "pair.y > 'a'")


def _condition(columns: Columns, name: str, operator: str, value: Any) -> str:
    if value is None:
        return f"{name} {operator}"
    kind = columns[name][0]
    if pa.types.is_binary(kind):
        return f"{name} {operator} X'{value.hex()}'"
    if pa.types.is_string(kind):
        return f"{name} {operator} cast(X'{value.encode().hex()}' as string)"
    if pa.types.is_decimal(kind):
        return f"{name} {operator} cast('{value:f}' as decimal({kind.precision}, {kind.scale}))"
    shown = value.isoformat(sep=" ") if hasattr(value, "hour") else value
    return f"{name} {operator} cast('{shown}' as {_TYPES[str(kind)]})"


@pytest.mark.extended
@pytest.mark.timeout(900)
def test_a_filter_on_any_column_finds_its_rows(tmp_path: Path) -> None:
    asked: dict[str, list[str]] = {}
    right: dict[str, str] = {}
    for name, columns in (("awkward", AWKWARD), ("nan", WITH_NAN)):
        files = files_of(columns)
        published = publish(Warehouse(tmp_path), f"mart.{name}", files)
        right[published] = without_bounds(tmp_path / name, files)
        conditions = [_condition(columns, *it) for it in predicates(columns, ("=", ">"))]
        asked[published] = asked[right[published]] = [*conditions, *_FIELDS]

    answers = ask_plain_spark(list(map(str, require_jars())), asked)

    wrong = [
        (way, condition, found, expected)
        for way, by_folder in answers.items()
        for published, boundless in right.items()
        for condition, found, expected in zip(
            asked[published], by_folder[published], by_folder[boundless], strict=True
        )
        if found != expected
    ]
    assert wrong == []
    assert all(any(found) for by_folder in answers.values() for found in by_folder.values())
