"""Other readers find the rows of a table, whether Spark wrote its files or the small lane."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from livemart.delta.warehouse import Warehouse
from livemart.spark.jars import require_jars
from tests.disagreeing_values import drawn
from tests.integration.mini import Mini, sale
from tests.other_readers import (
    AWKWARD,
    DISAGREEING,
    READERS,
    WITH_NAN,
    Columns,
    files_of,
    predicates,
    publish,
    without_bounds,
)
from tests.plain_spark import ask_plain_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TYPES = {
    "string": "string",
    "double": "double",
    "float": "float",
    "bool": "boolean",
    "int64": "bigint",
    "int32": "int",
    "int16": "smallint",
    "int8": "tinyint",
    "date32[day]": "date",
    "timestamp[us, tz=UTC]": "timestamp",
    "timestamp[us]": "timestamp_ntz",
}
_SOURCES = Path(__file__).parents[2] / "projects/mini/models/_sources.yml"
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
def test_a_spark_without_settings_of_livemart_finds_the_rows_of_the_small_lane(
    tmp_path: Path,
) -> None:
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


@pytest.mark.extended
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("lane", ["small"])
def test_every_reader_finds_the_rows_that_a_build_and_refreshes_publish(
    spark: SparkSession, tmp_path: Path, lane: str
) -> None:
    """A reader without bounds to go by is right: each is compared with itself."""
    # Corrected, a row has the values of another amount.
    text = "select cast(sale_id as bigint) as n, {} from {{{{ source('shop', 'sales') }}}}"
    models = {
        model: "{{ config(partition_by=['part']) }} "
        + text.format(
            ", ".join(
                [
                    *(f"{drawn(name, 'sale_id', 'amount')} as {name}" for name in columns),
                    # With bounds of such days, as Spark writes them, deltalake opens no dataset.
                    "date_add(date'9999-12-31', cast(sale_id as int)) as far",
                    f"{drawn('flag', 'sale_id')} as part",
                ]
            )
        )
        for model, columns in DISAGREEING.items()
    }
    mini = Mini(spark, tmp_path / "mini", flags={"lane": lane})
    mini.replace(_SOURCES.read_text(), **models)
    mini.deliver("sales", *(sale(str(number)) for number in range(60)))
    mini.build()
    for start in (50, 58):
        changed = (sale(str(it), amount=f"{start}.00", updated=start) for it in range(start, 63))
        mini.deliver("sales", *changed)
        mini.refresh()

    wrong: list[Any] = []
    conditions: dict[str, list[str]] = {}
    pairs: dict[str, str] = {}
    for model, columns in DISAGREEING.items():
        relation = f"mini.{model}"
        version = mini.newest.models[f"model.mini.{model}"].version
        assert version == mini.warehouse.version(relation)
        published = str(mini.warehouse.path(relation))
        rows = mini.warehouse.read(relation).drop_columns(["part"])
        assert rows.num_rows == 63
        boundless = pairs[published] = without_bounds(tmp_path / model, [rows])
        asked = list(predicates(columns, ("=", ">")))
        for reader, opened in READERS.items():
            ask, right = opened(published, columns), opened(boundless, columns)
            wrong += [(reader, it) for it in asked if ask(*it) != right(*it)]
        conditions[published] = conditions[boundless] = [_condition(columns, *it) for it in asked]
    for way, found in ask_plain_spark(list(map(str, require_jars())), conditions).items():
        for published, boundless in pairs.items():
            each = zip(conditions[published], found[published], found[boundless], strict=True)
            wrong += [(way, condition) for condition, one, other in each if one != other]
    assert wrong == []
