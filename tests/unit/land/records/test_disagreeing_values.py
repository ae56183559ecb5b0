"""Values on which engines disagree land exactly as they were sent, whatever the format."""

from __future__ import annotations

import io
import json
import math
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from livemart.land.records import pieces
from tests.disagreeing_values import KINDS, array, landed_value
from tests.unit.land.records.rows import good, group_of, read

# No field of CSV that holds JSON, and no number that is none in JSON.
PLAIN = [name for name, kind in KINDS.items() if not pa.types.is_nested(kind.arrow)]
_AVRO_TYPES = {
    pa.bool_(): "boolean",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "bytes",
    pa.date32(): {"type": "int", "logicalType": "date"},
}


def columns_of(format: str) -> dict[str, list[Any]]:
    """Return the values of each type that a format can hold, and NULL: a row has one of each."""
    names = PLAIN if format == "csv" else list(KINDS)
    # An empty text is NULL in a column that holds none.
    left_out = () if format in ("parquet", "avro") else (b"",)
    values = {
        name: [it for it in KINDS[name].values if _is_finite(it) and it not in left_out]
        for name in names
    }
    length = max(map(len, values.values())) + 1
    return {name: [*it, *[None] * (length - len(it))] for name, it in values.items()}


def _is_finite(value: Any) -> bool:
    parts = value.values() if isinstance(value, dict) else value
    if isinstance(parts, str | bytes) or not hasattr(parts, "__iter__"):
        return not isinstance(value, float) or math.isfinite(value)
    return all(map(_is_finite, parts))


def content_of(format: str, columns: dict[str, list[Any]]) -> bytes:
    """Return a file of records that have a number, too."""
    count = len(next(iter(columns.values())))
    if format == "parquet":
        file = io.BytesIO()
        numbers = {"n": pa.array(range(count), pa.int32())}
        rows = {name: array(name, values) for name, values in columns.items()}
        pq.write_table(pa.table({**numbers, **rows}), file)
        return file.getvalue()
    if format == "avro":
        kinds = {"n": pa.int32(), **{name: KINDS[name].arrow for name in columns}}
        fields = [{"name": it, "type": _avro_type(kind, it)} for it, kind in kinds.items()]
        schema = fastavro.parse_schema({"type": "record", "name": "row", "fields": fields})
        file = io.BytesIO()
        fastavro.writer(
            file,
            schema,
            (
                {
                    "n": n,
                    **{it: _avro_value(values[n], kinds[it]) for it, values in columns.items()},
                }
                for n in range(count)
            ),
        )
        return file.getvalue()
    records = [
        {
            "n": n,
            **{name: landed_value(it[n], KINDS[name].arrow) for name, it in columns.items()},
        }
        for n in range(count)
    ]
    if format == "json":
        return "\n".join(map(json.dumps, records)).encode()
    lines = [
        ",".join("" if field is None else f'"{_doubled(str(field))}"' for field in record.values())
        for record in records
    ]
    return "\n".join([",".join(records[0]), *lines]).encode()


def _doubled(text: str) -> str:
    return text.replace('"', '""')


def _avro_type(kind: pa.DataType, place: str) -> Any:
    """Return a type of Avro that holds NULL, too; `place` makes names of records unique."""
    if pa.types.is_map(kind):
        inner: Any = {"type": "map", "values": _avro_type(kind.item_type, place)}
    elif pa.types.is_list(kind):
        inner = {"type": "array", "items": _avro_type(kind.value_type, place)}
    elif pa.types.is_struct(kind):
        fields = [
            {"name": it.name, "type": _avro_type(it.type, f"{place}_{it.name}")} for it in kind
        ]
        inner = {"type": "record", "name": f"record_{place}", "fields": fields}
    elif pa.types.is_decimal(kind):
        digits = {"precision": kind.precision, "scale": kind.scale}
        inner = {"type": "bytes", "logicalType": "decimal", **digits}
    elif pa.types.is_timestamp(kind):
        local = "" if kind.tz else "local-"
        inner = {"type": "long", "logicalType": f"{local}timestamp-micros"}
    else:
        inner = _AVRO_TYPES.get(kind, "int")
    return ["null", inner]


def _avro_value(value: Any, kind: pa.DataType) -> Any:
    """Return a value of Arrow as fastavro takes it: a map is a dict."""
    if value is None:
        return None
    if pa.types.is_map(kind):
        return {key: _avro_value(item, kind.item_type) for key, item in value}
    if pa.types.is_list(kind):
        return [_avro_value(it, kind.value_type) for it in value]
    if pa.types.is_struct(kind):
        return {it.name: _avro_value(value[it.name], it.type) for it in kind}
    return value


@pytest.mark.parametrize("format", ["json", "csv", "parquet", "avro"])
@pytest.mark.parametrize("is_fast", [True, False])
def test_every_value_lands_as_it_was_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format: str, is_fast: bool
) -> None:
    columns = columns_of(format)
    group = group_of({"n": "int", **{name: KINDS[name].spark for name in columns}}, format)
    if not is_fast:
        monkeypatch.setattr(pieces, "_fast_rows", lambda *_: None)

    table = read(group, tmp_path / f"a.{format}", content_of(format, columns)).sort_by("n")

    for name, values in columns.items():
        sent = array(name, values).to_pylist()
        # As text -0.0 is another one than 0.0.
        assert list(map(str, good(table, name))) == list(map(str, sent)), name
